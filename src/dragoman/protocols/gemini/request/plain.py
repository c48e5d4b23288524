"""Contents with nothing unusual in them, which are decoded at once; all others are read field by field."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from dragoman._json import Raw
from dragoman.protocols.gemini.request.parameters import PlainConfig, PlainTools
from dragoman.protocols.gemini.wire import NOTHING

_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_NULL: Final = Raw(b"null")


class _PlainCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    args: Raw = NOTHING
    id: str = ""


class _PlainResult(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    response: Raw
    id: str = ""


class PlainPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part with nothing unusual in it."""

    text: str | None = None
    functionCall: _PlainCall | None = None
    functionResponse: _PlainResult | None = None
    thoughtSignature: str = ""

    def says_one_thing(self) -> bool:
        """Return whether it is a text, a call or a result."""
        if self.text is not None:
            return self.functionCall is None and self.functionResponse is None
        if self.functionCall is not None:
            return self.functionResponse is None
        return self.functionResponse is not None and self.functionResponse.response != _NULL


class PlainContent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A content with nothing unusual in it, which is decoded at once; any other is read field by field."""

    role: Literal["user", "model"]
    parts: list[PlainPart]


class _PlainText(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str


class _PlainSystem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    parts: tuple[_PlainText, ...] = ()
    role: str = ""


class PlainRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A request with nothing unusual in it, which is decoded at once; any other is read field by field."""

    contents: Annotated[list[PlainContent], msgspec.Meta(min_length=1)]
    systemInstruction: _PlainSystem = _PlainSystem()
    tools: list[PlainTools] = []
    generationConfig: PlainConfig = PlainConfig()
    model: str = ""

"""The wire protocols: one folder each, looked up by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final, final, get_args
from typing import Protocol as Interface

import msgspec

from dragoman._json import Raw
from dragoman.codec.embeddings import Embedder
from dragoman.errors import WireError
from dragoman.protocol import Legacy, Parsed, ParseRequest, Protocol
from dragoman.protocol.recognition import Recognition
from dragoman.types import ProtocolName

NAMES: Final[tuple[ProtocolName, ...]] = get_args(ProtocolName)


class _Folder(Interface):
    """The interface of a protocol's folder as a module."""

    __name__: str

    @property
    def RECOGNITION(self) -> Recognition:
        """Its marks, known without its codec."""
        ...

    def load(self) -> Protocol:
        """Load its codec."""
        ...


def _folder(name: ProtocolName) -> _Folder:
    match name:
        case "ollama-chat":
            from dragoman.protocols import ollama

            return ollama
        case "openai-chat":
            from dragoman.protocols import openai_chat

            return openai_chat
        case "anthropic-messages":
            from dragoman.protocols import anthropic

            return anthropic
        case "openai-responses":
            from dragoman.protocols import openai_responses

            return openai_responses
        case "gemini-generate":
            from dragoman.protocols import gemini

            return gemini


@cache
def _loaded(name: ProtocolName) -> Protocol:
    protocol: Protocol = _folder(name).load()
    return msgspec.structs.replace(protocol, parse_request=_within_levels(protocol.parse_request))


def _within_levels(parse_request: ParseRequest) -> ParseRequest:
    """Wrap a parser to refuse JSON that is too deep for later work, although the JSON reader accepts it."""

    def parse(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
        try:
            return parse_request(body, path=path, fields=fields)
        except RecursionError:
            raise WireError("expected JSON of some hundred levels at most, got more") from None

    return parse


def recognition(name: ProtocolName) -> Recognition:
    """Return the marks of a protocol without loading its codec."""
    return _folder(name).RECOGNITION


@final
class _Protocols(Mapping[str, Protocol]):
    """Protocols by name. A folder is loaded at its first use, so that a program pays for those that it speaks."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Protocol:
        if name not in NAMES:
            raise KeyError(name)
        return _loaded(name)

    def __contains__(self, name: object) -> bool:
        return name in NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


PROTOCOLS: Final = _Protocols()
#: The protocols that have embeddings.
EMBEDDING: Final[tuple[ProtocolName, ...]] = tuple(name for name in NAMES if recognition(name).has_embeddings)


def embedder(name: ProtocolName) -> Embedder:
    """Return the functions for embeddings of one of `EMBEDDING`."""
    found: Embedder = import_module(f"{_package(name)}.embeddings").EMBEDDER
    return found


def legacy(name: ProtocolName) -> Legacy:
    """Return the older form of a protocol: OpenAI's `/v1/completions`, Ollama's `/api/generate`."""
    found: Legacy = import_module(f"{_package(name)}.legacy").LEGACY
    return found


def _package(name: ProtocolName) -> str:
    return _folder(name).__name__

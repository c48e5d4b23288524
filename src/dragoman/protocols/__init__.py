"""The wire languages that dragoman speaks: one folder each, one case here each."""

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
    """What each folder of a protocol gives as a module."""

    __name__: str

    @property
    def RECOGNITION(self) -> Recognition:
        """Its marks, known without its codec."""
        ...

    def load(self) -> Protocol:
        """Its codec."""
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
    """The same, but for what the JSON reader takes and is too deep for what is done with it then, wherever that is."""

    def parse(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
        try:
            return parse_request(body, path=path, fields=fields)
        except RecursionError:
            raise WireError("expected JSON of some hundred levels at most, got more") from None

    return parse


def recognition(name: ProtocolName) -> Recognition:
    """The marks of a protocol. Its codec is not loaded."""
    return _folder(name).RECOGNITION


@final
class _Protocols(Mapping[str, Protocol]):
    """Protocols by name. A folder is loaded at its first use, so that a program pays for the languages it speaks."""

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
    """What one of `EMBEDDING` says of embeddings."""
    found: Embedder = import_module(f"{_package(name)}.embeddings").EMBEDDER
    return found


def legacy(name: ProtocolName) -> Legacy:
    """The older form of a protocol: OpenAI's `/v1/completions`, Ollama's `/api/generate`."""
    found: Legacy = import_module(f"{_package(name)}.legacy").LEGACY
    return found


def _package(name: ProtocolName) -> str:
    return _folder(name).__name__

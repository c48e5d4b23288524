"""The wire languages that dragoman speaks: one folder each, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, final

from dragoman.codec.embeddings import Embedder
from dragoman.protocol import Legacy, Protocol
from dragoman.types import ProtocolName

_FOLDERS: Final = {
    "ollama-chat": "ollama",
    "openai-chat": "openai_chat",
    "anthropic-messages": "anthropic",
    "openai-responses": "openai_responses",
    "gemini-generate": "gemini",
}


@final
class _Protocols(Mapping[str, Protocol]):
    """Protocols by name. A folder is loaded at its first use, so that a program pays for the languages it speaks."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Protocol:
        protocol: Protocol = import_module(f"dragoman.protocols.{_FOLDERS[name]}").PROTOCOL
        return protocol

    def __contains__(self, name: object) -> bool:
        return name in _FOLDERS

    def __iter__(self) -> Iterator[str]:
        return iter(_FOLDERS)

    def __len__(self) -> int:
        return len(_FOLDERS)


PROTOCOLS: Final = _Protocols()
#: The protocols that have embeddings.
EMBEDDING: Final[tuple[ProtocolName, ...]] = ("openai-chat", "ollama-chat", "gemini-generate")


def embedder(name: ProtocolName) -> Embedder:
    """What one of `EMBEDDING` says of embeddings."""
    found: Embedder = import_module(f"dragoman.protocols.{_FOLDERS[name]}.embeddings").EMBEDDER
    return found


def legacy(name: ProtocolName) -> Legacy:
    """The older form of a protocol: OpenAI's `/v1/completions`, Ollama's `/api/generate`."""
    found: Legacy = import_module(f"dragoman.protocols.{_FOLDERS[name]}.legacy").LEGACY
    return found

"""Earlier calls of MCP servers and images that a provider made, in the form of the protocol that is asked next."""

from __future__ import annotations

import msgspec

from dragoman import _json
from dragoman.codec.counterparts import as_image, kind_of
from dragoman.codec.hosted.remote_calls import Begun, RemoteCall, RemoteCalls, RenderRemote
from dragoman.codec.json_fields import native_fields
from dragoman.events import Deviation
from dragoman.types import Message, Opaque, Part, ProtocolName, Request


def with_remotes(request: Request, protocol: ProtocolName, render: RenderRemote) -> tuple[Request, list[Deviation]]:
    """Return the request with earlier calls of its MCP servers in the protocol's form; those of other servers stay."""
    said = b"".join(bytes(raw) for raw in native_fields(request.native, protocol).values())
    if b'"mcp' not in said:
        return request, []
    lost: dict[str, Deviation] = {}
    messages = [_with_calls(message, protocol, render, said, lost) for message in request.messages]
    return msgspec.structs.replace(request, messages=tuple(messages)), list(lost.values())


def _with_calls(
    message: Message, protocol: ProtocolName, render: RenderRemote, said: bytes, lost: dict[str, Deviation]
) -> Message:
    calls = RemoteCalls()
    parts: list[Part] = []
    begun: dict[str, int] = {}  # where the call stands whose result is to come
    for part in message.parts:
        remote = calls.take(part.raw) if type(part) is Opaque and part.protocol != protocol else None
        if isinstance(remote, Begun):
            begun[remote.id] = len(parts)
        elif remote is not None and type(part) is Opaque and _json.encode_text(remote.server) in said:
            place = begun.pop(remote.id, None) if isinstance(remote, RemoteCall) else None
            if place is not None:
                del parts[place]
                begun = {id: other - (other > place) for id, other in begun.items()}
            _note(lost, part, remote.besides)
            parts += [Opaque(protocol, raw) for raw in render(remote)]
            continue
        parts.append(part)
    return message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts))


def with_images(request: Request, protocol: ProtocolName) -> tuple[Request, list[Deviation]]:
    """Return the request with images that another provider made as parts of its answers, if these may have images."""
    lost: dict[str, Deviation] = {}
    messages = [_with_images(message, protocol, lost) for message in request.messages]
    return msgspec.structs.replace(request, messages=tuple(messages)), list(lost.values())


def _with_images(message: Message, protocol: ProtocolName, lost: dict[str, Deviation]) -> Message:
    if Opaque not in map(type, message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        made = as_image(part.raw) if type(part) is Opaque and part.protocol != protocol else None
        if made is None or type(part) is not Opaque:
            parts.append(part)
            continue
        _note(lost, part, ("id", *made[1]))
        parts.append(made[0])
    return message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts))


def _note(lost: dict[str, Deviation], part: Opaque, names: tuple[str, ...]) -> None:
    for name in names:
        where = f"messages.<{kind_of(part.raw)}>.{name}"
        lost[where] = Deviation("untranslated", where, f"{part.protocol}'s own", "note")

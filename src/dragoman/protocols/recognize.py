"""Recognise the protocol of a response's body, a message, a tool, or a client's request, by marks alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dragoman import _json
from dragoman.codec.framing.body import BodyReader, TooLarge
from dragoman.protocol.recognition import IsWritten, Recognition
from dragoman.protocols import NAMES, recognition
from dragoman.types import DEFAULT_PROTOCOL, ProtocolName

_CHUNK: Final = 65_536
#: Frames that are looked at: keep-alives and what is no protocol's own may come first.
_MOST_FRAMES: Final = 64
#: The marks of all, those that say most first: what OpenAI Chat has, others have too.
_MARKS: Final[tuple[tuple[ProtocolName, Recognition], ...]] = tuple((name, recognition(name)) for name in NAMES[::-1])
#: Names that people use for a protocol.
SHORT_NAMES: Final[dict[str, ProtocolName]] = {recognition(name).short_name: name for name in NAMES}
_FORMS: Final[tuple[tuple[str, ProtocolName], ...]] = tuple(
    sorted(
        ((prefix, name) for name, marks in _MARKS for prefix in marks.error_paths),
        key=lambda form: len(form[0]),
        reverse=True,
    )
)


def recognize(body: bytes) -> ProtocolName | None:
    """Return the protocol of a body, streamed or whole, or None if its first frames have no mark."""
    reader = BodyReader(lambda code, where, seen: None)
    for position, document in enumerate(_documents(reader, body)):
        found = _protocol_of(document)
        if found is not None or position == _MOST_FRAMES:
            return found
    return None


def _documents(reader: BodyReader, body: bytes) -> Iterator[Any]:
    try:
        for begin in range(0, len(body), _CHUNK):
            for data, _ in reader.feed(body[begin : begin + _CHUNK]):
                yield _json.decode(data)
        for data, _ in reader.close():
            yield _json.decode(data)
    except TooLarge:
        return


def _protocol_of(value: Any) -> ProtocolName | None:
    """Return the protocol whose own keys stand at the top of a document."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return None
    return _first(lambda marks: marks.is_answer, value) or _first(lambda marks: marks.is_error, value)


def _first(test: Callable[[Recognition], IsWritten], value: Mapping[str, Any]) -> ProtocolName | None:
    return next((name for name, marks in _MARKS if test(marks)(value)), None)


def protocol_of_messages(messages: Sequence[Mapping[str, Any]]) -> ProtocolName:
    """Return the protocol of plain messages, by the first that shows it."""
    found = (_first(lambda marks: marks.is_message, message) for message in messages)
    return next(filter(None, found), DEFAULT_PROTOCOL)


def tool_entry(tool: Mapping[str, Any]) -> tuple[ProtocolName, Mapping[str, Any]] | None:
    """Return the protocol of a tool, and the entry of its `tools`; None: it has no name either."""
    for name, marks in _MARKS:
        entry = marks.tool_entry(tool)
        if entry is not None:
            return name, entry
    if "name" not in tool:
        return None
    plain = ((name, entry) for name, marks in _MARKS if (entry := marks.plain_tool_entry(tool)) is not None)
    return next(plain, None)


def protocol_of_client(path: str, headers: Mapping[str, str]) -> ProtocolName:
    """Return the protocol of a client that no route tells."""
    for name, marks in _MARKS:
        if any(header in headers for header in marks.client_headers):
            return name
    return next((name for prefix, name in _FORMS if path.startswith(prefix)), DEFAULT_PROTOCOL)

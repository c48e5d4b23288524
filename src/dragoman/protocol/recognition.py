"""How a protocol is recognised, and what shared code needs of it before its codec is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, final

import msgspec

#: Whether an object of JSON (of an answer's body, a frame, a message that a user passed) is written in this protocol,
#: told by what no other protocol has. Never raises.
IsWritten: TypeAlias = Callable[[Mapping[str, Any]], bool]
#: A tool that a user passed as a dict → the entry of the protocol's `tools`; None: it is not written in this protocol.
ToolEntry: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


def nowhere(value: Mapping[str, Any]) -> bool:
    """Return False: nothing distinguishes it. An `IsWritten`."""
    return False


def no_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return None: its tools have no marks of their own. A `ToolEntry`."""
    return None


@final
class Recognition(msgspec.Struct, frozen=True):
    """The marks of one protocol.

    Attributes:
        short_name: its common name.
        client_headers: names, in lower case, that only its clients send.
        error_paths: prefixes of paths whose errors have its form if no route answers; the longest of all protocols
            wins, and "" is every path.
        messages_field: of a request; `hello`: its content in the shortest request.
        is_answer, is_error: of an object in a response's body.
        is_message: of a message or an item of a request.
        tool_entry: recognises a tool by its own marks; `plain_tool_entry`: one with a name and no protocol's marks.
        has_embeddings: the folder has a module `embeddings`.
        operation: OpenTelemetry's `gen_ai.operation.name`.
    """

    short_name: str
    messages_field: str
    hello: Any
    is_answer: IsWritten
    error_paths: tuple[str, ...]
    client_headers: tuple[str, ...] = ()
    is_error: IsWritten = nowhere
    is_message: IsWritten = nowhere
    tool_entry: ToolEntry = no_entry
    plain_tool_entry: ToolEntry = no_entry
    has_embeddings: bool = False
    operation: str = "chat"


#: A conversation's shortest form where messages have a role and a text.
PLAIN_HELLO: Final = ({"role": "user", "content": "hello"},)

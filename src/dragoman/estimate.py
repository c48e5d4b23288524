"""About how many tokens a request's prompt has, without its tokenizer.

A token of English or code is about four bytes of UTF-8; a chat template adds a few tokens to every message, call and
tool. The figure decides how much context a local server should load, and whether a server that reports far fewer
prompt tokens cut the prompt; both allow for an error of some tens of per cent.
"""

from __future__ import annotations

from typing import Final

from dragoman.types import Media, Message, Opaque, Part, Request, Text, Thinking, Tool, ToolCall, ToolResult

_BYTES_PER_TOKEN: Final = 4
_PER_MESSAGE: Final = 4  # tokens: the role and the marks around a message
_PER_CALL: Final = 8
_PER_TOOL: Final = 12
_PER_IMAGE: Final = 768  # tokens; vision encoders of local models take 256 to 1,600
_PER_OTHER_MEDIA: Final = 1_024


def estimate_tokens(request: Request) -> int:
    """The prompt of a request in tokens: messages, tools and the schema of the answer. 0 for an empty request."""
    tokens = sum(_message_tokens(message) for message in request.messages)
    if request.tool_choice != "none":
        tokens += sum(_tool_tokens(tool) for tool in request.tools)
    return tokens


def _message_tokens(message: Message) -> int:
    return _PER_MESSAGE + sum(_part_tokens(part) for part in message.parts)


def _part_tokens(part: Part) -> int:
    match part:
        case Text(text) | Thinking(text):
            return _text_tokens(text)
        case ToolCall(_, name, arguments):
            return _PER_CALL + _text_tokens(name) + _text_tokens(arguments)
        case ToolResult(_, _, parts):
            return sum(_part_tokens(inner) for inner in parts)
        case Media(kind):
            return _PER_IMAGE if kind == "image" else _PER_OTHER_MEDIA
        case Opaque(_, raw):
            return _count(len(bytes(raw)))


def _tool_tokens(tool: Tool) -> int:
    schema = len(bytes(tool.schema)) if tool.schema is not None else 0
    return _PER_TOOL + _text_tokens(tool.name) + _text_tokens(tool.description) + _count(schema)


def _text_tokens(text: str) -> int:
    return _count(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def _count(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)

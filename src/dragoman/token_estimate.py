"""Estimate the tokens of a request's prompt, without its tokenizer.

A token of English or code is about four bytes of UTF-8; a chat template adds a few tokens to every message, call and
tool. The estimate decides how much context a local server should load, and whether a server that reports far fewer
prompt tokens cut the prompt. Both allow for an error of some tens of per cent.
"""

from __future__ import annotations

from typing import Final

from dragoman.types import Media, Part, Request, Text, Thinking, Tool, ToolCall, ToolResult

_BYTES_PER_TOKEN: Final = 4
_PER_MESSAGE: Final = 4  # tokens: the role and the marks around a message
_PER_CALL: Final = 8
_PER_TOOL: Final = 12
_PER_IMAGE: Final = 768  # tokens; vision encoders of local models take 256 to 1,600
_PER_OTHER_MEDIA: Final = 1_024


def estimate_tokens(request: Request) -> int:
    """Return the prompt tokens of a request: messages, tools and the schema of the answer. 0 for an empty request."""
    tokens = _PER_MESSAGE * len(request.messages)
    for message in request.messages:
        tokens += sum(map(_part_tokens, message.parts))
    if request.tool_choice != "none":
        tokens += sum(map(_tool_tokens, request.tools))
    return tokens


def _part_tokens(part: Part) -> int:
    if type(part) is Text or type(part) is Thinking:
        return _text_tokens(part.text)
    if type(part) is ToolCall:
        return _PER_CALL + _text_tokens(part.name) + _text_tokens(part.arguments)
    if type(part) is ToolResult:
        return sum(map(_part_tokens, part.parts))
    if isinstance(part, Media):
        return _PER_IMAGE if part.kind == "image" else _PER_OTHER_MEDIA
    return _count(len(part.raw))


def _tool_tokens(tool: Tool) -> int:
    schema = len(tool.schema) if tool.schema is not None else 0
    return _PER_TOOL + _text_tokens(tool.name) + _text_tokens(tool.description) + _count(schema)


def _text_tokens(text: str) -> int:
    return _count(len(text) if text.isascii() else len(text.encode("utf-8", "replace")))


def _count(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)

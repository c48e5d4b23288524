"""The question of `dragoman call`: the prompt with images and tools, and the conversation that it continues."""

from __future__ import annotations

import argparse
import base64
import contextlib
import os
from pathlib import Path
from typing import Final, Literal, final

import msgspec

from dragoman import _json
from dragoman.cli.body_input import load_tools, read_option_file, read_prompt
from dragoman.config import state_folder
from dragoman.errors import UsageError
from dragoman.inputs.saved_messages import MessageRecord, message_of, record_of
from dragoman.protocol.media_types import type_of_bytes
from dragoman.types import Media, Message, Named, Params, Part, ResponseSchema, Text, Tool, ToolChoice

_CHOICES: Final[dict[str, ToolChoice]] = {"auto": "auto", "none": "none", "any": "any", "required": "any"}
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


@final
class Question(msgspec.Struct, frozen=True):
    """A question. `target` is the model of the continued conversation, None for a new one."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    tool_choice: ToolChoice
    params: Params
    target: str | None = None


@final
class _LastCall(msgspec.Struct, frozen=True):
    """The conversation of the last call."""

    target: str
    messages: tuple[MessageRecord, ...]


_read_last_call: Final = _json.typed_decoder(_LastCall)


def read_question(options: argparse.Namespace, last_call: Path) -> Question:
    """Return the question of the command line. `last_call` is the file of the last conversation.

    Raises:
        UsageError: a file cannot be read, the forced tool is not offered, or there is no conversation to continue.
    """
    tools = load_tools(options.tools)
    prompt = read_prompt(options.prompt)
    if not prompt.strip():
        raise UsageError("a prompt is missing: expected text, got nothing")
    images = [_read_image(path) for path in options.image]
    target, earlier = _read_earlier(last_call) if options.goes_on else (None, ())
    if options.system is not None:
        earlier = (_said("system", Text(options.system)), *(one for one in earlier if one.role != "system"))
    schema = None if options.schema is None else ResponseSchema(_read_schema(options.schema))
    return Question(
        messages=(*earlier, _said("user", Text(prompt), *images)),
        tools=tools,
        tool_choice=_read_tool_choice(options.tool_choice, tools),
        params=Params(max_tokens=options.max_tokens, response_schema=schema),
        target=target,
    )


def last_call_file() -> Path:
    """Return the file of the last call's conversation."""
    return state_folder(environ=os.environ, home=Path.home()) / "last-call.json"


def keep_call(path: Path, target: str, messages: tuple[Message, ...]) -> None:
    """Keep the conversation for `-c` in place of the previous one, readable by its user alone.

    A folder that cannot be written does not make the call fail.
    """
    data = _json.encode(_LastCall(target, tuple(map(record_of, messages))))
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        part.replace(path)


def _said(role: Literal["system", "user"], *parts: Part) -> Message:
    return Message(role, parts)


def _read_earlier(path: Path) -> tuple[str, tuple[Message, ...]]:
    try:
        kept = _read_last_call(path.read_bytes())
    except OSError:
        raise UsageError("there is no conversation to go on with: no call has answered yet") from None
    if isinstance(kept, _json.Malformed):
        raise UsageError(f"{path}: expected a conversation, {kept.problem}")
    try:
        return kept.target, tuple(map(message_of, kept.messages))
    except ValueError as problem:
        raise UsageError(f"{path}: expected a conversation, {problem}") from None


def _read_tool_choice(word: str, tools: tuple[Tool, ...]) -> ToolChoice:
    choice = _CHOICES.get(word)
    names = [tool.name for tool in tools]
    if choice is None and word not in names:
        offered = f"; --tools has: {', '.join(names)}" if names else "; no tools are offered: say --tools FILE"
        raise UsageError(f"--tool-choice: expected auto, none, required or a tool's name, got {word[:80]!r}{offered}")
    if choice == "any" and not tools:
        raise UsageError(f"--tool-choice {word}: no tools are offered: say --tools FILE")
    return choice or Named(word)


def _read_schema(path: Path) -> _json.Raw:
    value = _json.decode(read_option_file(path, "--schema"))
    if not isinstance(value, dict):
        seen = value.problem if isinstance(value, _json.Malformed) else f"got {type(value).__name__}"
        raise UsageError(f"--schema {path}: expected a JSON schema, {seen}")
    return _json.raw(value)


def _read_image(path: Path) -> Media:
    data = read_option_file(path, "--image")
    mime = type_of_bytes(data)
    if mime not in _IMAGES:
        raise UsageError(f"--image {path}: expected a PNG, JPEG, GIF or WebP file")
    return Media("image", mime, base64.b64encode(data).decode())

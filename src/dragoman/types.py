"""The values that the five protocols share: requests, messages and their parts, tools, usage. Values only.

Every Struct is frozen. `native` holds wire fields that dragoman does not model; only the protocol that they came
from writes them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.misuse import UsageError, kind_of
from dragoman.money import NO_USAGE as NO_USAGE
from dragoman.money import TOKEN_KINDS as TOKEN_KINDS
from dragoman.money import BilledApart as BilledApart
from dragoman.money import Cost as Cost
from dragoman.money import Usage as Usage

if TYPE_CHECKING:  # a default, so that `Reply` alone is a type; only type checkers need it
    from pathlib import Path

    from typing_extensions import TypeVar

    Output = TypeVar("Output", default=Any, covariant=True)
else:
    from typing import TypeVar

    Output = TypeVar("Output", covariant=True)

if TYPE_CHECKING:
    Schema: TypeAlias = Any  # users may give a mapping; whatever reads tools makes it Raw
else:
    Schema = Raw | None

ProtocolName: TypeAlias = Literal[
    "ollama-chat", "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"
]
#: What a server speaks of which nothing is said, and a message that shows no protocol's marks.
DEFAULT_PROTOCOL: Final[ProtocolName] = "openai-chat"
Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
StopReason: TypeAlias = Literal["stop", "length", "tool_use", "content_filter", "other"]
Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
FailureKind: TypeAlias = Literal[
    "auth", "permission", "quota", "bad_request", "too_large", "not_found", "context",
    "rate", "overloaded", "timeout", "connection", "wire", "answer_too_large", "internal",
]  # fmt: skip


@final
class Native(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """Wire fields that only `protocol` knows, by name, as their JSON text."""

    protocol: ProtocolName
    fields: dict[str, Raw]


# ---------------------------------------------------------------- parts of a message


@final
class Text(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """Words for the reader. `signature`: Gemini's thoughtSignature on a text part."""

    text: str
    signature: str | None = None
    native: Native | None = None


@final
class Thinking(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """Reasoning. `signature` is the provider's, replayed verbatim to the same provider only.

    `redacted`: the encrypted data of a block whose text is withheld; then `text` is "".
    """

    text: str
    signature: str | None = None
    redacted: str | None = None
    native: Native | None = None


@final
class Media(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """An image, sound or document: base64 `data` with `mime`, or a `url` (https or a provider's file id)."""

    kind: Literal["image", "audio", "video", "document"]
    mime: str | None = None
    data: str | None = None
    url: str | None = None
    native: Native | None = None

    @staticmethod
    def of(path: Path | str) -> Media:
        """Return a file as a part of a message. Its suffix tells its type.

        Raises:
            UsageError: it cannot be read, is larger than 128 MiB, or its suffix is not known.
        """
        given: object = path
        if isinstance(path, str):
            from pathlib import Path

            path = Path(path)
        elif not hasattr(given, "read_bytes"):
            raise UsageError(f"Media.of: expected the path of a file, got {kind_of(given)}")
        mime = MIMES.get(path.suffix.lower())
        if mime is None:
            raise UsageError(f"expected a file that ends in {', '.join(MIMES)}, got {str(path)[-80:]!r}")
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST_FILE + 1)
        except (OSError, ValueError) as problem:
            why = problem.strerror if isinstance(problem, OSError) else "no path can have this name"
            raise UsageError(f"expected a file that can be read, got {str(path)!r}: {why}") from None
        if len(data) > _LARGEST_FILE:
            raise UsageError(f"expected a file of at most {_LARGEST_FILE >> 20} MiB, got more: {str(path)[-80:]!r}")
        from base64 import b64encode

        return Media(media_kind(mime), mime, b64encode(data).decode())


def media_kind(mime: str | None) -> Literal["image", "audio", "video", "document"]:
    """Return the kind of a media type; an unknown one is a document."""
    match (mime or "").partition("/")[0]:
        case "image" | "audio" | "video" as kind:
            return kind
        case _:
            return "document"


_LARGEST_FILE: Final = 128 << 20  # bytes; a device has no end
#: What a file is by its suffix. Their own table, so that no machine's settings change what is sent.
MIMES: Final = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".webm": "video/webm", ".pdf": "application/pdf",
    ".txt": "text/plain", ".md": "text/markdown",
}  # fmt: skip


@final
class ToolCall(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A call of a tool. `arguments` is the JSON text of an object (number forms and key order survive).

    `kind` "custom": the tool takes free text, and `arguments` is that text.
    """

    id: str
    name: str
    arguments: str
    kind: Literal["function", "custom"] = "function"
    signature: str | None = None
    native: Native | None = None

    def values(self) -> dict[str, Any]:
        """Return the arguments as an object; of duplicate keys the last wins. A custom tool's text is under `input`.

        Raises:
            ValueError: the text is not a JSON object (never for a call that dragoman delivered).
        """
        if self.kind == "custom":
            return {"input": self.arguments}
        value = _json.decode_object(self.arguments)
        if isinstance(value, _json.Malformed):
            raise ValueError(f"arguments of tool call {self.name!r}: {value.problem}")
        return value

    def __str__(self) -> str:
        """Return the call as Python would write it: `get_weather(city="Paris")`."""
        value = {"input": self.arguments} if self.kind == "custom" else _json.decode_object(self.arguments)
        if isinstance(value, _json.Malformed):
            return f"{self.name}({self.arguments})"
        return f"{self.name}({', '.join(f'{name}={_json.to_text(one)}' for name, one in value.items())})"


@final
class ToolResult(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The answer to a call: text and media parts. `call_id` "" and `name` "" when the wire had none."""

    call_id: str
    name: str
    parts: tuple[Text | Media | Opaque, ...]
    is_error: bool = False
    native: Native | None = None

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])


@final
class Opaque(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A part that only its own protocol knows, as its JSON text."""

    protocol: ProtocolName
    raw: Raw


Part: TypeAlias = Text | Thinking | Media | ToolCall | ToolResult | Opaque


@final
class Origin(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The source of an answer: the protocol, and the target (`provider/model`) or None."""

    protocol: ProtocolName
    target: str | None = None


@final
class Message(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """One turn. Results stand in messages of role "tool".

    `origin` is the source of an answer, or None. `is_cut`: its response failed or was given up before its end.
    """

    role: Role
    parts: tuple[Part, ...]
    native: Native | None = None
    origin: Origin | None = None
    is_cut: bool = False

    @staticmethod
    def user(*content: str | Path | Part) -> Message:
        """Return a user's turn: texts, files (`Path("cat.png")`) and parts, in order.

        Raises:
            UsageError: something is none of these, or a file cannot be read.
        """
        return Message("user", read_content(content, "Message.user"))

    @staticmethod
    def system(*content: str | Part) -> Message:
        """Return instructions for the model. Raises UsageError as `user`."""
        return Message("system", read_content(content, "Message.system"))

    @staticmethod
    def assistant(*content: str | Path | Part) -> Message:
        """Return a turn of the model. Raises UsageError as `user`."""
        return Message("assistant", read_content(content, "Message.assistant"))

    @staticmethod
    def tool(call: ToolCall, *content: str | Path | Text | Media, is_error: bool = False) -> Message:
        """Return the result of a call that you ran yourself. Raises UsageError as `user`, or if it is no call."""
        if not isinstance(call, ToolCall):
            raise UsageError(f"Message.tool: expected a ToolCall, got {kind_of(call)}")
        parts = read_content(content, "Message.tool")
        said = tuple([part for part in parts if isinstance(part, Text | Media)])
        if len(said) < len(parts):
            raise UsageError("Message.tool: expected texts, files and media, got another part")
        return Message("tool", (ToolResult(call.id, call.name, said, is_error),))

    @property
    def text(self) -> str:
        """The text parts, joined with nothing between; for role "tool", the texts of the results."""
        told = (Text, ToolResult) if self.role == "tool" else Text
        return "".join([part.text for part in self.parts if isinstance(part, told)])

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of this turn, in order."""
        return [part for part in self.parts if isinstance(part, ToolCall)]


def read_content(content: object, where: str) -> tuple[Part, ...]:
    """Return the parts of a message's content: a text, a file or a part, or several.

    Raises:
        UsageError: it is none of these, or empty.
    """
    items = tuple(content) if isinstance(content, list | tuple) else (content,)
    if not items:
        raise UsageError(f"{where}: expected a text, a Path or a part, got nothing")
    parts: list[Part] = []
    for position, item in enumerate(items):
        if isinstance(item, str):
            parts.append(Text(item))
        elif isinstance(item, Part):
            parts.append(item)
        elif hasattr(item, "read_bytes") and hasattr(item, "suffix"):  # a Path, without importing it
            parts.append(Media.of(item))
        else:
            seen = f"{type(item).__name__} at position {position}"
            raise UsageError(f"{where}: expected a text, a Path or a part, got {seen}")
    return tuple(parts)


# ---------------------------------------------------------------- what is asked


@final
class Tool(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool that the model may call. `schema`: JSON schema of its arguments; None: no arguments declared.

    A schema may be given as a mapping too; `dragoman` turns it into its JSON text before it uses the tool.
    `kind` "custom": it takes free text (`schema` is None; its format stands in `native`).
    """

    name: str
    description: str = ""
    schema: Schema = None
    kind: Literal["function", "custom"] = "function"
    native: Native | None = None

    def schema_object(self) -> dict[str, Any]:
        """Return the schema as an object; without one, an object with no properties."""
        value = _json.decode(bytes(self.schema)) if self.schema is not None else None
        return value if isinstance(value, dict) else {"type": "object", "properties": {}}


@final
class Named(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The model must call this tool."""

    name: str


ToolChoice: TypeAlias = Literal["auto", "none", "any"] | Named


@final
class Reasoning(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """How much to think: an effort, or a budget in tokens. Both None: on, with the provider's default."""

    effort: Effort | None = None
    budget: int | None = None


@final
class ResponseSchema(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Structured output. `schema`: JSON schema of the answer, a mapping or its text as Raw; None: any JSON object.

    `written_for`: the protocol that a client wrote it in; that protocol's provider gets it as it is, and judges it.
    """

    schema: Schema = None
    name: str = "response"
    strict: bool | None = None
    description: str | None = None
    written_for: ProtocolName | None = None


@final
class Params(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Parameters; None means not set, so the provider's default applies.

    `max_tokens`, `num_ctx` in tokens. `cache`: "none" sends no key and no marker, "short" is the provider's default
    life, "long" its longest. `reasoning` None: not mentioned.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning: Reasoning | None = None
    response_schema: ResponseSchema | None = None
    parallel_tools: bool | None = None
    cache: Literal["none", "short", "long"] | None = None
    num_ctx: int | None = None


@final
class Request(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """One question to a model, independent of protocols. `session_id` names the conversation (for cache keys)."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = "auto"
    params: Params = Params()
    stream: bool = True
    session_id: str | None = None
    native: Native | None = None


# ---------------------------------------------------------------- what it took


#: "answered": to its end; "failed": before anything of the answer; "broken": in the answer; "cancelled": its caller
#: went; "skipped": it was not asked.
Outcome: TypeAlias = Literal["answered", "failed", "broken", "cancelled", "skipped"]


@final
class Attempt(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The outcome of one target of a request.

    Attributes:
        reason: "" if it was answered.
        kind, status: its failure's.
        seconds: from the first request to its end.
        usage: what it reported, also if it failed.
    """

    target: str
    outcome: Outcome
    reason: str = ""
    kind: FailureKind | None = None
    status: int | None = None
    seconds: float = 0.0
    usage: Usage = NO_USAGE
    cost: Cost | None = None

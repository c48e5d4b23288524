"""Every field of every request type of the vendors' SDKs, each in the smallest request that holds it.

The types are walked: TypedDicts (openai, anthropic) and pydantic models (google-genai, ollama), every member of every
union, every value of every enumeration. A field within its own type is not walked again.
"""

from __future__ import annotations

import base64
import enum
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple, NotRequired, Required, TypeAlias, Union, get_args, get_origin

import anthropic.types.beta.message_create_params as anthropic_beta
import anthropic.types.message_create_params as anthropic_messages
import google.genai.types as google_types
import ollama
import openai.types.chat.completion_create_params as openai_chat
import openai.types.responses.response_create_params as openai_responses
import pydantic
from typing_extensions import get_type_hints, is_typeddict

Json: TypeAlias = Any

#: Fields of google-genai's config that are the SDK's own: they never leave the program.
SDK_ONLY: Final = frozenset({
    "httpOptions", "shouldReturnHttpResponse", "automaticFunctionCalling", "continuationToken",
    "automaticContinuation", "generationOutputConfig",
})  # fmt: skip
#: Fields of google-genai's config that stand beside `generationConfig` on the wire.
BESIDE: Final = frozenset({
    "systemInstruction", "tools", "toolConfig", "safetySettings", "labels", "cachedContent", "modelArmorConfig",
    "serviceTier", "store",
})  # fmt: skip
#: Fields in which a schema stands.
_SCHEMAS: Final = frozenset({
    "input_schema", "parameters", "schema", "parametersJsonSchema", "responseJsonSchema", "responseJsonschema",
    "output_schema", "responseFormat",
})  # fmt: skip
_MARK: Final = "mark"
MADE_UP: Final = re.compile(rf"{_MARK}\d+")
_PLAIN: Final = "plain"
#: What stands in required fields whose words the types do not tell.
_PLAIN_WORDS: Final = {"role": "user"}
#: What a type needs that says all is optional.
_ALSO_REQUIRED: Final = {
    "FunctionDeclaration": ("name",), "FunctionCall": ("name",), "FunctionResponse": ("name", "response"),
    "Function": ("name",), "JSONSchema": ("schema",), "Tool": ("function",), "BetaSystemMessageParam": ("content",),
}  # fmt: skip
#: Fields that are true unless a request says otherwise.
_USUALLY_TRUE: Final = frozenset({"parallel_tool_calls", "includeThoughts"})


class Case(NamedTuple):
    """A request with one field more than `base`, the smallest one that the field can stand in.

    `path`: the names down to the field, lists as `[]`, members of a union as `<type>`. `values`: what a reader finds
    again: marked strings, numbers, or words of an enumeration. `key`: the field's own name. `is_marked`: the value
    is unlike any other.
    """

    path: str
    body: Json
    base: Json
    key: str
    values: tuple[Json, ...]
    is_marked: bool


class _Found(NamedTuple):
    path: str
    value: Json
    base: Json
    key: str
    values: tuple[Json, ...]
    is_marked: bool


class Walk:
    """One walk over the request type of a protocol; marks count up."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[type] = []
        self._least: dict[Any, Json] = {}

    # ------------------------------------------------------------ types

    def fields(self, kind: type) -> dict[str, tuple[Any, bool]]:
        """Name on the wire → type, and whether it is required."""
        if is_typeddict(kind):
            hints = get_type_hints(kind, include_extras=True)
            found = {}
            for name, hint in hints.items():
                origin = get_origin(hint)
                is_required = origin is Required or (kind.__total__ and origin is not NotRequired)
                inner = get_args(hint)[0] if origin in (Required, NotRequired) else hint
                found[_alias(inner) or name] = (inner, is_required)
            return found
        return {
            info.alias or name: (info.annotation, info.is_required())
            for name, info in kind.model_fields.items()  # type: ignore[attr-defined]
        }

    def members(self, hint: Any) -> list[Any]:
        """The members of a union, without null and without what only the program knows; else the type alone."""
        hint = _bare(hint)
        if get_origin(hint) not in (Union, types.UnionType):
            return [] if hint is type(None) else [hint]
        found = [each for member in get_args(hint) for each in self.members(member)]
        objects = [each for each in found if _is_object(each)]
        if any(is_typeddict(each) for each in objects):  # an answer's model beside the request's own type
            found = [each for each in found if not _is_model(each)]
        if str in found:  # words beside it are examples
            found = [each for each in found if get_origin(each) is not Literal]
        kept: list[Any] = []
        for each in found:
            if each not in kept:
                kept.append(each)
        return kept

    # ------------------------------------------------------------ values

    def least(self, hint: Any, key: str) -> Json:
        """The smallest value of a type, without marks."""
        options = self.members(hint)
        plain = [each for each in options if not _is_object(each) and _list_item(each) is None]
        return self._least_of((plain or options)[0] if options else str, key)

    def _least_of(self, kind: Any, key: str) -> Json:
        if get_origin(kind) is Literal:
            return get_args(kind)[0]
        if _is_object(kind):
            if kind in self._open and kind not in self._least:
                return {}
            if kind not in self._least:
                self._open.append(kind)
                fields = self.fields(kind)
                also = _ALSO_REQUIRED.get(kind.__name__, ())
                self._least[kind] = {
                    name: self.least(inner, name)
                    for name, (inner, is_required) in fields.items()
                    if is_required or name in also
                }
                self._open.pop()
            return dict(self._least[kind])
        item = _list_item(kind)
        if item is not None:
            return [self.least(item, key)]
        if kind is ollama.Image:
            kind = str
        value, _ = self._value(kind, key, _PLAIN, 7)
        return value

    def _value(self, kind: Any, key: str, mark: str, number: int) -> tuple[Json, tuple[Json, ...]]:
        """A value, and what a reader finds of it again."""
        if key in _SCHEMAS and kind is not bool:
            return {"type": "object", "properties": {mark: {"type": "string"}}}, (mark,)
        if mark == _PLAIN and key in _PLAIN_WORDS:
            return _PLAIN_WORDS[key], ()
        if kind is bool and mark == _PLAIN:
            return key in _USUALLY_TRUE, ()
        if kind is bool:
            return key not in _USUALLY_TRUE, (key not in _USUALLY_TRUE,)
        if kind in (int, float) and (kind is int or key == "topK"):
            return number, (number,)
        if kind is float and key != "topK":
            return number / 10_000, (number / 10_000,)
        if inspect.isclass(kind) and issubclass(kind, enum.Enum):
            return next(iter(kind)).value, (next(iter(kind)).value,)
        if _is_mapping(kind) or kind in (object, Any):
            return {mark: mark}, (mark,)
        text = mark
        lowered = key.lower()
        if lowered.endswith(("url", "uri")):
            text = f"https://example.test/{mark}"
        elif key in ("arguments",):
            text = f'{{"a":"{mark}"}}'
        return text, (mark,)

    def walk(self, hint: Any, key: str) -> Iterator[_Found]:
        """Every field in a type, in the smallest value that holds it."""
        options = self.members(hint)
        is_choice = sum(map(_is_object, options)) > 1
        for kind in options:
            if get_origin(kind) is Literal or (inspect.isclass(kind) and issubclass(kind, enum.Enum)):
                words = get_args(kind) if get_origin(kind) is Literal else [each.value for each in kind]
                for word in words:
                    yield _Found("", word, None, key, (word,), False)
            elif kind is ollama.Image:
                yield from self.walk(str, key)
            elif _is_object(kind):
                name = f"<{_name_of(kind, self._least_of(kind, key))}>" if is_choice else ""
                yield from (found._replace(path=name + found.path) for found in self._object(kind, key))
            elif (item := _list_item(kind)) is not None:
                for found in self.walk(item, key):
                    base = None if found.base is None else [found.base]
                    yield found._replace(path=f"[]{found.path}", value=[found.value], base=base)
            else:
                self._count += 1
                mark, number = f"{_MARK}{self._count:04d}", 7_000 + self._count % 2_000
                value, values = self._value(kind, key, mark, number)
                yield _Found("", value, None, key, values, kind is not bool)

    def _object(self, kind: type, key: str) -> Iterator[_Found]:
        least = self._least_of(kind, key)
        tag = least.get("type") if isinstance(least.get("type"), str) else None
        if tag is not None and tag != _PLAIN:
            yield _Found("", least, None, "type", (tag,), False)
        if kind in self._open:
            return
        self._open.append(kind)
        for name, (inner, _) in self.fields(kind).items():
            if name == "type" and tag is not None:
                continue
            for found in self.walk(inner, name):
                base = {at: value for at, value in least.items() if at != name or found.base is not None}
                if found.base is not None:
                    base = {**least, name: found.base}
                elif name in least:
                    base = least
                dot = f".{name}"
                value = {**least, name: found.value}
                yield found._replace(path=dot + found.path, value=value, base=None if base == value else base)
        self._open.pop()


def _alias(hint: Any) -> str | None:
    for extra in getattr(hint, "__metadata__", ()):
        if getattr(extra, "alias", None):
            return str(extra.alias)
    return None


def _bare(hint: Any) -> Any:
    """Without Annotated, aliases and new types around it."""
    while True:
        if get_origin(hint) in (Required, NotRequired) or hasattr(hint, "__metadata__"):
            hint = get_args(hint)[0]
        elif hasattr(hint, "__value__"):
            hint = hint.__value__
        else:
            return hint


def _is_model(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, pydantic.BaseModel)


def _is_object(kind: Any) -> bool:
    return is_typeddict(kind) or _is_model(kind)


def _is_mapping(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return inspect.isclass(origin) and issubclass(origin, Mapping)


def _list_item(kind: Any) -> Any | None:
    """The type of a list's items; None for what is no list."""
    origin = get_origin(kind)
    if origin is None or _is_mapping(kind) or origin is Literal or not get_args(kind):
        return None
    return get_args(kind)[0]


def _name_of(kind: type, least: Json) -> str:
    """How a member of a union is called: its tag, or its type's name."""
    for name in ("type", "role"):
        tag = least.get(name) if isinstance(least, dict) else None
        if isinstance(tag, str) and tag != _PLAIN:
            return tag
    return re.sub(r"(^Beta|Param$)", "", kind.__name__)


# ---------------------------------------------------------------- the requests

_USER: Final = [{"role": "user", "content": "hello"}]
_CONTENTS: Final = [{"role": "user", "parts": [{"text": "hello"}]}]
#: Protocol → the least request.
LEAST: Final[dict[str, dict[str, Json]]] = {
    "openai-chat": {"model": "m", "messages": _USER},
    "openai-responses": {"model": "m", "input": "hello"},
    "anthropic-messages": {"model": "m", "max_tokens": 64, "messages": _USER},
    "gemini-generate": {"contents": _CONTENTS},
    "ollama-chat": {"model": "m", "messages": _USER},
}
_SCHEMA: Final = {"type": "object", "properties": {}}
#: Fields of the body that say something beside tools only, and those tools.
_BESIDE_TOOLS: Final[dict[str, dict[str, Json]]] = {
    "openai-chat": {"tools": [{"type": "function", "function": {"name": _PLAIN, "parameters": _SCHEMA}}]},
    "openai-responses": {"tools": [{"type": "function", "name": _PLAIN, "parameters": _SCHEMA, "strict": False}]},
    "anthropic-messages": {"tools": [{"name": _PLAIN, "input_schema": _SCHEMA}]},
    "gemini-generate": {"tools": [{"functionDeclarations": [{"name": _PLAIN, "parametersJsonSchema": _SCHEMA}]}]},
    "ollama-chat": {},
}
_STREAMED: Final = frozenset({"stream_options"})
_OF_TOOLS: Final = frozenset({"tool_choice", "toolConfig", "function_call", "parallel_tool_calls"})
GEMINI_PATH: Final = "/v1beta/models/m:generateContent"


def _roots(protocol: str, walk: Walk) -> dict[str, Any]:
    """Name of a field of the body → type. `generationConfig.x`: one within."""
    match protocol:
        case "openai-chat":
            chat = walk.fields(openai_chat.CompletionCreateParamsStreaming)
            return {name: hint for name, (hint, _) in chat.items()}
        case "openai-responses":
            return {
                name: hint for name, (hint, _) in walk.fields(openai_responses.ResponseCreateParamsStreaming).items()
            }
        case "anthropic-messages":
            stable = walk.fields(anthropic_messages.MessageCreateParamsStreaming)
            beta = walk.fields(anthropic_beta.MessageCreateParamsStreaming)
            return {name: hint for name, (hint, _) in {**stable, **beta}.items() if name != "anthropic-beta"}
        case "gemini-generate":
            config = walk.fields(google_types.GenerationConfig) | walk.fields(google_types.GenerateContentConfig)
            found: dict[str, Any] = {"contents": list[google_types.Content]}
            for name, (hint, _) in config.items():
                if name in SDK_ONLY:
                    continue
                found[name if name in BESIDE else f"generationConfig.{name}"] = _of_wire(name, hint)
            return found
        case _:
            return {
                name: {"messages": list[ollama.Message], "options": ollama.Options}.get(name, hint)
                for name, (hint, _) in walk.fields(ollama._types.ChatRequest).items()
            }


def _of_wire(name: str, hint: Any) -> Any:
    """The type on the wire, where the SDK takes more and turns it into this."""
    return {
        "systemInstruction": google_types.Content, "tools": list[google_types.Tool], "speechConfig":
        google_types.SpeechConfig, "responseSchema": google_types.Schema,
    }.get(name, hint)  # fmt: skip


@cache
def cases(protocol: str) -> tuple[Case, ...]:
    """Every field of a protocol's requests."""
    return tuple(_walk_all(protocol))


def _walk_all(protocol: str) -> Iterator[Case]:
    walk = Walk()
    for root, hint in _roots(protocol, walk).items():
        outer, _, inner = root.rpartition(".")
        least = LEAST[protocol] | (_BESIDE_TOOLS[protocol] if root in _OF_TOOLS else {})
        if root in _STREAMED:
            least = {**least, "stream": True}
        for found in walk.walk(hint, inner):
            base = dict(least)
            if found.base is not None:
                base[outer or inner] = {inner: found.base} if outer else found.base
            body = {**least, (outer or inner): {inner: found.value} if outer else found.value}
            yield Case(root + found.path, body, base, found.key, found.values, found.is_marked)


def spellings(value: Json) -> tuple[str, ...]:
    """The forms in which a reader may find a marked value again."""
    if not isinstance(value, str):
        return (str(value),)
    tails = {base64.b64encode(value.encode()).decode().rstrip("=")[:-1]}
    return (value, *tails)

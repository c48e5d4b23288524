"""Render a request to Ollama's `/api/chat`.

Ollama has no tool choice, no custom tools, no media by address and no tool errors. What it cannot express is left out
or expressed in the nearest way, with a deviation. Without `num_ctx` it loads a model with a small context and silently
cuts longer prompts, so every request has one.
"""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.counterparts import with_data
from dragoman.codec.cross_protocol_request import is_left_empty, plain_text, said_whole
from dragoman.codec.json_fields import native_fields, read
from dragoman.deviations import part_path
from dragoman.events import Deviation
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, HttpRequest, ModelLimits, Rendered
from dragoman.protocols.ollama.wire import EMPTY_SCHEMA, NAME
from dragoman.token_estimate import estimate_tokens
from dragoman.types import (
    Effort,
    Media,
    Message,
    Named,
    Params,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)

#: Tokens kept free for the answer when the request sets no larger maximum.
LEAST_RESERVE: Final = 2_048
_THINK: Final[dict[Effort, Json]] = {
    "none": False, "minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "max", "max": "max",
}  # fmt: skip
#: A tool that takes free text becomes a function with one argument.
_FREE_TEXT: Final = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """Render a request for a provider."""
    renderer = _Renderer()
    native = native_fields(request.native, NAME)
    body: dict[str, Json] = {"model": request.model, "messages": renderer.messages(request.messages)}
    tools = renderer.tools(request)
    if tools:
        body["tools"] = tools
    params = request.params
    if params.response_schema is not None:
        schema = params.response_schema.schema
        body["format"] = "json" if schema is None else schema
        renderer.drop_format(params.response_schema)
    if request.session_id is not None and params.cache != "none":
        renderer.deviations.append(Deviation("dropped", "session_id", "the protocol has no cache key", "note"))
    think = renderer.think(params)
    if think is not None:
        body["think"] = think
    body["stream"] = request.stream
    options = renderer.options(params) | {"num_ctx": params.num_ctx or pick_num_ctx(request, limits)}
    unsaid = read(native["options"]) if "options" in native else None
    body["options"] = unsaid | options if isinstance(unsaid, dict) else options
    if native:
        body |= {key: value for key, value in native.items() if key not in body}
    accept = "application/x-ndjson" if request.stream else "application/json"
    http = HttpRequest("/api/chat", _json.encode(body), {"content-type": "application/json", "accept": accept})
    return Rendered(http, tuple(renderer.deviations))


def pick_num_ctx(request: Request, limits: ModelLimits) -> int:
    """Return the context to load, in tokens, within the model's context and the configured cap.

    It is the smallest power of two that holds the estimated prompt and the answer.
    """
    needed = estimate_tokens(request) + max(request.params.max_tokens or 0, LEAST_RESERVE)
    size = min(1 << (needed - 1).bit_length(), limits.num_ctx_cap)
    return size if limits.context is None else min(size, limits.context)


class _Renderer:
    """Renders one request and collects what could not be expressed."""

    __slots__ = ("deviations",)

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []

    def _deviate(self, code: str, at: tuple[int, ...], why: str, *, field: str = "") -> None:
        """Note a deviation. `at`: the part, by the numbers of its message, of itself, of what is in it."""
        self.report(code, part_path(at) + field, why)

    def report(self, code: str, where: str, why: str) -> None:
        """Note something that is expressed differently."""
        self.deviations.append(Deviation(code, where, why))

    def drop(self, where: str, why: str) -> None:
        """Note something that the protocol cannot express."""
        self.report("dropped", where, why)

    def drop_format(self, form: ResponseSchema) -> None:
        """Note what stands beside the schema of the answer."""
        name = None if form.name == "response" else form.name
        for field, value in (("name", name), ("strict", form.strict), ("description", form.description)):
            if value is not None:
                self.drop(f"params.response_schema.{field}", "the format is a schema alone")

    # ------------------------------------------------------------ messages

    def messages(self, messages: tuple[Message, ...]) -> list[Json]:
        """Return the messages. Images of results follow the results, in a message of the user."""
        rendered: list[Json] = []
        held: list[str] = []  # images of the results just written
        for place, message in enumerate(messages):
            if ToolResult not in map(type, message.parts):
                if held:
                    rendered.append({"role": "user", "content": "", "images": held})
                    held = []
            else:
                results = [(number, part) for number, part in enumerate(message.parts) if isinstance(part, ToolResult)]
                for number, result in results:
                    rendered.append(self._result(result, (place, number), held))
                if len(results) == len(message.parts):
                    continue
            turn = self._message(message, place)
            if message.role != "assistant" or not is_left_empty(message, turn):
                rendered.append(turn)
        if held:
            rendered.append({"role": "user", "content": "", "images": held})
        return rendered

    def _message(self, message: Message, index: int) -> dict[str, Json]:
        role = "user" if message.role == "tool" else message.role
        texts: list[Text] = []
        thinking: list[str] = []
        images: list[str] = []
        calls: list[Json] = []
        for number, given in enumerate(message.parts):
            at = (index, number)
            part = self._readable(given, at) if isinstance(given, Media) else given
            if isinstance(part, Text):
                if (calls or images) and part.text:
                    self._deviate("moved", at, "text stands before images and calls")
                texts.append(part)
                if part.signature:
                    self._drop_signature(part.signature, at)
            elif isinstance(part, ToolCall):
                calls.append(self._call(part, at))
            elif isinstance(part, Thinking):
                thinking.append(part.text)
                self._drop_signature(part.signature or part.redacted, at)
            elif isinstance(part, Media):
                images += self._image(part, at)
        if len(texts) == 1:
            content = texts[0].text
        else:
            content = "".join([part.text for part in texts]) if role == "assistant" else said_whole(texts)
        rendered: dict[str, Json] = {"role": role, "content": content}
        if thinking and any(thinking):
            rendered["thinking"] = "".join(thinking)
        if images:
            rendered["images"] = images
        if calls:
            rendered["tool_calls"] = calls
        return rendered if message.native is None else rendered | native_fields(message.native, NAME)

    def _drop_signature(self, signature: str | None, at: tuple[int, ...]) -> None:
        if signature:
            self._deviate("dropped", at, "the protocol has no signatures", field=".signature")

    def _readable(self, part: Media, at: tuple[int, ...]) -> Media | Text:
        """Return a document of plain text as text."""
        words = plain_text(part.mime, part.data) if part.kind == "document" else None
        if words is None:
            return part
        self._deviate("changed", at, "a document of text is said as text")
        return Text(words)

    def _image(self, media: Media, at: tuple[int, ...]) -> list[str]:
        media = with_data(media)
        if media.kind == "image" and media.data is not None:
            return [media.data]
        self._deviate("dropped", at, f"only images as base64 data can be sent, not {media.kind}")
        return []

    def _call(self, call: ToolCall, at: tuple[int, ...]) -> Json:
        self._drop_signature(call.signature, at)
        if call.kind == "custom":
            arguments: Json = {"input": call.arguments}
        elif not _json.is_object(call.arguments):
            self._deviate("changed", at, "they are not a JSON object", field=".arguments")
            arguments = {"arguments": call.arguments}
        else:
            arguments = _json.embed(call.arguments)
        return {"id": call.id, "function": {"name": call.name, "arguments": arguments}}

    def _result(self, result: ToolResult, at: tuple[int, ...], held: list[str]) -> Json:
        said: list[Text] = []
        for number, given in enumerate(result.parts):
            part = self._readable(given, (*at, number)) if isinstance(given, Media) else given
            if isinstance(part, Text):
                said.append(part)
            elif isinstance(part, Media):
                images = self._image(part, (*at, number))
                if images:
                    self._deviate("moved", (*at, number), "images of a result follow in a message of the user")
                held += images
        text = said_whole(said)
        if result.is_error:
            self._deviate("changed", at, "a failed result begins with Error:", field=".is_error")
            text = f"Error: {text}"
        rendered: dict[str, Json] = {"role": "tool", "content": text}
        if result.name:
            rendered["tool_name"] = result.name
        if result.call_id:
            rendered["tool_call_id"] = result.call_id
        return rendered if result.native is None else rendered | native_fields(result.native, NAME)

    # ------------------------------------------------------------ tools and parameters

    def tools(self, request: Request) -> list[Json]:
        """Return the tools; a tool choice is expressed by the offered tools, as far as possible."""
        tools, choice = request.tools, request.tool_choice
        if choice == "none":
            if tools:
                self.drop("tools", "there is no tool choice, so that none may be called")
            return []
        if isinstance(choice, Named) and any(tool.name == choice.name for tool in tools):
            self.drop("tool_choice", "a call cannot be required; only that tool is offered")
            tools = tuple(tool for tool in tools if tool.name == choice.name)
        elif choice != "auto":
            self.drop("tool_choice", "a call cannot be required")
        return [self._tool(tool) for tool in tools]

    def _tool(self, tool: Tool) -> Json:
        if tool.kind == "custom":
            self.report("changed", f"tools.{tool.name}", "a tool that takes free text has one argument, input")
        parameters: Json = EMPTY_SCHEMA if tool.schema is None else tool.schema
        if tool.kind == "custom":
            parameters = _FREE_TEXT
        function: dict[str, Json] = {"name": tool.name}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = parameters
        if tool.native is None:
            return {"type": "function", "function": function}
        native = dict(native_fields(tool.native, NAME))
        inner = read(native.pop("function", None))
        return {"type": "function", "function": function | (inner if isinstance(inner, dict) else {})} | native

    def think(self, params: Params) -> Json:
        """Return `think`, or None if the request does not mention it."""
        reasoning = params.reasoning
        if reasoning is None:
            return None
        if reasoning.budget is not None:
            self.drop("params.reasoning.budget", "thinking has levels, no budget")
        if reasoning.effort is None:
            return reasoning.budget != 0
        if reasoning.effort in ("minimal", "xhigh"):
            self.report("changed", "params.reasoning.effort", f"the nearest level is {_THINK[reasoning.effort]}")
        return _THINK[reasoning.effort]

    def options(self, params: Params) -> dict[str, Json]:
        """Return the requested options."""
        if params.parallel_tools is False:
            self.drop("params.parallel_tools", "parallel calls cannot be turned off")
        if params.cache == "long":  # "short" is the life that the server gives anyway
            self.drop("params.cache", "the protocol has no cache hints")
        options: dict[str, Json] = {}
        if params.max_tokens is not None:
            options["num_predict"] = params.max_tokens
        if params.temperature is not None:
            options["temperature"] = params.temperature
        if params.top_p is not None:
            options["top_p"] = params.top_p
        if params.top_k is not None:
            options["top_k"] = params.top_k
        if params.seed is not None:
            options["seed"] = params.seed
        if params.presence_penalty is not None:
            options["presence_penalty"] = params.presence_penalty
        if params.frequency_penalty is not None:
            options["frequency_penalty"] = params.frequency_penalty
        if params.stop:
            options["stop"] = list(params.stop)
        return options

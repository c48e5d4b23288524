"""Render a request to Gemini.

Spec: https://ai.google.dev/api/generate-content and https://ai.google.dev/gemini-api/docs/thought-signatures (read
2026-11-21). System messages have one place, all results of a step stand in one content, and from Gemini 3 on the first
call of a step must have a signature: calls of other models' history get the documented placeholder.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.counterparts import told_type, with_data
from dragoman.codec.cross_protocol_request import said_whole
from dragoman.codec.json_fields import native_fields, read, read_fields
from dragoman.deviations import part_path
from dragoman.events import Deviation
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, HttpRequest, ModelLimits, Rendered
from dragoman.protocols.gemini.request.parameters import text_form
from dragoman.protocols.gemini.wire import DUMMY_SIGNATURES, NAME, model_path
from dragoman.types import (
    Effort,
    Media,
    Message,
    Named,
    Native,
    Params,
    Part,
    Reasoning,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

_MOST_STOPS: Final = 5
#: Models before 3 take a budget of thinking tokens, later ones a level.
_BUDGET_MODEL: Final = re.compile(r"gemini-(?:1|2)(?:\D|$)")
_BUDGETS: Final[dict[Effort, int]] = {
    "none": 0, "minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 24_576, "max": 24_576,
}  # fmt: skip
#: The least and the most of a budget, by words of a model's name, and whether 0 turns thinking off.
_RANGES: Final = (("flash-lite", 512, 24_576, True), ("flash", 1, 24_576, True), ("-pro", 128, 32_768, False))
#: Models whose least level is low: the larger ones, and later small ones, which the newest name may stand for.
_NO_MINIMAL: Final = re.compile(r"-pro|gemini-(?:3\.[7-9]-flash|flash-latest)(?!-lite)")
#: A model that takes a level less.
_NO_MEDIUM: Final = "gemini-3-pro"
_LEVELS: Final[dict[Effort, str]] = {
    "none": "minimal", "minimal": "minimal", "low": "low", "medium": "medium", "high": "high", "xhigh": "high",
    "max": "high",
}  # fmt: skip
#: A tool that takes free text becomes a function with one argument.
_FREE_TEXT: Final = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """Render a request for a provider."""
    renderer = _Renderer(request.model, dialect)
    native = native_fields(request.native, NAME)
    body: dict[str, Json] = {"contents": renderer.contents(request.messages)}
    system = renderer.system(request.messages)
    if system:
        body["systemInstruction"] = {"parts": system}
    tools = renderer.tools(request.tools)
    hosted = read(native.get("tools"))
    tools += hosted if isinstance(hosted, list) else []
    if request.tool_choice not in ("auto", "none") and not tools:
        renderer.drop("tool_choice", "no tools")
    if request.session_id is not None and request.params.cache != "none":
        renderer.deviations.append(Deviation("dropped", "session_id", "the protocol has no cache key", "note"))
    if tools:
        body["tools"] = tools
    choice = _tool_config(request.tool_choice if tools else "auto", read(native.get("toolConfig")))
    if choice:
        body["toolConfig"] = choice
    config = renderer.config(request.params)
    if "generationConfig" in native:
        unsaid = read(native["generationConfig"])
        if text_form((read_fields(native["generationConfig"]) or {}).get("responseFormat")):  # it says the same
            config.pop("responseMimeType", None)
            config.pop("responseJsonSchema", None)
        for key, value in unsaid.items() if isinstance(unsaid, dict) else ():
            ours = config.get(key)
            config[key] = ours | value if isinstance(ours, dict) and isinstance(value, dict) else value
    if config:
        body["generationConfig"] = config
    own = ("tools", "toolConfig", "generationConfig")
    body |= {key: value for key, value in native.items() if key not in body and key not in own}
    verb = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
    accept = "text/event-stream" if request.stream else "application/json"
    headers = {"content-type": "application/json", "accept": accept}
    path = f"{model_path(request.model)}:{verb}"
    return Rendered(HttpRequest(path, _json.encode(body), headers), tuple(renderer.deviations))


def _tool_config(choice: ToolChoice, unsaid: Json) -> dict[str, Json]:
    """Return the tool choice over the rest of the client's own `toolConfig`."""
    calling: dict[str, Json] = {}
    match choice:
        case "none":
            calling = {"mode": "NONE"}
        case "any":
            calling = {"mode": "ANY"}
        case Named(name):
            calling = {"mode": "ANY", "allowedFunctionNames": [name]}
        case "auto":
            pass
    config = dict(unsaid) if isinstance(unsaid, dict) else {}
    further = config.pop("functionCallingConfig", None)
    if isinstance(further, dict):
        calling = further | calling
    return config | ({"functionCallingConfig": calling} if calling else {})


class _Renderer:
    """Renders one request and collects what could not be expressed."""

    __slots__ = ("_dialect", "_has_levels", "_model", "_names", "deviations")

    def __init__(self, model: str, dialect: Dialect) -> None:
        self.deviations: list[Deviation] = []
        self._model = model
        self._has_levels = _BUDGET_MODEL.search(model) is None
        self._dialect = dialect
        self._names: dict[str, str] = {}  # of calls, by id

    def _deviate(self, code: str, at: tuple[int, ...], why: str, *, field: str = "") -> None:
        """Note a deviation. `at`: the part, by the numbers of its message, of itself, of what is in it."""
        self.report(code, part_path(at) + field, why)

    def report(self, code: str, where: str, why: str) -> None:
        """Note something that is expressed differently."""
        self.deviations.append(Deviation(code, where, why))

    def drop(self, where: str, why: str) -> None:
        """Note something that the protocol cannot express."""
        self.report("dropped", where, why)

    # ------------------------------------------------------------ contents

    def system(self, messages: tuple[Message, ...]) -> list[Json]:
        """Return all system messages, those in the middle of the conversation too."""
        parts: list[Json] = []
        is_begun = False
        for place, message in enumerate(messages):
            if message.role != "system":
                is_begun = True
                continue
            if is_begun:
                self._deviate("moved", (place,), "a later system message joins the system instruction")
            for number, part in enumerate(message.parts):
                if isinstance(part, Text):
                    parts.append(_finished({"text": part.text}, part.signature, part.native))
                else:
                    self._deviate("dropped", (place, number), "a system instruction is text")
        return parts

    def contents(self, messages: tuple[Message, ...]) -> list[Json]:
        """Return the conversation; neighbouring messages of results are one content."""
        contents: list[Json] = []
        results: list[Json] | None = None  # of the content that is being filled
        for place, message in enumerate(messages):
            if message.role == "system":
                continue
            parts = self._parts(message, place)
            if message.role == "tool" and results is not None:
                results += parts
                continue
            results = parts if message.role == "tool" else None
            if parts:
                self._turn(contents, "model" if message.role == "assistant" else "user", parts, message)
            elif all(isinstance(part, Text) for part in message.parts):  # a part of another kind said why
                self._deviate("dropped", (place,), "a message with nothing in it")
        first = contents[0] if contents else {"role": "user", "parts": ()}
        if first["role"] == "model" and any(
            isinstance(part, dict) and "functionCall" in part for part in first["parts"]
        ):
            self.report(
                "changed", "messages[0]", "a call is not in the first turn: a blank one of the user stands there"
            )
            contents.insert(0, {"role": "user", "parts": [{"text": " "}]})
        return contents

    def _turn(self, contents: list[Json], role: str, parts: list[Json], message: Message) -> None:
        """Add a content. A call must follow a content of the user, so the model's preceding words join its content."""
        if role == "model" and contents and contents[-1]["role"] == "model":
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
        if message.native is not None:
            contents[-1] |= native_fields(message.native, NAME)

    def _parts(self, message: Message, place: int) -> list[Json]:
        parts: list[Json] = []
        is_first_call = True
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                parts.append(self._call(part, (place, number), is_first=is_first_call))
                is_first_call = False
            else:
                rendered = self._part(part, (place, number))
                if rendered is not None:
                    parts.append(rendered)
        return parts

    def _part(self, part: Part, at: tuple[int, ...]) -> Json | None:
        if isinstance(part, Text):
            if not part.text and part.signature is None and not native_fields(part.native, NAME):
                return None
            return _finished({"text": part.text}, part.signature, part.native)
        if isinstance(part, ToolResult):
            return self._result(part, at)
        if isinstance(part, Thinking):
            if part.redacted is not None:
                self._deviate("dropped", at, "sealed thinking of another protocol")
            if not part.text and part.signature is None and not native_fields(part.native, NAME):
                return None
            return _finished({"text": part.text, "thought": True}, part.signature, part.native)
        if isinstance(part, Media):
            return self._media(part, at)
        if isinstance(part, ToolCall):
            return self._call(part, at, is_first=False)
        return part.raw if part.protocol == NAME else None  # of another protocol: `crossing` names it

    def _media(self, media: Media, at: tuple[int, ...]) -> Json | None:
        media = with_data(media)
        native = native_fields(media.native, NAME)
        if media.data is not None:
            return {"inlineData": {"mimeType": told_type(media) or _GUESSES[media.kind], "data": media.data}} | native
        mime: dict[str, Json] = {"mimeType": media.mime} if media.mime is not None else {}
        if media.url is not None and self._dialect.supports_image_url:
            return {"fileData": mime | {"fileUri": media.url}} | native
        self._deviate("dropped", at, "media by address cannot be sent")
        return None

    def _call(self, call: ToolCall, at: tuple[int, ...], *, is_first: bool) -> Json:
        self._names[call.id] = call.name
        if call.kind == "custom":
            arguments: Json = {"input": call.arguments}
        elif not _json.is_object(call.arguments):
            self._deviate("changed", at, "they are not a JSON object", field=".arguments")
            arguments = {"arguments": call.arguments}
        else:
            arguments = _json.embed(call.arguments)
        signature = call.signature
        if signature is None and is_first and self._has_levels:
            signature = DUMMY_SIGNATURES[0]
        function: dict[str, Json] = {"id": call.id} if call.id else {}
        function |= {"name": call.name, "args": arguments}
        if call.native is None:
            return _finished({"functionCall": function}, signature, None)
        native = dict(native_fields(call.native, NAME))
        function |= read_fields(native.pop("functionCall", None)) or {}
        return _finished({"functionCall": function}, signature, None) | native

    def _result(self, result: ToolResult, at: tuple[int, ...]) -> Json:
        function: dict[str, Json] = {"id": result.call_id} if result.call_id else {}
        function["name"] = result.name or self._names.get(result.call_id) or result.call_id or "unknown"
        text = said_whole(result.parts)
        function["response"] = {"error" if result.is_error else "result": text} if text or result.is_error else {}
        parts: list[Json] = []
        for number, part in enumerate(result.parts):
            if not isinstance(part, Text):
                rendered = self._part(part, (*at, number))
                if rendered is not None:
                    parts.append(rendered)
        if parts:
            function["parts"] = parts
        return {"functionResponse": function | native_fields(result.native, NAME)}

    # ------------------------------------------------------------ tools and parameters

    def tools(self, tools: tuple[Tool, ...]) -> list[Json]:
        """Return the tools as one list of declared functions."""
        declared: list[Json] = []
        for tool in tools:
            function: dict[str, Json] = {"name": tool.name}
            if tool.description:
                function["description"] = tool.description
            if tool.kind == "custom":
                self.report("changed", f"tools.{tool.name}", "a tool that takes free text has one argument, input")
                function["parametersJsonSchema"] = _FREE_TEXT
            elif tool.schema is not None:
                function["parametersJsonSchema"] = tool.schema
            declared.append(function | native_fields(tool.native, NAME))
        return [{"functionDeclarations": declared}] if declared else []

    def config(self, params: Params) -> dict[str, Json]:
        """Return `generationConfig`."""
        for name, asked in (
            ("parallel_tools", params.parallel_tools is False),
            ("cache", params.cache == "long"),  # "short" is the life that the server gives anyway
            ("num_ctx", params.num_ctx is not None),
        ):
            if asked:
                self.report("dropped", f"params.{name}", "the protocol has no such field")
        if len(params.stop) > _MOST_STOPS:
            self.report("changed", "params.stop", f"only {_MOST_STOPS} stop sequences are allowed")
        config: dict[str, Json] = {}
        if params.temperature is not None:
            config["temperature"] = params.temperature
        if params.top_p is not None:
            config["topP"] = params.top_p
        if params.top_k is not None:
            config["topK"] = params.top_k
        if params.max_tokens is not None:
            config["maxOutputTokens"] = params.max_tokens
        if params.stop:
            config["stopSequences"] = list(params.stop[:_MOST_STOPS])
        if params.seed is not None:
            config["seed"] = params.seed
        if params.presence_penalty is not None:
            config["presencePenalty"] = params.presence_penalty
        if params.frequency_penalty is not None:
            config["frequencyPenalty"] = params.frequency_penalty
        if params.response_schema is not None:
            config["responseMimeType"] = "application/json"
            if params.response_schema.schema is not None:
                config["responseJsonSchema"] = params.response_schema.schema
            if params.response_schema.name != "response":
                self.drop("params.response_schema.name", "the protocol has no such field")
            for field in ("strict", "description"):
                if getattr(params.response_schema, field) is not None:
                    self.drop(f"params.response_schema.{field}", "the protocol has no such field")
        if params.reasoning is not None:
            config["thinkingConfig"] = self._thinking(params.reasoning)
        return config

    def _thinking(self, reasoning: Reasoning) -> Json:
        if reasoning.budget is not None:
            if reasoning.effort is not None:
                self.report("dropped", "params.reasoning.effort", "a budget stands beside it")
            return {"thinkingBudget": self._budget(reasoning.budget), "includeThoughts": reasoning.budget != 0}
        effort = reasoning.effort
        if effort is None:
            return {"includeThoughts": True}
        if not self._has_levels:
            if effort in ("xhigh", "max"):
                self.report("changed", "params.reasoning.effort", "the largest budget is that of high")
            config: dict[str, Json] = {"thinkingBudget": self._budget(_BUDGETS[effort])}
        else:
            level = _LEVELS[effort]
            if level == "minimal" and _NO_MINIMAL.search(self._model):
                level = "low"
            if level == "medium" and _NO_MEDIUM in self._model:
                level = "high"
            if level != effort:
                self.report("changed", "params.reasoning.effort", f"the nearest level is {level}")
            config = {"thinkingLevel": level}
        return config | ({"includeThoughts": True} if effort != "none" else {})

    def _budget(self, asked: int) -> int:
        """Return a budget that the model takes. A negative one leaves it to the model."""
        found = next((each for each in _RANGES if each[0] in self._model), None)
        if found is None or asked < 0 or (asked == 0 and found[3]):
            return asked
        budget = min(max(asked, found[1]), found[2])
        if budget != asked:
            self.report("changed", "params.reasoning.budget", f"{budget}: this model takes {found[1]} to {found[2]}")
        return budget


def _finished(part: dict[str, Json], signature: str | None, native: Native | None) -> dict[str, Json]:
    """Return a part with its signature and its own fields."""
    if signature is not None:
        part["thoughtSignature"] = signature
    return part if native is None else part | native_fields(native, NAME)


#: A MIME type is required beside data.
_GUESSES: Final = {
    "image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/octet-stream",
}  # fmt: skip

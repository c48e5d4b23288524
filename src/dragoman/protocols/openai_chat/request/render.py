"""Render a request to `/chat/completions`, in the dialect of the server.

What cannot be expressed is left out or expressed in the nearest way, with a deviation.
"""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.json_fields import Fields, native_fields, read_fields, read_items
from dragoman.codec.schemas.asked_in_prompt import answer_words, names_json
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, HttpRequest, ModelLimits, Rendered, gpt_models
from dragoman.protocols.openai_chat.request.expectation import expect_of
from dragoman.protocols.openai_chat.request.render_messages import Turns, add_to_prompt, mark_cache
from dragoman.protocols.openai_chat.wire import NAME
from dragoman.types import Effort, Named, Params, Reasoning, Request, ResponseSchema, Tool, ToolChoice

_MOST_STOPS: Final = 4
#: Native fields that are written beside what the request says of the same.
_SAID_ELSEWHERE: Final = frozenset({"stream_options", "prompt_cache_retention"})
#: The object in which a style says how much to think, and where its vendors have fields of their own.
_REASONING_OBJECTS: Final = {"openrouter": "reasoning", "thinking-type": "thinking"}
#: What opens a call in the template of a model that calls only when its opening is written for it, and what ends it.
_CALL_OPENS: Final = "<tool_call>\n"
_CALL_ENDS: Final = "</tool_call>"
#: Budgets in tokens up to which an effort stands for them.
_BUDGETS: Final[tuple[tuple[int, Effort], ...]] = ((0, "none"), (1_024, "minimal"), (4_096, "low"), (16_384, "medium"))


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """Render a request for a provider."""
    renderer = _Renderer(request, dialect)
    body = renderer.body()
    accept = "text/event-stream" if request.stream else "application/json"
    http = HttpRequest("/chat/completions", _json.encode(body), {"content-type": "application/json", "accept": accept})
    return Rendered(http, tuple(renderer.deviations), expect_of(request))


class _Renderer:
    """Renders one request and collects what could not be expressed."""

    __slots__ = ("_dialect", "_request", "deviations")

    def __init__(self, request: Request, dialect: Dialect) -> None:
        self._request = request
        self._dialect = dialect
        self.deviations: list[Deviation] = []

    def _deviate(self, code: str, where: str, why: str) -> None:
        self.deviations.append(Deviation(code, where, why))

    def body(self) -> dict[str, Json]:
        """Return the whole body."""
        request, dialect = self._request, self._dialect
        keeps_marks = dialect.supports_cache_control and request.params.cache != "none"
        reasoning = request.params.reasoning
        is_off = reasoning is not None and (reasoning.effort == "none" or reasoning.budget == 0)
        turns = Turns(dialect, self.deviations, keeps_marks=keeps_marks, is_thinking=not is_off)
        messages = turns.messages(request.messages)
        if keeps_marks and request.params.cache is not None:
            lasts = request.params.cache == "long" and dialect.supports_prompt_cache_retention
            life = {"ttl": "1h"} if lasts else {}
            mark_cache(messages, {"type": "ephemeral", **life})
        body: dict[str, Json] = {"model": request.model, "messages": messages, "stream": request.stream}
        if request.stream and dialect.usage_in_stream:
            body["stream_options"] = {"include_usage": True}
        self._tools(body)
        self._params(request.params, body)
        self._cache(body)
        native = native_fields(request.native, NAME)
        if native:
            others = read_items(native.get("tools"))
            if others:
                body["tools"] = [*body.get("tools", ()), *others]
            if "stream_options" in native and request.stream:
                body["stream_options"] = body.get("stream_options", {}) | (read_fields(native["stream_options"]) or {})
            elif "stream_options" in native:
                self._deviate("dropped", "stream_options", "nothing is streamed")
            native = self._further_reasoning(native, body)
            body |= {key: value for key, value in native.items() if key not in body and key not in _SAID_ELSEWHERE}
        if dialect.supports_store:
            body.setdefault("store", False)
        if dialect.strict_tools:
            self.deviations += gpt_models.fit(body, request.model)
        return body

    # ------------------------------------------------------------ tools

    def _tools(self, body: dict[str, Json]) -> None:
        request, dialect = self._request, self._dialect
        tools, choice = self._offer(request.tools, request.tool_choice)
        if not tools:
            if request.tool_choice not in ("auto", "none") and not request.tools:
                self._deviate("dropped", "tool_choice", "no tools")
            if request.params.parallel_tools is not None:
                self._deviate("dropped", "params.parallel_tools", "no tools")
            return
        body["tools"] = [self._tool(tool) for tool in tools]
        is_forced = choice == "any" or isinstance(choice, Named)
        if is_forced and dialect.force_call_by_prefill:
            body["messages"].append({"role": "assistant", "content": _CALL_OPENS})
            body["stop"] = [_CALL_ENDS]
        if isinstance(choice, Named):
            kind = next((tool.kind for tool in tools if tool.name == choice.name), "function")
            body["tool_choice"] = {"type": kind, kind: {"name": choice.name}}
        elif choice != "auto":
            body["tool_choice"] = "required" if choice == "any" else choice
        parallel = request.params.parallel_tools
        if parallel is not None and dialect.supports_parallel_tool_calls:
            body["parallel_tool_calls"] = parallel
        elif parallel is False:
            self._deviate("dropped", "params.parallel_tools", "the dialect has no parallel_tool_calls")

    def _offer(self, tools: tuple[Tool, ...], choice: ToolChoice) -> tuple[tuple[Tool, ...], ToolChoice]:
        """Return the tools and the choice that the dialect can express."""
        dialect = self._dialect
        is_prefilled = dialect.force_call_by_prefill
        if isinstance(choice, Named) and (is_prefilled or not dialect.supports_named_tool_choice):
            only = tuple(tool for tool in tools if tool.name == choice.name)
            if only:
                if len(tools) > 1:
                    self._deviate("changed", "tool_choice", "only the named tool is offered")
                tools = only
            choice = "any"
        if choice == "auto" or dialect.supports_tool_choice:
            return tools, choice
        if choice == "none":
            if tools:
                self._deviate("changed", "tool_choice", "no tool is offered")
            return (), "auto"
        self._deviate("dropped", "tool_choice", "the dialect has no tool_choice")
        return tools, "auto"

    def _tool(self, tool: Tool) -> Json:
        native = native_fields(tool.native, NAME)
        rest = dict(read_fields(native.get(tool.kind)) or {}) if native else {}
        if "strict" in rest and not self._dialect.strict_tools:
            where = f"tools[{self._request.tools.index(tool)}].strict"
            self._deviate("dropped", where, "the dialect has no strict tools")
            del rest["strict"]
        inner: dict[str, Json] = {"name": tool.name}
        if tool.description:
            inner["description"] = tool.description
        if tool.schema is not None:
            inner["parameters"] = tool.schema
        if not native:
            return {"type": tool.kind, tool.kind: inner}
        outer = {key: value for key, value in native.items() if key != tool.kind}
        return {"type": tool.kind, tool.kind: {**inner, **rest}, **outer}

    # ------------------------------------------------------------ parameters

    def _params(self, params: Params, body: dict[str, Json]) -> None:
        dialect = self._dialect
        temperature = params.temperature
        if temperature is not None and dialect.temperature_max is not None and temperature > dialect.temperature_max:
            self._deviate("changed", "params.temperature", f"at most {dialect.temperature_max}")
            temperature = dialect.temperature_max
        if params.max_tokens is not None:
            body[dialect.max_tokens_field] = params.max_tokens
        if temperature is not None:
            body["temperature"] = temperature
        if params.top_p is not None:
            body["top_p"] = params.top_p
        if params.top_k is not None and dialect.supports_top_k:
            body["top_k"] = params.top_k
        elif params.top_k is not None:
            self._deviate("dropped", "params.top_k", "the dialect has no top_k")
        if params.seed is not None:
            body["seed"] = params.seed
        if params.presence_penalty is not None:
            body["presence_penalty"] = params.presence_penalty
        if params.frequency_penalty is not None:
            body["frequency_penalty"] = params.frequency_penalty
        if params.num_ctx is not None:
            self._deviate("dropped", "params.num_ctx", "the server fixes its context")
        if params.stop:
            stops = [*body.pop("stop", ()), *params.stop]
            if len(stops) > _MOST_STOPS:
                self._deviate("changed", "params.stop", f"the first {_MOST_STOPS} of {len(stops)}")
            body["stop"] = stops[:_MOST_STOPS]
        if params.response_schema is not None:
            body["response_format"] = self._format(params.response_schema, body["messages"])
        if params.reasoning is not None:
            self._reasoning(params.reasoning, body)

    def _format(self, form: ResponseSchema, messages: list[dict[str, Json]]) -> Json:
        if form.schema is None:
            if form.written_for is None and not names_json(self._request.messages):
                self._deviate("changed", "params.response_schema", "words of the prompt, which must say JSON")
                add_to_prompt(messages, answer_words(None), self._dialect.system_role)
            return {"type": "json_object"}
        if not self._dialect.supports_response_schema:
            self._deviate("changed", "params.response_schema", "words of the prompt: the dialect has no schemas")
            add_to_prompt(messages, answer_words(form.schema), self._dialect.system_role)
            return {"type": "json_object"}
        inner: dict[str, Json] = {"name": form.name, "schema": form.schema}
        if form.description is not None:
            inner["description"] = form.description
        if form.strict is not None:
            inner["strict"] = form.strict
        return {"type": "json_schema", "json_schema": inner}

    def _reasoning(self, reasoning: Reasoning, body: dict[str, Json]) -> None:
        effort, budget = reasoning.effort, reasoning.budget
        is_off = effort == "none" or budget == 0
        where = "params.reasoning"
        if effort is not None and budget is not None:
            self._reasoning_twice()
        match self._dialect.reasoning_style:
            case "effort":
                if effort is not None or budget is not None:
                    body["reasoning_effort"] = self._effort(effort, budget)
                else:
                    self._deviate("dropped", where, "thinking has efforts only, and none was asked for")
            case "openrouter":
                if budget is not None and not is_off:
                    body["reasoning"] = {"max_tokens": budget}
                else:
                    body["reasoning"] = {"effort": self._effort(effort, budget)} if effort else {"enabled": not is_off}
            case "thinking-type":
                body["thinking"] = {"type": "disabled" if is_off else "enabled"}
                if not is_off and (effort is not None or budget is not None):
                    self._deviate("changed", where, "thinking is on or off")
            case "enable-thinking":
                body["enable_thinking"] = not is_off
                if budget is not None and not is_off:
                    body["thinking_budget"] = budget
                elif effort is not None and not is_off:
                    self._deviate("changed", where, "thinking is on or off")
            case "think":
                body["think"] = not is_off if effort is None or is_off else effort
                if budget is not None and not is_off:
                    self._deviate("changed", where, "thinking is on or off")
            case "none":
                self._deviate("dropped", where, "the server does not say how much to think")

    def _further_reasoning(self, native: Fields, body: dict[str, Json]) -> Fields:
        """Write the other reasoning fields if the server has the object, else name them. Return the rest."""
        own = _REASONING_OBJECTS.get(self._dialect.reasoning_style)
        for name in _REASONING_OBJECTS.values():
            further = read_fields(native.get(name))
            if further is None:  # a word that was not understood goes as it came
                continue
            native = {key: value for key, value in native.items() if key != name}
            if name == own:
                body[name] = {**further, **body.get(name, {})}
                continue
            for key in further:
                why = "the server has no such object"
                self.deviations.append(Deviation("dropped", f"{name}.{clip(key)}", why, "note"))
        return native

    def _reasoning_twice(self) -> None:
        """Name which of an effort and a budget is not sent; for servers that only switch, both."""
        match self._dialect.reasoning_style:
            case "effort":
                self._deviate("dropped", "params.reasoning.budget", "efforts only")
            case "openrouter" | "enable-thinking":
                self._deviate("dropped", "params.reasoning.effort", "a budget stands beside it")
            case _:
                pass

    def _effort(self, effort: Effort | None, budget: int | None) -> Effort:
        """Return the protocol's effort for an effort of ours, or for a budget in tokens."""
        if effort == "max" and not (self._dialect.strict_tools and gpt_models.version_of(self._request.model)):
            self._deviate("changed", "params.reasoning.effort", "xhigh")
            return "xhigh"
        if effort is not None:
            return effort
        found: Effort = next((name for most, name in _BUDGETS if budget is not None and budget <= most), "high")
        self._deviate("changed", "params.reasoning.budget", f"effort {found}")
        return found

    def _cache(self, body: dict[str, Json]) -> None:
        """Set the conversation's name as the key of the server's own cache, and the cache's lifetime."""
        dialect, cache = self._dialect, self._request.params.cache
        if cache == "none":
            return
        if self._request.session_id is not None and dialect.supports_prompt_cache_key:
            body["prompt_cache_key"] = self._request.session_id
        elif self._request.session_id is not None:
            self.deviations.append(Deviation("dropped", "session_id", "the dialect has no cache key", "note"))
        if cache == "long" and dialect.supports_prompt_cache_retention:
            body["prompt_cache_retention"] = "24h"
        elif cache == "long":
            self._deviate("changed", "params.cache", "the server's own life of its cache")
        life = native_fields(self._request.native, NAME).get("prompt_cache_retention")
        if life is not None and cache != "long":
            if dialect.supports_prompt_cache_retention:
                body["prompt_cache_retention"] = life
            else:
                self._deviate("dropped", "prompt_cache_retention", "the server's own life of its cache")

"""Render a request of the Messages API.

What the API cannot express is left out with a `dropped` deviation; what it allows only in another form is `changed`.
"""

from __future__ import annotations

from typing import Final, get_args

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.schemas.asked_in_prompt import answer_words
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, Dialect, HttpRequest, ModelLimits, Rendered
from dragoman.protocols.anthropic.request.answer_schema import answer_schema
from dragoman.protocols.anthropic.request.claude_models import (
    nearest_effort,
    refused_samplers,
    takes_beginning,
    takes_budget,
    takes_effort,
    takes_forced_call,
    takes_thinking,
    thinking_off,
    version_of,
)
from dragoman.protocols.anthropic.request.parse import read_reasoning
from dragoman.protocols.anthropic.request.render_messages import Block, Turns, kept, simplest
from dragoman.protocols.anthropic.wire import (
    API_VERSION,
    EMPTY_SCHEMA,
    NAME,
    REMOTE_SERVERS,
    decode_fields,
    own_fields,
    read,
    read_fields,
    read_items,
    thinking_of,
)
from dragoman.types import Effort, Named, Native, Reasoning, Request, Tool

_DEFAULT_MAX_TOKENS: Final = 8192
_MOST_DEFAULT_TOKENS: Final = 32_000
_LEAST_BUDGET: Final = 1024  # the API refuses smaller ones
_MOST_BREAKPOINTS: Final = 4
#: For hosts that know budgets only; tokens.
_BUDGETS: Final[dict[Effort, int]] = {
    "minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768,
}  # fmt: skip
#: Parameters that the protocol does not have, and what they are where they are not set.
_UNSAYABLE: Final = ("seed", "presence_penalty", "frequency_penalty", "num_ctx")
_UNSAID: Final = (None, None, None, None)
_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
_OPENING: Final = "<tool_call>\n"
_CLOSING: Final = "</tool_call>"


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """Render a request for a provider."""
    renderer = _Renderer(request, dialect, limits)
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if request.stream else "application/json",
        "anthropic-version": API_VERSION,
    }
    if "mcp_servers" in renderer.native:  # a client's own header stands over it
        headers["anthropic-beta"] = REMOTE_SERVERS
    http = HttpRequest("/v1/messages", _json.encode(renderer.body()), headers)
    return Rendered(http, tuple(renderer.deviations))


class _Renderer:
    """Renders one request. `native`: the request's fields that only this protocol knows."""

    __slots__ = ("deviations", "dialect", "limits", "native", "request")

    def __init__(self, request: Request, dialect: Dialect, limits: ModelLimits) -> None:
        self.request = request
        self.dialect = dialect
        self.limits = limits
        self.deviations: list[Deviation] = []
        self.native = own_fields(request.native)

    def body(self) -> Block:
        request = self.request
        turns = Turns(request, self.dialect, self.deviations)
        system, first = turns.system()
        messages = turns.messages(first)
        self._end(messages)
        if self.dialect.force_call_by_prefill and self._forces_call():
            messages.append({"role": "assistant", "content": [{"type": "text", "text": _OPENING}]})
        tools, tool_choice = self._tools(), None
        if tools:
            tool_choice = self._tool_choice(tools)
        elif request.tool_choice not in ("auto", "none"):
            self._say("dropped", "tool_choice", "no tools")
        thinking, effort = self._reasoning(tool_choice)
        if "thinking" in self.native:
            self._further_thinking(thinking)
        if thinking is not None and thinking.get("type") == "enabled" and _lacks_thinking(messages):
            # "a final assistant message must start with a thinking block" (…/extended-thinking, read 2026-11-26)
            self._say("dropped", "params.reasoning", "the call that was answered last came without its thinking")
            thinking = None
        config = self._output_config(effort, system)
        body: Block = {"model": request.model, "max_tokens": self._max_tokens(thinking)}
        self._mark_cache(system, tools, messages)
        if system:
            body["system"] = simplest(system)
        for message in messages:
            message["content"] = simplest(message["content"])
        body["messages"] = messages
        if tools:
            body["tools"] = tools
        if tool_choice is not None:
            body["tool_choice"] = tool_choice
        body["stream"] = request.stream
        self._sampling(body, is_thinking=thinking is not None and thinking.get("type") != "disabled")
        if thinking is not None:
            body["thinking"] = thinking
        if config:
            body["output_config"] = config
        self._drop_unsayable(body)
        for key, value in kept(request.native, request).items() if request.native is not None else ():
            if key not in ("tools", "thinking", "output_config"):
                body.setdefault(key, value)
        return body

    def _end(self, messages: list[Block]) -> None:
        """Remove white space at the end of an answer's beginning, and say it where the model takes no beginning."""
        last = messages[-1] if messages else {}
        block = last["content"][-1] if last.get("role") == "assistant" else {}
        is_begun = block.get("type") in ("text", "thinking", "redacted_thinking")  # other turns are paused, and go on
        if is_begun and not takes_beginning(version_of(self.request.model)):
            words = "this model takes no beginning of an answer: the last message must be the user's"
            self._say("unwelcome", f"messages[{len(self.request.messages) - 1}]", words)
        if block.get("type") == "text" and block["text"] != (text := block["text"].rstrip()):
            block["text"] = text
            self._say("changed", f"messages[{len(self.request.messages) - 1}]", "without the white space at its end")

    def _say(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ tools

    def _tools(self) -> list[Block]:
        if self.request.tool_choice == "none" and not self.dialect.supports_tool_choice:
            if self.request.tools:
                self._say("changed", "tools", "left out for tool_choice none")
            return []
        tools = [self._tool(tool, index) for index, tool in enumerate(self.request.tools)]
        if "tools" in self.native:
            server_tools = [read_fields(item) for item in read_items(self.native["tools"]) or ()]
            tools += [dict(kept(Native(NAME, fields), self.request)) for fields in server_tools if fields is not None]
        return tools

    def _tool(self, tool: Tool, index: int) -> Block:
        schema: Json = tool.schema
        if tool.kind == "custom":
            self._say("changed", f"tools[{index}]", "free text becomes the argument `input`")
            schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
        elif schema is None:
            schema = EMPTY_SCHEMA
        elif not _says_type(schema) and "type" not in (fields := tool.schema_object()):
            schema = {"type": "object", **fields}
            self._say("changed", f"tools[{index}].schema", "type object added")
        fields = {"name": tool.name}
        if tool.description:
            fields["description"] = tool.description
        fields["input_schema"] = schema
        return fields if tool.native is None else fields | kept(tool.native, self.request)

    def _forces_call(self) -> bool:
        return bool(self.request.tools) and (
            self.request.tool_choice == "any" or isinstance(self.request.tool_choice, Named)
        )

    def _tool_choice(self, tools: list[Block]) -> Block | None:
        asked, parallel = self.request.tool_choice, self.request.params.parallel_tools
        if asked == "auto" and parallel is None:
            return None
        choice: Block = {"type": "auto"}
        if asked == "none":
            if parallel is not None:
                self._say("dropped", "params.parallel_tools", "no tool may be called")
            return {"type": "none"}
        if asked != "auto" and not self.dialect.supports_tool_choice:
            self._say("dropped", "tool_choice", "not known to the provider")
        elif asked != "auto" and not takes_forced_call(self.request.model):
            self._say("dropped", "tool_choice", "this model cannot be made to call a tool")
        elif isinstance(asked, Named) and self.dialect.supports_named_tool_choice:
            choice = {"type": "tool", "name": asked.name}
        elif asked != "auto":
            choice = {"type": "any"}
            if isinstance(asked, Named):
                self._say("changed", "tool_choice", "any tool")
        if parallel is not None and self.dialect.supports_parallel_tool_calls:
            choice["disable_parallel_tool_use"] = not parallel
        elif parallel is not None:
            self._say("dropped", "params.parallel_tools", "not known to the provider")
        return None if choice == {"type": "auto"} else choice

    # ------------------------------------------------------------ params

    def _reasoning(self, tool_choice: Block | None) -> tuple[Block | None, Effort | None]:
        """Render `thinking` and the effort."""
        reasoning = self.request.params.reasoning
        if reasoning is None:
            return None, None
        if tool_choice is not None and tool_choice["type"] in ("any", "tool") and reasoning.effort != "none":
            # "Thinking isn't compatible with forced tool use" (…/build-with-claude/extended-thinking, read 2026-11-21)
            self._say("dropped", "params.reasoning", "thinking and a forced call exclude each other")
            return None, None
        if self.dialect.reasoning_style == "none":
            if reasoning.effort != "none":
                self._say("dropped", "params.reasoning", "not known to the provider")
            return None, None
        if "thinking" in self.native:
            kept = read(self.native["thinking"])
            is_sayable = kept is None or isinstance(kept, dict)
            is_said = is_sayable and read_reasoning(kept, reasoning.effort or "") == reasoning
            if is_said and takes_thinking(self.request.model, kept):
                return kept, _effort_of(reasoning)
        thinking = thinking_of(reasoning)
        if thinking == {"type": "disabled"} and (off := thinking_off(self.request.model)) != "disabled":
            self._say("changed", "params.reasoning.effort", f"{off or 'low'}: this model thinks always")
            return ({"type": off}, None) if off else (None, "low")
        version = version_of(self.request.model)
        is_budgeted = self.dialect.reasoning_style == "thinking-type" or not takes_effort(version)
        if is_budgeted and thinking == {"type": "adaptive"}:
            return {"type": "enabled", "budget_tokens": _BUDGETS.get(reasoning.effort or "medium", 8192)}, None
        if thinking is not None and thinking["type"] == "enabled" and not takes_budget(version):
            effort = reasoning.effort or _effort_for(thinking["budget_tokens"])
            self._say("changed", "params.reasoning.budget", f"effort {effort}: this model takes no budget")
            reasoning, thinking = Reasoning(effort), {"type": "adaptive"}
        if thinking is not None and 0 < thinking.get("budget_tokens", 0) < _LEAST_BUDGET:
            self._say("changed", "params.reasoning.budget", f"at least {_LEAST_BUDGET}")
            thinking["budget_tokens"] = _LEAST_BUDGET
        if reasoning.effort == "minimal":
            self._say("changed", "params.reasoning.effort", "low")
        return thinking, _effort_of(reasoning)

    def _further_thinking(self, thinking: Block | None) -> None:
        """Keep what else a client's own `thinking` says beside another one in its place, or name it."""
        own = read(self.native.get("thinking"))
        if not isinstance(own, dict) or own == thinking:
            return
        for key in [key for key in own if key not in ("type", "budget_tokens")]:
            if thinking is not None and thinking["type"] in ("adaptive", "enabled"):
                thinking.setdefault(key, own[key])
            else:
                self._say("dropped", f"thinking.{clip(key)}", "the thinking that it belongs to is not sent")

    def _effort(self, asked: Effort) -> Effort | None:
        """Return the effort as the model takes it."""
        taken = nearest_effort(self.request.model, asked)
        if taken != asked:
            code = "dropped" if taken is None else "changed"
            self._say(code, "params.reasoning.effort", f"{taken or 'none'}: this model takes no {asked}")
        return taken

    def _max_tokens(self, thinking: Block | None) -> int:
        """Return the limit, which the API requires, and which is always above the thinking budget."""
        asked, most = self.request.params.max_tokens, self.limits.max_output
        default = _DEFAULT_MAX_TOKENS if most is None else max(1, min(most // 3, _MOST_DEFAULT_TOKENS))
        tokens = default if asked is None else asked
        budget = thinking.get("budget_tokens") if thinking is not None else None
        if thinking is None or not isinstance(budget, int) or tokens > budget:
            return tokens
        tokens += budget
        if most is not None and tokens > most:
            tokens = most
            thinking["budget_tokens"] = min(budget, max(_LEAST_BUDGET, most // 2))
            self._say("changed", "params.reasoning.budget", "below the model's maximum output")
        if asked is not None:
            self._say("changed", "params.max_tokens", "above the thinking budget")
        return tokens

    def _sampling(self, body: Block, *, is_thinking: bool) -> None:
        params = self.request.params
        stop = [word for word in params.stop if word.strip()] if params.stop else []
        if len(stop) < len(params.stop):
            self._say("dropped", "params.stop", "white space")
        if self.dialect.force_call_by_prefill and self._forces_call() and params.parallel_tools is False:
            stop.append(_CLOSING)
        if stop:
            body["stop_sequences"] = stop
        temperature, top_p, top_k = params.temperature, params.top_p, params.top_k
        if temperature is not None and temperature > (most := self.dialect.temperature_max or 1.0):
            self._say("changed", "params.temperature", f"at most {most}")
            temperature = most
        version = version_of(self.request.model)
        refused = refused_samplers(version, temperature, top_p, top_k, is_thinking=is_thinking)
        for name, why in refused.items():
            self._say("dropped", f"params.{name}", why)
        for name, value in (("temperature", temperature), ("top_p", top_p), ("top_k", top_k)):
            if value is not None and name not in refused:
                body[name] = value

    def _output_config(self, effort: Effort | None, system: list[Block]) -> Block:
        """Render `output_config`. A schema that it cannot say becomes words at the end of the system prompt."""
        schema = self.request.params.response_schema
        config: Block = dict(read_fields(self.native.get("output_config")) or {}) if self.native else {}
        if effort is not None or config:
            asked = effort or read(config.get("effort"))
            if asked in _EFFORTS:
                config["effort"] = self._effort(asked)
            if config.get("effort", "") is None:
                del config["effort"]
        if schema is None:
            return config
        where = "params.response_schema"
        if schema.schema is None:
            system.append({"type": "text", "text": answer_words(None)})
            self._say("changed", where, "words of the prompt: no plain JSON mode")
            return config
        is_known = self.dialect.supports_response_schema
        fitted: Json
        if not is_known:
            fitted, lost = None, ["structured output"]
        elif schema.written_for == NAME:
            fitted, lost = schema.schema, []
        else:
            fitted, lost = answer_schema(schema.schema)
        if fitted is None:
            system.append({"type": "text", "text": answer_words(schema.schema)})
            self._say("changed", where, f"words of the prompt: not known to the provider: {', '.join(lost)}")
        else:
            if lost:
                self._say("changed", f"{where}.schema", f"words of the description: {', '.join(lost)}")
            config["format"] = {"type": "json_schema", "schema": fitted}
        if schema.name != "response":
            self._say("dropped", f"{where}.name")
        if schema.description is not None:
            self._say("dropped", f"{where}.description")
        if schema.strict is not None:
            self._say("dropped", f"{where}.strict", "always strict")
        return config

    def _drop_unsayable(self, body: Block) -> None:
        params = self.request.params
        unsayable = (params.seed, params.presence_penalty, params.frequency_penalty, params.num_ctx)
        if unsayable != _UNSAID:
            for name, value in zip(_UNSAYABLE, unsayable, strict=True):
                if value is not None:
                    self._say("dropped", f"params.{name}", "not in this protocol")
        session = self.request.session_id
        if session is not None and session.encode(errors="replace") not in bytes(self.native.get("metadata", b"")):
            self.deviations.append(Deviation("dropped", "session_id", "no cache key in this protocol", "note"))
        if params.parallel_tools is not None and "tools" not in body:
            self._say("dropped", "params.parallel_tools", "no tools")

    # ------------------------------------------------------------ cache

    def _mark_cache(self, system: list[Block], tools: list[Block], messages: list[Block]) -> None:
        """Set breakpoints after the tools, the system blocks and the last two user messages, if the client set none."""
        cache = self.request.params.cache
        if cache != "short" and cache != "long":
            return
        users = [message["content"] for message in messages if message["role"] == "user"]
        spans = [tools, system, *users[-2:]]
        lasts = cache == "long" and self.dialect.supports_prompt_cache_retention
        is_marked = any("cache_control" in block for span in (tools, system, *users) for block in span)
        if cache == "long" and (is_marked or not any(spans)):
            self._say("dropped", "params.cache", "the client's own marks" if is_marked else "nothing to mark")
        elif cache == "long" and not lasts:
            self._say("changed", "params.cache", "this host sets the life of its cache")
        if is_marked:
            return
        marker = {"type": "ephemeral", "ttl": "1h"} if lasts else {"type": "ephemeral"}
        for span in [span for span in spans if span][:_MOST_BREAKPOINTS]:
            span[-1]["cache_control"] = marker


def _lacks_thinking(messages: list[Block]) -> bool:
    """Return whether the model's last turn has calls, and does not begin with its thinking."""
    turn: list[Block] = next((each["content"] for each in reversed(messages) if each["role"] == "assistant"), [])
    is_open = any(block.get("type") == "tool_use" for block in turn)
    return is_open and turn[0].get("type") not in ("thinking", "redacted_thinking")


def _says_type(schema: Raw) -> bool:
    """Return whether a schema has a type, as far as its first level shows."""
    fields = decode_fields(schema)
    return not isinstance(fields, Malformed) and "type" in fields


def _effort_for(budget: int) -> Effort:
    """Return the effort that stands for a budget in tokens."""
    return "low" if budget <= _BUDGETS["low"] else "medium" if budget <= _BUDGETS["medium"] else "high"


def _effort_of(reasoning: Reasoning) -> Effort | None:
    return None if reasoning.effort == "none" else "low" if reasoning.effort == "minimal" else reasoning.effort

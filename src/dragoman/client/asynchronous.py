"""`AsyncClient`: ask a model, read its answer as events or whole, run its tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from dragoman.client.call import Cache, Call, Choice, ParamsLike, Stop, Targets, Thought, field_keywords, read_call
from dragoman.client.configured import configured
from dragoman.client.embed import Embeddings, embed, read_texts
from dragoman.client.exchange import OnDeviation, OnWire
from dragoman.client.model_list import listed_models
from dragoman.client.requester import Requester
from dragoman.client.runs.loop import Answer
from dragoman.client.runs.prepare import read_run
from dragoman.client.runs.run import AsyncRun
from dragoman.client.runs.state import AsyncApprove, OnToolError
from dragoman.client.runs.turns import open_stream, whole_reply
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.client.streaming.streams import AsyncStream
from dragoman.client.target_state import TargetStates
from dragoman.config import Config, ToolsMode
from dragoman.discovery.model_facts import ModelFacts
from dragoman.errors import UsageError
from dragoman.events import Reply
from dragoman.inputs.conversation import Messages, Tools
from dragoman.inputs.keywords import read_text
from dragoman.protocol import Strictness
from dragoman.types import ProtocolName, Request

T = TypeVar("T")


class AsyncClient:
    """Asks models. Use it in one event loop at a time, with `async with` or `close` at the end.

    Args:
        config: the path of a configuration, a mapping with its tables, or one that was loaded; None reads the usual
            file, unless `base_url`, `providers` or `routes` are given: what is given in code wins.
        base_url: the address of one server: then every target is one of its models, by its bare name.
        api_key: its key.
        protocol: what it speaks; None is "openai-chat".
        providers: tables as in the file, `{"lab": {"base_url": "http://…", "protocol": "openai-chat"}}`; a key may be
            written out here.
        routes: `{"fast": ["lab/qwen3", "ollama/granite4"]}`, or tables as in the file.
        strict: True: the first deviation of severity "fault" is a `Failure`; "notes": the first note too; None uses
            the configuration's setting.
        tools: the way to ask for tools, "auto" to find one that the server takes; None uses the configuration's
            setting.
        retries: how often a target is asked again (0 to 2); None uses the configuration's setting.
        on_deviation: is told the target's name and the deviation, for each one, before its event is given out.
        on_wire: is called with every request, and with the bytes of its answer and the events that they gave.

    Raises:
        UsageError: an argument is of the wrong kind.
        ConfigError: something in the configuration is wrong.
    """

    def __init__(
        self,
        config: Config | Mapping[str, Any] | Path | str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        protocol: ProtocolName | None = None,
        providers: Mapping[str, Mapping[str, Any]] | None = None,
        routes: Mapping[str, Sequence[str] | Mapping[str, Any]] | None = None,
        strict: Strictness | None = None,
        tools: ToolsMode | None = None,
        retries: int | None = None,
        on_deviation: OnDeviation | None = None,
        on_wire: OnWire | None = None,
    ) -> None:
        found = configured(config, base_url, api_key, protocol, providers, routes, strict, tools, retries, on_deviation)
        self._is_closed = False
        self._requester = Requester(
            found, strict=strict, tools=tools, retries=retries, on_deviation=on_deviation, on_wire=on_wire
        )

    @property
    def requester(self) -> Requester:
        """What sends the requests.

        Raises:
            UsageError: the client is closed.
        """
        if self._is_closed:
            raise UsageError("this AsyncClient is closed")
        return self._requester

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self._requester.config

    @property
    def deviations(self) -> Counter[tuple[str, str, str]]:
        """How often each deviation came, by (provider, model, code)."""
        return self._requester.deviations

    @property
    def target_states(self) -> TargetStates:
        """The states of the targets."""
        return self._requester.target_states

    @property
    def connections(self) -> int:
        """The number of open connections to providers, idle ones included; those over a proxy are not counted."""
        return self._requester.connections

    async def __aenter__(self) -> AsyncClient:
        """Return the client itself."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close every connection, and the servers that this client started."""
        self._is_closed = True
        await self._requester.close()

    def ask(self, target: str, request: Request, *, is_whole: bool = False) -> ResponseStream:
        """Return one turn of a finished `Request`. `is_whole`: the caller reads nothing before its end.

        Raises:
            UsageError, ConfigError: as `stream`.
        """
        return self.requester.ask(target, request, is_whole=is_whole)

    # fmt: off
    def stream(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
    ) -> AsyncStream:
        """Start one turn and yield its events as they come.

        Nothing is sent before the stream is entered with `async with`, or read.

        Args:
            target: `provider/model`, the name of a route, or a list of them in the order in which they are tried.
            messages: a prompt, `Message`s, dicts of any of the five protocols, or a list of these.
            system: instructions for the model, before the conversation.
            tools: functions, pydantic models, `Tool`s, or dicts of any of the five protocols.
            tool_choice: "auto", "none", "required", or the name of a tool.
            output_type: the type of the answer: a dataclass, TypedDict, Struct, pydantic model, a list or union.
                `stream.reply.output` holds it at the end.
            output_retries: not used by a stream, which is one turn.
            max_tokens, temperature, top_p, stop, seed: parameters; None is the provider's default.
            reasoning: "low", "medium", "high" and others, a number of tokens, or True or False.
            cache: how long the provider caches the prompt: "none", "short" or "long".
            timeout: seconds for the whole answer, its retries and other targets included.
            session_id: names the conversation, for the provider's cache.
            params: further settings, `Params` or a dict with its fields. A keyword of its own wins.

        Raises:
            UsageError: an argument is of the wrong kind: the message names it, what was seen and what is taken.
            ConfigError: the target's key or address cannot be read.
        """
        call = read_call(
            target, messages, system=system, tools=tools, tool_choice=tool_choice, output_type=output_type,
            output_retries=output_retries, timeout=timeout, session_id=session_id, params=params,
            keywords=field_keywords(max_tokens, temperature, top_p, stop, seed, reasoning, cache),
        )
        return open_stream(self.requester, call)

    @overload
    async def reply(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: None = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
    ) -> Reply[None]: ...

    @overload
    async def reply(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: type[T], output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
    ) -> Reply[T]: ...

    @overload
    async def reply(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
    ) -> Reply[Any]: ...

    async def reply(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
    ) -> Reply[Any]:
        """Run one turn and return its whole answer.

        Without `output_type` the answer is `str(reply)`; `reply.tool_calls` holds the calls, which were not run. With
        it `reply.output` is the answer as that type: it is requested by structured output if the server has it,
        otherwise in words, and checked.

        Args:
            target: `provider/model`, the name of a route, or a list of them in the order in which they are tried.
            messages: a prompt, `Message`s, dicts of any of the five protocols, or a list of these.
            system: instructions for the model, before the conversation.
            tools: functions, pydantic models, `Tool`s, or dicts of any of the five protocols.
            tool_choice: "auto", "none", "required", or the name of a tool.
            output_type: the type of the answer: a dataclass, TypedDict, Struct, pydantic model, a list or union.
            output_retries: how often the model is told what did not fit, and asked again; usage and cost are sums.
            max_tokens, temperature, top_p, stop, seed, reasoning, cache, session_id, params: as in `stream`.
            timeout: seconds for each answer of the model, its retries and other targets included.

        Raises:
            CallFailed: the response failed, or its only tool calls did.
            OutputInvalid: the answer is not of the `output_type`; a `CallFailed` whose `reply` holds it.
            UsageError, ConfigError: as `stream`.
        """
        call = read_call(
            target, messages, system=system, tools=tools, tool_choice=tool_choice, output_type=output_type,
            output_retries=output_retries, timeout=timeout, session_id=session_id, params=params,
            keywords=field_keywords(max_tokens, temperature, top_p, stop, seed, reasoning, cache),
        )
        return await whole_reply(self.requester, call)

    @overload
    async def run(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: None = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
        max_steps: int = 10, approve: AsyncApprove | None = None, on_tool_error: OnToolError = "tell",
        mcp: Mapping[str, Any] | None = None,
    ) -> Answer[None]: ...

    @overload
    async def run(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: type[T], output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
        max_steps: int = 10, approve: AsyncApprove | None = None, on_tool_error: OnToolError = "tell",
        mcp: Mapping[str, Any] | None = None,
    ) -> Answer[T]: ...

    @overload
    async def run(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
        max_steps: int = 10, approve: AsyncApprove | None = None, on_tool_error: OnToolError = "tell",
        mcp: Mapping[str, Any] | None = None,
    ) -> Answer[Any]: ...

    async def run(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
        max_steps: int = 10, approve: AsyncApprove | None = None, on_tool_error: OnToolError = "tell",
        mcp: Mapping[str, Any] | None = None,
    ) -> Answer[Any]:
        """Ask, run the functions that the model calls, answer it, until it answers without a call.

        What the model does wrong (unknown tools, arguments that do not fit) is told to it, and so is what a function
        raises. Calls of a failed response are not run. Calls of one turn
        run side by side; functions that are coroutines are awaited.

        Args:
            target: `provider/model`, the name of a route, or a list of them in the order in which they are tried.
            messages: a prompt, `Message`s, dicts of any of the five protocols, or a list of these.
            system: instructions for the model, before the conversation.
            tools: functions, which it calls.
            tool_choice: "auto", "none", "required", or the name of a tool.
                A tool that must be called is called in the first turn; then the model is free.
            output_type, output_retries: as in `reply`; `answer.output` holds it.
            max_tokens, temperature, top_p, stop, seed, reasoning, cache, session_id, params: as in `stream`.
            timeout: seconds for each turn of the model.
            max_steps: turns of the model.
            approve: is asked before each call: True runs it, False refuses, a text refuses and is told to the model.
            on_tool_error: "tell" tells the model what a function raised, "raise" raises it.
            mcp: MCP servers whose tools are offered too, as the configuration has them: `{"files": {"command": […]}}`.

        Raises:
            CallFailed: a response failed.
            OutputInvalid: the answer is not of the `output_type`.
            StepLimit: the model still calls tools after `max_steps` turns.
            McpFailed, MissingExtra: a server of `mcp` cannot be used, or the extra for it is not installed.
            UsageError, ConfigError: as `stream`.
        """
        call = read_call(
            target, messages, system=system, tools=tools, tool_choice=tool_choice, output_type=output_type,
            output_retries=output_retries, timeout=timeout, session_id=session_id, params=params,
            keywords=field_keywords(max_tokens, temperature, top_p, stop, seed, reasoning, cache),
        )
        run = self._begin_run(call, max_steps, approve, on_tool_error, mcp, is_whole=True)
        async for _ in run:
            pass
        return run.answer

    def run_stream(
        self, target: Targets, messages: Messages, *,
        system: str | None = None, tools: Tools = (), tool_choice: Choice = "auto",
        output_type: Any = None, output_retries: int = 1,
        max_tokens: int | None = None, temperature: float | None = None, top_p: float | None = None,
        stop: Stop | None = None, seed: int | None = None, reasoning: Thought | None = None,
        cache: Cache | None = None, timeout: float | None = None, session_id: str | None = None,
        params: ParamsLike | None = None,
        max_steps: int = 10, approve: AsyncApprove | None = None, on_tool_error: OnToolError = "tell",
        mcp: Mapping[str, Any] | None = None,
    ) -> AsyncRun:
        """As `run`, but yield events while it runs: those of each turn, `ToolStarted` and `ToolFinished`.

        Iterate it, then look at `run.answer`.

        Args:
            target: `provider/model`, the name of a route, or a list of them in the order in which they are tried.
            messages: a prompt, `Message`s, dicts of any of the five protocols, or a list of these.
            system: instructions for the model, before the conversation.
            tools: functions, which it calls.
            tool_choice: as in `run`: "auto", "none", "required", or the name of a tool.
            output_type, output_retries: as in `reply`; `run.answer.output` holds it.
            max_tokens, temperature, top_p, stop, seed, reasoning, cache, session_id, params: as in `stream`.
            timeout: seconds for each turn of the model.
            max_steps: turns of the model.
            approve: is asked before each call: True runs it, False refuses, a text refuses and is told to the model.
            on_tool_error: "tell" tells the model what a function raised, "raise" raises it.
            mcp: MCP servers whose tools are offered too, as the configuration has them: `{"files": {"command": […]}}`.

        Raises:
            UsageError, ConfigError: as `stream`. The other exceptions of `run` are raised while it is iterated.
        """
        call = read_call(
            target, messages, system=system, tools=tools, tool_choice=tool_choice, output_type=output_type,
            output_retries=output_retries, timeout=timeout, session_id=session_id, params=params,
            keywords=field_keywords(max_tokens, temperature, top_p, stop, seed, reasoning, cache),
        )
        return self._begin_run(call, max_steps, approve, on_tool_error, mcp, is_whole=False)

    def _begin_run(
        self, call: Call, max_steps: object, approve: AsyncApprove | None, on_tool_error: object, mcp: object, *,
        is_whole: bool,
    ) -> AsyncRun:
        prepared = read_run(call, max_steps=max_steps, approve=approve, on_tool_error=on_tool_error, mcp=mcp)
        return AsyncRun(
            self.requester, prepared.open, approve=approve, is_whole=is_whole, close=prepared.close
        )
    # fmt: on

    async def embed(
        self,
        target: Targets,
        texts: str | Sequence[str],
        *,
        dimensions: int | None = None,
        timeout: float | None = None,
    ) -> Embeddings:
        """Return the vectors of texts.

        Args:
            target: as in `stream`; its provider must have embeddings.
            texts: a text, or a list of them.
            dimensions: of the vectors; None is the model's own.
            timeout: seconds for an answer.

        Raises:
            CallFailed: the last target failed.
            UsageError, ConfigError: as `stream`.
        """
        return await embed(self.requester, read_texts(target, texts, dimensions, timeout))

    async def models(self, provider: str | None = None) -> tuple[ModelFacts, ...]:
        """Return the available models, with what is claimed and what is proven of each. Servers are asked now.

        Args:
            provider: only this one's; it is asked even if the catalogue lists its models.

        Raises:
            UsageError: no such provider.
            CallFailed: that provider gave no list, and the catalogue has none of it. If several are asked, a configured
                one that gives none is a warning of the logger `dragoman`.
        """
        name = read_text("provider", provider)
        return await listed_models(self.requester, name)

"""One call of a client's method: its arguments, and the turns until the answer fits."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman.client.prepare import Adapt
from dragoman.client.streaming.streams import check_reply
from dragoman.errors import CallFailed, OutputInvalid
from dragoman.events import Failure, Reply, ToolCallFailed
from dragoman.inputs.conversation import Messages, Tools, read_messages, read_tools
from dragoman.inputs.functions import FunctionTool
from dragoman.inputs.keywords import read_count, read_seconds, read_targets, read_text, read_tool_choice, with_system
from dragoman.inputs.output_types import OutputType
from dragoman.inputs.params import read_params
from dragoman.routing.target import Target
from dragoman.types import (
    NO_USAGE,
    TOKEN_KINDS,
    Attempt,
    BilledApart,
    Cost,
    Effort,
    Message,
    Named,
    Params,
    Reasoning,
    Request,
    Tool,
    ToolChoice,
    Usage,
)

Targets: TypeAlias = str | Sequence[str]
Choice: TypeAlias = str | Named
Stop: TypeAlias = str | Sequence[str]
Thought: TypeAlias = Effort | int | bool | Reasoning
Cache: TypeAlias = Literal["none", "short", "long"]
ParamsLike: TypeAlias = Params | Mapping[str, Any]

#: How servers name structured output when they refuse it.
_SCHEMA_WORDS: Final = re.compile(
    r"response_?format|json_?schema|structured.?output|output_?(?:format|config)|responseJsonSchema|responseMimeType"
    r"|text\.format|\bformat\b",
    re.IGNORECASE,
)


@final
class Call(msgspec.Struct, frozen=True, kw_only=True):
    """The checked arguments of a call."""

    targets: str | tuple[str, ...]
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    functions: Mapping[str, FunctionTool]
    tool_choice: ToolChoice
    params: Params
    session_id: str | None
    timeout: float | None
    output: OutputType | None
    output_retries: int

    def request(self, messages: tuple[Message, ...], *, tool_choice: ToolChoice | None = None) -> Request:
        """Return the request for a turn."""
        choice = self.tool_choice if tool_choice is None else tool_choice
        return Request("", messages, self.tools, choice, self.params, True, self.session_id)

    def adapt(self, *, in_words: bool) -> Adapt | None:
        """Return the function that changes the request for targets without structured output. `in_words`: for all."""
        output = self.output
        if output is None:
            return None

        def adapted(request: Request, target: Target) -> Request:
            if target.dialect.supports_response_schema and not in_words:
                return request
            params = msgspec.structs.replace(request.params, response_schema=None)
            return msgspec.structs.replace(
                request, messages=with_system(output.words(), request.messages), params=params
            )

        return adapted


def read_call(
    target: object,
    messages: object,
    *,
    system: object,
    tools: object,
    tool_choice: object,
    output_type: object,
    output_retries: object,
    timeout: object,
    session_id: object,
    params: object,
    keywords: Mapping[str, object],
) -> Call:
    """Read the arguments of a call. `keywords`: those that are fields of `Params`.

    Raises:
        UsageError: one of them is of the wrong kind: names it, what was seen, and what is taken.
    """
    offered, functions = read_tools(tools)  # type: ignore[arg-type]
    output = None if output_type is None else OutputType(output_type)
    read = read_params(params, keywords)
    if output is not None:
        read = msgspec.structs.replace(read, response_schema=output.response_schema())
    return Call(
        targets=read_targets(target),
        messages=with_system(system, read_messages(messages)),  # type: ignore[arg-type]
        tools=offered,
        functions=functions,
        tool_choice=read_tool_choice(tool_choice, offered),
        params=read,
        session_id=read_text("session_id", session_id),
        timeout=read_seconds("timeout", timeout),
        output=output,
        output_retries=read_count("output_retries", output_retries, least=0),
    )


@final
class OutputTurns:
    """Turns until the answer is of the `output_type`. Without one the first answer is the last.

    Attributes:
        messages: the conversation for the next turn.
        is_in_words: the schema stands in the prompt, because a server refused the field for it.
    """

    __slots__ = ("_attempts", "_call", "_left", "_replies", "is_in_words", "messages")

    def __init__(self, call: Call) -> None:
        self.messages: tuple[Message, ...] = call.messages
        self.is_in_words: bool = False
        self._call = call
        self._left = call.output_retries
        self._replies: list[Reply] = []
        self._attempts: tuple[Attempt, ...] = ()

    def request(self) -> Request:
        """Return the next turn's request."""
        return self._call.request(self.messages)

    def adapt(self) -> Adapt | None:
        """Return the function that changes it for a target."""
        return self._call.adapt(in_words=self.is_in_words)

    def take(self, reply: Reply, attempts: tuple[Attempt, ...]) -> Reply | None:
        """Take a turn's answer. Return None to ask again, because it did not fit, or the schema was refused.

        Raises:
            CallFailed: the answer failed.
            OutputInvalid: it does not fit, and no try is left.
        """
        self._attempts += attempts
        self._replies.append(reply)
        usage, cost = sum_of(self._replies)
        summed = msgspec.structs.replace(reply, usage=usage, cost=cost)
        try:
            return check_reply(summed, self._attempts, self._call.output)
        except OutputInvalid as problem:
            if not self._left:
                raise
            self._left -= 1
            self.messages = (*self.messages, *again(reply, problem, self._call.output))
        except CallFailed as problem:
            if self._call.output is None or self.is_in_words or not refuses_schema(problem.failure):
                raise
            self.is_in_words = True
            self._replies.pop()
        return None


def again(reply: Reply, problem: OutputInvalid, output: OutputType | None) -> tuple[Message, ...]:
    """Return the message for a model whose answer did not fit."""
    said = (reply.message,) if reply.parts else ()
    words = output.words() if output is not None else ""
    return (*said, Message.user(f"Your answer cannot be used: {problem.failure.message}.\n{words}"))


def refuses_schema(failure: Failure | ToolCallFailed) -> bool:
    """Return whether a server reports that it has no structured output."""
    return (
        isinstance(failure, Failure)
        and failure.kind == "bad_request"
        and _SCHEMA_WORDS.search(failure.message[:4_096]) is not None
    )


def sum_of(replies: Sequence[Reply]) -> tuple[Usage, Cost | None]:
    """Return tokens and cost of several answers; a figure that one of them did not report is unknown."""
    if len(replies) == 1:
        return replies[0].usage, replies[0].cost
    sums: dict[str, int | None] = {}
    for field in TOKEN_KINDS:
        figures = [getattr(reply.usage, field) for reply in replies]
        sums[field] = None if None in figures else sum(figures)
    aparts = [reply.usage.apart for reply in replies if reply.usage.apart is not None]
    apart = _sum_apart(aparts) if aparts else None
    costs = [reply.cost for reply in replies if reply.cost is not None]
    if len(costs) < len(replies) or not costs:
        return Usage(**sums, apart=apart) if replies else NO_USAGE, None
    return Usage(**sums, apart=apart), Cost(sum((cost.usd for cost in costs), Decimal(0)), costs[0].source)


def _sum_apart(aparts: Sequence[BilledApart]) -> BilledApart:
    """Return the sum of what is billed apart. Several service tiers have no prices together."""
    tier = "+".join(sorted({apart.tier for apart in aparts if apart.tier}))
    sums: dict[str, int | None] = {}
    for name in BilledApart.__struct_fields__[1:]:
        counts = [getattr(apart, name) for apart in aparts]
        sums[name] = None if None in counts else sum(counts)
    return msgspec.structs.replace(BilledApart(tier), **sums)


def field_keywords(
    max_tokens: object, temperature: object, top_p: object, stop: object, seed: object, reasoning: object, cache: object
) -> Mapping[str, object]:
    """Return the keywords that are fields of `Params`, by name."""
    return {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "stop": stop,
        "seed": seed,
        "reasoning": reasoning,
        "cache": cache,
    }


__all__ = [
    "Cache", "Call", "Choice", "Messages", "OutputTurns", "ParamsLike", "Stop", "Targets", "Thought", "Tools",
    "field_keywords", "read_call", "sum_of",
]  # fmt: skip

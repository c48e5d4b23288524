"""Probes as data, one TOML file each in `probes/`, and how a seed turns one into a question.

A probe is a conversation of one or more turns with the right answers. Names, numbers, places and the order of the tools
come from a random generator, so that no model can know them by heart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, TypeVar, final

import msgspec

from dragoman import _json
from dragoman.events import FailureKind
from dragoman.types import Effort, Named, Params, Reasoning, ResponseSchema, StopReason, Tool, ToolChoice
from dragoman.validate.probe_values import vary

#: Counts up when a probe asks or judges differently, so that old proofs can be told.
SUITE_VERSION: Final = 1

_FOLDER: Final = Path(__file__).with_name("probes")
T = TypeVar("T")


@final
class ExpectedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that must be made with exactly these arguments."""

    name: str
    arguments: dict[str, Any] = {}


@final
class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A right answer. Everything that is set must hold.

    Attributes:
        text: there is some.
        text_has, text_lacks: these words stand in it by themselves, or do not.
        answer: the one number that it gives.
        calls: exactly these calls, in any order.
        called: one call of each of these tools and no other; their arguments are not judged.
        no_calls: there is none.
        thinking: there is some.
        stop: the stop reason.
        deltas: the text comes in at least so many pieces.
        usage: tokens are reported and plausible.
        most_output: at most so many output tokens are reported.
        cached: tokens read from a cache are reported.
        json: the text is this JSON object.
        failure: the request is refused with a failure of one of these kinds.
        prompt_read: at least this share of our estimate is reported as prompt tokens.
    """

    text: bool = False
    text_has: tuple[str | int, ...] = ()
    text_lacks: tuple[str | int, ...] = ()
    answer: int | str | None = None
    calls: tuple[ExpectedCall, ...] = ()
    called: tuple[str, ...] = ()
    no_calls: bool = False
    thinking: bool = False
    stop: StopReason | None = None
    deltas: int = 0
    usage: bool = False
    most_output: int | None = None
    cached: bool = False
    json: dict[str, Any] | None = None
    failure: tuple[FailureKind, ...] = ()
    prompt_read: float | None = None


@final
class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's words or the tools' results, and what must follow. `abort_after`: leave after so many pieces."""

    user: str = ""
    system: str = ""
    results: dict[str, str] = {}
    errors: dict[str, str] = {}
    abort_after: int | None = None
    expect: Expect = Expect()


@final
class ProbeTool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool that is offered."""

    name: str
    description: str
    parameters: dict[str, Any]


@final
class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The requested tool choice."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str = ""


@final
class ProbeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters. `max_tokens` is small, so that a rambling model does not cost much. `stream` False: whole."""

    stream: bool = True
    max_tokens: int = 300
    parallel_tools: bool | None = None
    reasoning: Effort | None = None
    response_schema: dict[str, Any] | None = None
    stop: tuple[str | int, ...] = ()
    cache: Literal["none", "short", "long"] | None = None


@final
class TargetChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What replaces the target's own model or key."""

    model: str | None = None
    key: str | None = None


@final
class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of several questions; it replaces `{question}` in the turns."""

    vary: dict[str, Any]
    question: str


@final
class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One capability to test.

    Attributes:
        name: the file's name.
        rank: its place in the full suite.
        title: what a model that passes does, in a few words.
        quick: part of the quick suite: "always", or "after-failure" of its first probe.
        needs: probes without which this one says nothing; it is skipped if one of them did not pass.
        unless_failed: probes whose failure already says all that this one could say.
        needs_context: the size of the context window must be known.
        uses: the request features that it tests; it is unsupported if the protocol or the server lacks them.
        at_zero: asks at temperature 0; otherwise always at the model's own.
        may: what a server may do without failing, and how that is described; the verdict is `not-used`.
    """

    name: str
    rank: int
    title: str
    quick: Literal["always", "after-failure"] | None = None
    needs: tuple[str, ...] = ()
    unless_failed: tuple[str, ...] = ()
    needs_context: bool = False
    uses: tuple[str, ...] = ()
    at_zero: bool = True
    may: dict[str, str] = {}
    vary: dict[str, Any] = {}
    cases: tuple[Case, ...] = ()
    tools: tuple[ProbeTool, ...] = ()
    choice: Choice = Choice()
    params: ProbeParams = ProbeParams()
    target: TargetChange = TargetChange()
    turns: tuple[Turn, ...]


@final
class Plan(msgspec.Struct, frozen=True):
    """A probe with all variable parts settled: what to send, and what must come."""

    probe: Probe
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...]
    choice: ToolChoice
    params: Params
    target: TargetChange


@cache
def load_probes() -> tuple[Probe, ...]:
    """Return every probe in the order of the full suite."""
    import tomllib

    probes = []
    for file in sorted(_FOLDER.glob("*.toml")):
        try:
            table = tomllib.loads(file.read_text(encoding="utf-8"))
            probes.append(msgspec.convert({"name": file.stem, **table}, Probe))
        except (tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
            raise AssertionError(f"probes/{file.name}: {problem}") from problem
    return tuple(sorted(probes, key=lambda probe: probe.rank))


def label_of(probe: str) -> str:
    """Return a probe's name for people. Proofs, JSON and JUnit keep the name of its file."""
    return re.sub(r"(?<=[a-z])[A-Z]", lambda found: f"-{found[0].lower()}", probe)


def with_labels(reason: str) -> str:
    """Return one of our own reasons with the probes' names for people."""
    return " ".join(label_of(word) if word.rstrip(",") in _names() else word for word in reason.split(" "))


@cache
def _names() -> frozenset[str]:
    return frozenset(probe.name for probe in load_probes())


def plan_probe(probe: Probe, *, seed: str, context: int, claimed: int) -> Plan:
    """Settle the variable parts of a probe.

    Args:
        probe: which.
        seed: the same seed gives the same questions.
        context: the window in tokens by which long prompts are measured.
        claimed: the window that the model claims, which a too long prompt must exceed.
    """
    random = Random(f"{seed}/{probe.name}")
    case = random.choice(probe.cases) if probe.cases else None
    kinds = {**probe.vary, **(case.vary if case is not None else {})}
    values = vary(kinds, random=random, context=context, claimed=claimed)
    if case is not None:
        values["question"] = _fill(case.question, values)
    tools = [Tool(tool.name, tool.description, _json.raw(tool.parameters)) for tool in _filled(probe.tools, values)]
    random.shuffle(tools)
    params = _filled(probe.params, values)
    choice = _filled(probe.choice, values)
    return Plan(
        probe,
        _filled(probe.turns, values),
        tuple(tools),
        Named(choice.name) if choice.mode == "named" else _MODES[choice.mode],
        Params(
            max_tokens=params.max_tokens,
            parallel_tools=params.parallel_tools,
            reasoning=Reasoning(params.reasoning) if params.reasoning is not None else None,
            response_schema=_response_schema(params.response_schema),
            stop=tuple(map(str, params.stop)),
            cache=params.cache,
        ),
        _filled(probe.target, values),
    )


_MODES: Final[dict[str, ToolChoice]] = {"auto": "auto", "none": "none", "required": "any"}


def _response_schema(schema: dict[str, Any] | None) -> ResponseSchema | None:
    return ResponseSchema(_json.raw(schema), "answer", True) if schema is not None else None


def _filled(value: T, values: Mapping[str, Any]) -> T:
    """Return a Struct, or a tuple of them, with every `{name}` replaced. A text of one name takes its value's type."""
    if isinstance(value, tuple):
        return tuple(_filled(item, values) for item in value)  # type: ignore[return-value]
    return msgspec.convert(_fill(msgspec.to_builtins(value), values), type(value))


def _fill(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        if value[:1] == "{" and value[1:-1] in values:
            return values[value[1:-1]]
        for name, inner in values.items():
            value = value.replace(f"{{{name}}}", str(inner))
        return value
    if isinstance(value, Mapping):
        return {key: _fill(inner, values) for key, inner in value.items()}
    return [_fill(inner, values) for inner in value] if isinstance(value, Sequence) else value

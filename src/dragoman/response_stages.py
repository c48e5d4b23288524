"""The stages of a response, between a decoder and its reader. `stages_for` is the one place with their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, final

import msgspec

from dragoman.bounds import USUAL_BOUNDS
from dragoman.events import Event, TextStart, ToolCallEnd
from dragoman.protocol import NOTHING_EXPECTED, PLAIN, Dialect, Expectation, NewId, Stage, Strictness, ToolMode
from dragoman.stages.argument_repair.stage import ArgumentRepair
from dragoman.stages.cumulative import Cumulative
from dragoman.stages.expected import Expected
from dragoman.stages.known_schemas import nothing_fits, schema_of
from dragoman.stages.parallel_wrapper import ParallelWrapper
from dragoman.stages.sequencer import Sequencer
from dragoman.stages.strict import Strict
from dragoman.stages.thinking.stage import ThinkingTags
from dragoman.stages.tool_names import ToolNames
from dragoman.types import Tool


@final
class Policy(msgspec.Struct, frozen=True):
    """A route's settings of the stages.

    Attributes:
        rescue: calls written as text are taken out of it.
        arguments: "live" repairs and coerces them while they stream, "whole" when they are complete, "raw" leaves them.
        strict: the first deviation ends the response; notes do with "notes" alone.
        sequential: one part open at a time, for encoders.
        way: how the tools were requested (`dragoman.tool_emulation.reading_mode`).
        argument_values: JSON values of one call in a text, as of any other (`AnswerBounds`).
    """

    rescue: bool = True
    arguments: Literal["live", "whole", "raw"] = "live"
    strict: Strictness = False
    sequential: bool = False
    way: ToolMode = "native"
    argument_values: int = USUAL_BOUNDS.argument_values


def stages_for(
    tools: tuple[Tool, ...],
    policy: Policy,
    *,
    new_id: NewId,
    dialect: Dialect = PLAIN,
    expectation: Expectation = NOTHING_EXPECTED,
) -> list[Stage]:
    """Return the stages of one response, in order: mend, judge, put in sequence. Without tools no call is mended.

    Interleaved texts are put in sequence before any of them is held, or they would leave in another order.

    Args:
        tools: those that were offered, in whatever way.
        expectation: what else the request asked for.
    """
    stages: list[Stage] = [Cumulative()]
    if policy.sequential:
        stages.append(Sequencer())
    if tools or expectation.tools:
        most, make = policy.argument_values, load_stages_of_texts()
        stages += make(tools, policy.way, rescues=policy.rescue, new_id=new_id, dialect=dialect, most_values=most)
    else:
        stages.append(ThinkingTags(dialect))
    if tools:
        names = frozenset([tool.name for tool in tools])
        stages.append(ParallelWrapper(names))
        stages.append(ToolNames(names))
        if policy.arguments != "raw":
            stages.append(ArgumentRepair(tools, live=policy.arguments == "live"))
    if expectation != NOTHING_EXPECTED:
        stages.append(Expected(expectation))
    if policy.strict:
        stages.append(Strict(takes_notes=policy.strict != "notes"))
    if policy.sequential:
        stages.append(Sequencer())
    return stages


def is_usual(policy: Policy, expectation: Expectation) -> bool:
    """Return whether calls come in the protocol's own fields, are repaired, and nothing else is expected."""
    is_native = policy.way == "native" and policy.arguments == "live"
    return is_native and policy.strict != "notes" and expectation == NOTHING_EXPECTED


def stay_as_they_are(events: list[Event], tools: Mapping[str, Tool]) -> bool:
    """Return whether the stages of a usual policy leave a whole answer with notes at most as it is: it has calls alone,
    each of an offered tool, whose schema takes its arguments.

    `tools`: by name.
    """
    for event in events:
        if type(event) is TextStart:
            return False
        if type(event) is ToolCallEnd:
            tool = tools.get(event.call.name)
            if tool is None or tool.kind != "function" or not schema_of(tool).takes_as_is(event.call.arguments):
                return False
    return True


@cache
def load_stages_of_texts() -> Callable[..., list[Stage]]:
    """Return what makes the stages of texts. It is loaded at the first answer that needs it."""
    from dragoman.tool_emulation.text_stages import stages_of_texts

    return stages_of_texts


__all__ = [
    "ArgumentRepair",
    "ToolNames",
    "ParallelWrapper",
    "Policy",
    "Sequencer",
    "Strict",
    "ThinkingTags",
    "is_usual",
    "load_stages_of_texts",
    "nothing_fits",
    "stages_for",
    "stay_as_they_are",
]

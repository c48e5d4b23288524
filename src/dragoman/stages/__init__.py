"""Stages: events → events, between a decoder and whoever reads. `stages_for` is the one place with their order."""

from __future__ import annotations

from typing import Literal, final

import msgspec

from dragoman.contract import NOTHING_EXPECTED, PLAIN, Dialect, Expectation, NewId, Stage, Strictness, Way
from dragoman.stages.arguments import Arguments
from dragoman.stages.expected import Expected
from dragoman.stages.names import Names
from dragoman.stages.prompted import Prompted
from dragoman.stages.rescue import FAMILIES, Rescue
from dragoman.stages.schema import nothing_fits
from dragoman.stages.sequence import Sequencer
from dragoman.stages.strict import Strict
from dragoman.stages.structured import Structured
from dragoman.stages.thinking import ThinkingTags
from dragoman.stages.wrapper import ParallelWrapper
from dragoman.types import Tool


@final
class Policy(msgspec.Struct, frozen=True):
    """What a route asks of the stages.

    `rescue`: calls written as text are taken out of it. `arguments`: "live" repairs and coerces them while they
    stream, "whole" when they are whole, "raw" leaves them as they came. `strict`: the first deviation ends the
    response; notes do with "notes" alone. `sequential`: one part open at a time, for encoders. `way`: how the tools
    were asked for (`dragoman.ways.reading_way`).
    """

    rescue: bool = True
    arguments: Literal["live", "whole", "raw"] = "live"
    strict: Strictness = False
    sequential: bool = False
    way: Way = "native"


def stages_for(
    tools: tuple[Tool, ...],
    policy: Policy,
    *,
    new_id: NewId,
    dialect: Dialect = PLAIN,
    expectation: Expectation = NOTHING_EXPECTED,
) -> list[Stage]:
    """The stages of one response, in order: mend, judge, put in sequence. Without tools no call is mended.

    Args:
        tools: those that were offered, in whatever way.
        expectation: what else the request asked for.
    """
    stages: list[Stage] = [ThinkingTags(dialect)]
    if tools:
        if policy.way == "schema":
            stages.append(Structured(new_id=new_id))
        if policy.way == "prompted":
            stages.append(Prompted(tools, lenient=policy.rescue, new_id=new_id))
        elif policy.rescue:
            stages.append(Rescue(tools, FAMILIES, new_id=new_id))
        names = frozenset([tool.name for tool in tools])
        stages.append(ParallelWrapper(names))
        stages.append(Names(names))
        if policy.arguments != "raw":
            stages.append(Arguments(tools, live=policy.arguments == "live"))
    if expectation != NOTHING_EXPECTED:
        stages.append(Expected(expectation))
    if policy.strict:
        stages.append(Strict(takes_notes=policy.strict != "notes"))
    if policy.sequential:
        stages.append(Sequencer())
    return stages


__all__ = [
    "Arguments",
    "Names",
    "ParallelWrapper",
    "Policy",
    "Rescue",
    "Sequencer",
    "Strict",
    "ThinkingTags",
    "nothing_fits",
    "stages_for",
]

"""The stages that read thinking and calls in text: many modules, which no answer without tools needs."""

from __future__ import annotations

from typing import Final

from dragoman.events import ToolCallEnd, ToolCallStart
from dragoman.pipe import Later
from dragoman.protocol import Dialect, NewId, Stage, ToolMode
from dragoman.stages.part_indices import OPENING
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stage import Rescue
from dragoman.stages.thinking.stage import ThinkingTags
from dragoman.stages.told_again import ToldAgain
from dragoman.tool_emulation.prompted import Prompted
from dragoman.tool_emulation.structured import Structured
from dragoman.types import Tool

#: What these stages must have seen of usual calls before a text: where its parts stand, and what was called.
_BEFORE_TEXTS: Final = frozenset[type]({ToolCallStart, ToolCallEnd})
#: What they act on, where no tool is asked for in words or by a schema, and rare parts, which may be too large to keep.
_OF_TEXTS: Final = ThinkingTags.acts_on | Rescue.acts_on | ToldAgain.acts_on | (OPENING - _BEFORE_TEXTS)


def stages_of_texts(
    tools: tuple[Tool, ...], way: ToolMode, *, rescues: bool, new_id: NewId, dialect: Dialect, most_values: int
) -> list[Stage]:
    """Return the stages, or what makes them at the first text.

    Args:
        way: how the tools were asked for.
        rescues: calls are read in other forms too.
        most_values: JSON values of one call.
    """

    def make() -> list[Stage]:
        readers = _readers_of_calls(tools, way, rescues=rescues, new_id=new_id, most_values=most_values)
        return [ThinkingTags(dialect), *readers]

    def make_all() -> list[Stage]:
        return [*make(), ToldAgain(make, marks_calls=way == "native")]

    return [Later(make_all, _OF_TEXTS, _BEFORE_TEXTS)] if way == "native" else make_all()


def _readers_of_calls(
    tools: tuple[Tool, ...], way: ToolMode, *, rescues: bool, new_id: NewId, most_values: int
) -> list[Stage]:
    if not tools:
        return []
    stages: list[Stage] = [Structured(new_id=new_id, most_values=most_values)] if way == "schema" else []
    if way == "prompted":
        stages.append(Prompted(tools, lenient=rescues, new_id=new_id, most_values=most_values))
    elif rescues:
        stages.append(Rescue(tools, FAMILIES, new_id=new_id, most_values=most_values))
    return stages

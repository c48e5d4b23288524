"""In which way a target is asked for tools, and which way comes next when it refuses them."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.client.target import Target
from dragoman.contract import Way
from dragoman.events import Deviation, Failure
from dragoman.problems import refuses_tools
from dragoman.stages import Policy
from dragoman.types import Request, Tool
from dragoman.ways import ask, reading_way, without_tools

_CODE: Final = "tools-way"


@final
class Asked(msgspec.Struct, frozen=True):
    """A request as it is sent, and how its answer is read. `way` None: the tools were left out."""

    request: Request
    way: Way | None
    tools: tuple[Tool, ...]
    policy: Policy
    deviations: tuple[Deviation, ...] = ()


def ask_first(target: Target, request: Request) -> Asked:
    """The first try: as configured; "auto" is native, unless the catalogue knows that the model takes no tools."""
    if target.tools != "auto":
        return _asked(target, request, target.tools)
    if target.takes_tools is False and request.tools:
        way = _other_way(target)
        return _asked(target, request, way, reason=f"{way}: the catalogue knows no tools of this model")
    return _asked(target, request, "native")


def ask_again(target: Target, request: Request, first: Asked, failure: Failure) -> Asked | None:
    """The second and last try, when the first was native and the server refuses tools; else None."""
    if first.way != "native" or not request.tools or not refuses_tools(failure):
        return None
    if target.tools == "auto":
        way = _other_way(target)
        return _asked(target, request, way, reason=f"native refused, asked again as {way}")
    if not target.tools_required:
        said = Deviation(_CODE, "tools", "native refused, asked again without tools")
        return Asked(without_tools(request), None, (), target.policy, (said,))
    return None


def _other_way(target: Target) -> Way:
    return "schema" if target.dialect.supports_response_schema else "prompted"


def _asked(target: Target, request: Request, way: Way, *, reason: str = "") -> Asked:
    asked, lost = ask(request, way)
    policy = msgspec.structs.replace(target.policy, way=reading_way(request, way))
    said = (Deviation(_CODE, "tools", reason),) if reason else ()
    return Asked(asked, way, request.tools, policy, said + lost)

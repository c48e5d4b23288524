"""Choose the tool mode for a target (native, structured, prompted), and the next one if it refuses."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.events import Deviation, Failure
from dragoman.offering import Offer, offer
from dragoman.protocol import ToolMode
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy
from dragoman.routing.target import Target
from dragoman.tool_emulation import ask, reading_mode, without_tools
from dragoman.types import ProtocolName, Request, Tool

_CODE: Final = "tools-way"


@final
class Asked(msgspec.Struct, frozen=True):
    """A request as it is sent, and how its answer is read. `way` None: the tools were left out."""

    request: Request
    way: ToolMode | None
    tools: tuple[Tool, ...]
    policy: Policy
    deviations: tuple[Deviation, ...] = ()


def offer_tools(target: Target, request: Request, client: ProtocolName | None) -> Offer:
    """Return the request with its tools as the target may be offered them. `client`: the protocol that it came in.

    Raises:
        UsageError: it is for a tool that the target does not have, or one that the configuration refuses.
    """
    return offer(
        request,
        target.protocol,
        name=target.name,
        dialect=target.dialect,
        policies=target.tool_policy,
        protocols=PROTOCOLS.__getitem__,
        client=client,
    )


def first_attempt(target: Target, request: Request) -> Asked:
    """Return the first try: as configured; "auto" is native, unless the model is known to refuse tools."""
    if target.refuses_tools and request.tools and target.tools in ("auto", "native"):
        other = _otherwise(target, request, "native is known to be refused")
        if other is not None:
            return other
    return _asked(target, request, "native" if target.tools == "auto" else target.tools)


def next_attempt(target: Target, request: Request, first: Asked, failure: Failure) -> Asked | None:
    """Return the second and last try if the first was native and the server refuses tools; else None."""
    if first.way != "native" or not request.tools or not refuses_tools(failure):
        return None
    return _otherwise(target, request, "native refused")


def _otherwise(target: Target, request: Request, reason: str) -> Asked | None:
    """Return the next way, or no tools; None if neither is allowed.

    The next way is in words, in which models invent the fewest calls (docs/reference/ways.md), or by a schema if a call
    is required: a schema can force one.
    """
    if target.tools == "auto":
        is_forced = request.tool_choice not in ("auto", "none")
        way: ToolMode = "schema" if is_forced and target.dialect.supports_response_schema else "prompted"
        asked = _asked(target, request, way)
        said = Deviation(_CODE, "tools", f"{reason}, asked as {way}")
        return msgspec.structs.replace(asked, deviations=(said, *asked.deviations))
    if not target.tools_required:
        said = Deviation(_CODE, "tools", f"{reason}, asked without tools")
        return Asked(without_tools(request), None, (), target.policy, (said,))
    return None


def _asked(target: Target, request: Request, way: ToolMode) -> Asked:
    offered = target.protocol.tools.callable(request)
    if way == "native" and target.policy.way == "native":  # as most targets are asked
        return Asked(request, way, offered, target.policy)
    asked, lost = ask(request, way)
    policy, read_as = target.policy, reading_mode(request, way)
    if policy.way != read_as:
        policy = msgspec.structs.replace(policy, way=read_as)
    return Asked(asked, way, offered, policy, lost)

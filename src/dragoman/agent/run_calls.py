"""Run the calls of an answer: plan, ask for approval, run each once, and give each a result in every case.

Reading runs concurrently. All else runs in sequence, each planned when the previous one has ended, so that what is
approved matches the state of the file or the machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias, final

import msgspec

from dragoman.agent.approval import Approvals
from dragoman.agent.interface import CallBegins, CallEnded, Interrupted, UserInterface
from dragoman.agent.limits import Limits, Meter
from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Outcome, Plan, Taint, ToolFailed
from dragoman.agent.tools import Toolbox
from dragoman.events import Reply
from dragoman.ids import new_id
from dragoman.types import Message, Part, Tool, ToolCall

_UNKNOWN: Final = (
    "interrupted: {why} while this ran. Whether it had its effect is not known; look before you call it again."
)
_NOT_RUN: Final = "not run: {why}"
_KILLED: Final = "dragoman was ended"
#: A tool's name and the arguments, as they came.
_Asked: TypeAlias = tuple[str, str]
#: Share of the model's window that one result may take, when the window is known; characters by token.
_RESULT_SHARE: Final = 0.25
_CHARACTERS_PER_TOKEN: Final = 4
_SMALLEST_RESULT: Final = 1_200


@final
class Calls:
    """Runs calls. The session records what it does before and after each one.

    Attributes:
        toolbox: what the model may call.
        approvals: what needs no question.
        taint: which foreign text has come since the user last spoke.
        window: the model's context in tokens, or None.
    """

    __slots__ = ("_face", "_given", "_limits", "_meter", "_session", "_wire", "approvals", "taint", "toolbox", "window")

    def __init__(
        self, session: Session, toolbox: Toolbox, *, approvals: Approvals, face: UserInterface, limits: Limits
    ) -> None:
        self.toolbox = toolbox
        self.approvals = approvals
        self.taint: Taint = "none"
        self.window: int | None = None
        self._session = session
        self._face = face
        self._limits = limits
        self._meter: Meter | None = None
        self._wire: dict[str, set[_Asked]] = {}  # what was asked in this run, by the wire's id
        self._given: set[str] = set()  # ids of this process's calls

    @property
    def tools(self) -> tuple[Tool, ...]:
        """Return the tools that are offered to the model."""
        return self.toolbox.tools

    def begin_run(self, meter: Meter, *, taint: Taint = "none") -> None:
        """Begin a run after the user's prompt. `taint`: of what was sent with it."""
        self._meter = meter
        self._wire = {}
        self.taint = taint

    # ------------------------------------------------------------ the answer

    def admitted(self, reply: Reply) -> Message:
        """Return the answer as it enters the conversation: each call once, under an id that no call had before.

        A call that comes again under its former id keeps that mark in its new one: it is never run unasked.
        """
        # The decoder gave ids of its own to calls that shared one; they share the empty one here.
        is_muddled = any(deviation.code == "duplicate-id" for deviation in reply.deviations)
        parts: list[Part] = []
        here: dict[str, set[_Asked]] = {}
        for part in reply.parts:
            if not isinstance(part, ToolCall):
                parts.append(part)
                continue
            wire_id, asked = "" if is_muddled else part.id, (part.name, part.arguments)
            same_id = here.setdefault(wire_id, set())
            if asked in same_id:
                continue  # the same block, sent twice
            same_id.add(asked)
            parts.append(self._with_own_id(part, repeats=self._came_before(wire_id, asked)))
            self._wire.setdefault(wire_id, set()).add(asked)
        return msgspec.structs.replace(reply.message, parts=tuple(parts))

    def _came_before(self, wire_id: str, asked: _Asked) -> bool:
        """Return whether the same call came in this run, under the same id as far as ids are meaningful."""
        if not wire_id:
            return any(asked in known for known in self._wire.values())
        return asked in self._wire.get(wire_id, ()) or asked in self._wire.get("", ())

    def _with_own_id(self, call: ToolCall, *, repeats: bool) -> ToolCall:
        is_taken = call.id in self._session.used_ids or call.id in self._given
        if repeats or is_taken or not call.id:
            call = msgspec.structs.replace(call, id=f"{_AGAIN if repeats else 'call_'}{new_id()}")
        self._given.add(call.id)
        return call

    # ------------------------------------------------------------ running

    async def run(self, calls: Sequence[ToolCall]) -> bool:
        """Run calls, each once. True: all have their result. If cancelled, `abandon` gives them one."""
        together: list[tuple[ToolCall, Plan]] = []
        for number, call in enumerate(list(calls)):
            if self._meter is not None:
                self._meter.count_call(call)
            if number >= self._limits.calls:
                self._end(call, None, _refusal(f"at most {self._limits.calls} calls of one answer are run"))
                continue
            plan = self._planned(call)
            if plan is None:
                continue
            if plan.is_idempotent and self._covers(call, plan):
                together.append((call, plan))
                continue
            await self._all(together)
            together = []
            await self._asked(call, plan)
        await self._all(together)
        return True

    async def _all(self, together: list[tuple[ToolCall, Plan]]) -> None:
        if len(together) == 1:
            await self._done(*together[0])
        elif together:
            async with asyncio.TaskGroup() as group:
                for call, plan in together:
                    group.create_task(self._done(call, plan))

    def _planned(self, call: ToolCall) -> Plan | None:
        try:
            return self.toolbox.plan(call)
        except ToolFailed as problem:
            self._end(call, None, _refusal(str(problem)))
            return None

    def _covers(self, call: ToolCall, plan: Plan) -> bool:
        if call.id.startswith(_AGAIN) and not plan.is_idempotent:
            return False
        return self.approvals.covers(plan, taint=self.taint)

    async def _asked(self, call: ToolCall, plan: Plan, *, is_again: bool = False) -> None:
        if is_again or not self._covers(call, plan):
            rule = self.approvals.withheld(plan, taint=self.taint)
            verdict = await self._face.approve(plan, call, _withheld(rule, plan) if rule else "")
            if verdict.kind == "no":
                self._end(call, plan, _refusal(f"refused: {verdict.words or 'the user said no'}"))
                return
            if verdict.kind == "session":
                self.approvals.grant(plan)
        await self._done(call, plan, is_again=is_again)

    async def _done(self, call: ToolCall, plan: Plan, *, is_again: bool = False) -> None:
        self._session.begin(call, plan, is_again=is_again)
        self._face.tell(CallBegins(call, plan))
        try:
            outcome = await plan.do()
        except ToolFailed as problem:
            outcome = Outcome(str(problem), is_error=True)
        except Exception as problem:  # a tool of the user, or a fault of ours: the model goes on, the user sees it
            outcome = Outcome(f"{type(problem).__name__}: {problem}", is_error=True)
        if outcome.is_from_outside:
            self.taint = "outside"
        elif outcome.is_foreign and self.taint == "none":
            self.taint = "folder"
        self._end(call, plan, outcome, was_run=True)

    def _end(self, call: ToolCall, plan: Plan | None, outcome: Outcome, *, was_run: bool = False) -> None:
        outcome = self.fitted(outcome)
        self._session.end(call, outcome, was_run=was_run)
        if self._meter is not None:
            self._meter.count_outcome(call, plan, outcome)
        self._face.tell(CallEnded(call, plan, outcome, was_run))

    def fitted(self, outcome: Outcome) -> Outcome:
        """Return an outcome cut to the model's window."""
        if self.window is None:
            return outcome
        room = max(int(self.window * _RESULT_SHARE) * _CHARACTERS_PER_TOKEN, _SMALLEST_RESULT)
        if len(outcome.text) <= room:
            return outcome
        text = outcome.text
        kept = f"{text[: room * 2 // 3]}\n[… {len(text) - room:,} characters left out …]\n{text[-room // 3 :]}"
        return msgspec.structs.replace(outcome, text=kept)

    # ------------------------------------------------------------ what was cut off

    def abandon(self, why: str) -> None:
        """Give every call without a result one that says why."""
        for call in list(self._session.pending):
            self._cut_off(call, why)

    async def settle(self) -> None:
        """As `abandon` for a session whose process was killed. What began is repeated only if the user agrees."""
        for call in list(self._session.pending):
            begun = self._session.begun.get(call.id)
            if begun is not None and not begun.idempotent:
                self._face.tell(Interrupted(call))
                if await self._face.run_again(call):
                    plan = self._planned(call)
                    if plan is not None:
                        await self._asked(call, plan, is_again=True)
                    continue
            self._cut_off(call, _KILLED)

    def _cut_off(self, call: ToolCall, why: str) -> None:
        words = _UNKNOWN if call.id in self._session.begun else _NOT_RUN
        outcome = Outcome(words.format(why=why), is_error=True)
        self._session.end(call, outcome, was_run=False)
        self._face.tell(CallEnded(call, None, outcome, was_run=False))


#: The beginning of the id of a call that came again under the id that it had before in this run.
_AGAIN: Final = "call_again_"


def _withheld(rule: str, plan: Plan) -> str:
    """Return why a rule that covers the action is not enough now."""
    host = plan.subject[0] if plan.kind == "network" else ""
    way = f"; a rule that names its host goes on: {plan.tool}:{host}/**" if host else ""
    return f"{rule!r} allows it, but text of others was read since the user last spoke, so it is asked again{way}"


def _refusal(why: str) -> Outcome:
    return Outcome(why, is_error=True)

"""The agent's loop: a prompt, the model's answer, its calls, their results, the next answer, until there is no call.

It knows no terminal: a `UserInterface` shows and asks. Whatever happens, including a cancelled task, every call of the
conversation has its result when `run` returns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeVar, final

import msgspec

from dragoman.agent.approval import Approvals
from dragoman.agent.interface import Failed, Shortened, StepEnded, UserInterface
from dragoman.agent.limits import Limits, Meter, Reason
from dragoman.agent.run_calls import Calls
from dragoman.agent.session.compaction import FULL, next_fold, plain_summary, sent_messages, summary_request
from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Outcome, Taint
from dragoman.agent.tools import Toolbox
from dragoman.client import AsyncClient
from dragoman.events import Failure, Reply, ToolCallFailed
from dragoman.response_stages import Sequencer
from dragoman.routing.resolve import resolve
from dragoman.routing.target import Target
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Params, Request, Text, ToolChoice

T = TypeVar("T")
#: Seconds of a clock that only goes forward.
Clock = Callable[[], float]

#: For a model that calls a tool only when it must: one call is forced, then its answer is asked for in words.
_SAY_IT: Final = "Say the result in a sentence."
_WEAK_TOKENS: Final = 128
_LIMITS: Final = Limits()
_PARAMS: Final = Params()
_AUTO: Final[ToolChoice] = "auto"
#: When the model's window is not known and it says that the prompt is too long, this share of it is taken for it.
_GUESSED: Final = 0.7


@final
class Agent:
    """One conversation with tools. Use it in one event loop, one `run` at a time.

    Attributes:
        session: the record of the conversation.
        calls: runs calls.
        system: the system text.
        known_window: the context in tokens that the model's server reported; None: the catalogue's applies.
        meter: what the current or last run has used.
    """

    __slots__ = (
        "_client", "_clock", "_face", "_limits", "_params", "_ratio", "calls", "known_window", "meter",
        "session", "system",
    )  # fmt: skip

    def __init__(
        self,
        client: AsyncClient,
        session: Session,
        toolbox: Toolbox,
        *,
        approvals: Approvals,
        face: UserInterface,
        system: str,
        limits: Limits = _LIMITS,
        params: Params = _PARAMS,
        clock: Clock = time.monotonic,
    ) -> None:
        self.session = session
        self.meter = Meter(limits, now=clock())
        self.calls = Calls(session, toolbox, approvals=approvals, face=face, limits=limits)
        self.known_window: int | None = None
        self._client = client
        self._face = face
        self.system = system
        self._limits = limits
        self._params = params
        self._clock = clock
        self._ratio = 1.0  # tokens that the provider counted, by our estimate

    # ------------------------------------------------------------ what is asked

    @property
    def target(self) -> Target:
        """Return the target. Raises UsageError or ConfigError if it cannot be asked."""
        return resolve(self.session.target, self._client.config)

    @property
    def window(self) -> int | None:
        """The model's context in tokens, or None."""
        return self.known_window or self.target.limits.context

    def request(self) -> Request:
        """Return the request that would go to the model now."""
        target = self.target
        messages = sent_messages(self.session.messages, self.session.foldings, window=self.window)
        tools, params, choice = self.calls.tools, self._params, _AUTO
        if target.dialect.force_call_by_prefill:
            choice = "any" if messages and messages[-1].role == "user" else "none"
            most = params.max_tokens or _WEAK_TOKENS
            params = msgspec.structs.replace(params, max_tokens=most, temperature=0.0, parallel_tools=False)
            if choice == "none":
                tools, messages = (), [*messages, Message("user", (Text(_SAY_IT),))]
        system = Message("system", (Text(self.system),))
        return Request(self.session.target, (system, *messages), tools, choice, params, True, self.session.id)

    def prompt_tokens(self) -> int:
        """Estimate the tokens of the next prompt."""
        return int(estimate_tokens(self.request()) * self._ratio)

    def fitted(self, outcome: Outcome) -> Outcome:
        """Return an outcome cut to the model's window."""
        self.calls.window = self.window
        return self.calls.fitted(outcome)

    # ------------------------------------------------------------ the loop

    async def run(self, prompt: str, attached: Sequence[Text] = ()) -> Reason:
        """Do what the prompt says. Return why it ended; "interrupted" if the task was cancelled.

        Args:
            prompt: the user's words.
            attached: foreign text that goes with it: files, outputs.

        Raises:
            UsageError, ConfigError: the target cannot be asked at all.
        """
        await self.settle()
        self.session.prompt(Message("user", (Text(prompt), *attached)), at=int(time.time()))
        return await self._watched(taint="folder" if attached else "none")

    async def go_on(self) -> Reason:
        """Continue where the last run ended, without a new prompt."""
        await self.settle()
        return await self._watched()

    async def settle(self) -> None:
        """Give a result to every call that lacks one, after a killed process left its session."""
        await self.calls.settle()

    async def _watched(self, *, taint: Taint = "none") -> Reason:
        self.meter = Meter(self._limits, now=self._clock())
        self.calls.begin_run(self.meter, taint=taint)
        self.calls.window = self.window
        try:
            return await self._steps()
        except asyncio.CancelledError:
            self.calls.abandon("the user stopped this turn")
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return "interrupted"
        except BaseException:
            self.calls.abandon("dragoman failed")
            raise

    async def _steps(self) -> Reason:
        has_shortened = False
        while True:
            await self._make_room()
            reason = self.meter.reached(now=self._clock(), prompt_tokens=self.prompt_tokens())
            if reason is not None:
                if not await self._face.go_on(reason):
                    return reason
                self.meter.go_on(reason)
            reply = await self._in_time(self._ask())
            if reply is None:
                continue
            if isinstance(reply.error, Failure):
                if reply.error.kind == "context" and not has_shortened:
                    has_shortened = True
                    if await self.shorten():
                        continue
                self._face.tell(Failed(reply.error))
                return "failed"
            if not self.session.pending and not reply.failed_calls:
                return "answered"
            if reply.failed_calls:  # a failed answer: none of its calls is run
                self.calls.abandon("another call of the same answer could not be read")
            elif self.session.pending:
                await self._in_time(self.calls.run(self.session.pending))
            self._tell_of(reply.failed_calls)

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the work's value, or None if the run's time ended first."""
        since, seconds = self.meter.time
        try:
            async with asyncio.timeout(max(since + seconds - self._clock(), 0)):
                return await work
        except TimeoutError:
            self.calls.abandon("the time of this run was over")
            return None

    async def _ask(self) -> Reply:
        """Return the model's next answer. The text of an answer that is cut off is kept."""
        request = self.request()
        estimate = estimate_tokens(request)
        sequencer = Sequencer()
        stream = self._client.ask(self.session.target, request)
        try:
            async with stream:
                while events := await stream.next_batch():
                    self._face.show(sequencer.feed(events))
        except asyncio.CancelledError:
            self._keep_words(stream.reply)
            raise
        reply = msgspec.structs.replace(stream.reply, attempts=stream.attempts)
        self.meter.count_reply(reply, estimate=estimate)
        if isinstance(reply.error, Failure):
            self._keep_words(reply)
            return reply
        if reply.usage.input is not None and estimate:
            self._ratio = min(max(reply.usage.input / estimate, 1.0), 3.0)
        self.session.answer(reply, self.calls.admitted(reply))
        self._face.tell(StepEnded(reply, self.prompt_tokens(), self.window))
        return reply

    def _keep_words(self, reply: Reply) -> None:
        """Keep only the text of an answer that broke off: its calls were not run, and its thinking has no signature."""
        if reply.text.strip():
            message = Message("assistant", (Text(reply.text),), origin=reply.origin)
            self.session.answer(msgspec.structs.replace(reply, parts=message.parts), message)

    def _tell_of(self, failed: Sequence[ToolCallFailed]) -> None:
        """Tell the model about calls that could not be delivered, because they have no place in the conversation."""
        for call in failed:
            name = f"Your call of {call.name}" if call.name else "Your tool call"
            words = f"{name} was not run: {call.message}. Call the tool again, whole."
            self.session.tell(Message("user", (Text(words),)))
            self.meter.count_failed(call.name, call.message)

    # ------------------------------------------------------------ room

    async def _make_room(self) -> None:
        window = self.window
        if window is not None and self.prompt_tokens() > window * FULL:
            await self.shorten()

    async def shorten(self) -> bool:
        """Shorten the older part of the conversation. Return False if nothing can be left out."""
        before = self.prompt_tokens()
        window = self.window or max(int(before * _GUESSED), 1)
        fold = next_fold(self.session.messages, self.session.foldings, window=window)
        if fold is None:
            return False
        summary = await self._summary(
            *summary_request(self.session.messages, self.session.foldings, fold, window=window)
        )
        words = summary or plain_summary(self.session.messages, fold, window=window)
        self.session.fold(fold.first, fold.kept, words)
        count = fold.kept - fold.first
        self._face.tell(Shortened(count, before, self.prompt_tokens(), words, by_model=bool(summary)))
        return True

    async def _summary(self, message: Message, most: int) -> str:
        """Return the model's own summary; "" if it gives none."""
        request = Request(self.session.target, (message,), (), "none", Params(max_tokens=most), True, None)
        stream = self._client.ask(self.session.target, request)
        async with stream:
            while await stream.next_batch():
                pass
        reply = stream.reply
        self.meter.count_reply(reply, estimate=estimate_tokens(request), is_step=False)
        return "" if isinstance(reply.error, Failure) else reply.text.strip()

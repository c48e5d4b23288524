"""Validate targets: one after the other or several at a time, with one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from dragoman.errors import DragomanError
from dragoman.routing.resolve import resolve
from dragoman.validate.ask import Asker
from dragoman.validate.examine import Examination, OnProgress
from dragoman.validate.limits import Budget, Pace
from dragoman.validate.model_identity import identify
from dragoman.validate.results import Settings, TargetRun
from dragoman.validate.sending import Sender


class Runner:
    """Validates targets with one set of settings and one budget."""

    __slots__ = ("_asker", "_budget", "_on_progress", "_pace", "_settings", "_version")

    def __init__(
        self,
        asker: Asker,
        settings: Settings,
        *,
        budget: Budget,
        pace: Pace,
        version: str,
        on_progress: OnProgress = lambda target, probe, result, done, total: None,
    ) -> None:
        """Create it. `version` is dragoman's own."""
        self._asker = asker
        self._settings = settings
        self._budget = budget
        self._pace = pace
        self._version = version
        self._on_progress = on_progress

    async def run(self, name: str) -> TargetRun:
        """Validate one target. An error of the target never raises."""
        try:
            target = resolve(name, self._asker.config, tools="native")
            claims = await identify(self._asker, target)
            ready = await self._asker.ready(target)
            sender = Sender(self._asker, self._budget, self._pace)
            examination = Examination(sender, self._settings, ready, claims)
            return await examination.whole(target, version=self._version, on_progress=self._on_progress)
        except DragomanError as problem:
            return TargetRun(name, None, problem=str(problem))


async def run_all(
    runner: Runner, targets: Sequence[str], *, jobs: int, on_done: Callable[[TargetRun], None]
) -> list[TargetRun]:
    """Validate many targets, `jobs` of them at a time; `on_done` is called with each as it ends."""
    room = asyncio.Semaphore(jobs)
    runs: dict[str, TargetRun] = {}

    async def one(target: str) -> None:
        async with room:
            run = await runner.run(target)
        runs[target] = run
        on_done(run)

    async with asyncio.TaskGroup() as group:
        for target in dict.fromkeys(targets):
            group.create_task(one(target))
    return [runs[target] for target in dict.fromkeys(targets)]

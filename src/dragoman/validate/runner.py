"""Validate targets: one after the other or several at a time, with one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from dragoman.errors import DragomanError
from dragoman.routing.resolve import resolve
from dragoman.validate.ask import Asker
from dragoman.validate.examine import Examination, OnProgress
from dragoman.validate.limits import Budget, Pace
from dragoman.validate.model_identity import identify
from dragoman.validate.results import Settings, TargetRun
from dragoman.validate.sending import Sender


class Runner(msgspec.Struct, eq=False):
    """Validates targets with one set of settings and one budget. `version` is dragoman's own."""

    asker: Asker
    settings: Settings
    budget: Budget
    pace: Pace
    version: str
    on_progress: OnProgress = lambda target, probe, result, done, total: None

    async def run(self, name: str) -> TargetRun:
        """Validate one target. An error of the target never raises."""
        try:
            target = resolve(name, self.asker.config, tools="native")
            claims = await identify(self.asker, target)
            ready = await self.asker.ready(target)
            sender = Sender(self.asker, self.budget, self.pace)
            examination = Examination(sender, self.settings, ready, claims)
            return await examination.whole(target, version=self.version, on_progress=self.on_progress)
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

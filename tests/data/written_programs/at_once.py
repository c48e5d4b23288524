"""Async: three questions at once, one that is cancelled, async tools, a run streamed."""

from __future__ import annotations

import asyncio

import dragoman
from dragoman.testing import FakeModel, call, delay


async def lookup(word: str) -> str:
    """Look a word up."""
    await asyncio.sleep(0.01)
    return f"{word}: a thing"


async def main() -> None:
    async with dragoman.AsyncClient() as client:
        with FakeModel("one", "two", "three"):
            replies = await asyncio.gather(*(client.reply("ollama/granite4", f"{n}?") for n in range(3)))
            print(sorted(str(reply) for reply in replies))
        with FakeModel(["slow", delay(5)], delay(5)):
            task = asyncio.create_task(client.reply("ollama/granite4", "slow?"))
            await asyncio.sleep(0.05)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                print("cancelled")
            try:
                await client.reply("ollama/granite4", "slow?", timeout=0.2)
            except dragoman.CallFailed as failed:
                print(failed.failure.kind)
        with FakeModel(call("lookup", word="otter"), "An otter is a thing."):
            async with client.run_stream("ollama/granite4", "otter?", tools=[lookup]) as run:
                async for event in run:
                    if isinstance(event, dragoman.ToolFinished):
                        print(event.result.text)
            print(run.answer.text)
        with FakeModel("a b c"):
            async with client.stream("ollama/granite4", "letters") as stream:
                async for text in stream.text_stream:
                    print(text, end="|")
            print(stream.reply.stop_reason)


asyncio.run(main())

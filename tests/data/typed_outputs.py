"""What a type checker infers of answers; never run (`tests/client/test_library_runs.py`)."""

import asyncio
from dataclasses import dataclass
from typing import reveal_type

import dragoman


@dataclass
class City:
    name: str


async def main() -> None:
    async with dragoman.AsyncClient() as client:
        reveal_type((await client.reply("a/b", "c", output_type=City)).output)
        reveal_type((await client.run("a/b", "c", output_type=City)).output)
        async for text in client.stream("a/b", "c").text_stream:
            reveal_type(text)


client = dragoman.Client()
reveal_type(client.reply("a/b", "c", output_type=City).output)
reveal_type(client.reply("a/b", "c", output_type=list[City]).output)
reveal_type(client.reply("a/b", "c").output)
reveal_type(dragoman.reply("a/b", "c", output_type=City).output)
reveal_type(client.run("a/b", "c", output_type=City).output)
reveal_type(dragoman.run("a/b", "c"))
plain: dragoman.Reply = client.reply("a/b", "c", output_type=City | int)
asyncio.run(main())

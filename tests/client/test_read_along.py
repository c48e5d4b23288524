"""What passes is read along in larger pieces: at once when there is much or an error in it, else a little later."""

from __future__ import annotations

import asyncio

from dragoman.client.passthrough.read_along import ReadAlong


def test_much_is_read_at_once_and_little_a_little_later():
    async def play() -> list[list[bytes]]:
        read: list[bytes] = []
        read_along = ReadAlong(read.append, progress=0.2)
        read_along.keep(b"a")
        read_along.keep(b"b")
        seen = [list(read)]
        while not read:
            await asyncio.sleep(0.002)
        seen.append(list(read))
        read_along.keep(b"c")
        read_along.keep(b"d" * 20_000)
        seen.append(list(read))
        read_along.keep(b'{"error": {}}')
        read_along.keep(b"e")
        read_along.catch_up()
        read_along.catch_up()
        await asyncio.sleep(0.05)
        return [*seen, list(read)]

    nothing, later, much, end = asyncio.run(play())
    assert (nothing, later) == ([], [b"ab"])
    assert much == [b"ab", b"c" + b"d" * 20_000]
    assert end == [*much, b'{"error": {}}', b"e"]

"""What passes is read along in larger pieces: at once when there is much or an error in it, else a little later."""

from __future__ import annotations

import asyncio

from dragoman.client.tap import Tap


def test_much_is_read_at_once_and_little_a_little_later():
    async def play() -> list[list[bytes]]:
        read: list[bytes] = []
        tap = Tap(read.append, progress=0.2)
        tap.keep(b"a")
        tap.keep(b"b")
        seen = [list(read)]
        while not read:
            await asyncio.sleep(0.002)
        seen.append(list(read))
        tap.keep(b"c")
        tap.keep(b"d" * 20_000)
        seen.append(list(read))
        tap.keep(b'{"error": {}}')
        tap.keep(b"e")
        tap.catch_up()
        tap.catch_up()
        await asyncio.sleep(0.05)
        return [*seen, list(read)]

    nothing, later, much, end = asyncio.run(play())
    assert (nothing, later) == ([], [b"ab"])
    assert much == [b"ab", b"c" + b"d" * 20_000]
    assert end == [*much, b'{"error": {}}', b"e"]

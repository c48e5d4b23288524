"""The file of what outlives a request: damaged pages, clocks that jump, and what cannot be kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from dragoman.gateway.storage import sqlite
from dragoman.gateway.storage.responses import BOUNDS, SCHEMA, Kept, NotKept, Responses
from dragoman.gateway.storage.sqlite import Bounds, Clock, Database, StoreFailed
from dragoman.ledger.stores.salvage import salvage
from gateway.pages.test_responses import post
from gateway.running import Running, gateway, stream_of, whole_of

PAGE = 4096


def kept(number: int, size: int) -> Kept:
    output = [{"id": f"item_{number}", "type": "message", "text": f"{number}" * size}]
    return Kept(f"resp_{number}", None, (), json.dumps({"id": f"resp_{number}", "output": output}).encode())


def fill(file: Path, count: int, size: int) -> None:
    """Responses of a store, all of them in the file itself."""
    responses = Responses(file)

    async def keep() -> None:
        for number in range(count):
            await responses.keep("owner", kept(number, size))

    asyncio.run(keep())
    responses.close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def found_in(responses: Responses, count: int) -> set[int]:
    async def look() -> set[int]:
        found = set()
        for number in range(count):
            try:
                found.add(int((await responses.find("owner", f"resp_{number}")).id[5:]))
            except NotKept:
                continue
        return found

    return asyncio.run(look())


def pages_of_rows(file: Path) -> dict[int, set[int]]:
    """Page → the numbers of the responses of which something stands there."""
    rows: dict[int, set[int]] = {}
    data = file.read_bytes()
    with sqlite3.connect(file) as connection:
        numbers = [int(row[0][5:]) for row in connection.execute("SELECT id FROM response")]
    connection.close()
    for page in range(len(data) // PAGE):
        text = data[page * PAGE : (page + 1) * PAGE]
        for number in numbers:
            if f'"resp_{number}"'.encode() in text or (f"{number}" * 40).encode() in text:
                rows.setdefault(page, set()).add(number)
    return rows


@pytest.mark.parametrize("size", [30, 3_000], ids=["many rows a page", "many pages a row"])
def test_a_damaged_page_costs_its_own_rows(tmp_path: Path, size: int) -> None:
    """Each page in turn, but those that lead to all others: the first one, and a table's inner ones."""
    count = 120 if size == 30 else 30
    file = tmp_path / "whole.sqlite"
    fill(file, count, size)
    data = file.read_bytes()
    rows = pages_of_rows(file)
    assert len(rows) > 5
    for page in range(1, len(data) // PAGE):
        if data[page * PAGE] == 5:  # an inner page of a table: its rows are those of the pages below
            continue
        broken = tmp_path / f"broken-{page}.sqlite"
        broken.write_bytes(data[: page * PAGE] + b"\xff" * PAGE + data[(page + 1) * PAGE :])
        into = sqlite3.connect(":memory:")
        with sqlite3.connect(file) as schema:
            for (sql,) in schema.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"):
                into.execute(sql)
        schema.close()
        salvage(broken, into)
        left = {int(row[0][5:]) for row in into.execute("SELECT id FROM response")}
        assert set(range(count)) - left <= rows.get(page, set()), page
        into.close()


def test_a_file_that_was_cut_keeps_the_rows_of_its_pages(tmp_path: Path) -> None:
    file = tmp_path / "responses.sqlite"
    for share in (0.9, 0.5):
        fill(file, 120, 300)
        size = int(file.stat().st_size * share)
        lost = {row for page, rows in pages_of_rows(file).items() for row in rows if (page + 1) * PAGE > size}
        with file.open("r+b") as opened:
            opened.truncate(size)
        left = found_in(Responses(file), 120)
        assert left and set(range(120)) - left <= lost, share
        for each in tmp_path.iterdir():
            each.unlink()


class Patient(sqlite3.Connection):
    """It takes so many rows."""

    left = 1_000

    def execute(self, *words: Any) -> sqlite3.Cursor:
        self.left -= 1
        assert self.left, "there is no end of rows"
        return super().execute(*words)


@pytest.mark.parametrize("damage", ["cut", "zeros", "moved", "bytes"])
def test_reading_what_is_left_of_a_damaged_file_ends(tmp_path: Path, damage: str) -> None:
    """Pages that stand in the place of others give rows again and again; each row of the file is read once at most."""
    file, draw = tmp_path / "whole.sqlite", random.Random(1)
    fill(file, 120, 300)
    whole = file.read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(1 if damage == "cut" else draw.randrange(1, 12)):
            at, source = (draw.randrange(1, len(data) // PAGE) * PAGE for _ in range(2))
            match damage:
                case "cut":
                    del data[draw.randrange(100, len(data)) :]
                case "zeros":
                    data[at : at + PAGE] = bytes(PAGE)
                case "moved":
                    data[at : at + PAGE] = whole[source : source + PAGE]
                case "bytes":
                    data[draw.randrange(100, len(data))] = draw.randrange(256)
        broken = tmp_path / "broken.sqlite"
        broken.write_bytes(data)
        with contextlib.closing(sqlite3.connect(":memory:", factory=Patient)) as into:
            into.executescript(SCHEMA)
            assert salvage(broken, into) <= 2 * 120  # each response has one item


def test_a_store_goes_on_with_what_is_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "responses.sqlite"
    fill(file, 120, 30)
    data = bytearray(file.read_bytes())
    page = next(page for page, rows in pages_of_rows(file).items() if rows and data[page * PAGE] == 13)
    lost = pages_of_rows(file)[page]
    data[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE
    file.write_bytes(data)
    responses = Responses(file)
    left = found_in(responses, 120)
    assert left and set(range(120)) - left <= lost
    assert "rows were taken over from responses.sqlite.damaged-" in caplog.text

    async def item() -> Any:
        one = next(iter(left))
        await responses.keep("owner", kept(1_000, 3))
        return await responses.items("owner", [f"item_{one}", "item_1000"])

    assert len(asyncio.run(item())) == 2
    responses.close()


def test_damage_inside_a_text_costs_its_row(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SQLite notices none of it, and a client would have had another conversation than its own. Each is told once."""
    file = tmp_path / "responses.sqlite"
    fill(file, 12, 3_000)
    data = bytearray(file.read_bytes())
    for number, other in ((3, b"\xff" * 60), (5, b"7" * 60), (7, b'"},{"type":"message","text":"')):
        start = data.index((f"{number}" * 500).encode()) + 200
        data[start : start + len(other)] = other
    file.write_bytes(data)
    responses = Responses(file)
    assert found_in(responses, 12) == set(range(12)) - {3, 5, 7}

    async def look(number: int) -> None:
        for work in (responses.conversation("owner", f"resp_{number}"), responses.items("owner", [f"item_{number}"])):
            if number == 4:
                assert await work
            else:
                with pytest.raises(NotKept):
                    await work

    for number in (3, 4, 5, 7):
        asyncio.run(look(number))
    responses.close()
    assert caplog.text.count("a stored response is damaged") == 3


def test_rows_of_an_earlier_form_are_read_and_who_knows_that_form_alone_reads_none_of_this(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An earlier dragoman took a row with a checksum for one without items, and told the model half a conversation."""
    file = tmp_path / "responses.sqlite"
    fill(file, 2, 3)
    with sqlite3.connect(file) as earlier:
        earlier.execute("UPDATE response SET input = X'5B5D'")
        earlier.execute("PRAGMA user_version = 1")
    earlier.close()
    responses = Responses(file)
    assert found_in(responses, 2) == {0, 1}
    asyncio.run(responses.keep("owner", kept(2, 3)))
    responses.close()
    database = Database(file, SCHEMA, table="response", form=1)
    assert database.do(lambda connection: connection.execute("SELECT count(*) FROM response").fetchone()) == (0,)
    database.close()
    assert "a newer dragoman has written it" in caplog.text


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_folder_that_goes_is_no_error_of_ours(tmp_path: Path, is_folder: bool) -> None:
    file = tmp_path / "state" / "responses.sqlite"
    file.parent.mkdir()
    fill(file, 3, 10)
    responses = Responses(file)
    assert found_in(responses, 3) == {0, 1, 2}
    shutil.rmtree(file.parent)
    file.parent.mkdir() if is_folder else file.parent.write_text("x")
    asyncio.run(responses.keep("owner", kept(9, 3)))
    assert found_in(responses, 10) == {9}
    responses.close()


def test_noise_anywhere_raises_nothing_but_its_own_failure(tmp_path: Path) -> None:
    file = tmp_path / "whole.sqlite"
    fill(file, 40, 100)
    data = file.read_bytes()
    chance = random.Random(7)
    for number in range(25):
        noisy = bytearray(data)
        for _ in range(chance.randint(1, 6)):
            start = chance.randrange(len(noisy))
            noisy[start : start + chance.choice((1, 50, 5_000))] = chance.randbytes(50)
        broken = tmp_path / f"{number}.sqlite"
        broken.write_bytes(noisy)
        responses = Responses(broken)

        async def use(responses: Responses = responses) -> None:
            for _ in range(2):
                try:
                    await responses.keep("owner", kept(99, 3))
                    assert (await responses.find("owner", "resp_99")).id == "resp_99"
                    return
                except (StoreFailed, NotKept, sqlite3.IntegrityError):
                    continue

        asyncio.run(use())
        responses.close()


# ---------------------------------------------------------------- time


class Times:
    """The wall's clock and the process's, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.process = 1_000_000_000.0, 50.0
        monkeypatch.setattr(sqlite.time, "time", lambda: self.wall)
        monkeypatch.setattr(sqlite.time, "monotonic", lambda: self.process)


@pytest.mark.parametrize("jump", [10 * 365 * 86_400, -10 * 365 * 86_400])
def test_a_clock_that_jumps_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    times = Times(monkeypatch)
    file = tmp_path / "responses.sqlite"
    for opened in range(3):  # within a process, and from one to the next
        responses = Responses(file)
        for number in range(opened * 200, opened * 200 + 200):
            asyncio.run(responses.keep("owner", kept(number, 3)))
            times.process += 1
            if number % 100 == 50:
                times.wall += jump
        responses.close()
    responses = Responses(file)
    assert found_in(responses, 600) == set(range(600))
    responses.close()


def test_time_that_passes_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    responses = Responses(tmp_path / "responses.sqlite")
    asyncio.run(responses.keep("owner", kept(0, 3)))
    for number in range(1, 201):  # looked at after each 64
        times.process += BOUNDS.age / 30
        asyncio.run(responses.keep("owner", kept(number, 3)))
    left = found_in(responses, 201)
    assert 200 - 64 - 30 <= min(left) <= 200 - 30 and left == set(range(min(left), 201))
    responses.close()


def test_a_clock_goes_on_from_the_newest_row(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    clock = Clock()
    clock.begin(None)
    assert clock.now() == 1_000_000_000
    clock.begin(1_000_000_500)  # the wall was set back
    times.process += 7
    assert clock.now() == 1_000_000_507
    clock.begin(1_000_000_000 - 3_600)  # an hour without a gateway
    assert clock.now() == 1_000_000_000
    clock.begin(1_000_000_000 - 10 * 86_400)
    assert clock.now() == 1_000_000_000 - 9 * 86_400


# ---------------------------------------------------------------- what cannot be kept


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_that_is_not_kept_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, streamed: bool
) -> None:
    def full(self: Database, work: Any) -> Any:
        raise StoreFailed("database or disk is full")

    def final(running: Running) -> dict[str, Any]:
        answer = stream_of("openai-chat", reply("text")) if streamed else whole_of("openai-chat", reply("text"))
        running.answer(answer)
        # a request that quotes the field changes nothing
        body = {
            "model": "via-openai-chat",
            "input": '"store":true',
            "stream": streamed,
            "metadata": {"a": '"store":true'},
        }
        if not streamed:
            found: dict[str, Any] = post(running, body)[1]
            return found
        _, _, text = running.request("POST", "/v1/responses", json.dumps(body).encode(), {"x-api-key": "one"})
        events = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: {")]
        last: dict[str, Any] = events[-1]["response"]
        assert events[-1]["type"] == "response.completed"
        return last

    with gateway(tmp_path, '[server]\nstate = "state"\n') as running:
        assert final(running)["store"] is True
        with monkeypatch.context() as patched:
            patched.setattr(Database, "do", full)
            for _ in range(3):
                found = final(running)
                assert found["store"] is False and found["metadata"] == {"a": '"store":true'}
        assert final(running)["store"] is True
    assert caplog.text.count("responses cannot be stored") == 1
    assert caplog.text.count("responses are stored again") == 1


def test_bounds_are_by_the_stores_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = Times(monkeypatch)
    responses = Responses(None, bounds=Bounds(own_rows=9, own_size=10**9, rows=9, size=10**9, age=10))
    asyncio.run(responses.keep("owner", kept(0, 3)))
    times.wall += 1_000
    for number in range(1, 70):
        asyncio.run(responses.keep("owner", kept(number, 3)))
    times.process += 100
    for number in range(70, 140):
        asyncio.run(responses.keep("owner", kept(number, 3)))
    assert min(found_in(responses, 140)) >= 70
    assert time.time() == times.wall
    responses.close()

"""Stored responses of several machines: everybody's who owns them, and while the database is away either whole or said
to be out of reach, never wrong and never gone."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from conversations import reply
from dragoman._json import Raw
from dragoman.gateway.storage import machines, postgresql, pruning, responses, shared_responses
from dragoman.gateway.storage.machines import id_of, tag_in, tag_of
from dragoman.gateway.storage.postgresql import SharedDatabase
from dragoman.gateway.storage.responses import Kept, NotKept, Responses, ResponseStore, TooLong
from dragoman.gateway.storage.sqlite import Bounds, StoreFailed, StoreUnreachable
from dragoman.ledger.interfaces import StoreAway
from dragoman.secret import Secret
from gateway.pages.test_responses import ask, post
from gateway.running import gateway, stream_of
from gateway.shared.machines import Cut, Fleet, Machine
from scripted import serving


def kept(store: ResponseStore, name: str, previous: str | None = None, *, size: int = 1) -> Kept:
    """A response that says its name."""
    id = store.new_id()
    output = [{"id": f"item {name}", "type": "message", "text": f"answer {name}" + "-" * size}]
    said = (Raw(json.dumps({"role": "user", "content": f"said {name}"}).encode()),)
    return Kept(id, previous, said, json.dumps({"id": id, "output": output}).encode())


def words(items: list[Raw]) -> list[str]:
    """What a conversation says, each item in a word or two."""
    found = [json.loads(bytes(item)) for item in items]
    return [str(item.get("content") or item["text"]).rstrip("-") for item in found]


@pytest.fixture(params=["file", "shared"])
def store(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[ResponseStore]:
    """The same of both kinds."""
    if request.param == "file":
        file = Responses(None)
        yield file
        file.close()
    else:
        yield fleet.machine().responses


# ---------------------------------------------------------------- what both kinds do


def test_a_conversation_is_whole_and_its_owners_alone(store: ResponseStore) -> None:
    async def use() -> None:
        previous, expected = None, []
        for number in range(5):
            each = kept(store, str(number), previous)
            await store.keep("me", each)
            previous, expected = each.id, [*expected, f"said {number}", f"answer {number}"]
            assert words(await store.conversation("me", each.id)) == expected
            assert words(await store.conversation("me", each.id, with_answer=False)) == expected[:-1]
            assert await store.find("me", each.id) == each
        assert previous is not None
        for owner, id in (
            ("you", previous),
            ("me", "resp_1"),
            ("me", ""),
            ("me", "a\0b"),
            ("me", "\ud800"),
            ("me", "x" * 999),
        ):
            for work in (store.find, store.conversation, store.delete):
                with pytest.raises(NotKept):
                    await work(owner, id)
        await store.delete("me", previous)
        with pytest.raises(NotKept):
            await store.find("me", previous)
        with pytest.raises(NotKept):
            await store.delete("me", previous)

    asyncio.run(use())


def test_what_lost_its_beginning_is_not_there(store: ResponseStore) -> None:
    async def use() -> None:
        first = kept(store, "first")
        second = kept(store, "second", first.id)
        third = kept(store, "third", second.id)
        for each in (first, second, third):
            await store.keep("me", each)
        await store.delete("me", second.id)
        with pytest.raises(NotKept) as problem:
            await store.conversation("me", third.id)
        assert problem.value.id == second.id and words(await store.conversation("me", first.id))

    asyncio.run(use())


def test_items_are_found_by_their_ids(store: ResponseStore) -> None:
    long = "i" * 5_000 + "\0"

    async def use() -> None:
        for number in range(3):
            await store.keep("me", kept(store, str(number)))
        id = store.new_id()
        output = [{"id": long, "text": "first"}, {"id": long, "text": "second"}, {"text": "no id"}]
        await store.keep("me", Kept(id, None, (), json.dumps({"id": id, "output": output}).encode()))
        found = await store.items("me", ["item 1", "item 2", "item 1", long])
        assert words([found[name] for name in ("item 1", "item 2", long)]) == ["answer 1", "answer 2", "first"]
        for owner, name in (("you", "item 1"), ("me", "item 9"), ("me", "half\ud800")):
            with pytest.raises(NotKept) as problem:
                await store.items(owner, ["item 1", name])
            assert problem.value.is_item
        await store.keep("me", kept(store, "1", size=50))  # an id that comes again names the new one
        assert len(bytes((await store.items("me", ["item 1"]))["item 1"])) > 100

    asyncio.run(use())


def test_a_conversation_is_not_longer_than_it_may_be(store: ResponseStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (responses, shared_responses):
        monkeypatch.setattr(module, "LONGEST", 5_000)

    async def use() -> None:
        previous = None
        for number in range(3):
            each = kept(store, str(number), previous, size=2_000)
            await store.keep("me", each)
            previous = each.id
        assert previous is not None
        with pytest.raises(TooLong):
            await store.conversation("me", previous)
        with pytest.raises(TooLong):
            await store.items("me", ["item 0"] * 3)
        with pytest.raises(TooLong):
            await store.items("me", ["item 0", "item 1", "item 2"])
        assert await store.items("me", ["item 0", "item 1"])

    asyncio.run(use())


# ---------------------------------------------------------------- several machines


def test_long_conversations_are_read_in_parts(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_responses, "_CHAIN", shared_responses._CHAIN.replace("place < 256", "place < 3"))
    one, two = fleet.machine(), fleet.machine()

    async def use() -> list[str]:
        previous = None
        for number in range(8):
            machine = (one, two)[number % 2]
            each = kept(machine.responses, str(number), previous)
            await machine.responses.keep("me", each)
            previous = each.id
        return words(await two.responses.conversation("me", previous))

    assert asyncio.run(use()) == [f"{kind} {number}" for number in range(8) for kind in ("said", "answer")]


def test_bounds_of_an_owner_and_of_all(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Bounds(own_rows=5, own_size=10**6, rows=12, size=10**6, age=100)
    monkeypatch.setattr(shared_responses, "BOUNDS", few)
    monkeypatch.setattr(shared_responses, "_PRUNED_ROWS", 1)
    monkeypatch.setattr(pruning, "BOUNDS", {"response": few})
    machine = fleet.machine()

    def left() -> dict[str, int]:
        return dict(fleet.fetch("SELECT owner, count(*) FROM response GROUP BY owner"))

    async def use() -> list[str]:
        ids = []
        for owner in ("other", "me"):
            for number in range(8):
                each = kept(machine.responses, str(number))
                await machine.responses.keep(owner, each)
                ids.append(each.id)
        return ids

    ids = asyncio.run(use())
    assert left() == {"me": 5, "other": 5}
    assert {id for (id,) in fleet.fetch("SELECT id FROM response WHERE owner = 'me'")} == set(ids[-5:])
    assert fleet.fetch("SELECT owner, count(*) FROM response_item GROUP BY owner ORDER BY owner") == [
        ("me", 5),
        ("other", 5),
    ]
    fleet.execute("UPDATE response SET used = used - 90 WHERE owner = 'other'")
    fleet.execute("UPDATE response SET used = used - 200 WHERE id = $1", ids[-1])
    monkeypatch.setattr(pruning, "BOUNDS", {"response": Bounds(10, 10**6, 6, 10**6, 100)})
    fleet.do(pruning.prune_all)
    assert left() == {"me": 4, "other": 2}


def test_what_waits_is_moved_and_nobody_says_meanwhile_that_it_is_not_there(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machines, "_WAIT", 0.0)
    one, two = fleet.machine(), fleet.machine()
    line = cut(one)
    one.move()

    async def use() -> None:
        first = kept(one.responses, "first")
        await one.responses.keep("me", first)
        line.is_cut = True
        second = kept(one.responses, "second", first.id)
        await one.responses.keep("me", second)
        with pytest.raises(StoreUnreachable):  # its beginning is out of reach: no half history
            await one.responses.conversation("me", second.id)
        alone = kept(one.responses, "alone")
        await one.responses.keep("me", alone)
        assert words(await one.responses.conversation("me", alone.id)) == ["said alone", "answer alone"]
        assert (await one.responses.items("me", ["item alone"])).keys() == {"item alone"}
        for id in (first.id, "resp_1"):
            with pytest.raises(StoreUnreachable):
                await one.responses.delete("me", id)
        with pytest.raises(StoreUnreachable):
            await one.responses.items("me", ["item first"])
        # The other machine reaches the database, which does not have them yet.
        for _ in range(2):
            for work in (two.responses.find, two.responses.conversation, two.responses.delete):
                with pytest.raises(StoreUnreachable):
                    await work("me", second.id)
            with pytest.raises(StoreUnreachable):
                await two.responses.items("me", ["item second"])
            two.move()
        with pytest.raises(NotKept):
            await two.responses.find("me", "resp_1")
        line.is_cut = False
        expected = ["said first", "answer first", "said second", "answer second"]
        assert words(await one.responses.conversation("me", second.id)) == expected
        one.move()
        assert words(await two.responses.conversation("me", second.id)) == expected
        assert (await two.responses.items("me", ["item second"])).keys() == {"item second"}
        with pytest.raises(NotKept):
            await two.responses.find("you", two.responses.new_id())
        await two.responses.delete("me", second.id)
        with pytest.raises(NotKept):
            await one.responses.find("me", second.id)

    asyncio.run(use())


def cut(machine: Machine) -> Cut:
    """The machine's line to the database, to be cut."""
    assert machine.ledger.store is not None
    line = Cut(machine.ledger.store)
    old: SharedDatabase = machine.responses._database
    old.close()
    machine.responses._database = machine.seals._database = line
    machine.stores._close.append(line.close)
    return line


def test_the_first_word_of_a_machine_after_the_question_is_waited_for(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_WAIT", "_SILENT"):
        monkeypatch.setattr(machines, name, 60.0)  # a busy machine takes seconds for a word
    one, two = fleet.machine(), fleet.machine()
    one.move()

    async def use() -> None:
        asked = asyncio.create_task(two.responses.find("me", one.responses.new_id()))
        done, _ = await asyncio.wait((asked,), timeout=0.3)
        assert not done
        one.move()
        with pytest.raises(NotKept):
            await asked

    asyncio.run(use())


def test_what_is_moved_while_it_is_waited_for_is_found(fleet: Fleet) -> None:
    one, two = fleet.machine(), fleet.machine()
    line = cut(one)
    one.move()
    line.is_cut = True

    async def use() -> None:
        each = kept(one.responses, "late")
        await one.responses.keep("me", each)
        for look in (
            lambda: two.responses.conversation("me", each.id),
            lambda: two.responses.items("me", ["item late"]),
        ):
            asked = asyncio.create_task(look())
            done, _ = await asyncio.wait((asked,), timeout=0.3)
            assert not done
            one.move()
            assert await asked
            fleet.execute("DELETE FROM response")
            await one.responses.keep("me", each)
        deleted = asyncio.create_task(two.responses.delete("me", each.id))
        await asyncio.wait((deleted,), timeout=0.3)
        one.move()
        await deleted
        assert fleet.fetch("SELECT count(*) FROM response") == [(0,)]

    asyncio.run(use())


@pytest.mark.parametrize(
    ("clear", "expected"),
    [("'infinity'", NotKept), ("clock_timestamp() - interval '1 hour'", StoreUnreachable),
     ("clock_timestamp() - interval '25 hours'", NotKept), (None, StoreUnreachable)],
    ids=["has ended", "is silent", "is gone for a day", "was never heard"],
)  # fmt: skip
def test_machines_that_say_nothing(fleet: Fleet, clear: str | None, expected: type[Exception]) -> None:
    machine, tag = fleet.machine(), tag_of("another")
    if clear is not None:
        fleet.execute(f"INSERT INTO state_machine VALUES('{tag}', {clear})")

    async def use() -> None:
        with pytest.raises(expected):
            await machine.responses.find("me", id_of(tag))
        with pytest.raises(NotKept):
            await machine.responses.find("me", machine.responses.new_id())  # this one knows of itself

    asyncio.run(use())


def test_ids_name_the_machine_of_this_fleet_alone() -> None:
    tag = tag_of("here")
    assert tag_in(id_of(tag)) == tag and id_of(tag) != id_of(tag)
    other = Responses(None)
    assert tag_in(other.new_id()) is None
    other.close()
    chance = random.Random(3)
    made_up = ["resp_" + "".join(chance.choices("0123456789abcdef", k=36)) for _ in range(500)]
    assert sum(tag_in(id) is not None for id in made_up) <= 1


def test_a_machine_that_ends_moves_what_waits_and_says_so(fleet: Fleet) -> None:
    machine, stop = fleet.machine(), threading.Event()
    line = cut(machine)
    line.is_cut = True
    each = kept(machine.responses, "last")
    asyncio.run(machine.responses.keep("me", each))
    stop.set()
    machine._thread.submit(machine.mover.run, stop).result()
    assert fleet.fetch("SELECT id FROM response") == [(each.id,)]
    assert fleet.fetch("SELECT clear = 'infinity' FROM state_machine") == [(True,)]


def test_a_move_that_breaks_off_is_done_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine dies when the row is there, and not yet gone here."""
    machine = fleet.machine()
    line = cut(machine)
    line.is_cut = True
    asyncio.run(machine.responses.keep("me", kept(machine.responses, "one")))
    connection = machine.mover._connection

    class Breaking:
        is_open = True
        fetch = connection.fetch

        def execute(self, *words: Any) -> int:
            done = connection.execute(*words)
            if words[0] == shared_responses.INSERT_RESPONSE:
                raise StoreAway("no answer")
            return done

    with monkeypatch.context() as patched:
        patched.setattr(machine.mover, "_connection", Breaking())
        patched.setattr(machine.mover, "_is_ready", True)
        with pytest.raises(StoreAway):
            machine.move()
    with sqlite3.connect(machine.state / responses.FILE) as file:
        assert file.execute("SELECT count(*) FROM response").fetchone() == (1,)
    file.close()
    machine.move()
    assert fleet.fetch("SELECT count(*) FROM response") == [(1,)]
    line.is_cut = False
    assert len(asyncio.run(machine.responses.items("me", ["item one"]))) == 1


def test_a_database_that_stands_still_holds_nobody_up(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and answers nothing: the first who ask wait for so long, all others are told at once."""
    one, two = fleet.machine(), fleet.machine()
    began: list[object] = []
    submit = ThreadPoolExecutor.submit

    def noted(self: ThreadPoolExecutor, work: Any, *words: Any) -> Any:
        if self is one.responses._database._executor:
            began.append(work)
        return submit(self, work, *words)

    async def keep(name: str) -> str:
        each = kept(one.responses, name)
        await one.responses.keep("me", each)
        assert words(await one.responses.conversation("me", each.id)) == [f"said {name}", f"answer {name}"]
        return each.id

    async def use() -> list[str]:
        ids = [await keep("before")]
        fleet.server.freeze()
        monkeypatch.setattr(postgresql, "PATIENCE", 0.3)
        try:
            ids += await asyncio.gather(*(keep(f"first {number}") for number in range(4)))
            with monkeypatch.context() as patched:
                patched.setattr(ThreadPoolExecutor, "submit", noted)
                one.responses._database._next = float("inf")
                ids += await asyncio.gather(*(keep(f"then {number}") for number in range(20)))
                with pytest.raises(StoreUnreachable):
                    await one.responses.find("me", ids[0])
            assert not began
        finally:
            fleet.server.thaw()
        one.responses._database._next = 0.0
        return ids

    ids = asyncio.run(use())

    async def look() -> list[str]:
        return [words(await two.responses.conversation("me", id))[0] for id in ids]

    monkeypatch.setattr(postgresql, "PATIENCE", 60.0)
    one.move()
    assert asyncio.run(look()) == [
        "said before",
        *(f"said first {n}" for n in range(4)),
        *(f"said then {n}" for n in range(20)),
    ]


def test_no_file_and_no_database_is_a_failure(fleet: Fleet) -> None:
    machine = fleet.machine()
    cut(machine).is_cut = True
    machine.state.mkdir(exist_ok=True)
    (machine.state / responses.FILE).mkdir()

    async def use() -> None:
        with pytest.raises(StoreFailed):
            await machine.responses.keep("me", kept(machine.responses, "one"))

    asyncio.run(use())


@pytest.mark.parametrize("seed", range(6))
def test_random_histories_never_tell_anything_wrong(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Three machines keep, go on, delete and look up, while lines are cut and answers of the database lost: each look
    gives the whole conversation, or says that it is out of reach; nothing that is kept is ever said not to be there."""
    monkeypatch.setattr(machines, "_WAIT", 0.0)
    chance = random.Random(seed)
    fleet_of = [fleet.machine() for _ in range(3)]
    lines = {id(machine): cut(machine) for machine in fleet_of}
    known: dict[str, tuple[str, str | None, str]] = {}  # by id: owner, previous, name
    deleted: set[str] = set()

    def expected(id: str) -> list[str] | None:
        """None: a part of it was deleted."""
        told: list[str] = []
        at: str | None = id
        while at is not None:
            if at in deleted:
                return None
            _, at, name = known[at]
            told[:0] = [f"said {name}", f"answer {name}"]
        return told

    async def look(machine: Machine, id: str) -> bool:
        owner = known[id][0]
        try:
            found = words(await machine.responses.conversation(owner, id))
        except StoreUnreachable:
            return False
        except NotKept:
            assert expected(id) is None, id
            return True
        assert found == expected(id)
        return True

    async def step(machine: Machine, line: Cut) -> None:
        match chance.choice(("keep", "keep", "keep", "look", "look", "delete", "cut", "lose", "move", "move")):
            case "keep":
                owner = chance.choice(("me", "you"))
                own = [id for id, (of, _, _) in known.items() if of == owner and id not in deleted]
                each = kept(machine.responses, str(len(known)), chance.choice([None, *own[-4:]]))
                await machine.responses.keep(owner, each)
                known[each.id] = (owner, each.previous, str(len(known)))
            case "look" if known:
                id = chance.choice(list(known))
                await look(machine, id)
                with pytest.raises((NotKept, StoreUnreachable)):
                    await machine.responses.conversation("somebody", id)
            case "delete" if known:
                id = chance.choice(list(known))
                try:
                    await machine.responses.delete(known[id][0], id)
                except StoreUnreachable:
                    # It may be done, or not: from here on nobody asks for it.
                    for each in [each for each in known if id in line_of(each)]:
                        del known[each]
                    return
                except NotKept:
                    assert id in deleted
                deleted.add(id)
            case "cut":
                line.is_cut = not line.is_cut
            case "lose":
                line.loses = 1
            case "move" if not line.is_cut:
                machine.move()

    def line_of(id: str) -> list[str]:
        found = [id]
        while found[-1] in known and (previous := known[found[-1]][1]) is not None:
            found.append(previous)
        return found

    async def use() -> None:
        for _ in range(120):
            machine = chance.choice(fleet_of)
            await step(machine, lines[id(machine)])
        for machine in fleet_of:
            lines[id(machine)].is_cut, lines[id(machine)].loses = False, 0
        for machine in fleet_of:
            machine.move()
        seen = [await look(machine, each) for machine in fleet_of for each in known if expected(each) is not None]
        assert seen and all(seen)  # in the end all of it is there for all

    asyncio.run(use())


# ---------------------------------------------------------------- the gateway


def test_who_stores_nothing_asks_the_database_nothing(fleet: Fleet) -> None:
    with ExitStack() as stack:
        provider = stack.enter_context(serving([]))
        running = stack.enter_context(gateway(fleet.folder, **fleet.gateway("gateway", provider.url)))
        provider.replies[:] = [stream_of("openai-chat", reply("text"))]
        for path, body in (
            ("/v1/responses", {"input": "Hi", "store": False}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
        ):
            for _ in range(3):
                assert post(running, {"model": "via-openai-chat", **body}, "one", path)[0] == 200
        responses = running.gateway._stores.responses
        assert responses._database._executor is None  # type: ignore[union-attr]


def test_follow_ups_at_other_gateways(fleet: Fleet) -> None:
    with ExitStack() as stack:
        provider = stack.enter_context(serving([]))
        running = [
            stack.enter_context(gateway(fleet.folder, **fleet.gateway(f"gateway-{number}", provider.url)))
            for number in range(2)
        ]
        provider.replies[:] = [stream_of("openai-chat", reply("text"))]
        previous = None
        for number in range(4):
            body = {"model": "via-openai-chat", "input": f"Hi {number}", "previous_response_id": previous}
            status, answer = post(running[number % 2], body, "one")
            assert status == 200, answer
            assert (post(running[0], {**body, "previous_response_id": answer["id"]}, "two"))[0] == 404
            previous = answer["id"]
        asked = json.loads(provider.requests[-1].body)["messages"]
        assert [message["content"] for message in asked if message["role"] == "user"] == [f"Hi {n}" for n in range(4)]
        assert ask(running[1], "GET", f"/v1/responses/{previous}")[0] == 200
        assert ask(running[1], "GET", f"/v1/responses/{previous}", "two")[0] == 404
        for each in running:
            database = each.gateway._stores.responses._database  # type: ignore[union-attr]
            database._connection._address = Secret("postgresql://u:p@127.0.0.1:1/none")
            database._connection.close()
        status, answer = post(running[0], {"model": "via-openai-chat", "input": "Alone"}, "one")
        assert status == 200 and answer["store"] is True  # it waits here
        status, again = post(
            running[0], {"model": "via-openai-chat", "input": "On", "previous_response_id": answer["id"]}
        )
        assert status == 200, again
        body = json.dumps({"model": "via-openai-chat", "input": "On", "previous_response_id": previous}).encode()
        for method, path in (("POST", "/v1/responses"), ("GET", f"/v1/responses/{previous}")):
            status, headers, text = running[1].request(method, path, body, {"authorization": "Bearer one"})
            assert (status, headers.get("retry-after")) == (503, "2"), text
            assert json.loads(text)["error"]["code"] == "store_away"

"""Play the recorded exchanges that stand beside the checkout, when they do, through the library's public functions.

Each answer is decoded whole and in pieces and held against naive readers of the five protocols (that lie with the
recordings and share no code with dragoman): the same text, thinking, calls, usage and stop reason; rare content is
kept; what a request asks is written or named in all five protocols; what is written again, whole and streamed, in all
five protocols is read back the same and fits the types of the vendors' SDKs. Exits 1 when something differs that
neither the recordings' own list nor `shared_recordings_excused.json` excuses, or when an entry of ours excuses nothing
any more. `--only PROTOCOL`, `--id ID`, `-v`.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import dragoman
from dragoman.events import Event, Failure, Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool, ToolCall

PROJECT = Path(__file__).resolve().parent.parent
RECORDINGS = PROJECT.parent / "shared" / "recordings"
EXCUSED = PROJECT / "tests" / "shared_recordings_excused.json"
PIECE = 61
#: Every so many cases what is written goes through the types of the SDKs too: they take longer than all else.
SAMPLE = 4


Rules: TypeAlias = dict[str, list[dict[str, Any]]]


class Tally:
    """How often each check ran, and what differed.

    `foreign`: what the recordings' own list excuses, `own`: what ours does. Each entry of ours must excuse something.
    """

    def __init__(self, foreign: Rules, own: Rules, is_expected: Callable[..., bool]) -> None:
        self.ran: collections.Counter[str] = collections.Counter()
        self.excused: collections.Counter[str] = collections.Counter()
        self.differ: dict[str, list[tuple[str, list[Any]]]] = collections.defaultdict(list)
        self._own = own
        self._rules = {check: [*foreign.get(check, []), *own.get(check, [])] for check in {**foreign, **own}}
        self._is_expected = is_expected
        self._unused = {
            (check, rule["why"], id) for check, rules in own.items() for rule in rules for id in rule["ids"]
        }

    def add(self, check: str, case: dict[str, Any], problems: list[Any]) -> None:
        """Note what a check found; nothing is good."""
        self.ran[check] += 1
        if not problems:
            return
        self._use(check, case["id"], [json.dumps(problem, default=str) for problem in problems])
        if self._is_expected(self._rules, case["id"], check, problems):
            self.excused[check] += 1
        else:
            self.differ[check].append((case["id"], problems))

    def _use(self, check: str, id: str, problems: list[str]) -> None:
        for name, rules in self._own.items():
            for rule in rules if check == name or (name.endswith(" ") and check.startswith(name)) else ():
                if any(rule["match"] in problem for problem in problems):
                    self._unused.discard((name, rule["why"], id))

    def unused(self) -> list[str]:
        """Entries of our list that excused nothing: they must leave it. Of a run over all recordings only."""
        return [
            f"excuses nothing, remove it from {EXCUSED.name}: {check} {id}" for check, _, id in sorted(self._unused)
        ]


def ids() -> Callable[[], str]:
    """Ids that count up."""
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):024d}"


def events_of(case: dict[str, Any], tools: tuple[Tool, ...], pieces: list[bytes], *, in_order: bool) -> list[Event]:
    """The events of a body that comes in these pieces."""
    protocol, new_id = PROTOCOLS[case["protocol"]], ids()
    stages = stages_for(tools, Policy(sequential=in_order), new_id=new_id)
    reader = Reader(protocol.decoder(new_id=new_id, offered_names=frozenset(tool.name for tool in tools)), stages)
    return [event for piece in pieces for event in reader.feed(piece)] + reader.close()


def tools_of(case: dict[str, Any]) -> tuple[Tool, ...]:
    """The tools that the request offered."""
    if not isinstance(case["request"], dict):
        return ()
    _, _, path = case["url"].partition("://")
    try:
        parsed = PROTOCOLS[case["protocol"]].parse_request(
            json.dumps(case["request"]).encode(), path=f"/{path.partition('/')[2]}"
        )
    except dragoman.DragomanError:
        return ()
    return parsed.request.tools


def play(case: dict[str, Any], number: int, tally: Tally, inside: Any, readers: Any, sdk: dict[str, Any]) -> None:
    """All checks of one recording."""
    name, body, status, tools = case["protocol"], case["bytes"], case["status"], tools_of(case)
    reply = dragoman.decode(body, name, tools=tools, status=status)
    view = inside.view(reply)
    naive = readers.read(name, body)
    tally.add("b", case, inside.reading(case, naive, view))
    if status >= 400:
        return
    pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
    whole, cut = (fold(events_of(case, tools, each, in_order=False)) for each in ([body], pieces))
    tally.add("a cuts", case, [] if cut == whole else [("another reply when it comes in pieces",)])
    if naive["error"]:
        return
    held: tuple[list[str], set[Any], set[str]] = ([], set(), set())
    inside.dump(reply, *held)
    lost, total = inside.losses(naive["frames"], held)
    for kind, gone in inside.kinds(name, lost, total, " ".join(f"{d.where} {d.seen}" for d in reply.deviations)):
        low = "low: " if kind.startswith("low") else ""
        tally.add(f"{low}b2 {name} {kind.removeprefix('low: ')}", case, [("lost", *gone[:3])] if gone else [])
    events = events_of(case, tools, [body], in_order=True)
    for target in PROTOCOLS:
        if not any(isinstance(part, ToolCall) and part.kind == "custom" for part in reply.parts):
            checker = sdk.get(target) if number % SAMPLE == 0 else None
            if checker and target == name and refused_by_types("", naive["frames"], checker[naive["streamed"]]):
                checker = None  # the vendor's own answer does not fit the vendor's own types
            tally.add(f"c {name} -> {target}", case, round_trip(events, target, view, readers, inside, checker))


def round_trip(
    events: list[Event], target: str, view: dict[str, Any], readers: Any, inside: Any, checker: Any
) -> list[Any]:
    """What is not the same when an answer is written in a protocol and read again."""
    reply, problems = fold(events), []
    for form, written in written_forms(reply, events, target):
        if written is None:
            return [("aborted",)]
        naive = readers.read(target, written)
        if naive["odd"]:
            problems.append((form, "not well-formed"))
        if view["text"] not in (naive["text"], naive["text"] + naive["refusal"]):
            problems.append((form, "text", view["text"][:100], naive["text"][:100]))
        if inside.norm(naive["calls"]) != inside.norm(view["calls"]):
            problems.append((form, "calls", len(view["calls"]), len(naive["calls"])))
        back = inside.view(dragoman.decode(written, target))
        if back["devs"]:
            problems.append((form, "own output deviates", str(back["devs"])[:150]))
        if back["reason"] != view["reason"] and view["reason"] != "error":
            problems.append((form, "reason", view["reason"], back["reason"]))
        counts = [(each["usage"]["input"], each["usage"]["output"]) for each in (view, back)]
        if counts[0] != counts[1] and counts[0][1] is not None:
            problems.append((form, "usage", str(counts[0]), str(counts[1])))
        if checker is not None:
            problems += refused_by_types(form, naive["frames"], checker[0 if form == "whole" else 1])
    return problems


def refused_by_types(form: str, frames: list[Any], check: Callable[[Any], Any]) -> list[Any]:
    """The first frame that the types of an SDK refuse."""
    for frame in frames:
        if frame.get("error") and "output" not in frame:
            continue
        try:
            check(frame)
        except (ValueError, AttributeError) as problem:  # Google's enums take no number that way
            return [(form, "sdk", str(problem)[:200])]
    return []


def asked(case: dict[str, Any], tally: Tally, inside: Any) -> None:
    """What a request asks is in what each protocol's provider gets, or it is named: its telling fields and the tools
    that a provider runs."""
    if not isinstance(case["request"], dict):
        return
    name, (_, _, path) = case["protocol"], case["url"].partition("://")
    try:
        parsed = PROTOCOLS[name].parse_request(json.dumps(case["request"]).encode(), path=f"/{path.partition('/')[2]}")
    except dragoman.DragomanError:
        return
    for target in PROTOCOLS:
        rendered = PROTOCOLS[target].render_request(parsed.request)
        said = [f"{each.where} {each.seen}" for each in (*parsed.deviations, *rendered.deviations)]
        body = json.loads(rendered.http.body)
        for what, is_gone in inside.silent(case["request"], body, said, name, target):
            where = "same protocol" if target == name else "other protocol"
            tally.add(f"d silent: {where}: {name} {what}", case, [("lost without a word", target)] if is_gone else [])


def written_forms(reply: Reply, events: list[Event], target: str) -> Iterator[tuple[str, bytes | None]]:
    """A response written whole and as a stream; None for a stream that had to be cut."""
    protocol, model = PROTOCOLS[target], reply.model or "m"
    if not isinstance(reply.error, Failure):
        yield "whole", protocol.render_response(reply, new_id=ids(), model=model, created=1)
    encoder = protocol.encoder(new_id=ids(), model=model, created=1)
    stream = encoder.encode(events)
    yield "stream", None if encoder.aborted else stream


def know_modules_of_before() -> None:
    """The readers beside the recordings import two modules by the names that they had before the house was moved."""
    sys.modules["dragoman.contract"] = importlib.import_module("dragoman.protocol")
    stages = importlib.import_module("dragoman.stages")
    vars(stages).update(Policy=Policy, stages_for=stages_for)


def main() -> int:
    """Play and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PROTOCOLS))
    parser.add_argument("--id", action="append")
    parser.add_argument("-v", action="store_true", help="say what differs")
    options = parser.parse_args()
    if not (RECORDINGS / "inside.py").exists():
        print("recorded exchanges: not beside this checkout, not played")
        return 0
    sys.path.insert(0, str(RECORDINGS))
    know_modules_of_before()
    inside, readers = importlib.import_module("inside"), importlib.import_module("readers")
    rules = json.loads((RECORDINGS / "expected.json").read_text(encoding="utf-8"))
    own = json.loads(EXCUSED.read_text(encoding="utf-8"))
    tally, sdk, count = Tally(rules, own, inside.is_expected), inside.sdk_checkers(), 0
    chosen = argparse.Namespace(only=options.only, id=options.id, limit=None, repo=None)
    for count, case in enumerate(inside.load(chosen), 1):
        try:
            asked(case, tally, inside)
            play(case, count, tally, inside, readers, sdk)
        except Exception as problem:  # one that raises is one that fails
            tally.add("raised", case, [f"{type(problem).__name__}: {problem}"])
    for check in sorted(tally.ran):
        differ = tally.differ[check]
        if differ or options.v:
            print(f"{check}: {tally.ran[check]} ran, {tally.excused[check]} excused, {len(differ)} differ")
        for id, problems in differ[: 400 if options.v else 3]:
            print(f"    {id} {str(problems)[:300]}")
    unused = tally.unused() if not (options.only or options.id) else []
    print(*unused, sep="\n", end="\n" if unused else "")
    failed = sum(len(found) for check, found in tally.differ.items() if not check.startswith("low")) + len(unused)
    silent = [check for check in tally.ran if check.startswith("d silent: other protocol")]
    lost, tried = (sum(len(tally.differ[each]) for each in silent), sum(tally.ran[each] for each in silent))
    print(f"requests: {lost} of {tried} telling fields and server tools silent in another protocol")
    print(f"recorded exchanges: {count} played, {sum(tally.ran.values())} checks, {failed} differ")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())

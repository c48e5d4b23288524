"""The loop: calls and results, mistakes told to the model, interruption, and that every call always has its result."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent.faces import Bench, Watching, check_sound
from agent.playing import call, script
from dragoman.agent.interface import CallBegins, Failed, Verdict
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.tools.own import _planner
from dragoman.agent.tools.search import find_ripgrep, search_tool
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.agent.work_folder import WorkFolder
from dragoman.events import TextDelta, ToolCallDelta
from dragoman.inputs.functions import tool_of
from dragoman.protocols import PROTOCOLS
from dragoman.types import Text, Thinking, Tool, ToolCall


def run(bench: Bench, prompt: str = "Do it") -> str:
    reason = asyncio.run(bench.agent.run(prompt))
    check_sound(bench.session)
    return reason


def waiting_tool(started: asyncio.Event, *, forever: bool = True) -> Planner:
    def plan(asked: ToolCall) -> Plan:
        async def do() -> Outcome:
            started.set()
            await asyncio.sleep(3600 if forever else 0)
            return Outcome("done")

        return other_plan(asked, "wait", do)

    return Planner(Tool("wait"), plan)


def test_reads_edits_runs_and_answers(tmp_path: Path) -> None:
    brain = script(
        [Thinking("look first"), call("read", path="a.py"), call("list")],
        call("edit", path="a.py", old="1", new="2"),
        call("run", argv=["cat", "a.py"]),
        "The value is 2 now.",
    )
    bench = Bench(tmp_path, brain)
    (bench.place / "a.py").write_text("x = 1\n")
    assert run(bench) == "answered"
    assert (bench.place / "a.py").read_text() == "x = 2\n"
    assert bench.results() == [
        ("read", "x = 1", False),
        ("list", "a.py  6 bytes", False),
        ("edit", "changed a.py (+1 -1 lines)", False),
        ("run", "x = 2\n(exit status 0)", False),
    ]
    assert [plan.tool for plan in bench.face.asked] == ["edit", "run"]
    assert "".join(event.text for event in bench.face.events if isinstance(event, TextDelta)) == "The value is 2 now."
    assert [notice.call.name for notice in bench.face.notices if isinstance(notice, CallBegins)] == [
        "read", "list", "edit", "run",
    ]  # fmt: skip


def test_arguments_are_seen_while_they_grow(tmp_path: Path) -> None:
    bench = Bench(tmp_path, script(call("write", path="a.txt", content="word " * 40), "done"))
    run(bench)
    pieces = [event.text for event in bench.face.events if isinstance(event, ToolCallDelta)]
    assert len(pieces) > 5
    assert "".join(pieces).count("word") == 40


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("fly", to="Rome"), "there is no tool 'fly'; there are: read, list"),
        (call("read"), "missing required field `path`"),
        (call("read", path={"a": 1}), "path"),
        (call("read", path="../a"), "leaves it with .."),
        (call("read", path="none.txt"), "no such file"),
        (call("edit", path="a.txt", old="zzz", new="y"), "found it nowhere"),
        (call("edit", path="a.txt", old="l", new="y"), "found it 2 times"),
        (call("run", argv=[]), "expected a command"),
        (call("run", argv=["no-such-program-here"]), "there is no program"),
        (call("run", argv=["false"]), "exit status 1"),
        (call("search", pattern="("), "regular expression"),
    ],
)
def test_a_mistake_is_told_to_the_model_which_goes_on(tmp_path: Path, asked: ToolCall, told: str) -> None:
    bench = Bench(tmp_path, script(asked, "I see."))
    (bench.place / "a.txt").write_text("hello")
    assert run(bench) == "answered"
    [(_, text, is_error)] = bench.results()
    assert told.lower() in text.lower()
    assert is_error


def test_a_call_that_came_cut_is_told_in_words(tmp_path: Path) -> None:
    cut = (
        b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":'
        b'"function","function":{"name":"write","arguments":"{\\"path\\": \\"a"}}]}}]}\n\n'
        b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    bench = Bench(tmp_path, script(cut, "Again later."))
    assert run(bench) == "answered"
    assert bench.results() == []
    told = bench.session.messages[-2]
    assert told.role == "user"
    assert "Your call of write was not run" in told.text
    assert list(bench.place.iterdir()) == []


def test_no_call_beside_a_cut_one_is_run(tmp_path: Path) -> None:
    good = b'{"index":0,"id":"c1","type":"function","function":{"name":"write","arguments":"%s"}}'
    good %= rb"{\"path\": \"a\", \"content\": \"x\"}"
    cut = b'{"index":1,"id":"c2","type":"function","function":{"name":"write","arguments":"{\\"path\\": \\"b"}}'
    answer = (
        b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[' + good + b"," + cut + b"]}}]}\n\n"
        b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    bench = Bench(tmp_path, script(answer, "Again later."))
    assert run(bench) == "answered"
    [(name, told, is_error)] = bench.results()
    assert (name, is_error) == ("write", True)
    assert "another call of the same answer" in told
    assert list(bench.place.iterdir()) == []


def test_a_refused_call_is_not_run_and_the_model_hears_the_users_words(tmp_path: Path) -> None:
    face = Watching(lambda plan: Verdict("no", "use python instead"))
    bench = Bench(tmp_path, script(call("write", path="a", content="x"), "ok"), face=face)
    run(bench)
    assert bench.results() == [("write", "refused: use python instead", True)]
    assert not (bench.place / "a").exists()


def test_yes_for_the_session_holds_for_the_identical_call_alone(tmp_path: Path) -> None:
    face = Watching(lambda plan: Verdict("session"))
    one, other = call("run", argv=["echo", "a"]), call("run", argv=["echo", "b"])
    bench = Bench(tmp_path, script(one, one, other, "done"), face=face)
    run(bench)
    assert [plan.subject for plan in face.asked] == [("echo", "a"), ("echo", "b")]


def test_two_edits_of_one_answer_see_each_other(tmp_path: Path) -> None:
    both = [call("edit", path="a", old="1", new="2"), call("edit", path="a", old="2", new="3")]
    bench = Bench(tmp_path, script(both, "done"), rules=["edit"])
    (bench.place / "a").write_text("1")
    run(bench)
    assert (bench.place / "a").read_text() == "3"


def test_a_failing_tool_of_the_user_is_told(tmp_path: Path) -> None:
    def divide(by: int) -> float:
        """Divide 1."""
        return 1 / by

    bench = Bench(tmp_path, script(call("divide", by=0), call("divide", by=4), "done"), _planner(tool_of(divide), "x"))
    run(bench)
    assert bench.results() == [("divide", "ZeroDivisionError: division by zero", True), ("divide", "0.25", False)]


def test_an_interrupted_tool_leaves_every_call_with_a_result(tmp_path: Path) -> None:
    async def play() -> None:
        started = asyncio.Event()
        answer = [call("wait"), call("read", path="a"), call("wait", again=1)]
        bench = Bench(tmp_path, script(answer, "later"), waiting_tool(started))
        task = asyncio.create_task(bench.agent.run("go"))
        await started.wait()
        task.cancel()
        assert await task == "interrupted"
        check_sound(bench.session)
        texts = [text for _, text, _ in bench.results()]
        assert "not known" in texts[0] and "the user stopped this turn" in texts[0]
        assert texts[2].startswith("not run")
        assert await bench.agent.run("and now?") == "answered"
        check_sound(bench.session)

    asyncio.run(play())


def test_an_interrupted_answer_keeps_its_words_and_no_call(tmp_path: Path) -> None:
    async def play() -> None:
        bench = Bench(tmp_path, script([Text("Let me see what is there. "), call("list")], "fine"))
        task = asyncio.create_task(bench.agent.run("go"))

        def stop_at_first_text(events: object) -> None:
            if any(isinstance(event, TextDelta) for event in events):  # type: ignore[attr-defined]
                task.cancel()

        bench.face.show = stop_at_first_text  # type: ignore[method-assign]
        assert await task == "interrupted"
        check_sound(bench.session)
        assert bench.session.messages[-1].role == "assistant"
        assert bench.session.messages[-1].tool_calls == []
        assert "Let me" in bench.session.messages[-1].text

    asyncio.run(play())


def test_a_failed_answer_runs_nothing(tmp_path: Path) -> None:
    broken = (
        b'data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":'
        b'"function","function":{"name":"write","arguments":"{\\"path\\": \\"a\\", \\"content\\": \\"b\\"}"}}]}}]}\n\n'
        b'data: {"error": {"message": "the server is on fire", "type": "server_error"}}\n\n'
    )
    bench = Bench(tmp_path, script(broken), rules=["write"])
    assert run(bench) == "failed"
    assert [notice.failure.message for notice in bench.face.notices if isinstance(notice, Failed)] == [
        "the server is on fire (lab at http://127.0.0.1:9/v1/chat/completions)"
    ]
    assert list(bench.place.iterdir()) == []


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_the_whole_conversation_works_in_every_protocol(tmp_path: Path, protocol: str) -> None:
    table = f'[providers.lab]\nprotocol = "{protocol}"\nbase_url = "http://127.0.0.1:9"\n'
    brain = script(
        [Thinking("hm"), call("read", path="a"), call("list")], call("write", path="b", content="é"), "Done."
    )
    bench = Bench(tmp_path, brain, tables=table)
    (bench.place / "a").write_text("here")
    assert run(bench) == "answered"
    assert (bench.place / "b").read_text() == "é"
    assert [name for name, _, is_error in bench.results() if not is_error] == ["read", "list", "write"]


def test_more_calls_than_one_answer_may_have_are_refused(tmp_path: Path) -> None:
    many = [call("read", path=f"f{number}") for number in range(40)]
    bench = Bench(tmp_path, script(many, "done"))
    for number in range(40):
        (bench.place / f"f{number}").write_text("x")
    run(bench)
    assert [is_error for _, _, is_error in bench.results()] == [False] * 32 + [True] * 8


@pytest.mark.parametrize("ripgrep", [None, *([find_ripgrep()] if find_ripgrep() else [])])
def test_a_search_finds_lines_and_never_looks_into_files_of_keys(tmp_path: Path, ripgrep: str | None) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    for name in (".env", ".ENV.local", "server.pem", "sub/id_rsa", "sub/credentials"):
        (work / name).write_text("needle = secret")
    for name in ("a.py", "sub/b.txt", ".hidden"):
        (work / name).write_text("hay\nneedle = 1\n")
    (work / "link").symlink_to("/etc")
    folder = WorkFolder(work)
    tool = search_tool(folder, ripgrep=ripgrep)
    for asked, found in (
        (call("search", pattern="need.e"), [".hidden:2:needle = 1", "a.py:2:needle = 1", "sub/b.txt:2:needle = 1"]),
        (call("search", pattern="needle", path="sub"), ["sub/b.txt:2:needle = 1"]),
        (call("search", pattern="needle", files="*.py"), ["a.py:2:needle = 1"]),
        (call("search", pattern="needle", files=".env*"), ["(no match)"]),
        (call("search", pattern="root:"), ["(no match)"]),
    ):
        assert asyncio.run(tool.plan(asked).do()).text.split("\n") == found  # type: ignore[arg-type]
    folder.close()

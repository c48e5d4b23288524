"""Sessions: what was said and done is in the file, and comes back after any end of the process."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from agent.faces import Bench, Watching, check_sound
from agent.playing import call, script
from dragoman import _json
from dragoman.agent.session.folder import default_store, find_session, list_sessions
from dragoman.agent.session.session_file import Session
from dragoman.agent.tool_plan import Plan
from dragoman.errors import UsageError
from dragoman.inputs.saved_messages import message_of, record_of
from dragoman.types import Media, Message, Native, Opaque, Origin, Text, Thinking, ToolCall, ToolResult

MESSAGES = [
    Message("user", (Text("Grüße\n\u2028 'x'"), Media("image", "image/png", data="AAAA"))),
    Message(
        "assistant",
        (
            Thinking("hm", "sealed=="),
            Thinking("", None, "redacted=="),
            Text("let me", "signed"),
            ToolCall("call_1", "read", '{"n": 1e3, "p": 0.10}', signature="s"),
            ToolCall(
                "call_2",
                "patch",
                "*** free text",
                kind="custom",
                native=Native("openai-responses", {"a": _json.raw(1)}),
            ),
            Opaque("anthropic-messages", _json.raw({"type": "server_tool_use", "z": 1, "a": [2]})),
        ),
        native=Native("openai-responses", {"id": _json.raw("rs_1")}),
        origin=Origin("openai-responses", "lab/m"),
    ),
    Message("tool", (ToolResult("call_1", "read", (Text("a"), Media("image", url="https://x/y")), is_error=True),)),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.role)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    written = _json.encode(record_of(message))
    read = _json.typed_decoder(type(record_of(message)))(written)
    assert not isinstance(read, _json.Malformed)
    assert message_of(read) == message


def finished(tmp_path: Path) -> Bench:
    brain = script([call("write", path="a", content="1")], [call("edit", path="a", old="1", new="2")], "done")
    bench = Bench(tmp_path, brain, rules=["write", "edit"])
    asyncio.run(bench.agent.run("go"))
    return bench


def test_a_session_comes_back_whole(tmp_path: Path) -> None:
    bench = finished(tmp_path)
    messages, changes = bench.session.messages, bench.session.changes
    bench.close()
    session = Session.load(bench.session.path)
    assert session.messages == messages
    assert session.changes == changes
    assert (session.run, session.target, session.folder) == (1, "lab/m", str(tmp_path / "work"))
    session.close()


def test_file_and_folder_are_the_users_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        bench = finished(tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(bench.session.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(bench.session.path.parent.stat().st_mode) == 0o700


def test_every_prefix_of_the_file_can_be_resumed(tmp_path: Path) -> None:
    """The process may be killed at any byte."""
    bench = finished(tmp_path)
    content = bench.session.path.read_bytes()
    bench.close()
    first_line = content.index(b"\n") + 1
    path = tmp_path / "state" / "2-cut.jsonl"
    steps = [*range(first_line, len(content), 37), len(content)]
    for cut in steps:
        path.write_bytes(content[:cut])
        session = Session.load(path)
        again = Bench(tmp_path, script("I see"), session=session)
        asyncio.run(again.agent.settle())
        check_sound(session)
        if session.messages:
            asyncio.run(again.agent.run("and?"))
            check_sound(session)
        session.close()
        again.folder.close()
        assert path.read_bytes().endswith(b"\n")


def test_a_session_is_open_in_one_process_alone(tmp_path: Path) -> None:
    bench = finished(tmp_path)
    with pytest.raises(UsageError, match="open in another process"):
        Session.load(bench.session.path)
    bench.close()
    Session.load(bench.session.path).close()


@pytest.mark.parametrize(
    "content", [b"", b"{}\n", b'{"type":"opened"}\n', b"not json\n", b'{"type":"told","message":3}\n']
)
def test_what_is_no_session_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1-x.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        Session.load(path)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1-x.jsonl"
    path.write_bytes(b'{"type":"opened","version":2,"id":"x","folder":"/","target":"a/b","at":1}\n')
    with pytest.raises(UsageError, match="newer dragoman"):
        Session.load(path)


def test_an_unknown_outcome_is_asked_about_and_never_run_by_itself(tmp_path: Path) -> None:
    first = Bench(tmp_path, script([call("run", argv=["touch", "made"]), call("list")]))
    plan_of = first.agent.calls.toolbox.plan

    async def play() -> None:
        first.session.prompt(Message("user", (Text("go"),)), at=1)
        stream = first.client.ask("lab/m", first.agent.request())
        while await stream.next_batch():
            pass
        first.session.answer(stream.reply, first.agent.calls.admitted(stream.reply))
        asked = first.session.pending[0]
        plan: Plan = plan_of(asked)
        first.session.begin(asked, plan)
        await plan.do()  # and here the process is killed

    asyncio.run(play())
    (first.place / "made").unlink()
    first.close()

    for says_yes in (False, True):
        path = first.session.path.with_name(f"3-{says_yes}.jsonl")
        path.write_bytes(first.session.path.read_bytes())
        face = Watching()
        face.runs_again = says_yes
        again = Bench(tmp_path, script("I see"), session=Session.load(path), face=face)
        asyncio.run(again.agent.run("what now?"))
        check_sound(again.session)
        assert [each.name for each in face.asked_again] == ["run"]
        assert (again.place / "made").exists() is says_yes
        texts = [text for _, text, _ in again.results()]
        assert texts[0].startswith("(exit status 0)" if says_yes else "interrupted")
        assert texts[1].startswith("not run")
        again.close()


def test_sessions_are_listed_and_found(tmp_path: Path) -> None:
    bench = finished(tmp_path)
    bench.session.rename("colours")
    store = bench.session.path.parent
    bench.close()
    Session.create(store, folder=tmp_path, target="lab/m", id="zzz", at=5).close()  # nothing was said in it
    [saved] = list_sessions(store)
    assert (saved.name, saved.first, saved.target) == ("colours", "go", "lab/m")
    assert find_session(store, "colours") == bench.session.path
    assert find_session(store, "", folder=tmp_path / "work") == bench.session.path
    for wanted, folder in (("none", None), ("", tmp_path / "other")):
        with pytest.raises(UsageError, match="no session"):
            find_session(store, wanted, folder=folder)


def test_the_store_is_never_in_the_current_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert default_store(environ={"XDG_STATE_HOME": "state"}, home=home) == home / ".local/state/dragoman/sessions"
    assert default_store(environ={"XDG_STATE_HOME": "/s"}, home=home) == Path("/s/dragoman/sessions")

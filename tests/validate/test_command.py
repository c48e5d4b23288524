"""`dragoman validate` and what it keeps, with exit statuses; money, what is due, what is left."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from dragoman.cli.main import main
from dragoman.client import Client
from dragoman.proofs import ProofStore, is_proven, parse_export, render_export
from dragoman.types import Request
from validate import lies
from validate.scripted_model import BASE, KEY, MODEL, Lie, Scripted, scripted_model

TARGET = f"lab/{MODEL}"
DAY = 86_400
PROJECT = Path(__file__).resolve().parents[2]
#: (address of the server, more of the configuration) → the store in it
Configure = Callable[..., ProofStore]


def validate(*words: str) -> int:
    return main(["validate", "--per-minute", "60000", *words])


@pytest.fixture
def model() -> Iterator[Scripted]:
    with scripted_model() as running:
        yield running


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    monkeypatch.setenv("LAB_KEY", KEY)
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    monkeypatch.setenv("NO_COLOR", "1")

    def write(url: str, more: str = "") -> ProofStore:
        table = f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}"\napi_key = "env:LAB_KEY"\n'
        (tmp_path / "dragoman.toml").write_text(f'{table}[validate]\nstore = "proofs.db"\n{more}', encoding="utf-8")
        return ProofStore(tmp_path / "proofs.db", clock=time.time)

    return write


def test_a_good_model_is_proven_and_kept(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = configure(model.url)
    reports = [tmp_path / name for name in ("report.json", "report.html", "report.xml")]
    options = [word for file in reports for word in ("--report", str(file))]
    assert validate(TARGET, *options) == 0
    out = capsys.readouterr()
    assert out.out.startswith(
        f"{TARGET}\n  Usable as an agent: it calls the tool as asked and answers from its result.\n"
    )
    assert "openai-chat, quick suite, 4 requests" in out.out
    assert "Tool calling: proven. Stream: clean. Ways of calling tools that worked: native." in out.out
    assert is_proven(store.get(TARGET))
    assert json.loads(reports[0].read_bytes())["targets"][0]["target"] == TARGET
    assert b"cell-0-toolCall" in reports[1].read_bytes()
    assert ElementTree.parse(reports[2]).getroot().tag == "testsuites"
    assert not any(KEY in file.read_text() for file in reports)


def test_a_bad_one_is_named_with_what_failed(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_model(lie=lies.gives_wrong_arguments()) as model:
        store = configure(model.url)
        assert validate(TARGET) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"dragoman: 1 of 1 target did not pass: {TARGET}: its tools are not proven, tool-call failed"
    )
    proof = store.get(TARGET)
    assert proof is not None and not is_proven(proof)


def test_the_verdict_on_a_model_that_writes_prose(configure: Configure, capsys: pytest.CaptureFixture[str]) -> None:
    with scripted_model(lie=lies.writes_text()) as model:
        configure(model.url)
        assert validate(TARGET) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        f"{TARGET}\n  Not usable as an agent: it answers in prose instead of calling the tool.\n  why  text passed: "
    )
    assert "  do   Choose another model for an agent." in out


def test_a_server_that_is_not_there_proves_nothing_and_voids_nothing(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    store = configure(model.url)
    assert validate(TARGET) == 0
    before = store.all()
    configure(f"http://127.0.0.1:9{BASE['openai-chat']}")
    assert validate(TARGET, "--json") == 1
    assert f"{TARGET}: connection: " in capsys.readouterr().err
    assert store.all() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected a target provider/model, the name of a route, or --due"),
        (["coder"], "expected provider/model or the name of a route, got 'coder'"),
        ([TARGET, "olama/m"], "unknown provider 'olama'; nearest: ollama"),
        ([TARGET, "--report", "a.txt"], "expected a file that ends in"),
        ([TARGET, "--trials", "0"], "expected a whole number, at least 1"),
        ([TARGET, "--max-cost", "much"], "expected US dollars"),
    ],
)
def test_wrong_usage(
    words: list[str], message: str, model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(model.url)
    try:
        status = validate(*words)
    except SystemExit as end:  # argparse
        status = int(str(end.code))
    assert status == 2
    assert message in capsys.readouterr().err
    assert model.requests == []


def test_several_targets_at_a_time_and_routes_by_name(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    more = f'[providers.other]\nprotocol = "openai-chat"\nbase_url = "{model.url}"\napi_key = "env:LAB_KEY"\n'
    store = configure(model.url, f'{more}[routes.coder]\ntargets = ["{TARGET}", "other/{MODEL}"]\n')
    assert validate("coder", TARGET, "--jobs", "2", "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [one["target"] for one in json.loads(line)["targets"]] == [TARGET, f"other/{MODEL}"]
    assert {proof.target for proof in store.all()} == {TARGET, f"other/{MODEL}"}


def test_a_route_goes_by_what_was_shown(model: Scripted, configure: Configure, tmp_path: Path) -> None:
    with scripted_model(lie=lies.writes_text()) as liar:
        configure(
            liar.url,
            f'[providers.good]\nprotocol = "openai-chat"\nbase_url = "{model.url}"\napi_key = "env:LAB_KEY"\n'
            f'[routes.coder]\ntargets = ["{TARGET}", "good/{MODEL}"]\nonly_validated = true\n',
        )
        assert validate("coder") == 1
        asked = len(liar.requests)
        with Client(tmp_path / "dragoman.toml") as client:
            reply = client.reply("coder", "Repeat this word, and say nothing else: tamarin")
        assert (reply.text, reply.origin and reply.origin.target) == ("tamarin", f"good/{MODEL}")
        assert len(liar.requests) == asked


# ---------------------------------------------------------------- money


PRICED = f'[prices."{TARGET}"]\ninput = 1000\noutput = 2000\n'


def test_what_costs_money_needs_leave(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(model.url, PRICED)
    assert validate(TARGET) == 2
    assert f"{TARGET} costs money; say --allow-paid" in capsys.readouterr().err
    assert model.requests == []
    configure(model.url, f'{PRICED}[models."{TARGET}"]\npaid = false\n')
    assert validate(TARGET) == 0
    configure(model.url, f'[models."{TARGET}"]\npaid = true\n')
    assert validate(TARGET) == 2
    assert validate(TARGET, "--allow-paid", "--max-cost", "1") == 2
    assert "no price is known, so --max-cost cannot hold" in capsys.readouterr().err


def test_a_run_ends_before_it_costs_more_than_its_cap(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    store = configure(model.url, PRICED)
    assert validate(TARGET, "--allow-paid", "--max-cost", "0.8", "--json") == 1
    out = capsys.readouterr()
    assert "the spend cap of $0.8 is reached" in out.err
    (target,) = json.loads(out.out)["targets"]
    assert 0 < float(target["proof"]["cost"]["usd"]) <= 0.8
    assert 1 <= len(model.requests) < 4
    assert store.all() == ()


# ---------------------------------------------------------------- what is due


def test_only_what_is_due_is_asked_again(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    more = f'[routes.coder]\ntargets = ["{TARGET}"]\n'
    store = configure(model.url, more)
    assert validate("--due") == 0
    assert len(model.requests) == 4
    assert validate("--due") == 0
    assert len(model.requests) == 4 and "nothing is due" in capsys.readouterr().err
    (proof,) = store.all()
    (tmp_path / "proofs.db").unlink()
    store.put(msgspec.structs.replace(proof, at=int(time.time()) - 28 * DAY))
    assert validate("--due") == 0
    assert len(model.requests) == 8
    configure(model.url, f'{more}[prices."{TARGET}"]\ninput = 1\noutput = 1\n')
    (tmp_path / "proofs.db").unlink()
    assert validate("--due") == 0
    assert len(model.requests) == 8  # it costs money now


def test_an_interrupted_run_goes_on(model: Scripted, configure: Configure) -> None:
    configure(model.url)
    assert validate(TARGET) == 0
    assert validate(TARGET, "--resume") == 0
    assert len(model.requests) == 4
    assert validate(TARGET, "--resume", "--full-suite") == 0
    assert len(model.requests) > 30


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_what_was_done_before_an_interruption_is_not_asked_again(model: Scripted, configure: Configure) -> None:
    reached, released = threading.Event(), threading.Event()

    def refuses(request: Request) -> None:
        reached.set()
        released.wait(30)

    script = (
        "import signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from dragoman.cli.main import main\n"
        "sys.exit(main(['validate', '--per-minute', '60000', *sys.argv[1:]]))"
    )
    targets = [TARGET, f"slow/{MODEL}"]
    with scripted_model(lie=Lie(refuses=refuses)) as slow:
        store = configure(
            model.url, f'[providers.slow]\nprotocol = "openai-chat"\nbase_url = "{slow.url}"\napi_key = "env:LAB_KEY"\n'
        )
        with subprocess.Popen([sys.executable, "-c", script, *targets], stdout=subprocess.DEVNULL) as run:
            assert reached.wait(30)
            run.send_signal(signal.SIGINT)
            assert run.wait(30) == 130
        released.set()
        assert [proof.target for proof in store.all()] == [TARGET]
        assert validate(*targets, "--resume") == 0
    assert len(model.requests) == 4
    assert {proof.target for proof in store.all()} == set(targets)


# ---------------------------------------------------------------- make live


def test_the_tool_loop_of_make_live_wants_the_right_number(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("live", PROJECT / "scripts" / "live.py")
    assert spec is not None and spec.loader is not None
    live = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(live)
    with scripted_model() as model:
        configure(model.url)
        assert live.run_loop(TARGET, None)
    assert "tool loop: 4 steps, tools find_part, count_stock, double: right" in capsys.readouterr().out
    with scripted_model(lie=lies.writes_text()) as model:
        configure(model.url)
        assert not live.run_loop(TARGET, None)


# ---------------------------------------------------------------- export and import


def test_proofs_travel_as_json(
    model: Scripted, configure: Configure, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = configure(model.url)
    exported_file, other_file = tmp_path / "out.json", tmp_path / "in.json"
    assert validate(TARGET, "--export", str(exported_file)) == 0
    exported = parse_export(exported_file.read_bytes(), where="out.json")
    assert exported == store.all()
    other_file.write_bytes(render_export([msgspec.structs.replace(exported[0], target="lab/elsewhere")]))
    assert validate("--import", str(other_file)) == 0
    capsys.readouterr()
    assert validate("--export", "-") == 0
    both = parse_export(capsys.readouterr().out.encode(), where="-")
    assert {proof.target for proof in both} == {TARGET, "lab/elsewhere"}
    other_file.write_bytes(b"[]")
    assert validate("--import", str(other_file)) == 2

"""The configuration, changed while the gateway runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conversations import reply
from dragoman.config import Config, load_config, read_file
from dragoman.errors import ConfigError
from dragoman.gateway.process.reload import Reload
from dragoman.gateway.telemetry.log import Log
from dragoman.gateway.telemetry.record import Observer
from gateway.running import Running, gateway, provider_config, stream_of, wire
from gateway.telemetry.test_metrics import samples
from scripted import chunk, head


@contextmanager
def reloading(
    folder: Path, load: Callable[..., Config] = load_config
) -> Iterator[tuple[Running, Reload, list[dict[str, Any]]]]:
    """A gateway whose file is watched, and its log."""
    log = Log(None)
    lines: list[dict[str, Any]] = []
    log.listeners.add(lambda line: lines.append(json.loads(line)))
    observer = Observer(None, log)
    with gateway(folder, observer=observer) as running:
        file = folder / "dragoman.toml"

        def prepare() -> Callable[[], None]:
            return partial(running.gateway.take, load(file, environ={}, home=folder))

        reload = Reload(file, prepare=prepare, observer=observer)
        watching = asyncio.run_coroutine_threadsafe(reload.watch(), running.loop)
        try:
            yield running, reload, lines
        finally:
            watching.cancel()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def models(running: Running) -> list[str]:
    _, _, body = running.request("GET", "/api/tags")
    return [row["name"] for row in json.loads(body)["models"]]


def replace(file: Path, text: str) -> None:
    """As careful editors write: a new file takes the old one's name."""
    new = file.with_suffix(".new")
    new.write_text(text, encoding="utf-8", errors="surrogatepass")
    os.replace(new, file)


ROUTE = '\n[routes."{}"]\ntargets = ["openai-chat/model-2"]\n'


@pytest.mark.parametrize("write", [replace, lambda file, text: file.write_text(text, encoding="utf-8")])
def test_a_change_is_in_force_for_the_next_request(tmp_path: Path, write: Callable[[Path, str], Any]) -> None:
    with reloading(tmp_path) as (running, reload, lines):
        file = tmp_path / "dragoman.toml"
        text = file.read_text(encoding="utf-8")
        assert "added" not in models(running)
        write(file, text + ROUTE.format("added"))
        until(lambda: reload.generation == 2)
        assert "added" in models(running)
        running.answer(stream_of("openai-chat", reply("text")))
        body = {"model": "added", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        assert running.request("POST", "/v1/chat/completions", json.dumps(body).encode())[0] == 200
        assert running.provider.requests[0].json["model"] == "model-2"
        write(file, text)
        until(lambda: reload.generation == 3)
        assert "added" not in models(running)
        found = samples(running.request("GET", "/metrics")[2])
    assert found['dragoman_config_reloads_total{result="taken"}'] == 2
    assert found["dragoman_config_generation"] == 3
    assert [line["kind"] for line in lines].count("config") == 2


WRONG = [
    "[routes", "[routes.x]\ntargets = []\n", "[server]\nno_such = 1\n", '[providers.x]\nprotocol = "soap"\n',
    "", " \n", f"[validate]\nexpires_days = {'9' * 5_000}\n", "a" + ".a" * 20_000 + " = 1\n", "x = " + "[" * 5_000,
    "# " + "x" * 1_100_000, "[http]\nretries = 0\n\0", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_a_wrong_file_changes_nothing_and_is_told_once(tmp_path: Path, wrong: str) -> None:
    with reloading(tmp_path) as (running, reload, lines):
        file = tmp_path / "dragoman.toml"
        good, before = file.read_text(encoding="utf-8"), models(running)
        replace(file, wrong)
        until(lambda: any(line["kind"] == "config" for line in lines))
        for _ in range(3):  # looked at again, not told again
            os.utime(file)
            time.sleep(0.06)
        assert models(running) == before and reload.generation == 1
        assert [line["kind"] for line in lines].count("config") == 1
        assert "not taken" in next(line["text"] for line in lines if line["kind"] == "config")
        assert running.request("GET", "/readyz")[2].startswith(b"ok\nconfig: the file was refused")
        found = samples(running.request("GET", "/metrics")[2])
        assert found['dragoman_config_reloads_total{result="refused"}'] == 1
        replace(file, good + ROUTE.format("mended"))
        until(lambda: reload.generation == 2)
        assert "mended" in models(running)
        assert running.request("GET", "/readyz")[2] == b"ok\n"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_stops_nobody(tmp_path: Path, kind: str) -> None:
    """Opening a pipe waits for a writer, and a device never ends."""
    with reloading(tmp_path) as (running, reload, lines):
        file = tmp_path / "dragoman.toml"
        text = file.read_text(encoding="utf-8")
        new = tmp_path / "new"
        if kind == "pipe":
            os.mkfifo(new)
        elif kind == "folder":
            file.unlink()
            new.mkdir()
        else:
            new.symlink_to("/dev/zero")
        new.replace(file)
        until(lambda: any("regular file" in line.get("text", "") for line in lines))
        assert running.request("GET", "/livez")[0] == 200
        file.rmdir() if kind == "folder" else file.unlink()
        replace(file, text + ROUTE.format("mended"))
        until(lambda: reload.generation == 2)


def test_a_pipe_that_takes_a_files_place_while_it_is_read_stops_nobody(tmp_path: Path) -> None:
    """Between the look at a file and its opening; nor does one that says it is a file and never ends, as /proc/kmsg."""

    class Swapped(type(tmp_path)):  # type: ignore[misc]
        def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
            return os.stat(__file__)

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="regular file"):
        read_file(Swapped(tmp_path / "pipe"), most=9)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_key_that_is_no_file_stops_nobody(tmp_path: Path, kind: str) -> None:
    key = tmp_path / "key"
    os.mkfifo(key) if kind == "pipe" else key.symlink_to("/dev/zero")
    with reloading(tmp_path) as (running, _, lines):
        file = tmp_path / "dragoman.toml"
        replace(file, '[server]\nkeys = ["file:key"]\n' + file.read_text(encoding="utf-8"))
        until(lambda: any("cannot read key: expected a regular file" in line.get("text", "") for line in lines))
        assert running.request("GET", "/api/tags")[0] == 200


def test_a_file_that_was_refused_for_its_key_is_taken_when_it_is_put_there_again(tmp_path: Path) -> None:
    """Its bytes are those that were refused; what they name has changed."""
    key = tmp_path / "key"
    with reloading(tmp_path) as (running, _, lines):
        file = tmp_path / "dragoman.toml"
        text = file.read_text("utf-8") + ROUTE.format("late") + f'\n[server]\nkeys = ["file:{key}"]\n'
        assert "[server]" not in file.read_text("utf-8")
        replace(file, text)
        until(lambda: any("not taken" in line.get("text", "") for line in lines))
        key.write_text("0123456789abcdefghijklmnop")
        replace(file, text)
        until(lambda: any("is in force" in line.get("text", "") for line in lines))
        assert running.request("GET", "/v1/models")[0] == 401


def test_a_fault_in_reading_ends_no_watching(tmp_path: Path) -> None:
    faults = [ZeroDivisionError("a secret")]

    def load(file: Path, **options: Any) -> Config:
        if faults:
            raise faults.pop()
        return load_config(file, **options)

    with reloading(tmp_path, load) as (running, reload, lines):
        file = tmp_path / "dragoman.toml"
        text = file.read_text(encoding="utf-8")
        replace(file, text + ROUTE.format("first"))
        until(lambda: any("ZeroDivisionError" in line.get("text", "") for line in lines))
        assert not any("a secret" in json.dumps(line) for line in lines)
        replace(file, text + ROUTE.format("second"))
        until(lambda: reload.generation == 2)
        assert "second" in models(running)


def test_a_file_never_takes_the_keys_away(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"the-key").hexdigest()
    with gateway(tmp_path, f'[server]\nkeys = ["sha256:{digest}"]') as running:
        for text in ("", "[server]\nkeys = []\n"):
            (tmp_path / "dragoman.toml").write_text(text, encoding="utf-8")
            config = load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path)
            with pytest.raises(ConfigError, match="the file has none any more"):
                running.gateway.take(config)
            assert running.request("GET", "/api/tags")[0] == 401
        running.gateway.take(config, allow_open=True)
        assert running.request("GET", "/api/tags")[0] == 200


def test_a_file_that_goes_keeps_the_one_before(tmp_path: Path) -> None:
    with reloading(tmp_path) as (running, reload, lines):
        file = tmp_path / "dragoman.toml"
        before = models(running)
        text = file.read_text(encoding="utf-8")
        file.unlink()
        until(lambda: any(line["kind"] == "config" for line in lines))
        assert models(running) == before and reload.generation == 1
        file.write_text(text + ROUTE.format("back"), encoding="utf-8")
        until(lambda: reload.generation == 2)


def test_a_stream_under_way_goes_on_as_it_began(tmp_path: Path) -> None:
    import http.client

    with reloading(tmp_path) as (running, reload, _):
        data = wire("openai-chat", reply("text"))
        rest = threading.Semaphore(0)
        running.answer([head(200), chunk(data[:430]), rest, chunk(data[430:]), b"0\r\n\r\n"])
        connection = http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)
        body = {"model": "via-openai-chat", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        replace(tmp_path / "dragoman.toml", ROUTE.format("only").replace("openai-chat/", "ollama/"))
        until(lambda: reload.generation == 2)
        assert models(running) == ["only", "embedded/smollm2"]
        rest.release()
        assert response.read().endswith(b"data: [DONE]\n\n")
        connection.close()


def test_client_keys_change_at_once(tmp_path: Path) -> None:
    with reloading(tmp_path) as (running, reload, _):
        file = tmp_path / "dragoman.toml"
        text = file.read_text(encoding="utf-8")
        digest = hashlib.sha256(b"the-key").hexdigest()
        replace(file, f'[server]\nkeys = ["sha256:{digest}"]\n{text}')
        until(lambda: reload.generation == 2)
        assert running.request("GET", "/api/tags")[0] == 401
        assert running.request("GET", "/api/tags", headers={"x-api-key": "the-key"})[0] == 200
        replace(file, f'[server]\nkeys = ["sha256:{hashlib.sha256(b"another").hexdigest()}"]\n{text}')
        until(lambda: reload.generation == 3)
        assert running.request("GET", "/api/tags", headers={"x-api-key": "the-key"})[0] == 401


def test_keys_cannot_be_taken_from_a_gateway_that_others_reach(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"the-key").hexdigest()
    with gateway(tmp_path, f'[server]\nkeys = ["sha256:{digest}"]', host="0.0.0.0") as running:
        with pytest.raises(ConfigError, match="can be reached from other machines"):
            running.gateway.take(provider_config(tmp_path, running.provider.url))
        assert running.request("GET", "/api/tags")[0] == 401

"""The examples of a fleet in the documents: read by who would read them, and true of this gateway."""

from __future__ import annotations

import copy
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from reliability import engine_haproxy, engine_valkey, engines
from reliability.engine_haproxy import adapted, complaints
from reliability.ports import free_port

from dragoman.config import Config, load_config
from dragoman.gateway.pages.health import HEALTH

DATA = Path(__file__).resolve().parent / "data"
FOLDER = Path(__file__).resolve().parent.parent / "docs" / "examples"
HAPROXY = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8")
KUBERNETES = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")


def test_haproxy_takes_its_configuration() -> None:
    text = adapted(HAPROXY, 8443, (4141, 4142, 4143))
    assert text.count("server gateway-") == 3 and "llm.example.org" not in text and " ssl " not in text
    assert re.findall(r"uri (\S+)", text) == ["/readyz"]
    if engine_haproxy.MISSING:  # `tests/conftest.py` says so
        return
    assert complaints(text) == ""
    assert "gateways" in complaints(text.replace("\nbackend gateways", "\nbackend others"))


# ---------------------------------------------------------------- Kubernetes


class Lines:
    """The lines of a YAML of mappings, lists, plain scalars and texts: what our example is made of, and no more."""

    def __init__(self, text: str) -> None:
        kept = (line.rstrip() for line in text.splitlines())
        self.lines = [line for line in kept if not line.lstrip().startswith("#")]
        self.place = 0

    def next(self) -> tuple[int, str] | None:
        """The next line that says something: its indent and its text."""
        while self.place < len(self.lines) and not self.lines[self.place]:
            self.place += 1
        if self.place == len(self.lines):
            return None
        line = self.lines[self.place]
        assert "\t" not in line
        return len(line) - len(line.lstrip()), line.lstrip()

    def value(self, indent: int) -> Any:
        """What stands at this indent or deeper."""
        found = self.next()
        assert found is not None and found[0] >= indent, self.place
        return self.list(found[0]) if found[1].startswith("- ") else self.mapping(found[0])

    def list(self, indent: int) -> list[Any]:
        items = []
        while (found := self.next()) is not None and found[0] == indent and found[1].startswith("- "):
            self.lines[self.place] = " " * (indent + 2) + found[1][2:]
            items.append(self.mapping(indent + 2))
        return items

    def mapping(self, indent: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while (found := self.next()) is not None and found[0] == indent and not found[1].startswith("- "):
            key, separator, rest = found[1].partition(":")
            assert separator and key not in items, found
            self.place += 1
            rest = rest.strip()
            items[key] = self.text(indent + 2) if rest == "|" else scalar(rest) if rest else self.value(indent)
        return items

    def text(self, indent: int) -> str:
        lines = []
        while self.place < len(self.lines) and (
            not self.lines[self.place] or self.lines[self.place][:indent].isspace()
        ):
            lines.append(self.lines[self.place][indent:])
            self.place += 1
        return "\n".join(lines) + "\n"


def scalar(text: str) -> Any:
    if text == "{}":
        return {}
    if text.startswith("["):
        return [scalar(part.strip()) for part in text[1:-1].split(",")]
    if text.startswith('"'):
        return text[1:-1]
    return int(text) if text.isdigit() else text == "true" if text in ("true", "false") else text


def documents() -> Iterator[dict[str, Any]]:
    for text in KUBERNETES.split("\n---\n"):
        lines = Lines(text)
        found = lines.value(0)
        assert lines.next() is None, lines.place  # all of it was read
        yield found


@pytest.fixture(scope="module")
def kinds() -> dict[str, dict[str, Any]]:
    return {f"{each['kind']} {each['metadata']['name']}": each for each in documents()}


def complaints_of_kubernetes(found: dict[str, Any]) -> list[str]:
    """What the definitions of Kubernetes 1.37 have against an object; they know all names, and no others."""
    api, _, version = found["apiVersion"].rpartition("/")
    name = f"io.k8s.api.{api or 'core'}.{version}.{found['kind']}"
    schema = json.loads((DATA / "kubernetes.json").read_text(encoding="utf-8"))
    return [error.message for error in Draft202012Validator(schema | {"$ref": f"#/$defs/{name}"}).iter_errors(found)]


def test_kubernetes_knows_each_object(kinds: dict[str, dict[str, Any]]) -> None:
    assert len(kinds) == 5
    for found in kinds.values():
        assert complaints_of_kubernetes(found) == []
    wrong = copy.deepcopy(kinds["StatefulSet dragoman"])
    container = wrong["spec"]["template"]["spec"]["containers"][0]
    container["readinessProbes"] = container.pop("readinessProbe")
    container["ports"][0]["containerPort"] = "4141"
    del wrong["spec"]["selector"]
    assert len(complaints_of_kubernetes(wrong)) == 3


@pytest.fixture
def config(kinds: dict[str, dict[str, Any]], tmp_path: Path) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text(kinds["ConfigMap dragoman"]["data"]["dragoman.toml"], encoding="utf-8")
    return load_config(file, environ=environ(kinds), home=tmp_path)


def pod(kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = kinds["StatefulSet dragoman"]["spec"]["template"]["spec"]
    return found


def environ(kinds: dict[str, dict[str, Any]]) -> dict[str, str]:
    names = [each["name"] for each in pod(kinds)["containers"][0]["env"]]
    values = {"DRAGOMAN_STORE": "postgresql://u:p@db/ledger", "DRAGOMAN_COUNTERS": "valkeys://:p@valkey:6379/0"}
    return {name: values.get(name, "a key of the provider") for name in names}


def test_the_configuration_is_one(config: Config) -> None:
    assert config.ledger.store is not None and config.ledger.counters is not None
    assert config.server.address.startswith("0.0.0.0:") and config.server.keys


def test_probes_ask_what_there_is(kinds: dict[str, dict[str, Any]], config: Config) -> None:
    [container] = pod(kinds)["containers"]
    for name, path in (("startupProbe", "/startupz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
        asked = container[name]["httpGet"]
        assert asked["path"] == path and path in HEALTH and asked["port"] == "http"
        [header] = asked["httpHeaders"]
        assert header["name"] == "Host" and header["value"] in config.server.allowed_hosts
    [port] = container["ports"]
    assert port["name"] == "http" and config.server.address.endswith(f":{port['containerPort']}")


def test_a_pod_has_the_time_that_it_needs(kinds: dict[str, dict[str, Any]], config: Config) -> None:
    readiness = pod(kinds)["containers"][0]["readinessProbe"]
    assert config.server.notice_seconds > readiness["periodSeconds"] * readiness["failureThreshold"]
    needed = config.server.notice_seconds + config.server.drain_seconds
    assert pod(kinds)["terminationGracePeriodSeconds"] >= needed + 10


def test_each_pod_keeps_its_state(kinds: dict[str, dict[str, Any]], config: Config) -> None:
    mounts = {each["name"]: each["mountPath"] for each in pod(kinds)["containers"][0]["volumeMounts"]}
    [claim] = kinds["StatefulSet dragoman"]["spec"]["volumeClaimTemplates"]
    assert mounts[claim["metadata"]["name"]] == str(config.server.state)
    volumes = {each["name"] for each in pod(kinds)["volumes"]} | {claim["metadata"]["name"]}
    assert volumes == set(mounts)


def test_names_meet(kinds: dict[str, dict[str, Any]]) -> None:
    labels = kinds["StatefulSet dragoman"]["spec"]["template"]["metadata"]["labels"]
    for each in kinds.values():
        selector = each.get("spec", {}).get("selector", labels)
        assert selector.get("matchLabels", selector) == labels
    stateful = kinds["StatefulSet dragoman"]["spec"]
    assert f"Service {stateful['serviceName']}" in kinds
    [volume] = [each for each in pod(kinds)["volumes"] if "configMap" in each]
    assert f"ConfigMap {volume['configMap']['name']}" in kinds
    for service in ("Service dragoman", "Service dragoman-each"):
        assert kinds[service]["spec"]["ports"][0]["targetPort"] == "http"


def test_a_pod_serves_by_the_example(kinds: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    """With its arguments and variables and without a home folder; it is told to end as Kubernetes does, and says so at
    its probe while it goes on."""
    if engines.MISSING or engine_valkey.MISSING:  # `tests/conftest.py` says so
        return
    [container] = pod(kinds)["containers"]
    own = tmp_path / "pod"
    port = free_port()
    with ExitStack() as stack:
        server = stack.enter_context(engines.PostgreSQL())
        valkey = stack.enter_context(engine_valkey.Valkey())
        (own / "state").mkdir(parents=True)
        text = kinds["ConfigMap dragoman"]["data"]["dragoman.toml"]
        for before, after in (
            ("0.0.0.0:4141", f"127.0.0.1:{port}"), ("/var/lib/dragoman", str(own / "state")),
            ("notice_seconds = 10", "notice_seconds = 6"),
        ):  # fmt: skip
            assert text.count(before) == 1
            text = text.replace(before, after)
        text += '\n[[quotas]]\nscope = "all"\nrequests = 1000\nper = "minute"\n'
        (own / "dragoman.toml").write_text(text, encoding="utf-8")
        values = {"DRAGOMAN_STORE": server.address, "DRAGOMAN_COUNTERS": valkey.address}
        variables = {name: values.get(name, "a key") for name in environ(kinds)}
        variables |= {"PATH": os.environ["PATH"], "HOME": str(own / "nothing"), "PYTHONPATH": os.pathsep.join(sys.path)}
        words = [each.replace("/etc/dragoman", str(own)) for each in container["args"]]
        command = [sys.executable, "-m", "dragoman", *words]
        process = stack.enter_context(
            subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables, cwd="/")
        )
        stack.callback(process.kill)
        try:
            await_status(port, container["startupProbe"]["httpGet"], 200)
            for name in ("readinessProbe", "livenessProbe"):
                assert asked(port, container[name]["httpGet"]) == 200
            process.send_signal(signal.SIGTERM)
            await_status(port, container["readinessProbe"]["httpGet"], 503)
            assert asked(port, container["livenessProbe"]["httpGet"]) == 200
            assert process.wait(60) == 0
            assert sorted(path.name for path in own.iterdir()) == ["dragoman.toml", "state"]  # all else is read-only
        except BaseException:
            process.kill()
            print(process.communicate()[1])
            raise


def asked(port: int, probe: dict[str, Any]) -> int:
    """The status that a probe gets."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        headers = {each["name"]: each["value"] for each in probe["httpHeaders"]}
        connection.request("GET", probe["path"], headers=headers)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def await_status(port: int, probe: dict[str, Any], status: int) -> None:
    until = time.monotonic() + 60
    while (found := asked(port, probe)) != status:
        assert time.monotonic() < until, found
        time.sleep(0.05)

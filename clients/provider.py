"""A provider on loopback that plays a plan in any of the five protocols; it remembers what was wrong with requests."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from plan import Page, Plan
from strict import CHECKS
from wire import MODEL, WIRES, Asked, Wire

#: What the model says beside its calls, and to requests without tools (titles, summaries).
ASIDE = "Let me look. "
SMALL_TALK = "A short title"
#: Requests over the plan's, after which a client that goes in circles is refused.
PATIENCE = 5
MOST_FAULTS = 3
#: Of a request in a token of the prompt, about.
CHARACTERS = 4


@dataclass
class Played:
    """What came of a plan. `faults`: in the order in which they were seen; none is what a test wants."""

    url: str
    protocol: str
    plan: Plan
    is_textual: bool = False  # the client says results as user text, and calls nowhere
    requests: int = 0  # those that belong to the plan
    ended: bool = False  # the last turn was given
    faults: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    searches: int = 0  # of the web, that it was asked for

    def page(self, asked: Asked) -> Page | None:
        """What a search of the web finds, where a request is for one."""
        wanted = self.plan.steps[0][0].name if self.plan.steps else ""
        is_due = wanted not in asked.tools or (self.plan.is_searching and self.ended)
        return self.plan.page if asked.searches and is_due else None

    def answer(self, asked: Asked) -> tuple[tuple[Any, ...], str]:
        """The calls and the text of the next turn."""
        plan = self.plan
        if (page := self.page(asked)) is not None:
            self.searches += 1
            return (), page.text
        if plan.texts:
            self.requests += 1
            self.ended = self.requests >= len(plan.texts)
            return (), plan.texts[min(self.requests, len(plan.texts)) - 1]
        wanted = (plan.steps[0] if plan.steps else ())[0].name
        if not self.is_textual and wanted not in asked.tools:
            return (), SMALL_TALK
        self.requests += 1
        if self.requests > len(plan.steps) + PATIENCE:
            raise ValueError("the client asks the same again and again")
        results = [text for _, text in asked.results] + ([asked.text] if self.is_textual else [])
        done = 0
        for step in plan.steps:
            if not all(any(map(call.is_proven, results)) for call in step):
                break
            done += 1
        if not self.is_textual:
            self._compare(asked, done)
        if done < len(plan.steps):
            unknown = [call.name for call in plan.steps[done] if call.name not in asked.tools]
            if unknown and not self.is_textual:
                raise ValueError(f"the model would call {unknown}, but is offered {asked.tools} alone")
            return plan.steps[done], ASIDE
        self.ended = True
        self.searches += plan.is_searching and asked.searches
        return ((), plan.text) if plan.ending is None else ((plan.ending,), "")

    def _compare(self, asked: Asked, done: int) -> None:
        """Calls and results must be those of the plan, each result with its call, and nothing beside them."""
        expected = [call for step in self.plan.steps[:done] for call in step]
        if len(asked.calls) != len(expected):
            self.fault(f"expected {len(expected)} calls with their results, got {len(asked.calls)}: {_shown(asked)}")
        told = dict(asked.results)
        for call, (call_id, name, arguments) in zip(expected, asked.calls, strict=False):
            if (name, arguments) != (call.name, call.arguments):
                self.fault(f"the call came back changed: {_difference(call.arguments, arguments)} ({name})")
            if not call.is_proven(told.get(call_id, "")):
                self.fault(f"the result of {name} stands with another call")

    def fault(self, what: str) -> None:
        if what not in self.faults and len(self.faults) < MOST_FAULTS:
            self.faults.append(what)


def _shown(asked: Asked) -> str:
    return ", ".join(
        f"{name} → {dict(asked.results).get(call_id, 'nothing')[:300]!r}" for call_id, name, _ in asked.calls
    )


def _difference(expected: Any, got: Any) -> str:
    left, right = json.dumps(expected, ensure_ascii=False), json.dumps(got, ensure_ascii=False)
    place = next(
        (at for at, (one, two) in enumerate(zip(left, right, strict=False)) if one != two), min(len(left), len(right))
    )
    return f"expected …{left[max(0, place - 20) : place + 40]!r}, got …{right[max(0, place - 20) : place + 40]!r}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._send(404, b'{"error":{"message":"no such path"}}')

    def do_POST(self) -> None:
        played, wire = self.server.played, self.server.wire
        body = self.rfile.read(int(self.headers["content-length"]))
        path = self.path.partition("?")[0]
        if wire.path not in path:
            self._send(404, b'{"error":{"message":"no such path"}}')
            return
        with self.server.lock:
            played.bodies.append(body)
            head = {name.lower(): value for name, value in self.headers.items()}
            played.heads.append(head)
            try:
                read = json.loads(body)
                CHECKS[played.protocol](head, read)
                asked = wire.read(path, read)
                calls, text = played.answer(asked)
            except (ValueError, KeyError, TypeError, AttributeError) as problem:
                played.fault(f"not a valid request of {played.protocol}: {problem!r}")
                self._send(
                    400, json.dumps({"error": {"message": f"refused by the scripted provider: {problem!r}"}}).encode()
                )
                return
            turn = len(played.bodies)
        page = played.page(asked)
        frames = wire.write(calls, text, turn, asked.stream, len(body) // CHARACTERS, page)
        if not asked.stream:
            self._send(200, b"".join(frames))
            return
        self.send_response(200)
        self.send_header("content-type", wire.stream_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for frame in frames:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(frame), frame))
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    disable_nagle_algorithm = True

    def __init__(self, played: Played, wire: Wire) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.played = played
        self.wire = wire
        self.lock = threading.Lock()


@contextmanager
def playing(protocol: str, plan: Plan, *, is_textual: bool = False) -> Iterator[Played]:
    """Serve until the block ends."""
    played = Played("", protocol, plan, is_textual)
    server = _Server(played, WIRES[protocol])
    played.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


__all__ = ["MODEL", "Played", "playing"]

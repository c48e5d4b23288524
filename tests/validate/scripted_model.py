"""A model on loopback that answers every probe from the words of its request alone, and ways in which it may lie.

It knows no probe's file: what it answers is read from the prompt with regular expressions, as a model would have to.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cases import counter
from dragoman.events import Event, Failure, Reply, TextDelta, unfold
from dragoman.protocol import Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Named, Part, Request, Text, Thinking, ToolCall, ToolResult, Usage

CONTEXT = 16_000  # tokens
KEY = "the right key"
MODEL = "scripted"
BASE = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}
PIECE = 12  # characters of a text delta


@dataclass
class Scripted:
    """The running model, and the requests that it got."""

    url: str
    requests: list[Request] = field(default_factory=list)


@dataclass
class Lie:
    """How a model differs from the healthy one. `hears` changes what it is asked, `says` what it answers, `refuses`
    may give a failure in place of an answer; `piece` is the size of its text deltas in characters."""

    hears: Callable[[Request], Request] = lambda request: request
    says: Callable[[Request, list[Part]], list[Part]] = lambda request, parts: parts
    refuses: Callable[[Request], Failure | None] = lambda request: None
    piece: int = PIECE


# ---------------------------------------------------------------- the healthy model


def think(request: Request) -> list[Part]:
    """The right answer."""
    last = request.messages[-1]
    parts: list[Part] = []
    if request.params.reasoning is not None:
        parts.append(Thinking("Let me see.", "sealed"))
    results = [part for part in last.parts if isinstance(part, ToolResult)]
    if results:
        return parts + after_results(results)
    words = " ".join(last.text.split()) if len(last.text) < 5000 else last.text
    if request.tools and request.tool_choice != "none":
        called = [*calls_for(request, words, last.text)]
        if called:
            return parts + called
    return [*parts, Text(in_words(words))]


def after_results(results: list[ToolResult]) -> list[Part]:
    told = " and ".join(result.text for result in results)
    found = re.fullmatch(r'\{"id": "(\w+)"\}', told)
    if found:
        return [call("count_orders", customer_id=found[1])]
    if found := re.match(r'\{"id":"(part-\d)"', told):
        return [call("count_stock", part_id=found[1])]
    if found := re.match(r'\{"pieces":(\d+)\}', told):
        return [call("double", number=int(found[1]))]
    values = re.findall(r"[\w-]+", told)
    return [Text("It says: " + ", ".join(values) + ".")]


def calls_for(request: Request, words: str, raw: str) -> Iterator[Part]:
    names = {tool.name for tool in request.tools}
    if isinstance(request.tool_choice, Named):
        yield call(request.tool_choice.name, city="Paris")
    elif found := re.search(r"weather in (\w+) and in (\w+), in (\w+)", words):
        for city in [found[1], found[2]][: 1 if request.params.parallel_tools is False else 2]:
            yield call("get_weather", city=city, unit=found[3])
    elif found := re.match(r"First write the word (\w+)\..* weather in (\w+) in (\w+)", words):
        yield Text(found[1])
        yield call("get_weather", city=found[2], unit=found[3])
    elif found := re.match(r"What is the weather in (\w+) now, in (\w+)", words):
        yield call("get_weather", city=found[1], unit=found[2])
    elif found := re.match(r"What does the (\w+) meter say", words):
        yield call(f"read_{found[1]}_meter")
    elif words.startswith("Use the tool to order"):
        yield order(words)
    elif words.startswith("Save a note"):
        yield call("save_note", text=raw.split("\n", 1)[1])
    elif found := re.match(r"Write the file (\S+) with the tool\. It has (\d+) lines.* the word (\w+),", words):
        content = "\n".join(f"{found[3]}-{number:03}" for number in range(1, int(found[2]) + 1))
        yield call("write_file", path=found[1], content=content)
    elif found := re.match(r"How do I get from (\w+) to (\w+)\?", words):
        yield call("find_route", **{"from": found[1], "to": found[2]})
    elif found := re.match(r"How many orders has the customer (.+) made\?", words):
        yield call("find_customer", name=found[1])
    elif found := re.match(r"What does a hotel room in (\w+) cost", words):
        yield call("find_hotel", city=found[1])
    elif found := re.search(r"the part called (\w+) are", words):
        yield call("find_part", name=found[1])
    elif request.tool_choice == "any":
        yield call(sorted(names)[0], city="Paris", unit="celsius")


def order(words: str) -> ToolCall:
    found = re.search(
        r"order for (.+), who lives in (\w+); the street is (\w+), the house number (\d+): first (\d+) of the article"
        r" (\w+), then (\d+) of the article (\w+)\. Shipping speed: (\w+)\.",
        words,
    )
    assert found
    name, city, street, number, first_count, first, second_count, second, speed = found.groups()
    return call(
        "place_order",
        customer={"name": name, "address": {"street": street, "number": int(number), "city": city}},
        items=[{"article": first, "count": int(first_count)}, {"article": second, "count": int(second_count)}],
        speed=speed,
        gift=True,
    )


def in_words(words: str) -> str:
    numbers = [int(number) for number in re.findall(r"\b\d+\b", words)]
    if found := re.search(r"Repeat this (?:word|one)[^:]*: (\w+)$", words) or re.search(
        r"repeat this one: (\w+)$", words
    ):
        return found[1]
    if found := re.search(r"Repeat these three words, and say nothing else: (.+)$", words):
        return found[1]
    if found := re.match(r"Count from (\d+) to (\d+)", words):
        return ", ".join(map(str, range(int(found[1]), int(found[2]) + 1)))
    if found := re.search(r"What is (\d+) \+ (\d+)\?", words):
        return str(int(found[1]) + int(found[2]))
    if found := re.search(r"Write the words (\w+) and (\w+) with nothing but a hyphen", words):
        return f"{found[1]}-{found[2]}"
    if "boxes with" in words:
        return str(numbers[0] * numbers[1] + numbers[2])
    if "litres" in words:
        return str(numbers[0] - numbers[1] - numbers[2])
    if "kilograms" in words:
        return str(numbers[0] * 3)
    if found := re.search(r"member: (.+) is (\d+) years old, lives in (\w+)", words):
        return json.dumps({"name": found[1], "age": int(found[2]), "city": found[3], "member": True})
    if "passwords of" in words:
        wanted = re.findall(r"\w+", words.rsplit("passwords of", 1)[1].split("?")[0].replace(" and ", " "))
        known = dict(re.findall(r"The password of (\w+) is (\w+)", words))
        return ", ".join(known.get(name, "unknown") for name in wanted)
    if "story" in words:
        return "Once upon a time there was a small town by the sea. " * 80
    return "They are about as long as each other, I would say."


def call(name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("", name, json.dumps(arguments, ensure_ascii=False))


# ---------------------------------------------------------------- the server


@contextmanager
def scripted_model(protocol_name: str = "openai-chat", lie: Lie | None = None) -> Iterator[Scripted]:
    """Serve on a free loopback port until the block ends."""
    protocol, answering = PROTOCOLS[protocol_name], _Answering(lie or Lie())

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            row = {"id": MODEL, "model": MODEL, "name": f"models/{MODEL}", "context_length": CONTEXT}
            rows = {"data": [row]} if protocol_name != "gemini-generate" else {"models": [{**row, "id": None}]}
            self.send(200, json.dumps(rows).encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            keys = [self.headers["authorization"], self.headers["x-api-key"], self.headers["x-goog-api-key"]]
            if not any(key and key.removeprefix("Bearer ") == KEY for key in keys):
                return self.refuse(Failure("auth", "invalid API key", 401))
            request = protocol.parse_request(body, path=self.path).request
            server.requests.append(request)
            answer = answering.answer(request)
            if isinstance(answer, Failure):
                return self.refuse(answer)
            try:
                self.send(200, *rendered(protocol, request, answer, piece=answering.piece))
            except OSError:  # the client has left
                self.close_connection = True

        def refuse(self, failure: Failure) -> None:
            status, body = protocol.render_error(failure)
            self.send(status, body)

        def send(self, status: int, *pieces: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(sum(map(len, pieces))))
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    http_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http_server.daemon_threads = True
    server = Scripted(f"http://127.0.0.1:{http_server.server_port}{BASE.get(protocol_name, '')}")
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http_server.shutdown()
        http_server.server_close()
        thread.join(5)


class _Answering:
    """Limits, usage and the cache of the scripted model."""

    def __init__(self, lie: Lie) -> None:
        self._lie = lie
        self.piece = lie.piece
        self._cached: set[str] = set()

    def answer(self, request: Request) -> Reply | Failure:
        if request.model != MODEL:
            return Failure("not_found", f"the model {request.model} does not exist", 404)
        if refusal := self._lie.refuses(request):
            return refusal
        heard = self._lie.hears(request)
        size = estimate_tokens(heard)
        if size > CONTEXT:
            message = f"This model's maximum context length is {CONTEXT} tokens, your prompt has {size} tokens."
            return Failure("context", message, 400, code="context_length_exceeded")
        parts = self._lie.says(heard, think(heard))
        return self._reply(heard, parts, size)

    def _reply(self, request: Request, parts: list[Part], size: int) -> Reply:
        system = "".join(message.text for message in request.messages if message.role == "system")
        cached = len(system) // 4 if system in self._cached else 0
        self._cached.add(system)
        kept, room, is_cut = [], (request.params.max_tokens or 4096) * 4, False
        for number, part in enumerate(parts):
            if isinstance(part, ToolCall):
                part = ToolCall(f"call_{len(request.messages)}n{number}", part.name, part.arguments)
            if isinstance(part, Text):
                text = min((part.text.partition(stop)[0] for stop in request.params.stop), key=len, default=part.text)
                part, is_cut = Text(text[:room]), len(text) > room
            kept.append(part)
        output = max(1, sum(len(getattr(part, "text", "") or getattr(part, "arguments", "")) for part in kept) // 4)
        usage = Usage(size, output, cached, 0, 5 if request.params.reasoning else 0)
        has_calls = any(isinstance(part, ToolCall) for part in kept)
        reason = "length" if is_cut else "tool_use" if has_calls else "stop"
        return Reply("id1", MODEL, 1, tuple(kept), reason, None, usage, None, None, (), ())  # type: ignore[arg-type]


def rendered(protocol: Protocol, request: Request, reply: Reply, *, piece: int = PIECE) -> list[bytes]:
    if not request.stream:
        return [protocol.render_response(reply, new_id=counter(), model=MODEL, created=1)]
    encoder = protocol.encoder(new_id=counter(), model=MODEL, created=1)
    return [encoder.encode([event]) for event in _in_pieces(unfold(reply), piece)]


def _in_pieces(events: list[Event], piece: int) -> Iterator[Event]:
    for event in events:
        if isinstance(event, TextDelta):
            for start in range(0, len(event.text), piece):
                yield TextDelta(event.index, event.text[start : start + piece])
        else:
            yield event


def with_text(message: Message, text: str) -> Message:
    return Message(message.role, (Text(text),))

"""S11, S12: keys stand in no answer, log, metric or file; prompts, arguments and results in no log, metric or file.

The provider does its worst: it quotes the key that it was sent in errors of every form, before and inside streams.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman import _json
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Params, Request, Text, Tool, ToolCall, ToolResult
from reliability.caller import TOOLS, Answer, ask, spoken
from reliability.process import BASE, Gateway
from reliability.provider import END, Provider, Step, chunk, head, whole
from reliability.r01_truncation import wire
from reliability.row import Result, Scale

#: What a secret looks like: long, and known to nobody else.
CLIENT_KEY = "dk-canaryclient-7f3e9a51c0d24b68"
KEYS = {
    "ollama-chat": "canaryollama.2b7d41f09c8e4a35",
    "openai-chat": "sk-canarychat-94ad7e610b5f4c28",
    "openai-responses": "sk-proj-canaryresponses-5c1b08ef7d2a",
    "anthropic-messages": "sk-ant-canary-03e8b6d71f4c4a92",
    "gemini-generate": "AIzaCanaryGemini5d0e8b1c7f2a4936",
}
HEADER = "canaryheader-6a9f03c41d7e"
QUERY = "canaryquery-e21b7c90d54f"
FILE = "sk-canaryfile-718de40f9b2c4a06"
FILED_HEADER = "canaryfiled-header-b04e97d2"
SECOND_KEY = "dk-canarysecond-90d1c6e57a3f"
WRONG = "dk-canarywrong-4c8b1fe0297d"
SECRETS = (CLIENT_KEY, SECOND_KEY, *KEYS.values(), HEADER, FILED_HEADER, QUERY, FILE, WRONG)
CONTENT = {
    "system": "canary-of-the-system-prompt", "prompt": "canary-of-the-prompt", "arguments": "canary-of-the-arguments",
    "result": "canary-of-the-result", "answer": "canary-of-the-answer", "call": "canary-of-the-new-call",
    "tool": "canary_of_a_tool_schema",
}  # fmt: skip
STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529)


def config(url: str) -> str:
    """All kinds of secrets in all places that take one."""
    tables = ['[server]\nkeys = ["env:CLIENT_KEY", "env:SECOND_KEY"]']
    for name, base in BASE.items():
        key = name.upper().replace("-", "_")
        tables.append(
            f'[providers."{name}"]\nprotocol = "{name}"\nbase_url = "{url}{base}"\napi_key = "env:KEY_{key}"\n'
            f'headers = {{ "x-team-key" = "{HEADER}" }}\nquery = {{ team = "{QUERY}" }}'
        )
    tables.append(
        f'[providers.filed]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\napi_key = "file:key"'
        f'\nheaders = {{ "x-team-key" = "{FILED_HEADER}" }}'
        f'\n[providers.gone]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "file:key"'
        f'\n[providers.nowhere]\nprotocol = "gemini-generate"\nbase_url = "http://nowhere.invalid"\n'
        'api_key = "file:key"'
    )
    return "\n".join(tables)


def complaints(key: str) -> Iterator[list[Step]]:
    """Every way in which a provider may quote a key back."""
    said = f"Incorrect API key provided: {key}. Header x-team-key: {HEADER}, query team={QUERY}"
    forms = (
        (json.dumps({"error": {"message": said, "type": "x", "code": key, "param": key}}), "application/json"),
        (json.dumps({"error": said}), "application/json"),
        (json.dumps([{"detail": [{"msg": said, "input": key}]}]), "application/json"),
        (f"<html><body><h1>Denied</h1>{said}</body></html>", "text/html"),
        (said, "text/plain"),
    )
    for status in STATUSES:
        for text, kind in forms:
            yield whole(text.encode(), status, kind, f"x-echo: {key}")
    yield [head(302, "text/html", f"location: http://127.0.0.1/?key={key}"), END]
    yield [f"HTTP/1.1 200 {key}\r\ncontent-length: 5\r\nbad header {key}\r\n\r\nhello".encode()]
    yield [f"not http at all, {key}\r\n\r\n".encode(), "close"]
    yield ["reset"]
    yield whole(f"{{broken json {key}".encode())
    yield [head(), chunk(f'data: {{"error": {{"message": "{said}"}}}}\n\n'.encode()), END]
    yield [head(), chunk(f"event: error\ndata: {key}\n\n".encode()), END]
    yield [head(), chunk(f"data: {{nonsense {key}}}\n\n".encode()), END]


def late_complaint(protocol: str, key: str) -> list[Step]:
    """Some words, then an error that quotes the key."""
    data = wire(protocol, "text")
    first = data[: data.index(b"\n", data.index(b"Hello")) + 1] + b"\n"
    error = json.dumps({"type": "error", "error": {"message": f"bad key {key}", "type": "x"}})
    line = f"{error}\n" if protocol == "ollama-chat" else f"event: error\ndata: {error}\n\n"
    return [head(200, PROTOCOLS[protocol].stream_type), chunk(first), chunk(line.encode()), END]


def measure(scale: Scale) -> Iterator[Result]:
    """Keys first, then what people write."""
    with Provider() as provider:
        variables = {f"KEY_{name.upper().replace('-', '_')}": key for name, key in KEYS.items()}
        gateway = Gateway(
            config(provider.url), environ={"CLIENT_KEY": CLIENT_KEY, "SECOND_KEY": SECOND_KEY, **variables}
        )
        (gateway.home / "key").write_text(FILE, encoding="utf-8")
        with gateway:
            answers = asyncio.run(provoke(gateway, provider))
            found = [f"an answer: {name}" for name, answer in answers for secret in SECRETS if holds(answer, secret)]
            kept = hits(written(gateway, answers), {secret[:14]: secret for secret in SECRETS})
            sent = sum(KEYS[name].encode() in asked.head for asked in provider.asked for name in KEYS)
            for line in dict.fromkeys([*found, *kept]):
                print("   ", line)
            measured = (
                f"{len(found)} answers and {len(kept)} of {len(SECRETS)} secrets in log, metrics, files; "
                f"{len(answers)} errors provoked, keys were sent {sent} times"
            )
            enough = len(SECRETS) >= 12 and sent > 200
            # What clients show at the door is no provider's business.
            kept += [
                key[:14] for asked in provider.asked for key in (CLIENT_KEY, SECOND_KEY) if key.encode() in asked.head
            ]
            yield Result("S11", "0 hits of ≥ 12 secrets in ≥ 200 errors", measured, not found and not kept and enough)
            asked = asyncio.run(converse(gateway, provider))
            shown = hits(written(gateway, []), CONTENT)
            for line in shown:
                print("   ", line)
            measured = f"{len(shown)} in log, metrics, files after {asked} conversations, {len(CONTENT)} canaries each"
            yield Result("S12", "0 hits of what people and models write", measured, not shown and asked > 0)


def hits(places: Iterator[tuple[str, bytes]], texts: dict[str, str]) -> list[str]:
    """Which of the texts stand where."""
    return [f"{place} has {name}" for place, data in places for name, text in texts.items() if text.encode() in data]


def holds(answer: Answer, secret: str) -> bool:
    return secret.encode() in answer.body or any(secret in value for value in answer.headers.values())


async def provoke(gateway: Gateway, provider: Provider) -> list[tuple[str, Answer]]:
    """Every complaint, to clients of every protocol; a few at a time, since some are tried again after a while."""
    slots = asyncio.Semaphore(25)
    right = {"authorization": f"Bearer {CLIENT_KEY}"}

    async def one(
        name: str, path: str, body: bytes = b"", *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> tuple[str, Answer]:
        async with slots:
            return name, await ask(gateway.port, path, body, method=method, headers=headers)

    jobs = []
    for name, key in KEYS.items():
        clients = list(BASE)
        for number, steps in enumerate([*complaints(key), late_complaint(name, key)]):
            client = clients[number % len(clients)]
            for stream in (True, False):
                path, body = spoken(client, f"{name}/{provider.script(steps)}", stream=stream)
                jobs.append(one(f"{client} ← {name}, {str(steps[0])[:40]}", path, body, headers=right))
    quoted = provider.script(whole(f"{FILE}, {FILED_HEADER}".encode(), 401))
    for target in ("gone/x", "nowhere/x", f"filed/{quoted}", "x"):
        for client in BASE:
            second = {"authorization": f"Bearer {SECOND_KEY}"}
            jobs.append(one(target[:10], *spoken(client, target), headers=second))
    for path in (f"/v1beta/models?key={WRONG}", f"/v1beta/models/x:generateContent?key={WRONG}"):
        jobs.append(one("a wrong key in the query", path, b"{}"))
    jobs.append(one("a wrong key", "/v1/messages", headers={"x-api-key": WRONG}))
    answers = list(await asyncio.gather(*jobs))
    return [*answers, await one("metrics", "/metrics", method="GET", headers=right)]


def written(gateway: Gateway, answers: list[tuple[str, Answer]]) -> Iterator[tuple[str, bytes]]:
    """What the process wrote anywhere; the configuration and the key's own file were written by its owner."""
    yield "the log", gateway.log_text().encode()
    for name, answer in answers:
        if name == "metrics":
            yield name, answer.body
    for file in Path(gateway.home).rglob("*"):
        # Responses that a client asked to be stored are content that it wants to have back; nobody else can read them.
        if file.is_file() and file.name not in ("key", "dragoman.toml", "log") and "responses" not in file.name:
            yield str(file.relative_to(gateway.home)), file.read_bytes()


async def converse(gateway: Gateway, provider: Provider) -> int:
    """A conversation with canaries in every place, answered, refused and broken off."""
    count = 0
    call = ToolCall("call_000000000000000000000001", "get_weather", json.dumps({"city": CONTENT["arguments"]}))
    result = ToolResult(call.id, call.name, (Text(CONTENT["result"]),))
    schema: Any = json.dumps({"type": "object", "properties": {CONTENT["tool"]: {"type": "string"}}})
    tools = (*TOOLS, Tool("look_up", CONTENT["tool"], _json.raw(json.loads(schema))))
    messages = (
        Message("system", (Text(CONTENT["system"]),)), Message("user", (Text(CONTENT["prompt"]),)),
        Message("assistant", (call,)), Message("tool", (result,)), Message("user", (Text("And now?"),)),
    )  # fmt: skip
    for client in BASE:
        data = wire(client, "text-call").replace(b"Let me look.", CONTENT["answer"].encode())
        data = data.replace(b"a.py", CONTENT["call"].encode())
        said = head(200, PROTOCOLS[client].stream_type)
        scripts: list[list[Step]] = [
            [said, chunk(data), END], [said, chunk(data[:-200]), "reset"], [said, chunk(data[:-200]), END],
            whole(json.dumps({"error": {"message": f"cannot read {CONTENT['prompt']}"}}).encode(), 400),
            [said, chunk(data.replace(b"}", b"")), END],
        ]  # fmt: skip
        for steps in scripts:
            for stream in (True, False):
                model = f"{client}/{provider.script(steps)}"
                request = Request(model, messages, tools, params=Params(max_tokens=100), stream=stream)
                sent = PROTOCOLS[client].render_request(request).http
                prefix = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(client, "")
                path = sent.path if sent.path.startswith("/v1/") else prefix + sent.path
                await ask(gateway.port, path, sent.body, headers={"authorization": f"Bearer {CLIENT_KEY}"})
                count += 1
    return count

"""R1, the other half: between a client and a provider of one protocol, every stream of the corpus arrives as read.

The client reads what the gateway made of the stream; it must come to the same text and calls as `dragoman.decode` of
the stream itself (which `make test` holds against what each case expects), and to an error where that has one. A call
that failed only behind its last brace may have begun at the client, which is told by the error; one that was cut by the
limit of tokens is told by that stop reason. Calls come in the order in which they end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import dragoman
from cases import load_cases
from dragoman import _json
from dragoman.events import Reply
from dragoman.protocol import PLAIN, Dialect
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Params, Request, Text, Tool
from reliability import PROJECT
from reliability.caller import ask
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head
from reliability.row import Result, Scale

SHARED = PROJECT.parent / "shared" / "corpus" / "quirks.jsonl"
_PREFIX = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}


class Played(NamedTuple):
    """One case, ours or of the corpus beside the checkout."""

    name: str
    protocol: Any
    wire: bytes
    status: int
    tools: list[dict[str, Any]]
    dialect: Dialect


def ours() -> list[Played]:
    return [Played(case.name, case.protocol, case.wire, case.status, case.tools, case.dialect) for case in load_cases()]


def shared() -> list[Played]:
    lines = SHARED.read_bytes().splitlines() if SHARED.exists() else []
    found = []
    for line in lines:
        case = _json.decode(line)
        assert isinstance(case, dict)
        wire = bytes(str(case["wire"]), "utf-8", "surrogatepass")
        tools: Any = case.get("tools") or []
        status: Any = case.get("status") or 200
        found.append(Played(str(case["id"]), case["protocol"], wire, status, tools, PLAIN))
    return found


def measure(scale: Scale) -> Iterator[Result]:
    """Our corpus, and the one beside the checkout when it is there."""
    for name, cases in (("own corpus", ours()), ("corpus beside the checkout", shared())):
        if not cases:
            yield Result("R1 corpus", "0 cases read otherwise", f"{name}: not there, not played", True)
            continue
        wrong = asyncio.run(differing(cases))
        for line in wrong[:40]:
            print("   ", line)
        measured = f"{name}: {len(wrong)} of {len(cases)} cases read otherwise through the gateway"
        yield Result("R1 corpus", "0 cases read otherwise", measured, not wrong)


async def differing(cases: list[Played]) -> list[str]:
    """What of each case differs."""
    dialects = list(dict.fromkeys(case.dialect for case in cases))
    with Provider() as provider:
        tables = ["[http]\nretries = 0\n", providers(provider.url)]
        for number, dialect in enumerate(dialects):
            changed = {
                field: getattr(dialect, field)
                for field in Dialect.__struct_fields__
                if getattr(dialect, field) != getattr(PLAIN, field)
            }
            inline = ", ".join(f"{name} = {_json.to_text(value)}" for name, value in changed.items())
            lines = f"dialect = {{ {inline} }}\n" if inline else ""
            tables.append(providers(provider.url, suffix=f"-{number}", lines=lines))
        with Gateway("\n".join(tables)) as gateway:
            wrong = []
            for case in cases:
                suffix = f"-{dialects.index(case.dialect)}"
                found = await difference(case, provider, gateway, suffix)
                wrong += [f"{case.protocol} {case.name}: {found}"] if found else []
            return wrong


async def difference(case: Played, provider: Provider, gateway: Gateway, suffix: str) -> str:
    """What the client reads otherwise; "" when nothing."""
    protocol = PROTOCOLS[case.protocol]
    expected = dragoman.decode(case.wire, case.protocol, tools=case.tools, status=case.status, dialect=case.dialect)
    kind = protocol.stream_type if case.status < 400 else "application/json"
    steps: list[Step] = [head(case.status, kind), *([chunk(case.wire)] if case.wire else []), END]
    tools = tuple(Tool(tool["name"], "", _json.raw(tool["parameters"])) for tool in case.tools)
    question = Message("user", (Text("Go on."),))
    model = f"{case.protocol}{suffix}/{provider.script(steps)}"
    request = Request(model, (question,), tools, params=Params(max_tokens=1000), stream=True)
    sent = protocol.render_request(request).http
    path = sent.path if sent.path.startswith("/v1/") else _PREFIX.get(case.protocol, "") + sent.path
    answer = await ask(gateway.port, path, sent.body, headers=dict(sent.headers))
    seen = dragoman.decode(answer.body, case.protocol, tools=(), status=answer.status if answer.status >= 400 else 200)
    return compared(expected, seen, is_whole=answer.whole)


def compared(expected: Reply, seen: Reply, *, is_whole: bool) -> str:
    calls = sorted((call.name, _json.to_text(call.values())) for call in expected.tool_calls)
    got = sorted((call.name, _json.to_text(call.values())) for call in seen.tool_calls)
    failed = expected.error is not None
    if failed and seen.error is not None:
        begun = {call.name for call in (*expected.tool_calls, *expected.failed_calls)}
        return "" if {name for name, _ in got} <= begun else f"calls {got!r:.300} instead of {calls!r:.300}"
    if got != calls and not (failed and got == calls[: len(got)]):
        return f"calls {got!r:.300} instead of {calls!r:.300}"
    if failed:
        if expected.failed_calls and seen.stop_reason == expected.stop_reason == "length":
            return ""
        if seen.error is None and is_whole and not (expected.failed_calls and "not run" in seen.text):
            told = any(call.message in seen.text for call in expected.failed_calls)
            return "" if told else f"no error; expected {expected.error!r:.300}"
        return ""
    if seen.error is not None:
        return f"error {seen.error!r:.300}"
    # A stray end tag of thinking comes when the text before it is already with the client: no stream can unsay it.
    late = any(deviation.code == "thinking-as-text" for deviation in expected.deviations)
    if late and squeezed(seen.text) == squeezed(expected.thinking + expected.text):
        return ""
    if seen.text.strip() != expected.text.strip():
        return f"text {seen.text!r:.200} instead of {expected.text!r:.200}"
    return ""


def squeezed(text: str) -> str:
    return "".join(text.split())


assert set(BASE) == set(PROTOCOLS)

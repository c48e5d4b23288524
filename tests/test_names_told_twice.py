"""A call's name told in several places of one wire: told alike it is one call, told otherwise none is delivered.

Every place says nothing, the name of one tool or that of another. The reference asks only which names were told.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest

import wires
from dragoman.decoding import decode
from test_contradictions import delivered
from wires import Frame

Told = dict[str, str]
ARGUMENTS = {"bell": "a"}
TEXT = json.dumps(ARGUMENTS)
TOOLS = [{"name": name, "parameters": {"type": "object", "properties": {"bell": {}}}} for name in ("ring", "toll")]


def named(name: str) -> Frame:
    return {"name": name} if name else {}


def entry_of(told: Told, arguments: object = TEXT) -> Frame:
    """An entry of `tool_calls`: `function`, `beside` it, and `custom` where it is told."""
    entry: Frame = {"function": {**named(told["function"]), "arguments": arguments}, **named(told.get("beside", ""))}
    if told.get("custom"):
        entry["custom"] = named(told["custom"])
    return entry


def delta_of(told: Told) -> Frame:
    """A chat message, or what a chunk adds to one: a call, and one of the older form where `legacy` tells its name."""
    delta: Frame = {"tool_calls": [{"index": 0, "id": "c", "type": "function", **entry_of(told)}]}
    if told.get("legacy"):
        delta["function_call"] = {"name": told["legacy"], "arguments": TEXT}
    return delta


def chat(told: Told) -> bytes:
    return wires.body_of("openai-chat", [wires.chat_chunk(delta_of(told)), wires.chat_chunk({}, "tool_calls")])


def chat_whole(told: Told) -> bytes:
    return json.dumps(wires.chat_answer(**delta_of(told))).encode()


def ollama(told: Told, arguments: object = ARGUMENTS) -> bytes:
    return wires.body_of("ollama-chat", wires.ollama_stream(entry_of(told, arguments)))


def ollama_text(told: Told) -> bytes:
    return ollama(told, TEXT)


def responses(told: Told) -> bytes:
    """`start`, `final` arguments, `item`, `output`."""

    def item(place: str, arguments: str = TEXT) -> Frame:
        unnamed = {key: value for key, value in wires.function_call("", arguments).items() if key != "name"}
        return unnamed | named(told[place])

    frames = [
        wires.item_added(item("start", "")), wires.arguments_done(TEXT) | named(told["final"]),
        wires.item_done(item("item")),
    ]  # fmt: skip
    output = [item("output")] if told["output"] else []
    return wires.body_of("openai-responses", wires.responses_stream(*frames, output=output))


def gemini(told: Told) -> bytes:
    """The two spellings of the key; told alike they are refused as well."""
    calls = {key: {"name": name, "args": ARGUMENTS} for key, name in told.items() if name}
    return wires.body_of("gemini-generate", [wires.gemini_chunk(calls, reason="STOP")])


def messages(told: Told) -> bytes:
    """`start`, and a second start of the same block."""
    names = [told[place] for place in ("start", "restart") if told[place]]
    starts = [wires.block_start(wires.tool_use(name, ARGUMENTS)) for name in names]
    return wires.body_of("anthropic-messages", wires.messages_stream(*starts, wires.block_stop()))


#: name → (protocol, body, places)
BODIES: dict[str, tuple[str, Callable[[Told], bytes], tuple[str, ...]]] = {
    "chat": ("openai-chat", chat, ("function", "beside", "custom")),
    "chat-whole": ("openai-chat", chat_whole, ("function", "beside", "custom", "legacy")),
    "chat-legacy": ("openai-chat", chat, ("function", "legacy")),
    "ollama": ("ollama-chat", ollama, ("function", "beside")),
    "ollama-text": ("ollama-chat", ollama_text, ("function", "beside")),
    "responses": ("openai-responses", responses, ("start", "final", "item", "output")),
    "gemini": ("gemini-generate", gemini, ("functionCall", "function_call")),
    "messages": ("anthropic-messages", messages, ("start", "restart")),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_call_of_two_names_is_never_delivered(name: str):
    protocol, body, places = BODIES[name]
    tried = 0
    for names in itertools.product(("", "ring", "toll"), repeat=len(places)):
        told = dict(zip(places, names, strict=True))
        reply = decode(body(told), protocol, tools=TOOLS)  # type: ignore[arg-type]
        calls = [(call.name, call.values()) for call in reply.tool_calls] if delivered(reply) else []
        different = sorted({*names} - {""})
        if len(different) == 1 and (calls or names.count("") < len(names) - 1):
            may_refuse = protocol == "gemini-generate" or told.get("custom")  # two calls in one place, of two kinds
            assert calls == [(different[0], ARGUMENTS)] or (may_refuse and calls == []), told
        else:
            assert calls == [], told
            assert reply.error is not None or not different, told
        tried += 1
    assert tried == 3 ** len(places)


def pieced(*pieces: tuple[str, str], id: str = "") -> bytes:
    """A call at one index in pieces, each with a part of its name and of its arguments. `id`: of all but the first."""
    first, *rest = pieces
    entries = [wires.chat_call(first[0], first[1])]
    entries += [
        {"index": 0, **({"id": id} if id else {}), "function": {"name": name, "arguments": text}} for name, text in rest
    ]
    return wires.body_of("openai-chat", wires.chat_stream(*entries))


def test_a_name_that_goes_on_behind_whole_arguments_has_two_readings():
    """A name may come in pieces, but a tool's whole call is one: what goes on behind it is no piece of it for sure."""
    tools: list[Frame] = [{"name": name, "parameters": {}} for name in ("git", "git_status", "git_status_all", "all")]
    half = ('{"bell"', ': "a"}')
    for id, more in itertools.product(("", "c0"), ("", "{}", TEXT)):
        for name, piece in (("git", "_status"), ("git_status", "_all"), ("git", "_status_all")):
            for whole in (TEXT, *(["{}"] if more != TEXT else [])):
                reply = decode(pieced((name, whole), (piece, more), id=id), tools=tools)
                assert not delivered(reply) or not reply.tool_calls, (name, piece, more, reply)
                assert reply.error is not None
    for pieces in (
        (("git", ""), ("_status", TEXT)), (("git", half[0]), ("_status", half[1])), (("gi", TEXT), ("t_status", "")),
        (("git_st", half[0]), ("atus", ""), ("", half[1])), (("git", ""), ("_status", ""), ("", TEXT)),
    ):  # fmt: skip
        reply = decode(pieced(*pieces), tools=tools)
        assert [(call.name, call.values()) for call in reply.tool_calls] == [("git_status", ARGUMENTS)], (pieces, reply)

"""What is held of an answer's text does not depend on how a model cut it: at most twice the body, whoever holds it."""

from __future__ import annotations

import ast
import itertools
import json
import re
from collections.abc import Callable

from cases import counter
from codec.framing.test_held_bytes import held
from dragoman._json import raw
from dragoman.events.reply import Fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from patterns import ROOT
from profiles import some
from translating import Pipe

SIZE = 50_000
#: What does not grow with the body: what an assembly, its stages and one read of it take.
FIXED = 24 * 1024
NESTED = {"type": "object", "properties": {"k": {"type": "integer"}}}
TOOLS = (Tool("note", "", raw({"type": "object", "properties": {"n": {"type": "string"}, "o": NESTED}})),)


def event(value: str) -> str:
    return f"data: {value}\n\n"


def chat(delta: str) -> str:
    return event('{"choices":[{"delta":%s}]}' % delta)


def chat_call(arguments: str, name: str = '"name":"note",') -> str:
    return chat('{"tool_calls":[{"index":0,"id":"a","function":{%s"arguments":%s}}]}' % (name, json.dumps(arguments)))


def block(kind: str) -> str:
    return event('{"type":"content_block_start","index":0,"content_block":%s}' % kind)


def item(kind: str) -> str:
    return event('{"type":"response.output_item.added","output_index":0,"item":%s}' % kind)


MORE_ARGUMENTS = chat('{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}')
BLOCK_DELTA = event('{"type":"content_block_delta","index":0,"delta":{"type":"%s_delta","%s":%%s}}')
TOOL_USE = block('{"type":"tool_use","id":"t","name":"note","input":{}}')
JSON_DELTA = BLOCK_DELTA % ("input_json", "partial_json")
OPEN_CALL = '{"type":"function_call","id":"m","call_id":"c","name":"note","arguments":""}'
MANY = 20  # parts or pieces in one frame
#: By what grows: its protocol, what opens it, and the least bytes by which it grows; "%s" is the text.
GROWS = {
    "chat text": ("openai-chat", "", chat('{"content":%s}')),
    "chat chunks": ("openai-chat", "", chat('{"content":[%s]}' % ",".join(['{"type":"text","text":%s}'] * MANY))),
    "chat reasoning": ("openai-chat", "", chat('{"reasoning_content":%s}')),
    "chat refusal": ("openai-chat", "", chat('{"refusal":%s}')),
    "chat sound": ("openai-chat", "", chat('{"audio":{"transcript":%s}}')),
    "chat arguments": ("openai-chat", chat_call('{"n":"'), MORE_ARGUMENTS),
    "chat arguments between tokens": ("openai-chat", chat_call('{"n":'), MORE_ARGUMENTS),
    "chat nested arguments": ("openai-chat", chat_call('{"o":{"z":"'), MORE_ARGUMENTS),
    "chat arguments behind their end": ("openai-chat", chat_call('{"n":1}'), MORE_ARGUMENTS),
    "chat arguments that are none": ("openai-chat", chat_call("x"), MORE_ARGUMENTS),
    "chat arguments without a name": ("openai-chat", chat_call('{"n":"', ""), MORE_ARGUMENTS),
    "chat arguments behind another call": (
        "openai-chat",
        chat_call('{"n":"') + chat_call('{"n":"').replace('"index":0,"id":"a"', '"index":1,"id":"b"'),
        MORE_ARGUMENTS.replace('"index":0', '"index":1'),
    ),
    "ollama text": ("ollama-chat", "", '{"message":{"content":%s}}\n'),
    "ollama thinking": ("ollama-chat", "", '{"message":{"thinking":%s}}\n'),
    "gemini text": (
        "gemini-generate", "",
        event('{"candidates":[{"content":{"parts":[%s]}}]}' % ",".join(['{"text":%s}'] * MANY)),
    ),
    "gemini thinking": (
        "gemini-generate", "",
        event('{"candidates":[{"content":{"parts":[%s]}}]}' % ",".join(['{"thought":true,"text":%s}'] * MANY)),
    ),
    "gemini arguments": (
        "gemini-generate", "",
        event(
            '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"note","willContinue":true,"partialArgs":[%s]}'
            "}]}}]}" % ",".join(['{"jsonPath":"$.n","stringValue":%s,"willContinue":true}'] * MANY)
        ),
    ),
    "messages text": ("anthropic-messages", block('{"type":"text","text":""}'), BLOCK_DELTA % ("text", "text")),
    "messages thinking": (
        "anthropic-messages", block('{"type":"thinking","thinking":""}'), BLOCK_DELTA % ("thinking", "thinking")
    ),
    "messages arguments": ("anthropic-messages", TOOL_USE + JSON_DELTA % json.dumps('{"n":"'), JSON_DELTA),
    "messages search": (
        "anthropic-messages", block('{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'), JSON_DELTA
    ),
    "responses text": (
        "openai-responses", item('{"type":"message","id":"m","role":"assistant","content":[]}'),
        event('{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%s}'),
    ),
    "responses reasoning": (
        "openai-responses", item('{"type":"reasoning","id":"m","summary":[]}'),
        event('{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":%s}'),
    ),
    "responses arguments": (
        "openai-responses", item(OPEN_CALL),
        event('{"type":"response.function_call_arguments.delta","output_index":0,"delta":%s}'),
    ),
}  # fmt: skip
#: How a text begins that stages hold, or read as a call.
BEGINNINGS = {
    "plain": "",
    "bare JSON": '{"name": "note", "arguments": {"n": "',
    "a call": '<tool_call>{"name": "note", "arguments": {"n": "',
    "a call in tags": "<function=note><parameter=n>",
    "a nested value": '<tool_call>{"name": "note", "arguments": {"o": {"z": "',
    "thinking": "<think>",
    "a fence": "```json\n",
    "Python": '[note(n="',
    "a call in a call": "<function=note><parameter=o><function=note>",
}


def times(kind: str, text: str, encoded: bool, beginning: str = "") -> tuple[int, int]:
    """(the most bytes that were held, bytes of the body)."""
    protocol, opens, grows = GROWS[kind]
    stages = stages_for(TOOLS, Policy(sequential=encoded), new_id=counter())
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset({"note"}))
    reader, fold = Reader(decoder, stages), Fold()

    def take(data: bytes) -> None:
        for one in reader.feed(data):
            fold.add(one)

    feed: Callable[[bytes], object] = take
    if encoded:  # in the protocol whose end tells all text again
        encoder = PROTOCOLS["openai-responses"].encoder(new_id=counter(), model="m", created=1)
        feed = Pipe(reader, encoder).feed
    first = opens + (grows.replace("%s", json.dumps(beginning), 1).replace("%s", '""') if beginning else "")
    feed(first.encode())
    frame = grows.replace("%s", json.dumps(text, ensure_ascii=False)).encode()
    feed(frame * 100)  # what is made once, for all: patterns too, at their first use
    data = frame * (SIZE // len(frame))
    return held(feed, data, 2_000), len(data)


@for_each(
    ("kind", "text", "encoded"), some(itertools.product(GROWS, ["x", "中", "\n", "}"], [False, True]), "one of two", 2)
)
def test_text_in_deltas_of_a_character_takes_at_most_twice_the_body(kind: str, text: str, encoded: bool) -> None:
    most, size = times(kind, text, encoded)
    assert most <= 2 * size + FIXED


@for_each(
    ("beginning", "kind", "text"),
    some(itertools.product(BEGINNINGS, ["ollama text", "gemini text"], ["x", "中", " "]), "one of two", 2),
)
def test_text_that_stages_hold_does_too(beginning: str, kind: str, text: str) -> None:
    most, size = times(kind, text, False, BEGINNINGS[beginning])
    assert most <= 2 * size + FIXED


#: Where what answers say passes: folders of the package.
WAYS = ("client", "codec", "events", "history", "protocols", "stages", "tool_emulation")
#: Lists there of texts, events and findings that an object keeps, and why small pieces do not fill them.
LISTS = {
    "client/passthrough/exchange.py _said": "of the request",
    "client/streaming/reply_so_far.py unread": "paths of a schema",
    "client/streaming/response_stream.py _held": "until the answer's first text, call or end",
    "codec/errors/error_body.py messages": "of one short body",
    "codec/errors/error_body.py words": "of one short body",
    "codec/hosted/citations.py besides": "of one entry",
    "codec/hosted/found_files.py besides": "of one entry",
    "codec/hosted/found_files.py queries": "of one entry, each in a frame of its own",
    "codec/hosted/told_parts.py file_queries": "of entries, each in a frame of its own",
    "codec/hosted/told_parts.py queries": "of entries, each in a frame of its own",
    "codec/hosted/told_results.py said": "of one result in a history",
    "codec/hosted/told_results.py unsaid": "of one result in a history",
    "codec/parts/argument_text.py _pieces": "made one by `gather`",
    "codec/parts/assembly.py events": "of one read",
    "codec/parts/history_call_ids.py _ids": "of a request's calls, whose number is bounded",
    "codec/parts/history_call_ids.py _named": "of a request's results, whose number is bounded",
    "codec/parts/open_calls.py events": "of one read",
    "codec/parts/open_parts.py live": "the pieces of `ArgumentText`",
    "codec/parts/open_parts.py pieces": "folded when they are 64",
    "history/signature_vault.py _words": "of the request",
    "protocols/anthropic/request/parse.py stop_sequences": "of the request",
    "protocols/anthropic/response/delta_batch.py texts": "of one read",
    "protocols/ollama/wire.py images": "of one message",
    "protocols/openai_chat/response/unmodelled.py unread_of_older": "names of members",
    "protocols/openai_responses/response/delta_batch.py texts": "of one read",
    "protocols/openai_responses/response/item.py _first": "thinking, each in an event longer than its object",
    "stages/argument_repair/argument_writer.py gap": "white space between two tokens of arguments",
    "stages/argument_repair/argument_writer.py out": "of one read",
    "stages/cumulative.py _held": "64 at most",
    "stages/parallel_wrapper.py _out": "of one read",
    "stages/rescue/behind/brackets.py _open": "1,000 at most",
    "stages/rescue/behind/ended.py _ends": "closing tags of families",
    "stages/rescue/code.py _waiting": "32 at most",
    "stages/rescue/families/gemma.py _open": "brackets that are open, which a bound ends",
    "stages/rescue/parts.py behind": "1,000 at most",
    "stages/rescue/stage.py _out": "of one read",
    "stages/thinking/stage.py _out": "of one read",
    "tool_emulation/structured.py _out": "of one read",
    "tool_emulation/structured_text.py oddities": "kinds of deviations",
}


def test_every_list_of_texts_is_known() -> None:
    """One that is added is looked at: texts as a model cut them belong into `GatheredText`, events `GatheredRuns`."""
    found = {
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for way in WAYS
        for path in (ROOT / way).rglob("*.py")
        if re.search(r"list\[(str|Event|Found|Piece)\]", text := path.read_text("utf-8"))
        for owner in ast.walk(ast.parse(text))
        if isinstance(owner, ast.ClassDef)
        for node in [*owner.body, *ast.walk(owner)]
        if isinstance(node, ast.AnnAssign) and (node in owner.body or isinstance(node.target, ast.Attribute))
        if re.match(r"(dict\[.+, )?list\[(str|Event|Found|Piece)\]", ast.unparse(node.annotation))
        for name in [node.target.attr if isinstance(node.target, ast.Attribute) else ast.unparse(node.target)]
    }
    assert found == LISTS.keys()

"""Plant drifts in the quick ways to read, one at a time, and see whether the property tests notice each.

A drift is what somebody forgets: a field that one way looks at and its twin does not. Each is planted in a copy of the
package, and the properties of `tests/test_equal_ways.py` and `tests/test_plain_requests.py` are checked against it,
with the values that `make soak` tries; where the drift is of one field, with changes of that field alone. That they
hold without it is shown by `make soak`, and here with a field that nobody knows. Exits 1 when one survives that
`HARMLESS` does not name. `--list` names them, `--only TEXT` picks some, `--jobs` says how many are tried at a time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from dragoman.protocols.anthropic import wire as anthropic
from dragoman.protocols.openai_chat import wire as chat

PROJECT = Path(__file__).resolve().parent.parent
SOURCE = PROJECT / "src"
FOLDER = "dragoman/protocols"
UNKNOWN = "neverHeardOf"  # a field that no Struct has
ALIVE, NOTICED = 10, 11  # what a process ends with that has checked one
#: Drifts that change nothing, each with its reason.
HARMLESS: dict[str, str] = {
    "openai-chat batch ignores Choice.text": "it counts where there is no delta, and a batch has one in each choice",
    "openai-chat batch ignores CallPiece.arguments": "beside a function's own its key stands twice, in a batch once",
    "openai-chat batch ignores CallPiece.custom": "it counts where there is no function, and a batch has one",
    "openai-chat answer with audio passes": "the bytes pass as they came, and a recording has no fault that is counted",
    "openai-chat openai_chat/response/calls.py: no look 'and frame.count(b\\'_calls\"\\') < 2'": "a second list with arguments has their key twice",  # noqa: E501
    "openai-chat openai_chat/response/calls.py: no look 'and frame.count(b\\'\"function\"\\') < (3 if piece.type else 2)'": "a second function with arguments has their key twice",  # noqa: E501
    "anthropic-messages batch ignores Delta.signature": "a delta's type says which of its fields counts",
    "anthropic-messages batch ignores Delta.stop_reason": "a delta's type says which of its fields counts",
    "openai-chat gateway/relay.py: 'peek.stream or size > LARGE' becomes 'peek.stream'": "a large body passes by the usual way too",  # noqa: E501
    "openai-chat gateway/relay.py: 'or parsed.request.model != peek.model' becomes ''": "both read one name at one place",  # noqa: E501
}


class Mutant(NamedTuple):
    """`old` becomes `new`, once, in a file of the package.

    `protocol` is the one whose properties are checked; `field`: the field that drifts, "" where it is none alone.
    `tests`: files of tests that are checked in their place, for a drift that is the same in all ways to read.
    """

    protocol: str
    path: str
    old: str
    new: str
    name: str
    field: str = ""
    tests: tuple[str, ...] = ()


#: What holds of keys and names that are told twice, whatever reads them; and of frames, whatever cuts them.
TOLD_TWICE = (
    "tests/test_keys_told_twice.py", "tests/test_names_told_twice.py", "tests/test_contradictions.py",
    "tests/test_lost_arguments.py", "tests/protocols/test_delta_batches.py", "tests/test_texts_told_twice.py",
)  # fmt: skip
CUTS = ("tests/codec/framing/test_body.py",)


def mutants() -> Iterator[Mutant]:
    """All of them."""
    yield from fields_that_a_batch_ignores()
    yield from lines_that_are_gone()
    yield from conditions_that_are_gone()
    yield from looks_that_are_gone()
    yield from last_frames_that_stay()
    yield from short_cuts_around()
    yield from by_hand()


def fields_that_a_batch_ignores() -> Iterator[Mutant]:
    """A quick way that lets a field say anything."""
    path, name = f"{FOLDER}/openai_chat/response/delta_batch.py", "openai-chat"
    places = {
        chat.Delta: '"role": ...,',
        chat.Choice: '"delta": delta,',
        chat.Chunk: "narrowed(Chunk, {",
        chat.CallPiece: '"function": _Function,',
    }
    for wire, place in places.items():
        for field in msgspec.structs.fields(wire):
            if field.name not in ("content", "tool_calls", "role", "channel", "token_id", "index", "delta", "choices",
                                  "function", "type", "rest", "content_parts", "content_filter_results"):  # fmt: skip
                yield ignored(name, path, place, wire, field)
    path, name = f"{FOLDER}/anthropic/response/delta_batch.py", "anthropic-messages"
    for wire, place in ((anthropic.Delta, '{"type": Literal[kind],'), (anthropic.StreamEvent, '"index": int,')):
        for field in msgspec.structs.fields(wire):
            if field.name in ("error", "stop_reason", "signature"):
                yield ignored(name, path, place, wire, field)


def ignored(
    protocol: str, path: str, place: str, wire: type[msgspec.Struct], field: msgspec.structs.FieldInfo
) -> Mutant:
    """A field with any value of its type; of any type, where it is only known to be null mostly."""
    kind = "Any" if field.type is types.NoneType else "..."
    name = f"batch ignores {wire.__name__}.{field.name}"
    return Mutant(protocol, path, place, f'{place} "{field.name}": {kind},', name, field.name)


def lines_that_are_gone() -> Iterator[Mutant]:
    """A field of a lenient reader that somebody forgot, and one of a quick reader that may say anything there."""
    lenient = {
        "openai-chat": ("openai_chat/response/lenient.py", r"^        (\w+)=_\w+\(value\.get\(.*\),$"),
        "ollama-chat": ("ollama/wire.py", r"^        (\w+)=_\w+\(value.*\),$"),
    }
    for protocol, (file, pattern) in lenient.items():
        text = (SOURCE / FOLDER / file).read_text(encoding="utf-8")
        for found in re.finditer(pattern, text, re.M):
            line = found[0] + "\n"
            before = before_it(text, found)
            yield Mutant(protocol, f"{FOLDER}/{file}", before + line, before, f"{file} forgets {found[1]}", found[1])
    quick = {
        "ollama-chat": "ollama",
        "anthropic-messages": "anthropic",
        "gemini-generate": "gemini",
        "openai-responses": "openai_responses",
    }
    for protocol, folder in quick.items():
        path = f"{FOLDER}/{folder}/passthrough.py"
        text = (SOURCE / path).read_text(encoding="utf-8")
        for found in re.finditer(r"^    (\w+): None = None$", text, re.M):
            line = f"{before_it(text, found)}{found[0]}\n"
            anything = line.replace(found[0], f"    {found[1]}: msgspec.Raw = msgspec.Raw()")
            yield Mutant(protocol, path, line, anything, f"{folder}/passthrough.py looks at no {found[1]}", found[1])


def before_it(text: str, found: re.Match[str]) -> str:
    """The lines before a line that tell it from the same one in another Struct; none if it stands once."""
    start, line = found.start(), found[0] + "\n"
    while text.count(text[start : found.start()] + line) > 1:
        start = text.rfind("\n", 0, start - 1) + 1
    return text[start : found.start()]


def conditions_that_are_gone() -> Iterator[Mutant]:
    """A short cut that no longer looks at something."""
    file = f"{FOLDER}/ollama/response/decode.py"
    text = (SOURCE / file).read_text(encoding="utf-8")
    for found in re.finditer(r"^ {24}and ((?:answer|line)\.(\w+) is (?:None|NOTHING|False))$", text, re.M):
        yield Mutant("ollama-chat", file, found[0] + "\n", "", f"short cut without {found[1]}", found[2])
    short_cuts = [
        ("anthropic-messages", "anthropic/response/decode.py", "not (event.error or ", "not (", "error"),
        ("anthropic-messages", "anthropic/response/decode.py", "event.content_block or ", "", "content_block"),
        ("anthropic-messages", "anthropic/response/decode.py", 'delta.text if is_text else delta.thinking',
         "delta.text or delta.thinking", "text"),
        ("openai-chat", "openai_chat/response/calls.py", " or piece.extra_content or piece.rest", " or piece.rest", "extra_content"),  # noqa: E501
        ("openai-chat", "openai_chat/response/calls.py", "(piece.id or function.name", "(function.name", "id"),
        ("openai-chat", "openai_chat/response/calls.py", "piece.id or function.name or piece.name", "piece.id or piece.name", "name"),  # noqa: E501
        ("openai-chat", "openai_chat/response/delta_batch.py", "if each.index == choice and each.delta.content]", "if each.delta.content]", "index"),  # noqa: E501
        ("openai-chat", "openai_chat/response/delta_batch.py", "if call.index == index and", "if", "index"),
        ("openai-responses", "openai_responses/response/delta_batch.py", "each.output_index == item and each.content_index == place",  # noqa: E501
         "each.output_index == item", "content_index"),
        ("anthropic-messages", "anthropic/response/delta_batch.py", "if at == index and text]", "if text]", "index"),
    ]  # fmt: skip
    for protocol, file, old, new, field in short_cuts:
        yield Mutant(protocol, f"{FOLDER}/{file}", old, new, f"{file}: {old.strip()[:50]} is gone", field)


def looks_that_are_gone() -> Iterator[Mutant]:
    """A quick way that takes a frame without a look at what could make it another one."""
    chat, growth = "openai_chat/response/calls.py", "openai_chat/response/delta_batch.py"
    messages, responses = "anthropic/response", "openai_responses/response"
    gemini, ollama = "gemini/response/calls.py", "ollama/response/calls.py"
    look = "openai_chat/response/frame_look.py"
    looks = [
        ("openai-chat", growth, ' or b"rror" in chunk', ""),
        ("openai-chat", growth, "data.count(b'\"arguments\"') == 1 and (", "("),
        ("openai-chat", growth, "len(self._slots.by_index) < 2 or data.count(b'\"index\"') < 3", "True"),
        ("openai-chat", growth, "max(map(bytes.count, told, repeat(b'\"arguments\"'))) > 1 or", ""),
        ("openai-chat", look, "frame.count(b'\"arguments\"') > 1 or ", ""),
        ("openai-chat", look, " or frame.count(b'\"delta\"') > 1", ""),
        ("openai-chat", look, " or frame.count(b'\"choices\"') > 1", ""),
        ("openai-chat", growth, "or max(map(bytes.count, told, repeat(b'\"index\"'))) > 2", ""),
        ("openai-chat", chat, "and not may_repeat(frame)", ""),
        ("openai-chat", look, "(shortened is None or repeats_key(shortened)) and repeats_key(frame)", "False"),
        ("openai-chat", chat, "and frame.count(b'_calls\"') < 2", ""),
        ("openai-chat", chat, "and frame.count(b'\"function\"') < (3 if piece.type else 2)", ""),
        ("openai-chat", chat, "and function.parameters is NOTHING", ""),
        ("openai-chat", chat, "if name and ((piece.name or name) != name or", "if name and ("),
        ("anthropic-messages", f"{messages}/decode.py", "and frame.count(b'\"partial_json\"') == frame.count(b'\"delta\"') == 1", ""),  # noqa: E501
        ("anthropic-messages", f"{messages}/decode.py", "and frame.count(b'\"type\"') < 3", ""),
        ("anthropic-messages", f"{messages}/decode.py", "(len(calls) < 2 or frame.count(b'\"index\"') < 2)", "True"),
        ("anthropic-messages", f"{messages}/delta_batch.py", "line.count(key) > 1 or", ""),
        ("openai-responses", f"{responses}/delta_batch.py", "and data.count(b'\"delta\"') < 2", ""),
        ("openai-responses", f"{responses}/delta_batch.py", "len(live) < 2 or data.count(b'\"output_index\"') < 2", "True"),  # noqa: E501
        ("openai-responses", f"{responses}/delta_batch.py", "said is None or joined.count(b'\"delta\"') > len(lines)", "said is None"),  # noqa: E501
        ("openai-responses", f"{responses}/delta_batch.py", "grown is None or joined.count(b'\"delta\"') > len(lines)", "grown is None"),  # noqa: E501
        ("openai-responses", f"{responses}/delta_batch.py", "not is_alone and joined.count(b'\"output_index\"') > len(lines)", "False"),  # noqa: E501
        ("openai-responses", f"{responses}/item_places.py", "self.by_id(id) is at_index", "True"),
        ("gemini-generate", gemini, "or self._partial is not None ", ""),
        ("gemini-generate", gemini, " or self._pieced:", ":"),
        ("gemini-generate", "gemini/wire.py", "call.will_continue is call.arguments is", "call.will_continue is"),
        ("gemini-generate", "gemini/wire.py", " is call.parameters is NOTHING", " is NOTHING"),
        ("gemini-generate", "gemini/wire.py", "call.partialArgs is None\n        and ", ""),
        ("ollama-chat", ollama, "function.parameters is call.arguments is ", "call.arguments is "),
        ("ollama-chat", ollama, " is call.arguments is call.parameters", " is call.parameters"),
        ("ollama-chat", ollama, " or (call.name and call.name != function.name)", ""),
        ("ollama-chat", ollama, "self._last is not None or not all", "not all"),
        ("ollama-chat", ollama, "self._last is not None or not (functions", "not (functions"),
    ]  # fmt: skip
    for protocol, file, old, new in looks:
        name = f"{file}: no look {' '.join(old.split())[:60]!r}"
        own = f"tests/protocols/test_{file.partition('/')[0]}.py"
        yield Mutant(protocol, f"{FOLDER}/{file}", old, new, name, tests=(*TOLD_TWICE, own))
    for old, new in (
        (
            "(told := chunk.choices[0]).index == choice and told.delta.content:",
            "(told := chunk.choices[0]).delta.content:",
        ),
        (
            "is not Malformed and (told := chunk.choices[0]).index == choice:",
            "is not Malformed and (told := chunk.choices[0]):",
        ),
    ):
        yield Mutant("openai-chat", f"{FOLDER}/{growth}", old, new, f"{growth}: no look {old[:50]!r}", "index")
    heads = [
        ("and _CR not in data\n            and total <= self._quick", "and total <= self._quick"),
        ('and data.find(b"\\n", len(head)) == size - 2', ""),
        ("and total <= self._quick\n        ):", "):"),
        ("if cut == size - 2 and _CR not in data:", "if cut == size - 2:"),
        ('and data.find(b"\\n", cut + 8) == size - 2', ""),
        ('data.find(b"\\n") == size - 1 and data[:1] == b"{"', 'data[:1] == b"{"'),
        ("(may_escape or self._edge)", "self._edge"),
        ("(may_escape or self._edge)", "may_escape"),
        ('self._usual, self.head, self._decoder = "", b"", None', 'self._usual, self.head = "", b""'),
    ]
    for old, new in heads:
        name = f"framing: no look {' '.join(old.split())[:60]!r}, but {new!r}"
        yield Mutant("openai-chat", "dragoman/codec/framing/body.py", old, new, name, tests=CUTS)


def last_frames_that_stay() -> Iterator[Mutant]:
    """A frame that is read as the last one, and is not like it, or whose key is told twice in a value of its own."""
    body = "dragoman/codec/framing/body.py"
    batch, growth = "dragoman/codec/delta_batch.py", f"{FOLDER}/openai_chat/response/delta_batch.py"
    messages, keys = f"{FOLDER}/anthropic/response/decode.py", "dragoman/codec/repeated_keys.py"
    alike = ("tests/codec/test_delta_batch.py", "tests/protocols/test_delta_batches.py")
    events, at_once = f"{FOLDER}/openai_responses/response/call_events.py", ("tests/protocols/test_call_events.py",)
    told_once, unread = ("tests/test_repeated_arguments.py",), "dragoman/codec/parts/unread_arguments.py"
    settled, odd_numbers = "dragoman/codec/parts/settled_arguments.py", ("tests/test_odd_numbers.py",)
    for path, old, new, tests in (
        (batch, "and frame.endswith(self._tail)", "", alike),
        (batch, "self._head and frame.startswith(self._head) and", "self._head and", alike),
        (batch, "self._tries <= _MOST_IN_VAIN and _around", "_around", alike),
        (batch, "or frame.find(key, place + 1) >= 0", "", alike),
        (batch, "not is_count or ", "", alike),
        (batch, " or not frame.startswith(self._middle, end)", "", alike),
        (body, "if self.head and total", "if total", alike),
        (body, "self.head and total <= self._most else", "self.head else", alike),
        (
            messages,
            'is_call and kind == "content_block_start" and is_usual_start(frame)',
            'is_call and kind == "content_block_start"',
            TOLD_TWICE,
        ),
        (growth, "        self._last.forget()\n", "", alike),
        (growth, "                    self._index = call.index\n", "", alike),
        (messages, "\n                last.forget()\n", "\n", alike),
        (messages, "\n                    last.forget()\n", "\n", alike),
        (keys, "and text.startswith(inner, start)", "", told_once),
        (unread, "is str and value[:1].isalnum()", "is str", ("tests/test_unread_arguments.py",)),
        (keys, "    if not _json.holds_all(read, text):\n        return False\n", "", told_once),
        ("dragoman/_json.py", r' and (text.find(b"\\") < 0 or text.rfind(rb"\u0022") < 0)', "", told_once),
        ("dragoman/_json.py", "counts[0] == counts[1] and", "", told_once),
        (keys, """text[:1] == b"{" and _json.is_told_once(text)""", """text[:1] == b"{\"""", told_once),
        (keys, "is dict and (_has_no_room(text, members) or _json.holds_all(members, text))", "is dict", told_once),
        (keys, "!= _QUOTE and not _json.is_told_once(bytes(member)):", "!= _QUOTE and False:", told_once),
        (
            f"{FOLDER}/gemini/response/calls.py",
            " and has_plain_parts(frame, chunk, [call.args for call in calls])",
            "",
            TOLD_TWICE,
        ),
        (
            f"{FOLDER}/gemini/response/calls.py",
            "is_usual and is_plain_object(text := ",
            "is_usual and (text := ",
            odd_numbers,
        ),
        (
            f"{FOLDER}/ollama/response/calls.py",
            "if not is_plain_object(text):",
            "if False:",
            odd_numbers,
        ),
        (events, "if is_usual and _json.holds_all(event, data)", "if is_usual", at_once),
        (events, ' and "content" not in event.item', "", at_once),
        (events, '{"item_id": event.item_id, ', "{", at_once),
        (
            settled,
            "type(_json.decode(text)) is not _json.Malformed and not",
            "_json.is_json(text) and not",
            odd_numbers,
        ),
    ):
        name = f"last frame: {path.rpartition('/')[2]}: {old.strip()[:50]!r} becomes {new!r}"
        yield Mutant("openai-chat", path, old, new, name, tests=tests)


def short_cuts_around() -> Iterator[Mutant]:
    """A short cut outside of a protocol's folder that no longer looks: at sizes of frames, bursts, texts behind a call,
    requests and their bounds, and what a ledger counts.
    """
    behind = tuple(
        f"tests/{name}.py" for name in ("rescue/test_texts_behind_tags", "test_texts_behind_calls", "test_rescue")
    )
    places = {
        "codec/repeated_keys.py": ("tests/codec/test_texts_under_a_key.py", "tests/test_texts_told_twice.py"),
        "codec/plain_answer.py": ("tests/test_plain_answers.py",),
        **{
            f"protocols/{name}/response/plain_answer.py": ("tests/test_plain_answers.py",)
            for name in ("anthropic", "gemini", "ollama", "openai_chat", "openai_responses")
        },
        "protocols/openai_chat/response/plain_chunk.py": ("tests/protocols/test_plain_chunks.py",),
        "protocols/openai_chat/response/decode.py": ("tests/protocols/test_plain_chunks.py",),
        "protocols/openai_chat/response/frame_look.py": ("tests/protocols/test_frame_look.py",),
        "protocols/anthropic/response/told_again.py": ("tests/test_contradictions.py",),
        "protocols/ollama/wire.py": ("tests/test_found_streams.py",),
        "pipe.py": ("tests/test_pipe.py",),
        "stages/argument_repair/stage.py": ("tests/stages/argument_repair", "tests/test_repeated_arguments.py"),
        "codec/framing/plain_keys.py": ("tests/codec/framing/test_body.py", "tests/test_repeated_arguments.py"),
        "client/streaming/threaded_reading.py": ("tests/gateway/test_threaded_reading.py",),
        "stages/rescue/behind/sealed.py": behind,
        "stages/rescue/runner.py": behind,
        "gateway/attempt_bounds.py": ("tests/gateway/test_attempt_bounds.py",),
        "gateway/request_bodies.py": ("tests/gateway/test_door.py", "tests/gateway/test_bad_requests.py"),
        "protocols/ollama/response/calls.py": ("tests/test_found_streams.py",),
        "gateway/relay.py": ("tests/gateway/test_whole.py", "tests/gateway/test_passthrough.py"),
        "client/requester.py": ("tests/gateway/test_whole.py", "tests/gateway/test_passthrough.py"),
        "client/target_state.py": ("tests/gateway/test_whole.py", "tests/gateway/test_passthrough.py"),
        "routing/metering.py": ("tests/client/test_metered_text.py", "tests/gateway/test_ledger_chunks.py"),
        "client/streaming/pouring.py": (
            "tests/gateway/test_threaded_reading.py", "tests/client/test_metered_text.py",
            "tests/gateway/test_ledger_chunks.py",
        ),
    }  # fmt: skip
    looks = (
        ("codec/plain_answer.py", "not (answer.text or answer.calls) or ", ""),
        ("codec/plain_answer.py", "call.name in offered_names and ", ""),
        ("codec/plain_answer.py", "min(bounds.arguments, bounds.argument_values)", "bounds.arguments"),
        ("codec/plain_answer.py", 'len(ids) == count and "" not in ids', '"" not in ids'),
        ("codec/plain_answer.py", 'len(ids) == count and "" not in ids', "len(ids) == count"),
        ("codec/plain_answer.py", "if count >= min(", "if False and count >= min("),
        ("codec/plain_answer.py", 'counts == "text" and behind > 0', "False"),
        ("codec/plain_answer.py", "        is_open = False\n", ""),
        ("codec/plain_answer.py", "            made.add(id)\n", ""),
        ("protocols/openai_chat/response/plain_answer.py", " or not _json.holds_all(answer, data)", ""),
        ("protocols/openai_chat/response/plain_answer.py", 'bool(calls) is (choice.finish_reason == "stop") or not', "not"),  # noqa: E501
        ("protocols/openai_chat/response/plain_answer.py", "not all(is_plain_object(", "not all(bool("),
        ("protocols/openai_chat/response/plain_answer.py", "0 < answer.created < 1e11", "answer.created"),
        ("protocols/openai_responses/response/plain_answer.py", " or not _json.holds_all(answer, data)", ""),
        ("protocols/openai_responses/response/plain_answer.py", " and is_plain_object(item.arguments)", ""),
        ("protocols/openai_responses/response/plain_answer.py", "is _Message and not number", "is _Message"),
        ("protocols/openai_responses/response/plain_answer.py", "len({item.id for item in answer.output}) < len(answer.output)", "False"),  # noqa: E501
        ("protocols/openai_responses/response/plain_answer.py", 'odd or "cost" in usage', "odd"),
        ("protocols/openai_responses/response/plain_answer.py", 'odd or "cost" in usage', '"cost" in usage'),
        ("protocols/anthropic/response/plain_answer.py", "is _Text and not number", "is _Text"),
        ("protocols/anthropic/response/plain_answer.py", 'bool(calls) is (message.stop_reason == "end_turn") or not', "not"),  # noqa: E501
        ("protocols/anthropic/response/plain_answer.py", "not all(says_something(", "not all(bool("),
        ("protocols/anthropic/response/plain_answer.py", "if not has_plain_parts(data, message, ", "if not (True or "),
        ("protocols/anthropic/response/plain_answer.py", "    if odd:\n        return None\n", ""),
        ("protocols/gemini/response/plain_answer.py", " and says_something(told := _json.raw_text(call.args))", " and (told := _json.raw_text(call.args))"),  # noqa: E501
        ("protocols/gemini/response/plain_answer.py", " and not number", ""),
        ("protocols/gemini/response/plain_answer.py", "part.text and part.thoughtSignature is None", "part.text"),
        ("protocols/gemini/response/plain_answer.py", "if not has_plain_parts(data, answer, arguments)", "if False"),
        ("protocols/gemini/response/plain_answer.py", "counted.toolUsePromptTokenCount is not None or ", ""),
        ("protocols/ollama/response/plain_answer.py", " or (created := parse_time(answer.created_at)) is None", " or ((created := parse_time(answer.created_at)) and False)"),  # noqa: E501
        ("protocols/ollama/response/plain_answer.py", "if not has_plain_parts(data, answer, ", "if not (True or "),
        ("protocols/ollama/response/plain_answer.py", "if not (digits := bytes(raw)).isdigit()", "if not (digits := bytes(raw))"),  # noqa: E501
        ("protocols/ollama/response/plain_answer.py", "if not says_something(arguments)", "if not arguments"),
        ("protocols/ollama/response/plain_answer.py", "if index > behind", "if index > behind + 1"),
        ("protocols/ollama/response/plain_answer.py", "if not id and not call.type", "if not id"),
        ("protocols/openai_chat/response/plain_chunk.py", " or not _json.holds_all(chunk, frame)", ""),
        ("protocols/openai_chat/response/plain_chunk.py", '(chunk.usage and b"rror" not in frame)', "chunk.usage"),
        ("protocols/openai_chat/response/plain_chunk.py", "elif rest and (choice is None or choice.finish_reason):", "elif False:"),  # noqa: E501
        ("protocols/openai_chat/response/frame_look.py", "self._is_twice = self._around = self._beside = self._arguments = None", "self._around = self._beside = self._arguments = None"),  # noqa: E501
        ("protocols/openai_chat/response/frame_look.py", "self._is_twice = self._around = self._beside = self._arguments = None", "self._is_twice = self._beside = self._arguments = None"),  # noqa: E501
        ("protocols/openai_chat/response/frame_look.py", "self._is_twice = self._around = self._beside = self._arguments = None", "self._is_twice = self._around = self._arguments = None"),  # noqa: E501
        ("protocols/openai_chat/response/frame_look.py", "self._is_twice = self._around = self._beside = self._arguments = None", "self._is_twice = self._around = self._beside = None"),  # noqa: E501
        ("protocols/anthropic/response/told_again.py", 'not in ("", call.id)', 'is None'),
        ("protocols/anthropic/response/told_again.py", " or read_name(fields) != call.name", ""),
        ("protocols/anthropic/response/told_again.py", 'told == "null" or is_same(arguments, told)', "True"),
        ("protocols/anthropic/response/told_again.py", "call.text.raw().strip() or block.told or", "call.text.raw().strip() or"),  # noqa: E501
        ("protocols/ollama/wire.py", "not line.done and line == ", "line == "),
        ("pipe.py", "is not self._kind or not self._lasts:", "is not self._kind:"),
        ("pipe.py", "                    self._kind = None\n                    return _pass(", "                    return _pass("),  # noqa: E501
        ("pipe.py", "        self._kind = None\n        if type(events[0]) is Start", "        if type(events[0]) is Start"),  # noqa: E501
        ("pipe.py", "            content.clear()\n", ""),
        ("pipe.py", "            _pass(self._kept, self.stages)\n", ""),
        ("pipe.py", "            self.handles = EVERY_KIND\n", ""),
        ("pipe.py", "self.handles = acts_on | sees", "self.handles = acts_on"),
        ("stages/argument_repair/stage.py", "takes_as_is(text) and is_plain_object(text):", "takes_as_is(text):"),
        ("stages/argument_repair/stage.py", "if not call.size and call.schema", "if call.schema"),
        ("stages/argument_repair/stage.py", "and self._live and schema.takes_as_is(", "and schema.takes_as_is("),
        ("stages/argument_repair/stage.py", "is_all = not self._calls", "is_all = True"),
        ("stages/argument_repair/stage.py", "            elif type(event) is Finish and (self._mended or self._failed):  # the end says so\n                is_all = False\n", ""),  # noqa: E501
        ("stages/argument_repair/stage.py", "if is_all and not begun else fine", "if is_all else fine"),
        ("codec/framing/plain_keys.py", '            if data[place + 1] == _U and data.startswith(b"\\\\u00", place):\n                return True\n', ""),  # noqa: E501
        ("protocols/openai_chat/response/decode.py", "or (choice and self._choice not in (_NO_CHOICE, choice.index))", ""),  # noqa: E501
        ("codec/repeated_keys.py", "return count > told and repeats_key(frame)", "return False"),
        ("codec/repeated_keys.py", "count > told and repeats_key(frame)", "count > told + 1 and repeats_key(frame)"),
        ("client/streaming/threaded_reading.py", "all(_is_rare(byte", "any(_is_rare(byte"),
        ("client/streaming/threaded_reading.py", '(b"\\n", 40), ', ""),
        ("client/streaming/threaded_reading.py", '(b"{", 24), ', ""),
        ("client/streaming/threaded_reading.py", '(b"\\\\", 16), ', ""),
        ("client/streaming/threaded_reading.py", '(b"<", 128), ', ""),
        ("client/streaming/threaded_reading.py", "self._is_event_stream and _is_usual(", "_is_usual("),
        ("client/streaming/threaded_reading.py", "if time.thread_time() > until:", "if False:"),
        ("client/streaming/threaded_reading.py", "            if self.is_due(cut):\n                break\n", ""),
        ("client/streaming/threaded_reading.py", "self._is_packed or (self.unread", "(self.unread"),
        ("client/streaming/threaded_reading.py", "0 if events else self.unread + len(data)", "0"),
        ("client/streaming/threaded_reading.py", "self.unread > self._most or self.size > _LONG", "self.unread > self._most"),  # noqa: E501
        ("client/streaming/pouring.py", "                grown += len(event.text)\n", ""),
        ("client/streaming/pouring.py", "            meter.grown += grown()\n", "            pass\n"),
        ("client/streaming/pouring.py", "if len(events) == 1 and (", "if ("),
        ("client/streaming/pouring.py", "        apart.size += size\n", ""),
        ("client/streaming/pouring.py", "            apart.unread += size\n", ""),
        ("routing/metering.py", "(*events[:first], *events[end:])", "events[:first]"),
        ("routing/metering.py", "(*events[:first], *events[end:])", "events[end:]"),
        ("routing/metering.py", "        rest = tuple(events)\n", "        rest = ()\n"),
        ("gateway/attempt_bounds.py", "not _is_once(body, way[-1])", "False"),
        ("gateway/attempt_bounds.py", "body.count(_quoted(name)) <= 1 or not repeats_key(body)", "True"),
        ("gateway/attempt_bounds.py", "is_hidden or (is_special and _stands", "(is_special and _stands"),
        ("gateway/attempt_bounds.py", '|document(?:_url)?"|video|', "|video|"),
        ("gateway/attempt_bounds.py", "|n(?:put_|line))", "|n(?:put_))"),
        ("gateway/attempt_bounds.py", '(rb"\\\\u00")', '(rb"\\\\u005")'),
        ("gateway/attempt_bounds.py", "_COPIES | _INSIDE", "_COPIES"),
        ("gateway/attempt_bounds.py", "_COPIES | _INSIDE", "_INSIDE"),
        ("gateway/request_bodies.py", "min(bounds.depth, bounds.tools, bounds.messages)", "min(bounds.tools, bounds.messages)"),  # noqa: E501
        ("gateway/request_bodies.py", "min(bounds.depth, bounds.tools, bounds.messages)", "min(bounds.depth, bounds.messages)"),  # noqa: E501
        ("gateway/request_bodies.py", "min(bounds.depth, bounds.tools, bounds.messages)", "min(bounds.depth, bounds.tools)"),  # noqa: E501
        ("gateway/request_bodies.py", "body.find(b\"\\\\\") < 0 or not _may_halve(body)", 'body.find(b"\\\\") < 0 or True'),  # noqa: E501
        ("gateway/request_bodies.py", "if len(item) > most - depth:", "if len(item) > 2 * (most - depth):"),
        ("protocols/ollama/response/calls.py", " is call.parameters is NOTHING", " is NOTHING"),
        ("client/requester.py", "said or chain is not asked or", "said or"),
        ("client/requester.py", " or not is_healthy", ""),
        ("client/requester.py", "ready is not target and not self.target_states.passes(ready, original)", "False"),
        ("client/target_state.py", "original.suits(target) and self.is_clean(target)", "self.is_clean(target)"),
        ("client/target_state.py", "original.suits(target) and self.is_clean(target)", "original.suits(target)"),
        ("client/target_state.py", "        if target.name in self._deviating:\n            return False\n", ""),
        ("gateway/relay.py", "peek.stream or size > LARGE", "peek.stream"),
        ("gateway/relay.py", "or parsed.request.model != peek.model", ""),
        ("gateway/relay.py", "if seen is not None and not parsed.deviations:", "if seen is not None:"),
        ("stages/rescue/behind/sealed.py", "(not words or _TAG_BEGINS.match(words))", "not words"),
        ("stages/rescue/behind/sealed.py", "if not is_sure and len(words) - found.end() < _VALUE_AHEAD:", "if False:"),
        ("stages/rescue/behind/sealed.py", 'value is not None and value["value"] is not None', "True"),
        ("stages/rescue/behind/sealed.py", """"\\n" in lead.group() or lead.group().isspace()""", "False"),
        ("stages/rescue/behind/sealed.py", '_SHOWN.sub(" ", words[found.end() :])', "words[found.end() :]"),
        ("stages/rescue/behind/sealed.py", '_MARK_BEGUN.sub("", _CODE_BEGUN.sub("", rest))', '_MARK_BEGUN.sub("", rest)'),  # noqa: E501
        ("stages/rescue/behind/sealed.py", '_MARK_BEGUN.sub("", _CODE_BEGUN.sub("", rest))', '_CODE_BEGUN.sub("", rest)'),  # noqa: E501
        ("stages/rescue/behind/sealed.py", "if not is_sure and len(words) - found.end() < _SIGN_AHEAD:", "if False:"),
        ("stages/rescue/runner.py", "            stop = self._markers.held(text)", "            pass"),
        ("stages/rescue/behind/sealed.py", "return False if is_sure else None\n    tag", "return False\n    tag"),
        ("stages/rescue/behind/sealed.py", " and _HTML.match(tag[1].strip()) is None", ""),
        ("stages/rescue/behind/sealed.py", "None if any(key.startswith(begun[1]) for key in keys) else False", "False"),
        ("stages/rescue/behind/sealed.py", '_QUOTED_BEGINS.match(words) or words[0] == "<"', 'words[0] == "<"'),
        ("stages/rescue/behind/sealed.py", '_QUOTED_BEGINS.match(words) or words[0] == "<"', "_QUOTED_BEGINS.match(words)"),  # noqa: E501
        ("stages/rescue/behind/sealed.py", "(by_bracket and end.isalnum())", "end.isalnum()"),
        ("stages/rescue/behind/sealed.py", """and (mark.group() != ")" or is_value)""", ""),
        ("stages/rescue/behind/sealed.py", "            depth = max(depth, 0)\n", ""),
        ("stages/rescue/behind/sealed.py", "not in STOP_TOKENS and not _is_own(", "not in STOP_TOKENS and not (lambda *_: False)("),  # noqa: E501
    )  # fmt: skip
    for path, old, new in looks:
        name = f"{path}: {' '.join(old.split())[:60]!r} becomes {' '.join(new.split())[:40]!r}"
        yield Mutant("openai-chat", f"dragoman/{path}", old, new, name, tests=places[path])


def by_hand() -> Iterator[Mutant]:
    """What was planted once, and was noticed by nobody then."""
    place = '"annotations": ...,'
    for field in ("function_call", "refusal", "audio", "images", "thinking", "reasoning_text"):
        yield Mutant(
            "openai-chat",
            f"{FOLDER}/openai_chat/passthrough.py",
            place,
            f'{place} "{field}": ...,',
            f"answer with {field} passes",
            field,
        )
    yield Mutant(
        "ollama-chat",
        f"{FOLDER}/ollama/request/parse.py",
        "tool_call_id: ",
        "tool_call_number: ",
        "request loses tool_call_id",
    )
    yield Mutant("gemini-generate", f"{FOLDER}/gemini/request/parameters.py",
                 " and self.functionResponse.response != _NULL", "", "request reads a null response")  # fmt: skip
    for protocol, path, old, new, name in (
        ("openai-chat", "openai_chat/request/parse.py", "ge=1, le=2**53", "ge=0, le=2**53", "reads a limit of nothing"),
        ("ollama-chat", "ollama/request/parse.py", "=plain.stream is not False", "=plain.stream is True", "is whole"),
        ("anthropic-messages", "anthropic/request/parse.py", "    max_tokens: _Count\n",
         "    max_tokens: _Count | None = 1\n", "needs no limit"),
        ("gemini-generate", "gemini/request/parameters.py", "            if schema is not None:\n                return None\n",  # noqa: E501
         "", "reads one of two schemas"),
        ("openai-responses", "openai_responses/request/parse_messages.py", "self.role is not None and self.call_id is ",
         "self.call_id is ", "reads a message of nobody"),
    ):  # fmt: skip
        yield Mutant(protocol, f"{FOLDER}/{path}", old, new, f"request {name}")
    yield Mutant("anthropic-messages", f"{FOLDER}/anthropic/request/parse_messages.py",
                 'class _PlainResultText(msgspec.Struct, forbid_unknown_fields=True, gc=False):\n    type: Literal["text"]\n',  # noqa: E501
                 "class _PlainResultText(msgspec.Struct, gc=False):\n", "request reads a text without its type")  # fmt: skip  # noqa: E501


def planted(mutant: Mutant) -> str:
    """The text of its file with it.

    Raises:
        ValueError: it has no place in the file, or several: the code has changed, and the mutant must too.
    """
    text = (SOURCE / mutant.path).read_text(encoding="utf-8")
    if (places := text.count(mutant.old)) != 1:
        raise ValueError(f"{mutant.name}: {mutant.old!r} stands {places} times in {mutant.path}")
    return text.replace(mutant.old, mutant.new)


def is_noticed(mutant: Mutant) -> bool:
    """Whether a property fails when it is planted."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE / "dragoman", Path(folder) / "dragoman")  # with what is compiled already
        (Path(folder) / mutant.path).write_text(planted(mutant), encoding="utf-8")
        return fails(mutant, folder)


def fails_already(mutant: Mutant) -> bool:
    """Whether a property fails that would notice it, and nothing is planted."""
    return fails(mutant, str(SOURCE))


def fails(mutant: Mutant, source: str) -> bool:
    """Whether a property that it should break fails against the package of a folder.

    Raises:
        ValueError: the package cannot be imported, so that it says nothing of the properties.
    """
    environment = {**os.environ, "PYTHONPATH": f"{source}:{PROJECT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(Path(__file__)), "--check", mutant.protocol, mutant.path, mutant.field]
    if mutant.tests:
        file = f"{folder_of_times().name}/{hash(mutant.tests)}"
        command = [sys.executable, str(Path(__file__)), "--test", file, *mutant.tests]
    run = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, check=False)
    if run.returncode not in (ALIVE, NOTICED):
        raise ValueError(f"{mutant.name}: {run.stderr.decode(errors='replace')[-500:]}")
    return run.returncode == NOTICED


@cache
def folder_of_times() -> tempfile.TemporaryDirectory[str]:
    """Where it stands how long each test took; it goes with the program."""
    return tempfile.TemporaryDirectory(prefix="mutants-")


class QuickFirst:
    """A plugin of pytest: the tests that took least when nothing was planted come first. They notice most drifts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._took: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = msgspec.json.decode(self._file.read_bytes()) if self._file.exists() else {}
        items.sort(key=lambda item: known.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[report.nodeid] = self._took.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if not self._file.exists():
            self._file.write_bytes(msgspec.json.encode(self._took))


def kind_of(path: str) -> str:
    """Which properties a drift in a file must break."""
    return "requests" if "/request/" in path else "whole answers" if "/passthrough" in path else "streams"


def check(protocol: str, path: str, field: str) -> int:
    """Check the properties that a drift in a file must break, against the package that is imported here."""
    import test_equal_ways
    import test_plain_requests
    from dragoman.codec.framing import event_stream

    names = [field] if field else []
    event_stream._SMALL = 0  # few bytes are read together too
    try:
        match kind_of(path):
            case "requests":
                test_plain_requests.check_requests(protocol, names)
                if protocol in test_plain_requests.WITH_PARAMETERS:
                    test_plain_requests.check_parameters(protocol)
            case "whole answers":
                test_equal_ways.check_whole_answers(protocol, names)
            case _:
                test_equal_ways.check_streams(protocol, names)
    except Exception:  # a drift may break more than what is asserted
        return NOTICED
    return ALIVE


def main() -> int:
    """Plant and test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--check", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--test", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.test:
        file, *tests = options.test
        ended = pytest.main(["-x", "-p", "no:cacheprovider", *tests], [QuickFirst(Path(file))])
        return {0: ALIVE, 1: NOTICED}.get(ended, ended)
    if options.check:
        return check(*options.check)
    chosen = [mutant for mutant in mutants() if options.only in f"{mutant.protocol} {mutant.name}"]
    for mutant in chosen:
        planted(mutant)  # each has its place, before the first is tried
        if options.list:
            print(mutant.protocol, mutant.name)
    if options.list:
        return 0
    survivors, begun = 0, time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        plain = {
            mutant.tests or (mutant.protocol, kind_of(mutant.path)): mutant._replace(field=UNKNOWN) for mutant in chosen
        }
        for mutant, is_broken in zip(plain.values(), pool.map(fails_already, plain.values()), strict=True):
            if is_broken:
                raise ValueError(f"{mutant.protocol}, {kind_of(mutant.path)}: a property fails, and nothing is planted")
        for mutant, noticed in zip(chosen, pool.map(is_noticed, chosen), strict=True):
            if not noticed:
                why = HARMLESS.get(f"{mutant.protocol} {mutant.name}")
                survivors += why is None
                print(f"survives: {mutant.protocol} {mutant.name}" + (f" (harmless: {why})" if why else ""), flush=True)
    print(f"{len(chosen)} planted, {survivors} survive, {time.monotonic() - begun:.0f} s")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())

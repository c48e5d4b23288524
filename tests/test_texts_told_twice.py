"""A text under a key that stands twice in its frame: readers differ in which of the two counts. The answer says so, or
fails, or holds both; where both are the same, one of them is empty, or the frame is one of many sizes, it may say
nothing.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import wires
from dragoman.decoding import decode
from for_each import for_each
from test_keys_told_twice import doubled, members
from two_calls import Path, read, value_at, wire_body
from wires import Frame

WORDS = ("The tests", " take", " four\n", "minutes", " eäch", ' "one"', ".")
ITEM = {"id": "m", "type": "message", "role": "assistant", "content": []}


def chat(key: str) -> list[Frame]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [
        *({**head, **wires.chat_chunk({key: word})} for word in WORDS),
        {**head, **wires.chat_chunk({}, "stop")},
    ]


def chat_with_ids() -> list[Frame]:
    return [{**frame, "id": f"c{at}"} for at, frame in enumerate(chat("content"))]


def messages(kind: str) -> list[Frame]:
    block = [wires.block_start({"type": kind, kind: ""})]
    block += [wires.block_delta({"type": f"{kind}_delta", kind: word}) for word in WORDS]
    return wires.messages_stream(*block, wires.block_stop(), reason="end_turn")


def responses() -> list[Frame]:
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    deltas = [{"type": "response.output_text.delta", **place, "delta": word} for word in WORDS]
    return wires.responses_stream(wires.item_added(ITEM), *deltas)


def gemini(**more: Any) -> list[Frame]:
    return [*(wires.gemini_chunk({"text": word, **more}) for word in WORDS), wires.GEMINI_END]


def ollama(key: str) -> list[Frame]:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    lines = [wires.ollama_line(**{"content": "", key: word}) for word in WORDS]
    return [{**head, **line} for line in (*lines, wires.ollama_line(reason="stop"))]


STREAMS = {
    "openai-chat": chat("content"),
    "openai-chat, thinking": chat("reasoning_content"),
    "openai-chat, another key": chat("reasoning"),
    "openai-chat, ids": chat_with_ids(),
    "anthropic-messages": messages("text"),
    "anthropic-messages, thinking": messages("thinking"),
    "openai-responses": responses(),
    "gemini-generate": gemini(),
    "gemini-generate, thinking": gemini(thought=True),
    "ollama-chat": ollama("content"),
    "ollama-chat, thinking": ollama("thinking"),
}


def ways_of(path: Path, frame: Frame, word: str) -> list[object]:
    """What stands under the key of a text, or of what is around it, besides: another text, and what says less."""
    own = value_at(frame, path)
    if isinstance(own, str):
        return [f"not {word}", "", None]
    return [json.loads(json.dumps(own).replace(json.dumps(word), json.dumps(f"not {word}"))), type(own)(), None]


@pytest.mark.parametrize("wire", STREAMS)
def test_a_text_that_is_told_twice_is_not_lost_in_silence(wire: str):
    frames = STREAMS[wire]
    lines = [json.dumps(frame) for frame in frames]
    protocol = wire.split(",")[0]
    meant = decode(wire_body(wire, lines), protocol)  # type: ignore[arg-type]
    assert (meant.text or meant.thinking) == "".join(WORDS)
    base, tried = {deviation.code for deviation in meant.deviations}, 0
    for number, frame in enumerate(frames):
        word = next((word for word in WORDS if json.dumps(word) in lines[number]), "")
        if not word or lines[number].count(json.dumps(word)) > 1:
            continue
        for path in members(frame, ()):
            if json.dumps(word) not in json.dumps(value_at(frame, path)):
                continue
            for other, is_last in itertools.product(ways_of(path, frame, word), (True, False)):
                told = list(lines)
                told[number] = doubled(frame, path, other, is_last=is_last, joint=": ")
                for body in (wire_body(wire, told), wire_body(wire, [json.dumps(json.loads(line)) for line in told])):
                    reply = decode(body, protocol)  # type: ignore[arg-type]
                    codes = {deviation.code for deviation in reply.deviations} - base
                    is_whole = body != wire_body(wire, told)
                    holds_all = other in (None, {}, []) and (reply.text or reply.thinking) == "".join(WORDS)
                    assert is_whole or reply.error is not None or codes or holds_all, (told[number], reply.text)
                    assert not is_whole or not other or codes <= {"final-differs"}, (told[number], codes)
                    tried += 1
            told[number] = doubled(frame, path, value_at(frame, path), is_last=True, joint=": ")
            same = decode(wire_body(wire, told), protocol)  # type: ignore[arg-type]
            assert not {deviation.code for deviation in same.deviations} - base, told[number]
    assert tried > 10


@pytest.mark.parametrize("wire", STREAMS)
def test_frames_of_all_sizes_tell_no_key_twice(wire: str):
    odd = ['"content":"a","content":"b"', '\n\\"text":', "é" * 30, "哈" * 9, '"text"', "x" * 300, "\\u0041", " "]
    frames = [
        json.loads(json.dumps(frame).replace(json.dumps(word)[1:-1], json.dumps(word + odd[at])[1:-1]))
        for frame in STREAMS[wire]
        for at, word in enumerate(WORDS)
        if json.dumps(word) in json.dumps(frame)
    ]
    first = [frame for frame in STREAMS[wire] if not any(json.dumps(word) in json.dumps(frame) for word in WORDS)]
    body = wire_body(
        wire,
        [json.dumps(frame, ensure_ascii=at % 2 == 0) for at, frame in enumerate([*first[:-1], *frames, first[-1]])],
    )
    reply = decode(body, wire.split(",")[0])  # type: ignore[arg-type]
    assert "repeated-key" not in {deviation.code for deviation in reply.deviations}


@pytest.mark.parametrize("wire", STREAMS)
def test_a_key_told_twice_among_many_frames_is_told_however_they_come(wire: str):
    """At once, where many frames are read as one, and one by one; also in a frame that lacks another key."""
    frames = STREAMS[wire]
    protocol = wire.split(",")[0]
    numbers = [at for at, frame in enumerate(frames) if any(json.dumps(word) in json.dumps(frame) for word in WORDS)]
    many = [json.dumps(frames[at]) for at in numbers] * 12
    begin, end = ([json.dumps(frame) for frame in part] for part in (frames[: numbers[0]], frames[numbers[-1] + 1 :]))
    frame, tried = frames[numbers[2]], 0
    for path, at, lacks in itertools.product(members(frame, ()), (0, 3, 9, 60), ("", *frame)):
        if lacks and (lacks == path[0] or any(json.dumps(word) in json.dumps(frame[lacks]) for word in WORDS)):
            continue
        odd_frame = {key: value for key, value in frame.items() if key != lacks}
        own = value_at(frame, path)
        other = own if at == 3 else f"not {own}" if own in WORDS else 0
        odd = doubled(odd_frame, path, other, is_last=at != 9, joint=": ")
        told = [*begin, *many[:at], odd, *many[at:], *end]
        whole, apart = (read(protocol, [wire_body(wire, told)]), read(protocol, pieces_of(wire_body(wire, told))))
        codes = [sorted((each.code, each.where) for each in reply.deviations) for reply in (whole, apart)]
        assert (codes[0], whole.text, whole.error) == (codes[1], apart.text, apart.error), odd
        tried += 1
    assert tried > 10


def pieces_of(body: bytes) -> list[bytes]:
    end = b"\n\n" if b"\n\n" in body else b"\n"
    return [piece + end for piece in body.split(end) if piece]


def responses_ends(texts: list[str], group: str) -> list[Frame]:
    """A text in deltas, and then as each event behind them tells it; "" if it says nothing of it."""
    is_text = group == "output_text"
    part = {"type": group} if is_text else {"type": "summary_text"}
    place = {"item_id": "m", "output_index": 0, ("content_index" if is_text else "summary_index"): 0}
    name, key = ("content_part", "content") if is_text else ("reasoning_summary_part", "summary")
    item = ITEM if is_text else {"id": "m", "type": "reasoning"}
    items = [{**item, key: [{**part, "text": text}] if text else []} for text in ("", *texts[2:])]
    return [
        wires.item_added(items[0]),
        *({"type": f"response.{group}.delta", **place, "delta": word} for word in WORDS),
        {"type": f"response.{group}.done", **place, "text": texts[0]},
        {"type": f"response.{name}.done", **place, "part": {**part, "text": texts[1]}},
        wires.item_done(items[1]),
        {"type": "response.completed", "response": {"status": "completed", "output": items[2:]}},
    ]


@for_each("group", ["output_text", "reasoning_summary_text"])
def test_an_end_that_differs_is_said_and_nothing_is_lost(group: str):
    """Each event behind the deltas of a text, alone or with all behind it, says more than they, less, or another."""
    meant = "".join(WORDS)
    for other, at, stop in itertools.product((f"{meant} More.", meant[:-2], "Else."), range(4), (1, 4)):
        texts = [other if at <= number < at + stop else meant for number in range(4)]
        reply = decode(wire_body("openai-responses", list(map(json.dumps, responses_ends(texts, group)))))
        assert "final-differs" in {deviation.code for deviation in reply.deviations}, texts
        wanted = other if other.startswith(meant) else meant
        assert (reply.text or reply.thinking) == wanted and reply.error is None, texts
    for first in range(1, 4):  # what only a later event tells is not lost
        texts = [meant if number >= first else "" for number in range(4)]
        frames = [frame for frame in responses_ends(texts, group) if not frame["type"].endswith("delta")]
        reply = decode(wire_body("openai-responses", list(map(json.dumps, frames))))
        assert (reply.text or reply.thinking) == meant, texts


def test_a_text_of_an_older_form_beside_another_text_is_told():
    for place in ("delta", "message"):
        for content, is_told in (("a", True), ("b", False)):
            choice = {
                "index": 0,
                "text": "b",
                place: {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
            body = wires.body_of("openai-chat", [{"choices": [choice]}], is_whole=place == "message")
            reply = decode(body, "openai-chat")
            assert reply.text == content
            assert [one.where for one in reply.deviations if one.code == "sibling-key"] == (
                ["choices[0].text"] if is_told else []
            )


def test_half_a_character_is_no_control_character():
    """Each protocol says of a frame what is odd in it."""
    for wire, frames in STREAMS.items():
        body = wire_body(wire, list(map(json.dumps, frames)))
        for odd, code in ((b"\\ud83d", "lone-surrogate"), (b"\x01", "control-character")):
            reply = decode(body.replace(b"four", b"four" + odd), wire.split(",")[0])  # type: ignore[arg-type]
            codes = {one.code for one in reply.deviations}
            assert codes & {"lone-surrogate", "control-character"} <= {code}, (wire, odd, codes)
            assert reply.error is None


ENDS: dict[str, list[tuple[str, Any]]] = {
    "openai-chat": [("finish_reason", "length"), ("usage", {"prompt_tokens": 9, "completion_tokens": 9})],
    "anthropic-messages": [("stop_reason", "max_tokens"), ("usage", {"output_tokens": 9})],
    "gemini-generate": [("finishReason", "MAX_TOKENS"), ("usageMetadata", {"promptTokenCount": 9})],
    "ollama-chat": [("done_reason", "length"), ("eval_count", 9)],
}


def test_an_end_that_is_told_twice_is_said():
    """Why an answer ended, and what it cost, must not depend on which of two readers of a key is right."""
    for wire, keys in ENDS.items():
        for key, other in keys:
            own: Any = "stop" if isinstance(other, str) else 1 if isinstance(other, int) else dict.fromkeys(other, 1)
            own = {"stop_reason": "end_turn", "finishReason": "STOP"}.get(key, own)
            is_beside = key in ("usage", "usageMetadata", "eval_count")
            frames = [json.loads(json.dumps(frame)) for frame in STREAMS[wire]]
            end = next(frame for frame in reversed(frames) if is_beside or key in json.dumps(frame))
            end = next((frame for frame in frames if frame.get("type") == "message_delta"), end)
            if is_beside:
                end[key] = own
            line, place = json.dumps(end), f'"{key}": {json.dumps(own)}'
            assert place in line
            for again, is_told in ((other, True), (own, False)):
                twice = line.replace(place, f'"{key}": {json.dumps(again)}, {place}')
                told = [twice if frame is end else json.dumps(frame) for frame in frames]
                codes = [one.code for one in decode(wire_body(wire, told), wire).deviations]  # type: ignore[arg-type]
                assert ("repeated-key" in codes) is is_told, (wire, twice, codes)

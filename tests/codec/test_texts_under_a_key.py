"""A frame in which a text stands under a key that comes again is told, whatever the sizes of the frames around it, and
however the stream is cut; a frame that tells each text once is not."""

from __future__ import annotations

import itertools
import json
import random
from typing import Final

import wires
from dragoman.codec import repeated_keys
from dragoman.events import Deviation
from dragoman.protocols import PROTOCOLS
from wires import Frame

TEXTS: Final = (
    "a",
    "word",
    'a "quoted" one',
    "<b>",
    "a\nline",
    "\\",
    "ü",
    "a text that is longer",
    "🌧",
    '"content":"x"',
)
#: The key of a text.
KEYS: Final = {
    "openai-chat": "content", "openai-responses": "delta", "anthropic-messages": "text", "gemini-generate": "text",
    "ollama-chat": "content",
}  # fmt: skip
MESSAGE: Final = {"id": "m", "type": "message", "role": "assistant", "content": []}
OPENINGS: Final[dict[str, list[Frame]]] = {
    "anthropic-messages": [
        {"type": "message_start", "message": {**MESSAGE, "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ],
    "openai-responses": [wires.item_added(MESSAGE)],
}


def frame_of(protocol: str, text: str, odd: str, odds: Frame | None) -> Frame:
    """A frame that tells a text, and something of any length beside it."""
    if protocol == "openai-chat":
        choice = {"index": 0, "delta": {"content": text}, "logprobs": odds, "finish_reason": None}
        return {"id": "c", "object": "chat.completion.chunk", "model": odd, "choices": [choice]}
    if protocol == "openai-responses":
        place = {"item_id": "m", "output_index": 0, "content_index": 0}
        return {"type": "response.output_text.delta", **place, "delta": text, "obfuscation": odd}
    if protocol == "anthropic-messages":
        return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}, "p": odd}
    if protocol == "gemini-generate":
        return {"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}], "responseId": odd}
    return {"model": "m", "created_at": odd, "message": {"role": "assistant", "content": text}, "done": False}


def written(protocol: str, frame: Frame, draw: random.Random, *, is_torn: bool = False) -> bytes:
    text = json.dumps(frame, ensure_ascii=draw.random() < 0.5, separators=(",", ":"))
    text = text.replace("<", "\\u003c") if draw.random() < 0.5 else text
    if is_torn:
        key = f'"{KEYS[protocol]}":'
        text = text.replace(f'{key}"', f'{key}"lost",{key}"', 1)
    return text.encode() + b"\n" if protocol == "ollama-chat" else b"data: %b\n\n" % text.encode()


def codes(protocol: str, pieces: list[bytes]) -> list[str]:
    decoder = PROTOCOLS[protocol].decoder(new_id=lambda: "1")
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return [event.code for event in events if isinstance(event, Deviation) and event.code == "repeated-key"]


def ways_of(frames: list[bytes]) -> dict[str, list[bytes]]:
    whole = b"".join(frames)
    ways = {"pieces": [whole[at : at + 61] for at in range(0, len(whole), 61)]}
    for size in (1, 2, 7, 40, len(frames)):
        ways[f"of {size}"] = [b"".join(frames[at : at + size]) for at in range(0, len(frames), size)]
    return ways


def test_a_text_told_twice_is_told_among_frames_of_any_size_however_they_come() -> None:
    for protocol, seed in itertools.product(KEYS, range(8)):
        draw = random.Random(seed)
        count = draw.choice((5, 30, 120))
        torn = draw.randrange(1, count) if draw.random() < 0.7 else -1
        odds = {"content": [{"token": "t", "logprob": -0.1}]} if draw.random() < 0.3 else None
        frames = [written(protocol, frame, draw) for frame in OPENINGS.get(protocol, [])]
        for at in range(count):
            frame = frame_of(protocol, draw.choice(TEXTS), "x" * draw.randint(1, 24), odds)
            frames.append(written(protocol, frame, draw, is_torn=at == torn))
        for way, pieces in ways_of(frames).items():
            assert codes(protocol, pieces) == ["repeated-key"] * (torn >= 0), (protocol, seed, way)


def test_a_reasoning_told_twice_beside_a_text_is_told() -> None:
    draw = random.Random(1)
    for protocol, key in (
        ("openai-chat", "reasoning_content"),
        ("openai-chat", "reasoning"),
        ("ollama-chat", "thinking"),
    ):
        frames = [frame_of(protocol, text, "x", None) for text in TEXTS]
        lines = [written(protocol, frame, draw) for frame in frames]
        for more, wanted in ((f'"{key}":"a",', []), (f'"{key}":"a","{key}":"b",', ["repeated-key"])):
            told = [line.replace(b'"content":"', more.encode() + b'"content":"', 1) for line in lines]
            for way, pieces in ways_of(told).items():
                assert codes(protocol, pieces) == wanted, (protocol, key, way)


def test_the_shortest_member_told_again_is_seen_in_a_long_text() -> None:
    for key in (b"", b"k", b"path"):
        once = b'{"%b":1,"text_of_it":"%b"' % (key, b"x" * repeated_keys.SHORT)
        assert repeated_keys.has_plain_keys(once + b"}"), key
        assert not repeated_keys.has_plain_keys(once + b',"%b":0}' % key), key

"""A text that holds a call, and a later event that tells the whole text once more.

Where both hold the same calls they run: the later text may say more, lack white space, or have other words around them.
Where their calls differ none runs, whichever of both a client reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from typing import Any, Final

import wires
from cases import counter
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocol import Expectation
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from wires import Frame

TOOLS: Final = (Tool("git", ""), Tool("ls", ""))
WORDS: Final = "I look at the repository. "


def call(command: str, name: str = "git") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{"command": "{command}"}}}}\n</tool_call>'


SAID: Final = f"{WORDS}{call('status')}\n"
#: `SAID` otherwise, but for its call.
SAME: Final = (
    SAID.strip(), f"{SAID} ", f"Let me see. {call('status')}", SAID.replace(": ", ":"), f"{SAID}That is all.",
)  # fmt: skip
OTHERS: Final = (
    "Nothing is to be done.", WORDS + call("push"), WORDS + call("status", "ls"), call("push") + SAID,
    f"So: {call('push')}{call('status')}", SAID.replace("tool_call", "pre"), WORDS, SAID[:-40],
)  # fmt: skip


def pieces(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


def message(text: str, id: str = "m") -> Frame:
    content = [{"type": "output_text", "text": text}] if text else []
    return {"type": "message", "id": id, "role": "assistant", "content": content}


def responses(said: str, *again: str, last_id: str = "m") -> bytes:
    """`again`: how each event behind the deltas tells the text; "" if it says nothing of it."""
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    ends = [
        {"type": "response.output_text.done", **place, "text": again[0]},
        {"type": "response.content_part.done", **place, "part": {"type": "output_text", "text": again[1]}},
        wires.item_done(message(again[2])),
    ]
    frames = [
        wires.item_added(message("")),
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces(said)),
        *(frame for frame, text in zip(ends, again, strict=False) if text),
    ]
    output = [message(again[3], last_id)] if again[3] else []
    return wires.body_of("openai-responses", wires.responses_stream(*frames, output=output))


def chat(said: str, again: str, *, is_beside: bool) -> bytes:
    frames = [wires.chat_chunk({"content": piece}) for piece in pieces(said)]
    end = wires.chat_chunk({}, "stop")
    told = end if is_beside else wires.chat_chunk({})
    told["choices"][0]["message"] = {"role": "assistant", "content": again}
    return wires.body_of("openai-chat", [*frames, *([] if is_beside else [told]), end])


def chat_cumulative(said: str, again: str) -> bytes:
    """Each chunk tells all of the text beside its delta; the last one tells it otherwise."""
    frames = [wires.chat_chunk({"content": piece}) for piece in pieces(said)]
    for at, frame in enumerate(frames):
        frame["choices"][0]["message"] = {"content": said[: 7 * at + 7]}
    end = wires.chat_chunk({}, "stop")
    end["choices"][0]["message"] = {"content": again}
    return wires.body_of("openai-chat", [*frames, end])


def messages(said: str, again: str, *, at_start: bool = False, at_stop: bool = False) -> bytes:
    """The start of the message tells its content already, the end of its block does, or the whole message comes."""
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces(said)]
    frames = wires.messages_stream(*wires.block_of({"type": "text", "text": ""}, *deltas), reason="end_turn")
    content = [{"type": "text", "text": again}]
    if at_start:
        frames[0]["message"]["content"] = content
    elif at_stop:
        next(frame for frame in frames if frame["type"] == "content_block_stop")["content_block"] = content[0]
    else:
        frames.insert(-1, wires.messages_answer(*content, reason="end_turn"))
    return wires.body_of("anthropic-messages", frames)


WAYS: Final[dict[str, Callable[[str, str], bytes]]] = {
    "openai-responses, text": lambda said, again: responses(said, again, "", "", ""),
    "openai-responses, part": lambda said, again: responses(said, said, again, "", ""),
    "openai-responses, item": lambda said, again: responses(said, said, said, again, ""),
    "openai-responses, output": lambda said, again: responses(said, said, said, said, again),
    "openai-responses, output alone": lambda said, again: responses(said, "", "", "", again),
    "openai-responses, output of another id": lambda said, again: responses(said, said, said, said, again, last_id="n"),
    "openai-responses, all": lambda said, again: responses(said, again, again, again, again),
    "openai-chat, message": lambda said, again: chat(said, again, is_beside=False),
    "openai-chat, last message": lambda said, again: chat(said, again, is_beside=True),
    "openai-chat, messages": chat_cumulative,
    "anthropic-messages, start": lambda said, again: messages(said, again, at_start=True),
    "anthropic-messages, stop": lambda said, again: messages(said, again, at_stop=True),
    "anthropic-messages, message": messages,
}


def read(
    wire: str,
    body: bytes,
    size: int,
    *,
    tools: tuple[Tool, ...] = TOOLS,
    expected: Set[str] = frozenset(),
    **policy: Any,
) -> Reply:
    """`expected`: tools that the request brings in its conversation."""
    protocol = wire.split(",")[0]
    make, names = PROTOCOLS[protocol].decoder, frozenset(tool.name for tool in tools) | expected
    decoder = make(new_id=counter(), offered_names=names)
    expectation = Expectation(tools=frozenset(expected))
    reader = Reader(decoder, stages_for(tools, Policy(**policy), new_id=counter(), expectation=expectation))
    events = [event for at in range(0, len(body), size) for event in reader.feed(body[at : at + size])]
    return fold([*events, *reader.close()])


def runs(reply: Reply) -> list[tuple[str, Any]]:
    """The calls that a client runs."""
    return [] if reply.error is not None else [(one.name, json.loads(one.arguments)) for one in reply.tool_calls]


@for_each("wire", WAYS)
def test_calls_of_a_text_run_only_where_each_telling_of_it_has_them(wire: str):
    make = WAYS[wire]
    told = [*((text, True) for text in SAME), *((text, False) for text in OTHERS)]
    for at, (again, is_same) in enumerate(told):
        if wire.endswith("start") and SAID.startswith(again):  # as far as it was when the message began
            continue
        size, way = (40, 1 << 20)[at % 2], ("native", "prompted")[at % 5 == 0]
        reply = read(wire, make(SAID, again), size, way=way)
        wanted = [("git", {"command": "status"})] if is_same else []
        assert runs(reply) == wanted, (again, reply)
        assert is_same or reply.stop_reason == "error", (again, reply)
    for again in OTHERS[1:4]:  # the pieces have no call, the whole text has one
        reply = read(wire, make(f"{WORDS}Nothing is to be done here, I think.", again), 50)
        assert runs(reply) == [], (again, reply)


@for_each("wire", WAYS)
def test_words_that_are_told_otherwise_stay_an_answer(wire: str):
    for again in (WORDS, f"{WORDS}Well.", "Else."):
        for tools, expected in ((TOOLS, frozenset()), ((), {"git"})):
            reply = read(wire, WAYS[wire](f"{WORDS}Fine.", again), 50, tools=tools, expected=expected)
            assert reply.error is None and reply.text.startswith(WORDS)
            assert all(one.texts is None for one in reply.deviations), expected

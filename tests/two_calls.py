"""Answers with the same two calls, in every form in which the five protocols tell them, and readers of such answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import wires
from cases import counter
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Tool
from wires import Frame

Path = tuple[str | int, ...]
TOOLS = tuple(Tool(name, "") for name in ("ring", "toll"))
CALLS = [("ring", {"bell": "a", "loud": 2}), ("toll", {"bell": "b"})]
PIECES = [('{"bell": "a",', ' "loud": 2}'), ('{"bell"', ': "b"}')]
#: Arguments of each call as one text.
TEXTS = [json.dumps(arguments) for _, arguments in CALLS]
#: All arguments of a call in one piece, so that who does not read it has `{}`.
AT_ONCE = [(text,) for text in TEXTS]
OLLAMA_HEAD = {"created_at": "2026-01-01T00:00:00Z"}
#: Where something of a call stands in the frames of each protocol's streams.
_OF_MESSAGES: list[Path] = [("content_block",), ("delta",), ("index",), ("type",)]
_OF_RESPONSES: list[Path] = [
    ("item",), ("output_index",), ("item_id",), ("delta",), ("arguments",), ("type",), ("response", "output"),
]  # fmt: skip

#: Frames of an answer, and the places in them that hold something of a call.
Wire = tuple[list[Frame], list[Path]]


def chat(told: Sequence[tuple[str, ...]] = PIECES) -> Wire:
    pieces: list[Frame] = []
    for at, (name, _) in enumerate(CALLS):
        pieces += [wires.chat_call(name, at=at), *(wires.chat_piece(text, at) for text in told[at])]
    return wires.chat_stream(*pieces), [("choices",)]


def _chat_calls() -> list[Frame]:
    return [wires.chat_call(name, TEXTS[at], at) for at, (name, _) in enumerate(CALLS)]


def messages(told: Sequence[tuple[str, ...]] = PIECES) -> Wire:
    blocks = [
        wires.block_of(wires.tool_use(name, at=at), *map(wires.json_delta, told[at]), at=at)
        for at, (name, _) in enumerate(CALLS)
    ]
    return wires.messages_stream(*itertools.chain.from_iterable(blocks)), _OF_MESSAGES


def responses() -> Wire:
    frames: list[Frame] = []
    output = []
    for at, (name, _) in enumerate(CALLS):
        whole = "".join(PIECES[at])
        output.append(wires.function_call(name, whole, at, status="completed"))
        frames += [
            wires.item_added(wires.function_call(name, at=at), at),
            *(wires.arguments_delta(text, at) for text in PIECES[at]),
        ]
        frames += [wires.arguments_done(whole, at), wires.item_done(output[-1], at)]
    return wires.responses_stream(*frames, output=output), _OF_RESPONSES


def responses_deltas() -> Wire:
    """Of each call nothing but its beginning and its pieces: nothing later tells them again."""
    frames, places = responses()
    told = ("response.function_call_arguments.done", "response.output_item.done")
    return wires.responses_stream(*(frame for frame in frames[1:-1] if frame["type"] not in told)), places


def responses_items() -> Wire:
    items = [wires.function_call(name, TEXTS[at], at, status="completed") for at, (name, _) in enumerate(CALLS)]
    return wires.responses_stream(*(wires.item_done(item, at) for at, item in enumerate(items))), [("item",)]


def gemini() -> Wire:
    frames = [wires.gemini_chunk(wires.gemini_call(name, arguments)) for name, arguments in CALLS]
    return [*frames, wires.GEMINI_END], [("candidates", 0, "content")]


def gemini_pieces() -> Wire:
    calls: list[Frame] = []
    for name, arguments in CALLS:
        calls += [{"name": name, "willContinue": True}, *wires.partial_args(arguments), {}]
    frames = [wires.gemini_chunk({"functionCall": call}) for call in calls]
    return [*frames, wires.GEMINI_END], [("candidates", 0, "content")]


def ollama() -> Wire:
    calls = [wires.ollama_call(name, arguments, id=f"c{at}") for at, (name, arguments) in enumerate(CALLS)]
    return [{**line, **OLLAMA_HEAD} for line in wires.ollama_stream(*calls)], [("message",)]


#: Protocol and, behind a comma, form → frames and places.
WIRES: dict[str, Callable[[], Wire]] = {
    "openai-chat": chat,
    "openai-chat, a piece": lambda: chat(AT_ONCE),
    "anthropic-messages, a piece": lambda: messages(AT_ONCE),
    "openai-chat, at once": lambda: (wires.chat_stream(*_chat_calls()), [("choices",)]),
    "openai-chat, whole": lambda: ([wires.chat_answer(*_chat_calls())], [("choices",)]),
    "anthropic-messages": messages,
    "anthropic-messages, whole": lambda: (
        [wires.messages_answer(*(wires.tool_use(*call, at) for at, call in enumerate(CALLS)))], [("content",)],
    ),
    "openai-responses": responses,
    "openai-responses, items": responses_items,
    "openai-responses, deltas": responses_deltas,
    "openai-responses, whole": lambda: ([responses()[0][-1]["response"]], [("output",)]),
    "gemini-generate": gemini,
    "gemini-generate, pieces": gemini_pieces,
    "ollama-chat": ollama,
}  # fmt: skip

# ---------------------------------------------------------------- pieces of the two calls in turns

#: Pieces of calls that come in turns: each may stand in the other's place, and both are as whole then.
LETTERS = [['{"bell": "', *"abcdefghijkl", '"}'], ['{"bell": "', *"mnopqrstuvwx", '"}']]


def in_turns(write: Callable[[str, int], Frame]) -> list[Frame]:
    """Some pieces of the one call and the other by turns, most of the rest one call at a time, so that they come
    together, and both ends."""
    pairs = [(LETTERS[at][step], at) for step in range(4) for at in (0, 1)]
    pairs += [(text, at) for at in (0, 1) for text in LETTERS[at][4:-1]]
    pairs += [(LETTERS[at][-1], at) for at in (0, 1)]
    return [write(*pair) for pair in pairs]


def chat_in_turns() -> Wire:
    calls = [wires.chat_call(name, at=at) for at, (name, _) in enumerate(CALLS)]
    return wires.chat_stream(*calls, *in_turns(wires.chat_piece)), [("choices", 0, "delta")]


def messages_in_turns() -> Wire:
    frames, _ = messages()
    starts, stops = ([one for one in frames if one["type"] == f"content_block_{kind}"] for kind in ("start", "stop"))
    told = in_turns(lambda text, at: wires.block_delta(wires.json_delta(text), at))
    return wires.messages_stream(*starts, *told, *stops), [("delta",), ("index",)]


def responses_in_turns() -> Wire:
    def write(text: str, at: int) -> Frame:
        return {key: value for key, value in wires.arguments_delta(text, at).items() if key != "item_id"}

    starts = [wires.item_added(wires.function_call(name, at=at), at) for at, (name, _) in enumerate(CALLS)]
    return wires.responses_stream(*starts, *in_turns(write)), [("delta",), ("output_index",)]


TURNS = {
    "openai-chat, in turns": chat_in_turns, "anthropic-messages, in turns": messages_in_turns,
    "openai-responses, in turns": responses_in_turns,
}  # fmt: skip

# ---------------------------------------------------------------- readers


def value_at(frame: object, path: Path) -> object:
    for step in path:
        frame = frame[step]  # type: ignore[index]
    return frame


def wire_body(wire: str, lines: Sequence[str]) -> bytes:
    """The body of a wire from its frames' texts. Events have no name: those of damaged frames would be their own."""
    return wires.body_of(wire.split(",")[0], lines, is_whole=wire.endswith("whole"))


def read(wire: str, pieces: list[bytes]) -> Reply:
    protocol = PROTOCOLS[wire.split(",")[0]]  # type: ignore[index]
    new_id = counter()
    names = frozenset(tool.name for tool in TOOLS)
    decoder = protocol.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(TOOLS))
    reader = Reader(decoder, stages_for(TOOLS, Policy(), new_id=new_id))
    return fold([*itertools.chain.from_iterable(map(reader.feed, pieces)), *reader.close()])


def made(reply: Reply) -> list[tuple[str, Any]]:
    """The calls that were delivered: of a custom one its text."""
    return [
        (call.name, json.loads(call.arguments) if call.kind == "function" else call.arguments)
        for call in reply.tool_calls
    ]

"""Streams as gateways, servers and clients reported them in 2025 and 2026, each with the right reading by our policies,
written down before it was played. The kinds come from public reports; words, names and values are our own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

Frame = dict[str, Any]
Call = tuple[str, dict[str, Any]]


class Stream(NamedTuple):
    """One body.

    `calls`: those that are delivered; `error`: whether the answer fails; `told`: codes of deviations that say what was
    odd; `usage`: input, output, cache_read (None: not looked at); `ids`: of the calls that bring their own.
    """

    name: str
    protocol: str
    body: bytes
    calls: tuple[Call, ...] = ()
    text: str = ""
    thinking: str = ""
    stop: str = "stop"
    error: bool = False
    told: tuple[str, ...] = ()
    usage: tuple[int, int, int] | None = None
    ids: tuple[str, ...] = ()


LS: Call = ("bash", {"command": "ls src"})
PWD: Call = ("bash", {"command": "pwd"})
READ: Call = ("read", {"path": "src/app.py"})
NOW: Call = ("now", {})
LS_TEXT = '{"command": "ls src"}'
LONG = "The tests of this module take four minutes because each starts a server of its own."
PIECES = ("The tests ", "of this module ", "take four ", "minutes because ", "each starts ", "a server ", "of its own.")


def sse(frames: Sequence[Frame | str], *, end: str = "data: [DONE]\n\n") -> bytes:
    """Frames as events; a text stands as it is."""
    return "".join(one if isinstance(one, str) else f"data: {json.dumps(one)}\n\n" for one in frames).encode() + (
        end.encode()
    )


def chunk(finish: str | None = None, **delta: Any) -> Frame:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return {**head, "choices": [choice]}


def texts(*pieces: str, key: str = "content") -> list[Frame]:
    return [chunk(**{key: piece}) for piece in pieces]


def snapshots(*pieces: str, key: str = "content") -> list[Frame]:
    """Each piece behind all before it."""
    return texts(*("".join(pieces[: number + 1]) for number in range(len(pieces))), key=key)


def piece(index: int | None = 0, id: str | None = None, name: str | None = None, **rest: Any) -> Frame:
    """A delta of one call; `args`: its piece of arguments."""
    function = {"arguments": rest.pop("args")} if "args" in rest else {}
    if name is not None:
        function["name"] = name
    call: Frame = {"function": function, **rest}
    if id is not None:
        call |= {"id": id, "type": "function"}
    if index is not None:
        call["index"] = index
    return chunk(tool_calls=[call])


def chat(
    name: str, *frames: Frame | str, finish: str | None = "stop", end: str = "data: [DONE]\n\n", **told: Any
) -> Stream:
    last = [chunk(finish)] if finish else []
    return Stream(
        f"chat: {name}", "openai-chat", sse([chunk(role="assistant", content=""), *frames, *last], end=end), **told
    )


def whole(name: str, message: Frame, finish: str = "stop", **told: Any) -> Stream:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "chatcmpl-7", "object": "chat.completion", "created": 1790000000, "model": "m", "choices": [choice]}
    return Stream(f"chat: {name}", "openai-chat", json.dumps(body).encode(), **told)


def one(args: str = LS_TEXT, name: str = "bash", index: int | None = 0, id: str | None = "call_1") -> Frame:
    """A call in one delta."""
    return piece(index, id, name, args=args)


CALLED: dict[str, Any] = {"calls": (LS,), "stop": "tool_use"}
BOTH: dict[str, Any] = {"calls": (LS, READ), "stop": "tool_use"}
READ_TEXT = '{"path": "src/app.py"}'

REPEATS = (
    chat(
        "whole message at the end",
        *texts(*PIECES),
        {
            **chunk("stop"),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": LONG}, "finish_reason": "stop"}],
        },
        finish=None,
        text=LONG,
        told=("duplicate-final",),
    ),
    chat("a native field beside the delta", *({**chunk(content=word), "response": word} for word in PIECES), text=LONG),
    chat("the same digit ten times", *texts(*"6666666666"), text="6666666666"),
    chat("the same pair four times", *texts("ab", "ab", "ab", "ab"), text="abababab"),
    chat("a laugh", *texts("哈", "哈", "哈哈", "哈"), text="哈哈哈哈哈"),
    chat("years", *texts("18", "3", "3", " and 20", "1", "2"), text="1833 and 2012"),
    chat("all again at the end, as a refrain", *texts(*PIECES), chunk(content=LONG), text=LONG * 2),
    chat(
        "all again in between",
        *texts(*PIECES),
        chunk(content=LONG),
        *texts(" It is", " slow."),
        text=LONG + LONG + " It is slow.",
    ),
    chat(
        "all again and more",
        *texts(*PIECES),
        chunk(content=LONG + " It is slow."),
        text=LONG + LONG + " It is slow.",
    ),
    chat(
        "a line twice",
        *texts("Row, row, ", "row your ", "boat.\n", "Row, row, ", "row your ", "boat.\n"),
        text="Row, row, row your boat.\nRow, row, row your boat.\n",
    ),
    chat("snapshots", *snapshots(*PIECES), text=LONG, told=("cumulative-text",)),
    chat(
        "snapshots, the first one twice",
        chunk(content=PIECES[0]),
        *snapshots(*PIECES),
        text=LONG,
        told=("cumulative-text",),
    ),
    chat(
        "snapshots, each twice",
        *(frame for frame in snapshots(*PIECES) for _ in range(2)),
        text=LONG,
        told=("cumulative-text",),
    ),
    chat(
        "snapshots, the last one twice", *snapshots(*PIECES), chunk(content=LONG), text=LONG, told=("cumulative-text",)
    ),
    chat(
        "snapshots of thinking, then of text",
        *snapshots("I should ", "count the ", "files in ", "the tree first.", key="reasoning_content"),
        *snapshots(*PIECES),
        text=LONG,
        thinking="I should count the files in the tree first.",
        told=("cumulative-text",),
    ),
    chat(
        "snapshots of both at once",
        *(
            chunk(reasoning_content="I count the files first.", content=LONG[:size])
            for size in (12, 25, 40, 60, len(LONG))
        ),
        text=LONG,
        thinking="I count the files first.",
        told=("cumulative-text",),
    ),
    chat(
        "snapshots of both, both growing",
        *(
            chunk(reasoning_content="I count the files first."[: size // 3], content=LONG[:size])
            for size in (12, 25, 40, 60, len(LONG))
        ),
        text=LONG,
        thinking="I count the files first.",
        told=("cumulative-text",),
    ),
    chat(
        "snapshots with a call behind",
        *snapshots(*PIECES),
        one(),
        finish="tool_calls",
        text=LONG,
        told=("cumulative-text",),
        **CALLED,
    ),
    chat(
        "thinking under two keys",
        *(chunk(reasoning=word, reasoning_content=word) for word in PIECES),
        chunk(content="Done."),
        text="Done.",
        thinking=LONG,
    ),
    chat(
        "thinking and its details",
        *(
            chunk(reasoning=word, reasoning_details=[{"type": "reasoning.text", "text": word, "index": 0}])
            for word in PIECES
        ),
        chunk(content="Done."),
        text="Done.",
        thinking=LONG,
    ),
    chat(
        "details that grow by pieces",
        *(chunk(reasoning_details=[{"type": "reasoning.text", "text": word}]) for word in PIECES),
        chunk(content="Done."),
        text="Done.",
        thinking=LONG,
    ),
    chat(
        "details as snapshots",
        *(
            chunk(reasoning_details=[{"type": "reasoning.text", "text": LONG[:size]}])
            for size in (12, 25, 40, 60, len(LONG))
        ),
        chunk(content="Done."),
        text="Done.",
        thinking=LONG,
        told=("cumulative-text",),
    ),
    chat(
        "thinking in tags and beside them",
        chunk(content="<think>", reasoning_content=""),
        *(chunk(content=word, reasoning_content=word) for word in PIECES),
        chunk(content="</think>\n\nDone."),
        text="Done.",
        thinking=LONG,
    ),
)

PARTS = (
    chat(
        "parts of thinking and text",
        chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Files first."}]}]),
        chunk(content=[{"type": "text", "text": "Twelve."}]),
        text="Twelve.",
        thinking="Files first.",
    ),
    chat(
        "parts, then a string",
        chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]),
        chunk(content="Twelve."),
        text="Twelve.",
        thinking="Hm.",
    ),
    chat("a list of null", chunk(content=[None]), chunk(content="Twelve."), text="Twelve."),
    chat("a list of an empty text", chunk(content=[""]), chunk(content="Twelve."), text="Twelve."),
    chat("an empty list", chunk(content=[]), chunk(content="Twelve."), text="Twelve."),
    chat("a mixed list", chunk(content=["Twel", None, {"type": "text", "text": "ve"}, "", "."]), text="Twelve."),
    chat(
        "a list of an empty part",
        chunk(content=[{}]),
        chunk(content=[{"type": "text"}]),
        chunk(content="Twelve."),
        text="Twelve.",
    ),
    chat(
        "a part of null text", chunk(content=[{"type": "text", "text": None}]), chunk(content="Twelve."), text="Twelve."
    ),
    chat(
        "references among texts",
        chunk(content=[{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "Twelve."}]),
        text="Twelve.",
        told=("unknown-part",),
    ),
    whole("a whole list of null and text", {"content": [None, {"type": "text", "text": "Twelve."}]}, text="Twelve."),
    whole("a whole list of strings", {"content": ["Twel", "ve."]}, text="Twelve."),
    whole(
        "a list of null beside calls",
        {
            "content": [None],
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": LS_TEXT}}],
        },
        "tool_calls",
        **CALLED,
    ),
    chat("empty calls beside text", *(chunk(content=word, tool_calls=[]) for word in PIECES), text=LONG),
    chat(
        "null calls beside text",
        *(chunk(content=word, tool_calls=None, function_call=None, refusal=None) for word in PIECES),
        text=LONG,
    ),
    chat(
        "a call of null among calls", chunk(tool_calls=[None]), one(), finish="tool_calls", calls=(LS,), stop="tool_use"
    ),
    chat(
        "a model that recites frames",
        *texts('data: {"id":"1","choices":[{"delta":{"tool_calls":', '[{"index":0,"id":"call_9"}]}}]}'),
        text='data: {"id":"1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_9"}]}}]}',
    ),
)

CALLS = (
    chat(
        "all of an answer in one delta",
        chunk(
            "tool_calls",
            reasoning_content="Files first.",
            content="I look.",
            tool_calls=one()["choices"][0]["delta"]["tool_calls"],
        ),
        finish=None,
        text="I look.",
        thinking="Files first.",
        **CALLED,
    ),
    chat(
        "null content beside pieces",
        *(
            chunk(content=None, tool_calls=frame["choices"][0]["delta"]["tool_calls"])
            for frame in (piece(0, "call_1", "bash", args=""), piece(0, args=LS_TEXT))
        ),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "an empty reason in each chunk",
        *(
            {**frame, "choices": [{**frame["choices"][0], "finish_reason": ""}]}
            for frame in (
                piece(0, "call_1", "bash", args=""),
                piece(0, args='{"command": '),
                piece(0, args='"ls src"}'),
            )
        ),
        finish="tool_calls",
        **CALLED,
    ),
    chat("a stop behind tool_calls", one(), chunk("tool_calls"), finish="stop", **CALLED),
    chat("the reason twice", one(), chunk("tool_calls", content=""), finish="tool_calls", **CALLED),
    chat(
        "no reason, but usage and the marker",
        one(),
        {**chunk(), "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 7}},
        finish=None,
        usage=(5, 7, 0),
        told=("missing-stop-reason",),
        **CALLED,
    ),
    chat("stop for a call", one(), finish="stop", **CALLED),
    chat(
        "no index, two calls", one(index=None), one(READ_TEXT, "read", None, "call_2"), ids=("call_1", "call_2"), **BOTH
    ),
    chat(
        "index 0 for all",
        one(),
        one(READ_TEXT, "read", 0, "call_2"),
        finish="tool_calls",
        ids=("call_1", "call_2"),
        **BOTH,
    ),
    chat(
        "index 0 for all, in one delta",
        chunk(
            tool_calls=[
                *one()["choices"][0]["delta"]["tool_calls"],
                *one(READ_TEXT, "read", 0, "call_2")["choices"][0]["delta"]["tool_calls"],
            ]
        ),
        finish="tool_calls",
        **BOTH,
    ),
    chat(
        "a second object under the first index",
        piece(0, "call_1", "bash", args=""),
        piece(0, name="", args=LS_TEXT),
        piece(0, name="", args='{"command": "pwd"}'),
        finish="tool_calls",
        calls=(LS, PWD),
        stop="tool_use",
        told=("concatenated-calls",),
    ),
    chat("one call at two indices", one(), one(index=1), finish="tool_calls", told=("duplicate-call",), **CALLED),
    chat(
        "an empty name behind",
        piece(0, "call_1", "bash", args=""),
        chunk(tool_calls=[{"index": 0, "function": {"name": "", "parameters": None, "arguments": LS_TEXT}}]),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "the word null for a name",
        piece(0, "call_1", "bash", args='{"command": "ls '),
        piece(0, "", "null", args='src"}'),
        finish="tool_calls",
        ids=("call_1",),
        **CALLED,
    ),
    chat(
        "the word null for an id",
        piece(0, "call_1", "bash", args=""),
        piece(0, "null", "", args='{"command": '),
        piece(0, "null", "", args='"ls src"}'),
        finish="tool_calls",
        ids=("call_1",),
        **CALLED,
    ),
    chat(
        "null for id and name",
        piece(0, "call_1", "bash", args=""),
        chunk(tool_calls=[{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": LS_TEXT}}]),
        finish="tool_calls",
        ids=("call_1",),
        **CALLED,
    ),
    chat(
        "null arguments behind",
        one(),
        chunk(tool_calls=[{"index": 0, "id": "", "function": {"name": None, "arguments": None}}]),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "a type in capitals",
        piece(0, "call_1", "bash", args='{"command": "ls '),
        chunk(tool_calls=[{"index": 0, "id": "", "type": "FUNCTION", "function": {"arguments": 'src"}'}}]),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "the name in each chunk",
        *(piece(0, "call_1", "bash", args=part) for part in ('{"comm', 'and": ', '"ls src"}')),
        finish="tool_calls",
        told=("repeated-name",),
        **CALLED,
    ),
    chat(
        "an empty name first",
        piece(0, "call_1", "", args=""),
        piece(0, None, "bash", args=""),
        piece(0, args=LS_TEXT),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "an empty object first",
        piece(0, "call_1", "bash", args="{}"),
        piece(0, args='{"command": '),
        piece(0, args='"ls src"}'),
        finish="tool_calls",
        told=("placeholder-arguments",),
        **CALLED,
    ),
    chat(
        "arguments that grow as snapshots",
        piece(0, "call_1", "bash", args=""),
        *(piece(0, args=LS_TEXT[:size]) for size in (4, 11, 15, len(LS_TEXT))),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "snapshots of arguments, the first one twice",
        *(
            piece(0, "call_1" if number == 0 else None, "bash" if number == 0 else None, args=LS_TEXT[:size])
            for number, size in enumerate((11, 11, 15, len(LS_TEXT)))
        ),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "snapshots of arguments, each twice",
        piece(0, "call_1", "bash", args=""),
        *(piece(0, args=LS_TEXT[:size]) for size in (11, 11, 15, 15, len(LS_TEXT), len(LS_TEXT))),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "all arguments three times",
        one(),
        piece(0, args=LS_TEXT),
        piece(0, args=LS_TEXT),
        finish="tool_calls",
        told=("repeated-arguments",),
        **CALLED,
    ),
    chat(
        "one id for two calls",
        one(),
        one('{"command": "pwd"}', "bash", 1, "call_1"),
        finish="tool_calls",
        calls=(LS, PWD),
        stop="tool_use",
        told=("duplicate-id",),
    ),
    chat(
        "indices from one",
        *texts("I look."),
        one(index=1),
        one(READ_TEXT, "read", 2, "call_2"),
        finish="tool_calls",
        text="I look.",
        **BOTH,
    ),
    chat(
        "arguments as an object",
        chunk(
            tool_calls=[
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "bash", "arguments": {"command": "ls src"}},
                }
            ]
        ),
        finish="tool_calls",
        told=("arguments-type",),
        **CALLED,
    ),
    chat(
        "an index as text",
        chunk(
            tool_calls=[
                {"index": "0", "id": "call_1", "type": "function", "function": {"name": "bash", "arguments": LS_TEXT}}
            ]
        ),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "an empty older call at the end",
        one(),
        chunk("tool_calls", function_call={"name": "", "arguments": ""}),
        finish=None,
        **CALLED,
    ),
    chat(
        "news of a call that is written",
        chunk(tool_call_generating=True),
        chunk(tool_call_generating=True),
        one(),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "white space between thinking and call",
        *texts("Files ", "first.", key="reasoning_content"),
        *texts("\n", "\n"),
        one(),
        finish="tool_calls",
        thinking="Files first.",
        **CALLED,
    ),
    chat(
        "an escape cut in two",
        piece(0, "call_1", "bash", args='{"command": "echo \\u00'),
        piece(0, args='e9"}'),
        finish="tool_calls",
        calls=(("bash", {"command": "echo é"}),),
        stop="tool_use",
    ),
    chat(
        "length in a call",
        piece(0, "call_1", "bash", args='{"command": "ls'),
        finish="length",
        stop="length",
        error=True,
    ),
    chat(
        "tool_calls for a call that is cut",
        piece(0, "call_1", "bash", args='{"command": "ls'),
        finish="tool_calls",
        stop="error",
        error=True,
    ),
    chat("tool_calls without a call", *texts("I look."), finish="tool_calls", text="I look.", told=("stop-reason",)),
    chat("no arguments at all", piece(0, "call_1", "now"), finish="tool_calls", calls=(NOW,), stop="tool_use"),
)

ENDS = (
    chat(
        "an error without choices",
        chunk(content="I l"),
        {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "choices": [],
            "error": {"code": 502, "message": "worker limit reached"},
        },
        finish=None,
        text="I l",
        stop="error",
        error=True,
    ),
    chat(
        "an error with a reason",
        {**chunk("error", content=""), "error": {"code": "server_error", "message": "provider disconnected"}},
        finish=None,
        end="",
        stop="error",
        error=True,
    ),
    chat(
        "an error alone, no marker",
        chunk(content="I l"),
        'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n',
        finish=None,
        end="",
        text="I l",
        stop="error",
        error=True,
    ),
    chat(
        "an error in a cut call",
        piece(0, "call_1", "bash", args='{"command": "ls'),
        {"choices": [], "error": {"message": "timeout", "code": 504}},
        finish=None,
        stop="error",
        error=True,
    ),
    chat(
        "a native reason that is an error",
        {
            **chunk(),
            "choices": [
                {"index": 0, "delta": {"content": ""}, "finish_reason": "stop", "native_finish_reason": "network_error"}
            ],
        },
        finish=None,
        stop="error",
        error=True,
    ),
    chat(
        "an error event",
        chunk(content="I l"),
        'event: error\ndata: {"error":{"message":"Failed to call a function.","type":"invalid_request_error",'
        '"code":"tool_use_failed","failed_generation":"<function=bash>"}}\n\n',
        finish=None,
        text="I l",
        stop="error",
        error=True,
    ),
    chat("no end", *texts(*PIECES), finish=None, end="", text=LONG, stop="error", error=True),
    chat("no marker", *texts(*PIECES), end="", text=LONG, told=("no-end-marker",)),
    chat("the marker twice", *texts(*PIECES), end="data: [DONE]\n\ndata: [DONE]\n\n", text=LONG),
    chat(
        "text behind the marker",
        *texts("Done."),
        end='data: [DONE]\n\ndata: {"choices":[{"index":0,"delta":{"content":"More"}}]}\n\n',
        text="Done.",
        told=("after-end",),
    ),
    chat(
        "filters first, and a chunk without delta",
        {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}],
            "choices": [],
        },
        *texts("Done."),
        {
            "id": "",
            "object": "",
            "created": 0,
            "model": "",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": None,
                    "content_filter_results": {"hate": {"filtered": False}},
                    "content_filter_offsets": {"check_offset": 4},
                }
            ],
        },
        text="Done.",
    ),
    chat(
        "filters behind the reason",
        *texts("Done."),
        chunk("stop"),
        {
            "id": "",
            "model": "",
            "choices": [{"index": 0, "finish_reason": None, "content_filter_results": {"hate": {"filtered": False}}}],
        },
        finish=None,
        text="Done.",
    ),
    chat(
        "usage twice",
        *texts("Done."),
        {**chunk("stop"), "usage": {"prompt_tokens": 30, "completion_tokens": 2}},
        {
            **chunk(),
            "choices": [],
            "usage": {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 20}},
        },
        finish=None,
        text="Done.",
        usage=(30, 2, 20),
    ),
    chat(
        "usage in each chunk",
        *(
            {**chunk(content=word), "usage": {"prompt_tokens": 30, "completion_tokens": number}}
            for number, word in enumerate(PIECES, 1)
        ),
        text=LONG,
        usage=(30, 7, 0),
    ),
    chat(
        "null usage, an empty role, a good state",
        {**chunk(role="", content="Done."), "usage": None, "base_resp": {"status_code": 0, "status_msg": ""}},
        text="Done.",
    ),
    chat(
        "a null delta",
        {**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        *texts("Done."),
        text="Done.",
    ),
    chat("null choices", {**chunk(), "choices": None}, *texts("Done."), text="Done."),
    chat("an empty choice", {**chunk(), "choices": [{}]}, *texts("Done."), text="Done."),
    chat(
        "comments and blank data",
        ": OPENROUTER PROCESSING\n\n",
        "data:\n\n",
        *texts("Done."),
        ": ping\n\n",
        text="Done.",
    ),
    Stream(
        "chat: no space behind the colon",
        "openai-chat",
        sse([*texts(*PIECES), chunk("stop")]).replace(b"data: ", b"data:"),
        text=LONG,
    ),
    Stream(
        "chat: no blank line at the end",
        "openai-chat",
        sse([*texts(*PIECES), chunk("stop")], end="").rstrip(b"\n"),
        text=LONG,
    ),
    Stream(
        "chat: an event over many lines",
        "openai-chat",
        b"".join(
            b"".join(b"data: %b\n" % line.encode() for line in json.dumps(frame, indent=1).splitlines()) + b"\n"
            for frame in (*texts(*PIECES), chunk("stop"))
        )
        + b"data: [DONE]\n\n",
        text=LONG,
    ),
)
CHAT = (*REPEATS, *PARTS, *CALLS, *ENDS)

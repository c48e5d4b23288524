"""Streams and whole answers in which several deviations meet, and some reported until September 2026; see
`found_streams.py`. The right reading of each was written down before it was played.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

from found_streams import (
    BOTH,
    CALLED,
    LONG,
    LS_TEXT,
    NOW,
    PIECES,
    PWD,
    READ,
    READ_TEXT,
    Frame,
    Stream,
    chat,
    chunk,
    one,
    piece,
    sse,
    texts,
    whole,
)
from found_streams_elsewhere import (
    BEGIN,
    HEAD,
    MESSAGE,
    added,
    args_delta,
    argued,
    block,
    call,
    candidate,
    closed,
    deltas,
    done,
    ended,
    event,
    f,
    gemini,
    grown,
    item,
    line,
    message,
    messages,
    of,
    ollama,
    opened,
    r,
    responses,
    t,
    text_done,
    used,
)
from found_streams_of_gateways import CUT, HALVES, PWD_TEXT, SPOKEN, choice, data, entry, with_usage

LS = ("bash", {"command": "ls src"})
TWO: dict[str, Any] = {"calls": (LS, PWD), "stop": "tool_use"}
HERMES = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls src"}}\n</tool_call>'
PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>\n"
#: The chunks of an answer with one call, and what they say, to be framed.
FRAMES: list[Frame] = [
    chunk(role="assistant", content=""),
    piece(0, "call_1", "bash", args=""),
    *(piece(args=text) for text in HALVES),
    chunk("tool_calls"),
]
LINES = [json.dumps(frame) for frame in FRAMES]


def framed(name: str, body: bytes | str, protocol: str = "openai-chat", **told: Any) -> Stream:
    body = body.encode() if isinstance(body, str) else body
    return Stream(f"{protocol}: {name}", protocol, body, **(told or CALLED))


def lines_of(stream: Stream) -> list[str]:
    """The JSON of each event."""
    return [row.removeprefix("data: ") for row in stream.body.decode().splitlines() if row.startswith("data: ")]


FRAMING = (
    framed("a list of chunks", json.dumps(FRAMES)),
    framed("a line each", "\n".join(LINES) + "\n"),
    framed("a line each and a marker", "\n".join([*LINES, "[DONE]"])),
    framed(
        "the marker behind the last chunk", sse(FRAMES[:-1], end="") + f"data: {LINES[-1]}data: [DONE]\n\n".encode()
    ),
    framed("the marker glued without its field", sse(FRAMES[:-1], end="") + f"data: {LINES[-1]}[DONE]\n\n".encode()),
    framed(
        "two events on one line",
        sse(FRAMES[:2], end="") + f"data: {LINES[2]}data: {LINES[3]}\n\n".encode() + sse(FRAMES[4:]),
        **CUT,
    ),  # nobody knows what was lost between them
    framed(
        "two chunks in one event",
        sse(FRAMES[:2], end="") + f"data: {LINES[2]}\ndata: {LINES[3]}\n\n".encode() + sse(FRAMES[4:]),
    ),
    framed("no blank lines at all", "".join(f"data: {text}\n" for text in [*LINES, "[DONE]"])),
    framed(
        "a chunk cut over two lines of data",
        sse(FRAMES[:2], end="") + f"data: {LINES[2][:40]}\ndata: {LINES[2][40:]}\n\n".encode() + sse(FRAMES[3:]),
    ),
    framed("blanks before the field", "".join(f"  data:   {text}  \n\n" for text in LINES) + "data: [DONE]\n\n", **CUT),
    framed(
        "names and ids of events",
        "".join(f"id: {at}\nevent: message\nretry: 100\ndata: {text}\n\n" for at, text in enumerate(LINES))
        + "data: [DONE]\n\n",
    ),
    framed(
        "the last chunk cut, a reason before",
        sse([*FRAMES, with_usage(chunk())], end="")[:-60],
        calls=(LS,),
        stop="tool_use",
    ),
    framed("packed by gzip", gzip.compress(sse(FRAMES), mtime=0)),
    framed(
        "a byte order mark, comments and long ends",
        b"\xef\xbb\xbf"
        + (": alive\n\n" + sse(FRAMES).decode().replace("data: {", ": x\n\ndata:{")).replace("\n", "\r\n").encode(),
    ),
    framed("data of nothing between", sse(FRAMES).replace(b"\n\n", b"\n\ndata:\n\ndata: null\n\n")),
    framed("events in an envelope", sse([{"data": frame} for frame in FRAMES])),
    *(
        framed("a page in place of an answer", PAGE, protocol, **CUT)
        for protocol in ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat")
    ),
    *(
        framed(f"a body of {body}", body, protocol, **CUT)
        for body in ("null", "[]", '{"status": "ok"}', "")
        for protocol in ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat")
    ),
    framed("a page behind the opening", sse(FRAMES[:2], end="") + PAGE, **CUT),
)

CHAT_CALLS = (
    chat(
        "the call at another index again, whole",
        piece(0, "c1", "bash", args=""),
        piece(1, "c1", "bash", args=LS_TEXT),
        **CALLED,
    ),
    chat(
        "the call in pieces, and whole at another index",
        piece(0, "c1", "bash", args=""),
        *(piece(args=text) for text in HALVES),
        piece(1, "c1", "bash", args=LS_TEXT),
        **CALLED,
    ),
    chat(
        "pieces with an empty id at one index, two calls",
        piece(0, "c1", "bash", args=""),
        *(piece(0, "", args=text) for text in HALVES),
        piece(0, "c2", "bash", args=""),
        *(piece(0, "", args=text) for text in (PWD_TEXT[:9], PWD_TEXT[9:])),
        ids=("c1", "c2"),
        **TWO,
    ),
    chat(
        "ids of digits at one index, two calls",
        piece(0, "0", "bash", args=""),
        *(piece(0, "0", args=text) for text in HALVES),
        piece(0, "1", "bash", args=""),
        *(piece(0, "1", args=text) for text in (PWD_TEXT[:9], PWD_TEXT[9:])),
        ids=("0", "1"),
        **TWO,
    ),
    chat("null, then an object", piece(0, "c1", "bash", args=None), piece(args={"command": "ls src"}), **CALLED),
    chat(
        "an object, and the same with the reason",
        piece(0, "c1", "bash", args={"command": "ls src"}),
        {
            **chunk("tool_calls"),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "delta": {"tool_calls": [entry(0, "c1", "bash", args={"command": "ls src"})]},
                }
            ],
        },
        finish=None,
        **CALLED,
    ),
    chat(
        "a name in pieces", piece(0, "c1", "ba", args=""), piece(0, None, "sh", args=""), piece(args=LS_TEXT), **CALLED
    ),
    chat(
        "a name in pieces, each with the id",
        piece(0, "c1", "r", args=""),
        piece(0, "c1", "ea"),
        piece(0, "c1", "d"),
        piece(0, "c1", args=READ_TEXT),
        calls=(READ,),
        stop="tool_use",
    ),
    chat(
        "indices as texts, two calls by turns",
        piece("0", "c1", "bash", args=HALVES[0]),
        piece("1", "c2", "read", args=READ_TEXT[:9]),
        piece("0", args=HALVES[1]),
        piece("1", args=READ_TEXT[9:]),
        **BOTH,
    ),
    chat(
        "a call in each of two choices",
        choice(0, tool_calls=[entry(0, "c1", "bash", args=LS_TEXT)]),
        choice(1, tool_calls=[entry(0, "c2", "read", args=READ_TEXT)]),
        choice(1, "tool_calls"),
        told=("ignored-call",),
        **CALLED,
    ),
    chat(
        "a call in thinking alone", *texts("I look.\n", HERMES, key="reasoning_content"), thinking="I look.", **CALLED
    ),
    chat(
        "a call in thinking, then text",
        *texts("I look.\n", HERMES, key="reasoning_content"),
        *texts(*PIECES),
        thinking="I look.\n" + HERMES,
        **SPOKEN,
    ),
    chat(
        "a call in thinking, then as a call",
        *texts("I look.\n", HERMES, key="reasoning_content"),
        one(),
        thinking="I look.\n" + HERMES,
        **CALLED,
    ),
    chat(
        "a call in text, and the reason of calls",
        *texts(*(HERMES[at : at + 9] for at in range(0, len(HERMES), 9))),
        finish="tool_calls",
        **CALLED,
    ),
    chat(
        "a flat call",
        chunk(tool_calls=[{"index": 0, "id": "c1", "type": "function", "name": "bash", "arguments": LS_TEXT}]),
        **CALLED,
    ),
    chat(
        "a function as text",
        chunk(
            tool_calls=[
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": json.dumps({"name": "bash", "arguments": LS_TEXT}),
                }
            ]
        ),
        **CUT,
    ),
    chat(
        "calls in a message of the stream",
        {
            **chunk(),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [entry(None, "c1", "bash", args=LS_TEXT)],
                    },
                }
            ],
        },
        finish=None,
        **CALLED,
    ),
    chat(
        "all at once: no id, one index, an object, stop",
        ": alive\n\n",
        piece(0, None, "bash", args={"command": "ls src"}),
        ": alive\n\n",
        piece(0, None, "bash", args={"command": "pwd"}),
        finish="stop",
        **TWO,
    ),
    chat(
        "all at once, and usage behind the marker",
        chunk(role="assistant", content=None, reasoning_content=None),
        piece(None, "", "bash", args={"command": "ls src"}),
        chunk(content="", tool_calls=[]),
        end="data: [DONE]\n\n" + data(with_usage({**chunk(), "choices": []})),
        usage=(9, 7, 0),
        **CALLED,
    ),
    chat(
        "usage with the reason again",
        one(),
        chunk("tool_calls"),
        with_usage(chunk("tool_calls")),
        finish=None,
        usage=(9, 7, 0),
        **CALLED,
    ),
    chat(
        "an empty role and no counts in each chunk",
        *(
            {
                **chunk(role="", reasoning_content="", **said),
                "usage": {"total_tokens": 0, "total_characters": 0},
                "input_sensitive": False,
            }
            for said in ({"content": ""}, {"tool_calls": [entry(0, "c1", "bash", args=LS_TEXT)]})
        ),
        **CALLED,
    ),
    chat(
        "all of the text under another key at the end",
        *texts(*PIECES),
        {
            **chunk("stop"),
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "delta": {"content": None, "final_content": LONG, "reference": {}},
                }
            ],
        },
        finish=None,
        **SPOKEN,
    ),
    chat(
        "a refusal beside null calls",
        chunk(content=None, refusal=None, tool_calls=None, function_call=None),
        *texts(*PIECES),
        **SPOKEN,
    ),
    chat(
        "an error with no choices in place of the end",
        one(),
        {
            "id": "gen-1",
            "object": "chat.completion.chunk",
            "choices": [],
            "error": {"code": 502, "message": "Provider disconnected"},
        },
        finish=None,
        calls=(LS,),
        stop="error",
        error=True,
    ),
    chat(
        "an error as a word with no success",
        {"success": False, "error": {"code": "INTERNAL", "status": 500}},
        finish=None,
        **CUT,
    ),
    chat(
        "an error in a choice",
        {
            **chunk(),
            "choices": [
                {
                    "index": 0,
                    "delta": {"content": ""},
                    "finish_reason": "error",
                    "error": {"code": 429, "message": "Too many"},
                }
            ],
        },
        finish=None,
        **CUT,
    ),
    chat(
        "a second head at the first index, its rest at the second",
        piece(0, "c1", "bash", args=""),
        piece(args=LS_TEXT),
        piece(0, "c2", "bash", args=""),
        piece(1, args=PWD_TEXT),
        calls=(LS,),
        stop="tool_use",
        error=True,
    ),
    chat(
        "arguments first as an empty list of nothing",
        piece(0, "c1", "bash", args=""),
        piece(args=""),
        piece(args=LS_TEXT),
        piece(args=""),
        **CALLED,
    ),
    chat(
        "the same id in each turn's form",
        piece(0, "functions.bash:0", "functions.bash", args=LS_TEXT),
        ids=("functions.bash:0",),
        **CALLED,
    ),
    chat(
        "an index that starts again for each chunk",
        chunk(tool_calls=[entry(0, "c1", "bash", args=LS_TEXT)]),
        chunk(tool_calls=[entry(0, "c2", "read", args=READ_TEXT)]),
        finish="stop",
        **BOTH,
    ),
    chat(
        "an empty name in each piece",
        piece(0, "c1", "bash", args=""),
        *(piece(0, None, "", args=text) for text in HALVES),
        **CALLED,
    ),
    chat(
        "a null name and id in each piece",
        piece(0, "c1", "bash", args=""),
        *(
            chunk(tool_calls=[{"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": text}}])
            for text in HALVES
        ),
        **CALLED,
    ),
    chat(
        "the name in each piece, two calls",
        *(
            piece(at, f"c{at}", name, args=text)
            for at, name, args in ((0, "bash", LS_TEXT), (1, "read", READ_TEXT))
            for text in (args[:9], args[9:])
        ),
        **BOTH,
    ),
    chat(
        "no arguments and no key for them",
        chunk(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "now"}}]),
        calls=(NOW,),
        stop="tool_use",
    ),
    chat(
        "arguments of nothing for one that needs some",
        chunk(
            tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]
        ),
        finish="stop",
        calls=(NOW,),
        stop="tool_use",
    ),
    chat(
        "a limit in a call, an error behind it",
        piece(0, "c1", "bash", args=""),
        piece(args='{"'),
        piece(args="comm"),
        {"error": {"message": "malformed", "type": "api_error"}},
        finish=None,
        **CUT,
    ),
    chat(
        "a limit in a call",
        piece(0, "c1", "bash", args=""),
        piece(args='{"comm'),
        finish="length",
        stop="length",
        error=True,
    ),
    chat(
        "an empty reason in a call",
        piece(0, "c1", "bash", args=""),
        {
            **piece(args=HALVES[0]),
            "choices": [{"index": 0, "finish_reason": "", "delta": {"tool_calls": [entry(0, args=HALVES[0])]}}],
        },
        piece(args=HALVES[1]),
        **CALLED,
    ),
    chat("text beside the reason", *texts(*PIECES[:-1]), choice(0, "stop", content=PIECES[-1]), finish=None, **SPOKEN),
    chat(
        "text and a call beside the reason",
        choice(0, "tool_calls", content="I look.", tool_calls=[entry(0, "c1", "bash", args=LS_TEXT)]),
        finish=None,
        text="I look.",
        **CALLED,
    ),
)

OTHERS = (
    messages(
        "all in the start, and end_turn",
        opened(0, type="tool_use", id="t1", name="bash", input={"command": "ls src"}),
        closed(0),
        ids=("t1",),
        **CALLED,
    ),
    messages(
        "no index anywhere", *(frame.replace('"index": 0, ', "") for frame in used(0)), reason="tool_use", **CALLED
    ),
    messages(
        "no types, but names",
        *(
            frame.replace('"type": "content_block_start", ', "").replace('"type": "content_block_delta", ', "")
            for frame in used(0)
        ),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "null arguments before the pieces",
        opened(0, type="tool_use", id="t1", name="bash", input=None),
        grown(0, type="input_json_delta", partial_json=None),
        *argued(0, *HALVES),
        closed(0),
        reason="tool_use",
        **CALLED,
    ),
    messages("a call in text", *block(0, HERMES), reason="tool_use", **CALLED),
    messages(
        "the reason before the block's end",
        opened(0, type="tool_use", id="t1", name="bash", input={}),
        *argued(0, LS_TEXT),
        ended("tool_use"),
        closed(0),
        reason=None,
        **CALLED,
    ),
    messages(
        "metrics at the end",
        *block(0, *PIECES),
        end=event("message_stop", **{"amazon-bedrock-invocationMetrics": {"inputTokenCount": 9}}),
        **SPOKEN,
    ),
    messages(
        "no counts in the start",
        *used(0),
        begin=event("message_start", message={"id": "m1", "role": "assistant"}),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "one index for two calls, one behind the other",
        *used(0),
        *used(0, READ_TEXT, "read", "toolu_2"),
        reason="tool_use",
        **BOTH,
    ),
    messages("two calls of one id and one index", *used(0), *used(0, PWD_TEXT), reason="tool_use", **TWO),
    framed("chunks of another protocol", sse(FRAMES), "anthropic-messages", **CUT),
    framed("a line each", "\n".join(lines_of(messages("x", *used(0), reason="tool_use"))), "anthropic-messages"),
    framed(
        "no blank lines", messages("x", *used(0), reason="tool_use").body.replace(b"\n\n", b"\n"), "anthropic-messages"
    ),
    framed("a list", "[" + ",".join(lines_of(messages("x", *used(0), reason="tool_use"))) + "]", "anthropic-messages"),
    responses(
        "text in deltas, the call in the end alone", *deltas(*PIECES), output=(item(LONG), call()), text=LONG, **CALLED
    ),
    responses(
        "the end without id and model",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        last=r("completed", response={"status": "completed", "output": []}),
        **CALLED,
    ),
    responses(
        "text and call at index 0",
        *MESSAGE,
        *deltas(*PIECES),
        *text_done(LONG),
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        output=(item(LONG), call()),
        text=LONG,
        **CALLED,
    ),
    responses(
        "no end behind a call",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        last=r("in_progress"),
        calls=(LS,),
        stop="error",
        error=True,
    ),
    responses(
        "a call that goes on at the end",
        added(call("")),
        args_delta(LS_TEXT),
        output=(call(status="in_progress"),),
        **CALLED,
    ),
    responses(
        "the call's id at its end alone",
        added({**call(""), "call_id": None}),
        args_delta(LS_TEXT),
        done(call()),
        output=(call(),),
        ids=("call_1",),
        **CALLED,
    ),
    responses(
        "padding in each delta",
        added(call("")),
        *({**args_delta(text), "obfuscation": "x" * at} for at, text in enumerate(HALVES)),
        done(call()),
        output=(call(),),
        **CALLED,
    ),
    responses(
        "an error in an error",
        r("x"),
        last={"type": "error", "error": {"type": "server_error", "message": "no"}},
        **CUT,
    ),
    responses(
        "another text in the last list alone",
        *MESSAGE,
        *deltas(*PIECES),
        *text_done(LONG),
        output=(item("Else."),),
        told=("final-differs",),
        **SPOKEN,
    ),
    responses(
        "a text that only the last list tells",
        added(item(status="in_progress")),
        done(item()),
        output=(item(LONG),),
        **SPOKEN,
    ),
    framed("chunks of another protocol", sse(FRAMES), "openai-responses", **CUT),
    framed(
        "a line each",
        "\n".join(lines_of(responses("x", added(call("")), args_delta(LS_TEXT), done(call())))),
        "openai-responses",
    ),
    framed(
        "a list",
        "[" + ",".join(lines_of(responses("x", added(call("")), args_delta(LS_TEXT), done(call())))) + "]",
        "openai-responses",
    ),
    gemini(
        "null for arguments", candidate({"functionCall": {"name": "now", "args": None}}), calls=(NOW,), stop="tool_use"
    ),
    gemini("a call in a thought", candidate({**f(), "thought": True}), **CALLED),
    gemini(
        "a part in place of a list",
        {"candidates": [{"content": {"role": "model", "parts": f()}, "index": 0}]},
        **CALLED,
    ),
    gemini("a prefix of the name", candidate(f("default_api.bash")), **CALLED),
    gemini(
        "two candidates without an index",
        {"candidates": [{"content": {"parts": [f()]}}, {"content": {"parts": [f("read", {"path": "src/app.py"})]}}]},
        told=("ignored-call",),
        **CALLED,
    ),
    gemini(
        "too many calls",
        candidate(f(), finish="TOO_MANY_TOOL_CALLS"),
        last=candidate(t("")),
        calls=(LS,),
        stop="error",
        error=True,
    ),
    gemini(
        "an error in the stream",
        candidate(t("I look.")),
        last={"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
        text="I look.",
        **CUT,
    ),
    framed("a line each", "\n".join(lines_of(gemini("x", candidate(f())))), "gemini-generate"),
    framed(
        "lists in events",
        sse([f"data: [{text}]\n\n" for text in lines_of(gemini("x", candidate(f())))], end=""),
        "gemini-generate",
    ),
    framed(
        "a list of envelopes",
        json.dumps([{"response": json.loads(text)} for text in lines_of(gemini("x", candidate(f())))]),
        "gemini-generate",
    ),
    framed(
        "a list with a comma behind",
        "[" + "".join(text + ",\n" for text in lines_of(gemini("x", candidate(f())))) + "]",
        "gemini-generate",
    ),
    framed("chunks of another protocol", sse(FRAMES), "gemini-generate", **CUT),
    ollama(
        "the call's reason in the last line",
        line(tool_calls=[of()]),
        last=line(done=True, done_reason="tool_calls"),
        **CALLED,
    ),
    ollama(
        "null, then the arguments",
        line(tool_calls=[{"function": {"index": 0, "name": "bash", "arguments": None}}]),
        line(tool_calls=[{"function": {"index": 0, "arguments": {"command": "ls src"}}}]),
        **CALLED,
    ),
    ollama(
        "arguments as text in pieces",
        *(
            line(tool_calls=[{"function": {"index": 0, **name, "arguments": text}}])
            for name, text in zip(({"name": "bash"}, {}), HALVES, strict=True)
        ),
        **CALLED,
    ),
    ollama("done as a word", line(tool_calls=[of()]), last=line(done="true", done_reason="stop"), **CALLED),
    ollama(
        "a name in its tool's form",
        line(
            tool_calls=[{"id": "c1", "type": "function", "function": {"name": "functions.bash", "arguments": LS_TEXT}}]
        ),
        ids=("c1",),
        **CALLED,
    ),
    framed("chunks of another protocol", sse(FRAMES), "ollama-chat", **CUT),
    framed(
        "a list",
        json.dumps([json.loads(text) for text in ollama("x", line(tool_calls=[of()])).body.splitlines()]),
        "ollama-chat",
    ),
)


def body_of(protocol: str, told: Any, name: str, **meant: Any) -> Stream:
    return framed(f"whole: {name}", json.dumps(told), protocol, **(meant or CALLED))


def answered(parts: Any, finish: str | None = "STOP", **fields: Any) -> Frame:
    end = {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0, **end}], **fields}


def output(*items: Frame, **fields: Any) -> Frame:
    return {**HEAD, "status": "completed", "output": list(items), "usage": None, **fields}


ENTRY: Frame = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": LS_TEXT}}
ANSWER = json.loads(whole("x", {"content": None, "tool_calls": [ENTRY]}).body)
WHOLE = (
    whole(
        "whole: stop, an object, no id, no type",
        {"content": "", "tool_calls": [{"function": {"name": "bash", "arguments": {"command": "ls src"}}}]},
        **CALLED,
    ),
    whole("whole: a call in place of a list", {"content": None, "tool_calls": ENTRY}, "tool_calls", **CALLED),
    whole(
        "whole: a flat call",
        {"content": None, "tool_calls": [{"id": "c1", "name": "bash", "arguments": LS_TEXT}]},
        **CALLED,
    ),
    whole(
        "whole: one id for two calls",
        {"tool_calls": [ENTRY, {**ENTRY, "function": {"name": "bash", "arguments": PWD_TEXT}}]},
        "tool_calls",
        **TWO,
    ),
    whole(
        "whole: arguments quoted twice",
        {"tool_calls": [{**ENTRY, "function": {"name": "bash", "arguments": json.dumps(LS_TEXT)}}]},
        "tool_calls",
        **CALLED,
    ),
    whole(
        "whole: cut by the limit",
        {"tool_calls": [{**ENTRY, "function": {"name": "bash", "arguments": HALVES[0]}}]},
        "length",
        stop="length",
        error=True,
    ),
    whole("whole: a call in thinking", {"content": "", "reasoning_content": HERMES}, **CALLED),
    whole("whole: null calls beside text", {"content": LONG, "tool_calls": None, "function_call": None}, **SPOKEN),
    whole("whole: no call but its reason", {"content": LONG}, "tool_calls", told=("stop-reason",), **SPOKEN),
    whole(
        "whole: arguments of nothing",
        {"tool_calls": [{**ENTRY, "function": {"name": "now", "arguments": ""}}]},
        calls=(NOW,),
        stop="tool_use",
    ),
    body_of(
        "openai-chat",
        {**ANSWER, "choices": [{"index": 0, "delta": ANSWER["choices"][0]["message"], "finish_reason": "tool_calls"}]},
        "a delta in place of a message",
    ),
    body_of(
        "openai-chat", {**ANSWER, "choices": [], "error": {"message": "no", "code": 502}}, "an error, no choices", **CUT
    ),
    body_of(
        "openai-chat",
        {**ANSWER, "error": {"message": "no", "code": 502}},
        "an error beside a call",
        calls=(LS,),
        stop="error",
        error=True,
    ),
    body_of("openai-chat", {**ANSWER, "error": None}, "no error beside a call"),
    body_of("openai-chat", {"data": ANSWER, "code": 0}, "an envelope"),
    body_of("openai-chat", [ANSWER], "a list of one"),
    framed(
        "whole: behind a byte order mark and blanks",
        b"\xef\xbb\xbf\n\n  " + json.dumps(ANSWER, indent=2).encode() + b"\n\n",
    ),
    framed("whole: as one event", f"data: {json.dumps(ANSWER)}\n\ndata: [DONE]\n\n"),
    framed("whole: cut", json.dumps(ANSWER)[:-40], **CUT),
    framed("whole: twice", json.dumps(ANSWER) + "\n" + json.dumps(ANSWER), **CALLED),
    framed("whole: packed by gzip", gzip.compress(json.dumps(ANSWER).encode(), mtime=0)),
    message(
        "whole: input as text, end_turn", [{"type": "tool_use", "id": "t1", "name": "bash", "input": LS_TEXT}], **CALLED
    ),
    message(
        "whole: no reason",
        [{"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls src"}}],
        None,  # type: ignore[arg-type]
        **CALLED,
    ),
    message(
        "whole: a block in place of a list",
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls src"}},
        "tool_use",
        **CALLED,
    ),
    message(
        "whole: arguments under another key",
        [{"type": "tool_use", "id": "t1", "name": "bash", "arguments": {"command": "ls src"}}],
        "tool_use",
        **CALLED,
    ),
    body_of("anthropic-messages", ANSWER, "another protocol's answer", **CUT),
    body_of(
        "anthropic-messages", {"type": "error", "error": {"type": "api_error", "message": "no"}}, "an error", **CUT
    ),
    body_of("anthropic-messages", {**BEGIN, "content": [], "error": {"message": "no"}}, "an error in an answer", **CUT),
    body_of("openai-responses", output(call({"command": "ls src"})), "an object", **CALLED),  # type: ignore[arg-type]
    body_of("openai-responses", output(call(call_id="")), "no call id", **CALLED),
    body_of("openai-responses", output(call(), error={}), "an empty error", **CALLED),
    body_of(
        "openai-responses",
        output(call(), status="failed", error={"message": "no"}),
        "failed behind a call",
        calls=(LS,),
        stop="error",
        error=True,
    ),
    body_of(
        "openai-responses",
        output(
            call(HALVES[0], status="incomplete"),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        "cut by the limit",
        stop="length",
        error=True,
    ),
    body_of("openai-responses", ANSWER, "another protocol's answer", **CUT),
    body_of("openai-responses", {"response": output(call())}, "an envelope", **CALLED),
    body_of("gemini-generate", [answered([f()])], "a list of one"),
    body_of("gemini-generate", answered([f(args=LS_TEXT)]), "args as text"),
    body_of("gemini-generate", answered(f()), "a part in place of a list"),
    body_of(
        "gemini-generate",
        answered([f()], "MALFORMED_FUNCTION_CALL"),
        "a good call and a malformed one",
        calls=(LS,),
        stop="error",
        error=True,
    ),
    body_of("gemini-generate", {"response": answered([f()])}, "an envelope"),
    body_of("gemini-generate", {"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}, "an error", **CUT),
    body_of("gemini-generate", ANSWER, "another protocol's answer", **CUT),
    body_of("ollama-chat", {**line(tool_calls=[of(LS_TEXT)]), "done": True, "done_reason": "stop"}, "args as text"),
    body_of("ollama-chat", {**line(tool_calls=of()), "done": True, "done_reason": "stop"}, "a call in place of a list"),
    body_of("ollama-chat", {"error": {"message": "no", "type": "api_error"}}, "an error as an object", **CUT),
    body_of("ollama-chat", ANSWER, "another protocol's answer", **CUT),
)

COMBINED: tuple[Stream, ...] = (*FRAMING, *CHAT_CALLS, *OTHERS, *WHOLE)

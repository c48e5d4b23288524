"""Streams of the other four protocols as they were reported, each with the right reading; see `found_streams.py`."""

from __future__ import annotations

import json
from typing import Any

from found_streams import BOTH, CALLED, LONG, LS, LS_TEXT, PIECES, PWD, READ_TEXT, Frame, Stream, sse

# ---------------------------------------------------------------- Messages


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def opened(index: int, **block: Any) -> str:
    return event("content_block_start", index=index, content_block=block)


def grown(index: int, **delta: Any) -> str:
    return event("content_block_delta", index=index, delta=delta)


def closed(index: int) -> str:
    return event("content_block_stop", index=index)


def said(index: int, *pieces: str) -> list[str]:
    return [grown(index, type="text_delta", text=piece) for piece in pieces]


def thought(index: int, *pieces: str) -> list[str]:
    return [grown(index, type="thinking_delta", thinking=piece) for piece in pieces]


def argued(index: int, *pieces: str) -> list[str]:
    return [grown(index, type="input_json_delta", partial_json=piece) for piece in pieces]


def block(index: int, *pieces: str) -> list[str]:
    """A text block."""
    return [opened(index, type="text", text=""), *said(index, *pieces), closed(index)]


def used(index: int, args: str = LS_TEXT, name: str = "bash", id: str = "toolu_1", **start: Any) -> list[str]:
    head = opened(index, **{"type": "tool_use", "id": id, "name": name, "input": {}, **start})
    return [head, *([*argued(index, args)] if args else []), closed(index)]


BEGIN = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
}


def start(usage: Any = None, **fields: Any) -> str:
    return event(
        "message_start", message={**BEGIN, "usage": usage or {"input_tokens": 9, "output_tokens": 1}, **fields}
    )


def ended(reason: str | None = "end_turn", **usage: Any) -> str:
    return event(
        "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage or {"output_tokens": 7}
    )


STOP = event("message_stop")


def messages(
    name: str, *frames: str, reason: str | None = "end_turn", begin: str | None = None, end: str = STOP, **told: Any
) -> Stream:
    last = [ended(reason)] if reason else []
    return Stream(
        f"messages: {name}",
        "anthropic-messages",
        "".join([start() if begin is None else begin, *frames, *last, end]).encode(),
        **told,
    )


def message(name: str, content: Any, reason: str = "end_turn", **told: Any) -> Stream:
    body = {**BEGIN, "content": content, "stop_reason": reason, "usage": {"input_tokens": 9, "output_tokens": 7}}
    return Stream(f"messages: {name}", "anthropic-messages", json.dumps(body).encode(), **told)


TEXTS = (
    messages(
        "counts of zero first",
        *block(0, "Done."),
        ended("end_turn", input_tokens=30, output_tokens=7, cache_read_input_tokens=20),
        reason=None,
        begin=start({"input_tokens": 0, "output_tokens": 0}),
        text="Done.",
        usage=(50, 7, 20),
    ),
    messages(
        "text at the index of thinking",
        opened(0, type="thinking", thinking=""),
        *thought(0, "Files ", "first."),
        closed(0),
        opened(1, type="text", text=""),
        *said(0, *PIECES),
        closed(1),
        text=LONG,
        thinking="Files first.",
    ),
    messages(
        "thinking at the index of text",
        opened(0, type="thinking", thinking=""),
        *thought(0, "Files."),
        closed(0),
        opened(1, type="text", text=""),
        *said(1, "I look. "),
        *thought(1, "Then tests."),
        *said(1, "Done."),
        closed(1),
        text="I look. Done.",
        thinking="Files.Then tests.",
    ),
    messages(
        "a start for each token",
        *(frame for piece in PIECES for frame in (opened(0, type="thinking", thinking=""), *thought(0, piece))),
        closed(0),
        *block(1, "Done."),
        text="Done.",
        thinking=LONG,
    ),
    messages(
        "a start for each token of text",
        *(frame for piece in PIECES for frame in (opened(0, type="text", text=""), *said(0, piece))),
        closed(0),
        text=LONG,
    ),
    messages("no start of a text", *said(0, *PIECES), closed(0), text=LONG, told=("part-not-opened",)),
    messages(
        "the beginning in the start",
        opened(0, type="text", text="The tests "),
        *said(0, *PIECES[1:]),
        closed(0),
        text=LONG,
    ),
    messages("all in the start and again", opened(0, type="text", text=LONG), *said(0, LONG), closed(0), text=LONG),
    messages(
        "snapshots",
        opened(0, type="text", text=""),
        *said(0, *("".join(PIECES[: number + 1]) for number in range(len(PIECES)))),
        closed(0),
        text=LONG,
        told=("cumulative-text",),
    ),
    messages(
        "all again at the end",
        opened(0, type="text", text=""),
        *said(0, *PIECES),
        *said(0, LONG),
        closed(0),
        text=LONG * 2,
    ),
    messages(
        "a seal in pieces",
        opened(0, type="thinking", thinking="", signature=""),
        *thought(0, "Files."),
        grown(0, type="signature_delta", signature="QUJD"),
        grown(0, type="signature_delta", signature="REVG"),
        closed(0),
        *block(1, "Done."),
        text="Done.",
        thinking="Files.",
    ),
    messages(
        "a delta without a type", opened(0, type="text", text=""), grown(0, text="Done."), closed(0), text="Done."
    ),
    messages(
        "an index as text",
        event("content_block_start", index="0", content_block={"type": "text", "text": ""}),
        event("content_block_delta", index="0", delta={"type": "text_delta", "text": "Done."}),
        event("content_block_stop", index="0"),
        text="Done.",
    ),
    messages(
        "null among the content",
        *block(0, "Done."),
        begin=start({"input_tokens": None, "output_tokens": None}, content=None),
        text="Done.",
    ),
    message("content as text", "Done.", text="Done."),
    message("content of null and text", [None, {"type": "text", "text": "Done."}], text="Done."),
    message("content of an empty text", [""], text=""),
    message("content of null", [None], text=""),
    message("content of strings", ["Do", "ne."], text="Done."),
    message(
        "input as text", [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": LS_TEXT}], "tool_use", **CALLED
    ),
    message(
        "a null beside a call",
        [None, {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls src"}}],
        "tool_use",
        **CALLED,
    ),
)
TOOLS = (
    messages("input in the start alone", *used(0, "", input={"command": "ls src"}), reason="tool_use", **CALLED),
    messages(
        "input in the start and again", *used(0, LS_TEXT, input={"command": "ls src"}), reason="tool_use", **CALLED
    ),
    messages(
        "input that grows as snapshots",
        opened(0, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(0, *(LS_TEXT[:size] for size in (4, 11, 15, len(LS_TEXT)))),
        closed(0),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "input as snapshots, the first one twice",
        opened(0, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(0, *(LS_TEXT[:size] for size in (11, 11, 15, len(LS_TEXT)))),
        closed(0),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "an empty object first",
        opened(0, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(0, "", "{}", LS_TEXT),
        closed(0),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "one id for two calls",
        *used(0),
        *used(1, '{"command": "pwd"}'),
        reason="tool_use",
        calls=(LS, PWD),
        stop="tool_use",
        told=("duplicate-id",),
    ),
    messages(
        "no stop before the next start",
        opened(0, type="text", text=""),
        *said(0, "I look."),
        opened(1, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(1, LS_TEXT),
        opened(2, type="tool_use", id="toolu_2", name="read", input={}),
        *argued(2, READ_TEXT),
        reason="tool_use",
        text="I look.",
        **BOTH,
    ),
    messages(
        "thinking behind a call",
        *used(0),
        opened(1, type="thinking", thinking=""),
        *thought(1, "Then read."),
        closed(1),
        *used(2, READ_TEXT, "read", "toolu_2"),
        reason="tool_use",
        thinking="Then read.",
        **BOTH,
    ),
    messages("end_turn for a call", *used(0), **CALLED),
    messages("tool_use without a call", *block(0, "I look."), reason="tool_use", text="I look.", told=("stop-reason",)),
    messages(
        "max_tokens in a call",
        opened(0, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(0, '{"command": "ls'),
        reason="max_tokens",
        stop="length",
        error=True,
    ),
    messages(
        "no id",
        opened(0, type="tool_use", name="bash", input={}),
        *argued(0, LS_TEXT),
        closed(0),
        reason="tool_use",
        told=("missing-id",),
        **CALLED,
    ),
    messages(
        "a second delta with usage alone",
        *used(0),
        ended("tool_use"),
        event("message_delta", delta={}, usage={"input_tokens": 9, "output_tokens": 12}),
        reason=None,
        usage=(9, 12, 0),
        **CALLED,
    ),
    messages(
        "a second delta without a reason",
        *used(0),
        ended("tool_use"),
        event("message_delta", delta={"stop_reason": None}),
        reason=None,
        **CALLED,
    ),
    messages(
        "arguments in text behind thinking",
        opened(0, type="thinking", thinking=""),
        *thought(0, "Files."),
        closed(0),
        *block(1, "\n\n", "<tool_call>\n", '{"name": "bash", "arguments": ', LS_TEXT, "}\n</tool_call>"),
        thinking="Files.",
        told=("rescued-call",),
        **CALLED,
    ),
)
STOPS = (
    messages("no message_stop", *block(0, "Done."), end="", text="Done.", told=("no-end-marker",)),
    messages(
        "no end at all",
        opened(0, type="text", text=""),
        *said(0, "I l"),
        reason=None,
        end="",
        text="I l",
        stop="error",
        error=True,
    ),
    messages(
        "deltas behind message_stop",
        *block(0, "Done."),
        end=STOP + "".join(said(0, " More.")),
        text="Done.",
        told=("after-end",),
    ),
    messages("the marker of another protocol", *block(0, "Done."), end=STOP + "data: [DONE]\n\n", text="Done."),
    messages(
        "overloaded in between",
        *used(0),
        event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
        reason=None,
        end="",
        calls=(LS,),
        stop="error",
        error=True,
    ),
    messages(
        "an error of another protocol",
        opened(0, type="text", text=""),
        *said(0, "I l"),
        'data: {"error": {"message": "upstream timeout", "code": 504}}\n\n',
        reason=None,
        end="",
        text="I l",
        stop="error",
        error=True,
    ),
    messages(
        "an error in a cut call",
        opened(0, type="tool_use", id="toolu_1", name="bash", input={}),
        *argued(0, '{"command": "ls'),
        event("error", error={"type": "api_error", "message": "x"}),
        reason=None,
        end="",
        stop="error",
        error=True,
    ),
    messages(
        "another message within",
        opened(0, type="text", text=""),
        *said(0, "I lo"),
        event("message_start", message={**BEGIN, "id": "msg_2", "usage": {}}),
        *block(0, "I look."),
        text="I lo",
        stop="error",
        error=True,
    ),
    messages(
        "the same message again at the start", start(), *block(0, "Done."), text="Done.", told=("duplicate-start",)
    ),
    messages("a refusal", *block(0, "I cannot."), reason="refusal", text="I cannot.", stop="content_filter"),
    messages("a full window", *block(0, "I lo"), reason="model_context_window_exceeded", text="I lo", stop="length"),
    messages(
        "a ping without data", "event: ping\ndata: {}\n\n", *block(0, "Done."), "event: ping\ndata:\n\n", text="Done."
    ),
)

# ---------------------------------------------------------------- Responses


def rows(*frames: Frame) -> str:
    return "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames)


def r(kind: str, **fields: Any) -> Frame:
    return {"type": f"response.{kind}", **fields}


def delta(text: str, **fields: Any) -> Frame:
    return r(
        "output_text.delta", **{"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text, **fields}
    )


def part(text: str) -> Frame:
    return {"type": "output_text", "text": text, "annotations": []}


def item(*texts: str, id: str = "msg_1", status: str = "completed") -> Frame:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [part(text) for text in texts],
    }


def call(
    args: str | None = LS_TEXT, name: str = "bash", id: str = "fc_1", call_id: str = "call_1", **more: Any
) -> Frame:
    return {
        "id": id,
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": args,
        "status": "completed",
        **more,
    }


def added(what: Frame, index: int = 0) -> Frame:
    return r("output_item.added", output_index=index, item=what)


def done(what: Frame, index: int = 0) -> Frame:
    return r("output_item.done", output_index=index, item=what)


def args_delta(text: str, index: int = 0, id: str = "fc_1") -> Frame:
    return r("function_call_arguments.delta", item_id=id, output_index=index, delta=text)


def args_done(text: str, index: int = 0, id: str = "fc_1") -> Frame:
    return r("function_call_arguments.done", item_id=id, output_index=index, arguments=text)


def text_done(text: str) -> list[Frame]:
    return [
        r("output_text.done", item_id="msg_1", output_index=0, content_index=0, text=text),
        r("content_part.done", item_id="msg_1", output_index=0, content_index=0, part=part(text)),
        done(item(text)),
    ]


HEAD = {"id": "resp_1", "object": "response", "created_at": 1790000000, "model": "m"}
MESSAGE = [
    added(item(status="in_progress")),
    r("content_part.added", item_id="msg_1", output_index=0, content_index=0, part=part("")),
]


def finished(output: Any, status: str = "completed", **fields: Any) -> Frame:
    usage = {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16}
    return r(status, response={**HEAD, "status": status, "output": output, "usage": usage, **fields})


def responses(
    name: str, *frames: Frame, output: Any = (), last: Frame | None = None, end: str = "", **told: Any
) -> Stream:
    begin = r("created", response={**HEAD, "status": "in_progress", "output": []})
    final = finished(list(output) if isinstance(output, tuple) else output) if last is None else last
    return Stream(f"responses: {name}", "openai-responses", (rows(begin, *frames, final) + end).encode(), **told)


def deltas(*pieces: str) -> list[Frame]:
    return [delta(piece) for piece in pieces]


SAID = (
    responses(
        "done behind the first delta",
        *MESSAGE,
        *deltas(PIECES[0]),
        *text_done(PIECES[0]),
        *deltas(*PIECES[1:]),
        text=LONG,
    ),
    responses(
        "done behind the first delta, all at the end",
        *MESSAGE,
        *deltas(PIECES[0]),
        *text_done(PIECES[0]),
        *deltas(*PIECES[1:]),
        output=(item(LONG),),
        text=LONG,
    ),
    responses(
        "a delta behind its done",
        *MESSAGE,
        *deltas(*PIECES[:-1]),
        *text_done(LONG),
        *deltas(PIECES[-1]),
        output=(item(LONG),),
        text=LONG,
    ),
    responses(
        "a delta behind its text's done",
        *MESSAGE,
        *deltas(*PIECES[:-1]),
        text_done(LONG)[0],
        *deltas(PIECES[-1]),
        *text_done(LONG)[1:],
        output=(item(LONG),),
        text=LONG,
    ),
    responses("all deltas behind done", *MESSAGE, *text_done(LONG), *deltas(*PIECES), output=(item(LONG),), text=LONG),
    responses(
        "all in the added part and again",
        added(item(status="in_progress")),
        r("content_part.added", item_id="msg_1", output_index=0, content_index=0, part=part(LONG)),
        *deltas(LONG),
        *text_done(LONG),
        output=(item(LONG),),
        text=LONG,
    ),
    responses(
        "all in the added item and again",
        added(item(LONG, status="in_progress")),
        *deltas(*PIECES),
        *text_done(LONG),
        output=(item(LONG),),
        text=LONG,
    ),
    responses("nothing at the end", *MESSAGE, *deltas(*PIECES), *text_done(LONG), text=LONG),
    responses("null at the end", *MESSAGE, *deltas(*PIECES), *text_done(LONG), output=None, text=LONG),
    responses(
        "deltas alone", *(r("output_text.delta", delta=piece) for piece in PIECES), text=LONG, told=("missing-index",)
    ),
    responses(
        "an item twice", *MESSAGE, *deltas(*PIECES), *text_done(LONG), done(item(LONG)), output=(item(LONG),), text=LONG
    ),
    responses(
        "snapshots",
        *MESSAGE,
        *deltas(*("".join(PIECES[: number + 1]) for number in range(len(PIECES)))),
        *text_done(LONG),
        output=(item(LONG),),
        text=LONG,
        told=("cumulative-text",),
    ),
    responses(
        "all again as a delta",
        *MESSAGE,
        *deltas(*PIECES, LONG),
        *text_done(LONG),
        output=(item(LONG),),
        text=LONG * 2,
        told=("final-differs",),
    ),
    responses(
        "thinking with an index for each delta",
        added({"id": "rs_1", "type": "reasoning", "summary": [], "content": []}),
        *(
            r("reasoning_text.delta", item_id="rs_1", output_index=0, content_index=number, delta=piece)
            for number, piece in enumerate(PIECES)
        ),
        r("reasoning_text.done", item_id="rs_1", output_index=0, content_index=len(PIECES), text=LONG),
        done({"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": LONG}]}),
        output=(
            {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": LONG}]},
        ),
        thinking=LONG,
    ),
    responses(
        "a refusal",
        *MESSAGE[:1],
        r("refusal.delta", item_id="msg_1", output_index=0, content_index=0, delta="I cannot."),
        text="I cannot.",
        stop="content_filter",
    ),
    responses("only the end", output=(item(LONG), call()), text=LONG, **CALLED),
    responses(
        "created twice",
        r("created", response={**HEAD, "status": "in_progress", "output": []}),
        *MESSAGE,
        *deltas(*PIECES),
        *text_done(LONG),
        text=LONG,
        told=("duplicate-start",),
    ),
    responses(
        "a call in the text",
        *MESSAGE,
        *deltas("\n\n", "<tool_call>\n", '{"name": "bash", "arguments": ', LS_TEXT, "}\n</tool_call>"),
        **CALLED,
    ),
    responses("a content of null", done({**item(), "content": [None, part("Done.")]}), text="Done."),
    responses(
        "another protocol's marker", *MESSAGE, *deltas(*PIECES), *text_done(LONG), end="data: [DONE]\n\n", text=LONG
    ),
)
CALLING = (
    responses("arguments in the last item alone", added(call("", status="in_progress")), done(call()), **CALLED),
    responses("arguments in done alone", added(call("", status="in_progress")), args_done(LS_TEXT), **CALLED),
    responses(
        "an empty done behind deltas", added(call("")), args_delta(LS_TEXT), args_done(""), done(call()), **CALLED
    ),
    responses(
        "another form at the end",
        added(call("")),
        args_delta('{"command":"ls src"}'),
        args_done(LS_TEXT),
        done(call()),
        output=(call(),),
        **CALLED,
    ),
    responses(
        "other arguments at the end",
        added(call("")),
        args_delta(LS_TEXT),
        args_done('{"command": "pwd"}'),
        done(call('{"command": "pwd"}')),
        stop="error",
        error=True,
    ),
    responses(
        "another item id in the deltas",
        added(call("")),
        args_delta('{"command": ', id="fc_tmp"),
        args_delta('"ls src"}', id="fc_tmp"),
        done(call()),
        output=(call(),),
        ids=("call_1",),
        **CALLED,
    ),
    responses(
        "two calls in turns",
        added(call("")),
        added(call("", "read", "fc_2", "call_2"), 1),
        args_delta('{"command": '),
        args_delta('{"path": ', 1, "fc_2"),
        args_delta('"ls src"}'),
        args_delta('"src/app.py"}', 1, "fc_2"),
        done(call()),
        done(call(READ_TEXT, "read", "fc_2", "call_2"), 1),
        ids=("call_1", "call_2"),
        **BOTH,
    ),
    responses(
        "arguments as an object",
        done(call() | {"arguments": {"command": "ls src"}}),
        told=("arguments-type",),
        **CALLED,
    ),
    responses("no call id", done({key: value for key, value in call().items() if key != "call_id"}), **CALLED),
    responses(
        "the call twice", added(call("")), args_delta(LS_TEXT), done(call()), done(call()), output=(call(),), **CALLED
    ),
    responses(
        "arguments that grow as snapshots",
        added(call("")),
        *(args_delta(LS_TEXT[:size]) for size in (4, 11, 15, len(LS_TEXT))),
        done(call()),
        **CALLED,
    ),
    responses(
        "a delta behind the call's done",
        added(call("")),
        args_delta(LS_TEXT[:9]),
        args_done(LS_TEXT),
        args_delta(LS_TEXT[9:]),
        done(call()),
        output=(call(),),
        **CALLED,
    ),
    responses(
        "the limit in a call",
        added(call("")),
        args_delta('{"command": "ls'),
        last=finished(
            [call('{"command": "ls', status="incomplete")],
            "incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        stop="length",
        error=True,
    ),
    responses(
        "the limit behind a call",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        last=finished([call()], "incomplete", incomplete_details={"reason": "max_output_tokens"}),
        calls=(LS,),
        stop="length",
    ),
    responses(
        "failed behind a call",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        last=finished([], "failed", error={"code": "server_error", "message": "x"}),
        calls=(LS,),
        stop="error",
        error=True,
    ),
    responses(
        "an error event",
        *MESSAGE,
        *deltas("I l"),
        last={"type": "error", "code": "rate_limit_exceeded", "message": "x", "param": None},
        text="I l",
        stop="error",
        error=True,
    ),
)

# ---------------------------------------------------------------- Gemini


def candidate(*parts: Any, finish: str | None = None, **fields: Any) -> Frame:
    one: Frame = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {
        "candidates": [one | ({"finishReason": finish} if finish else {})],
        "modelVersion": "m",
        "responseId": "r1",
        **fields,
    }


def t(text: str) -> Frame:
    return {"text": text}


def f(name: str = "bash", args: Any = None, **more: Any) -> Frame:
    return {"functionCall": {"name": name, "args": {"command": "ls src"} if args is None else args, **more}}


def gemini(name: str, *frames: Frame | str, last: Frame | None = None, end: str = "", **told: Any) -> Stream:
    final = (
        candidate(t(""), finish="STOP", usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": 7})
        if last is None
        else last
    )
    return Stream(f"gemini: {name}", "gemini-generate", sse([*frames, *([final] if final else [])], end=end), **told)


GEMINI = (
    gemini(
        "a stop before the text",
        candidate(finish="STOP"),
        candidate(finish="STOP"),
        *(candidate(t(piece)) for piece in PIECES),
        text=LONG,
    ),
    gemini("a stop in each chunk", *(candidate(t(piece), finish="STOP") for piece in PIECES), text=LONG),
    gemini("a call, and a stop without it", candidate(f()), **CALLED),
    gemini(
        "a stop without content",
        candidate(f()),
        last={
            "candidates": [{"finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7},
        },
        **CALLED,
    ),
    gemini(
        "a call again without its seal",
        candidate(f(id="c1") | {"thoughtSignature": "QUJD"}),
        candidate(f(id="c1")),
        ids=("c1",),
        **CALLED,
    ),
    gemini(
        "two calls of one name",
        candidate(f(id="c1")),
        candidate(f(args={"command": "pwd"}, id="c2")),
        calls=(LS, PWD),
        stop="tool_use",
    ),
    gemini("two calls without ids", candidate(f(), f("read", {"path": "src/app.py"})), **BOTH),
    gemini(
        "one id for two calls",
        candidate(f(id="c1"), f(args={"command": "pwd"}, id="c1")),
        calls=(LS, PWD),
        stop="tool_use",
    ),
    gemini(
        "all again at the end",
        *(candidate(t(piece)) for piece in PIECES),
        candidate(t(LONG)),
        text=LONG * 2,
    ),
    gemini(
        "snapshots",
        *(candidate(t("".join(PIECES[: number + 1]))) for number in range(len(PIECES))),
        text=LONG,
        told=("cumulative-text",),
    ),
    gemini(
        "an unexpected call", last=candidate(f(), finish="UNEXPECTED_TOOL_CALL"), calls=(LS,), stop="error", error=True
    ),
    gemini(
        "a malformed call",
        last={
            "candidates": [
                {
                    "finishReason": "MALFORMED_FUNCTION_CALL",
                    "finishMessage": "Malformed function call: print(x)",
                    "index": 0,
                }
            ]
        },
        stop="error",
        error=True,
    ),
    gemini(
        "a malformed call behind text",
        candidate(t("I look.")),
        last={"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL", "index": 0}]},
        text="I look.",
        stop="error",
        error=True,
    ),
    gemini("a blocked prompt", last={"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, stop="content_filter"),
    gemini("a lone seal", candidate(t("Done.")), candidate({"text": "", "thoughtSignature": "QUJD"}), text="Done."),
    gemini(
        "thinking",
        candidate({"text": "Files first.", "thought": True}),
        candidate(t("Done.")),
        text="Done.",
        thinking="Files first.",
    ),
    gemini(
        "null args", candidate({"functionCall": {"name": "now", "args": None}}), calls=(("now", {}),), stop="tool_use"
    ),
    gemini("args as text", candidate({"functionCall": {"name": "bash", "args": LS_TEXT}}), **CALLED),
    gemini(
        "snake case",
        {
            "candidates": [
                {
                    "content": {"parts": [{"function_call": {"name": "bash", "args": {"command": "ls src"}}}]},
                    "finish_reason": "STOP",
                }
            ]
        },
        last={},
        **CALLED,
    ),
    gemini("parts of null", candidate(None), candidate(t("Done.")), text="Done."),
    gemini("parts of an empty text", candidate(""), candidate(t("Done.")), text="Done."),
    gemini("mixed parts", candidate("Do", None, t("ne"), {}, "."), text="Done."),
    gemini("null beside a call", candidate(None, f()), **CALLED),
    gemini("null content", {"candidates": [{"content": None, "index": 0}]}, candidate(t("Done.")), text="Done."),
    gemini(
        "null parts", {"candidates": [{"content": {"parts": None}, "index": 0}]}, candidate(t("Done.")), text="Done."
    ),
    gemini("a null text", candidate({"text": None}), candidate(t("Done.")), text="Done."),
    gemini(
        "an error in a list",
        '[{"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}]',
        last={},
        stop="error",
        error=True,
    ),
    gemini(
        "an error in between",
        candidate(t("I l")),
        {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}},
        last={},
        text="I l",
        stop="error",
        error=True,
    ),
    gemini("another protocol's marker", candidate(t("Done.")), end="data: [DONE]\n\n", text="Done."),
    gemini("a reason in small letters", candidate(t("Done.")), last=candidate(finish="stop"), text="Done."),
    gemini(
        "an envelope",
        {"response": candidate(f()), "traceId": "x"},
        last={"response": candidate(finish="STOP")},
        **CALLED,
    ),
    gemini("a prefix", candidate(f("default_api.bash")), told=("mangled-name",), **CALLED),
    gemini(
        "usage alone in between",
        {"candidates": [], "usageMetadata": {"promptTokenCount": 9}},
        candidate(t("Done.")),
        text="Done.",
    ),
    gemini("the limit behind a call", candidate(f()), last=candidate(finish="MAX_TOKENS"), calls=(LS,), stop="length"),
    gemini("no end", candidate(t("I l")), last={}, text="I l", stop="error", error=True),
    gemini(
        "thinking under a word",
        candidate({"text": "Files first.", "thought": "true"}),
        candidate(t("Done.")),
        text="Done.",
        thinking="Files first.",
    ),
)

# ---------------------------------------------------------------- Ollama


def line(content: Any = "", **fields: Any) -> Frame:
    done = {
        key: fields.pop(key)
        for key in ("done", "done_reason", "error", "prompt_eval_count", "eval_count")
        if key in fields
    }
    return {
        "model": "m",
        "created_at": "2026-09-01T10:00:00Z",
        "message": {"role": "assistant", "content": content, **fields},
        "done": False,
        **done,
    }


def of(args: Any = None, name: str = "bash", **more: Any) -> Frame:
    return {"function": {"name": name, "arguments": {"command": "ls src"} if args is None else args}, **more}


def ollama(name: str, *lines: Frame | str, last: Frame | None = None, end: str = "\n", **told: Any) -> Stream:
    final = line(done=True, done_reason="stop", prompt_eval_count=9, eval_count=7) if last is None else last
    body = [one if isinstance(one, str) else json.dumps(one) for one in (*lines, *([final] if final else []))]
    return Stream(f"ollama: {name}", "ollama-chat", ("\n".join(body) + end).encode(), **told)


OLLAMA = (
    ollama("a call before the end", line(tool_calls=[of()]), **CALLED),
    ollama("a call in the last line", last=line(tool_calls=[of()], done=True, done_reason="stop"), **CALLED),
    ollama("arguments as text", line(tool_calls=[of(LS_TEXT)]), told=("arguments-type",), **CALLED),
    ollama(
        "a call again with its id",
        line(tool_calls=[of(id="c1")]),
        line(tool_calls=[of(id="c1")]),
        ids=("c1",),
        **CALLED,
    ),
    ollama(
        "indices and ids",
        line(tool_calls=[{"id": "c1", "function": {"index": 0, "name": "bash", "arguments": {"command": "ls src"}}}]),
        line(tool_calls=[{"id": "c2", "function": {"index": 1, "name": "read", "arguments": {"path": "src/app.py"}}}]),
        ids=("c1", "c2"),
        **BOTH,
    ),
    ollama(
        "an error in between",
        line("I l"),
        {"error": "an error was encountered while running the model"},
        last={},
        text="I l",
        stop="error",
        error=True,
    ),
    ollama(
        "an error as an object",
        line("I l"),
        {"error": {"message": "overloaded", "code": 503}},
        last={},
        text="I l",
        stop="error",
        error=True,
    ),
    ollama(
        "the limit behind a call",
        line(tool_calls=[of()]),
        last=line(done=True, done_reason="length"),
        calls=(LS,),
        stop="length",
    ),
    ollama(
        "thinking, text, call",
        line(thinking="Files first."),
        line("I look."),
        line(tool_calls=[of()]),
        text="I look.",
        thinking="Files first.",
        **CALLED,
    ),
    ollama(
        "all in one line",
        line("I look.", thinking="Files first.", tool_calls=[of()]),
        text="I look.",
        thinking="Files first.",
        **CALLED,
    ),
    ollama(
        "an event stream",
        *(f"data: {json.dumps(line(piece))}\n" for piece in PIECES),
        last={},
        end=f"data: {json.dumps(line(done=True, done_reason='stop'))}\n\n",
        text=LONG,
        told=("envelope",),
    ),
    ollama("null content", line(None, tool_calls=[of()]), **CALLED),
    ollama("null calls", *(line(piece, tool_calls=None, thinking=None) for piece in PIECES), text=LONG),
    ollama("content of null and text", line([None, {"type": "text", "text": "Done."}]), text="Done."),
    ollama("content of an empty text", line([""]), line("Done."), text="Done."),
    ollama("content of null", line([None]), line("Done."), text="Done."),
    ollama("content of strings", line(["Do", "ne."]), text="Done."),
    ollama("no reason", line("Done."), last=line(done=True), text="Done.", told=("missing-stop-reason",)),
    ollama("the end twice", line("Done."), line(done=True, done_reason="stop"), text="Done."),
    ollama(
        "snapshots",
        *(line("".join(PIECES[: number + 1])) for number in range(len(PIECES))),
        text=LONG,
        told=("cumulative-text",),
    ),
    ollama(
        "all again in the last line",
        *(line(piece) for piece in PIECES),
        last=line(LONG, done=True, done_reason="stop"),
        text=LONG,
        told=("duplicate-final",),
    ),
    ollama(
        "null arguments",
        line(tool_calls=[{"function": {"name": "now", "arguments": None}}]),
        calls=(("now", {}),),
        stop="tool_use",
    ),
    ollama(
        "a call in the text",
        *(line(piece) for piece in ("<tool_call>\n", '{"name": "bash", "arguments": ', LS_TEXT, "}\n</tool_call>")),
        **CALLED,
    ),
    ollama("no line end", line("Done."), end="", text="Done."),
    ollama("no end", line("I l"), last={}, text="I l", stop="error", error=True),
    ollama("a null call", line(tool_calls=[None, of()]), calls=(LS,), stop="tool_use"),
    ollama(
        "the key of another endpoint",
        *({"model": "m", "created_at": "2026-09-01T10:00:00Z", "response": piece, "done": False} for piece in PIECES),
        last={"model": "m", "created_at": "2026-09-01T10:00:00Z", "response": "", "done": True, "done_reason": "stop"},
        text=LONG,
    ),
    Stream(
        "ollama: a whole answer over many lines",
        "ollama-chat",
        json.dumps(line("Done.", done=True, done_reason="stop"), indent=2).encode(),
        text="Done.",
    ),
)
ELSEWHERE = (*TEXTS, *TOOLS, *STOPS, *SAID, *CALLING, *GEMINI, *OLLAMA)

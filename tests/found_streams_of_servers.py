"""Streams reported of servers and gateways in 2026, and answers that come once more; see `found_streams.py`. The right
reading of each was written down before it was played.
"""

from __future__ import annotations

import json
from typing import Any

from found_streams import (
    BOTH,
    CALLED,
    LONG,
    LS,
    LS_TEXT,
    NOW,
    PWD,
    READ,
    READ_TEXT,
    Frame,
    Stream,
    chat,
    chunk,
    one,
    piece,
    texts,
    whole,
)
from found_streams_combined import TWO
from found_streams_elsewhere import (
    HEAD,
    added,
    args_delta,
    argued,
    block,
    call,
    candidate,
    closed,
    done,
    ended,
    event,
    f,
    gemini,
    item,
    line,
    messages,
    of,
    ollama,
    opened,
    r,
    responses,
    start,
    t,
    thought,
    used,
)
from found_streams_elsewhere import grown as grown_block
from found_streams_later import NOTHING, of_id
from found_streams_of_gateways import PWD_TEXT

HALVES = (LS_TEXT[:6], LS_TEXT[6:])
#: A good call, and one that fails.
HALF_GOOD: dict[str, Any] = {"calls": (LS,), "stop": "tool_use", "error": True}
BOTH_NOW: dict[str, Any] = {"calls": (NOW, NOW), "stop": "tool_use"}
THOUGHT = {"google": {"thought": True}}
NAMED = ((0, "bash", LS_TEXT), (1, "read", READ_TEXT), (0, "bash", "{}"), (1, "read", "{}"))
LS5_TEXT = '{"command": "ls src", "timeout": 5}'


def ends(frame: Frame, reason: str = "tool_calls") -> Frame:
    """A chunk with the reason why the answer ends."""
    return {**frame, "choices": [{**frame["choices"][0], "finish_reason": reason}]}


def at_once(*frames: Frame) -> Frame:
    """The pieces of these chunks in one."""
    return chunk(tool_calls=[frame["choices"][0]["delta"]["tool_calls"][0] for frame in frames])


def obj(id: str, name: str, values: Frame) -> Frame:
    """A call at index 0 whose arguments are an object."""
    function = {"name": name, "arguments": values}
    return chunk(tool_calls=[{"index": 0, "id": id, "type": "function", "function": function}])


WHOLE = json.dumps(
    {
        "id": "c",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": LS_TEXT}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
    }
)

CHAT = (
    chat(
        "all labels again with the last piece and the reason",
        piece(0, "c1", "bash", args=""),
        piece(args=HALVES[0]),
        ends(piece(0, "c1", "bash", args=HALVES[1])),
        finish=None,
        ids=("c1",),
        **CALLED,
    ),
    chat(
        "a prefix, then all and more",
        piece(0, "c1", "bash", args=""),
        piece(args=LS_TEXT[:-1]),
        piece(args=LS5_TEXT),
        calls=(("bash", {"command": "ls src", "timeout": 5}),),
        stop="tool_use",
    ),
    chat("two objects in one, the first cut", piece(0, "c1", "bash", args=LS_TEXT[:-1] + LS5_TEXT), **NOTHING),
    chat(
        "another id of chunk and call for each, objects",
        *of_id("a", *texts("I look.")),
        *of_id("b", obj("9f1", "bash", LS[1])),
        *of_id("c", obj("7aa", "bash", PWD[1])),
        text="I look.",
        **TWO,
    ),
    chat("a blank for the id behind", piece(0, "c1", "bash", args=""), piece(0, " ", None, args=LS_TEXT), **CALLED),
    chat(
        "an id that comes late", piece(0, None, "bash", args=HALVES[0]), piece(0, "c1", None, args=HALVES[1]), **CALLED
    ),
    chat(
        "an index that comes late",
        piece(None, "c1", "bash", args=HALVES[0]),
        piece(args=HALVES[1]),
        ids=("c1",),
        **CALLED,
    ),
    *(
        chat(
            f"one id in all pieces of two calls{words}",
            piece(0, "x", first, args=""),
            piece(0, "x", None, args=text),
            piece(1, "x", "bash", args=""),
            piece(1, "x", None, args=LS_TEXT),
            calls=(called, LS),
            stop="tool_use",
        )
        for words, first, text, called in (("", "read", READ_TEXT, READ), (" of one tool", "bash", PWD_TEXT, PWD))
    ),
    chat(
        "one id in all pieces of a call told twice",
        *(piece(at, "x", name, args=text) for at in (0, 1) for name, text in (("bash", ""), (None, LS_TEXT))),
        **CALLED,
    ),
    chat(
        "two heads, then the word null for both ids",
        at_once(piece(0, "c1", "bash", args=""), piece(1, "c2", "read", args="")),
        piece(0, "null", "", args=LS_TEXT),
        piece(1, "null", "", args=READ_TEXT),
        ids=("c1", "c2"),
        **BOTH,
    ),
    *(
        chat(
            f"an id for each piece, two calls at {words}",
            *(piece(0, f"t{at}", *labels) for at, labels in enumerate((("bash",), ()))),
            *(piece(0, f"u{at}", None, args=text) for at, text in enumerate(HALVES)),
            piece(index, "v0", "read", args=""),
            piece(index, "v1", None, args=READ_TEXT),
            **BOTH,
        )
        for words, index in (("one index", 0), ("their own", 1))
    ),
    Stream(
        "chat: a whole answer with the marker at its end", "openai-chat", f"{WHOLE}data: [DONE]\n\n".encode(), **CALLED
    ),
    chat(
        "all calls again with the reason",
        at_once(one(), one(READ_TEXT, "read", 1, "call_2")),
        ends(at_once(one(), one(READ_TEXT, "read", 1, "call_2"))),
        finish=None,
        **BOTH,
    ),
    chat(
        "arguments without an index behind a whole call of none",
        piece(None, "c1", "now", args="{}"),
        piece(None, args=LS_TEXT),
        **NOTHING,
    ),
    chat("the answer again behind its reason", one(), chunk("tool_calls"), one(index=1, id="c9"), **HALF_GOOD),
    chat("another call behind the reason", one(), chunk("tool_calls"), one(PWD_TEXT, index=1, id="c9"), **TWO),
    chat(
        "tags around what a mark beside the content calls thinking",
        *(chunk(content=words, extra_content=THOUGHT) for words in ("<thought>I ", "count.")),
        *texts("</thought>", "Done."),
        thinking="I count.",
        text="Done.",
    ),
    chat(
        "tags and an answer in one piece that a mark calls thinking",
        chunk(content="<thought>I count.</thought>Done.", extra_content=THOUGHT),
        thinking="I count.",
        text="Done.",
    ),
    whole(
        "tags around thinking, and a mark",
        {"content": "<thought>I count.</thought>Done.", "extra_content": THOUGHT},
        thinking="I count.",
        text="Done.",
    ),
    chat("a tag of thinking in a sentence", *texts("It is ", "<thought> here."), text="It is <thought> here."),
    chat(
        "the name with each piece, and an empty object behind",
        *(piece(0, id, "bash", args=text) for id, text in zip(("c1", None, None), (*HALVES, "{}"), strict=True)),
        **CALLED,
    ),
    chat(
        "id and name with each piece, and an empty object behind",
        *(piece(0, "c1", "bash", args=text) for text in (*HALVES, "{}")),
        **CALLED,
    ),
    chat(
        "the name with each piece of two calls, and empty objects behind",
        *(piece(at, None, name, args=text) for at, name, text in NAMED),
        **BOTH,
    ),
    chat("arguments of another tool behind", one(LS_TEXT + READ_TEXT), **HALF_GOOD),
)
OPEN = opened(0, type="tool_use", id="t1", name="bash", input={})
MESSAGES = (
    messages("a stop amid the arguments", OPEN, *argued(0, HALVES[0]), closed(0), *argued(0, HALVES[1]), **CALLED),
    messages(
        "a stop amid the arguments, and a text",
        OPEN,
        *argued(0, HALVES[0]),
        closed(0),
        *block(1, "I look."),
        *argued(0, HALVES[1]),
        closed(0),
        text="I look.",
        **CALLED,
    ),
    messages("a stop amid the arguments, and no more", OPEN, *argued(0, HALVES[0]), closed(0), **NOTHING),
    messages(
        "a stop amid the arguments, and another call",
        OPEN,
        *argued(0, HALVES[0]),
        closed(0),
        *used(0, id="toolu_2"),
        **HALF_GOOD,
    ),
    messages("its start behind that of a call", OPEN, start(), *argued(0, LS_TEXT), closed(0), begin="", **CALLED),
    messages("its start behind a call", *used(0), start(), begin="", **CALLED),
    messages(
        "its start between two calls", *used(0), start(), *used(1, READ_TEXT, "read", "toolu_2"), begin="", **BOTH
    ),
    messages(
        "its start behind a call, and the call again",
        *used(0),
        start(),
        *used(0, id="toolu_2"),
        begin="",
        calls=(LS,),
        stop="error",
        error=True,
    ),
    messages(
        "a later index first, and pieces in turns",
        opened(1, type="tool_use", id="t1", name="bash", input={}),
        opened(0, type="thinking", thinking=""),
        *argued(1, HALVES[0]),
        *thought(0, "Files first."),
        *argued(1, HALVES[1]),
        closed(0),
        closed(1),
        thinking="Files first.",
        **CALLED,
    ),
    messages("arguments twice in one piece", OPEN, *argued(0, LS_TEXT * 2), closed(0), **CALLED),
    messages(
        "the reason amid the arguments",
        OPEN,
        *argued(0, HALVES[0]),
        ended("tool_use"),
        *argued(0, HALVES[1]),
        closed(0),
        reason=None,
        **CALLED,
    ),
    messages(
        "counts with the last event alone",
        *block(0, "Done."),
        begin=event("message_start", message={"id": "msg_1", "model": "m", "content": []}),
        end=event("message_stop", usage={"input_tokens": 9, "output_tokens": 7}),
        text="Done.",
        usage=(9, 7, 0),
    ),
    messages(
        "arguments under the key of a text",
        OPEN,
        grown_block(0, type="input_json_delta", text=LS_TEXT),
        closed(0),
        told=("wrong-type",),
        **NOTHING,
    ),
    messages(
        "arguments of three tools in one block", OPEN, *argued(0, LS_TEXT, READ_TEXT, "{}"), closed(0), **HALF_GOOD
    ),
)


def by_call_id(frame: Frame) -> Frame:
    """An event of a call without an index, whose item has no id but that of the call."""
    told = {key: value for key, value in frame.items() if key != "output_index"}
    return told | ({"item": {k: v for k, v in frame["item"].items() if k != "id"}} if "item" in frame else {})


NAMES = ("a.txt", "b.txt", "c.txt")
EVENTS = [
    [
        by_call_id(added(call("", "read", "", f"fc_{name}"))),
        by_call_id(args_delta(json.dumps({"path": name}), id=f"fc_{name}")),
        by_call_id(done(call(json.dumps({"path": name}), "read", "", f"fc_{name}"))),
    ]
    for name in NAMES
]
THREE: dict[str, Any] = {"calls": tuple(("read", {"path": name}) for name in NAMES), "stop": "tool_use"}
THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": []}
SUMMARY = [{"type": "summary_text", "text": "Files first."}]
NOW_ITEMS = [call("{}", "now", f"f{at}", f"c{at}") for at in (0, 1, 2, 3)]
BOTH_ITEMS = ((LS_TEXT, "bash", "c1"), (READ_TEXT, "read", "c2"))
RESPONSES = (
    responses(
        "no label of the arguments, whose ends come behind all, with a name",
        *(
            frame
            for args, name, id in BOTH_ITEMS
            for frame in (
                r("output_item.added", item=call("", name, "", id)),
                r("function_call_arguments.delta", delta=args),
            )
        ),
        *(
            frame
            for args, name, id in BOTH_ITEMS
            for frame in (
                r("function_call_arguments.done", arguments=args, name=name),
                r("output_item.done", item=call(args, name, "", id)),
            )
        ),
        output=tuple(call(args, name, "", id) for args, name, id in BOTH_ITEMS),
        ids=("c1", "c2"),
        **BOTH,
    ),
    responses(
        "equal calls of other ids at one index, their ends alone",
        *(done(call(id=f"f{at}", call_id=f"c{at}")) for at in range(2)),
        ids=("c0", "c1"),
        calls=(LS, LS),
        stop="tool_use",
    ),
    responses(
        "one item id for calls at several indices, without their starts",
        args_delta("{}", 0, "f"),
        args_delta(LS_TEXT, 1, "f"),
        done(call("{}", "now", "f", "c0"), 0),
        done(call(LS_TEXT, "bash", "f", "c1"), 1),
        calls=(NOW, LS),
        stop="tool_use",
    ),
    responses(
        "other ids of the call at the end",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        output=(call(id="fc_9", call_id="call_9"),),
        ids=("call_1",),
        **CALLED,
    ),
    responses(
        "another id of the call in its end", added(call("")), args_delta(LS_TEXT), done(call(call_id="c9")), **CALLED
    ),
    responses(
        "other ids of equal calls at the end",
        *(frame for at in (0, 1) for frame in (added(NOW_ITEMS[at], at), done(NOW_ITEMS[at], at))),
        output=(*NOW_ITEMS[2:],),
        ids=("c0", "c1"),
        **BOTH_NOW,
    ),
    responses(
        "one more like the first at the end",
        added(NOW_ITEMS[0]),
        done(NOW_ITEMS[0]),
        output=(*NOW_ITEMS[:2],),
        **BOTH_NOW,
    ),
    responses("ids of calls alone", *(frame for events in EVENTS for frame in events), **THREE),
    responses("ids of calls alone, in turns", *(events[at] for at in range(3) for events in EVENTS), **THREE),
    responses(
        "thinking and a call at one index, in turns",
        added(THOUGHT),
        added(call("")),
        r("reasoning_summary_text.delta", item_id="rs_1", output_index=0, summary_index=0, delta="Files first."),
        args_delta(HALVES[0]),
        done({**THOUGHT, "summary": SUMMARY}),
        args_delta(HALVES[1]),
        done(call()),
        thinking="Files first.",
        **CALLED,
    ),
    responses("deltas that stop, and an item's end", added(call("")), args_delta(HALVES[0]), done(call()), **CALLED),
)


def grown(*pieces: Frame, **more: Any) -> Frame:
    """A chunk with pieces of a call's arguments; it goes on unless `more` says otherwise."""
    return candidate({"functionCall": {"partialArgs": list(pieces), "willContinue": True, **more}})


def at(path: str, **value: Any) -> Frame:
    return {"jsonPath": path, **value}


PWD_CALL = f(args={"command": "pwd"})
GEMINI = (
    gemini(
        "arguments behind a name, and none behind another",
        *(candidate({"functionCall": told}) for told in ({"name": "now", "args": {}}, {"args": {}})),
        *(candidate({"functionCall": told}) for told in ({"name": "bash", "args": {}}, {"args": LS[1]})),
        calls=(NOW, LS),
        stop="tool_use",
    ),
    gemini(
        "places in a list, and no word of the end",
        candidate({"functionCall": {"name": "todo", "willContinue": True}}),
        grown(at("$.items[0].text", stringValue="a")),
        grown(at("$.items[1].text", stringValue="b"), willContinue=False),
        calls=(("todo", {"items": [{"text": "a"}, {"text": "b"}]}),),
        stop="tool_use",
    ),
    gemini(
        "a place beyond the end of a list",
        candidate({"functionCall": {"name": "todo", "willContinue": True}}),
        grown(at("$.items[2].text", stringValue="a")),
        candidate({"functionCall": {}}),
        **NOTHING,
    ),
    gemini(
        "pieces, then all under the id",
        candidate({"functionCall": {"name": "bash", "id": "c1", "willContinue": True}}),
        grown(at("$.command", stringValue="ls src")),
        candidate(f(id="c1")),
        **CALLED,
    ),
    gemini("a text and a call in one part", candidate({"text": "I look.", **f()}), text="I look.", **CALLED),
    gemini(
        "an equal call behind another",
        candidate(f()),
        candidate(PWD_CALL),
        last=candidate(PWD_CALL, finish="STOP"),
        calls=(LS, PWD, PWD),
        stop="tool_use",
    ),
    gemini("the answer again behind its reason", candidate(f(), finish="STOP"), candidate(f()), **HALF_GOOD),
    gemini(
        "the answer of two calls again behind its reason",
        *(frame for _ in (0, 1) for frame in (candidate(f()), candidate(PWD_CALL, finish="STOP"))),
        calls=(LS, PWD),
        stop="tool_use",
        error=True,
    ),
    gemini(
        "the last chunk tells both calls again",
        candidate(f()),
        candidate(PWD_CALL),
        last=candidate(f(), PWD_CALL, finish="STOP"),
        told=("duplicate-final",),
        **TWO,
    ),
    gemini(
        "the last chunk tells text and call again",
        candidate(t(LONG)),
        candidate(f()),
        last=candidate(t(LONG), f(), finish="STOP"),
        text=LONG,
        **CALLED,
    ),
    gemini(
        "an id that comes late",
        {"candidates": [{"content": {"role": "user", "parts": [f()]}, "finishReason": "STOP"}]},
        **CALLED,
    ),
    gemini("two calls, each with a reason", candidate(f(), finish="STOP"), candidate(PWD_CALL, finish="STOP"), **TWO),
)
OLLAMA = (
    ollama("calls of nothing, alike", *(line(tool_calls=[of({}, "now")]) for _ in (0, 1)), **BOTH_NOW),
    ollama(
        "a call again with the second one, by its id",
        line(tool_calls=[of(id="a")]),
        line(tool_calls=[of(id="a"), of(PWD[1], id="b")]),
        **TWO,
    ),
    ollama(
        "the last line tells both calls again",
        line(tool_calls=[of()]),
        line(tool_calls=[of(PWD[1])]),
        last=line(tool_calls=[of(), of(PWD[1])], done=True, done_reason="stop"),
        told=("duplicate-final",),
        **TWO,
    ),
    ollama(
        "the last line tells text and call again",
        line(LONG),
        line(tool_calls=[of()]),
        last=line(LONG, tool_calls=[of()], done=True, done_reason="stop"),
        text=LONG,
        **CALLED,
    ),
    ollama(
        "the last line tells the text again, and arguments of no call",
        line(LONG),
        last=line(LONG, tool_calls=[{"function": {"arguments": LS[1]}}], done=True, done_reason="stop"),
        text=LONG,
        **NOTHING,
    ),
    ollama(
        "a call like the first in the last line",
        line(tool_calls=[of()]),
        last=line(tool_calls=[of()], done=True, done_reason="stop"),
        calls=(LS, LS),
        stop="tool_use",
    ),
)
#: Calls in a place of another protocol, beside a text.
ASTRAY: dict[str, Any] = {"text": "I look.", "told": ("unread-field",), **NOTHING}
ENTRIES = [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": LS_TEXT}}]
ELSEWHERE = (
    chat("calls beside the choices", {**chunk(content="I look."), "tool_calls": ENTRIES}, **ASTRAY),
    messages(
        "calls in the message's delta",
        *block(0, "I look."),
        event("message_delta", delta={"stop_reason": "tool_use", "tool_calls": ENTRIES}, usage={}),
        reason=None,
        **ASTRAY,
    ),
)
WHOLE: Frame = json.loads(whole("", {"content": "Done."}).body)
PAST: list[Frame] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "tool_calls": ENTRIES}]


def told_whole(name: str, protocol: str, body: Frame, **told: Any) -> Stream:
    return Stream(f"whole: {name}", protocol, json.dumps(body).encode(), **told)


#: Calls that ran before, or that the provider ran, and calls that nobody reads.
BESIDE = (
    told_whole("the conversation before", "openai-chat", {**WHOLE, "messages": PAST}, text="Done."),
    told_whole("the request", "openai-chat", {**WHOLE, "request": {"messages": PAST}}, text="Done."),
    whole(
        "calls that the gateway ran",
        {
            "content": "Done.",
            "provider_specific_fields": {"mcp_tool_calls": ENTRIES, "mcp_call_results": [{"result": "ok"}]},
        },
        text="Done.",
    ),
    told_whole(
        "calls beside the output",
        "openai-responses",
        {**HEAD, "status": "completed", "output": [item("I look.")], "tool_calls": ENTRIES},
        **ASTRAY,
    ),
    told_whole(
        "calls beside the candidates",
        "gemini-generate",
        {**candidate(t("I look."), finish="STOP"), "functionCalls": [f()]},
        **ASTRAY,
    ),
    told_whole(
        "calls that a client's library ran",
        "gemini-generate",
        {
            **candidate(t("Done."), finish="STOP"),
            "automaticFunctionCallingHistory": [{"role": "model", "parts": [f()]}],
        },
        text="Done.",
    ),
    gemini(
        "an end on an empty chunk at the start, and an id for each",
        *(
            {**frame, "responseId": f"x{at}"}
            for at, frame in enumerate((candidate(finish="STOP"), candidate(f()), candidate(f("read", READ[1]))))
        ),
        last={},
        **BOTH,
    ),
    gemini(
        "a server tells in each piece that a call comes",
        {**candidate(), "tool_call_generating": True},
        candidate(f()),
        **CALLED,
    ),
    chat(
        "a comment of the event stream as data, amid a call",
        piece(0, "a", "bash", args=HALVES[0]),
        "data: : WAIT\n\n",
        piece(args=HALVES[1]),
        finish="tool_calls",
        **CALLED,
    ),
    messages(
        "the input whole at the start, and other pieces",
        opened(0, type="tool_use", id="a", name="bash", input=LS[1]),
        *argued(0, PWD_TEXT),
        closed(0),
        reason="tool_use",
        **NOTHING,
    ),
    ollama(
        "an index left out",
        *(
            line(tool_calls=[{"function": {"index": at, "name": name, "arguments": values}}])
            for at, (name, values) in ((0, LS), (2, READ))
        ),
        told=("odd-index",),
        **BOTH,
    ),
    ollama(
        "no end, and the same answer again",
        *(line("I look. "), line(tool_calls=[of()])) * 2,
        text="I look. I look.",
        **HALF_GOOD,
    ),
)
SERVERS: tuple[Stream, ...] = (*CHAT, *MESSAGES, *RESPONSES, *GEMINI, *OLLAMA, *ELSEWHERE, *BESIDE)

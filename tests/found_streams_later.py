"""Streams reported until November 2026, and texts that the event which ends an answer tells once more; see
`found_streams.py`. The right reading of each was written down before it was played.
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
    PIECES,
    READ_TEXT,
    Frame,
    Stream,
    chat,
    chunk,
    one,
    piece,
    texts,
)
from found_streams_combined import HERMES, TWO
from found_streams_elsewhere import (
    BEGIN,
    HEAD,
    added,
    args_delta,
    argued,
    block,
    call,
    candidate,
    closed,
    done,
    event,
    f,
    gemini,
    line,
    message,
    messages,
    of,
    ollama,
    opened,
    r,
    responses,
    said,
    t,
    used,
)
from found_streams_of_gateways import HALVES, PWD_TEXT

CALL_PIECES = (HERMES[:20], HERMES[20:50], HERMES[50:])
REFRAIN = "Row, row. "
#: Two lines of one size that begin and end in the same way, and as many pieces of each.
LINES = (("- ", "alpha", " comes first.\n"), ("- ", "omega", " comes first.\n"))
BOTH_LINES = "".join(LINES[0] + LINES[1])
SEALED = {"thoughtSignature": "c2VhbA=="}


def stopped(index: int, **told: object) -> str:
    """The end of a block, which tells it whole."""
    return event("content_block_stop", index=index, content_block=told)


TOLD_AGAIN = (
    chat("all again beside the reason", *texts(*PIECES), chunk("stop", content=LONG), finish=None, text=LONG),
    chat(
        "a call in text again beside the reason",
        *texts(*CALL_PIECES),
        chunk("stop", content=HERMES),
        finish=None,
        **CALLED,
    ),
    chat("a line of dashes again", *texts("-" * 32), chunk("stop", content="-" * 32), finish=None, text="-" * 64),
    chat("short words again", *texts("Ha! "), chunk("stop", content="Ha! "), finish=None, text="Ha! Ha!"),
    chat(
        "another line like the first one beside the reason",
        *texts(*LINES[0]),
        chunk("stop", content="".join(LINES[1])),
        finish=None,
        text=BOTH_LINES,
    ),
    chat(
        "another call like the first one in text beside the reason",
        *texts(*CALL_PIECES),
        chunk("stop", content=HERMES.replace("ls src", "pwd   ")),
        finish=None,
        calls=(LS, ("bash", {"command": "pwd   "})),
        stop="tool_use",
    ),
    ollama(
        "another line like the first one in the last line",
        *(line(text) for text in LINES[0]),
        last=line("".join(LINES[1]), done=True, done_reason="stop"),
        text=BOTH_LINES,
    ),
    ollama(
        "a call in text between empty lines again in the last line",
        *(line(text) for text in ("\n", "\n", *CALL_PIECES, "\n", "\n")),
        last=line(HERMES, done=True, done_reason="stop"),
        **CALLED,
    ),
    gemini(
        "another line like the first one with the reason",
        *(candidate(t(text)) for text in LINES[0]),
        last=candidate(t("".join(LINES[1])), finish="STOP"),
        text=BOTH_LINES,
    ),
    gemini(
        "a call in text again with the reason and a signature",
        *(candidate(t(text)) for text in CALL_PIECES),
        last=candidate(t(HERMES) | SEALED, finish="STOP"),
        **CALLED,
    ),
    gemini(
        "a call and words again in two parts with the reason",
        *(candidate(t(text)) for text in (*CALL_PIECES, LONG)),
        last=candidate(t("Files.") | {"thought": True}, t(HERMES), t(LONG), finish="STOP"),
        text=LONG,
        thinking="Files.",
        **CALLED,
    ),
    gemini(
        "a reason in each chunk, and a long refrain",
        *(candidate(t(text), finish="STOP") for text in (LONG, LONG)),
        text=LONG * 2,
    ),
    messages(
        "a text in its end alone behind one of that size",
        *block(0, LONG),
        opened(1, type="text", text=""),
        stopped(1, type="text", text=LONG[::-1]),
        text=LONG + LONG[::-1],
        told=("final-differs",),
    ),
    messages(
        "another text of that size in its end",
        *block(0, LONG)[:-1],
        stopped(0, type="text", text=LONG[::-1]),
        text=LONG,
        told=("final-differs",),
    ),
    messages(
        "a call in text whose end tells an empty text",
        *block(0, *CALL_PIECES)[:-1],
        stopped(0, type="text", text=""),
        **CALLED,
    ),
    ollama(
        "a call in text again in the last line",
        *(line(text) for text in CALL_PIECES),
        last=line(HERMES, done=True, done_reason="stop"),
        **CALLED,
    ),
    ollama(
        "all in one line, again in the last one",
        line(f"{LONG}\n"),
        last=line(LONG, done=True, done_reason="stop"),
        text=LONG,
        told=("duplicate-final",),
    ),
    ollama(
        "the last words in the last line",
        *(line(text) for text in PIECES[:-1]),
        last=line(PIECES[-1], done=True, done_reason="stop"),
        text=LONG,
    ),
    ollama(
        "another text of that size in the last line",
        *(line(text) for text in PIECES),
        last=line(LONG[::-1], done=True, done_reason="stop"),
        text=LONG + LONG[::-1],
    ),
    gemini(
        "all again with the reason",
        *(candidate(t(text)) for text in PIECES),
        last=candidate(t(LONG), finish="STOP"),
        text=LONG,
        told=("duplicate-final",),
    ),
    gemini(
        "a call in text again with the reason",
        *(candidate(t(text)) for text in CALL_PIECES),
        last=candidate(t(HERMES), finish="STOP"),
        **CALLED,
    ),
    gemini(
        "a reason in each chunk, and a refrain",
        *(candidate(t(text), finish="STOP") for text in (REFRAIN, REFRAIN, "Home. ")),
        text=f"{REFRAIN * 2}Home.",
    ),
    messages("a text in its end", opened(0, type="text", text=""), stopped(0, type="text", text=LONG), text=LONG),
    messages(
        "texts again in their ends",
        *(
            frame
            for at, text in enumerate((LONG, REFRAIN))
            for frame in (opened(at, type="text", text=""), *said(at, text), stopped(at, type="text", text=text))
        ),
        text=LONG + REFRAIN,
        told=("duplicate-final",),
    ),
    messages(
        "thinking again in its end",
        opened(0, type="thinking", thinking=""),
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "Files."}),
        stopped(0, type="thinking", thinking="Files.", signature="c2VhbA=="),
        *block(1, "Done."),
        text="Done.",
        thinking="Files.",
        told=("duplicate-final",),
    ),
    messages(
        "thinking in its end alone",
        opened(0, type="thinking", thinking=""),
        stopped(0, type="thinking", thinking="Files.", signature="c2VhbA=="),
        *block(1, "Done."),
        text="Done.",
        thinking="Files.",
        told=("final-differs",),
    ),
    messages(
        "a text in its end alone while another one grows",
        opened(0, type="text", text=""),
        opened(1, type="text", text=""),
        *said(0, REFRAIN),
        stopped(1, type="text", text=LONG),
        closed(0),
        text=REFRAIN + LONG,
        told=("final-differs",),
    ),
    messages(
        "no input in the end of a call",
        *used(0)[:-1],
        stopped(0, type="tool_use", id="toolu_1", name="bash", input=None),
        reason="tool_use",
        **CALLED,
    ),
    messages(
        "no input of a call without any",
        *used(0, args="", name="now")[:-1],
        stopped(0, type="tool_use", id="toolu_1", name="now", input=None),
        reason="tool_use",
        calls=(("now", {}),),
        stop="tool_use",
    ),
    # the same object once more at an index without ids is a call sent again, also behind its name alone
    chat("name again, then arguments again", one(id=None), piece(name="bash", args=""), piece(args=LS_TEXT), **CALLED),
    chat("name again, then other arguments", one(id=None), piece(name="bash", args=""), piece(args=PWD_TEXT), **TWO),
)

#: A start that a gateway tells once more, at another index or with less in it: the call is made once.
STARTED_AGAIN = (
    responses(
        "a call's start again at another index",
        added(call("")),
        added(call(""), 7),
        args_delta(LS_TEXT),
        done(call()),
        output=(call(),),
        ids=("call_1",),
        told=("duplicate-start",),
        **CALLED,
    ),
    responses(
        "a call's start at another index, then at its own",
        added(call(""), 7),
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        ids=("call_1",),
        **CALLED,
    ),
    responses(
        "a call's start again without its name, the rest there",
        added(call("")),
        added(call("", name=""), 7),
        *(args_delta(text, 7) for text in HALVES),
        done(call(), 7),
        output=(call(),),
        ids=("call_1",),
        **CALLED,
    ),
    responses(
        "a call's id again for another tool",
        added(call("")),
        args_delta(LS_TEXT),
        done(call()),
        added(call("", name="read", id="fc_2"), 1),
        args_delta(READ_TEXT, 1, id="fc_2"),
        done(call(READ_TEXT, name="read", id="fc_2"), 1),
        **BOTH,
    ),
    messages(
        "a search by the provider without its type",
        opened(0, id="srvtoolu_1", name="web_search", input={}),
        *argued(0, '{"query": "tests"}'),
        closed(0),
        *block(1, "Done."),
        text="Done.",
        told=("missing-type",),
    ),
)


def of_id(id: str, *chunks: Frame) -> list[Frame]:
    """Chunks of an answer of this id."""
    return [{**chunk, "id": id} for chunk in chunks]


def of_response(id: str, *chunks: Frame) -> list[Frame]:
    return [{**chunk, "responseId": id} for chunk in chunks]


NOW = ("now", {})
ROLE = chunk(role="assistant", content="")
AGAIN = one(id="call_2")


def pieces_of_both(name: tuple[str, str] | None = None, arguments: tuple[str, str] = ("", "")) -> Frame:
    """A chunk with a piece of each of two calls, which begins them if it has their names."""
    told = [{"arguments": text} for text in arguments]
    for function, named in zip(told, name or (), strict=False):
        function["name"] = named
    return chunk(
        tool_calls=[
            {"index": at, **({"id": f"c{at}", "type": "function"} if name else {}), "function": function}
            for at, function in enumerate(told)
        ]
    )


BOTH_AT_ONCE = pieces_of_both(("bash", "read"), (LS_TEXT, READ_TEXT))
PARTIAL = {"partialArgs": [{"jsonPath": "$.command", "stringValue": "ls src"}], "willContinue": True}
CREATED = [r("created", response={**HEAD, "id": id, "status": "in_progress", "output": []}) for id in ("a", "b")]
AGAIN_CREATED = r("created", response={**HEAD, "status": "in_progress", "output": []})
ANOTHER = event("message_start", message={**BEGIN, "id": "msg_2"})
TWICE: dict[str, Any] = {"calls": (LS,), "stop": "error", "error": True}
NOTHING: dict[str, Any] = {"stop": "error", "error": True}

#: A proxy that asked its server again, and tells both answers. Where the first one made a call, the second is refused.
BEGUN_ANEW = (
    chat("a second answer with the call again", one(), *of_id("b", ROLE, AGAIN, chunk("tool_calls")), **TWICE),
    chat("a second answer with another call", one(), *of_id("b", ROLE, one(PWD_TEXT, id="call_2")), **TWICE),
    chat(
        "a second answer while the call grows",
        piece(0, "call_1", "bash", args=""),
        piece(args='{"comm'),
        *of_id("b", ROLE, piece(0, "call_2", "bash", args=""), piece(args=LS_TEXT)),
        **NOTHING,
    ),
    chat("a second answer behind its reason", one(), chunk("tool_calls"), *of_id("b", AGAIN), **TWICE),
    chat("a second answer of two calls in a chunk", one(), *of_id("b", BOTH_AT_ONCE), **TWICE),
    chat("a second answer behind text", *texts("I l"), *of_id("b", ROLE, one()), text="I l", **CALLED),
    chat("an end of another id", one(), one(READ_TEXT, "read", 1, "call_2"), *of_id("b", chunk("tool_calls")), **BOTH),
    chat(
        "an id for each moment, and the second call behind the first",
        one(),
        *of_id("b", one(READ_TEXT, "read", 1, "call_2")),
        **BOTH,
    ),
    chat(
        "an id for each moment, and a second call in pieces",
        piece(0, "call_1", "bash", args=""),
        *of_id("b", piece(args=LS_TEXT), piece(1, "call_2", "read", args=""), piece(1, args=READ_TEXT)),
        **BOTH,
    ),
    chat(
        "two ids in turns, one for each call",
        piece(0, "call_1", "bash", args=""),
        *of_id("b", piece(1, "call_2", "read", args="")),
        piece(args=LS_TEXT),
        *of_id("b", piece(1, args=READ_TEXT)),
        **BOTH,
    ),
    chat(
        "an id for each moment, and a name in each piece",
        piece(0, "call_1", "bash", args=""),
        *of_id("b", piece(0, "call_1", "bash", args=LS_TEXT[:9])),
        *of_id("c", piece(0, "call_1", "bash", args=LS_TEXT[9:])),
        **CALLED,
    ),
    chat(
        "an id for each moment, and pieces of two calls in a chunk",
        pieces_of_both(name=("bash", "read"), arguments=("", "")),
        *of_id("b", pieces_of_both(arguments=(LS_TEXT, READ_TEXT))),
        **BOTH,
    ),
    chat(
        "an id and a reason for each call",
        one(),
        chunk("tool_calls"),
        *of_id("b", one(READ_TEXT, "read", 1, "call_2")),
        **BOTH,
    ),
    chat(
        "a second answer with text, which counts as an index",
        one(),
        *of_id("b", ROLE, *texts("I look."), one(index=1, id="call_2")),
        text="I look.",
        **TWICE,
    ),
    chat(
        "a second answer of calls without ids and arguments",
        one("{}", "now", id=None),
        *of_id("b", one("{}", "now", id=None)),
        **NOTHING,
    ),
    chat("a second answer with other arguments under the id", one(), *of_id("b", ROLE, one(PWD_TEXT)), **TWICE),
    chat("a second answer of calls without an index", one(index=None), *of_id("b", one(index=None, id="c2")), **TWICE),
    chat("another id for each call", *of_id("b", one()), *of_id("c", one(READ_TEXT, "read", 1, "call_2")), **BOTH),
    gemini(
        "a second answer with the call again",
        candidate(t("I look. ")),
        candidate(f()),
        *of_response("r2", candidate(f())),
        text="I look.",
        **TWICE,
    ),
    gemini(
        "a second answer behind its reason", candidate(f(), finish="STOP"), *of_response("r2", candidate(f())), **TWICE
    ),
    gemini(
        "a second answer behind text", candidate(t("I l")), *of_response("r2", candidate(f())), text="I l", **CALLED
    ),
    gemini(
        "another id for each call",
        candidate(t("I look.")),
        *of_response("r2", candidate(f())),
        *of_response("r3", candidate(f(args={"command": "pwd"}))),
        text="I look.",
        **TWO,
    ),
    gemini(
        "an id for each moment, and arguments in pieces",
        *of_response(
            "r1", candidate(t("I look.")), candidate({"functionCall": {"name": "bash", "willContinue": True}})
        ),
        *of_response("r2", candidate({"functionCall": PARTIAL})),
        *of_response("r3", candidate({"functionCall": {}})),
        text="I look.",
        **CALLED,
    ),
    gemini(
        "another id and a reason in each chunk",
        candidate(t("I look."), finish="STOP"),
        *of_response("r2", candidate(f(), finish="STOP")),
        *of_response("r3", candidate(f(args={"command": "pwd"}), finish="STOP")),
        text="I look.",
        **TWO,
    ),
    gemini(
        "a second answer, the first of the two with an id",
        *of_response("", candidate(t("I look.")), candidate(f(), finish="STOP")),
        candidate(t("I look.")),
        candidate(f(args={"command": "pwd"})),
        text="I look." * 2,
        **TWICE,
    ),
    messages("a second answer with the call again", *used(0), ANOTHER, *used(0, id="toolu_2"), **TWICE),
    *(
        messages(
            f"a second answer with {name}",
            *used(0),
            event("message_start", message={**BEGIN, "id": id}),
            *used(0, id="toolu_2"),
            **TWICE,
        )
        for name, id in (("the same id", "msg_1"), ("no id", ""))
    ),
    messages(
        "a second answer behind nothing", ANOTHER, *used(0), reason="tool_use", told=("duplicate-start",), **CALLED
    ),
    responses(
        "a second answer with the call again",
        *(
            frame
            for at, begin in enumerate(CREATED)
            for frame in (begin, added(call("")), done(call(call_id=f"c{at}")))
        ),
        **TWICE,
    ),
    responses(
        "a second answer with the same id",
        *(
            frame
            for at in (0, 1)
            for frame in (AGAIN_CREATED, added(call("")), done(call(id=f"fc_{at}", call_id=f"c{at}")))
        ),
        **TWICE,
    ),
    responses("a second answer behind nothing", CREATED[1], added(call("")), done(call()), **CALLED),
    ollama("a second answer behind the end", line(tool_calls=[of()], done=True), line(tool_calls=[of()]), **CALLED),
)

NOW_LS: dict[str, Any] = {"calls": (NOW, LS), "stop": "tool_use"}
CALLED_TWICE: dict[str, Any] = {"calls": (LS, LS), "stop": "tool_use"}
ENCODED = json.dumps(LS_TEXT)

#: Calls without arguments, and some that are told twice, at odd places.


def twice(*frames: Frame) -> list[Frame]:
    """Chunks whose delta stands under `message` too."""
    return [{**frame, "choices": [{**each, "message": each["delta"]} for each in frame["choices"]]} for frame in frames]


SEARCHED = {"id": "m1", "type": "mcp", "mcp": {"type": "mcp_call", "name": "find", "arguments": "{}", "output": "It."}}
COUNTED = {"id": "m2", "type": "code_interpreter", "code_interpreter": {"input": "1", "outputs": [{"logs": "1"}]}}

SAID_ODDLY = (
    chat("calls that the provider has run", *texts("Done."), chunk(tool_calls=[SEARCHED, COUNTED]), text="Done."),
    chat("one that it has run beside a call", chunk(tool_calls=[SEARCHED]), one(), finish="tool_calls", **CALLED),
    chat(
        "one of the provider's without a result",
        chunk(tool_calls=[{**SEARCHED, "mcp": {**SEARCHED["mcp"], "output": ""}}]),  # type: ignore[dict-item]
        stop="error",
        error=True,
    ),
    chat("each delta as a message too", *twice(*texts(*PIECES)), told=("duplicate-final",), text=LONG),
    chat(
        "each delta of calls as a message too",
        *twice(piece(0, "call_1", "bash", args=None), piece(args=HALVES[0]), piece(args=HALVES[1])),
        *twice(piece(1, "call_2", "read", args=""), piece(1, args=READ_TEXT), chunk("tool_calls", content=None)),
        finish=None,
        **BOTH,
    ),
    messages(
        "deltas without a type, of a call without arguments",
        *used(0, name="now", args="")[:1],
        *(event("content_block_delta", index=0, delta={"partial_json": text}) for text in "{}"),
        closed(0),
        reason="tool_use",
        calls=(NOW,),
        stop="tool_use",
    ),
    messages(
        "deltas of a text with more of a call",
        *used(0, name="now", args="{}")[:-1],
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "I", "partial_json": LS_TEXT}),
        closed(0),
        reason="tool_use",
        text="I",
        **NOTHING,
    ),
    message(
        "a block of null beside a call without arguments",
        [None, {"type": "tool_use", "id": "a", "name": "now", "input": {}}],
        reason="tool_use",
        calls=(NOW,),
        stop="tool_use",
    ),
    messages(
        "no stops, one index, and a call without arguments before another",
        *used(0, name="now", args="{}")[:-1],
        *used(0, id="toolu_2")[:-1],
        reason="tool_use",
        **NOW_LS,
    ),
    messages(
        "no stops, one index, and a call that says nothing before another",
        *used(0, name="now", args="")[:1],
        *used(0, id="toolu_2")[:-1],
        reason="tool_use",
        **NOTHING,
    ),
    ollama(
        "other parameters beside the function of a call",
        line(tool_calls=[{"function": {"name": "bash", "arguments": LS[1]}, "parameters": {"command": "pwd"}}]),
        **NOTHING,
    ),
    ollama("a flat call with parameters", line(tool_calls=[{"name": "bash", "parameters": LS[1]}]), **CALLED),
    ollama(
        "a flat call with other arguments under parameters",
        line(tool_calls=[{"name": "bash", "arguments": LS[1], "parameters": {"command": "pwd"}}]),
        **NOTHING,
    ),
    chat("a call encoded twice, again", *(one(ENCODED, id=f"c{at}") for at in (0, 1)), **CALLED_TWICE),
    chat(
        "a call encoded twice, again, no index",
        *(one(ENCODED, id=f"c{at}", index=None) for at in (0, 1)),
        **CALLED_TWICE,
    ),
    chat("a call encoded twice, again, no id", *(one(ENCODED, id=None) for _ in (0, 1)), **CALLED_TWICE),
    chat("a call encoded twice, again with its id", *(one(ENCODED) for _ in (0, 1)), **CALLED),
    chat(
        "a call encoded twice, its id and name new in each piece",
        *(one(text, id=f"c{at}") for at, text in enumerate((ENCODED[:9], ENCODED[9:-1], ENCODED[-1:]))),
        **CALLED,
    ),
)

LATER: tuple[Stream, ...] = (*TOLD_AGAIN, *STARTED_AGAIN, *BEGUN_ANEW, *SAID_ODDLY)

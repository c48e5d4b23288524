"""Calls whose wire tells too little of whose arguments come, or whether they are whole: none runs twice or invented."""

from __future__ import annotations

import itertools
import json
from typing import Any

import wires
from dragoman.decoding import decode
from for_each import for_each
from test_contradictions import FINISHED, ONE, OTHER, TOOLS, chat_rows, delivered, halves

START: dict[str, Any] = {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}
END: dict[str, Any] = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}}


def tools(required: list[str]) -> list[dict[str, Any]]:
    parameters = {"type": "object", "properties": {"bell": {}, "loud": {}}, "required": required}
    return [{"name": name, "parameters": parameters} for name in ("ring", "toll")]


@for_each("status", ["queued", "in_progress"])
@for_each("of_item", [None, "in_progress", "completed"])
def test_a_call_of_a_response_that_goes_on_is_run_only_if_it_is_said_to_be_whole(status: str, of_item: str | None):
    item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "ring", "arguments": ONE}
    output = [item | ({"status": of_item} if of_item else {})]
    body = {"id": "r", "object": "response", "model": "m", "status": status, "output": output}
    reply = decode(json.dumps(body).encode(), "openai-responses", tools=TOOLS)
    assert delivered(reply) == ([json.loads(ONE)] if of_item == "completed" else [])
    assert (reply.error is None) == (of_item == "completed")


@for_each("kind", ["function_call", "custom_tool_call"])
@for_each("step", ["delta", "done"])
def test_a_call_of_one_kind_takes_no_arguments_of_the_other(kind: str, step: str):
    other = "custom_tool_call_input" if kind == "function_call" else "function_call_arguments"
    key = "delta" if step == "delta" else "input" if kind == "function_call" else "arguments"
    item = {"type": kind, "id": "fc", "call_id": "c", "name": "ring"}
    rows = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": f"response.{other}.{step}", "output_index": 0, "item_id": "fc", key: ONE},
        {"type": "response.output_item.done", "output_index": 0, "item": item | {"status": "completed"}},
    ]
    reply = decode(wires.body_of("openai-responses", [START, *rows, END]), "openai-responses", tools=TOOLS)
    assert delivered(reply) == [] and reply.error is not None


@for_each("output", [False, True])
@for_each("end", [False, True])
@for_each("pieces", [1, 2])
@for_each("texts", [[ONE], [ONE, OTHER], [ONE, ONE]])
def test_calls_whose_ids_rotate_are_told_once(texts: list[str], pieces: int, end: bool, output: bool):
    """No index, no id of a call, and another item id in each event: no more calls than began, each as it was told."""
    fresh = (f"r{number}" for number in itertools.count())
    made = [json.loads(text) for text in texts]
    rows, final = [START], []
    for text in texts:
        item = {"type": "function_call", "name": "ring", "arguments": ""}
        rows.append({"type": "response.output_item.added", "item": item | {"id": next(fresh)}})
        for piece in halves(text) if pieces == 2 else [text]:
            rows.append({"type": "response.function_call_arguments.delta", "item_id": next(fresh), "delta": piece})
        rows.append({"type": "response.function_call_arguments.done", "item_id": next(fresh), "arguments": text})
        whole = item | {"arguments": text, "status": "completed"}
        rows += [{"type": "response.output_item.done", "item": whole | {"id": next(fresh)}}] if end else []
        final.append(whole | {"id": next(fresh)})
    rows.append({"type": "response.completed", "response": END["response"] | {"output": final if output else []}})
    reply = decode(wires.body_of("openai-responses", rows), "openai-responses", tools=TOOLS)
    calls = delivered(reply)
    assert calls == made or (reply.error is not None and len(texts) > 1)
    assert len(calls) <= len(made) and all(call in made for call in calls)


@for_each("first", ["", "{}"])
@for_each("names", [("ring", "toll"), ("ring", "ring")])
def test_a_call_whose_index_another_took_is_not_run_without_what_its_tool_needs(first: str, names: tuple[str, str]):
    entries = [
        {"index": 0, "id": f"c{number}", "type": "function", "function": {"name": name, "arguments": text}}
        for number, (name, text) in enumerate(zip(names, (first, ONE), strict=True))
    ]
    body = chat_rows(*({"tool_calls": [entry]} for entry in entries)) + FINISHED + b"data: [DONE]\n\n"
    reply = decode(body, "openai-chat", tools=tools(["bell"]))
    assert ("ring", {}) not in [(call.name, call.values()) for call in reply.tool_calls]
    assert reply.error is not None or (names == ("ring", "ring") and not first)  # then one call whose id changed
    free = decode(body, "openai-chat", tools=tools([]))
    assert free.error is None and [call.name for call in free.tool_calls] == [*names]


@for_each("then", [[], [OTHER]])
@for_each("again", [{"name": "ring"}, {"name": "ring", "arguments": ""}, {"name": "ring", "arguments": " \n"}])
def test_a_name_told_again_without_an_id_begins_no_call_without_what_its_tool_needs(
    again: dict[str, str], then: list[str]
):
    """The name alone of a call that is whole: no other call, unless arguments follow, or its tool takes none."""
    entries = [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "ring", "arguments": ONE}},
        {"index": 0, "function": again}, *({"index": 0, "function": {"arguments": text}} for text in then),
    ]  # fmt: skip
    body = chat_rows(*({"tool_calls": [entry]} for entry in entries)) + FINISHED + b"data: [DONE]\n\n"
    made = [json.loads(text) for text in (ONE, *then)]
    reply = decode(body, "openai-chat", tools=tools(["bell"]))
    assert delivered(reply) == made and reply.error is None
    free = decode(body, "openai-chat", tools=tools([]))
    assert delivered(free) == (made if then else [*made, {}])


@for_each("required", [[], ["bell"]])
def test_arguments_that_name_no_call_are_not_given_to_one_of_two_placeholders(required: list[str]):
    entries: list[dict[str, Any]] = [{"function": {"name": name, "arguments": "{}"}} for name in ("ring", "toll")]
    entries.append({"function": {"arguments": ONE}})
    body = chat_rows(*({"tool_calls": [entry]} for entry in entries)) + FINISHED + b"data: [DONE]\n\n"
    reply = decode(body, "openai-chat", tools=tools(required))
    assert delivered(reply) == [] and reply.error is not None


@for_each("placeholder", ["{}", " { } ", "null"])
def test_a_named_entry_of_nothing_is_no_piece_of_a_text(placeholder: str):
    """Ollama: the text of a call is open, and an entry of the same name comes with no arguments."""
    entries = [{"name": "toll", "arguments": '{"bell": "x'}, {"name": "toll", "arguments": placeholder}]
    entries.append({"arguments": 'y"}'})
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": entry} for entry in entries]}
    line = {"model": "m", "message": message, "done": True, "done_reason": "stop"}
    reply = decode(json.dumps(line).encode() + b"\n", "ollama-chat", tools=tools([]))
    assert delivered(reply) == [] and reply.error is not None


@for_each("text", ['"function": {"name": "ri', '"function": {"arguments": {}}}], "done": false'])
def test_a_line_of_calls_that_cannot_be_read_is_told(text: str):
    """Ollama: neither its calls nor their names can be known, and text and an end come around it."""
    said = {"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": False}
    end = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    broken = '{"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": [{' + text
    body = "\n".join((json.dumps(said), broken, json.dumps(end), "")).encode()
    reply = decode(body, "ollama-chat", tools=TOOLS)
    assert reply.text == "hi" and reply.error is not None and reply.failed_calls


def turns(texts: list[str], index: dict[str, int], *, end: str, fresh: bool) -> list[list[dict[str, Any]]]:
    """Each order of the events of two calls, `ring` and `toll`, whose arguments name at most an index they share."""
    numbers = (f"r{number}" for number in itertools.count())
    rows = []
    for name, text in zip(("ring", "toll"), texts, strict=True):
        item = {"type": "function_call", "call_id": f"c_{name}", "name": name}
        pieces = [("delta", {"delta": piece}) for piece in halves(text)] if text else []
        pieces += [("done", {"arguments": text})] if end == "arguments" else []
        own = [{"type": f"response.function_call_arguments.{step}", **index, **told} for step, told in pieces]
        own = [row | ({"item_id": next(numbers)} if fresh else {}) for row in own]
        done = {"type": "response.output_item.done", **index, "item": item | {"arguments": text or "{}"}}
        begun = {"type": "response.output_item.added", **index, "item": item | {"arguments": ""}}
        rows.append([begun, *own, *([done] if end == "item" else [])])
    sizes = [len(one) for one in rows]
    orders = []
    for places in itertools.combinations(range(sum(sizes)), sizes[0]):
        left = [list(one) for one in rows]
        orders.append([START, *(left[at not in places].pop(0) for at in range(sum(sizes))), END])
    return orders


@for_each("index", [{"output_index": 0}, {}], ids=str)
@for_each("fresh", [False, True])
@for_each("end", ["", "arguments", "item"])
@for_each("texts", [[ONE, OTHER], [ONE, ""], ["", ONE], [ONE, ONE]])
def test_calls_in_turns_that_share_an_index_get_no_arguments_of_each_other(
    texts: list[str], end: str, fresh: bool, index: dict[str, int]
):
    """Each runs as it was told, or fails and that is said; told whole at its end with its id it runs."""
    made = {f"c_{name}": json.loads(text or "{}") for name, text in zip(("ring", "toll"), texts, strict=True)}
    for rows in turns(texts, index, end=end, fresh=fresh):
        body = wires.body_of("openai-responses", rows)
        reply = decode(body, "openai-responses", tools=tools([]))
        got = {call.id: json.loads(call.arguments) for call in reply.tool_calls}
        assert got.items() <= made.items() and len(reply.tool_calls) == len(got), rows
        assert got == made or (end != "item" and reply.error is not None), rows


@for_each("id", ["fc", None])
@for_each("begun", ["", "{}"])
@for_each("ended", ["", "{}"])
def test_a_name_behind_arguments_is_theirs_only_where_an_id_says_so(ended: str, begun: str, id: str | None):
    """Its end tells no arguments: those that came before it may be another call's where they have no label."""
    label = {"id": id} if id else {}
    item = {"type": "function_call", "call_id": "c", **label}
    told = {"type": "response.function_call_arguments.done", "arguments": ONE, "output_index": 0}
    told |= {"item_id": id} if id else {}
    rows = [
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"name": "", "arguments": begun}},
        told,
        {"type": "response.output_item.done", "output_index": 0, "item": item | {"name": "ring", "arguments": ended}},
    ]
    reply = decode(wires.body_of("openai-responses", [START, *rows, END]), "openai-responses", tools=TOOLS)
    is_told = id is not None or (ended == "" and begun != "{}")
    assert delivered(reply) == ([json.loads(ONE)] if is_told else []) and (reply.error is None) == is_told


@for_each("output", [False, True])
def test_calls_without_any_label_told_whole_at_their_ends_run_once(output: bool):
    """Neither an index nor an id: the name and the arguments of an end say which of the calls it ends."""
    items = [
        {"type": "function_call", "name": name, "arguments": text} for name, text in (("ring", ONE), ("toll", OTHER))
    ]
    begun = [{"type": "response.output_item.added", "item": item | {"arguments": ""}} for item in items]
    pieces = [
        {"type": "response.function_call_arguments.delta", "delta": piece}
        for pair in zip(halves(ONE), halves(OTHER), strict=True)
        for piece in pair
    ]
    ends = [{"type": "response.output_item.done", "item": item} for item in items]
    final = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": items * output}}
    for told in itertools.permutations(ends):
        for first in ([], begun, [*begun, *pieces]):
            body = wires.body_of("openai-responses", [START, *first, *told, final])
            reply = decode(body, "openai-responses", tools=tools([]))
            assert sorted(call.name for call in reply.tool_calls) == ["ring", "toll"], told
            assert all(
                json.loads(call.arguments) == json.loads(ONE if call.name == "ring" else OTHER)
                for call in reply.tool_calls
            )


@for_each("output", [False, True])
@for_each("is_object", [False, True])
@for_each("id", ["", "call_id", "id"])
@for_each("texts", [[ONE, OTHER], [ONE, "{}"], [ONE, ONE]])
def test_calls_whose_deltas_have_no_label_run_once(texts: list[str], id: str, is_object: bool, output: bool):
    """Only an end names a call, at most, and tells its arguments as a text or as an object: it is one that began."""
    rows, items = [START], []
    ends: list[dict[str, Any]] = []
    for name, text in zip(("ring", "toll"), texts, strict=True):
        rows.append({"type": "response.function_call_arguments.delta", "delta": text})
        told = json.loads(text) if is_object else text
        items.append({"type": "function_call", "name": name, "arguments": told} | ({id: f"c_{name}"} if id else {}))
        ends.append({"type": "response.function_call_arguments.done", "name": name, "arguments": told})
        ends.append({"type": "response.output_item.done", "item": items[-1]})
    last = {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": items * output}}
    for order in itertools.permutations(range(4)):
        if order.index(0) > order.index(1) or order.index(2) > order.index(3):
            continue  # an item ends behind its arguments
        body = wires.body_of("openai-responses", [*rows, *(ends[place] for place in order), last])
        reply = decode(body, "openai-responses", tools=tools([]))
        got = sorted(
            (call.name, json.loads(call.arguments)["loud"] if call.values() else 0) for call in reply.tool_calls
        )
        made = sorted(
            (name, json.loads(text).get("loud", 0)) for name, text in zip(("ring", "toll"), texts, strict=True)
        )
        assert got == made or (reply.error is not None and len(set(got)) == len(got) and set(got) <= set(made)), order


def test_arguments_under_another_id_behind_an_end_are_no_more_of_its_call():
    """A server numbers both calls 0: what comes behind the end of one, under an id of its own, is the other's."""

    def piece_of(step: str, id: str, **told: str) -> dict[str, Any]:
        return {"type": f"response.function_call_arguments.{step}", "output_index": 0, "item_id": id, **told}

    rows = [
        piece_of("delta", "a", delta="{}"), piece_of("done", "a", arguments="{}", name="toll"),
        piece_of("delta", "b", delta=ONE), piece_of("done", "b", arguments=ONE, name="ring"),
    ]  # fmt: skip
    reply = decode(wires.body_of("openai-responses", [START, *rows, END]), "openai-responses", tools=tools([]))
    calls = [(call.name, call.values()) for call in reply.tool_calls]
    assert ("toll", json.loads(ONE)) not in calls and (len(calls) == 2 or reply.error is not None)


@for_each("index", [{}, {"index": 0}])
@for_each("pieces", [2, 3])
@for_each("last", ["", " \n"])
def test_nothing_under_one_more_id_of_a_call_whose_ids_change_begins_no_call(
    index: dict[str, int], pieces: int, last: str
):
    texts = [*(ONE[start : start + 3] for start in range(0, 3 * (pieces - 1), 3)), ONE[3 * (pieces - 1) :], last]
    entries = [
        {**index, "id": f"c{place}", "type": "function", "function": {"name": "ring", "arguments": text}}
        for place, text in enumerate(texts)
    ]
    body = chat_rows(*({"tool_calls": [entry]} for entry in entries)) + FINISHED + b"data: [DONE]\n\n"
    assert delivered(decode(body, "openai-chat", tools=tools([]))) == [json.loads(ONE)]


def piece(index: int | None, id: str | None, name: str, arguments: str) -> dict[str, Any]:
    labels = {"index": index, "id": id}
    function = {"name": name, "arguments": arguments}
    return {key: value for key, value in labels.items() if value is not None} | {
        "function": {key: value for key, value in function.items() if value or key == "arguments"}
    }


TWO = '{"bell": 2}'
#: Deltas of calls whose labels name several of them, in their order; those that may be meant. A delta is a list.
SEVERAL: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "one index, in turns": (
        [piece(0, "a", "ring", ONE[:4]), piece(0, "b", "toll", TWO[:4]), piece(0, None, "", ONE[4:])],
        [],
    ),
    "one index, in turns, new ids": (
        [
            piece(0, "a", "ring", "{"),
            piece(0, "b", "toll", "{"),
            piece(0, "c", "", ONE[1:]),
            piece(0, "d", "", TWO[1:]),
        ],
        [],
    ),
    "one index, names behind the arguments": (
        [piece(0, "a", "", ONE), piece(0, "b", "", TWO), piece(0, None, "ring", ""), piece(0, None, "toll", "")],
        [],
    ),
    "one index, each name behind its arguments": (
        [piece(0, "a", "", ONE), piece(0, "a", "ring", ""), piece(0, "b", "", TWO), piece(0, "b", "toll", "")],
        [],
    ),
    "one index in one delta, names later": (
        [[piece(0, "a", "", ONE), piece(0, "b", "", TWO)], [piece(0, None, "ring", ""), piece(0, None, "toll", "")]],
        [],
    ),
    "names in pieces, each under an id": ([piece(0, "a", "ri", ONE), piece(0, "b", "ng", "{}")], []),
    "names in pieces, at two indices": ([piece(0, "a", "to", ONE), piece(1, "b", "ll", TWO)], []),
    "no more than that, under another id": (
        [piece(0, "a", "ring", ONE[:4]), piece(0, "b", "ring", ONE[4:]), piece(0, "c", "ring", "{}")],
        [("ring", ONE)],
    ),
    "the name behind the arguments, with nothing": ([piece(None, None, "", ONE), piece(None, None, "ring", "{}")], []),
    "again under its id, the first as a string": (
        [piece(0, "a", "ring", json.dumps(ONE)), piece(0, "a", "ring", ONE)],
        [("ring", ONE)],
    ),
}


@for_each("name", SEVERAL)
def test_arguments_go_to_no_call_where_labels_name_several(name: str):
    deltas, meant = SEVERAL[name]
    rows = chat_rows(*({"tool_calls": one if isinstance(one, list) else [one]} for one in deltas))
    reply = decode(rows + FINISHED, "openai-chat", tools=tools(["bell"]))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == meant
    assert meant or reply.error is not None

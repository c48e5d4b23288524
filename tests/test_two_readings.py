"""Answers that can be read in two ways, or of which nothing was read: they are refused with what was seen, or the
reading that clients of the specification have is the only one."""

from __future__ import annotations

import copy
import json
from typing import Any

from dragoman import decode
from dragoman.events import Reply
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName
from for_each import for_each
from test_answers_nobody_reads import ANSWERS, WORDS, path_of
from two_calls import made, wire_body
from wire_bases import value_at

TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {"bell": {"type": "string"}}, "required": required}}
    for name, required in (("ring", ["bell"]), ("toll", ["bell"]), ("now", []))
]
FORMS = [False, True]  # whether it is streamed


def told(protocol: ProtocolName, frames: list[Any], *, is_stream: bool = True, **options: Any) -> Reply:
    lines = [json.dumps(frame) for frame in frames]
    wire = protocol if is_stream else f"{protocol}, whole"
    return decode(wire_body(wire, lines), protocol, tools=TOOLS, **options)


def candidate(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **fields}


def gemini_call(name: str = "ring") -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"bell": "a"}}}


def chat_call(name: str = "ring", **fields: Any) -> dict[str, Any]:
    return {"index": 0, "id": f"c_{name}", "type": "function",
            "function": {"name": name, "arguments": '{"bell":"a"}'}, **fields}  # fmt: skip


def chat(kind: str, *messages: Any, **fields: Any) -> dict[str, Any]:
    return {"choices": [{kind: message, "finish_reason": "tool_calls", **fields} for message in messages]}


# ---------------------------------------------------------------- objects in place of text


@for_each("is_stream", FORMS)
@for_each(
    "text",
    [gemini_call(), [gemini_call()], {"name": "ring", "args": {"bell": "a"}}, {"bell": "a"}, {"partialArgs": [
        {"jsonPath": "$.bell", "stringValue": "a"}]}],
)  # fmt: skip
@for_each("beside", [{}, {"functionCall": {"name": "now"}}])
def test_an_object_in_place_of_a_text_of_gemini_is_an_error(text: Any, beside: Any, is_stream: bool):
    reply = told("gemini-generate", [{"candidates": [candidate({"text": text, **beside})]}], is_stream=is_stream)
    assert reply.error is not None and not reply.tool_calls


BLOCKS: dict[str, Any] = {
    "anthropic-messages": lambda text: {
        "type": "message", "role": "assistant", "stop_reason": "end_turn", "content": [{"type": "text", "text": text}]},
    "openai-responses": lambda text: {
        "object": "response", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]},
}  # fmt: skip


@for_each("protocol", BLOCKS)
@for_each("text", [{"name": "ring", "arguments": {"bell": "a"}}, {"a": 1}, [{"type": "tool_use"}]])
def test_an_object_in_place_of_a_text_is_an_error(protocol: ProtocolName, text: Any):
    reply = told(protocol, [BLOCKS[protocol](text)], is_stream=False)
    assert reply.error is not None and not reply.tool_calls


def test_a_delta_of_text_that_is_an_object_is_an_error():
    frames = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": {"a": WORDS}}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    assert "delta.text" in str(told("anthropic-messages", frames).error)


def test_a_part_of_responses_without_a_type_is_told_and_does_not_pass():
    answer = copy.deepcopy(ANSWERS["openai-responses"])
    answer["usage"] |= {"input_tokens_details": {}, "output_tokens_details": {}}
    answer["output"][0]["id"] = "m1"
    assert PROTOCOLS["openai-responses"].check_whole(json.dumps(answer).encode()) is not None
    del answer["output"][0]["content"][0]["type"]
    reply = told("openai-responses", [answer], is_stream=False)
    assert (reply.text, [one.code for one in reply.deviations]) == (WORDS, ["missing-type"])
    assert PROTOCOLS["openai-responses"].check_whole(json.dumps(answer).encode()) is None


# ---------------------------------------------------------------- several answers


@for_each("is_stream", FORMS)
@for_each("indices", [(None, None), (None, 1), (0, 1)])
def test_calls_of_a_second_answer_are_not_delivered(indices: tuple[int | None, int | None], is_stream: bool):
    both = [{} if index is None else {"index": index} for index in indices]
    pairs = list(zip(both, ("ring", "toll"), strict=True))
    gemini = {"candidates": [candidate(gemini_call(name), **index) for index, name in pairs]}
    kind = "delta" if is_stream else "message"
    spoken = {
        "choices": [chat(kind, {"tool_calls": [chat_call(name)]}, **index)["choices"][0] for index, name in pairs]
    }
    for protocol, frame in (("gemini-generate", gemini), ("openai-chat", spoken)):
        reply = told(protocol, [frame], is_stream=is_stream)  # type: ignore[arg-type]
        assert (made(reply), reply.error) == ([("ring", {"bell": "a"})], None)
        assert "ignored-call" in [one.code for one in reply.deviations]


@for_each("has_second", [False, True])
@for_each("is_old", [False, True])
def test_a_piece_of_a_call_in_another_choice_fails_the_call_unless_one_began_there(is_old: bool, has_second: bool):
    def piece(name: str | None, arguments: str, at: int) -> dict[str, Any]:
        said = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
        call = {"index": 0, "function": said, **({"id": f"c{at}", "type": "function"} if name else {})}
        return {"choices": [{"index": at, "delta": {"function_call": said} if is_old else {"tool_calls": [call]}}]}

    opening = [piece("ring", "", 1)] if has_second else []
    pieces = [piece(None, text, at) for text, at in (('{"bell":"a', 0), ("bc", 1), ('d"}', 0))]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    reply = told("openai-chat", [piece("ring", "", 0), *opening, *pieces, end])
    assert made(reply) == ([("ring", {"bell": "ad"})] if has_second else [])
    assert (reply.error is None) is has_second
    assert "ignored-call" in [one.code for one in reply.deviations]


@for_each("has_second", [False, True])
@for_each("joined", [False, True])
def test_a_piece_of_a_call_in_another_candidate_fails_the_call_unless_one_began_there(joined: bool, has_second: bool):
    def piece(at: int, **call: Any) -> dict[str, Any]:
        own = {"index": at, "content": {"role": "model", "parts": [{"functionCall": call}]}}
        other = {"index": 0, "content": {"role": "model", "parts": []}}
        return {"candidates": [other, own] if joined and at else [own]}

    def value(at: int, key: str, text: str) -> dict[str, Any]:
        return piece(at, partialArgs=[{"jsonPath": f"$.{key}", "stringValue": text}], willContinue=True)

    opening = [piece(1, name="ring", willContinue=True)] if has_second else []
    pieces = [value(0, "bell", "a"), value(1, "loud", "b"), piece(0)]
    end = {"candidates": [{"index": 0, "content": {"parts": []}, "finishReason": "STOP"}]}
    reply = told("gemini-generate", [piece(0, name="ring", willContinue=True), *opening, *pieces, end])
    assert made(reply) == ([("ring", {"bell": "a"})] if has_second else [])
    assert (reply.error is None) is has_second
    assert "ignored-call" in [one.code for one in reply.deviations]


def test_who_asks_gemini_for_two_answers_gets_both():
    body = {"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {"candidateCount": 2}}
    gemini, path = PROTOCOLS["gemini-generate"], "/v1beta/models/m:generateContent"
    seen = gemini.peek(json.dumps(body).encode(), path=path)
    parsed = gemini.parse_request(json.dumps(body).encode(), path=path)
    reply = told("gemini-generate", [{"candidates": [candidate(gemini_call()), candidate(gemini_call("toll"))]}],
                 request=body)  # fmt: skip
    assert seen is not None and reply.deviations == ()
    assert seen.expectation.deviations == {("extra-choice", ""), ("ignored-call", "")}
    # what is read gives one answer, so one is asked for
    assert b"candidateCount" not in gemini.render_request(parsed.request).http.body
    assert [one.where for one in parsed.deviations] == ["generationConfig.candidateCount"]


# ---------------------------------------------------------------- names


@for_each("kind", ["delta", "message"])
@for_each("is_inside", FORMS)
@for_each(("name", "is_another"), [("ring", False), ("toll", True), ("bells/ring", False)])
def test_a_second_name_of_a_call_is_no_other_tool(kind: str, is_inside: bool, name: str, is_another: bool):
    call = chat_call()
    (call["function"] if is_inside else call)["tool_name"] = name
    reply = told("openai-chat", [chat(kind, {"tool_calls": [call]})], is_stream=kind == "delta")
    assert (reply.error is not None) is is_another is (made(reply) != [("ring", {"bell": "a"})])


BLANKS = ["toll ", "\u00a0toll", "toll\u2028", "\u3000toll\n"]


@for_each("name", BLANKS)
def test_white_space_around_a_name_makes_no_second_call(name: str):
    pieces = [{**chat_call(name), "function": {"name": name, "arguments": ""}},
              {"index": 0, "function": {"name": "toll", "arguments": '{"bell":"a"}'}}]  # fmt: skip
    lines = [{"model": "m", "created_at": "", "done": False, "message": {"role": "assistant", "content": "",
              "tool_calls": [{"function": {"name": one, "arguments": arguments}}]}}
             for one, arguments in ((name, {}), ("toll", {"bell": "a"}))]  # fmt: skip
    end = {"model": "m", "created_at": "", "done": True, "done_reason": "stop"}
    for reply in (
        told("openai-chat", [chat("delta", {"tool_calls": [piece]}, finish_reason=None) for piece in pieces] + [chat(
            "delta", {})]),
        told("ollama-chat", [*lines, end]),
    ):  # fmt: skip
        assert (made(reply), reply.error) == ([("toll", {"bell": "a"})], None)
        assert "mangled-name" in [one.code for one in reply.deviations]


def test_a_name_that_grows_is_one():
    pieces = [{**chat_call(), "function": {"name": name, "arguments": ""}} for name in ("tol", "toll")]
    frames = [chat("delta", {"tool_calls": [piece]}, finish_reason=None) for piece in pieces]
    last = chat("delta", {"tool_calls": [{"index": 0, "function": {"arguments": '{"bell":"a"}'}}]})
    assert made(told("openai-chat", [*frames, last])) == [("toll", {"bell": "a"})]


@for_each(("id", "is_lost"), [("", True), ("c_2", False)])
@for_each("tools", [["now", "nowhere"], []])
def test_a_name_that_grows_from_one_tool_to_another_makes_no_call_of_the_first(
    id: str, is_lost: bool, tools: list[str]
):
    pieces = [{"index": 0, "id": "c_1", "function": {"name": "now", "arguments": ""}},
              {"index": 0, "id": id, "function": {"name": "nowhere", "arguments": '{"bell":"a"}'}}]  # fmt: skip
    frames = [chat("delta", {"tool_calls": [piece]}, finish_reason=None) for piece in pieces]
    body = wire_body("openai-chat", [json.dumps(frame) for frame in [*frames, chat("delta", {})]])
    reply = decode(body, "openai-chat", tools=[{"name": name, "parameters": {"type": "object"}} for name in tools])
    assert [call.name for call in reply.tool_calls] == ["nowhere"] if is_lost else ["now", "nowhere"]
    assert (reply.error is not None) is is_lost


# ---------------------------------------------------------------- nothing was read


def hidden(protocol: str) -> list[tuple[str, Any]]:
    """Answers whose words stand in an object that a number or another word names."""
    path = path_of(ANSWERS[protocol])
    assert path is not None
    found = []
    for deep in range(1, len(path) + 1):
        for key in ("0", "settings"):
            body = copy.deepcopy(ANSWERS[protocol])
            holder = value_at(body, path[: deep - 1])
            own = holder[path[deep - 1]]
            if isinstance(own, list):
                holder[path[deep - 1]] = {key: own[0]}
            elif isinstance(own, dict):
                holder[path[deep - 1]] = {key: own}
            else:
                holder[path[deep - 1]] = ""
                holder[key] = {"text": own}
            found.append((f"{path[:deep]} {key}", body))
    return found


@for_each("protocol", ANSWERS)
def test_an_answer_of_which_nothing_was_read_is_an_error(protocol: ProtocolName):
    for how, body in hidden(protocol):
        reply = decode(json.dumps(body).encode(), protocol)
        seen = reply.text + "".join(str(part) for part in reply.parts)
        assert WORDS in seen or reply.error is not None or reply.parts, how


EMPTY_PARTS: list[Any] = [[], [""], [None], [{"type": "text", "text": ""}], [{"type": "text", "text": None}] * 2,
    [{"type": "thinking", "thinking": [{"type": "text", "text": ""}]}]]  # fmt: skip


@for_each("is_stream", FORMS)
@for_each("content", EMPTY_PARTS)
def test_parts_without_words_are_an_empty_answer(content: Any, is_stream: bool):
    message = {"role": "assistant", "content": content}
    frames = [chat("delta" if is_stream else "message", message, index=0, finish_reason="stop")]
    reply = told("openai-chat", frames, is_stream=is_stream)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


@for_each("is_stream", FORMS)
@for_each("content", [[{"type": "tool_use"}], [{"a": WORDS}], [1], [False], [{"type": "text", "a": 1}]])
def test_parts_that_may_say_something_are_no_empty_answer(content: Any, is_stream: bool):
    frames = [chat("delta" if is_stream else "message", {"content": content}, index=0, finish_reason="stop")]
    reply = told("openai-chat", frames, is_stream=is_stream)
    assert reply.error is not None or reply.parts


@for_each("protocol", ANSWERS)
def test_an_empty_answer_with_settings_ends_well(protocol: ProtocolName):
    body = json.loads(json.dumps(ANSWERS[protocol]).replace(json.dumps(WORDS), '""'))
    body |= {"provider": "A House of Models", "service_tier": "default", "metadata": {"text": "of the user's"},
             "instructions": "Be brief.", "citations": [{"text": "A page."}], "safety": {"message": "all is well"},
             "tools": [{"name": "ring", "description": "Rings a bell.", "content": "a text"}],
             "executed_tools": [{"output": "A page."}], "web_search": [{"content": "A page."}],
             "groundingAttributions": [{"content": {"parts": [{"text": "A page."}]}}]}  # fmt: skip
    reply = decode(json.dumps(body).encode(), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


def test_details_of_thinking_that_come_again_are_said_once():
    said = [{"type": "reasoning.text", "text": "The bell is in the tower.", "index": 0}]
    halves = [[{**said[0], "text": text}] for text in ("The bell is ", "in the tower.")]
    for first in ([{"reasoning_details": said, "reasoning": said[0]["text"]}],
                  [{"reasoning_details": half} for half in halves]):  # fmt: skip
        for between in ([], [{"content": "It rings."}]):
            deltas = [*first, *between, {"reasoning_details": said}]
            frames = [chat("delta", delta, finish_reason=None) for delta in deltas]
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
            reply = told("openai-chat", [*frames, end])
            assert reply.thinking == said[0]["text"]
            assert "duplicate-final" in [one.code for one in reply.deviations]


def test_details_of_thinking_under_another_index_are_others():
    said = "The bell is in the tower."
    details = [[{"type": "reasoning.text", "text": said, "index": index}] for index in (0, 1)]
    deltas = [{"reasoning_details": details[0]}, {"content": "It rings."}, {"reasoning_details": details[1]}]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply = told("openai-chat", [*(chat("delta", delta, finish_reason=None) for delta in deltas), end])
    assert reply.thinking == said * 2

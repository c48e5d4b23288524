"""Histories made fit: the acceptance list of hand-over (13–26), each by its number, and every provider's answers to
every other one. The official SDKs' own types judge what is sent."""

from __future__ import annotations

import importlib
import itertools
import re
from functools import cache
from typing import Any

import msgspec
import ollama
import pytest
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter

from cases import counter
from dragoman import _json
from dragoman.events import (
    Deviation,
    Failure,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    fold,
    unfold,
)
from dragoman.history import SignatureVault, fit
from dragoman.protocol import Dialect, TurnRules
from dragoman.protocols import PROTOCOLS
from dragoman.types import (
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Part,
    ProtocolName,
    Raw,
    Request,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from for_each import for_each

NAMES: tuple[ProtocolName, ...] = tuple(PROTOCOLS)
MISTRAL = Dialect(id_form="alphanumeric-9")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
LOOK = Tool("look", "Looks.", _json.raw({"type": "object", "properties": {"at": {"type": "string"}}}))
ASK = Message("user", (Text("Look."),))
MORE = Message("user", (Text("And now?"),))


def said(*parts: Part, origin: Origin | None = None, is_cut: bool = False, native: Native | None = None) -> Message:
    return Message("assistant", parts, origin=origin, is_cut=is_cut, native=native)


def looked(id: str, at: str = "sky", signature: str | None = None) -> ToolCall:
    return ToolCall(id, "look", f'{{"at":"{at}"}}', signature=signature)


def seen(id: str, *parts: Text | Media, name: str = "look") -> ToolResult:
    return ToolResult(id, name, parts or (Text("blue"),))


def results(*found: ToolResult) -> Message:
    return Message("tool", found)


def request(*messages: Message, model: str = "model-1") -> Request:
    return Request(model, messages, (LOOK,))


def holds_media(protocol: str) -> bool:
    return PROTOCOLS[protocol].takes_result_media


def fitted(
    *messages: Message, protocol: ProtocolName = "openai-chat", target: str | None = "here/model-1", **options: Any
) -> tuple[tuple[Message, ...], tuple[Deviation, ...]]:
    given = request(*messages)
    options["takes_result_media"] = holds_media(protocol)
    found, deviations = fit(given, protocol=protocol, target=target, **options)
    assert given.messages == messages
    again, further = fit(found, protocol=protocol, target=target, **options)
    assert (again, further) == (found, ()), "what is fit stays as it is"
    return found.messages, deviations


def codes(deviations: tuple[Deviation, ...]) -> list[tuple[str, str]]:
    return [(deviation.code, deviation.where) for deviation in deviations]


# ---------------------------------------------------------------- what the SDKs' types say

#: Made where one is first asked for, in one process of four.
adapter = cache(TypeAdapter)


def exhaust(value: Any) -> None:
    """Iterables are checked only while they are read."""
    if isinstance(value, dict):
        for inner in value.values():
            exhaust(inner)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for inner in value:
            exhaust(inner)


def sent(found: Request, protocol: ProtocolName, dialect: Dialect | None = None) -> dict[str, Any]:
    """The body for a request, accepted by the types of the target's official SDK."""
    rendered = PROTOCOLS[protocol].render_request(found, **({"dialect": dialect} if dialect is not None else {}))
    body = _json.decode(rendered.http.body)
    assert isinstance(body, dict)
    match protocol:
        case "anthropic-messages":
            exhaust(adapter(MessageCreateParamsStreaming).validate_python(body))
            check_anthropic(body)
        case "openai-chat":
            exhaust(adapter(CompletionCreateParamsStreaming).validate_python(body))
            check_chat(body)
        case "openai-responses":
            # The type asks for the status of a sent item with an id; the service does not, and clients send none.
            items = [{"status": "completed", **item} if "id" in item else item for item in body["input"]]
            exhaust(adapter(ResponseCreateParamsStreaming).validate_python(body | {"input": items}))
            check_responses(body)
        case "gemini-generate":
            for content in body["contents"]:
                gemini.Content.model_validate(content)
            gemini.Content.model_validate(body.get("systemInstruction", {}))
            check_gemini(body)
        case "ollama-chat":
            ollama._types.ChatRequest.model_validate(body)
            check_ollama(body)
    return body


def check_anthropic(body: dict[str, Any]) -> None:
    ids: list[str] = []
    waiting: list[str] = []
    for message in body["messages"]:
        blocks = message["content"] if isinstance(message["content"], list) else []
        assert message["content"], "no empty message"
        kinds = [block["type"] for block in blocks]
        found = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert sorted(found) == sorted(waiting), "the message behind calls holds all their results"
        assert kinds[: len(found)] == ["tool_result"] * len(found), "results stand first"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        ids += waiting
    assert waiting == []
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id) for id in ids)


def check_chat(body: dict[str, Any]) -> None:
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert message["content"]
            continue
        assert waiting == [], "results stand right behind their calls"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert all(0 < len(id) <= 40 for id in waiting)
    assert waiting == []


def check_responses(body: dict[str, Any]) -> None:
    calls: list[str] = []
    found: list[str] = []
    for item in body["input"]:
        if item["type"] == "function_call":
            calls.append(item["call_id"])
        elif item["type"] == "function_call_output":
            assert item["call_id"] in calls
            found.append(item["call_id"])
    assert sorted(calls) == sorted(found)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id) for id in calls)


def check_gemini(body: dict[str, Any]) -> None:
    waiting: list[str] = []
    for content in body["contents"]:
        assert content["parts"]
        found = [part["functionResponse"]["id"] for part in content["parts"] if "functionResponse" in part]
        assert sorted(found) == sorted(waiting), "the content behind calls answers them all"
        calls = [part for part in content["parts"] if "functionCall" in part]
        waiting = [part["functionCall"]["id"] for part in calls]
        assert all("thoughtSignature" in part for part in calls[:1]), "the first call of a step is signed"
    assert waiting == []


def check_ollama(body: dict[str, Any]) -> None:
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        assert message["content"] or message.get("tool_calls") or message.get("images")
    assert waiting == []


# ---------------------------------------------------------------- the acceptance list


@for_each("protocol", NAMES)
def test_healthy_histories_are_not_touched(protocol: ProtocolName):
    origin = Origin(protocol, "here/model-1")
    given = request(
        Message("system", (Text("Be brief."),)),
        ASK,
        said(Thinking("Hm.", "seal"), Text("I look."), looked("call_1"), looked("call_2"), origin=origin),
        results(seen("call_1")),
        results(seen("call_2", Text("red"), Media("image", "image/png", PIXEL))),
        said(Text("Blue."), origin=origin),
        MORE,
    )
    found, deviations = fit(given, protocol=protocol, target="here/model-1")
    assert found is given
    assert deviations == ()


@for_each("parts", [(), (Text(""),), (Text(" \n"),)], ids=repr)
def test_13_an_aborted_empty_answer_is_left_out(parts: tuple[Part, ...]):
    messages, deviations = fitted(ASK, said(*parts), MORE)
    assert messages == (ASK, MORE)
    assert codes(deviations) == [("dropped", "messages[1]")]


def test_14_an_aborted_reply_says_that_it_is_cut():
    begun = [Start(), TextStart(0), TextDelta(0, "It")]
    assert fold(begun).message.is_cut
    assert fold([*begun, TextEnd(0), Failure("connection", "reset")]).message.is_cut
    assert not fold([*begun, TextEnd(0), Finish("stop")]).message.is_cut


def test_15_a_call_without_a_result_gets_one_that_says_so():
    for rest in ((MORE,), (), (said(Text("Never mind.")), MORE)):
        messages, deviations = fitted(ASK, said(looked("call_1"), looked("call_2")), results(seen("call_2")), *rest)
        made = messages[2].parts[0]
        assert isinstance(made, ToolResult)
        assert (made.call_id, made.name, made.is_error) == ("call_1", "look", True)
        assert messages[2].parts[1] == seen("call_2")
        assert messages[3:] == rest
        assert codes(deviations) == [("changed", "messages[1]")]


def test_16_a_turn_that_broke_off_is_not_replayed_nor_are_its_results():
    cut = said(Text("I lo"), looked("call_1"), is_cut=True)
    messages, deviations = fitted(ASK, cut, results(seen("call_1")), MORE)
    assert messages == (ASK, MORE)
    assert codes(deviations) == [("dropped", "messages[1]"), ("dropped", "messages[2].parts[0]")]


def test_17_a_result_without_its_call_is_left_out():
    messages, deviations = fitted(
        results(seen("call_0")), ASK, said(looked("call_1")), results(seen("call_1"), seen("call_9")), MORE
    )
    assert messages == (ASK, said(looked("call_1")), results(seen("call_1")), MORE)
    assert codes(deviations) == [("dropped", "messages[0].parts[0]"), ("dropped", "messages[3].parts[1]")]


def test_17_a_second_result_of_one_call_is_left_out():
    messages, _ = fitted(ASK, said(looked("call_1")), results(seen("call_1")), results(seen("call_1", Text("red"))))
    assert messages == (ASK, said(looked("call_1")), results(seen("call_1")))


@for_each("protocol", NAMES)
@for_each("parts", [(), (Text(""),), (Text(" "),)], ids=repr)
def test_18_empty_results_are_accepted(protocol: ProtocolName, parts: tuple[Text, ...]):
    given = request(ASK, said(looked("call_1")), results(ToolResult("call_1", "look", parts)))
    found, deviations = fit(given, protocol=protocol)
    assert (found, deviations) == (given, ())
    body = _json.decode(PROTOCOLS[protocol].render_request(found).http.body)
    assert isinstance(body, dict)


@for_each("protocol", NAMES)
def test_19_messages_between_a_call_and_its_result_follow_it(protocol: ProtocolName):
    rule = Message("system", (Text("Be brief."),))
    calls = said(looked("call_1"), looked("call_2"))
    given = (ASK, calls, rule, results(seen("call_1")), MORE, results(seen("call_2")))
    messages, deviations = fitted(*given, protocol=protocol)
    assert messages == (ASK, calls, results(seen("call_1"), seen("call_2")), rule, MORE)
    assert codes(deviations) == [("moved", "messages[1]")]
    sent(request(*messages), protocol)


def test_19_a_result_behind_the_next_answer_goes_back_to_its_call():
    late = said(Text("Still looking."))
    messages, deviations = fitted(ASK, said(looked("call_1")), late, results(seen("call_1")), MORE)
    assert messages == (ASK, said(looked("call_1")), results(seen("call_1")), late, MORE)
    assert codes(deviations) == [("moved", "messages[1]")]


@for_each(
    "protocol,field,stored,other",
    [
        ("openai-responses", "previous_response_id", b'"resp_1"', b"null"),
        ("openai-responses", "conversation", b'"conv_1"', b"null"),
        ("openai-responses", "conversation", b'{"id":"conv_1"}', b"{}"),
        ("anthropic-messages", "thread", b'{"type":"continue","previous_message_id":"msg_1"}', b'{"type":"create"}'),
        ("gemini-generate", "cachedContent", b'"cachedContents/1"', b'""'),
    ],
)
def test_results_of_calls_that_only_the_server_knows_are_kept(
    protocol: ProtocolName, field: str, stored: bytes, other: bytes
):
    given = Request("m", (results(seen("call_1")),), (LOOK,), native=Native(protocol, {field: Raw(stored)}))
    assert fit(given, protocol=protocol) == (given, ())
    assert fit(given, protocol="openai-chat")[0].messages == ()
    without = Request("m", given.messages, native=Native(protocol, {field: Raw(other)}))
    assert fit(without, protocol=protocol)[0].messages == ()


def test_results_of_calls_that_are_named_by_reference_are_kept():
    reference = said(Opaque("openai-responses", Raw(b'{"type":"item_reference","id":"fc_1"}')))
    given = (ASK, reference, results(seen("call_1")))
    assert fitted(*given, protocol="openai-responses") == (given, ())


def test_results_without_ids_find_their_calls_by_name_then_by_place():
    other = ToolCall("call_2", "hear", "{}")
    unnamed = ToolResult("", "", (Text("blue"),))
    messages, _ = fitted(ASK, said(looked("call_1"), other), results(ToolResult("", "hear", (Text("hum"),)), unnamed))
    assert messages[2] == results(seen("call_1"), ToolResult("call_2", "hear", (Text("hum"),)))


def test_a_result_in_another_message_is_one_of_its_own():
    wanted = (ASK, said(looked("call_1")), results(seen("call_1")), MORE)
    for given in (
        (ASK, said(looked("call_1")), Message("user", (seen("call_1"), *MORE.parts))),
        (ASK, said(seen("call_1"), looked("call_1")), MORE),
    ):
        messages, deviations = fitted(*given)
        assert messages == wanted
        assert codes(deviations) == [("moved", f"messages[{2 - (given[2] is MORE)}].parts[0]")]


def test_a_call_without_an_id_gets_one():
    messages, _ = fitted(ASK, said(looked(""), looked("")), results(seen("", Text("a")), seen("", Text("b"))))
    ids = [call.id for call in messages[1].tool_calls]
    assert len(set(ids)) == 2 and "" not in ids
    assert [part.call_id for part in messages[2].parts if isinstance(part, ToolResult)] == ids


def test_a_result_without_an_id_takes_no_call_that_another_names():
    first, second = looked("call_1"), looked("call_2")
    messages, deviations = fitted(ASK, said(first, second), results(ToolResult("", first.name, ()), seen("call_1")))
    assert messages[2] == results(seen("call_1"), ToolResult("call_2", first.name, ()))
    assert codes(deviations) == []


def test_21_the_same_target_gets_its_thinking_and_seals_back():
    origin = Origin("anthropic-messages", "here/model-1")
    answer = said(Thinking("Hm.", "s1"), Thinking("", "s2"), Thinking("", None, "sealed"), Text("Yes."), origin=origin)
    messages, deviations = fitted(ASK, answer, MORE, protocol="anthropic-messages")
    assert (messages, deviations) == ((ASK, answer, MORE), ())
    body = sent(request(*messages), "anthropic-messages")
    assert [block["type"] for block in body["messages"][1]["content"]] == [
        "thinking", "thinking", "redacted_thinking", "text",
    ]  # fmt: skip


@for_each(
    ("origin", "protocol"),
    [
        (Origin("anthropic-messages", "here/model-0"), "anthropic-messages"),
        (Origin("anthropic-messages", "there/model-1"), "anthropic-messages"),
        (Origin("gemini-generate", "here/model-1"), "anthropic-messages"),
        (Origin("gemini-generate"), "anthropic-messages"),
    ],
)
def test_21_another_target_gets_none_of_it(origin: Origin, protocol: ProtocolName):
    answer = said(Thinking("Hm.", "s1"), Thinking("", None, "sealed"), Text("Yes."), origin=origin)
    messages, deviations = fitted(ASK, answer, MORE, protocol=protocol)
    assert messages == (ASK, said(Text("Yes."), origin=origin), MORE)
    assert codes(deviations) == [("dropped", "messages[1].parts[0]"), ("dropped", "messages[1].parts[1]")]


def test_21_what_to_do_with_thinking_is_a_policy():
    there = said(Thinking("Hm.", "s1"), Text("Yes."), origin=Origin("gemini-generate", "there/m"))
    here = said(Thinking("So.", "s2"), Text("No."), origin=Origin("openai-chat", "here/model-1"))
    expected: dict[Any, tuple[tuple[Part, ...], tuple[Part, ...]]] = {
        "same": ((Text("Yes."),), here.parts),
        "keep": ((Thinking("Hm."), Text("Yes.")), here.parts),
        "text": ((Text("Hm."), Text("Yes.")), here.parts),
        "drop": ((Text("Yes."),), (Text("No."),)),
    }
    for policy, (first, second) in expected.items():
        found, _ = fit(request(ASK, there, MORE, here, MORE), protocol="openai-chat", target="here/model-1",
                       thinking=policy)  # fmt: skip
        assert (found.messages[1].parts, found.messages[3].parts) == (first, second)


def test_21_an_answer_of_unknown_origin_is_told_by_what_only_one_protocol_knows():
    trace = Native("gemini-generate", {"x": Raw(b"1")})
    answer = said(Thinking("Hm.", "s1"), Text("Yes.", native=trace))
    assert fitted(ASK, answer, MORE, protocol="gemini-generate")[0][1] == answer
    assert fitted(ASK, answer, MORE, protocol="anthropic-messages")[0][1].parts == (Text("Yes.", native=trace),)
    unknown = said(Thinking("Hm.", "s1"), Text("Yes."))
    assert fitted(ASK, unknown, MORE, protocol="anthropic-messages")[0][1] == unknown


def test_22_seals_leave_calls_and_foreign_ones_get_geminis_placeholder():
    call = looked("call_1", signature="c2VhbA==")
    answer = said(call, looked("call_2"), origin=Origin("gemini-generate", "google/gemini-3-pro"))
    given = request(ASK, answer, results(seen("call_1"), seen("call_2")), MORE, model="gemini-3-pro")
    same, deviations = fit(given, protocol="gemini-generate", target="google/gemini-3-pro")
    assert (same, deviations) == (given, ())
    assert sent(same, "gemini-generate")["contents"][1]["parts"][0]["thoughtSignature"] == "c2VhbA=="
    other, deviations = fit(given, protocol="gemini-generate", target="google/gemini-3-flash")
    assert codes(deviations) == [("dropped", "messages[1].parts[0].signature")]
    parts = sent(other, "gemini-generate")["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    older = Request("gemini-2.5-flash", other.messages, other.tools)
    body = _json.decode(PROTOCOLS["gemini-generate"].render_request(older).http.body)
    assert "thoughtSignature" not in str(body)


def test_23_a_seal_alone_does_not_make_a_text_thinking():
    answer = said(Text("", "c2VhbA=="), looked("call_1"), origin=Origin("gemini-generate", "g/m"))
    given = (ASK, answer, results(seen("call_1")))
    messages, deviations = fitted(*given, protocol="gemini-generate", target="g/m")
    assert (messages, deviations) == (given, ())
    messages, _ = fitted(*given, protocol="gemini-generate", target="g/other")
    assert messages[1].parts == (Text(""), looked("call_1"))


LONG_IDS = [f"call_{'x' * 20}{number}|fc_{'Ab+/' * 100}{number}==" for number in range(3)]


@for_each(("protocol", "dialect"), [*((name, None) for name in NAMES), ("openai-chat", MISTRAL)], ids=str)
def test_24_ids_get_the_targets_form_and_stay_apart_and_paired(protocol: ProtocolName, dialect: Dialect | None):
    ids = [*LONG_IDS, "functions.look:0", "a b", "a_b"]
    calls = said(*(looked(id, str(number)) for number, id in enumerate(ids)))
    found = results(*(seen(id, Text(str(number))) for number, id in enumerate(ids)))
    fit_request, deviations = fit(request(ASK, calls, found), protocol=protocol)
    assert deviations == ()
    again = PROTOCOLS[protocol].parse_request(
        _json.encode(sent(fit_request, protocol, dialect)), path="/models/m:generateContent"
    )
    turns = again.request.messages
    told = {call.id: call.values()["at"] for message in turns for call in message.tool_calls}
    answered = {part.call_id: part.text for message in turns for part in message.parts if isinstance(part, ToolResult)}
    assert len(told) == len(ids)
    assert told == answered
    if dialect is MISTRAL:
        assert all(re.fullmatch(r"[A-Za-z0-9]{9}", id) for id in told)


def test_24_one_id_for_two_calls_of_different_turns_pairs_each_with_its_own_result():
    turns = [(said(looked("call_0", at)), results(seen("call_0", Text(at)))) for at in "ab"]
    given = (ASK, *turns[0], *turns[1], MORE)
    assert fitted(*given)[0] == given
    sent(request(*given), "anthropic-messages")


def test_24_one_id_for_free_text_and_a_function_of_different_turns():
    free = ToolCall("call_0", "free", "words", "custom")
    turns = [
        (said(call), results(seen("call_0", name=call.name))) for call in (looked("call_0"), free, looked("call_0"))
    ]
    items = sent(request(ASK, *turns[0], *turns[1], *turns[2], MORE), "openai-responses")["input"]
    kinds = [(item["type"], item["call_id"]) for item in items if "call_id" in item]
    assert [kind for kind, _ in kinds] == [
        f"{kind}{end}" for kind in ("function_call", "custom_tool_call", "function_call") for end in ("", "_output")
    ]
    assert [id for _, id in kinds[::2]] == [id for _, id in kinds[1::2]]


def test_25_thinking_alone_is_left_out():
    origin = Origin("openai-responses", "here/model-1")
    messages, deviations = fitted(ASK, said(Thinking("Hm.", "seal"), origin=origin), MORE, protocol="openai-responses")
    assert messages == (ASK, MORE)
    assert codes(deviations) == [("dropped", "messages[1]")]


def test_25_another_model_of_the_same_provider_gets_calls_without_the_stores_ids():
    native = Native("openai-responses", {"id": Raw(b'"fc_1"')})
    call = ToolCall("call_1", "look", "{}", native=native)
    origin = Origin("openai-responses", "here/model-0")
    given = (ASK, said(Thinking("", "seal", native=native), call, origin=origin), results(seen("call_1")), MORE)
    messages, _ = fitted(*given, protocol="openai-responses")
    assert messages[1].parts == (ToolCall("call_1", "look", "{}"),)
    body = sent(request(*messages), "openai-responses")
    assert [item["type"] for item in body["input"]] == ["message", "function_call", "function_call_output", "message"]


@for_each("protocol", NAMES)
def test_26_names_of_tools_stay_as_they_are(protocol: ProtocolName):
    calls = [
        ToolCall(f"call_{number}", name, "{}") for number, name in enumerate(("Read", "read", "TodoWrite", "my-x"))
    ]
    given = (ASK, said(*calls), results(*(seen(call.id, name=call.name) for call in calls)))
    messages, _ = fitted(*given, protocol=protocol)
    body = _json.encode(sent(request(*messages), protocol))
    again = PROTOCOLS[protocol].parse_request(body, path="/models/m:generateContent").request.messages
    assert [call.name for message in again for call in message.tool_calls] == [call.name for call in calls]


# ---------------------------------------------------------------- content


@for_each("protocol", NAMES)
def test_half_surrogate_pairs_are_replaced(protocol: ProtocolName):
    half, whole = "a\ud83db 🌍", "a\ufffdb 🌍"
    call = ToolCall("call_1", "look", '{"at":"\ud83d"}')
    messages, deviations = fitted(
        Message("user", (Text(half),)), said(Text(half), call), results(seen("call_1", Text(half))), protocol=protocol
    )
    assert messages[0].text == messages[1].text == whole
    assert messages[2].parts == (seen("call_1", Text(whole)),)
    assert messages[1].tool_calls[0].arguments == '{"at":"\ufffd"}'
    assert {deviation.code for deviation in deviations} == {"lone-surrogate"}
    sent(request(*messages), protocol)


def test_a_pair_in_two_halves_is_one_character():
    messages, _ = fitted(Message("user", (Text("\ud83c\udf0d\ud83c"),)))
    assert messages[0].text == "🌍\ufffd"


@for_each("protocol", NAMES)
def test_results_that_are_only_images(protocol: ProtocolName):
    image = Media("image", "image/png", PIXEL)
    given = (ASK, said(looked("call_1"), looked("call_2")), results(seen("call_1", image), seen("call_2", image)), MORE)
    messages, deviations = fitted(*given, protocol=protocol)
    assert deviations == ()
    body = _json.encode(sent(request(*messages), protocol))
    assert body.count(PIXEL.encode()) == 2


def test_parts_of_another_protocol_are_left_out():
    foreign = Opaque("openai-responses", Raw(b'{"type":"web_search_call"}'))
    messages, deviations = fitted(ASK, said(foreign), said(foreign, Text("Found.")), MORE, protocol="gemini-generate")
    assert [message.parts for message in messages] == [ASK.parts, (Text("Found."),), MORE.parts]
    assert ("dropped", "messages[1]") in codes(deviations)
    assert fitted(ASK, said(foreign), MORE, protocol="openai-responses")[1] == ()


def test_the_users_last_words_stay_whatever_they_are():
    blank = Message("user", (Text(""),))
    assert fitted(blank, protocol="openai-chat")[0] == (blank,)
    assert fitted(blank, MORE, protocol="openai-chat")[0] == (MORE,)


# ---------------------------------------------------------------- 20: every provider's answers to every other one


def answered(protocol: ProtocolName, parts: tuple[Part, ...]) -> Message:
    """An answer as it is read from this protocol's own stream."""
    reply = Reply(
        id="resp_1", model="model-1", created=1_750_000_000, parts=parts, stop_reason="stop", native_reason=None,
        usage=fold([]).usage, cost=None, error=None, failed_calls=(), deviations=(),
    )  # fmt: skip
    chosen = PROTOCOLS[protocol]
    encoder = chosen.encoder(new_id=counter(), model="model-1", created=1_750_000_000)
    wire = encoder.encode(unfold(reply))
    decoder = chosen.decoder(new_id=counter(), offered_names=frozenset({"look"}))
    events = [
        Start(event.id, event.model, event.created, event.native, Origin(protocol, f"{protocol}/model-1"))
        if isinstance(event, Start)
        else event
        for event in [*decoder.feed(wire), *decoder.close()]
    ]
    message = fold(events).message
    assert message.origin == Origin(protocol, f"{protocol}/model-1")
    return message


def context(protocol: ProtocolName, start: int) -> list[Message]:
    """A conversation with one provider: thinking, parallel calls, results with an image and an error, an answer."""
    ids = [f"call_{start + number:024d}" for number in range(2)]
    first = answered(protocol, (Thinking("Both.", "c2VhbA=="), Text("I look."), *map(looked, ids)))
    calls = first.tool_calls
    assert len(calls) == 2
    image = Media("image", "image/png", PIXEL)
    return [
        ASK,
        first,
        results(
            seen(calls[0].id, Text("blue"), image),
            ToolResult(calls[1].id, "look", (Text("It is dark."),), is_error=True),
        ),
        answered(protocol, (Thinking("Well."), Text("Blue, and dark."))),
    ]


@for_each(("source", "target"), list(itertools.product(NAMES, NAMES)))
def test_20_one_providers_conversation_goes_on_with_another(source: ProtocolName, target: ProtocolName):
    given = request(*context(source, 0), MORE)
    found, deviations = fit(given, protocol=target, target=f"{target}/model-1", takes_result_media=holds_media(target))
    body = _json.to_text(sent(found, target))
    assert "Blue, and dark." in body
    assert "It is dark." in body
    assert PIXEL in body
    if source == target:
        assert deviations == ()
    else:
        assert "c2VhbA==" not in body
        assert "Both." not in body


@for_each("target", NAMES)
def test_20_a_conversation_with_all_providers_goes_on_with_each(target: ProtocolName):
    every = [message for number, source in enumerate(NAMES) for message in context(source, 10 * number)]
    found, _ = fit(
        request(*every, MORE), protocol=target, target=f"{target}/model-1", takes_result_media=holds_media(target)
    )
    assert len(found.messages) == len(every) + 1
    sent(found, target)


@for_each("target", NAMES)
def test_broken_histories_are_accepted_too(target: ProtocolName):
    broken = [
        results(seen("nobody")),
        ASK,
        said(Thinking("Hm.", "s"), origin=Origin("gemini-generate", "g/m")),
        said(looked("call_1"), looked("call_2")),
        Message("system", (Text("Be brief."),)),
        results(seen("call_2", Media("image", "image/png", PIXEL))),
        said(Text("\ud83d"), looked("call_3"), is_cut=True),
        results(seen("call_3")),
        said(),
        Message("user", (Text(" "),)),
        said(Opaque("openai-chat", Raw(b'{"type":"odd"}'))) if target != "openai-chat" else said(),
        MORE,
        said(looked("call_4")),
    ]
    found, deviations = fit(
        request(*broken), protocol=target, target="here/model-1", takes_result_media=holds_media(target)
    )
    assert deviations
    sent(found, target)


SEEN = Media("image", "image/png", PIXEL)
SHOWN = Message("user", (Text("Media of the answer above:"), SEEN))
SOUND = Media("audio", "audio/wav", "AAAA")
BRIEF = Message("system", (Text("Be brief."),))
SAMPLE = Message("user", (Text("Media of the instructions above:"), SEEN, SOUND))
_REFUSED = TurnRules(no_media=("assistant", "system"))


@for_each(
    "given,wanted",
    [
        ((ASK, said(Text("Look."), SEEN), MORE), (ASK, said(Text("Look.")), SHOWN, MORE)),
        ((ASK, said(SEEN), MORE), (ASK, SHOWN, MORE)),
        ((ASK, said(Text("Look."), SEEN)), (ASK, said(Text("Look.")), SHOWN)),
        (
            (ASK, said(SEEN, looked("call_1")), results(seen("call_1")), MORE),
            (ASK, said(looked("call_1")), results(seen("call_1")), SHOWN, MORE),
        ),
        ((ASK, said(Text("So.")), Message("user", (SEEN,))), (ASK, said(Text("So.")), Message("user", (SEEN,)))),
        ((Message("system", (SEEN, SOUND)), BRIEF, MORE), (BRIEF, SAMPLE, MORE)),
        ((Message("system", (Text("Be brief."), SEEN, SOUND)), ASK), (BRIEF, SAMPLE, ASK)),
    ],
)
def test_images_of_answers_and_instructions_follow_in_a_message_of_the_user(
    given: tuple[Message, ...], wanted: tuple[Message, ...]
):
    """Claude and GPT models refuse them there, and some models draw."""
    found, deviations = fit(request(*given), protocol="openai-chat", turns=_REFUSED)
    assert found.messages == wanted
    assert {each.code for each in deviations} == ({"moved"} if given != wanted else set())


def test_what_an_answer_says_beside_its_images_is_told_where_no_answer_is_left():
    named = said(SEEN, native=Native("openai-chat", {"name": Raw(b'"Ann"')}))
    found, deviations = fit(request(ASK, named, MORE), protocol="openai-chat", turns=_REFUSED)
    assert found.messages == (ASK, SHOWN, MORE)
    assert [(each.code, each.where) for each in deviations] == [
        ("moved", "messages[1].parts[0]"),
        ("dropped", "messages[1].name"),
    ]
    rules = TurnRules(no_media=("assistant", "system"), alternate=True)
    _, deviations = fit(request(ASK, said(SEEN), MORE), protocol="openai-chat", turns=rules)
    assert [each.where for each in deviations if each.code == "changed"] == ["messages[1]", "messages[2]"]


@for_each("protocol", ["anthropic-messages", "openai-chat"])
def test_no_client_of_another_protocol_makes_a_provider_refuse_the_image_of_an_answer(protocol: ProtocolName):
    given = request(ASK, said(Text("Look."), SEEN), MORE)
    found, _ = fit(given, protocol=protocol, turns=PROTOCOLS[protocol].turns, client="gemini-generate")
    answer, shown = sent(found, protocol)["messages"][1:3]
    assert (answer["role"], shown["role"]) == ("assistant", "user")
    assert "image" not in str(answer)
    assert "image" in str(shown)


# ---------------------------------------------------------------- the vault

GEMINI = Origin("gemini-generate", "google/gemini-3-pro")
CLAUDE = Origin("anthropic-messages", "anthropic/claude")


def test_the_vault_gives_seals_back_by_call_id():
    vault = SignatureVault()
    answer = said(Thinking("Hm.", "t"), looked("call_0123456789abcdefghijklmn", signature="s"), origin=CLAUDE)
    vault.note(request(ASK), answer)
    bare = said(looked("call_0123456789abcdefghijklmn"))
    restored = vault.restore(request(ASK, bare, results(seen("call_0123456789abcdefghijklmn"))))
    assert restored.messages[1] == answer
    trimmed = vault.restore(request(MORE, bare))
    assert trimmed.messages[1] == answer, "a telling id needs no place"


def test_the_vault_gives_seals_back_to_clients_without_ids():
    vault = SignatureVault()
    calls = (looked("call_0123456789abcdefghijklmn", signature="s"), looked("call_1123456789abcdefghijklmn"))
    vault.note(request(ASK), said(*calls, origin=GEMINI))
    bare = said(ToolCall("", "look", '{ "at" : "sky" }'), ToolCall("", "look", '{"at": "sky"}'))
    restored = vault.restore(request(ASK, bare)).messages[1]
    assert [call.signature for call in restored.tool_calls] == ["s", None]
    assert restored.origin == GEMINI


def test_the_vault_keeps_conversations_apart():
    vault = SignatureVault()
    vault.note(request(ASK), said(looked("call_0", signature="s"), origin=GEMINI))
    for id in ("", "call_0"):
        given = request(Message("user", (Text("Other words."),)), said(looked(id)))
        assert vault.restore(given) is given
        assert vault.restore(request(ASK, said(looked(id)))).messages[1].tool_calls[0].signature == "s"


def test_the_vault_knows_whose_seal_a_client_sends_back():
    vault = SignatureVault()
    answer = said(Thinking("Hm.", "t"), Text("Yes."), origin=CLAUDE)
    vault.note(request(ASK), answer)
    restored = vault.restore(request(ASK, said(Thinking("Hm.", "t"), Text("Yes.")), MORE))
    assert restored.messages[1] == answer
    found, deviations = fit(restored, protocol="gemini-generate", target="google/gemini-3-pro")
    assert found.messages[1].parts == (Text("Yes."),)
    assert codes(deviations) == [("dropped", "messages[1].parts[0]")]


def test_the_vault_forgets_the_oldest():
    vault = SignatureVault(most_calls=2)
    answers = [said(looked(f"call_{number:024d}", str(number), "s"), origin=GEMINI) for number in range(9)]
    for answer in answers:
        vault.note(request(ASK), answer)
    bare = [said(*(looked(call.id, call.values()["at"]) for call in answer.tool_calls)) for answer in answers]
    found = [vault.restore(request(ASK, one)).messages[1].tool_calls[0].signature for one in bare]
    assert found[0] is None
    assert found[-1] == "s"
    small = SignatureVault(most_size=10)
    small.note(request(ASK), said(looked("call_0123456789abcdefghijklmn", signature="s" * 20), origin=GEMINI))
    given = request(ASK, said(looked("call_0123456789abcdefghijklmn")))
    assert small.restore(given) is given


def test_what_the_vault_does_not_know_is_not_touched():
    vault = SignatureVault()
    vault.note(request(ASK), said(looked("call_1", signature="s")))  # of unknown origin
    given = request(ASK, said(looked("call_1")), results(seen("call_1")), said(Text("Blue.")), MORE)
    assert vault.restore(given) is given


def test_the_vault_gives_a_call_its_seal_beside_thinking_that_kept_its_own():
    vault = SignatureVault()
    answer = said(Thinking("Hm.", "t"), looked("call_0123456789abcdefghijklmn", signature="s"), origin=GEMINI)
    vault.note(request(ASK), answer)
    returned = said(Thinking("Hm.", "t"), looked("call_0123456789abcdefghijklmn"))
    assert vault.restore(request(ASK, returned)).messages[1] == answer


HIDDEN, ONE, TWO = Thinking("", None, "sealed"), Thinking("Hm.", "t1"), Thinking("So.", "t2")
ID = "call_0123456789abcdefghijklmn"


@for_each(
    "parts",
    [
        (ONE, HIDDEN, Text("Yes.")),
        (ONE, HIDDEN, looked(ID)),
        (HIDDEN, ONE, looked(ID)),
        (ONE, HIDDEN, looked(ID), TWO, Text("Yes.")),
        (ONE, HIDDEN, HIDDEN, TWO, HIDDEN, looked(ID)),
    ],
)
def test_the_vault_gives_withheld_thinking_back_where_the_client_has_no_place_for_it(parts: tuple[Part, ...]):
    vault = SignatureVault()
    answer = said(*parts, origin=CLAUDE)
    vault.note(request(ASK), answer)
    returned = said(*(part for part in parts if part != HIDDEN))
    assert vault.restore(request(ASK, returned, MORE)).messages[1] == answer
    other = said(Thinking("Other.", "t9"), *returned.parts)
    assert HIDDEN not in vault.restore(request(ASK, other, MORE)).messages[1].parts


def test_the_vault_never_mixes_two_origins():
    vault = SignatureVault()
    vault.note(request(ASK), said(looked("call_0123456789abcdefghijklmn", signature="s"), origin=GEMINI))
    given = request(ASK, said(looked("call_0123456789abcdefghijklmn"), origin=CLAUDE))
    assert vault.restore(given) is given


def test_the_vault_watches_the_events_of_an_answer():
    vault = SignatureVault()
    answer = said(Thinking("Hm.", "t"), Text("I look."), looked("call_0", signature="s"), origin=GEMINI)
    reply = msgspec.structs.replace(fold([]), parts=answer.parts, stop_reason="tool_use", origin=GEMINI)
    watch = vault.watch(request(ASK))
    for event in unfold(reply):
        watch.add([event])
    watch.keep()
    restored = vault.restore(request(ASK, said(Text("I look."), looked("call_0")))).messages[1]
    assert restored.parts == (Thinking("Hm.", "t"), Text("I look."), looked("call_0", signature="s"))


def test_an_answer_that_broke_off_is_not_noted():
    vault = SignatureVault()
    watch = vault.watch(request(ASK))
    watch.add([Start(origin=GEMINI), ToolCallStart(0, "call_0", "look"), ToolCallDelta(0, "{}")])
    watch.add([ToolCallEnd(0, ToolCall("call_0", "look", "{}", signature="s")), Failure("connection", "reset")])
    given = request(ASK, said(ToolCall("call_0", "look", "{}")))
    assert vault.restore(given) is given


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("role", ["user", "system", "assistant", "tool"])
def test_the_look_that_nothing_needs_fitting_changes_nothing(role: Any, is_cut: bool, monkeypatch: pytest.MonkeyPatch):
    texts = [(Text(text),) for text in ("hi", "", " \n", "é", "\ud800")]
    result = ToolResult("1", "f", (Text("hi"),))
    said: list[Any] = [(), *texts, (Text("hi"), Text("")), (Thinking("hi"),), (result,)]
    conversations = [
        (Message.user("a"), Message(role, parts, is_cut=is_cut), *after)
        for parts in said
        for after in ((), (Message.user("b"),))
    ]
    looked = [fit(Request("m", messages), protocol="openai-chat") for messages in conversations]
    # The package's name `fit` is the function.
    monkeypatch.setattr(importlib.import_module("dragoman.history.fit"), "_is_plain", lambda message: False)
    assert looked == [fit(Request("m", messages), protocol="openai-chat") for messages in conversations]
    assert any(request.messages != messages for (request, _), messages in zip(looked, conversations, strict=True))

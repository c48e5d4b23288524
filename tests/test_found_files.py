"""What a provider's search of files found and a text cites: in the client's words, or named with its path."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import openai.types.responses as of_responses
from google.genai import types as of_gemini

from dragoman import _json, decode
from dragoman.events import Deviation, Finish, Reply, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName
from for_each import for_each
from test_remote_servers import CHAT, GEMINI, MESSAGES, RESPONSES

OLLAMA: ProtocolName = "ollama-chat"
CALL = {
    "id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["what is a dragoman"],
    "results": [{"file_id": "file-1", "filename": "a.txt", "score": 0.5, "text": "An interpreter.",
                 "attributes": {"year": 1900, "lang": "en", "is_old": True}}],
}  # fmt: skip
CITATION = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 4}
CHUNK = {"retrievedContext": {"title": "a.txt", "text": "An interpreter.", "fileSearchStore": "fileSearchStores/s",
                              "customMetadata": [{"key": "lang", "stringValue": "en"}]}}  # fmt: skip


def of_openai(*annotations: dict[str, Any], items: tuple[dict[str, Any], ...] = (CALL,)) -> bytes:
    text = {"type": "output_text", "text": "One.", "annotations": list(annotations)}
    message = {"type": "message", "role": "assistant", "status": "completed", "content": [text]}
    answer = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [*items, message]}
    return _json.encode(answer)


def of_google(*chunks: dict[str, Any], **more: Any) -> bytes:
    metadata = {"groundingChunks": list(chunks), **more}
    candidate = {"content": {"role": "model", "parts": [{"text": "One."}]}, "finishReason": "STOP",
                 "groundingMetadata": metadata}  # fmt: skip
    return _json.encode({"candidates": [candidate]})


def of_anthropic(*citations: dict[str, Any]) -> bytes:
    content = [{"type": "text", "text": "One.", "citations": list(citations)}]
    return _json.encode({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
                         "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}})  # fmt: skip


def told(body: bytes, source: ProtocolName, client: ProtocolName, *, is_stream: bool) -> tuple[Any, list[str]]:
    """An answer as a client reads it, whole, and the paths that are named as lost."""
    reply = decode(body, source)
    lost: list[Deviation] = []
    if not is_stream:
        made = PROTOCOLS[client].render_response(reply, new_id=lambda: "1", model="m", created=1, lost=lost)
        return json.loads(made), [each.where for each in lost]
    encoder = PROTOCOLS[client].encoder(new_id=lambda: "1", model="m", created=1)
    *events, end = unfold(msgspec.structs.replace(reply, native=None))
    assert isinstance(end, Finish)
    wire = encoder.encode([*events, msgspec.structs.replace(end, native=reply.native)])  # as a stream tells it
    back: Reply = decode(wire, client)
    made = PROTOCOLS[client].render_response(back, new_id=lambda: "1", model="m", created=1)
    return json.loads(made), [each.where for each in encoder.lost]


@for_each("is_stream", [False, True])
def test_files_that_responses_found_are_grounding_of_gemini(is_stream: bool) -> None:
    body, lost = told(of_openai(CITATION), RESPONSES, GEMINI, is_stream=is_stream)
    found = body["candidates"][0]["groundingMetadata"]
    metadata = [{"key": "year", "numericValue": 1900}, {"key": "lang", "stringValue": "en"}]
    context = {"title": "a.txt", "uri": "file-1", "text": "An interpreter.", "customMetadata": metadata}
    assert found == {"groundingChunks": [{"retrievedContext": context}], "retrievalQueries": CALL["queries"]}
    of_gemini.GenerateContentResponse.model_validate(body)
    where = "parts[0].<file_search_call>.results[]."
    assert sorted(lost) == [f"{where}attributes", f"{where}score", "parts[1].annotations[].index"]


@for_each("is_stream", [False, True])
def test_a_file_that_is_only_cited_is_grounding_too(is_stream: bool) -> None:
    body, _ = told(of_openai(CITATION, items=({**CALL, "results": None},)), RESPONSES, GEMINI, is_stream=is_stream)
    [chunk] = body["candidates"][0]["groundingMetadata"]["groundingChunks"]
    assert chunk == {"retrievedContext": {"title": "a.txt", "uri": "file-1"}}


@for_each("is_stream", [False, True])
def test_grounding_of_gemini_is_a_search_and_citations_of_responses(is_stream: bool) -> None:
    support = {"segment": {"endIndex": 4}, "groundingChunkIndices": [0]}
    more = {"retrievalQueries": ["q"], "groundingSupports": [support]}
    body, lost = told(of_google(CHUNK, **more), GEMINI, RESPONSES, is_stream=is_stream)
    message, call = sorted(body["output"], key=lambda item: str(item["type"]), reverse=True)
    assert call | {"id": ""} == {
        "id": "", "type": "file_search_call", "status": "completed", "queries": ["q"],
        "results": [{"file_id": "a.txt", "filename": "a.txt", "text": "An interpreter.", "attributes": {"lang": "en"}}],
    }  # fmt: skip
    citation = {"type": "file_citation", "file_id": "a.txt", "filename": "a.txt", "index": 4}
    assert message["content"][0]["annotations"] == [citation]
    of_responses.ResponseFileSearchToolCall.model_validate(call)
    of_responses.ResponseOutputText.model_validate(message["content"][0])
    where = "candidates[0].groundingMetadata."
    assert sorted(lost) == [f"{where}groundingChunks", f"{where}groundingSupports"]


@for_each("key", ["documentName", "uri"])
def test_a_file_is_known_by_the_providers_own_name(key: str) -> None:
    chunk = {"retrievedContext": {"title": "a.txt", "text": "T", key: "own/1"}}
    body, lost = told(of_google(chunk, chunk), GEMINI, RESPONSES, is_stream=False)
    [citation] = next(item for item in body["output"] if item["type"] == "message")["content"][0]["annotations"]
    assert (citation["file_id"], citation["filename"]) == ("own/1", "a.txt")
    assert lost == []


def test_pages_and_files_of_one_answer_are_both_told() -> None:
    web = {"web": {"uri": "https://a.test", "title": "A"}}
    body, lost = told(of_google(web, CHUNK, webSearchQueries=["w"]), GEMINI, RESPONSES, is_stream=False)
    message = next(item for item in body["output"] if item["type"] == "message")
    assert [each["type"] for each in message["content"][0]["annotations"]] == ["url_citation", "file_citation"]
    assert "candidates[0].groundingMetadata.webSearchQueries" in lost


def test_files_there_and_back_are_the_same() -> None:
    body, _ = told(of_openai(CITATION), RESPONSES, GEMINI, is_stream=False)
    back, _ = told(_json.encode(body), GEMINI, RESPONSES, is_stream=False)
    message, call = sorted(back["output"], key=lambda item: str(item["type"]), reverse=True)
    [result] = call["results"]
    assert (result["file_id"], result["filename"], result["text"]) == ("file-1", "a.txt", "An interpreter.")
    assert call["queries"] == CALL["queries"]
    assert message["content"][0]["annotations"] == [CITATION]


RESULT = {"type": "search_result_location", "cited_text": "C", "source": "https://a.test/x", "title": "T",
          "search_result_index": 0, "start_block_index": 0, "end_block_index": 1}  # fmt: skip
PAGE = {"type": "page_location", "cited_text": "C", "document_index": 0, "document_title": "D", "file_id": "file_1",
        "start_page_number": 3, "end_page_number": 4}  # fmt: skip
CHARS = {"type": "char_location", "cited_text": "C", "document_index": 0, "document_title": "D",
         "start_char_index": 0, "end_char_index": 1, "file_id": None}  # fmt: skip


def test_citations_of_messages_are_grounding_of_gemini() -> None:
    body, lost = told(of_anthropic(RESULT, PAGE, CHARS), MESSAGES, GEMINI, is_stream=False)
    assert body["candidates"][0]["groundingMetadata"]["groundingChunks"] == [
        {"retrievedContext": {"title": "T", "uri": "https://a.test/x", "text": "C"}},
        {"retrievedContext": {"title": "D", "uri": "file_1", "text": "C", "pageNumber": 3}},
        {"retrievedContext": {"title": "D", "text": "C"}},
    ]
    names = ("search_result_index", "start_block_index", "end_block_index", "document_index", "start_char_index",
             "end_char_index")  # fmt: skip
    assert sorted(lost) == sorted(f"parts[0].citations[].{name}" for name in names)


@for_each("client", [CHAT, RESPONSES])
def test_a_result_of_the_clients_own_search_is_a_page_where_it_is_one(client: ProtocolName) -> None:
    body, lost = told(of_anthropic(RESULT), MESSAGES, client, is_stream=False)
    assert '"url":"https://a.test/x"' in _json.to_text(body)
    assert "parts[0].citations[].search_result_index" in lost
    body, lost = told(of_anthropic({**RESULT, "source": "doc-7"}), MESSAGES, client, is_stream=False)
    assert "doc-7" not in _json.to_text(body)
    assert lost == ["parts[0].citations"]


def test_a_cited_file_of_messages_is_one_of_responses_if_it_has_an_id() -> None:
    body, lost = told(of_anthropic(PAGE), MESSAGES, RESPONSES, is_stream=False)
    [citation] = body["output"][0]["content"][0]["annotations"]
    assert citation == {"type": "file_citation", "file_id": "file_1", "filename": "D", "index": 4}
    assert "parts[0].citations[].cited_text" in lost
    body, lost = told(of_anthropic(CHARS), MESSAGES, RESPONSES, is_stream=False)
    assert body["output"][0]["content"][0]["annotations"] == []
    assert lost == ["parts[0].citations"]


@for_each("is_stream", [False, True])
@for_each("client", [CHAT, MESSAGES, OLLAMA])
def test_where_files_have_no_place_they_are_named(client: ProtocolName, is_stream: bool) -> None:
    _, lost = told(of_openai(CITATION), RESPONSES, client, is_stream=is_stream)
    assert sorted(lost) == ["parts[0]", "parts[1].annotations"]
    _, lost = told(of_google(CHUNK, retrievalQueries=["q"]), GEMINI, client, is_stream=is_stream)
    where = "candidates[0].groundingMetadata."
    assert sorted(lost) == [f"{where}groundingChunks", f"{where}retrievalQueries"]


@for_each("client", [CHAT, RESPONSES, MESSAGES, GEMINI, OLLAMA])
@for_each(
    "body",
    [of_openai({"type": "file_citation"}, items=({**CALL, "results": [5, None, {"attributes": [1]}], "queries": 7},)),
     of_openai({**CITATION, "file_id": 9, "filename": None}), of_openai(items=({**CALL, "status": "in_progress"},))],
)  # fmt: skip
def test_odd_searches_break_nothing(client: ProtocolName, body: bytes) -> None:
    for is_stream in (False, True):
        made, _ = told(body, RESPONSES, client, is_stream=is_stream)
        assert "One." in _json.to_text(made)


@for_each("context", [5, {}, {"text": "T"}, {"title": 5}, {"title": "a", "customMetadata": [5, {}]}])
def test_odd_chunks_break_nothing_and_are_named(context: Any) -> None:
    made, lost = told(of_google({"retrievedContext": context}), GEMINI, RESPONSES, is_stream=False)
    assert "One." in _json.to_text(made)
    assert lost == (["candidates[0].groundingMetadata.groundingChunks"] if context != {} else lost)


def test_gemini_has_no_calls_of_mcp_servers_in_its_answers() -> None:
    """Its own tools' calls are named as lost. When the vendor's types get a word for MCP, somebody decides."""
    words = {word.value for word in of_gemini.ToolType}
    assert words == {
        "TOOL_TYPE_UNSPECIFIED", "GOOGLE_SEARCH_WEB", "GOOGLE_SEARCH_IMAGE", "URL_CONTEXT", "GOOGLE_MAPS",
        "FILE_SEARCH", "MEDIA_PROCESSING",
    }  # fmt: skip
    call = {"toolCall": {"id": "c", "toolType": "FILE_SEARCH", "args": {"query": "q"}}}
    response = {"toolResponse": {"id": "c", "toolType": "FILE_SEARCH", "response": {"x": 1}}}
    parts = [call, response, {"text": "One."}]
    body = _json.encode({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
    same, lost = told(body, GEMINI, GEMINI, is_stream=False)
    assert same["candidates"][0]["content"]["parts"] == parts
    assert lost == []
    for client in (CHAT, RESPONSES, MESSAGES, OLLAMA):
        _, lost = told(body, GEMINI, client, is_stream=False)
        assert lost == ["parts[0]", "parts[1]"]

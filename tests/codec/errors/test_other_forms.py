"""Errors in forms of other services, amid the answers of all five protocols: told as errors, whatever follows them, and
never as the model's words; what only looks like one ends nothing."""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

from dragoman.codec.errors.error_body import read_problem
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from found_streams import Stream, chat, chunk
from found_streams_elsewhere import (
    MESSAGE,
    block,
    candidate,
    deltas,
    gemini,
    line,
    messages,
    ollama,
    responses,
    text_done,
)
from test_found_streams import read

#: What a service says in place of an event; `died` or a word of its own is the message.
ERRORS: Final[tuple[dict[str, Any], ...]] = (
    {"code": 1302, "msg": "died", "data": None},
    {"base_resp": {"status_code": 1013, "status_msg": "died"}},
    {"base_resp": {"status_code": 1013, "status_msg": "died"}, "choices": None},
    {"error_code": 336003, "error_msg": "died"},
    {"Response": {"Error": {"Code": "Failed", "Message": "died"}, "RequestId": "x"}},
    {"ResponseMetadata": {"RequestId": "x", "Error": {"Code": "Busy", "Message": "died"}}},
    {"header": {"code": 10013, "message": "died", "sid": "x"}},
    {"object": "error", "message": "died", "type": "InternalServerError", "param": None, "code": 500},
    {"message": "died"},
    {"__type": "ThrottlingException", "message": "died"},
    {"detail": "died"},
    {"success": False, "errors": [{"code": 7009, "message": "died"}], "result": None, "messages": []},
    {"status": "error", "message": "died"},
    {"statusCode": 502, "message": "died", "error": "Bad Gateway"},
    {"errors": [{"message": "died"}]},
    {"exception": "RuntimeError: died", "traceback": "File x"},
    {"err": {"message": "died"}},
    {"error": True, "message": "died"},
    {"error_message": "died", "error_type": "internal"},
)
#: What stands beside an answer whose service says that nothing failed.
HEALTHY: Final[tuple[dict[str, Any], ...]] = (
    {"base_resp": {"status_code": 0, "status_msg": ""}},
    {"code": 0, "msg": "success"},
    {"success": True, "errors": []},
    {"error": None, "detail": None},
    {"error_code": 0, "error_msg": ""},
    {"header": {"code": 0, "message": "Success"}},
    {"header": {"code": "200"}, "base_resp": {}},
    {"err": None, "exception": ""},
    {"error": {}, "error_message": None},
)
#: The same in an event of its own, in words too.
SOUND: Final[tuple[dict[str, Any], ...]] = (
    {"code": 0, "msg": "success"},
    {"code": 200, "message": "OK", "data": None},
    {"code": "0", "message": "success", "request_id": "x"},
    {"success": True, "message": "done", "errors": []},
    {"status": "OK", "message": "connected"},
    {"status": "success", "detail": "begun"},
    {"error_code": 0, "error_msg": "success"},
    {"status_code": 0, "msg": "success"},
    {"header": {"code": 0, "message": "Success", "sid": "x"}},
    {"base_resp": {"status_code": 0, "status_msg": "success"}},
)
#: A code of success beside an error all the same.
UNSOUND: Final[tuple[dict[str, Any], ...]] = (
    {"code": 200, "error": {"message": "died"}},
    {"status": "ok", "err": "died"},
    {"code": 0, "message": "died", "errors": ["died"]},
    {"success": True, "object": "error", "message": "died"},
)


def streams(frame: dict[str, Any]) -> list[Stream]:
    """The frame amid an answer that goes on to its usual end."""
    untyped = f"data: {json.dumps(frame)}\n\n"
    said = responses("x", *MESSAGE, *deltas("I look."), *text_done("I look."))
    end = said.body.rfind(b"event: ")
    return [
        chat("x", chunk(content="I look."), frame),
        messages("x", *block(0, "I look."), untyped),
        said._replace(body=said.body[:end] + untyped.encode() + said.body[end:]),
        gemini("x", candidate({"text": "I look."}), frame),
        ollama("x", line("I look."), frame),
    ]


@for_each("frame", (*ERRORS, *UNSOUND), ids=json.dumps)
def test_an_error_in_a_form_of_its_own_is_an_error_wherever_it_comes(frame: dict[str, Any]):
    for stream in streams(frame):
        reply = read(stream, len(stream.body))
        assert reply.error is not None, stream.protocol
        assert (reply.text, reply.stop_reason) == ("I look.", "error"), stream.protocol
    for protocol in PROTOCOLS:
        reply = read(Stream("x", protocol, json.dumps(frame).encode()), 1 << 20)
        assert (reply.error is not None, reply.text) == (True, ""), protocol
    assert "died" in read_problem(frame, status=None).message


@for_each("beside, stream", [*itertools.product(HEALTHY, range(5))], ids=str)
def test_a_frame_that_says_that_nothing_failed_ends_nothing(beside: dict[str, Any], stream: int):
    said = streams({})[stream]
    body = said.body.replace(b'{"', json.dumps(beside)[:-1].encode() + b', "', 1) if stream != 2 else said.body
    reply = read(said._replace(body=body), len(body))
    assert (reply.error, reply.text, reply.stop_reason) == (None, "I look.", "stop"), said.protocol


@for_each("frame", SOUND, ids=json.dumps)
def test_an_event_that_says_that_nothing_failed_ends_nothing(frame: dict[str, Any]):
    for stream in streams(frame):
        reply = read(stream, len(stream.body))
        assert (reply.error, reply.text, reply.stop_reason) == (None, "I look.", "stop"), stream.protocol

"""Streams that are cut, the ways in which they are cut, and the endings that a server may still write behind a cut.

Nothing here shares code with the decoders: frames are taken apart at their blank lines, or one a line.
"""

from __future__ import annotations

import copy
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from cases import load_cases
from dragoman.protocol import PLAIN, Dialect
from rescue_cases import TOOLS, load_rescue_cases
from wire_bases import value_at

CAPTURES = Path(__file__).parent / "captures"
SHARED = Path(__file__).parents[2] / "shared"
Ending = Literal["end", "reset", "length", "stop"]
ENDINGS: tuple[Ending, ...] = ("end", "reset", "length", "stop")
BLANK = re.compile(rb"(?:\r\n){2}|\n\n|\r\r|\n\r\n")
LINES = "ollama-chat"


class Cuttable(NamedTuple):
    """A response of status 200, and the tools that its request offered: names, and schemas as objects."""

    name: str
    protocol: str
    wire: bytes
    tools: list[dict[str, Any]]
    dialect: Dialect = PLAIN

    @property
    def is_stream(self) -> bool:
        """Whether it is a row of frames; else it is one JSON value."""
        if self.protocol == LINES:
            return b'"done"' in self.wire and b"\n" in self.wire.strip()
        return b"data:" in self.wire


class Cut(NamedTuple):
    """What came before a cut, and whether it is whole frames: else it ends within one."""

    wire: bytes
    is_whole: bool


def own_streams() -> list[Cuttable]:
    """Our corpus, our captures, and one stream of each of our calls written as text."""
    found = [
        Cuttable(f"{case.protocol}/{case.name}", case.protocol, case.wire, case.tools, case.dialect)
        for case in load_cases()
        if case.status == 200
    ]
    expected = tomllib.loads((CAPTURES / "expected.toml").read_text(encoding="utf-8"))
    for file in sorted(CAPTURES.glob("*.raw")):
        tools = [{"name": name, "parameters": {"type": "object"}} for name in expected[file.stem].get("tools", [])]
        found += parse_capture(file, expected[file.stem]["protocol"], tools)
    return found


def written_streams() -> list[Cuttable]:
    """One stream of each of our calls written as text, all of it in one delta: a cut goes through every character."""
    offered = [{"name": tool.name, "parameters": json.loads(bytes(tool.schema or b"{}"))} for tool in TOOLS]
    streams = []
    for case in load_rescue_cases():
        chunks = [{"choices": [{"index": 0, "delta": {"content": case.text}, "finish_reason": None}]}]
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        wire = b"".join(_event(chunk) for chunk in chunks) + b"data: [DONE]\n\n"
        streams.append(Cuttable(f"written/{case.family}/{case.name}", "openai-chat", wire, offered))
    return streams


def shared_streams() -> list[Cuttable]:
    """The corpora and captures that lie beside the checkout; none where they do not."""
    found = []
    for file in sorted((SHARED / "corpus").glob("*.jsonl")):
        for case in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            if case.get("status", 200) == 200:
                wire = case["wire"].encode("utf-8", "surrogatepass")
                found.append(Cuttable(f"{file.stem}/{case['id']}", case["protocol"], wire, case.get("tools") or []))
    for file in sorted((SHARED / "captures").glob("*.raw")):
        request = json.loads(file.with_suffix(".json").read_text(encoding="utf-8")).get("request") or {}
        protocol = protocol_of(str(request.get("path")))
        if protocol:
            found += parse_capture(file, protocol, offered_tools(request.get("body")), prefix="shared/")
    return found


def protocol_of(path: str) -> str:
    """The protocol of a request's path; "" when it is none that is read."""
    ends = {"/chat/completions": "openai-chat", "/messages": "anthropic-messages", "/responses": "openai-responses"}
    return next((protocol for end, protocol in ends.items() if path.endswith(end)), "")


def offered_tools(body: object) -> list[dict[str, Any]]:
    """The tools of a recorded request's body."""
    entries = body.get("tools") or [] if isinstance(body, dict) else []
    tools = [entry.get("function") or entry for entry in entries if isinstance(entry, dict)]
    return [
        {"name": tool["name"], "parameters": tool.get("parameters") or tool.get("input_schema") or {"type": "object"}}
        for tool in tools
        if isinstance(tool.get("name"), str)
    ]


def parse_capture(file: Path, protocol: str, tools: list[dict[str, Any]], *, prefix: str = "") -> list[Cuttable]:
    """The body of a recorded answer, if its status was 200."""
    head, _, rest = file.read_bytes().partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1] != b"200":
        return []
    body = b""
    while b"transfer-encoding: chunked" in head.lower() and rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return [Cuttable(f"{prefix}captures/{file.stem}", protocol, body or rest, tools)]


# ---------------------------------------------------------------- cuts


def split_frames(stream: Cuttable) -> list[bytes]:
    """The frames of a stream, each with what separates it from the next."""
    separator = re.compile(rb"\r?\n") if stream.protocol == LINES else BLANK
    ends = [match.end() for match in separator.finditer(stream.wire)]
    starts = [0, *ends]
    frames = (stream.wire[start:end] for start, end in itertools.pairwise([*starts, len(stream.wire)]))
    return [frame for frame in frames if frame]


def cuts_of_bytes(stream: Cuttable, step: int = 1, most: int = 4000) -> Iterator[Cut]:
    """A cut at every `step`th byte; of a stream longer than `most` bytes around every frame's end, and a sample."""
    size = len(stream.wire)
    ends = {0, *itertools.accumulate(len(frame) for frame in split_frames(stream))}
    if size <= most:
        places = set(range(0, size, step)) | {end for end in ends if step == 1 or end % 3 == 0}
    else:
        near = {end + offset for end in ends for offset in (-3, -2, -1, 0, 1, 7)}
        places = {place for place in near if 0 <= place < size} | set(range(0, size, max(step, size // 500)))
        places = set(sorted(places)[::step]) if step > 1 else places
    for place in sorted(places - {size}):
        yield Cut(stream.wire[:place], place in ends)


def cuts_of_texts(stream: Cuttable, step: int = 1, most: int = 4000) -> Iterator[Cut]:
    """A cut at every `step`th character of each text that a frame lets grow: whole frames, the last with a part of its
    text. Of a stream longer than `most` bytes a sample."""
    step = max(step, len(stream.wire) // 1000) if len(stream.wire) > most else step
    before = b""
    for number, frame in enumerate(split_frames(stream)):
        value = parse_frame(frame)
        for path in growing(value):
            text = value_at(value, path)
            for length in range(number % step, len(text), step):
                yield Cut(
                    before + _framed(stream.protocol, frame, shortened(value, path, text[:length])), is_whole=True
                )
        before += frame


def parse_frame(frame: bytes) -> Any:
    """The JSON value of a frame; None when it has none."""
    lines = [line for line in frame.splitlines() if not line.startswith((b"event:", b"id:", b":", b"retry:"))]
    body = b"\n".join(line.removeprefix(b"data:").removeprefix(b" ") for line in lines)
    try:
        return json.loads(body)
    except ValueError:
        return None


#: Keys of texts that grow, where they stand.
GROWS = frozenset({"content", "text", "thinking", "reasoning", "reasoning_content", "arguments", "partial_json"})


def growing(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of the texts that a frame lets grow, in their order."""
    if isinstance(value, dict):
        if str(value.get("type", "")).startswith("response."):
            return [("delta",)] if isinstance(value.get("delta"), str) else []
        found: list[tuple[Any, ...]] = []
        for key in sorted(value, key=lambda key: key == "tool_calls"):
            if isinstance(value[key], str):
                found += [(*path, key)] if key in GROWS else []
            elif key not in ("args", "input", "usage"):
                found += growing(value[key], (*path, key))
        return found
    if isinstance(value, list):
        return [found for number, item in enumerate(value) for found in growing(item, (*path, number))]
    return []


def shortened(value: Any, path: tuple[Any, ...], text: str) -> Any:
    """The value with this text at the path, and nothing that comes after it: no later item or call, no reason."""
    value = copy.deepcopy(value)
    inner = value
    for position, step in enumerate(path):
        if isinstance(inner, list):
            del inner[step + 1 :]
        else:
            for key in ("finish_reason", "finishReason", "done_reason"):
                inner.pop(key, None)
            if inner.get("done"):
                inner["done"] = False
            if step != "tool_calls":
                inner.pop("tool_calls", None)
        if position + 1 < len(path):
            inner = inner[step]
    inner[path[-1]] = text
    return value


def _framed(protocol: str, frame: bytes, value: Any) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode()
    if protocol == LINES:
        return body + b"\n"
    event = next((line for line in frame.splitlines() if line.startswith(b"event:")), b"")
    return (event + b"\n" if event else b"") + b"data: " + body + b"\n\n"


# ---------------------------------------------------------------- endings


def with_ending(stream: Cuttable, cut: Cut, ending: Ending) -> bytes:
    """What came before the cut, and the protocol's own end with this reason behind it."""
    joint = b"" if cut.is_whole else b"\n\n"
    if stream.protocol == "gemini-generate" and stream.wire.lstrip().startswith(b"["):
        return cut.wire
    return cut.wire + joint + ENDS[stream.protocol](cut.wire, ending == "length")


def _event(value: dict[str, Any]) -> bytes:
    head = f"event: {value['type']}\n" if "type" in value else ""
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def _end_of_chat(_: bytes, is_cut: bool) -> bytes:
    reason = "length" if is_cut else "stop"
    return _event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}) + b"data: [DONE]\n\n"


def _end_of_responses(_: bytes, is_cut: bool) -> bytes:
    status = "incomplete" if is_cut else "completed"
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "status": status, "output": []}
    if is_cut:
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    return _event({"type": f"response.{status}", "response": response})


def _end_of_messages(wire: bytes, is_cut: bool) -> bytes:
    values = [value for frame in BLANK.split(wire) if isinstance(value := parse_frame(frame), dict)]
    begun, ended = (
        {value.get("index", 0) for value in values if value.get("type") == kind}
        for kind in ("content_block_start", "content_block_stop")
    )
    still_open = [index for index in begun - ended if isinstance(index, int)]
    stops = [_event({"type": "content_block_stop", "index": index}) for index in sorted(still_open)]
    delta = {"stop_reason": "max_tokens" if is_cut else "end_turn", "stop_sequence": None}
    end = _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    return b"".join(stops) + end + _event({"type": "message_stop"})


def _end_of_gemini(_: bytes, is_cut: bool) -> bytes:
    reason = "MAX_TOKENS" if is_cut else "STOP"
    content = {"role": "model", "parts": [{"text": ""}]}
    return _event({"candidates": [{"content": content, "finishReason": reason, "index": 0}]})


def _end_of_ollama(_: bytes, is_cut: bool) -> bytes:
    reason = "length" if is_cut else "stop"
    value = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
    return json.dumps(value).encode() + b"\n"


ENDS = {
    "openai-chat": _end_of_chat,
    "openai-responses": _end_of_responses,
    "anthropic-messages": _end_of_messages,
    "gemini-generate": _end_of_gemini,
    "ollama-chat": _end_of_ollama,
}

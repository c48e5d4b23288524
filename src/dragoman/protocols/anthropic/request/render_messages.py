"""Render the conversation of a request as blocks of the Messages API.

Results of calls stand first in the user message after the calls; ids have the API's form and are unique; blank text and
thinking without its signature are not sent.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.counterparts import told_type, with_data
from dragoman.codec.cross_protocol_request import is_text, plain_text
from dragoman.codec.parts.history_call_ids import CallIds
from dragoman.deviations import part_path
from dragoman.events import Deviation
from dragoman.protocol import Dialect
from dragoman.protocols.anthropic.wire import NAME, own_fields, read_fields, sent_id
from dragoman.types import Media, Message, Native, Opaque, Part, Request, Text, Thinking, ToolCall, ToolResult

Block: TypeAlias = dict[str, Json]
#: Parts that may become results.
_OTHERS: Final = frozenset({ToolResult, Opaque})


class Turns:
    """Renders the messages of one request.

    Attributes:
        ids: our call ids → those sent.
        sent: the latter.
        numbers: the last one that was appended to a repeated id.
    """

    __slots__ = ("deviations", "dialect", "ids", "numbers", "pairing", "request", "sent")

    def __init__(self, request: Request, dialect: Dialect, deviations: list[Deviation]) -> None:
        self.request = request
        self.dialect = dialect
        self.deviations = deviations
        self.ids: dict[str, str] = {}
        self.sent: set[str] = set()
        self.numbers: dict[str, int] = {}
        self.pairing = CallIds([])  # a result says itself, with its place, that its id changed

    def _say(self, code: str, at: tuple[int, ...], seen: str = "", *, field: str = "") -> None:
        """Note a deviation. `at`: the part, by the numbers of its message, of itself, of what is in it."""
        self.deviations.append(Deviation(code, part_path(at) + field, seen))

    def system(self) -> tuple[list[Block], int]:
        """Return the blocks of the leading system messages, and where the others begin."""
        blocks: list[Block] = []
        for index, message in enumerate(self.request.messages):
            if not _is_prompt(message):
                return blocks, index
            blocks += self._blocks(message, index)
        return blocks, len(self.request.messages)

    def messages(self, first: int) -> list[Block]:
        messages: list[Block] = []
        turn: list[tuple[int, Message]] = []  # what stands between two assistant messages
        for index, message in enumerate(self.request.messages[first:], first):
            if message.role != "assistant":
                turn.append((index, message))
                continue
            messages += self._turn(turn)
            turn = []
            self._add(messages, "assistant", self._blocks(message, index), message.native)
        messages += self._turn(turn)
        return messages

    def _turn(self, turn: list[tuple[int, Message]]) -> list[Block]:
        """Return the messages between two assistant messages. Results stand first, as the API requires."""
        results: list[Block] = []
        messages: list[Block] = []
        for index, message in turn:
            blocks = others = self._blocks(message, index)
            answers: list[Block] = []
            if message.role == "tool" or _OTHERS.intersection(map(type, message.parts)):
                answers = [block for block in blocks if block.get("type") == "tool_result"]
            if answers:
                others = [block for block in blocks if block.get("type") != "tool_result"]
            if answers and messages:
                self._say("moved", (index,), "results stand first")
            results += answers
            if others or not answers:
                self._add(messages, "system" if message.role == "system" else "user", others, message.native)
        if results and messages and messages[0]["role"] == "user":
            messages[0]["content"] = results + messages[0]["content"]
        elif results:
            messages.insert(0, {"role": "user", "content": results})
        return messages

    def _add(self, messages: list[Block], role: str, blocks: list[Block], native: Native | None) -> None:
        if blocks:
            turn: Block = {"role": role, "content": blocks}
            messages.append(turn if native is None else self._with(turn, native))

    def _blocks(self, message: Message, index: int) -> list[Block]:
        said = len(self.deviations)
        blocks: list[Block] = []
        is_prompt = message.role == "system"
        for number, part in enumerate(message.parts):
            if is_prompt and isinstance(part, Media):
                self._say("dropped", (index, number), "a system message is text")
                continue
            block = self._block(part, (index, number))
            if block is not None:
                blocks.append(block)
        if not blocks and len(self.deviations) == said and Opaque not in map(type, message.parts):
            self._say("dropped", (index,), "an empty message")
        return blocks

    def _block(self, part: Part, at: tuple[int, ...]) -> Block | None:
        """Return one block; None for what cannot be expressed or need not be."""
        if isinstance(part, Text):
            if part.signature:
                self._drop_seal(at)
            if part.text and not part.text.isspace():
                block: Block = {"type": "text", "text": part.text}
                return block if part.native is None else self._with(block, part.native)
            if part.text or own_fields(part.native):
                self._say("dropped", at, "white space")  # the API refuses blank blocks
            return None
        if isinstance(part, ToolCall):
            if part.signature:
                self._drop_seal(at)
            return self._call(part, at)
        if isinstance(part, ToolResult):
            return self._result(part, at)
        if isinstance(part, Thinking):
            return self._thinking(part, at)
        if isinstance(part, Media):
            return self._media(part, at)
        fields = read_fields(part.raw) if part.protocol == NAME else None  # of another: `crossing` names it
        return None if fields is None else dict(kept(Native(NAME, fields), self.request))

    def _drop_seal(self, at: tuple[int, ...]) -> None:
        self._say("dropped", at, "only thinking has a seal", field=".signature")

    def _with(self, block: Block, native: Native | None) -> Block:
        return block if native is None else block | kept(native, self.request)

    def _thinking(self, part: Thinking, at: tuple[int, ...]) -> Block | None:
        if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted, **kept(part.native, self.request)}
        if part.signature:
            fields = {"type": "thinking", "thinking": part.text, "signature": part.signature}
            return {**fields, **kept(part.native, self.request)}
        self._say("dropped", at, "thinking without a signature")
        return None

    def _media(self, part: Media, at: tuple[int, ...]) -> Block | None:
        source = _source(part)
        if source is not None and source["type"] == "url" and not self.dialect.supports_image_url:
            source = None
        if source is None or part.kind not in ("image", "document"):
            self._say("dropped", at, f"{part.kind} in this form")
            return None
        return {"type": part.kind, "source": source, **kept(part.native, self.request)}

    def _call(self, part: ToolCall, at: tuple[int, ...]) -> Block:
        id = self.pairing.add_call(part.id, part.name, turn=len(self.sent), number=0)
        sent = first = sent_id(id)
        number = self.numbers.get(first, 1)
        while sent in self.sent:  # ids are unique in a conversation; weak servers count anew in every turn
            number += 1
            sent = sent_id(f"{first}_{number}")
        if number > 1:
            self.numbers[first] = number
        if part.id != sent:
            self._say("changed", at, field=".id")
        self.sent.add(sent)
        self.ids[id] = sent
        arguments: Json = _json.embed(part.arguments)
        if part.kind == "custom" or not isinstance(_json.decode(part.arguments), dict):
            arguments = _json.decode_object(part.arguments)
            if part.kind == "custom" or isinstance(arguments, _json.Malformed):
                self._say("changed", at, "text in place of an object", field=".arguments")
                arguments = {"input": part.arguments}
        fields = {"type": "tool_use", "id": sent, "name": part.name, "input": arguments}
        return self._with(fields, part.native)

    def _result(self, part: ToolResult, at: tuple[int, ...]) -> Block:
        id, _ = self.pairing.add_result(part.call_id, part.name)
        sent = self.ids.get(id) or sent_id(id or "call_unknown")
        if sent != part.call_id:
            self._say("changed", at, field=".call_id")
        content: list[Block] = []
        for number, inner in enumerate(part.parts):
            if (found := self._block(inner, (*at, number))) is not None:
                content.append(found)
        block: Block = {"type": "tool_result", "tool_use_id": sent}
        if content:
            block["content"] = simplest(content)
        if part.is_error:
            block["is_error"] = True
        return self._with(block, part.native)


def _is_prompt(message: Message) -> bool:
    """Return whether a message may stand in `system`, which takes texts and no fields of messages."""
    if message.role != "system" or own_fields(message.native):
        return False
    return Opaque not in map(type, message.parts) or not any(
        type(part) is Opaque and part.protocol == NAME for part in message.parts
    )


def _source(part: Media) -> Block | None:
    """Return the source of an image or document, or None if it has none of the API's forms."""
    part = with_data(part)
    if part.data is not None:
        return _source_of_data(part.data, told_type(part), part.kind)
    url = part.url or ""
    if url[:8].lower().startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    return {"type": "file", "file_id": url} if url and ":" not in url else None


def _source_of_data(data: str, mime: str | None, kind: str) -> Block | None:
    if is_text(mime):
        words = plain_text(mime, data)
        return None if words is None else {"type": "text", "media_type": "text/plain", "data": words}
    guess = "application/pdf" if kind == "document" else "image/png"  # the API takes no block without a type
    return {"type": "base64", "media_type": mime or guess, "data": data}


def kept(native: Native | None, request: Request) -> dict[str, Raw]:
    """Return the native fields that may be sent; no cache marker if none is wanted."""
    if native is None:
        return {}
    fields = own_fields(native)
    if request.params.cache == "none" and "cache_control" in fields:
        return {key: value for key, value in fields.items() if key != "cache_control"}
    return fields


def simplest(blocks: list[Block]) -> Json:
    """Return content as a string if it is one plain text, which every server accepts; else the blocks."""
    if len(blocks) != 1 or len(blocks[0]) != 2 or blocks[0].get("type") != "text":
        return blocks
    return blocks[0]["text"]

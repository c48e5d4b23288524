"""Every place that reads what others wrote, as a function of a text: `PLACES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from cases import counter
from dragoman import _json
from dragoman.agent.safe_text import hidden_character, plain_line, plain_text, revealed_text, shown, told_apart
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed
from dragoman.agent.tools.fetch import check_url, text_of_page
from dragoman.agent.ui import drawing
from dragoman.agent.ui.approval_view import show_action, show_head
from dragoman.agent.ui.blocks import Blocks
from dragoman.bounds import USUAL_BOUNDS
from dragoman.cli.terminal import clip, harmless
from dragoman.client.streaming.partial_arguments import PartialArguments
from dragoman.codec.errors.context_overflow import read_overflow, says_overflow
from dragoman.codec.errors.error_body import read_problem
from dragoman.codec.framing.json_array import ArrayItems
from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.splicing import splice
from dragoman.errors import DragomanError
from dragoman.events import (
    Deviation,
    Event,
    Finish,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from dragoman.gateway.request_bodies import check_shape
from dragoman.history import SignatureVault, fit
from dragoman.offering.restoring import Form, Restored
from dragoman.pipe import Reader
from dragoman.protocol.native_tools import ANY_NAME
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.argument_repair.near_json import read_inner
from dragoman.stages.argument_repair.repairer import Repairer
from dragoman.stages.json_schema import Judge, ToolSchema
from dragoman.stages.known_schemas import schema_of
from dragoman.stages.rescue.cursor import Family
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stage import Rescue
from dragoman.types import Message, Origin, Request, Text, Tool, ToolCall, ToolResult

Place = Callable[[str], object]

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}, "x": {}}}
TOOLS = (Tool("f", "", _json.raw(SCHEMA)), Tool("get_weather", "", _json.raw(SCHEMA)))
NAMES = frozenset(tool.name for tool in TOOLS)
_PATH = "/v1beta/models/m:generateContent"
#: Characters of a delta, of a piece of the wire.
_DELTA, _WIRE = 48, 200


def pieces(text: str, size: int = _DELTA) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def said(text: str, *, thinking: bool = False) -> list[list[Event]]:
    """An answer that says a text in deltas."""
    start, delta, end = (ThinkingStart, ThinkingDelta, ThinkingEnd) if thinking else (TextStart, TextDelta, TextEnd)
    middle: list[list[Event]] = [[delta(0, piece)] for piece in pieces(text)]
    return [[Start("r", "m", 1), start(0)], *middle, [end(0), Finish("stop")]]


def called(text: str, size: int = _DELTA) -> list[list[Event]]:
    """An answer that calls with these arguments, as they stand."""
    middle: list[list[Event]] = [[ToolCallDelta(0, piece)] for piece in pieces(text, size)]
    start: list[Event] = [Start("r", "m", 1), ToolCallStart(0, "call_1", "f")]
    return [start, *middle, [ToolCallEnd(0, ToolCall("call_1", "f", text)), Finish("tool_use")]]


def through(policy: Policy, *, thinking: bool = False) -> Place:
    """All stages, after one another."""

    def run(text: str) -> None:
        stages = stages_for(TOOLS, policy, new_id=counter())
        for events in said(text, thinking=thinking):
            for stage in stages:
                events = stage.feed(events)

    return run


def told_again(text: str) -> None:
    """Texts that later ones contradict, with all stages behind."""
    stages = stages_for(TOOLS, Policy(), new_id=counter())
    differ = [Deviation("final-differs", texts=(text[at:], text)) for at in range(1, 21)]
    first, *rest = said(text)
    for events in ([*first, *differ], *rest):
        for stage in stages:
            events = stage.feed(events)


def family_place(family: Family) -> Place:
    def run(text: str) -> None:
        # one with a marker, as there always is
        stage = Rescue(TOOLS, (FAMILIES[0], family), new_id=counter(), most_values=1 << 16)
        for events in said(text):
            stage.feed(events)

    return run


def wire_place(protocol: str, make: Callable[[str], list[list[Event]]]) -> Place:
    """The protocol's encoder, and its decoder with every stage behind it."""

    def run(text: str) -> None:
        encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1)
        reader = reader_of(protocol)
        for events in make(text):
            reader.feed(encoder.encode(events))
        reader.close()

    return run


def reader_of(protocol: str, argument_values: int = USUAL_BOUNDS.argument_values) -> Reader:
    """A decoder with every stage behind it."""
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=NAMES)
    policy = Policy(sequential=True, argument_values=argument_values)
    return Reader(decoder, stages_for(TOOLS, policy, new_id=counter()))


def raw_place(protocol: str, first: str) -> Place:
    """The text itself is the body of a response."""

    def run(text: str) -> None:
        reader = reader_of(protocol)
        for piece in pieces(first + text, _WIRE):
            reader.feed(piece.encode("utf-8", "replace"))
        reader.close()

    return run


def request_place(protocol: str) -> Place:
    """The text is a body; is what a user says; is the arguments of a call."""

    def run(text: str) -> None:
        wire = PROTOCOLS[protocol]
        call = Message("assistant", (ToolCall("call_1", "f", text),))
        messages = (Message("user", (Text(text),)), call, Message("tool", (ToolResult("call_1", "f", (Text(text),)),)))
        fitted, _ = fit(Request("m", messages, TOOLS), protocol=wire.name)
        said = wire.render_request(fitted).http.body
        for body in (text.encode("utf-8", "replace"), said):
            with suppress(DragomanError):
                wire.parse_request(body, path=_PATH)
            wire.peek(body, path=_PATH)
            wire.check_whole(body)
        wire.parse_error(400, text.encode("utf-8", "replace"))

    return run


def _json_place(text: str) -> None:
    data = text.encode("utf-8", "replace")
    for read in (_json.decode, _json.is_json, _json.decode_lenient, _json.compact):
        read(data)
    for read_text in (_json.decode_object, _json.is_object, _json.decode_exact, _json.embed,
                      _json.read_number, _json.whole_characters, _json.encode_text):  # fmt: skip
        read_text(text)
    _json.split_values(text, "Extra data")
    splice(data, {"a": 1})


def _vault_place(text: str) -> None:
    vault = SignatureVault()
    answer = Message("assistant", (ToolCall("c" * 20, "f", text, signature=text),), origin=Origin("gemini-generate"))
    request = Request("m", (Message("user", (Text(text),)),))
    vault.note(request, answer)
    call = Message("assistant", (ToolCall("c" * 20, "f", text),))
    vault.restore(Request("m", (*request.messages, call)))


def _page_place(text: str) -> None:
    text_of_page(text)
    with suppress(ToolFailed):
        check_url("https://example.com/" + text[:1000])


def _terminal_place(text: str) -> None:
    plain_text(text), plain_line(text), shown(text), revealed_text(text), told_apart(text), hidden_character(text)
    blocks = Blocks()
    for piece in pieces(text):
        blocks.add(piece)


def _approval_place(text: str) -> None:
    for diff in ("", f"--- a\n+++ b\n+{text}"):
        plan = Plan("run", "run", (), text, "", _nothing, diff=diff)
        show_action(plan, width=80, height=24)
        show_head(plan, width=80)
        drawing._title_of(plan)
    drawing.draw_diff(text), drawing._indented(drawing._clip(text, 12)), drawing._first(text, 3)


async def _nothing() -> Outcome:
    return Outcome("")


def _command_place(text: str) -> None:
    harmless(text), clip(text, 80)


def _restored_place(text: str) -> None:
    for arguments in (text, _json.encode({"input": text.encode("utf-8", "replace").decode()}).decode()):
        for form in (Form("g", is_custom=True), Form("g")):
            stage = Restored({"f": form}, ANY_NAME)
            for events in called(arguments):
                stage.feed(events)


def _arguments_place(text: str) -> None:
    for size in (_DELTA, len(text) or 1):
        reader, partial = ArgumentText(), PartialArguments()
        for piece in pieces(text, size):
            reader.add(piece)
            partial.feed(piece)
        reader.settle(proven=False)


def _items_place(text: str) -> None:
    items = ArrayItems()
    for piece in pieces("[" + text, _WIRE):
        list(items.feed(piece.encode("utf-8", "replace")))


def _problem_place(text: str) -> None:
    read_problem(text.encode("utf-8", "replace"), status=400)
    failure = read_problem({"error": {"message": text}}, status=400)
    says_overflow(failure.message), read_overflow(failure.message)


def _body_place(text: str) -> None:
    for first in ("", '{"a":', "[" * 130 + '"'):
        with suppress(DragomanError):
            check_shape((first + text).encode("utf-8", "replace"))


def _schema_place(text: str) -> None:
    schema = schema_of(TOOLS[0])
    schema.takes_as_is(text)
    value = _json.decode_object(text)
    if isinstance(value, dict):
        Judge(schema, len(text)).coerced(value, SCHEMA, read_inner=read_inner)


#: Lists of itself in two ways, or whole numbers: each level of a value doubles what there is to look at.
_LISTS = {"type": "array", "items": {"$ref": "#"}}
_UNION = ToolSchema({"additionalProperties": {"$ref": "#"}, "anyOf": [_LISTS, {**_LISTS}, {"type": "integer"}]})


def _union_place(text: str) -> None:
    _UNION.takes_as_is(text)
    repairer = Repairer(_UNION)
    for piece in pieces(text):
        repairer.feed(piece)
    repairer.close()


PLACES: dict[str, Place] = {
    "stages": through(Policy(sequential=True)),
    "stages, told again": told_again,
    "stages, thinking": through(Policy(sequential=True), thinking=True),
    "stages, asked by schema": through(Policy(way="schema")),
    "stages, asked in the prompt": through(Policy(way="prompted")),
    "stages, arguments whole": through(Policy(arguments="whole")),
    "json": _json_place,
    "inner json": lambda text: read_inner(text, frozenset({"a"})),
    "arguments' text": _arguments_place,
    "items of an array": _items_place,
    "schema": _schema_place,
    "schema of unions": _union_place,
    "vault": _vault_place,
    "page": _page_place,
    "restored calls": _restored_place,
    "terminal": _terminal_place,
    "approval": _approval_place,
    "command": _command_place,
    "problem": _problem_place,
    "body": _body_place,
    **{f"family {family.name}": family_place(family) for family in FAMILIES},
    **{f"{name} says": wire_place(name, said) for name in PROTOCOLS},
    **{f"{name} calls": wire_place(name, called) for name in PROTOCOLS},
    **{f"{name} requests": request_place(name) for name in PROTOCOLS},
    **{
        f"{name} sends {first!r}": raw_place(name, first)
        for name in PROTOCOLS
        for first in ("", "data: ", '{"a":"', "[")
    },
}
#: What a place's text begins with, beside nothing.
BEGINNINGS: dict[str, tuple[str, ...]] = {
    **{
        f"family {family.name}": tuple(f"{family.openers[0]}{more}" for more in ("", '{"name":"f","arguments":{"a":"'))
        for family in FAMILIES
    },
    # They let go of most other texts at the first character.
    "inner json": ("[", "{", '{"a":'),
    "json": ("", "[", "{"),
}

"""The work for a request or an answer grows with what it has, wherever its values come from: an entry point that takes
parsed values and is met by no row of `parsed_values.py` fails here.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import count
from types import FrameType
from typing import Any, Final

import msgspec

from asked.asking import VENDORS, configured, exchange
from dragoman import _json
from dragoman.client.exchange import Exchange
from dragoman.client.request.forwarding import ClientHead
from dragoman.client.request.tool_mode import first_attempt, next_attempt
from dragoman.errors import DragomanError
from dragoman.events import Event, Failure, Finish, Start, fold
from dragoman.history import SignatureVault
from dragoman.history.signature_vault import keys_of
from dragoman.offering.restoring import Form, Restored
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve
from dragoman.stages.argument_repair.repairer import Repairer
from dragoman.stages.known_schemas import schema_of
from dragoman.stages.schema_words import describes, is_explained, is_template
from dragoman.tool_emulation import without_tools
from dragoman.types import ProtocolName, Request
from growth import steps_of
from parsed_values import ANSWERS, BODIES, REQUESTS
from patterns import ROOT
from profiles import IS_SOAK

#: Members. From one size to the next of the first three, linear work grows by the same number of lines, but for a few;
#: where it does not, two larger ones decide whether that was a bound that is reached once.
SIZES, LARGER = (6, 12, 18), (96, 384)
MOST_BENT, MOST_GROWTH = 16, 4**1.2

#: Where values are taken that a client or a provider wrote, already parsed.
ROOMS: Final = (
    "history/**/*.py", "offering/*.py", "tool_emulation/*.py", "codec/schemas/*.py", "codec/hosted/*.py",
    "codec/cross_protocol*.py", "codec/counterparts.py", "codec/parts/history_call_ids.py", "client/request/*.py",
    "protocols/*/request/*.py", "protocols/*/response/encode.py",
    "stages/json_schema.py", "stages/schema_words.py", "stages/known_schemas.py", "token_estimate.py",
)  # fmt: skip
#: Types of such values.
PARSED: Final = frozenset({
    "Any", "Event", "Json", "Message", "Params", "Part", "Placed", "Reply", "Request", "Schema", "Tool", "ToolCall",
    "ToolResult",
})  # fmt: skip
#: Functions that take such a value and are met by no row, with the reason.
UNMET: Final = {
    "codec/hosted/found_files.py read_citation": "an answer's file, read from bytes: many_items.py",
    "protocols/openai_responses/request/namespaces.py offered_name": "an answer's call, read from bytes: many_items.py",
    "protocols/openai_responses/request/files_and_images.py write_image_generation": "one tool",
    "protocols/anthropic/request/claude_models.py takes_thinking": "one field",
}


def entry_points(path: str, source: str) -> set[str]:
    """The functions and methods of a file, not its private ones, that take a parsed value."""
    return {
        f"{path} {node.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.name != "feed"  # has its row in `test_linear_time.py`
        and any(
            isinstance(name, ast.Name) and name.id in PARSED
            for given in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            if given.annotation is not None
            for name in ast.walk(given.annotation)
        )
    }  # fmt: skip


def asks(target: str, mode: str, client: ProtocolName) -> Callable[[Request], None]:
    """A request on its way to a target, and what is sent, read again."""
    found = msgspec.structs.replace(resolve(target, configured()), tools=mode)
    protocol = found.protocol

    def run(request: Request) -> None:
        numbers = count()
        with suppress(DragomanError):
            made = Exchange(found, request, new_id=lambda: f"{next(numbers):024d}", head=ClientHead(client, {}))
            path = "/v1beta/models/m:generateContent" if protocol.name == "gemini-generate" else ""
            protocol.parse_request(made.outgoing.body, path=path)

    return run


def remembers(request: Request) -> None:
    """The signatures of its last answer, kept and put back."""
    vault = SignatureVault()
    for message in [each for each in request.messages if each.role == "assistant"][-1:]:
        vault.note(request, message)
        watch = vault.watch(request)
        watch.add([Start("r", "m", 1), Finish("stop")])
        watch.keep()
    vault.restore(request)
    keys_of(request)


def judges(request: Request) -> None:
    """Values of a call by a tool's schema."""
    for tool in request.tools if request.params.response_schema else ():
        schema = schema_of(tool)
        for value in ('{"a":{"a":[1,"2"]},"p1":"3"}', '{"a":[[[{"a":{}}]]],"p0":{"q1":1},"k":"1"}'):
            schema.takes_as_is(value)
            repairer = Repairer(schema)
            repairer.feed(value.replace('"', "'"))
            repairer.close()
            said = _json.decode(value)
            describes(said, schema), is_template(said, schema), is_explained(said, schema)


def asks_again(request: Request) -> None:
    """The second way of asking a server that refuses tools."""
    target = msgspec.structs.replace(resolve(VENDORS["ollama-chat"], configured()), tools="auto")
    with suppress(DragomanError):
        next_attempt(target, request, first_attempt(target, request), _REFUSED)
        without_tools(request)


_REFUSED: Final = Failure("bad_request", "model does not support tools", 400)
#: Client's protocol → the next one's vendor, in each way of asking for tools.
_NAMES: Final = [*VENDORS]
ASKS: Final = {
    **{name: asks(target, "native", _NAMES[place - 1]) for place, (name, target) in enumerate(VENDORS.items())},
    "prompted": asks(VENDORS["ollama-chat"], "prompted", "openai-chat"),
    "schema": asks(VENDORS["openai-chat"], "schema", "anthropic-messages"),
    "marked": asks("openrouter/m", "native", "openai-chat"),
    "again": asks_again,
    "remembers": remembers,
    "judges": judges,
}


def reads(target: str) -> Callable[[tuple[ProtocolName, Any]], None]:
    """A client's body on its way to a target."""

    def run(body: tuple[ProtocolName, Any]) -> None:
        with suppress(DragomanError):
            exchange(*body, target)

    return run


READS: Final = {name: reads(target) for name, target in VENDORS.items()}


def writes(protocol: ProtocolName) -> Callable[[list[Event]], None]:
    """An answer written in pieces and as a whole."""

    def run(events: list[Event]) -> None:
        numbers = count()
        wire = PROTOCOLS[protocol]
        wire.encoder(new_id=lambda: f"{next(numbers):024d}", model="m", created=1).encode(events)
        with suppress(DragomanError):
            wire.render_response(fold(events), new_id=lambda: f"{next(numbers):024d}", model="m", created=1)

    return run


def restores(**more: Any) -> Callable[[list[Event]], None]:
    """Calls in a client's form."""

    def run(events: list[Event]) -> None:
        stage = Restored({"f": Form("f", **more)}, PROTOCOLS["openai-responses"].tools)
        stage.as_sent(stage.feed(events))

    return run


WRITES: Final = {
    **{name: writes(name) for name in PROTOCOLS},
    "restores": restores(is_custom=True),
    "restores a shell's": restores(kind="local_shell"),
}
#: Of the other ways, `make test` tries one of two for each value.
_STEP: Final = 1 if IS_SOAK else 2
_KINDS: Final[tuple[tuple[dict[str, Any], dict[str, Any]], ...]] = (
    (REQUESTS, ASKS),
    (BODIES, READS),
    (ANSWERS, WRITES),
)


def rows() -> Iterator[tuple[str, str, Callable[[int], Any], Callable[[Any], None]]]:
    """Each value, and each place that takes it."""
    for values, places in _KINDS:
        for number, (name, make) in enumerate(values.items()):
            for way, (place, run) in enumerate(places.items()):
                if place in PROTOCOLS or (number + way) % _STEP == 0:
                    yield name, place, make, run


@cache
def tried() -> tuple[list[object], set[str]]:
    """What grows by more than its members, and the functions of ours that were called."""
    wrong: list[object] = []
    names: set[tuple[str, str]] = set()

    def note(frame: FrameType, kind: str, argument: Any) -> None:
        if kind == "call":
            names.add((frame.f_code.co_filename, frame.f_code.co_name))

    for name, place, make, run in rows():
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            run(make(SIZES[0]))  # caches fill, too
        finally:
            sys.setprofile(before)
        lines = [steps_of(partial(run, make(size))) for size in SIZES]
        if lines[2] - lines[1] > lines[1] - lines[0] + MOST_BENT:
            few, many = (steps_of(partial(run, make(size))) for size in LARGER)
            wrong += [(name, place, *lines, few, many)] if many > MOST_GROWTH * few else []
    return wrong, {f"{file.removeprefix(f'{ROOT}/')} {name}" for file, name in names}


def test_the_work_grows_with_the_values() -> None:
    assert tried()[0] == []


def test_every_entry_point_has_a_row() -> None:
    paths = {path for pattern in ROOMS for path in ROOT.glob(pattern)}
    found = {
        each for path in paths for each in entry_points(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    }
    assert found - tried()[1] == UNMET.keys(), "without a row in parsed_values.py, or with one and still here"
    # One that is added is noticed, however it takes its values.
    for added in (
        "def fit(tools: Sequence[Tool]) -> None: ...",
        "class A:\n  def add(self, *, part: Part | None): ...",
    ):
        assert entry_points("history/fit.py", added) and not entry_points("a.py", added.replace("def ", "def _"))

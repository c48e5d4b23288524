"""What becomes of each field of an answer, whole and in a stream, in each protocol: kept, said elsewhere, named as
lost, or silent."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any, Final, NamedTuple

import dragoman
import vendor_answers
import vendor_streams
from cases import counter
from dragoman.bounds import USUAL_BOUNDS
from dragoman.events import Deviation, Event, Failure, fold, unfold
from dragoman.pipe import Reader
from dragoman.protocol import ReplyStyle
from dragoman.protocols import PROTOCOLS
from dragoman.stages.sequencer import Sequencer
from field_fates import Fate, is_named, is_written, leaves_of, places_of
from grammar import check
from vendor_types import Case, Json

#: How an answer is read and written: "whole", whole and "unfolded" into a stream, as a "stream".
FORMS: Final = ("whole", "unfolded", "stream")
#: A client that knows all that its protocol has: of Messages, the blocks of MCP servers, which it named.
STYLE: Final = ReplyStyle(knows_servers=True)


class Written(NamedTuple):
    """An answer in another protocol: its bytes as text, and what they could not say."""

    text: str
    lost: tuple[Deviation, ...]


def passed(data: bytes, source: str, target: str) -> tuple[list[Event], str, list[Deviation]]:
    """The events of a stream, the bytes in another protocol, and what these could not say."""
    reader = Reader(PROTOCOLS[source].decoder(new_id=counter(), bounds=USUAL_BOUNDS), [Sequencer()])
    encoder = PROTOCOLS[target].encoder(new_id=counter(), model="m", created=1, style=STYLE)
    events: list[Event] = []
    out = b""
    for frame in [*data.split(b"\n\n"), b""]:
        came = reader.feed(frame + b"\n\n") if frame else reader.close()
        events += came
        out += encoder.encode(came)
    check(events)
    return events, out.decode(), list(encoder.lost)


def _ids() -> str:
    return "0" * 24


@cache
def _read(body: str, source: str) -> dragoman.Reply[Any] | None:
    """A whole answer; None where it is an error, which has no fields, or holds a call that failed."""
    reply = dragoman.decode(body.encode(), source)
    return None if isinstance(reply.error, Failure) or reply.failed_calls else reply


def write(body: str, source: str, target: str, form: str) -> Written | None:
    """An answer of `source` in `target`. `body`: its JSON text, of a stream the list of its events. None: it failed."""
    if form == "stream":
        events, text, lost = passed(vendor_streams.stream(json.loads(body), source), source, target)
        if type(events[-1]) is Failure or fold(events).failed_calls:
            return None
        return Written(text, tuple(lost))
    reply = _read(body, source)
    if reply is None:
        return None
    protocol, lost = PROTOCOLS[target], list(reply.deviations)
    if form == "whole":
        return Written(
            protocol.render_response(reply, new_id=_ids, model="m", created=1, style=STYLE, lost=lost).decode(),
            (*lost,),
        )
    encoder = protocol.encoder(new_id=_ids, model="m", created=1, style=STYLE)
    text = encoder.encode(unfold(reply)).decode()
    return Written(text, (*lost, *encoder.lost))


#: What a response repeats of its request: its words are the client's own.
_REPEATED: Final = ("tools", "instructions", "tool_choice")


@cache
def cases(source: str, form: str) -> list[Case]:
    """Every field of the answers of a protocol, of whole ones every word of an enumeration too; for "stream", of the
    events of its streams."""
    if form == "stream":
        return list(vendor_streams.cases(source))
    if form == "unfolded":
        return list(vendor_answers.cases(source))
    found = vendor_answers.cases(source, words=True)
    return [case for case in found if case.is_marked or not case.path.startswith(_REPEATED)]


@cache
def fates(source: str, target: str, form: str) -> list[tuple[Case, Fate]]:
    """Every field, and what becomes of it; without those whose answer failed, which tell nothing."""
    found = ((case, fate(case, source, target, form)) for case in cases(source, form))
    return [(case, told) for case, told in found if told is not None]


def fate(case: Case, source: str, target: str, form: str) -> Fate | None:
    """What becomes of a field; None where its answer failed, which tells nothing."""
    written = write(json.dumps(case.body), source, target, form)
    if written is None:
        return None
    if not case.is_marked:
        return _fate_of_word(case, written, _base(json.dumps(case.base), source, target, form))
    if is_written(case, written.text):
        paths = sorted({path for body in _bodies(written.text) for path in places_of(case, body)})
        if any(case.key in path.replace("[]", "").split(".") for path in paths) or source == target:
            return Fate("kept")
        return Fate("becomes", tuple(paths))
    return _unwritten(case, written)


@cache
def _base(body: str, source: str, target: str, form: str) -> Counter[tuple[str, str]] | None:
    written = write(body, source, target, form)
    return None if written is None else _leaves(written)


def _fate_of_word(case: Case, written: Written, before: Counter[tuple[str, str]] | None) -> Fate | None:
    """Of a value that stands elsewhere too: what the answer has more than one without it."""
    if before is None:
        return None
    after = _leaves(written)
    gained = sorted({path for path, _ in after - before})
    if gained:
        is_kept = any(case.key in path.replace("[]", "").split(".") for path in gained)
        return Fate("kept") if is_kept else Fate("becomes", tuple(gained))
    gone = sorted({path for path, _ in before - after})
    found = _unwritten(case, written)
    return Fate("becomes", tuple(gone)) if gone and found.kind == "silent" else found


def _unwritten(case: Case, written: Written) -> Fate:
    named = sorted({said.where for said in written.lost if is_named(said, case)})
    return Fate("named", tuple(named)) if named else Fate("silent")


def _leaves(written: Written) -> Counter[tuple[str, str]]:
    return Counter(leaf for body in _bodies(written.text) for leaf in leaves_of(body))


def _bodies(text: str) -> list[Json]:
    """The JSON bodies of an answer: one, or one an event."""
    if text.startswith("{") and "\n{" not in text.strip():
        return [json.loads(text)]
    lines = [line.removeprefix("data:").strip() for line in text.splitlines() if not line.startswith("event:")]
    return [json.loads(line) for line in lines if line.startswith("{")]

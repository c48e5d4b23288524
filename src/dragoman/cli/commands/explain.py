"""Tell what becomes of a request for a target, field by field: what is sent, said otherwise or lost, and why.

Nothing is sent, and no key is needed. The request is a client's body as it came (`dragoman record` keeps them).
No value of it is printed, its paths alone. What is "implied" has no field of its own: the sent request says it by its
form, or by leaving something out. With --id it tells what the gateway's log has of a request that was made:
where it went, and what of it was not passed on. The log keeps no bodies.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.cli.body_input import add_file, name_of, read_protocol, read_whole, write_json
from dragoman.cli.logged_request import explain_logged
from dragoman.cli.main import DONE
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import harmless
from dragoman.client.exchange import Exchange
from dragoman.client.request.forwarding import ClientHead
from dragoman.client.started_servers import check_target
from dragoman.config import Config
from dragoman.errors import DragomanError, UsageError, WireError
from dragoman.events import Deviation, Failure
from dragoman.ids import new_id
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.recognize import SHORT_NAMES
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.routing.target import Target
from dragoman.secret import Secret
from dragoman.types import ProtocolName

EXAMPLE = (
    "  dragoman explain --from responses --to anthropic/claude-sonnet-4-5 body.json\n"
    "  dragoman explain --id kQ2v8TzD1xWm4RbY7cHn0sLa --log gateway.log"
)

_INDEX: Final = re.compile(r"\[\d*\]")
_WORD: Final = re.compile(r"[^.<>\[\]]+")
#: Words of our own in a deviation's path, which no wire has.
_OURS: Final = frozenset({"params", "parts", "native", "messages", "input", "contents"})
_LOST: Final = frozenset({"dropped", "untranslated"})
#: Values that stand in many fields tell nothing of where one went.
_COMMON: Final = frozenset(map(_json.to_text, (None, True, False, 0, 1, "", "auto", "text", "function", "user")))
_DEEPEST: Final = 32
#: Characters of a key that are shown, and of a path below which nothing is looked into: each path is a text of its own.
_LONGEST_KEY, _LONGEST_PATH = 100, 300
#: Fields that are left out, one at a time, to see what is said of them.
_TRIALS: Final = 64
_STEP: Final = re.compile(r"\[\]|[^.\[\]]+")
#: What a deviation tells of a part whose words stand in a text, and the least JSON text that is looked for in one.
_AS_TEXT: Final = "said as text"
_TELLING: Final = len('"abcd"')
_Places: TypeAlias = dict[str, list[str]]
_PLACELESS: Final = ("implied", "changed")
#: Places that are shown of a value that stands elsewhere.
_SHOWN: Final = 3


@final
class Fate(msgspec.Struct, frozen=True):
    """What happens to one field. Its path has `[]` for every item of a list.

    `fate` is "sent" in its place, "elsewhere" (at `paths`), "changed" or "lost" (`why`), or "implied": the sent request
    says it without a field of its own, as a default or by its form.
    """

    field: str
    fate: str
    paths: tuple[str, ...] = ()
    why: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--from", dest="source", metavar="P", type=read_protocol,
        help=f"the protocol of the request: {', '.join(PROTOCOLS)}, or in short {', '.join(SHORT_NAMES)}",
    )  # fmt: skip
    parser.add_argument("--to", dest="target", metavar="TARGET", help="provider/model, or a route")
    parser.add_argument(
        "--id", metavar="ID", help="a request's id: of x-request-id, the client's own or the provider's"
    )
    parser.add_argument(
        "--log", metavar="FILE", help="where --id looks; - is standard input (default: the file of server.log)"
    )
    parser.add_argument(
        "--path", default="", metavar="PATH", help="the path it was sent to, where that names the model"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_file(parser)
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Explain."""
    if options.id is not None:
        return explain_logged(options.id, options.log or load_settings(options).server.log, as_json=options.json)
    if options.source is None or options.target is None:
        raise UsageError("expected --from PROTOCOL and --to TARGET for a body, or --id ID for a request in the log")
    config = _with_keys(load_settings(options))
    target = resolve(options.target, config)
    check_target(target.name, config)
    path = options.path or "/v1beta/models/m:generateContent"
    body = read_whole(options.file)
    try:
        url, sent, deviations = _render(body, options.source, target, path)
    except WireError as problem:
        raise DragomanError(f"{name_of(options.file)}: {problem}") from None

    def render(tried: Json) -> tuple[Json, list[Deviation]]:
        return _render(_json.encode(tried), options.source, target, path)[1:]

    asked = _json.decode(body)
    fates = find_unnamed(fates_of(asked, sent, deviations), asked, (sent, deviations), render)
    if options.json:
        notes = [msgspec.structs.asdict(each) for each in deviations]
        fields = [msgspec.structs.asdict(each) for each in fates]
        found: Json = {"target": target.name, "protocol": target.protocol.name, "url": url}
        write_json(found | {"fields": fields, "deviations": notes})
        return DONE
    print(f"{target.name}, asked in {target.protocol.name} at {harmless(url)}")
    width = max((len(each.field) for each in fates), default=0)
    for each in fates:
        where = f" as {', '.join(each.paths)}" if each.paths else ""
        why = f": {each.why.replace(f' {each.field}:', ':', 1)}" if each.why else ""  # its path stands before it
        print(harmless(f"  {each.field:<{width}}  {each.fate}{where}{why}"))
    for said in deviations:
        print(harmless(f"  {said.severity}: {_said(said)}"))
    return DONE


def _render(body: bytes, source: ProtocolName, target: Target, path: str) -> tuple[str, Json, list[Deviation]]:
    """Return the URL and body that would be sent for a request, with the deviations. Raises WireError."""
    parsed = PROTOCOLS[source].parse_request(body, path=path)
    head = ClientHead(source, {})
    exchange = Exchange(target, with_defaults(parsed.request, target), new_id=new_id, head=head)
    url, sent = exchange.outgoing.url.partition("?")[0], _json.decode(exchange.outgoing.body)
    told = exchange.fail(Failure("connection", "nothing is sent"))
    return url, sent, [*parsed.deviations, *(event for event in told if type(event) is Deviation)]


def _with_keys(config: Config) -> Config:
    """Return the settings with a key for every provider. Nothing is sent, so none is needed."""
    keys = {name: Secret("not sent") for name in config.catalog.providers}
    return msgspec.structs.replace(config, keys=keys | config.keys, unread_keys={})


def fates_of(asked: Json, sent: Json, deviations: list[Deviation]) -> list[Fate]:
    """Return the fate of each field of a request."""
    at: dict[str, set[str]] = {}
    for path, value, _ in _leaves(sent):
        at.setdefault(path, set()).add(value)
    places: dict[str, list[str]] = {}
    for path in sorted(at):
        for value in at[path] - _COMMON:
            first = places.setdefault(value, [])
            if len(first) < _SHOWN:
                first.append(path)
    ends: dict[str, list[str]] = {}
    for path in sorted(at):
        alike = ends.setdefault(_end(path), [])
        if len(alike) < _TRIALS:
            alike.append(path)
    fields: dict[tuple[str, str], list[str]] = {}
    leaves = list(_leaves(asked))
    told = _Told(deviations, {path for path, _, _ in leaves})
    for path, value, kind in leaves:
        fields.setdefault((path, kind if told.names_kind(kind) else ""), []).append(value)
    found = [_fate(path, kind, values, at, (places, ends), told) for (path, kind), values in fields.items()]
    if any(said.seen == _AS_TEXT for said in deviations):
        placeless = [number for number, each in enumerate(found) if not each.paths and each.fate in _PLACELESS]
        values_of = list(fields.values())
        for number in placeless[:_TRIALS]:
            found[number] = _in_texts(found[number], values_of[number], at)
    return found


def _end(path: str) -> str:
    """Return a path's last two steps: a schema keeps them wherever it stands."""
    return ".".join(path.split(".")[-2:])


def _in_texts(fate: Fate, values: list[str], at: dict[str, set[str]]) -> Fate:
    """Return the fate of a field whose values may stand in longer texts of what is sent, as what a search found."""
    words = [value[1:-1] for value in values[:_SHOWN] if value[:1] == '"' and len(value) >= _TELLING]
    if not words or fate.field.partition(" <")[0].rpartition(".")[2] in ("role", "type"):
        return fate
    paths = [path for path, texts in at.items() if any(word in text for text in texts for word in words)]
    return Fate(fate.field, "elsewhere", tuple(sorted(paths)[:_SHOWN]), fate.why) if paths else fate


def _fate(
    path: str, kind: str, values: list[str], at: dict[str, set[str]], paths: tuple[_Places, _Places], told: _Told
) -> Fate:
    """Return one field's fate. `kind` is the type of the object that contains the field, if a deviation names it.

    `paths`: of what is sent, those at which a telling value stands, and those that end alike.
    """
    said = told.of(path, kind)
    places, ends = paths
    alike = [place for place in ends.get(_end(path), ()) if all(value in at[place] for value in values)]
    if kind:
        path = f"{path} <{kind}>"
    why = "" if said is None else _said(said)
    if all(value in at.get(path, ()) for value in values):
        return Fate(path, "sent")
    if said is not None and said.code in _LOST:
        return Fate(path, "lost", (), why)
    others = sorted({place for value in values for place in places.get(value, ())})
    if others:
        return Fate(path, "elsewhere", tuple(others[:_SHOWN]), why)
    if alike and said is None and path not in at:
        return Fate(path, "elsewhere", tuple(alike[:_SHOWN]))
    if said is not None or path in at:
        return Fate(path, "changed", (path,) if path in at else (), why)
    return Fate(path, "implied")


def find_unnamed(
    fates: list[Fate],
    asked: Json,
    rendered: tuple[Json, list[Deviation]],
    render: Callable[[Json], tuple[Json, list[Deviation]]],
) -> list[Fate]:
    """Return the fates, with those fields lost or changed that a deviation names in other words.

    A deviation names a field if it disappears when the field is left out. A field is lost if, besides, what is sent
    stays the same without it, or without the object that contains it. Else another field is lost because of this one.

    Args:
        rendered: what is sent, and the deviations.
        render: returns the same of another request; raises WireError or UsageError for no request.
    """
    sent, deviations = rendered
    tried: dict[tuple[str, ...], Deviation | None] = {}

    def names(steps: tuple[str, ...], *, is_field: bool) -> Deviation | None:
        try:
            less, left = render(_without(asked, steps))
        except (WireError, UsageError):  # without it, nothing can be asked
            return None
        gone = (said for said in deviations if said not in left)
        return next((said for said in gone if less == sent or (is_field and said.code not in _LOST)), None)

    found: dict[Fate, Fate] = {}
    for each in fates if deviations else ():
        if each.fate != "implied":
            continue
        field = tuple(_STEP.findall(each.field.partition(" <")[0]))
        for steps in (field, field[:-1]):
            if steps and steps not in tried and len(tried) < _TRIALS:
                tried[steps] = names(steps, is_field=steps is field)
            named = tried.get(steps)
            if named is not None:
                found[each] = Fate(each.field, "lost" if named.code in _LOST else "changed", (), _said(named))
                break
    return [found.get(each, each) for each in fates]


def _without(value: Json, steps: Sequence[str]) -> Json:
    """Return the value without what stands at a path."""
    if isinstance(value, list) and steps[0] == "[]":
        return [_without(inner, steps[1:]) for inner in value] if steps[1:] else []
    if not isinstance(value, dict):
        return value
    kept = {key: inner for key, inner in value.items() if steps[1:] or key != steps[0]}
    return {key: _without(inner, steps[1:]) if key == steps[0] else inner for key, inner in kept.items()}


def _said(deviation: Deviation) -> str:
    return f"{deviation.code} {deviation.where}{': ' if deviation.seen else ''}{deviation.seen}"


class _Told:
    """Finds the deviation that names a field: one that spells its whole path names no other, else the last word
    decides.

    It looks up by words, because a request may have thousands of fields and as many deviations.
    """

    def __init__(self, deviations: list[Deviation], paths: set[str]) -> None:
        self._deviations = deviations
        self._by_path: dict[str, int] = {}  # of the first that spells most of it
        self._by_word: dict[str, int] = {}  # of the first whose last word it is, and which spells no path
        self._by_kind: dict[str, int] = {}  # of the first whose last word it is
        self._words = {path: _words_of(path) for path in paths}
        having: dict[str, list[str]] = {}
        for path, words in self._words.items():
            for word in dict.fromkeys(words):
                having.setdefault(word, []).append(path)
        spelled: dict[tuple[str, ...], list[str]] = {}
        most: dict[str, int] = {}  # words of a path that are spelled
        for number, each in enumerate(deviations):
            said = tuple(_words(each))
            if said and said not in spelled:
                fewest = min((having.get(word, []) for word in said), key=len)
                spelled[said] = [path for path in fewest if _stand_in(said, self._words[path])]
            last = said[-1] if said else " "
            self._by_kind.setdefault(last, number)
            if not spelled.get(said):
                self._by_word.setdefault(last, number)
            for path in spelled.get(said, ()):
                if len(said) > most.get(path, 0):
                    most[path], self._by_path[path] = len(said), number

    def names_kind(self, kind: str) -> bool:
        """Return whether a deviation names this type."""
        return bool(kind) and _plain(kind) in self._by_kind

    def of(self, path: str, kind: str) -> Deviation | None:
        """Return the first deviation that names a field, or the type of the object that contains it."""
        numbers = [self._by_path.get(path), self._by_kind.get(_plain(kind)) if kind else None]
        numbers += [self._by_word.get(word) for word in self._words[path]]
        first = min((number for number in numbers if number is not None), default=None)
        return None if first is None else self._deviations[first]


def _words_of(path: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(path.replace("[]", ""))]


def _stand_in(said: tuple[str, ...], words: list[str]) -> bool:
    """Return whether all words occur in these, in their order."""
    left = iter(words)
    return all(word in left for word in said)


def _words(said: Deviation) -> list[str]:
    return [_plain(word) for word in _WORD.findall(_INDEX.sub("", said.where)) if word not in _OURS]


def _plain(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()


def _leaves(value: Json, path: str = "", kind: str = "", depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """Yield each value that is not a filled object or list: its path, its JSON text, the `type` of its object."""
    if depth >= _DEEPEST or len(path) > _LONGEST_PATH:
        yield path, _json.to_text(value), kind
    elif isinstance(value, dict) and value:
        kind = value["type"] if isinstance(value.get("type"), str) else kind
        for key, inner in value.items():
            name = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"
            yield from _leaves(inner, f"{path}.{name}" if path else name, kind, depth + 1)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _leaves(inner, f"{path}[]", kind, depth + 1)
    else:
        yield path, _json.to_text(value), kind

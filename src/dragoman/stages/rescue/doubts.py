"""Compare a seemingly complete call with its tool's schema, which shows damage that the markup does not."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.json_fields import parts_of
from dragoman.codec.patterns import rare_pattern
from dragoman.stages.argument_repair.repairer import read_object
from dragoman.stages.json_schema import ToolSchema
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.behind.brackets import WRITTEN
from dragoman.stages.rescue.cursor import Close, Family
from dragoman.stages.rescue.json_calls import ARGUMENT_KEYS, BRACED, IS_CALL, UNCLOSED, closes_before_its_end, is_call
from dragoman.stages.rescue.markers import value_begins, value_marks
from dragoman.stages.rescue.parts import Call
from dragoman.stages.schema_words import is_explained, is_template
from dragoman.stages.torn_arguments import HOLDS_NEXT, key_problem, value_problem

#: Why a call is refused that has nothing of what it must have.
EMPTY: Final = "it has no arguments, and its tool requires some: they may stand elsewhere"
#: Why a call is refused that shows how one is written.
TEMPLATE: Final = "its arguments are a schema, dots, or the names of their places: it shows how a call is written"
#: Why one is refused that may be part of a list of tools.
EXPLAINED: Final = "it stands in a list, and its values say what stands at their places: it may explain its tool"
#: Why one is refused whose arguments may stand one level too deep.
WRAPPED: Final = "an argument of it is none of its tool's, and holds one that is, or may: two readings"
#: Why one is refused whose arguments are written as a list of keys and values is, or with a type beside each value.
OTHER_FORM: Final = "its arguments stand in a form in which its tool's schema does not have them: key, type and value"
#: Members of an object that stands for its value.
_OF_A_VALUE: Final = frozenset({
    "value", "type", "name", "key", "description", "string", "number", "integer", "boolean", "array", "object",
})  # fmt: skip
#: Those of them that hold it.
_VALUES: Final = _OF_A_VALUE - {"type", "name", "key", "description"}
#: Before a key: what begins an argument, and the tag in which the key stands as an attribute.
_BEFORE: Final = rare_pattern(r"[<=>/\"',(]\s{0,8}\Z")
_IN_TAG: Final = rare_pattern(r"(<?)[^\w<>]{0,3}([\w:|｜.-]{3,24})(?:\s{1,3}\w{2,5})?\s{0,2}=?\s{0,2}[\"']?\Z")
#: Behind it: what goes on with an argument, and the end of a tag.
_BEHIND: Final = rare_pattern(r"[\"']?\s{0,8}[:=>]")
_TAG_END: Final = rare_pattern(r"[\"']?[^>\n]{0,40}>")
#: Characters before a key that are looked at.
_AHEAD: Final = 48
#: How much a tag that was damaged is like itself.
_ALIKE: Final = 0.8
_WORDS: Final = rare_pattern(r"[a-z_]{3,32}")


def doubt_of(call: Call, end: Close, arguments: str | None, tools: Tools, families: tuple[Family, ...]) -> str:
    """Return why a seemingly complete call may not be the intended one; "" if nothing shows that."""
    if end.passed == "}" and closes_before_its_end(tools.read(call.name, call.text.raw())):
        return BRACED
    if not end.is_whole():
        return ""
    if arguments is not None and is_call(arguments, call.name, tools):
        return IS_CALL
    written = call.text.raw() if arguments is None else arguments  # a defect is mended later on
    schema = tools.schema(call.name)
    value, is_joined = tools.read_object(call.name, written)
    if value is None:
        return ""
    required = schema.root().schema.get("required")
    lacking = {key for key in required if isinstance(key, str)} - value.keys() if isinstance(required, list) else set()
    if not value:
        return EMPTY if lacking and end.passed != WRITTEN else ""
    if is_template(value, schema):
        return TEMPLATE
    if call.is_item and is_explained(value, schema):
        return EXPLAINED
    if _is_wrapped(value, schema):
        return WRAPPED
    if _is_listed(value, schema):
        return OTHER_FORM
    if problem := key_problem(value, schema, is_joined=is_joined, is_open=end.passed == UNCLOSED):
        return problem
    ends, _ = value_marks(families, call.family)
    texts = _json.decode(written) if call.in_tags else None
    if isinstance(texts, dict) and (problem := value_problem(texts, value, schema, ends)):
        return problem
    begins = value_begins(ends)
    words = frozenset(found[-1] for begin in begins if (found := _WORDS.findall(begin)))
    others = [key for key in schema.names() if words and key not in value and schema.has_member(key)]
    for text in parts_of(value) if lacking or others else ():
        if not isinstance(text, str):
            continue
        if any(_begins_argument(text, key) for key in lacking) or any(_is_in_tag(text, key, words) for key in others):
            return HOLDS_NEXT
    return ""


def _is_wrapped(value: dict[str, Json], schema: ToolSchema) -> bool:
    """Return whether an argument that the tool has not is an object, or the text of one, with one that it has and that
    is missing beside it: at once, or in the one member of each; or something else, alone under a word for arguments.
    """
    takes_any = _takes_any(schema)
    for key, inner in value.items():
        if schema.has_member(key) or (takes_any and (len(value) > 1 or key not in ARGUMENT_KEYS)):
            continue
        if len(value) == 1 and key in ARGUMENT_KEYS and schema.names() and inner and not isinstance(inner, dict):
            return True
        while (inner := _object_in(inner, schema)) is not None:
            if any(schema.has_member(one) and one not in value for one in inner) or _is_listed(inner, schema):
                return True
            inner = next(iter(inner.values())) if len(inner) == 1 else None
    return False


def _is_listed(value: dict[str, Json], schema: ToolSchema) -> bool:
    """Return whether an argument that the tool has not, beside another one, names one that it has; or one of a plain
    type is an object of a type and a value. Where a tool takes any, a key and a value are such arguments alone.
    """
    takes_any = _takes_any(schema)
    others = [one for key, one in value.items() if not schema.has_member(key) and (key in _OF_A_VALUE or not takes_any)]
    if len(others) > 1 and any(isinstance(one, str) and one not in value and schema.has_member(one) for one in others):
        return True
    return any(
        isinstance(one, dict)
        and one.keys() <= _OF_A_VALUE
        and not one.keys().isdisjoint(_VALUES)
        and "object" not in (schema.argument(key).kinds or {"object"})
        for key, one in value.items()
    )


def _takes_any(schema: ToolSchema) -> bool:
    """Return whether a tool says that it takes arguments that it does not name."""
    root = schema.root().schema
    return root.get("additionalProperties", False) is not False or "patternProperties" in root


def _object_in(value: Json, schema: ToolSchema) -> dict[str, Json] | None:
    """Return an object, or the one that a text is."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value, _ = read_object(schema, value)
    return value if isinstance(value, dict) else None


def _begins_argument(text: str, key: str) -> bool:
    return any(
        _BEFORE.search(text[max(at - _AHEAD, 0) : at]) and _BEHIND.match(text, at + len(key))
        for at in _places(text, key)
    )


def _is_in_tag(text: str, key: str, words: Iterable[str]) -> bool:
    """Return whether a key stands in a tag that is similar to the one that names arguments."""
    for at in _places(text, key):
        found = _IN_TAG.search(text[max(at - _AHEAD, 0) : at])
        if found is None or not (found[1] or _TAG_END.match(text, at + len(key))):
            continue
        if any(_are_alike(_WORDS.findall(found[2].lower())[-1:], word) for word in words):
            return True
    return False


@functools.lru_cache(maxsize=1024)
def _is_like(one: str, other: str) -> bool:
    import difflib  # only where a value holds what may be a tag

    return difflib.SequenceMatcher(None, one, other).ratio() >= _ALIKE


def _are_alike(found: list[str], word: str) -> bool:
    return any(_is_like(one, word) for one in found)


def _places(text: str, key: str) -> Iterator[int]:
    at = text.find(key) if key else -1
    while at >= 0:
        yield at
        at = text.find(key, at + len(key))

"""Schemas of tools, made up at random, to each vendor: what is sent is taken, allows what the client's allows, and says
what it says no more. Arguments come back under the client's names."""

from __future__ import annotations

import json
from itertools import product
from random import Random
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema_specifications import REGISTRY as SPECIFICATIONS
from referencing.exceptions import Unresolvable

from asked import made_schemas
from asked.asking import VENDORS, asked, exchange
from asked.made_schemas import WORDS
from asked.vendor_rules import broken, functions_of
from asked.writing import EVERYWHERE, chat, function, messages, tool
from dragoman.events import ToolCallEnd
from dragoman.offering.schemas import fitted
from dragoman.protocol.native_tools import SchemaRules
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.anthropic.request.answer_schema import answer_schema
from dragoman.types import ProtocolName, Raw
from for_each import for_each
from growth import MOST_EXPONENT, exponent
from profiles import IS_SOAK


def vocabulary(part: str) -> dict[str, Any]:
    """The keywords of a part of the draft, by its metaschema."""
    found = SPECIFICATIONS.contents(f"https://json-schema.org/draft/2020-12/meta/{part}")
    return found["properties"]  # type: ignore[no-any-return]


SCHEMAS: Final = 4_000 if IS_SOAK else 30
#: Draws in a row.
_SEED: Final = 26
_ODD: Final = "filter[id]"
_PARTS: Final = ("core", "validation", "meta-data", "content", "format-annotation", "applicator", "unevaluated")
KEYWORDS: Final = sorted({key for part in _PARTS for key in vocabulary(part)} | {"nullable"})
#: Keywords in which older drafts say something else, and one whose target is looked for.
OLDER: Final = frozenset({"required", "type", "examples", "exclusiveMinimum", "exclusiveMaximum", "items", "$ref"})
#: Keywords whose schemas are written in another way for some vendor.
HOLDERS: Final = frozenset(
    {*vocabulary("applicator"), *vocabulary("unevaluated"), "contentSchema", "$defs", "nullable"}
)


def asking(client: ProtocolName, schema: Any) -> dict[str, Any]:
    return (
        messages(tools=[tool("t", schema)]) if client == "anthropic-messages" else chat(tools=[function("t", schema)])
    )


@for_each("client", ["openai-chat", "anthropic-messages"])
@for_each("target", EVERYWHERE)
def test_what_is_sent_is_taken(client: ProtocolName, target: ProtocolName) -> None:
    dice = Random(_SEED)
    if client == target:
        return
    for _ in range(SCHEMAS):
        schema = made_schemas.schema(dice)
        sent = asked(client, asking(client, schema), VENDORS[target])
        assert not sent.refused, (schema, sent.refused)
        assert broken(target, sent.body) == [], (json.dumps(schema), json.dumps(sent.body["tools"]))


def made_keys(told: dict[str, Any], schema: dict[str, Any]) -> dict[str, str]:
    """Names of arguments that were made for the vendor → the client's."""
    sent, given = list(told.get("properties", ())), list(schema.get("properties", ()))
    pairs = zip(sent, given, strict=True) if len(sent) == len(given) else ()
    return {name: key for name, key in pairs if name != key}


def judge(schema: Any) -> Draft202012Validator | None:
    """Who judges values by a schema; nobody where the schema is none of the draft."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return None
    return Draft202012Validator(schema)


def is_fine(by: Draft202012Validator, value: Any) -> bool | None:
    try:
        return by.is_valid(value)
    except (Unresolvable, RecursionError):
        return None


def meant(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose root's alternatives have the members that they declare: what one of them declares is meant by it,
    also where another does not forbid it."""
    made = dict(schema)
    for key in {"anyOf", "oneOf"} & made.keys():
        made[key] = [{"additionalProperties": False, **each} if "$ref" not in each else each for each in made[key]]
    return made


@for_each("target", [name for name in EVERYWHERE if name != "openai-chat"])
def test_what_is_sent_allows_what_the_client_allows(target: ProtocolName) -> None:
    """And no more, where nothing is said to be lost."""
    dice, judged = Random(_SEED), 0
    for _ in range(SCHEMAS):
        schema = made_schemas.schema(dice)
        client, narrower = judge(schema), judge(meant(schema))
        made = asked("openai-chat", asking("openai-chat", schema), VENDORS[target])
        _, told = next(iter(functions_of(target, made.body)))
        vendor = judge(told)
        if (
            client is None
            or narrower is None
            or vendor is None
            or any(word in json.dumps(schema) for word in ('"nullable"', '"not"'))
        ):
            continue
        if "type" not in schema and '"#"' in json.dumps(schema):
            continue  # the root becomes an object, and so does what refers to it
        lost = any(said.code == "dropped" and said.where.startswith("tools[0]") for said in made.deviations)
        keys = made_keys(told, schema)
        for _ in range(6):
            value = made_schemas.arguments(dice, told)
            theirs = {keys.get(key, key): inner for key, inner in value.items()}
            if any(key not in keys and key in told.get("properties", ()) and key not in WORDS for key in value):
                continue  # a name that was made for a member of a union
            if len(theirs) < len(value) or value.keys() & keys.values():
                continue  # what the model was never told of
            wanted, found = is_fine(client, theirs), is_fine(vendor, value)
            if wanted is None or found is None:
                continue
            judged += 1
            assert found or not is_fine(narrower, theirs), (json.dumps(schema), json.dumps(told), value)
            assert lost or wanted or not found, (json.dumps(schema), json.dumps(told), value)
    assert judged > SCHEMAS / 2


def test_arguments_come_back_under_the_client_s_names() -> None:
    schema = {"type": "object", "properties": {_ODD: {"type": "string"}, "$top": {"type": "integer"}, "n": {}}}
    made, _ = exchange("openai-chat", chat(tools=[function("list", schema)]), VENDORS["anthropic-messages"])
    sent = list(json.loads(made.outgoing.body)["tools"][0]["input_schema"]["properties"])
    given = json.dumps({sent[0]: "7", sent[1]: 10, "n": 1.50, "other": None})
    block = {"type": "tool_use", "id": "toolu_1", "name": "list", "input": {}}
    frames = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [],
                                              "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
          for piece in (given[:9], given[9:])),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]  # fmt: skip
    made.head(200, {"content-type": "text/event-stream"})
    data = "".join(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n" for frame in frames).encode()
    ends = [event for event in (*made.feed(data), *made.close()) if type(event) is ToolCallEnd]
    assert [json.loads(end.call.arguments) for end in ends] == [{_ODD: "7", "$top": 10, "n": 1.5, "other": None}]


@for_each(
    "inner",
    [{"$ref": f"#/properties/{_ODD}"}, {"$ref": "#"}],
    ids=["a renamed argument", "the root"],
)
def test_references_to_renamed_arguments_mean_what_the_client_s_mean(inner: dict[str, str]) -> None:
    schema = {"type": "object", "properties": {_ODD: {"type": "integer"}, "n": inner}, "required": [_ODD]}
    made, _ = exchange("openai-chat", chat(tools=[function("list", schema)]), VENDORS["anthropic-messages"])
    told = json.loads(made.outgoing.body)["tools"][0]["input_schema"]
    [key] = told["required"]
    judged = [{_ODD: 7, "n": value} for value in (7, "7", {_ODD: 7}, {_ODD: "7"}, {key: 7}, {"n": 7})]
    for value in judged:
        there = {key: value[_ODD], "n": value["n"]}
        assert Draft202012Validator(told).is_valid(there) == Draft202012Validator(schema).is_valid(value), (told, value)


def test_an_ordinary_schema_is_not_touched() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {}}},
              "required": ["a"], "additionalProperties": False}  # fmt: skip
    text = Raw(json.dumps(schema).encode())
    assert [name for name in EVERYWHERE if fitted(text, PROTOCOLS[name].tools.schema) is not None] == []


def test_references_of_any_length_are_moved_for_gemini() -> None:
    size = 1_200
    defs = {f"D{n}": {"type": "object", "properties": {"x": {"type": "array", "items": {
        "$ref": f"#/definitions/D{(n + 1) % size}"}}}} for n in range(size)}  # fmt: skip
    schema = {"type": "object", "properties": {"a": {"$ref": "#/definitions/D0"}}, "definitions": defs}
    sent = asked("openai-chat", asking("openai-chat", schema), VENDORS["gemini-generate"])
    assert not sent.refused
    assert broken("gemini-generate", sent.body) == []
    _, told = next(functions_of("gemini-generate", sent.body))
    assert len(told["$defs"]) == size
    assert "definitions" not in told


def test_references_are_moved_in_linear_time() -> None:
    def run(count: int) -> object:
        items = {f"x{n}": {"type": "array", "items": {"type": "object"}} for n in range(count)}
        uses = {f"y{n}": {"$ref": f"#/properties/x{n}/items"} for n in range(count)}
        text = json.dumps({"type": "object", "properties": {**items, **uses}}).encode()
        return fitted(Raw(text), SchemaRules(references="defs"))

    assert exponent(run, 200) <= MOST_EXPONENT


def test_references_one_behind_the_other_are_followed_in_linear_time() -> None:
    def run(count: int) -> object:
        defs = {f"D{n}": {"properties": {"x": {"$ref": f"#/$defs/D{n + 1}", "minProperties": 1}}} for n in range(count)}
        schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": {**defs, f"D{count}": {}}}
        return fitted(Raw(json.dumps(schema).encode()), SchemaRules(references="defs"))

    assert exponent(run, 25) <= MOST_EXPONENT


def test_a_schema_that_grows_without_end_is_left_as_it_is() -> None:
    defs = {f"D{n}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/D{n + 1}", "minProperties": 1}
                                                       for key in "abc"}} for n in range(30)}  # fmt: skip
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": {**defs, "D30": {}}}
    text = json.dumps(schema).encode()
    for references in ("defs", "none"):
        made = fitted(Raw(text), SchemaRules(references=references))  # type: ignore[arg-type]
        assert made is None or len(bytes(made.schema)) < 200 * len(text)


def test_a_reference_to_nothing_at_the_root_is_lost_and_said() -> None:
    made = fitted(
        Raw(b'{"$ref": "#/definitions/A", "properties": {"a": {"$ref": "#"}}}'), SchemaRules(references="defs")
    )
    assert made is not None and "$ref" in made.lost
    assert "$ref" not in json.loads(bytes(made.schema))


@for_each(
    "schema",
    [
        {"$ref": "#/x", "x": {"anyOf": 5}},
        {"$ref": "#/properties", "properties": {"anyOf": True}},
        {"properties": {"a": {"anyOf": [{}]}, "b": {"$ref": "#/properties/a/anyOf/" + "1" * 5000}}},
    ],
    ids=["a union that is a number", "a union that is true", "a place of many digits"],
)
@for_each("target", EVERYWHERE)
def test_a_reference_to_what_is_no_schema_is_no_error_of_ours(target: ProtocolName, schema: Any) -> None:
    for client in ("openai-chat", "anthropic-messages"):
        assert asked(client, asking(client, schema), VENDORS[target]).body


@for_each("target", EVERYWHERE)
@for_each("key", ["properties", "items"])
def test_a_deep_schema_is_no_error_of_ours(target: ProtocolName, key: str) -> None:
    open_, close = {"properties": ('{"properties":{"a":', "}}"), "items": ('{"items":', "}")}[key]
    depth = 330 if key == "properties" else 500
    schema = json.loads(open_ * depth + "{}" + close * depth)
    made = asked("openai-chat", asking("openai-chat", {"type": "object", **schema}), VENDORS[target])
    assert made.refused or made.body


def test_the_alternatives_of_a_root_are_joined_in_linear_time() -> None:
    def run(count: int) -> object:
        each = [{"type": "object", "properties": {"a": {"const": f"v{n}"}}, "required": ["a"]} for n in range(count)]
        return fitted(
            Raw(json.dumps({"type": "object", "anyOf": each}).encode()), PROTOCOLS["anthropic-messages"].tools.schema
        )

    assert exponent(run, 400) <= MOST_EXPONENT
    begun = json.dumps([{"const": n} for n in range(3)])
    assert begun in json.dumps(json.loads(bytes(run_root(3))))


def run_root(count: int) -> Raw:
    each = [{"type": "object", "properties": {"a": {"const": n}}} for n in range(count)]
    made = fitted(
        Raw(json.dumps({"type": "object", "anyOf": each}).encode()), PROTOCOLS["anthropic-messages"].tools.schema
    )
    assert made is not None
    return made.schema


@for_each("words", [[f"word {number}" for number in range(8_000)], ["x" * 90_000], ["x" * 9_000] * 9])
@for_each("target", ["ollama-chat", "gemini-generate"])
def test_references_to_one_long_list_do_not_multiply_it(target: ProtocolName, words: list[str]) -> None:
    beside = {"minLength": 1} if target == "gemini-generate" else {}
    places = {f"p{number}": {"$ref": "#/$defs/e", **beside} for number in range(300)}
    schema = {"type": "object", "properties": places, "$defs": {"e": {"type": "string", "enum": words}}}
    sent = asked("openai-chat", asking("openai-chat", schema), VENDORS[target])
    assert len(json.dumps(sent.body)) < 8 * len(json.dumps(schema))


@for_each("references", ["defs", "none"])
def test_what_is_data_is_no_reference(references: str) -> None:
    """Nor is a member whose name is a keyword's data."""
    data = {"$ref": "#/properties/c", "a": [{"$ref": "#/nowhere"}]}
    plain = {"b": {"enum": [data]}, "d": {"const": data}, "e": {"default": data}, "f": {"examples": [data]}}
    refers = {"$ref": "#/properties/c"}
    schema = {"type": "object", "properties": {**plain, "c": {"type": "string"}, "default": refers, "enum": refers}}
    made = fitted(Raw(json.dumps(schema).encode()), SchemaRules(references=references))  # type: ignore[arg-type]
    assert made is not None
    members = json.loads(bytes(made.schema))["properties"]
    assert {key: members[key] for key in plain} == plain
    wanted = {"$ref": "#/$defs/c"} if references == "defs" else {"type": "string"}
    assert (members["default"], members["enum"]) == (wanted, wanted)


def test_what_stands_beside_a_reference_is_joined_with_its_target() -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    place = {"$ref": "#/definitions/Base", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    schema = {"type": "object", "properties": {"o": place}, "definitions": {"Base": base}}
    for references in ("defs", "none"):
        made = fitted(Raw(json.dumps(schema).encode()), SchemaRules(references=references))  # type: ignore[arg-type]
        assert made is not None and made.lost == ()
        judge_ = Draft202012Validator(json.loads(bytes(made.schema)))
        given = ({"a": "x", "b": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 1})
        assert [judge_.is_valid({"o": each}) for each in given] == [True, False, False, False]


@for_each(
    "pointer",
    ["#/components/schemas/T", "#t", "https://x.example/s#t", "#/$defs/of%20T", "https://x.example/t", "#/$defs/of T"],
)
@for_each("references", ["defs", "none"])
def test_a_reference_is_found_however_it_is_written(references: str, pointer: str) -> None:
    target = {"type": "string", "nullable": True}
    schema = {
        "$id": "https://x.example/s", "type": "object", "properties": {"p": {"$ref": pointer}},
        "components": {"schemas": {"T": target}},
        "$defs": {"of T": {"$anchor": "t", "$id": "https://x.example/t", **target}},
    }  # fmt: skip
    made = fitted(Raw(json.dumps(schema).encode()), SchemaRules(references=references))  # type: ignore[arg-type]
    assert made is not None and made.lost == ()
    told = json.loads(bytes(made.schema))
    place = told["properties"]["p"]
    if references == "defs":
        place = told["$defs"][place["$ref"].removeprefix("#/$defs/")]
    assert place["type"] == ["string", "null"]


def test_an_id_that_is_a_fragment_is_an_anchor() -> None:
    """As in drafts 6 and 7."""
    schema = {"type": "object", "properties": {"p": {"$ref": "#t"}, "q": {"$id": "#t", "type": "string"}}}
    for references in ("defs", "none"):
        made = fitted(Raw(json.dumps(schema).encode()), SchemaRules(references=references))  # type: ignore[arg-type]
        assert made is not None and made.lost == ()
        told = Draft202012Validator(json.loads(bytes(made.schema)))
        assert [told.is_valid({key: value}) for key in "pq" for value in ("x", 1)] == [True, False] * 2


@for_each("base", ["", "https://x.example/s", "urn:x:s"])
@for_each("target", EVERYWHERE)
def test_a_reference_within_a_schema_with_an_id_is_relative_to_that(target: ProtocolName, base: str) -> None:
    number, text = {"type": "integer"}, {"type": "string"}
    item = {"$id": "item.json" if base[:4] != "urn:" else "urn:x:item", "type": "object",
            "properties": {"n": {"$ref": "#/$defs/n"}, "up": {"$ref": f"{base}#/$defs/n"} if base else text},
            "$defs": {"n": number}}  # fmt: skip
    schema = {"type": "object", "properties": {"i": item, "j": {"$ref": item["$id"]}, "k": {"$ref": "#/$defs/n"}},
              "$defs": {"n": text, "resource_1": number}}  # fmt: skip
    schema |= {"$id": base} if base else {}
    made = fitted(Raw(json.dumps(schema).encode()), PROTOCOLS[target].tools.schema)
    assert made is not None and made.lost == ()
    told, client = (Draft202012Validator(each) for each in (json.loads(bytes(made.schema)), schema))
    for value, is_right in (({"n": 1}, True), ({"n": "x"}, False), ({"up": "x"}, True), ({"up": 1}, False)):
        for key in "ij":
            assert told.is_valid({key: value}) == is_right, (key, value, bytes(made.schema))
            if base[:4] != "urn:":
                assert client.is_valid({key: value}) == is_right
    assert told.is_valid({"k": "x"}) and not told.is_valid({"k": 1})


def test_many_schemas_with_an_id_are_joined_in_linear_time() -> None:
    def run(count: int) -> object:
        each = {f"p{n}": {"$id": f"https://x.example/{n}", "properties": {"a": {"$ref": "#/$defs/a"}},
                          "$defs": {"a": {"$ref": f"{n + 1}"}}} for n in range(count)}  # fmt: skip
        text = json.dumps({"type": "object", "properties": {"x" * 9_000: {"properties": each}}}).encode()
        return fitted(Raw(text), SchemaRules(references="defs"))

    assert exponent(run, 200) <= MOST_EXPONENT


def test_what_stands_beside_the_reference_of_a_root_is_joined_with_its_target() -> None:
    """Neither side's members are lost, also where both have some."""
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    beside = {"properties": {"b": {"type": "integer"}}, "required": ["b"]}
    schema = {"$ref": "#/definitions/Base", **beside, "definitions": {"Base": base}}
    given = ({"a": "x", "b": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": 1}, {"a": "x", "b": "y"})
    sent = [answer_schema(Raw(json.dumps(schema).encode()))[0]]
    for target in EVERYWHERE:
        made = fitted(Raw(json.dumps(schema).encode()), PROTOCOLS[target].tools.schema)
        assert made is not None and made.lost == ()
        sent.append(made.schema)
    for told in sent:
        assert told is not None
        judge_ = Draft202012Validator(json.loads(bytes(told)))
        assert [judge_.is_valid(each) for each in given] == [True, False, False, False, False], bytes(told)


@for_each("beside", [{"required": ["a"], "minProperties": 1}, {"type": "array", "maxItems": 2}])
def test_what_cannot_be_joined_at_the_root_is_said(beside: dict[str, Any]) -> None:
    base = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Base"}}, "minProperties": 2, "maxItems": "x"}
    raw = Raw(json.dumps({"$ref": "#/$defs/Base", **beside, "$defs": {"Base": base}}).encode())
    assert answer_schema(raw)[0] is None
    made = fitted(raw, PROTOCOLS["gemini-generate"].tools.schema)
    assert made is not None and (made.lost or json.loads(bytes(made.schema))["minProperties"] == 2)


def test_null_is_allowed_beside_alternatives_that_allow_it_too() -> None:
    """`oneOf` allows what fits one alternative alone."""
    each = ({"type": "string", "nullable": True}, {"type": "null", "title": "N"}, {"title": "N"}, {"$ref": "#/$defs/N"})
    for first in each:
        place = {"oneOf": [first, {"type": "integer"}], "nullable": True}
        schema = {"type": "object", "properties": {"p": place}, "$defs": {"N": {"type": ["string", "null"]}}}
        for target in EVERYWHERE:
            made = fitted(Raw(json.dumps(schema).encode()), PROTOCOLS[target].tools.schema)
            assert made is not None
            assert Draft202012Validator(json.loads(bytes(made.schema))).is_valid({"p": None}), bytes(made.schema)


def test_keywords_with_values_of_another_kind_are_removed_and_said() -> None:
    """Vendors refuse the whole request for one of them: what a server of tools wrote there means nothing."""
    values: list[Any] = [None, False, True, "x", "7", "#x", -1, 0, 2.0, 1.5, [], ["x"], ["x", "x"], [1], {}, {"a": 1}]
    for number, (key, value) in enumerate(product(KEYWORDS, values)):
        target = EVERYWHERE[number % len(EVERYWHERE)]
        schema = {"type": "object", "properties": {"p": {"type": "string", key: value}}}
        made = fitted(Raw(json.dumps(schema).encode()), PROTOCOLS[target].tools.schema)
        told, lost = (schema, ()) if made is None else (json.loads(bytes(made.schema)), made.lost)
        assert judge(told) is not None, (target, key, value, told)
        if judge(schema) is None:
            is_anchor = key == "$id" and "$anchor" in told["properties"]["p"]
            is_said = bool({key, "a schema that is none"} & {*lost})
            assert key in OLDER or is_anchor or is_said, (target, key, value, told, lost)
        else:
            same = told["properties"]["p"].get(key) == value
            assert same or key in {*OLDER, *HOLDERS, *lost}, (target, key, value, told)

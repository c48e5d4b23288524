"""The work of every public function that takes a text first grows with the text, and depth ends in an error.

The functions are found in the syntax trees: one that is added runs here by itself, or stands in one of two tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from dragoman import _json
from dragoman._json import Raw
from dragoman.bounds import USUAL_BOUNDS
from dragoman.codec.containers import Place
from dragoman.codec.parts.assembly import Assembly
from dragoman.protocol.native_tools import SchemaRules
from dragoman.protocols.gemini.wire import FunctionCall
from dragoman.protocols.openai_chat.wire import NOTHING
from dragoman.secret import Secret
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.behind.kinds import Facts
from dragoman.types import Tool, Usage
from for_each import for_each
from growth import naming, steps_of
from profiles import some
from test_linear_time import MOST_GROWTH, ONCE, TOKENS
from text_functions import TextFunction, functions_in, text_functions


def take_nothing(code: str, where: str, seen: str) -> None:
    """Takes a deviation."""


#: Functions that need more than a text → what else they get.
GIVEN: dict[str, dict[str, Any]] = {
    "ledger/times.py read_moment": {"now": 0.0},
    "_json.py holds_all": {"text": '{"a":1}'},
    "stages/rescue/contexts.py turn_of": {"is_asked": True},
    "stages/rescue/markers.py is_cut": {"behind": ">"},
    "stages/rescue/quoted.py closes_single": {"quote": "'"},
    "stages/rescue/quoted.py opens": {"mark": '"'},
    "_json.py split_values": {"problem": "Extra data"},
    "agent/approval.py words_of": {"pattern": None},
    "agent/tools/read.py text_of": {"name": "a"},
    "cli/demo_broken.py excerpt": {"width": 80},
    "cli/logged_request.py find_request": {"lines": [b'{"kind":"request","id":"a"}']},
    "cli/terminal.py clip": {"width": 80},
    "client/request/forwarding.py with_query": {"query": "a=b"},
    "providers/address.py base_url_fault": {"query": "a"},
    "codec/containers.py straighten_object": {"place": Place(), "where": "", "deviate": take_nothing},
    "codec/framing/event_stream.py before_marker": {"deviate": take_nothing},
    "codec/framing/large_frames.py check_large": {"bounds": USUAL_BOUNDS, "look": None},
    "codec/json_fields.py no_object": {"problem": _json.Malformed("empty")},
    "codec/framing/outline.py has_wide_object": {"most": 10, "depth": 1000},
    "codec/framing/outline.py is_deeper": {"most": 10},
    "codec/framing/outline.py room_left": {"marks": (b"{", b"["), "most": 10},
    "codec/framing/outline.py values_beyond": {"most": 10},
    "codec/compression.py unpacked_start": {"most": 1000},
    "codec/parts/history_call_ids.py hashed": {"size": 20},
    "stages/rescue/runner.py say": {"out": []},
    "codec/unread.py read_allowed": {"where": "tools"},
    "codec/parts/argument_growth.py join_halves": {"text": "a"},
    "protocols/gemini/response/unmodelled.py split": {"bounds": USUAL_BOUNDS},
    "protocols/gemini/response/unmodelled.py without_arguments": {"calls": [FunctionCall(args=_json.raw({"a": 1}))]},
    "protocols/openai_chat/response/lenient.py several_in": {
        "problem": "Extra data",
        "assembly": Assembly(lambda: "", frozenset()),
    },
    "protocols/anthropic/response/lenient.py loose_text": {"where": "", "assembly": Assembly(lambda: "", frozenset())},
    "codec/parts/call_shapes.py is_astray": {"value": {"a": 1}},
    "codec/parts/call_shapes.py is_beside": {"value": {"a": 1}},
    "codec/parts/call_shapes.py is_call": {"value": {"arguments": "{}"}},
    "codec/parts/call_shapes.py told_calls": {"value": {"arguments": "{}"}},
    "codec/schemas/joining.py joined": {"other": {"properties": {"a": {}}}, "find": lambda pointer: None},
    "codec/schemas/places.py size": {"most": 1000},
    "codec/repeated_keys.py has_plain_parts": {"read": {"a": Raw(b'{"b":1}')}, "parts": [Raw(b'{"b":1}')]},
    "codec/repeated_keys.py without_value": {"key": b'"a":', "value": Raw(b'{"b":1}')},
    "codec/repeated_keys.py tell_twice": {"keys": (b'"a"',), "deviate": take_nothing},
    "codec/repeated_keys.py tells_more": {"key": b'"a"'},
    "codec/unread.py refuse_no_text": {"where": "a"},
    "codec/parts/settled_arguments.py beyond": {"most": 1000},
    "codec/parts/settled_arguments.py is_same": {"other": '{"a":1}'},
    "codec/splicing.py splice": {"changes": {"a": 1}},
    "codec/parts/settled_arguments.py contradicts": {"other": '{"a":1}'},
    "decoding.py read_request": {"protocol": None},
    "offering/restoring.py with_client_keys": {"keys": {"a": "b"}},
    "offering/schemas.py fitted": {"rules": SchemaRules(references="defs", names_members=True)},
    "gateway/attempt_bounds.py asked_tier": {"fields": None},
    "gateway/attempt_bounds.py bound_of": {"limits": (("max_tokens",),), "max_output": 100},
    "gateway/attempt_bounds.py expected_of": {"bound": Usage(input=9, output=9)},
    "gateway/messages.py query_values": {"name": "key"},
    "gateway/pages/forward.py with_model": {"model": "m"},
    "gateway/request_bodies.py unpacked": {"encoding": "gzip", "limit": 1000},
    "gateway/server/request_heads.py method_of": {"target": b"/"},
    "gateway/server/request_heads.py origin_form": {"fields": {"host": "a"}},
    "gateway/storage/responses.py sealed": {"previous": None, "response": b"{}"},
    "gateway/telemetry/record.py is_of": {"owner": "a"},
    "proofs/export.py parse_export": {"where": "a"},
    "protocol/native_tools.py read_place": {"where": "a"},
    "protocol/gpt_models.py efforts_of": {"version": (5, 1)},
    "protocol/model_pages.py read_size": {"name": "limit", "most": 1000},
    "protocols/anthropic/request/claude_models.py nearest_effort": {"effort": "xhigh"},
    "protocols/anthropic/request/claude_models.py takes_thinking": {"thinking": {"type": "disabled"}},
    "protocols/openai_chat/response/plain_chunk.py are_texts": {"fingerprint": NOTHING},
    "protocols/openai_chat/response/plain_chunk.py kept_fields": {"fingerprint": NOTHING},
    "protocols/openai_responses/request/namespaces.py joined": {"name": "f"},
    "protocols/openai_responses/request/namespaces.py hashed": {"name": "f"},
    "protocols/openai_responses/request/namespaces.py known_name": {"name": "f", "offered": frozenset({"f"})},
    "protocols/openai_responses/wire.py unproven": {"offered": frozenset()},
    "protocols/recognize.py protocol_of_client": {"headers": {}},
    "providers/catalog.py nearest": {"known": ["a", "bc"]},
    "secret.py masked": {"secrets": (Secret("abc"),)},
    "stages/argument_repair/inner_quotes.py is_sure": {"inner": [3, 5], "closer": 9, "names": frozenset({"a"})},
    "stages/argument_repair/near_json.py read_inner": {"names": frozenset({"a"})},
    "stages/rescue/typed_tags.py empty_call": {"is_head_read": True},
    "stages/rescue/behind/kinds.py kind_of": {
        "facts": Facts("}", True, {"a", "b"}, {"b"}, {"b"}, (("<tool_call>", "</tool_call>"),)), "is_closed": False,
    },
    "stages/rescue/contexts.py block_end": {"is_listing": True, "is_paragraph": False},
    "stages/rescue/contexts.py is_shown_line": {"kind": "```"},
    "stages/rescue/contexts.py kind_behind": {"kind": "```"},
    "stages/rescue/json_calls.py is_call": {"name": "f", "tools": Tools((Tool("f", "", Raw(b'{"type":"object"}')),))},
    "stages/rescue/quoted.py first_of": {"literals": ("<|im_end|>", "</tool_call>", "}")},
    "stages/rescue/behind/sealed.py goes_on": {"keys": ("a", "key"), "is_whole": True},
    "stages/rescue/quoted.py is_begun": {
        "ends": ("</tool_call>",), "has_member": {"a"}.__contains__, "is_body": False, "is_ended": True,
    },
    "stages/rescue/quoted.py is_shown": {"is_ended": False},
    "stages/tool_names.py clean_name": {"offered": frozenset({"f"})},
    "stages/tool_names.py read_tagged": {"offered": frozenset({"f"})},
    "validate/grade.py gives_number": {"answer": "5"},
}  # fmt: skip
#: What is not run here, and why.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "its text is a path, an address or a name of this machine's": (
        "agent/sandbox/bubblewrap.py probe_fence", "agent/sandbox/git_settings.py content_of",
        "agent/sandbox/git_settings.py settings_of", "agent/sandbox/git_settings.py pointed",
        "agent/sandbox/git_settings.py work_tree_of", "agent/sandbox/git_settings.py of_person",
        "agent/sandbox/guarded_paths.py protect", "agent/sandbox/standing_files.py identity_of_place",
        "agent/sandbox/standing_files.py digest_of", "agent/sandbox/standing_files.py places_below",
        "agent/sandbox/standing_files.py entries_of", "agent/sandbox/standing_files.py put_setting",
        "agent/sandbox/standing_files.py restore", "agent/sandbox/standing_files.py links_in",
        "agent/sandbox/standing_files.py orders_of",
        "agent/sandbox/syscall_filter.py make_filter", "agent/tools/own.py load_tools", "agent/attachments.py mentions",
        "cli/logged_request.py explain_logged", "cli/main.py load_command", "cli/main.py make_parser",
        "cli/body_input.py check_folder", "cli/body_input.py open_body",
        "gateway/process/workers.py bind", "gateway/process/listener_keys.py check_reach",
        "cli/commands/serve.py is_free", "cli/commands/serve.py is_ending", "cli/body_input.py read_chunks",
        "recording/upstream.py upstream_at",
    ),
    "it prints": ("cli/body_input.py write", "cli/main.py complain", "cli/terminal.py say", "cli/terminal.py hint"),
    "the user's own configuration, command or code says it": (
        "agent/pick_model.py first_target", "agent/tool_plan.py identity_of", "agent/tools/pins.py origin_of",
        "config/quotas.py check_zone", "config/quotas.py read_scope",
        "cli/presets.py fill", "cli/presets.py load_tables", "cli/serve_banner.py render_banner",
        "config/references.py read_secret", "config/references.py check_listener",
        "config/references.py check_reference", "config/references.py expand", "ledger/prices.py make_priced",
        "routing/resolve.py refuse_name", "routing/resolve.py resolve", "validate/selection.py is_paid",
        "testing/faults.py play", "client/started_servers.py check_target",
        *(f"inputs/keywords.py {name}" for name in (
            "wrong", "read_text", "read_count", "read_seconds", "read_flag", "read_function", "read_word")),
        *(f"inputs/params.py {name}" for name in ("read_reasoning", "read_stop", "read_schema")),
        "inputs/values.py read_json", "inputs/values.py read_object",
        "providers/endpoint.py with_fields", "protocol/__init__.py usual_style",
        "protocols/ollama/client_styles.py style_for", "testing/turns.py deviation", "client/shared.py shared_method",
    ),
    "words of ours": (
        "bounds.py exceeded", "http/response.py not_connected", "http/response.py no_http", "http/response.py broken",
        "cli/commands/explain.py fates_of", "ledger/stores/values.py audit_digest",
        "ledger/stores/values.py derived_id", "ledger/stores/values.py adjustment_id",
        "gateway/administration/ledger_access.py no_such", "gateway/administration/admin_keys.py is_within",
        "ledger/stores/postgresql_schema.py partition_of", "ledger/stores/postgresql_asking.py render_question",
    ),
    "it runs in a row of `places.py`, with all that it needs": (
        "codec/counterparts.py as_text", "codec/parts/call_names.py without_words",
        "codec/parts/history_call_ids.py shape_id", "discovery/model_facts.py gather",
        "gateway/server/request_heads.py check_framing", "gateway/server/request_heads.py without_upgrade",
        "protocols/anthropic/request/parse.py read_reasoning", "protocols/anthropic/wire.py read_object",
        "protocols/anthropic/response/lenient.py calls_in_start", "protocols/anthropic/response/lenient.py look_around",
        "protocols/anthropic/response/lenient.py tell_foreign",
        "protocols/anthropic/response/told_again.py look_at_edge",
        "protocols/anthropic/response/lenient.py tell_missing", "protocols/gemini/request/parse.py parse_path",
        "protocols/gemini/response/unmodelled.py tell_unread_beside",
        "protocols/openai_responses/response/unmodelled.py tell_foreign",
        "protocols/gemini/response/lenient.py read_pieces_leniently",
        "protocols/openai_chat/response/lenient.py error_in",
        "protocols/openai_chat/response/lenient.py say_why_lenient",
        "protocols/ollama/response/unmodelled.py tell_unread_of",
        "protocols/openai_chat/response/unmodelled.py placed", "protocols/openai_responses/content.py parse_content",
        "protocols/openai_responses/request/foreign_tools.py write_call",
        "protocols/openai_responses/request/namespaces.py new_name",
        "protocols/openai_responses/request/namespaces.py place",
        "protocols/openai_responses/request/parse_messages.py parse_items",
        "protocols/openai_responses/request/tools.py parse_tools",
        "protocols/openai_responses/request/tools.py parse_tool_choice",
        "protocols/openai_responses/response/hosted_items.py tell_input",
        "protocols/openai_responses/response/hosted_items.py tell_live",
        "protocols/openai_responses/wire.py ignore", "protocols/openai_responses/wire.py place_of_text",
        "stages/rescue/xml_values.py member", "stages/rescue/xml_values.py leaf",
    ),
}  # fmt: skip
#: Where a value as deep as the JSON reader takes is too deep: whoever calls these catches that (`pipe.py`, requests).
CAUGHT = frozenset({"_json.py encode_exact", "_json.py mended"})
_LEFT_OUT = frozenset(place for places in ELSEWHERE.values() for place in places)
#: Each fifth token, and those that these functions split at; one of two of them in `make test`.
_TOKENS = [*TOKENS[::5], "&a=", "%41", "a.b/", "0", "\n\n", "=?", "a b ", "../", "é"]
#: Characters of the smaller text.
_SIZE = 200


@cache
def functions() -> tuple[TextFunction, ...]:
    """All of them, found when a test runs: to parse the package takes most of a second."""
    return tuple(text_functions())


def tried() -> Iterator[TextFunction]:
    """Those that are run here."""
    yield from (found for found in functions() if found.place not in _LEFT_OUT)


each_function = for_each("found", tried(), ids=lambda found: found.place)


def call_of(found: TextFunction) -> Callable[[str], object]:
    """The function of a text, whatever it takes; an error is an answer, too deep is none."""
    run, given = found.run, GIVEN.get(found.place, {})

    def call(text: str) -> object:
        value: Any = text
        if found.takes in ("bytes", "bytearray"):
            value = text.encode("utf-8", "replace")
        elif found.takes == "Raw":
            value = _json.Raw(_json.encode(text))
        elif found.takes == "Json":
            read = _json.decode(text)
            value = text if isinstance(read, _json.Malformed) else read
        try:
            with suppress(TypeError, KeyError):
                return run(value, **given)
        except RecursionError:
            raise
        except Exception as problem:
            return problem
        return None

    return call


def test_every_function_of_a_text_has_its_place():
    assert len(functions()) > 200
    places = {found.place for found in functions()}
    assert _LEFT_OUT | GIVEN.keys() <= places
    assert not _LEFT_OUT & GIVEN.keys()
    missing = {found.place for found in tried() if set(found.needs) != GIVEN.get(found.place, {}).keys()}
    assert not missing, "a function of a text that needs more: say what in GIVEN, or why not in ELSEWHERE"


def test_one_that_is_added_is_noticed():
    [plain, needy] = functions_in(
        "codec/x.py", "def read(text: str, most: int = 3): ...\ndef see(data: bytes, *, a: int): ...\n"
    )
    assert plain == TextFunction("codec/x.py read", (), "str") and needy.needs == ("a",)
    assert not list(functions_in("codec/x.py", "def _own(text: str): ...\ndef other(number: int): ..."))


def work_of(call: Callable[[str], object], token: str, size: int) -> int:
    """Lines that run for a text of this size."""
    return steps_of(lambda: call(token * (size // len(token) + 1)))


@each_function
def test_its_work_grows_with_the_text(found: TextFunction):
    call = call_of(found)
    call(_TOKENS[0])  # caches fill
    wrong = []
    for token in some(_TOKENS, found.place, 2):
        few, many = (work_of(call, token, size) for size in (_SIZE, 4 * _SIZE))
        if many > MOST_GROWTH * few + ONCE and work_of(call, token, 16 * _SIZE) > MOST_GROWTH * many:
            wrong.append((token, few, many))
    assert not wrong


@each_function
def test_depth_is_no_end_of_ours(found: TextFunction):
    call = call_of(found)
    for token, closed in (("[", "]"), ('{"a":', "}"), ("<a>", "")):
        with naming(token):
            call(token * (100_000 // len(token)))
            if closed and found.place not in CAUGHT:  # as deep as the reader takes
                call(token * 900 + "1" + closed * 900)

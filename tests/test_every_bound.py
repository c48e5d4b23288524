"""No bound is forgotten: each is a setting of `[server.limits]`, or stands here with the reason why it is none.

A bound is found by its words: a message that tells a number of the code's own behind "at most" and the like.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

import dragoman
from dragoman import bounds
from dragoman.bounds import AnswerBounds
from dragoman.config import LimitsConfig
from dragoman.gateway.messages import Limits, read_limits
from dragoman.gateway.request_bodies import BodyBounds

_PACKAGE: Final = Path(dragoman.__file__).parent
#: What nobody but the user of this machine makes grow.
_OWN: Final = {"agent", "cli", "embedded", "recording", "testing", "validate"}
_BEFORE: Final = re.compile(r"(?:at most|more than|larger than|longer than|deeper than) $")
_NUMBER: Final = re.compile(r"(?:at most|more than|larger than|longer than|deeper than) ([0-9][0-9,]{2,})")
#: In a file without these there is none, in however many texts they are written.
_WORDS: Final = re.compile(r"(?:at|more|larger|longer|deeper)(?:\W|f\W)+(?:most|than)\W")
_FORM: Final = "no setting makes it larger: the step that reads it takes time, or a level of the stack, for each"
_VENDOR: Final = "the vendors' own bound, or far above what their servers send"
_FETCHED: Final = "images by address are fetched for the client: what a body's own images may be, and no more of them"
_FILE: Final = "the user's own file or argument, not a stranger's"
#: A constant that a message tells → why it is no setting.
REASONS: Final = {
    "client/mcp/http.py MOST_MESSAGE": "what the user's own server sends: one frame, as `frame_mib` by default",
    "client/mcp/stdio.py MOST_MESSAGE": "what the user's own server sends: one frame, as `frame_mib` by default",
    "client/mcp/messages.py _MOST_LISTED": _VENDOR,
    "client/mcp/messages.py _MOST_UNASKED": _VENDOR,
    "client/request/images.py LARGEST": _FETCHED,
    "client/request/images.py _MOST_HOPS": _FETCHED,
    "client/request/images.py _MOST_IMAGES": _FETCHED,
    "client/request/images.py _MOST_SIZE": _FETCHED,
    "codec/parts/argument_text.py _MOST_OBJECTS": _FORM,
    "config/reading.py _MOST_DOTS": _FILE,
    "config/reading.py 4,300": _FILE,
    "gateway/model_names.py _LONGEST": _VENDOR,
    "gateway/pages/embeddings.py _MOST_INPUTS": _VENDOR,
    "gateway/pages/stored_turn.py LONGEST": "a stored conversation is as large as the largest body by default",
    "inputs/keywords.py _MOST_SECONDS": _FILE,
    "inputs/models.py _MOST_VALUES": _FILE,
    "inputs/values.py _MOST_LEVELS": _FORM,
    "ledger/journal/frames.py LARGEST": "a record of our own, of names that are clipped",
    "protocols/gemini/response/calls.py _MOST_CANDIDATES": _VENDOR,
    "protocols/openai_chat/request/render_messages.py _LONGEST_ID": _VENDOR,
    "protocols/openai_chat/response/lenient.py _MOST_CHOICES": _VENDOR,
    "protocols/openai_responses/request/render_messages.py _LONGEST_ID": _VENDOR,
    "routing/retry.py LONGEST_WAIT": "a wait, which takes no memory; `total_seconds` bounds the whole",
    "stages/argument_repair/argument_writer.py _DEEPEST": _FORM,
    "stages/argument_repair/near_json.py _MOST_COMMENTS": _FORM,
    "stages/argument_repair/near_json.py _MOST_INNER": _FORM,
    "stages/rescue/families/gemma.py _DEEPEST": _FORM,
    "stages/rescue/python_calls.py _DEEPEST": _FORM,
    "types.py _LARGEST_FILE": _FILE,
}


def told_constants() -> Iterator[str]:
    """The file and the name, or the number, of each bound that a message tells from a constant."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        place = path.relative_to(_PACKAGE)
        if place.parts[0] in _OWN:
            continue
        source = path.read_text(encoding="utf-8")
        if not _WORDS.search(source):
            continue
        tree = ast.parse(source)
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if id(node) in docstrings:
                continue
            if isinstance(node, ast.JoinedStr):
                for before, value in zip(node.values, node.values[1:], strict=False):
                    if isinstance(before, ast.Constant) and _BEFORE.search(str(before.value)):
                        yield from (f"{place.as_posix()} {name}" for name in _constants(value))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from (f"{place.as_posix()} {number}" for number in _NUMBER.findall(node.value))


def _constants(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        name = each.id if isinstance(each, ast.Name) else each.attr if isinstance(each, ast.Attribute) else ""
        if name.strip("_").isupper() and name != "_MIB":
            yield name


def test_each_bound_that_is_told_is_a_setting_or_has_a_reason() -> None:
    found = set(told_constants())
    assert found - REASONS.keys() == set(), "make it a field of AnswerBounds or BodyBounds, or say why it is none"
    assert REASONS.keys() - found == set(), "these are told no more"


def test_the_module_of_bounds_holds_nothing_else() -> None:
    """So what is added there is a field, of which the next test knows."""
    constants = {name for name, value in vars(bounds).items() if isinstance(value, int)}
    assert constants == {"_MIB"}


def fields_of(config: LimitsConfig) -> dict[str, Any]:
    limits = read_limits(config)
    told = {f"body {name}": value for name, value in msgspec.structs.asdict(limits.shape).items()}
    answers = {f"answer {name}": value for name, value in msgspec.structs.asdict(config.answers()).items()}
    return told | answers | {"body": limits.body}


def test_each_bound_of_a_body_and_of_an_answer_has_a_setting() -> None:
    """Each setting changes a bound, and each bound has its setting; what is usual is what is set by default."""
    usual, moved = fields_of(LimitsConfig()), set[str]()
    for name, value in msgspec.structs.asdict(LimitsConfig()).items():
        changed = fields_of(msgspec.structs.replace(LimitsConfig(), **{name: value + 1}))
        changes = {field for field, bound in changed.items() if bound != usual[field]}
        assert changes, f"{name} sets nothing"
        moved |= changes
    assert moved == usual.keys(), "no setting moves these"
    assert LimitsConfig().answers() == AnswerBounds()
    assert read_limits(LimitsConfig()) == Limits() and Limits().shape == BodyBounds()

"""`/v1/models` and `count_tokens` as Anthropic's clients ask them.

https://docs.anthropic.com/en/api/models-list (read 2026-11-21).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.timestamps import render_time
from dragoman.errors import WireError
from dragoman.protocol.model_pages import Applies, ListedModel, ModelPage, ModelQuestion, Precedence, read_size, to_all

_MOST: Final = 1_000  # models of a page


def _is_marked(headers: Mapping[str, str], query: str) -> bool:
    return "anthropic-version" in headers


def _every(asked: ModelQuestion) -> bytes:
    listed, has_more = _page(asked)
    data = [_model(each, asked.since) for each in listed]
    first, last = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return _json.encode({"data": data, "has_more": has_more, "first_id": first, "last_id": last})


def _page(asked: ModelQuestion) -> tuple[Sequence[ListedModel], bool]:
    """Return the models of a page, and whether more follow in its direction. Without a limit it has all."""
    listed = asked.listed()
    names = [each.name for each in listed]
    size = read_size(asked.parameter("limit"), "limit", _MOST) or len(listed)
    after, before = asked.parameter("after_id"), asked.parameter("before_id")
    for key, name in (("after_id", after), ("before_id", before)):
        if name and name not in names:
            raise WireError("expected the id of a model in the list", path=key)
    begin = names.index(after) + 1 if after else 0
    if not before:
        return listed[begin : begin + size], begin + size < len(listed)
    end = names.index(before)
    first = max(begin, end - size)
    return listed[first:end], begin < first


def _one(asked: ModelQuestion) -> bytes:
    return _json.encode(_model(asked.find(asked.name), asked.since))


def _model(listed: ListedModel, since: int) -> dict[str, Json]:
    return {"type": "model", "id": listed.name, "display_name": listed.name, "created_at": render_time(since)}


def _count(asked: ModelQuestion) -> bytes:
    return _json.encode({"input_tokens": asked.count_tokens(asked.body)})


def _lists(applies: Applies, precedence: int) -> tuple[ModelPage, ...]:
    return (
        ModelPage("/v1/models", _every, applies=applies, precedence=precedence),
        ModelPage("/v1/models/{model}", _one, applies=applies, precedence=precedence),
    )


MODEL_PAGES: Final = (
    ModelPage("/v1/messages/count_tokens", _count, ("POST",)),
    *_lists(_is_marked, Precedence.MARKED),
    *_lists(to_all, Precedence.UNMARKED),
)

"""`models` and `countTokens` as Google's clients ask them. https://ai.google.dev/api/models (read 2026-11-21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.errors import WireError
from dragoman.protocol.model_pages import Applies, ListedModel, ModelPage, ModelQuestion, Precedence, read_size, to_all

_MOST: Final = 1_000  # models of a page
_DIGITS: Final = 9
#: What has tokens of its own, without contents.
_COUNTED: Final = frozenset({"systemInstruction", "system_instruction", "tools"})


def _is_marked(headers: Mapping[str, str], query: str) -> bool:
    return "x-goog-api-key" in headers or "x-goog-api-client" in headers or "&key=" in f"&{query}"


def _every(asked: ModelQuestion) -> bytes:
    listed = asked.listed()
    begin = _begin(asked.parameter("pageToken") or asked.parameter("page_token"), len(listed))
    asks = asked.parameter("pageSize") or asked.parameter("page_size")
    asks = "" if asks == "0" else asks  # a number that is 0 is not said in the vendor's interfaces
    end = begin + (read_size(asks, "pageSize", _MOST) or len(listed))
    more = {"nextPageToken": str(end)} if end < len(listed) else {}
    return _json.encode({"models": [_model(each) for each in listed[begin:end]], **more})


def _begin(token: str, count: int) -> int:
    """Return the place at which a page begins."""
    if not token:
        return 0
    place = int(token) if token.isascii() and token.isdigit() and len(token) <= _DIGITS else count
    if place >= count:
        raise WireError("expected the nextPageToken of a page", path="pageToken")
    return place


def _one(asked: ModelQuestion) -> bytes:
    return _json.encode(_model(asked.find(asked.name)))


def _model(listed: ListedModel) -> Json:
    model: dict[str, Json] = {
        "name": f"models/{listed.name}",
        "version": "1",
        "displayName": listed.name,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
    }
    if listed.model.context is not None:
        model["inputTokenLimit"] = listed.model.context
    if listed.model.max_output is not None:
        model["outputTokenLimit"] = listed.model.max_output
    return model


def _count(asked: ModelQuestion) -> bytes:
    body = asked.body
    fields = _json.decode(body)
    if isinstance(fields, dict):
        inner = fields.get("generateContentRequest") or fields.get("generate_content_request")
        counted = inner if isinstance(inner, dict) else fields
        if counted.get("contents") in (None, []) and not _COUNTED.isdisjoint(counted):  # a prompt's own length is asked
            counted = {**counted, "contents": [{"parts": [{"text": ""}]}]}
        if counted is not fields:
            body = _json.encode(counted)
    path = asked.path.rpartition(":")[0] + ":generateContent"
    return _json.encode({"totalTokens": asked.count_tokens(body, path)})


def _lists(version: str, applies: Applies = to_all, precedence: int = Precedence.USUAL) -> tuple[ModelPage, ...]:
    return (
        ModelPage(f"/{version}/models", _every, applies=applies, precedence=precedence),
        ModelPage(f"/{version}/models/{{model}}", _one, applies=applies, precedence=precedence),
    )


MODEL_PAGES: Final = (
    *(
        ModelPage(f"/{version}/{kind}/{{model}}:countTokens", _count, ("POST",))
        for version in ("v1beta", "v1")
        for kind in ("models", "tunedModels")
    ),
    *_lists("v1beta"),
    *_lists("v1", _is_marked, Precedence.MARKED),
    *_lists("v1", to_all, Precedence.UNMARKED),
)

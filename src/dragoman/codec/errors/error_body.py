"""Read a provider's error in any form: JSON of any shape, HTML, plain text, nothing.

The protocol does not matter: servers answer in each other's forms, and proxies between in none. The message is the
provider's own, clipped, without keys and without the text of a tool call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.codec.compression import is_binary, named_packing, unpacked_start
from dragoman.codec.errors.context_overflow import says_overflow
from dragoman.codec.errors.retry_after import read_wait, wait_in_words
from dragoman.codec.patterns import rare_pattern
from dragoman.errors import failure_kind
from dragoman.events import Failure, FailureKind
from dragoman.secret import name_alone

MESSAGE_LIMIT: Final = 1_000  # characters
_MOST_UNPACKED: Final = 64 * 1024  # bytes of a body that came packed
_DEPTH: Final = 5
_NO_HEADERS: Final[Mapping[str, str]] = {}
#: Keys in small letters with the words of an error, or with what failed.
_MESSAGES: Final = (
    "message", "msg", "error_message", "errormessage", "detail", "error_description", "status_msg",
    "title",
)  # fmt: skip
_INNER: Final = (
    "error", "errors", "err", "exception", "response", "responsemetadata", "data", "fault", "body", "base_resp",
    "header",
)  # fmt: skip
_PROBLEMS: Final = ("message", "msg", "detail")
_FAILED: Final = ("error", "errors", "err", "exception")
_CODES: Final = ("code", "error_code", "errno", "status_code", "statusCode", "status", "success")
_GOOD: Final = ("0", "200", "ok", "success", "true")  # codes of what did not fail

#: Codes and types that tell more than the status does.
_KIND_OF_WORD: Final[dict[str, FailureKind]] = {
    "authentication_error": "auth", "invalid_api_key": "auth", "invalid_authentication_error": "auth",
    "unauthenticated": "auth", "unauthorized": "auth", "api_key_invalid": "auth", "token_expired": "auth",
    "permission_error": "permission", "permission_denied": "permission", "access_denied": "permission",
    "forbidden": "permission", "accessdenied": "permission",
    "insufficient_quota": "quota", "billing_error": "quota", "billing_hard_limit_reached": "quota",
    "insufficient_balance": "quota", "insufficient_credits": "quota", "enforced_spend_limit_reached": "quota",
    "exceeded_current_quota_error": "quota", "payment_required": "quota", "arrearage": "quota",
    "not_found": "not_found", "not_found_error": "not_found", "model_not_found": "not_found",
    "model_not_found_error": "not_found", "resource_not_found_error": "not_found",
    "context_length_exceeded": "context", "exceed_context_size_error": "context",
    "model_context_window_exceeded": "context", "context_window_exceeded": "context",
    "model_max_prompt_tokens_exceeded": "context", "context_window_exceeded_error": "context",
    "request_too_large": "too_large", "payload_too_large": "too_large",
    "answer_too_large": "answer_too_large",
    "rate_limit_error": "rate", "rate_limit_exceeded": "rate", "rate_limit_reached_error": "rate",
    "too_many_requests": "rate", "resource_exhausted": "rate", "throttling": "rate", "throttlingexception": "rate",
    "overloaded_error": "overloaded", "overloaded": "overloaded", "engine_overloaded_error": "overloaded",
    "unavailable": "overloaded", "service_unavailable": "overloaded", "provider_unavailable": "overloaded",
    "server_overloaded": "overloaded", "slow_down": "overloaded",
    "timeout": "timeout", "timeout_error": "timeout", "deadline_exceeded": "timeout", "request_timeout": "timeout",
}  # fmt: skip
#: Words that say no more than a class of statuses; asked when no status came.
_KIND_OF_VAGUE_WORD: Final[dict[str, FailureKind]] = {
    "invalid_request_error": "bad_request", "invalid_argument": "bad_request", "bad_request": "bad_request",
    "failed_precondition": "bad_request", "tool_use_failed": "bad_request", "invalid_prompt": "bad_request",
    "bad_request_error": "bad_request", "unprocessable_entity": "bad_request",
}  # fmt: skip

_RATE: Final = rare_pattern(
    r"rate.?limit|too many requests|per (?:minute|second|hour|day)|throttl|request limit reached", re.IGNORECASE
)
_QUOTA: Final = rare_pattern(
    r"insufficient (?:\w+ )?(?:quota|balance|credit|fund)|exceeded your current quota|credit balance is too low"
    r"|out of credits|no credits|requires more credits|account .{0,20}overdue",
    re.IGNORECASE,
)
#: A limit that somebody set to what may be spent: waiting for it is no matter of seconds, whatever a header says.
_SPENT: Final = rare_pattern(
    r"spend(?:ing)? limit|billing (?:hard )?limit|reached your (?:\w+ ){0,3}usage limits?", re.IGNORECASE
)
_AUTH: Final = rare_pattern(
    r"(?:invalid|incorrect|missing|no|not valid).{0,20}api.?key|api.?key.{0,20}not valid", re.IGNORECASE
)
_OVERLOADED: Final = rare_pattern(r"overloaded|at capacity|temporarily unavailable|server is busy", re.IGNORECASE)
_TIMEOUT: Final = rare_pattern(r"time[d -]?\s?out|deadline exceeded", re.IGNORECASE)

_SECRET: Final = rare_pattern(
    r"\b(?:sk|pk|rk|gsk|xai|nvapi|hf|ghp|gho|github_pat|csk|fw|pplx|tgp|key)[-_][A-Za-z0-9_*.\-]{8,}"
    r"|\bAIza[A-Za-z0-9_\-]{10,}|\beyJ[A-Za-z0-9_\-]{10,}(?:\.[A-Za-z0-9_\-]+)*"
    r"|(?<=[?&]key=)[^&\s\"']+|(?<=[Bb]earer )[^\s\"',]{6,}"
    r"|(?<=api.key provided: )[^\s\"',]+|(?<=x-api-key: )[^\s\"',]+",
)
_RAW_CALL: Final = rare_pattern(r"\braw\s*=\s*('.*'|\".*\")", re.DOTALL)
_TITLE: Final = rare_pattern(r"<(title|h1|h2|h3)\b[^<>]*+>(.{0,500}?)</\1", re.IGNORECASE | re.DOTALL)
_NO_WORDS: Final = rare_pattern(r"<(script|style)\b.*?(?:</\1>|$)|<[^<>]*+>", re.IGNORECASE | re.DOTALL)


class _Finding(msgspec.Struct, eq=False):
    """What was found so far; the outermost finding of each kind wins."""

    messages: list[str] = []
    words: list[str] = []  # codes and types
    status: int | None = None
    retry_after: float | None = None

    __repr__ = name_alone

    def say(self, message: str) -> None:
        message = " ".join(message.split())
        if message and not any(message in said for said in self.messages):
            self.messages.append(message)


def holds_error(value: Json, depth: int = 0) -> bool:
    """Return whether an `error` field says something: null, false, 0, "", {} and objects of such do not."""
    if isinstance(value, dict) and depth < _DEPTH:
        return any(holds_error(inner, depth + 1) for inner in value.values())
    if isinstance(value, str):
        return bool(value.strip())
    return bool(value)


def is_problem(value: Mapping[str, Json]) -> bool:
    """Return whether an object with nothing of an answer is an error, in the form of any service."""
    if not value:
        return False
    is_good = any(str(value[key]).lower() in _GOOD for key in _CODES if key in value)  # its words tell of no error
    return (
        any(isinstance(value.get(key), str | list) and holds_error(value[key]) for key in _PROBLEMS if not is_good)
        or any(
            (key.lower() in _FAILED or ("error" in key.lower() and not is_good)) and holds_error(told)
            for key, told in value.items()
        )
        or "error" in (value.get("object"), value.get("type"), value.get("status"))
        or value.get("success") is False
        or any(_holds_problem(key, inner) for key, inner in value.items())
    )


def _holds_problem(key: str, value: Json) -> bool:
    """Return whether an object contains an `error`, as Volcengine's `ResponseMetadata` does, or a code but 0."""
    # quirk: error-one-level-down
    if not isinstance(value, dict):
        return False
    is_failed = key in ("base_resp", "header") and str(value.get("status_code", value.get("code")) or 0) not in _GOOD
    return is_failed or any(inner.lower() == "error" and holds_error(told) for inner, told in value.items())


def read_problem(value: Json | bytes, *, status: int | None, headers: Mapping[str, str] = _NO_HEADERS) -> Failure:
    """Read an error.

    Args:
        value: a body as bytes, or what an error frame of a stream says (decoded; any shape).
        status: the HTTP status of the response, None for an error inside a stream.
        headers: the response's, names in any case; they may say when to try again (seconds come out).
    """
    found = _Finding()
    if isinstance(value, bytes):
        _read_body(value, found)
    else:
        _read_value(value, found, 0)
    if status is not None and not 200 <= status < 400:
        found.status = status
    waits = read_wait(headers)
    message = _clean("; ".join(found.messages[:3]))
    if waits is None:
        waits = found.retry_after if found.retry_after is not None else wait_in_words(message)
    code = found.words[0] if found.words else None
    return Failure(
        _pick_kind(found, message, waits),
        message or _say_nothing(found, status),
        found.status,
        waits,
        code=_clean(code)[:100] if code else None,
    )


def parse_error(status: int, body: bytes, *, headers: Mapping[str, str] = _NO_HEADERS) -> Failure:
    """Parse the body of a response with an error status: of any protocol, for its servers write all of them."""
    return read_problem(body, status=status, headers=headers)


def _say_nothing(found: _Finding, status: int | None) -> str:
    if found.words:
        return _clean(found.words[0])
    return f"HTTP {status} with nothing that says why" if status is not None else "an error that says nothing"


# ---------------------------------------------------------------- bodies


def _read_body(body: bytes, found: _Finding) -> None:
    body = unpacked_start(body, _MOST_UNPACKED).removeprefix(b"\xef\xbb\xbf")  # a byte order mark
    value = _json.decode(body)
    if isinstance(value, Malformed):
        value = _json.decode_lenient(body)
    if not isinstance(value, Malformed):
        _read_value(value, found, 0)
        return
    if is_binary(body):
        return found.say(f"bytes that are no text ({named_packing(body)})")
    text = body[: 16 * MESSAGE_LIMIT].decode("utf-8", "replace").strip()
    if text[:1] == "<":
        _read_html(text, found)
    elif text[:5] == "data:" or text[:6] == "event:":  # an error status with a body in the form of a stream
        for line in text.splitlines():
            inner = _json.decode(line[5:].strip()) if line[:5] == "data:" else None
            if isinstance(inner, dict):
                _read_value(inner, found, 0)
    else:
        found.say(text)


def _read_html(text: str, found: _Finding) -> None:
    titles = [words for _, inner in _TITLE.findall(text[: 16 * MESSAGE_LIMIT]) if (words := _words_of(inner))]
    found.say(titles[0] if titles else _words_of(text[: 16 * MESSAGE_LIMIT])[:200])


def _words_of(markup: str) -> str:
    import html  # a table of 2,231 names, for who gets a page in place of an answer

    return " ".join(html.unescape(_NO_WORDS.sub(" ", markup)).split())


# ---------------------------------------------------------------- JSON values


def _read_value(value: Json, found: _Finding, depth: int) -> None:
    if depth > _DEPTH:
        return
    if isinstance(value, dict):
        _read_object(value, found, depth)
    elif isinstance(value, list):
        for item in value[:3]:
            _read_value(item, found, depth + 1)
    elif isinstance(value, str):
        _read_text(value, found, depth)


def _read_text(text: str, found: _Finding, depth: int) -> None:
    """Read a message. Proxies put the provider's whole body there."""
    start = text.strip()
    if start[:1] in ("{", "["):
        inner = _json.decode(start)
        if isinstance(inner, dict | list):
            _read_value(inner, found, depth + 1)
            return
    if start[:1] == "<" and start[-1:] == ">":
        _read_html(start, found)
    else:
        found.say(text)


def _read_object(fields: dict[str, Json], found: _Finding, depth: int) -> None:
    spoken = len(found.messages)
    value = {key.lower(): told for key, told in fields.items()}
    for key in _MESSAGES:
        if value.get(key) and len(found.messages) == spoken:
            _read_value(value[key], found, depth + 1)
    if isinstance(value.get("loc"), list) and len(found.messages) > spoken:
        found.messages[-1] += f" ({'.'.join(str(step) for step in value['loc'])})"
    for key in ("code", "type", "status", "error_type", "error_code", "reason"):
        _read_word(value.get(key), found)
    for key in _INNER:
        if holds_error(value.get(key)):
            _read_value(value[key], found, depth + 1)
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        _read_word(metadata.get("error_type"), found)
        _read_value(metadata.get("raw"), found, depth + 1)
    _read_details(value.get("details"), found, depth)
    wait = value.get("retry_after", value.get("retry_after_seconds"))
    if isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait < 1e9:
        found.retry_after = float(wait)
    if len(found.messages) == spoken:
        _read_odd_keys(fields, found)


def _read_word(word: Json, found: _Finding) -> None:
    if isinstance(word, str) and word.isdecimal() and len(word) == 3:
        word = int(word)
    if isinstance(word, str) and word.strip() and word != "error":
        found.words.append(word.strip())
    elif isinstance(word, int) and 400 <= word < 600 and not isinstance(word, bool) and found.status is None:
        found.status = word


def _read_details(details: Json, found: _Finding, depth: int) -> None:
    """Read Google's list of typed details: the retry delay, and the reason as a word; Anthropic's code, which says more
    than the words beside it.
    """
    if isinstance(details, dict):
        said = len(found.words)
        _read_word(details.get("error_code"), found)
        found.words[:0] = found.words[said:]
    for detail in details[:8] if isinstance(details, list) else ():
        if not isinstance(detail, dict):
            continue
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (wait := re.fullmatch(r"(\d{1,9}(?:\.\d{1,40})?)s", delay)):
            found.retry_after = float(wait[1])
        _read_word(detail.get("reason"), found)
    if isinstance(details, str) and not found.messages:
        _read_text(details, found, depth)


def _read_odd_keys(value: dict[str, Json], found: _Finding) -> None:
    """Read `{"error parsing tool call": "…"}`, where the key is half of the message."""
    # quirk: error-under-another-key
    for key, inner in value.items():
        if "error" in key.lower() and key.lower() not in ("error", "errors") and isinstance(inner, str) and inner:
            found.say(f"{key}: {inner}")
            return


# ---------------------------------------------------------------- what it amounts to


def _pick_kind(found: _Finding, message: str, waits: float | None) -> FailureKind:
    words = [re.sub(r"[\s\-]+", "_", word).lower() for word in found.words]
    known = [_KIND_OF_WORD[word] for word in words if word in _KIND_OF_WORD]
    if found.status == 402 or "quota" in known:
        return "quota"
    if "context" in known or (found.status not in (401, 403, 429) and says_overflow(message)):
        return "context"
    if _SPENT.search(message) or (_QUOTA.search(message) and waits is None):
        return "quota"
    if _AUTH.search(message) and found.status in (None, 400, 401, 403):
        return "auth"
    if known:
        return known[0]
    if found.status is not None:
        return failure_kind(found.status)
    if _RATE.search(message):
        return "rate"
    if _OVERLOADED.search(message):
        return "overloaded"
    if _TIMEOUT.search(message):
        return "timeout"
    return next((_KIND_OF_VAGUE_WORD[word] for word in words if word in _KIND_OF_VAGUE_WORD), "internal")


def _clean(message: str) -> str:
    """Return the message without keys and without the text of a call, at most MESSAGE_LIMIT characters."""
    message = _RAW_CALL.sub(lambda found: f"raw=({len(found[1]) - 2} characters)", message[: 16 * MESSAGE_LIMIT])
    message = _SECRET.sub("***", message)
    return message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…"

"""Convert Google's enums from numbers, which clients request with `$alt=json;enum-encoding=int`, to names.

Published in googleapis/googleapis, google/ai/generativelanguage/v1beta and google/cloud/aiplatform/v1 (read
2026-11-22). If the two differ, Google AI's numbers count; of the harm categories it uses those from 7 on, Vertex AI
those below.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw

FINISH_REASONS: Final = (
    "FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST",
    "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER", "NO_IMAGE", "IMAGE_RECITATION",
    "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE",
)  # fmt: skip
#: Field → its values by number, in what is kept as it is.
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "blockReason": (
        "BLOCK_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY",
    ),
    "category": (
        "HARM_CATEGORY_UNSPECIFIED", "HARM_CATEGORY_HATE_SPEECH", "HARM_CATEGORY_DANGEROUS_CONTENT",
        "HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_CIVIC_INTEGRITY",
        "HARM_CATEGORY_JAILBREAK", "HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_HATE_SPEECH",
        "HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT", "HARM_CATEGORY_CIVIC_INTEGRITY",
    ),
    "probability": ("HARM_PROBABILITY_UNSPECIFIED", "NEGLIGIBLE", "LOW", "MEDIUM", "HIGH"),
    "severity": (
        "HARM_SEVERITY_UNSPECIFIED", "HARM_SEVERITY_NEGLIGIBLE", "HARM_SEVERITY_LOW", "HARM_SEVERITY_MEDIUM",
        "HARM_SEVERITY_HIGH",
    ),
    "modality": ("MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "VIDEO", "AUDIO", "DOCUMENT"),
    "urlRetrievalStatus": (
        "URL_RETRIEVAL_STATUS_UNSPECIFIED", "URL_RETRIEVAL_STATUS_SUCCESS", "URL_RETRIEVAL_STATUS_ERROR",
        "URL_RETRIEVAL_STATUS_PAYWALL", "URL_RETRIEVAL_STATUS_UNSAFE",
    ),
    "language": ("LANGUAGE_UNSPECIFIED", "PYTHON"),
    "outcome": ("OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"),
    "trafficType": ("TRAFFIC_TYPE_UNSPECIFIED", "ON_DEMAND", "PROVISIONED_THROUGHPUT"),
}  # fmt: skip
_NUMBERED: Final = re.compile(rb'"(?:' + "|".join(_NAMES).encode() + rb')"\s*:\s*[0-9]')
_DEPTH: Final = 64


def enum_name(names: tuple[str, ...], value: str | int) -> str:
    """Return the name of an enum's value; an unpublished number is its own text."""
    if isinstance(value, str):
        return value
    return names[value] if 0 <= value < len(names) else str(value)


def with_names(value: Raw) -> Raw:
    """Return JSON text with the names of enums in place of their numbers; unchanged if there are none."""
    if _NUMBERED.search(bytes(value)) is None:
        return value
    decoded = _json.decode(bytes(value))
    return value if isinstance(decoded, _json.Malformed) else _json.raw(_with_names(decoded, 0))


def _with_names(value: Json, depth: int) -> Json:
    if depth > _DEPTH:
        return value
    if isinstance(value, list):
        return [_with_names(inner, depth + 1) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: enum_name(_NAMES[key], inner) if key in _NAMES and type(inner) is int else _with_names(inner, depth + 1)
        for key, inner in value.items()
    }

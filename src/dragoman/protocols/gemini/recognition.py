"""Recognise Gemini's generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import Recognition


def _is_answer(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("candidates"), list) or "usageMetadata" in value or "promptFeedback" in value


def _is_error(value: Mapping[str, Any]) -> bool:
    error = value.get("error")
    return isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("status"), str)


def _is_message(message: Mapping[str, Any]) -> bool:
    return "parts" in message


def _tool_entry(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return tool
    if "parametersJsonSchema" in tool or _is_upper_case(tool.get("parameters")):
        return {"functionDeclarations": [tool]}
    return None


def _is_upper_case(schema: object) -> bool:
    """Return whether it is a schema in Google's own form, with types in upper case."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return isinstance(kind, str) and kind.isupper()


RECOGNITION: Final = Recognition(
    short_name="gemini",
    messages_field="contents",
    hello=({"role": "user", "parts": [{"text": "hello"}]},),
    is_answer=_is_answer,
    is_error=_is_error,
    is_message=_is_message,
    tool_entry=_tool_entry,
    client_headers=("x-goog-api-key", "x-goog-api-client"),
    error_paths=("/v1beta/", "/v1/models/"),
    has_embeddings=True,
    operation="generate_content",
)

"""What tells it apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.protocol.recognition import Recognition


def _is_answer(value: Mapping[str, Any]) -> bool:
    return "say" in value


def _is_message(message: Mapping[str, Any]) -> bool:
    return "says" in message


RECOGNITION: Final = Recognition(
    short_name="toy",
    messages_field="turns",
    hello=[{"who": "user", "says": "hello"}],
    is_answer=_is_answer,
    is_message=_is_message,
    error_paths=("/toy/",),
    client_headers=("x-toy",),
)

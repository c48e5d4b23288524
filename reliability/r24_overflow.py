"""R24: a prompt that is too long is told for what it is in every server's words; what only sounds like it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codec.errors.test_context_overflow import LOOK_ALIKES, WORDINGS
from dragoman.codec.errors.context_overflow import Overflow, read_overflow
from dragoman.codec.errors.error_body import read_problem
from dragoman.routing.circuit_breaker import COUNTED
from dragoman.routing.retry import pick_delay
from reliability.row import Result, Scale

#: LiteLLM answers 503 for what was a 400.
STATUSES = (400, 413, 422, 500, 503, None)


def measure(scale: Scale) -> Iterator[Result]:
    """Every wording with every status."""
    known = sum(is_told(words) for words, _, _ in WORDINGS)
    alike = sum(read_problem(body(words), status=status).kind == "context" for words, status in LOOK_ALIKES)
    printed = [(words, Overflow(limit, asked)) for words, limit, asked in WORDINGS if limit is not None]
    read = sum(read_overflow(words) == figures for words, figures in printed)
    yield Result(
        "R24",
        "≥ 40 wordings, all told, whatever the status",
        f"{known} of {len(WORDINGS)}",
        known == len(WORDINGS) >= 40,
    )
    yield Result("R24", "0 of ≥ 12 look-alikes", f"{alike} of {len(LOOK_ALIKES)}", not alike and len(LOOK_ALIKES) >= 12)
    yield Result("R24", "the figures are read where printed", f"{read} of {len(printed)}", read == len(printed))
    again = sum(
        not isinstance(pick_delay(read_problem(body(words), status=503), tries=1, random=0.5), str)
        for words, _, _ in WORDINGS
    )
    yield Result(
        "R24", "never tried again, never an outlier", f"{again} tried again", not again and "context" not in COUNTED
    )


def is_told(words: str) -> bool:
    return all(read_problem(body(words), status=status).kind == "context" for status in STATUSES)


def body(words: str) -> bytes:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()

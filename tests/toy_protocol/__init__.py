"""A protocol of lines, `{"say": "words"}` and at the end `{"done": true}`: played by `tests/test_recipes.py`."""

from __future__ import annotations

from dragoman.protocols.toy.recognition import RECOGNITION as RECOGNITION

from dragoman.protocol import Protocol


def load() -> Protocol:
    """The codec, loaded when it is asked for."""
    from dragoman.protocols.toy.protocol import PROTOCOL

    return PROTOCOL

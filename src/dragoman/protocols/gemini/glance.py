"""What must be known of a Gemini request before its bytes are passed on."""

from __future__ import annotations

from dragoman import _json
from dragoman.contract import Glance
from dragoman.errors import WireError
from dragoman.protocols.gemini.request import parse_path


def glance(body: bytes, *, path: str = "") -> Glance | None:
    """The model and whether a stream is asked for, all in the path; None when the body must be read. An array is
    written by the gateway, since its end must be right when the stream breaks."""
    try:
        model, is_stream, is_array = parse_path(path, "")
    except WireError:
        return None
    return None if is_array or not _json.is_json(body) else Glance(model, is_stream, names_model=False)

"""Reports of a validation for people and machines: a table, JSON, JUnit XML, one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dragoman.errors import UsageError
from dragoman.validate.report.document import Report, render_document
from dragoman.validate.report.junit import render_junit
from dragoman.validate.report.page import render_page
from dragoman.validate.report.table import render_target

#: By a file's ending.
RENDERERS: Final[dict[str, Callable[[Report], bytes]]] = {
    ".json": render_document,
    ".xml": render_junit,
    ".html": render_page,
}


def renderer_for(file: Path) -> Callable[[Report], bytes]:
    """Return the renderer for a file's kind of report.

    Raises:
        UsageError: the file's ending is unknown, or its folder does not exist.
    """
    found = RENDERERS.get(file.suffix.lower())
    if found is None:
        raise UsageError(f"--report {file}: expected a file that ends in {', '.join(RENDERERS)}")
    if not file.absolute().parent.is_dir():
        raise UsageError(f"--report {file}: there is no folder {file.parent}")
    return found


__all__ = ["Report", "render_document", "render_junit", "render_page", "render_target", "renderer_for"]

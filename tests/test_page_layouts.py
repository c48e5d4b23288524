"""The layouts of pages that `make page-screens` compares: a change is seen, and what differs by fonts is not one."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import page_layouts

STYLES = ["16px 400", "", "rgb(0, 0, 0)", "rgba(0, 0, 0, 0)"]
DARK = ["16px 400", "", "rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"]
SHADE = ["16px 400", "rgb(1, 2, 3)", "rgb(0, 0, 0)", "rgba(0, 0, 255, 0.5)"]


def page(styles: list[str] = STYLES, *, words: str = "Models", box: tuple[int, ...] = (16, 24, 300, 40)) -> list[Any]:
    return [[0, "body", "", [0, 0, 400, 900], styles], [1, "h2.wide", words, list(box), styles]]


def rendered(**changes: Any) -> str:
    return page_layouts.render_layout({"light": page(**changes), "dark": page(DARK, **changes)})


def test_a_layout_says_what_differs_from_the_parent_alone() -> None:
    assert rendered() == (
        'body +0,0 400×900 type 16px 400 border none colour #000000|#ffffff on none\n  h2.wide "Models" +16,24 300×40\n'
    )
    shaded = [*page()[:1], [*page()[1][:4], SHADE]]
    text = page_layouts.render_layout({"light": shaded, "dark": shaded})
    assert text.endswith("×40 border #010203 on #0000ff/0.5\n")


@pytest.mark.parametrize(
    "change",
    [
        {"words": "Model"},
        {"words": ""},
        {"box": (16, 24, 300, 60)},
        {"box": (16, 24, 250, 40)},
        {"box": (24, 24, 300, 40)},
        {"box": (16, -24, 300, 40)},
    ],
    ids=str,
)
def test_a_change_is_seen(change: dict[str, Any]) -> None:
    [found] = page_layouts.differences(rendered(), rendered(**change))
    assert found.startswith("2: kept h2.wide")


def test_a_colour_and_an_element_are_seen() -> None:
    kept = rendered()
    assert len(page_layouts.differences(kept, kept.replace("#ffffff", "#fffffe"))) == 1
    assert page_layouts.differences(kept, kept + "  p +0,0 3×3\n") == ["kept 2 elements, seen 3"]


def test_what_differs_by_fonts_is_no_change() -> None:
    assert page_layouts.differences(rendered(), rendered(box=(18, 21, 309, 42))) == []


def test_no_figure_of_time_is_kept() -> None:
    kept = "\n".join(path.read_text("utf-8") for path in page_layouts.LAYOUTS.iterdir())
    assert "N tokens/s" in kept and not re.search(r"\d( ?m?s\b|,? tokens/s)", kept)


def test_a_theme_that_moves_something_is_refused() -> None:
    with pytest.raises(AssertionError, match="expected the same place"):
        page_layouts.render_layout({"light": page(), "dark": page(DARK, box=(16, 24, 300, 90))})


def test_a_page_that_looks_different_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_layouts, "LAYOUTS", tmp_path / "pages")
    monkeypatch.setenv("DRAGOMAN_WRITE_SCREENS", "1")
    page_layouts.keep_layout("start", {"light": page(), "dark": page(DARK)})
    monkeypatch.delenv("DRAGOMAN_WRITE_SCREENS")
    page_layouts.keep_layout("start", {"light": page(), "dark": page(DARK)})
    with pytest.raises(AssertionError, match=r"start looks different in 1 places:\n2: kept h2"):
        page_layouts.keep_layout("start", {"light": page(words="x"), "dark": page(DARK, words="x")})


def test_each_page_is_kept_wide_and_narrow() -> None:
    pages = ("report-all", "report-healthy", "report-healthy-open", "start")
    assert sorted(path.stem for path in page_layouts.LAYOUTS.iterdir()) == [
        f"{page}-{width}" for page in pages for width in (1280, 400)
    ]

"""`make page-screens`: the report of `dragoman validate` in a real browser, wide and narrow, light and dark.

The models are scripted ones on loopback: a healthy one, one that writes prose, one that refuses tools; one server is
not there. For one model and for all of them beside each other it checks that the page fits the window, asks for nothing
outside, shows marks that look like links, opens them with the request in reach and the events folded, and looks as the
layout that is kept in `tests/pages` (DRAGOMAN_WRITE_SCREENS=1 writes it).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from check_pages import THEMES, WIDTHS, Browser, browser
from page_layouts import keep_layout, layout_of, settle

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from dragoman.cli.main import main as dragoman
from dragoman.events import Failure
from validate import lies
from validate.scripted_model import KEY, MODEL, Lie, scripted_model

#: By state ("" is closed), what shows.
Looks = dict[str, list[list[Any]]]
#: The layouts that are kept, by report: of one model's, also with a mark open; of all models beside each other.
KEPT = {"report-healthy": ("", "-open"), "report-all": ("",)}
REFUSAL = Failure("bad_request", f"{MODEL} does not support tools", 400)


def refuses_tools() -> Lie:
    """A server whose model's template has no tools."""
    return Lie(refuses=lambda request: REFUSAL if request.tools else None)


def write_reports(folder: Path) -> list[Path]:
    """Validate the scripted models: a report of one, a report of each failing one, one of all."""
    with ExitStack() as stack:
        said = {"healthy": Lie(), "writes-prose": lies.writes_text(), "refuses-tools": refuses_tools()}
        urls = {name: stack.enter_context(scripted_model(lie=lie)).url for name, lie in said.items()}
        urls["a-provider-of-a-long-name-that-is-not-there"] = "http://127.0.0.1:9/v1"
        file = folder / "dragoman.toml"
        file.write_text(
            '[validate]\nstore = "proofs.db"\n'
            + "".join(
                f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "{url}"\napi_key = "env:LAB_KEY"\n'
                for name, url in urls.items()
            )
        )
        os.environ |= {"DRAGOMAN_CONFIG": str(file), "LAB_KEY": KEY}
        targets = {name: [f"{name}/{MODEL}"] for name in urls}
        targets["all"] = [target for [target] in targets.values()]
        for name, asked in targets.items():
            report = folder / f"report-{name}.html"
            dragoman(
                [
                    "validate",
                    "--full-suite",
                    "--seed",
                    "screens",
                    "--per-minute",
                    "60000",
                    "--report",
                    str(report),
                    *asked,
                ]
            )
        return [folder / f"report-{name}.html" for name in targets]


async def check(tab: Browser, report: Path, width: int, theme: str, into: Path) -> Looks:
    """One report at one size in one theme, closed and with each mark open; its layout, and with the first mark open."""
    await tab.resize(width, theme)
    tab.requested.clear()
    await tab.ask("Page.navigate", url=report.as_uri())
    await tab.until("document.readyState === 'complete' && document.querySelector('footer') !== null")
    await tab.expect_no_sideways_scrolling()
    assert await tab.value("/agent/.test(document.querySelector('h1').textContent)")
    await settle(tab)
    await tab.picture(into / f"{report.stem}-{width}-{theme}.png")
    looks = {"": await layout_of(tab)}
    marks = await tab.value("[...document.querySelectorAll('.mark')].map(mark => mark.getAttribute('href'))")
    styles = "[...document.querySelectorAll('.mark')].map(mark => getComputedStyle(mark))"
    assert await tab.value(f"{styles}.every(style => style.cursor === 'pointer' && style.borderTopWidth === '1px')")
    for place, mark in enumerate(marks):
        await tab.value(f"document.querySelector('.mark[href=\"{mark}\"]').click()")
        await tab.until(f"'#' + (document.querySelector('.cell:target') ?? document.body).id === '{mark}'")
        await tab.expect_no_sideways_scrolling()
        folds = "[...document.querySelectorAll('.cell:target details')]"
        assert await tab.value(f"{folds}.length >= 3 && {folds}.every(fold => !fold.open)"), mark
        await tab.value(f"{folds}.forEach(fold => fold.open = true)")
        await tab.expect_no_sideways_scrolling()
        if place == 0:
            await tab.picture(into / f"{report.stem}-open-{width}-{theme}.png")
            looks["-open"] = await layout_of(tab)
    assert tab.complaints == [], tab.complaints
    outside = [url for url in tab.requested if not url.startswith(report.as_uri())]
    assert outside == [], outside
    return looks


async def check_all(reports: list[Path], into: Path) -> None:
    """Every report at every size in every theme."""
    async with browser() as tab:
        for report in reports:
            for width in WIDTHS:
                themes = {theme: await check(tab, report, width, theme, into) for theme in THEMES}
                for state in KEPT.get(report.stem, ()):
                    keep_layout(f"{report.stem}{state}-{width}", {theme: themes[theme][state] for theme in THEMES})
                print(f"ok: {report.name}, {width} pixels, {' and '.join(THEMES)}")


def main() -> None:
    """Validate, then look at what was written."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", type=Path, default=Path("build/pages"), help="the folder of the pictures")
    into: Path = parser.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check_all(write_reports(Path(folder)), into))


if __name__ == "__main__":
    main()

"""What a page looks like, as text that is kept: its elements with their words, boxes and colours, light and dark.

A line for each element that shows, below its parent: tag and classes, its own words, its place and size in CSS pixels,
and what differs from its parent's: type, border, colour and background (light|dark). `+12,8` is the distance from the
parent's left edge, and from the lower edge of the element before it (of the parent's upper edge, for the first), so
that one change moves one line. Words that differ from run to run are replaced in the page before it is measured. Boxes
depend on the fonts of the machine: they may differ by
`FREE_PIXELS` or `FREE_SHARE`, the rest must be the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

LAYOUTS = Path(__file__).resolve().parent.parent / "tests" / "pages"
FREE_PIXELS = 3
FREE_SHARE = 0.04
#: What differs from run to run, as JavaScript has it → the words in its place. The order counts.
CHANGING = (
    (r"(127\.0\.0\.1|localhost):\d+", "$1:PORT"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"\b\d?\d:\d\d(:\d\d)?(\.\d+)?( [AP]M)?", "TIME"),
    (r"\d+(\.\d+)?( ?m?s\b)", "N$2"),
    (r"[\d,]+ tokens/s\b", "N tokens/s"),
    (r"\bcall_\w{8,}\b", "call_ID"),
    (r"\b[0-9a-f]{12,}\b", "HEX"),
    (r"\b[0-9]{9,}\b", "NUMBER"),
)
_SETTLE = """(changing) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), rules =
    changing.map(([pattern, words]) => [new RegExp(pattern, 'g'), words]);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    const settled = rules.reduce((words, [pattern, others]) => words.replace(pattern, others), text.data);
    if (settled !== text.data) text.data = settled;
  }
  document.querySelectorAll('.bar').forEach(bar => bar.style.width = '50%');  // as long as something took
}"""
_MEASURE = """() => {
  const rows = [], round = number => Math.round(number);
  const walk = (element, depth, left, above) => {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!element.checkVisibility() || !(box.width && box.height)) return above;
    const own = [...element.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data);
    const name = [element.localName, ...element.classList].join('.');
    rows.push([depth, name, own.join(' ').replace(/\\s+/g, ' ').trim(),
      [box.left - left, box.top - above, box.width, box.height].map(round),
      [`${style.fontSize} ${style.fontWeight}`, parseFloat(style.borderTopWidth) ? style.borderTopColor : '',
       style.color, style.backgroundColor]]);
    let lowest = box.top;
    for (const child of element.children) lowest = walk(child, depth + 1, box.left, lowest);
    return box.bottom;
  };
  walk(document.body, 0, 0, 0);
  return rows;
}"""
_STYLES = ("type", "border", "colour", "on")
_COLOUR = re.compile(r"rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)")
_BOX = re.compile(r"\+(-?\d+),(-?\d+) (\d+)×(\d+)")


class Tab(Protocol):
    """What is needed of a tab of a browser."""

    async def value(self, expression: str) -> Any: ...


async def settle(tab: Tab, more: Sequence[tuple[str, str]] = ()) -> None:
    """Replace the words of the page that differ from run to run; `more`: further patterns of this page."""
    await tab.value(f"({_SETTLE})({json.dumps([*CHANGING, *more])})")


async def layout_of(tab: Tab) -> list[list[Any]]:
    """The elements that show, in order: depth, name, words, box, and the styles of `_STYLES`."""
    rows: list[list[Any]] = await tab.value(f"({_MEASURE})()")
    return rows


def render_layout(themes: Mapping[str, list[list[Any]]]) -> str:
    """The page as text. Raises AssertionError: a theme moves something, or shows something else."""
    lines: list[str] = []
    above: list[list[str]] = []  # the styles of the element's parents, by depth
    for one, other in zip(themes["light"], themes["dark"], strict=True):
        assert one[:4] == other[:4], f"expected the same place and words in every theme, got {one} and {other}"
        depth, name, words, (left, top, width, height), _ = one
        styles = [_style(kind, *pair) for kind, pair in zip(_STYLES, zip(one[4], other[4], strict=True), strict=True)]
        of_parent = above[depth - 1] if depth else [""] * len(_STYLES)
        above[depth:] = [styles]
        said = [json.dumps(words, ensure_ascii=False)] if words else []
        own = [style for style, inherited in zip(styles, of_parent, strict=True) if style != inherited]
        lines.append("  " * depth + " ".join([name, *said, f"+{left},{top} {width}×{height}", *own]))
    return "\n".join(lines) + "\n"


def _style(kind: str, light: str, dark: str) -> str:
    """A style of an element, in both themes where they differ."""
    values = [_COLOUR.sub(_as_hex, value) or "none" for value in (light, dark)]
    return f"{kind} {'|'.join(dict.fromkeys(values))}"


def _as_hex(colour: re.Match[str]) -> str:
    red, green, blue = (int(figure) for figure in colour.group(1, 2, 3))
    return "none" if colour[4] == "0" else f"#{red:02x}{green:02x}{blue:02x}" + (f"/{colour[4]}" if colour[4] else "")


def differences(kept: str, seen: str) -> list[str]:
    """Where two layouts differ by more than fonts may: the lines, in words. [] is nowhere."""
    before, after = kept.splitlines(), seen.splitlines()
    found = []
    for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
        is_same = _BOX.sub("", old) == _BOX.sub("", new)
        if not (is_same and _is_near(old, new)):
            found.append(f"{number}: kept {old.strip()}\n{number}: seen {new.strip()}")
    if len(before) != len(after):
        found.append(f"kept {len(before)} elements, seen {len(after)}")
    return found


def _is_near(old: str, new: str) -> bool:
    places = [[int(figure) for box in _BOX.findall(line) for figure in box] for line in (old, new)]
    return len(places[0]) == len(places[1]) and all(
        abs(a - b) <= max(FREE_PIXELS, FREE_SHARE * abs(a)) for a, b in zip(*places, strict=True)
    )


def keep_layout(name: str, themes: Mapping[str, list[list[Any]]]) -> None:
    """Compare a page with the one that is kept; with DRAGOMAN_WRITE_SCREENS=1, keep it.

    Raises:
        AssertionError: they differ; the message has the first lines that do.
    """
    path, seen = LAYOUTS / f"{name}.txt", render_layout(themes)
    if os.environ.get("DRAGOMAN_WRITE_SCREENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    found = differences(path.read_text(encoding="utf-8"), seen)
    assert not found, "\n".join([f"{name} looks different in {len(found)} places:", *found[:10]])

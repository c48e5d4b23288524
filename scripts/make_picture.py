"""Draw docs/images/mended.svg from what `dragoman demo --streams --bytes` really prints; --check only compares."""

import argparse
import html
import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PICTURE = PROJECT / "docs" / "images" / "mended.svg"
COMMAND = ["dragoman", "demo", "--streams", "--bytes"]
COLUMNS = 100

CHARACTER = 8.4  # px, of a monospace font at 14 px
LINE = 20  # px
MARGIN = 18  # px
HEAD = 40  # px, the window's frame
COLOURS = {
    "1": "#f0f6fc", "2": "#8b949e", "31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "36": "#a5d6ff",
}  # fmt: skip
PLAIN = "#c9d1d9"
CODE = re.compile(r"\x1b\[([0-9;]*)m")


def capture() -> str:
    """The first stream's part of the output, with its colours."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    run = subprocess.run(
        [sys.executable, "-m", *COMMAND],
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
        env={**environment, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
    )
    return run.stdout.partition("\n\n")[0]


def render_line(line: str) -> str:
    """A line of terminal output as SVG text spans."""
    spans, colour = [], PLAIN
    for position, piece in enumerate(CODE.split(line)):
        if position % 2:
            colour = COLOURS.get(piece, PLAIN)
        elif piece:
            spans.append(f'<tspan fill="{colour}">{html.escape(piece, quote=False)}</tspan>')
    return "".join(spans)


def render_picture(output: str) -> str:
    """A terminal window that shows the command and its output."""
    lines = [f"\x1b[32m$\x1b[0m \x1b[1m{' '.join(COMMAND)}\x1b[0m", *output.splitlines()]
    width, height = round(COLUMNS * CHARACTER + 2 * MARGIN), HEAD + len(lines) * LINE + MARGIN
    dots = "".join(
        f'<circle cx="{MARGIN + 6 + 20 * place}" cy="20" r="6" fill="{fill}"/>'
        for place, fill in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{HEAD + LINE * number + 14}" xml:space="preserve">{render_line(line)}</text>'
        for number, line in enumerate(lines)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">
<style>text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}</style>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
{dots}
{rows}
</svg>
"""


def main() -> int:
    """Draw, or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the picture is not current")
    check = parser.parse_args().check
    picture = render_picture(capture())
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    if not check:
        PICTURE.write_text(picture, encoding="utf-8")
    name = PICTURE.relative_to(PROJECT)
    print(f"not current, run scripts/make_picture.py: {name}" if check else f"written: {name}")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())

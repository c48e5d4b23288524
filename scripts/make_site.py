"""`make site`: the documents as one site, under build/site: search, no request to another server, every link checked.

MkDocs reads one folder, so the pages are gathered in build/site-pages first: `docs`, and the documents of the root and
of `bench` that they link, under `project`. A link to a file that is no page of the site becomes its name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PAGES = PROJECT / "build" / "site-pages"
SITE = PROJECT / "build" / "site"
#: Documents beside `docs`: where they stand, and where in the site.
OTHERS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "bench/RESULTS.md": "project/measurements.md",
}
#: The parts of the site, in the order in which somebody needs them.
PARTS = {
    "Tutorial": "tutorial", "How to": "how-to", "Reference": "reference", "Explanation": "explanation",
    "Decisions": "adr", "Project": "project",
}  # fmt: skip
#: Text in a code span or a fenced block is no link.
LINK_OR_CODE = re.compile(r"(?s)(```.*?```|`[^`\n]*`)|(!?)\[((?:`[^`\n]*`|[^\]`])*)\]\(([^)\s]+)\)")


def places() -> dict[Path, Path]:
    """Each file of the site by where it stands in the project; both relative."""
    docs = [path.relative_to(PROJECT) for path in (PROJECT / "docs").rglob("*") if path.is_file()]
    found = {path: path.relative_to("docs") for path in sorted(docs)}
    found[Path("docs/README.md")] = Path("all-pages.md")
    found[Path("docs/adr/README.md")] = Path("adr/index.md")
    return found | {Path(source): Path(place) for source, place in OTHERS.items()}


def moved(text: str, source: Path, where: dict[Path, Path]) -> str:
    """A page's text with its links as they are in the site."""

    def link(found: re.Match[str]) -> str:
        code, is_image, words, target = found.groups()
        if code is not None or "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        path, mark, anchor = target.partition("#")
        wanted = Path(os.path.normpath(source.parent / path))
        place = where.get(wanted) or where.get(wanted / "README.md")
        if place is None:
            return words if (PROJECT / wanted).exists() else found[0]  # MkDocs tells of what is not there
        return f"{is_image}[{words}]({os.path.relpath(place, where[source].parent)}{mark}{anchor})"

    return LINK_OR_CODE.sub(link, text)


def gather() -> int:
    """Write the pages; gives how many there are."""
    shutil.rmtree(PAGES, ignore_errors=True)
    where = places()
    for source, place in where.items():
        target = PAGES / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(moved((PROJECT / source).read_text(encoding="utf-8"), source, where), encoding="utf-8")
        else:
            shutil.copy(PROJECT / source, target)
    return sum(place.suffix == ".md" for place in where.values())


def write_settings() -> Path:
    """Write MkDocs' settings with the order of the pages; gives the file."""
    parts = []
    for title, folder in PARTS.items():
        names = sorted(
            (page.name for page in (PAGES / folder).glob("*.md")), key=lambda name: (name != "index.md", name)
        )
        parts.append({title: [f"{folder}/{name}" for name in names]})
    settings = {
        "INHERIT": "../mkdocs.yml", "docs_dir": PAGES.name, "site_dir": SITE.name,
        "nav": [{"Home": "index.md"}, *parts, {"All pages": "all-pages.md"}],
    }  # fmt: skip
    file = PAGES.parent / "mkdocs.yml"
    file.write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    return file


def foreign_requests() -> list[str]:
    """What a browser would ask of another server when it shows a page: scripts, styles, pictures, frames."""
    asked = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)""")
    kept = re.compile(r"""rel=["']?(?:canonical|prev|next)""")
    return [
        f"{page.relative_to(SITE)}: {found[1]}"
        for page in sorted(SITE.rglob("*.html"))
        for found in asked.finditer(page.read_text(encoding="utf-8"))
        if not kept.search(found[0])
    ]


def main() -> int:
    """Gather, build, check."""
    count = gather()
    settings = str(write_settings())
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", settings]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    # Not --quiet: then --strict does not see the warnings, which say what is wrong.
    built = subprocess.run(command, cwd=PROJECT, env=environ, check=False, capture_output=True, text=True)
    if built.returncode:
        sys.stderr.write(built.stdout + built.stderr)
        return built.returncode
    asked = foreign_requests()
    shown = SITE.relative_to(PROJECT)
    print("\n".join(asked) or f"{count} pages in {shown}. To search them: python3 -m http.server --directory {shown}")
    return 1 if asked else 0


if __name__ == "__main__":
    sys.exit(main())

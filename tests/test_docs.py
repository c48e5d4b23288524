"""What the documentation says exists, runs and is current; nothing that is committed names a machine or a secret."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(?P<mark><!-- runnable -->\n)?```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)

# Written in pieces, so that this file does not find itself.
UNWANTED = {
    "a path of one machine": re.compile(r"(?<![\w./-])/(?:work|root|opt/pypi)/\w|(?<!\w)/home/(?!user|you)\w+/"),
    "a registry host": re.compile("|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "npmjs" + r"\.(?:org|com)"))),
    "a credential": re.compile(
        r"\bsk-(?:ant-|proj-)?[A-Za-z0-9]{24,}|\bghp_[A-Za-z0-9]{30,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"
        r"|BEGIN [A-Z ]*PRIVATE" + " KEY"
    ),
}


def page_name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True)
    return [PROJECT / name for name in listed.stdout.split("\0") if name]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_relative_links_resolve(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{page_name(page)} links to {target}, which does not exist"
        assert not anchor or anchor in anchors(linked), f"{page_name(page)} links to {target}, no such heading"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_code_blocks_can_be_read(page: Path) -> None:
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block["language"] == "python" and "docs/reference/events" not in page_name(page):
            ast.parse(block["body"])
        if block["language"] == "toml":
            tomllib.loads(block["body"])


RUNNABLE = [
    pytest.param(block["body"], id=f"{page_name(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")))
    if block["mark"] and block["language"] == "console"
]


@pytest.mark.parametrize("body", RUNNABLE)
def test_runnable_console_blocks_print_what_they_show(body: str) -> None:
    """`$ command` and its output; `…` stands for anything."""
    for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, expected = step.partition("\n")
        run = subprocess.run(
            ["bash", "-c", command],
            cwd=PROJECT,
            env={**os.environ, "NO_COLOR": "1", "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert run.returncode == 0, f"$ {command}\n{run.stdout}{run.stderr}"
        pattern = ".*".join(map(re.escape, expected.strip().split("…")))
        assert re.fullmatch(pattern, run.stdout.strip(), re.DOTALL), f"$ {command}\n{run.stdout}"


def test_at_least_one_block_is_run() -> None:
    assert RUNNABLE


def test_the_generated_reference_is_current() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/generate_reference.py", "--check"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`make ([a-z]+)", text))
    for block in FENCE.finditer(text):
        named |= set(re.findall(r"^make ([a-z]+)", block["body"], re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_commands_exist(page: Path) -> None:
    from dragoman.cli.main import COMMANDS

    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`dragoman ([a-z]+)", text))
    for block in FENCE.finditer(text):
        if block["language"] in {"sh", "console"}:
            named |= set(re.findall(r"^(?:\$ )?(?:\.venv/bin/)?dragoman ([a-z]+)", block["body"], re.MULTILINE))
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_python_names_exist(page: Path) -> None:
    import dragoman

    named = set(re.findall(r"\bdragoman\.([A-Za-z_]\w*)", page.read_text(encoding="utf-8"))) - {"toml"}
    modules = {path.stem for path in (PROJECT / "src" / "dragoman").iterdir()}
    assert {name for name in named if not hasattr(dragoman, name)} <= modules


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_named_extras_exist(page: Path) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"dragoman\[(\w+)\]", page.read_text(encoding="utf-8"))) <= set(
        project["optional-dependencies"]
    )


@pytest.mark.parametrize("what", UNWANTED)
def test_tracked_files_name_no_machine_and_no_secret(what: str) -> None:
    found = []
    for path in tracked_files():
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(PROJECT)}: {match[0]}" for match in UNWANTED[what].finditer(text)]
    assert not found, f"{what} in tracked files"

"""What the documentation says exists, runs and is current; nothing that is committed names a machine or a secret."""

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import dragoman
from dragoman.cli.main import COMMANDS
from dragoman.config import HttpConfig, load_config
from scripted import serving, streamed
from whole_programs import called, configure, ended, said

PROJECT = Path(__file__).resolve().parent.parent
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(
    r"^(?P<mark><!-- runnable -->\n)?(?:<!-- model: (?P<turns>[^\n]*) -->\n)?```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)

# Written in pieces, so that this file does not find itself. Each with what stands in all that it finds: to look for
# that is quick.
UNWANTED = {
    "a path of one machine": (
        (b"/work/", b"/root/", b"/opt/pypi/", b"/home/"),
        re.compile(r"(?<![\w./-])/(?:work|root|opt/pypi)/\w|(?<!\w)/home/(?!user|you)\w+/"),
    ),
    "a registry host": (
        (b"pypi.", b"pythonhosted.", b"npmjs."),
        re.compile("|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "npmjs" + r"\.(?:org|com)"))),
    ),
    "a credential": (
        (b"sk-", b"ghp_", b"AKIA", b"AIza", b"PRIVATE"),
        re.compile(
            r"\bsk-(?:ant-|proj-)?[A-Za-z0-9]{24,}|\bghp_[A-Za-z0-9]{30,}|\bAKIA[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"
            r"|BEGIN [A-Z ]*PRIVATE" + " KEY"
        ),
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


def test_relative_links_resolve() -> None:
    broken = []
    for page in PAGES:
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            if not linked.exists() or (anchor and anchor not in anchors(linked)):
                broken.append(f"{page_name(page)} → {target}")
    assert broken == []


def test_rows_of_tables_have_the_cells_of_their_head() -> None:
    wrong = []
    for page in PAGES:
        width = 0
        for number, line in enumerate(FENCE.sub("", page.read_text(encoding="utf-8")).splitlines(), 1):
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            if cells and width and (cells != width or not line.rstrip().endswith("|")):
                wrong.append(f"{page_name(page)}, line {number} without its fences: {line[:80]}")
            width = cells and (width or cells)
    assert wrong == []


def test_the_list_of_pages_leads_to_each() -> None:
    listed = (PROJECT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = [page.relative_to(PROJECT / "docs").as_posix() for page in (PROJECT / "docs").glob("*/*.md")]
    lost = [page for page in pages if not page.startswith("adr/") and f"]({page}" not in listed]
    assert len(pages) > 40 and lost == []


def test_code_blocks_can_be_read() -> None:
    for page in PAGES:
        for block in FENCE.finditer(page.read_text(encoding="utf-8")):
            if block["language"] == "python":
                compile(block["body"], page_name(page), "exec")
            if block["language"] == "toml":
                tomllib.loads(block["body"])


def test_the_documented_configuration_is_read(tmp_path: Path) -> None:
    text = (PROJECT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    [example] = [block["body"] for block in FENCE.finditer(text) if block["language"] == "toml"]
    (tmp_path / "lab.pem").touch()
    file = tmp_path / "dragoman.toml"
    file.write_text(example, encoding="utf-8")
    environment = {"ZHIPU_API_KEY": "a key", "HTTPS_PROXY": "http://127.0.0.1:3128"}
    config = load_config(file, environ=environment, home=tmp_path)
    assert config.key("zhipu") is not None
    assert config.http.ca_file == tmp_path / "lab.pem"
    assert set(config.prices) == {"lab/qwen3-coder"}
    named = tomllib.loads(example)["http"]
    defaults = {name: value for name, value in named.items() if name.endswith("_seconds")}
    assert {name: getattr(HttpConfig(), name) for name in defaults} == defaults


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


def is_program(body: str) -> bool:
    """Whether the block does something: others list the fields of a type."""
    return not all(isinstance(statement, ast.AnnAssign) for statement in ast.parse(body).body)


PROGRAMS = [
    pytest.param(block["body"], id=f"{page_name(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")))
    if block["language"] == "python" and is_program(block["body"]) and not block["turns"]
]
#: What a fake model says to a program of the library's guide: the page has its turns in a comment above the block.
GUIDE = [
    pytest.param(block["turns"], block["body"], id=f"{page_name(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")))
    if block["language"] == "python" and block["turns"]
]
#: What the scripted model calls when a program offers it: tool → arguments.
CALLS = {"get_weather": '{"city": "Paris"}', "add": '{"a": 2, "b": 3}'}


def empty_folder(parent: Path) -> Path:
    """A folder with nothing but the pages and their pictures: what a program writes stays out of the checkout."""
    folder = parent / "somebody"
    folder.mkdir()
    (folder / "docs").symlink_to(PROJECT / "docs")
    return folder


@pytest.mark.parametrize("body", PROGRAMS)
def test_python_blocks_run_to_their_exit(body: str, tmp_path: Path) -> None:
    """As somebody copies them: in a process of its own, with a model that calls the tool at every second request."""
    calls = [streamed(*called(name, values)) for name, values in CALLS.items() if f"def {name}(" in body]
    answers = [*calls, *calls, streamed(*said("It is", " so."))]
    with serving(*answers) as server:
        route = '[routes.coder]\ntargets = ["ollama/granite4"]\n'
        config = configure(tmp_path, server.url, "ollama", "embedded", more=route)
        run = ended(body, config=config, folder=empty_folder(tmp_path))
    assert (run.returncode, run.stderr) == (0, "")
    if "with FakeModel(" in body:  # it brings its own model, and asserts for itself
        assert server.requests == []
        return
    assert len(server.requests) == len(re.findall(r"client\.stream\(", body)) + 2 * len(
        re.findall(r"client\.run\(", body)
    )
    for name in CALLS:
        assert f"def {name}(" not in body or f"name='{name}'" in run.stdout


@pytest.mark.parametrize(("turns", "body"), GUIDE)
def test_blocks_of_the_guide_run_to_their_exit(turns: str, body: str, tmp_path: Path) -> None:
    """The program asks the fake model for every turn that the page names, and for no more."""
    program = (
        "from dragoman.testing import FakeModel, call, cut, delay, deviation, error, thinking\n"
        f"with FakeModel({turns}) as fake:\n    exec(compile({body!r}, 'page', 'exec'), {{'__name__': '__main__'}})\n"
        f"assert len(fake.requests) == len([{turns}]), fake.requests\n"
    )
    run = ended(program, config=configure(tmp_path, "http://127.0.0.1:9", "ollama"), folder=empty_folder(tmp_path))
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout


def test_at_least_one_block_is_run() -> None:
    assert RUNNABLE
    assert PROGRAMS
    assert GUIDE


def test_the_generated_reference_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages but those of the fields, which `tests/test_fields.py` and `tests/test_answer_fields.py` have."""
    monkeypatch.syspath_prepend(str(PROJECT / "scripts"))
    from generate_reference import WRITERS, stale_pages

    pages = WRITERS.keys() - {"docs/reference/fields.md", "docs/reference/answer-fields.md"}
    assert len(pages) > 10 and stale_pages(pages) == [], "run `make docs`"


def named_in_pages(pattern: str) -> set[str]:
    """What the pattern's group finds in any page."""
    return {name for page in PAGES for name in re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE)}


def test_named_make_targets_exist() -> None:
    targets = re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert named_in_pages(r"(?:`|^(?:\$ )?)make ([a-z]+)(?:`|$| +#)") - set(targets) == set()


def test_named_commands_exist() -> None:
    shown = {
        name
        for page in PAGES
        for block in FENCE.finditer(page.read_text(encoding="utf-8"))
        if block["language"] in {"sh", "console"}
        for name in re.findall(r"^(?:\$ )?(?:\.venv/bin/)?dragoman ([a-z]+)", block["body"], re.MULTILINE)
    }
    assert (named_in_pages(r"`dragoman ([a-z]+)") | shown) - {*COMMANDS, "help"} == set()


def test_named_python_names_exist() -> None:
    modules = {path.stem for path in (PROJECT / "src" / "dragoman").iterdir()} | {"toml", "service"}
    named = named_in_pages(r"\bdragoman\.([A-Za-z_]\w*)")
    assert {name for name in named if not hasattr(dragoman, name)} - modules == set()


def test_what_the_page_of_events_lists_can_be_imported_as_it_says() -> None:
    page = (PROJECT / "docs/reference/events.md").read_text()
    names = re.findall(r"^### (\w+)$|^- `(\w+)`: `", page, re.MULTILINE)
    assert len(names) > 40
    assert [name for pair in names for name in pair if name and name not in dragoman.__all__] == []


def test_named_tests_exist() -> None:
    there = {
        name
        for file in (PROJECT / "tests").rglob("*.py")
        for name in re.findall(r"^\s*(?:async )?def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = named_in_pages(r"`(test_\w+)`")
    assert len(named) > 30 and named <= there, named - there


def test_named_extras_exist() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named_in_pages(r"dragoman\[(\w+)\]") - set(project["optional-dependencies"]) == set()


def test_tracked_files_name_no_machine_and_no_secret() -> None:
    found = []
    for path in tracked_files():
        if not path.is_file():
            continue
        data = path.read_bytes()
        text = data.decode("utf-8", "replace")
        for what, (words, pattern) in UNWANTED.items():
            if any(word in data for word in words):
                found += [f"{what} in {path.relative_to(PROJECT)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found

"""What a page says to type is taken: its command lines by the parsers, its configurations by the loader."""

import contextlib
import io
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from dragoman import config
from dragoman.cli.main import COMMANDS, _refuse_idle, load_command, make_parser
from dragoman.config import load_config
from dragoman.errors import ConfigError, UsageError
from dragoman.protocol.dialect import Dialect
from dragoman.providers.catalog import Provider

PROJECT = Path(__file__).resolve().parent.parent
#: All but the page of the parsers' own help, and the log of changes, which tells of what was.
PAGES = {
    str(page.relative_to(PROJECT)): page.read_text(encoding="utf-8")
    for page in sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
    if page.name not in ("CHANGELOG.md", "cli.md")
}
FENCE = re.compile(r"^ *```(?P<language>\w*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"(?:^|[\s|/]|\$\()dragoman ([a-z]+ [^\n]+)")
#: What stands in the place of a word of the reader's.
INSTEAD = {"TARGET": "ollama/granite4", "NAME": "codex"}
#: Addresses that the variables of an example hold; every other one holds some value.
ADDRESSES = {
    "DRAGOMAN_STORE": "postgresql://user:word@db.internal/ledger",
    "DRAGOMAN_COUNTERS": "valkeys://cache:6379/0",
    "HTTPS_PROXY": "http://127.0.0.1:3128",
}
CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in (PROJECT / "src").rglob("*") if path.suffix in (".py", ".toml", ".sql")
)


def command_lines(text: str) -> Iterator[str]:
    """Every `dragoman …` with something behind it: in blocks for a shell, and in the text's code."""
    for block in FENCE.finditer(text):
        if block["language"] in ("sh", "console", "bash"):
            yield from TYPED.findall(block["body"].replace("\\\n", " "))
    for code in re.findall(r"`([^`]+)`", FENCE.sub("", text)):
        words = " ".join(code.split())
        if re.match(r"(?:\S+=\S+ )*(?:\S*/)?dragoman ", words):
            yield from TYPED.findall(words)


def words_of(line: str) -> list[str]:
    """The words of one command, as a shell parts them; a comment, a pipe and what follows are not its."""
    whole = line.partition("  #")[0]
    lexer = shlex.shlex(whole + '"' * (whole.count('"') % 2), posix=True, punctuation_chars="|;&<>)")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if re.fullmatch(r"[|;&<>)]+", word):
            break
        words.append(INSTEAD.get(word, word))
    return words


def test_command_lines_are_taken_by_the_parsers() -> None:
    parsers = {name: make_parser(name, load_command(name)) for name in COMMANDS}
    tried, refused = 0, []
    for page, text in PAGES.items():
        for line in command_lines(text):
            name, *words = words_of(line)
            if name not in COMMANDS or not words or line in ("ledger check | export | adjust", "chat -p"):
                continue  # a sentence that begins with the project's name, or the name of a command's actions or option
            tried += 1
            said = io.StringIO()
            try:
                with contextlib.redirect_stderr(said):
                    _refuse_idle(parsers[name], parsers[name].parse_args(words))
            except (SystemExit, UsageError) as error:
                refused.append(f"{page}: dragoman {line}: {said.getvalue().splitlines()[-1:] or error}")
    assert tried > 120 and refused == []


def test_every_configuration_is_taken_by_the_loader(tmp_path: Path) -> None:
    (tmp_path / "lab.pem").touch()
    tried, refused = 0, []
    for page, text in PAGES.items():
        for block in FENCE.finditer(text):
            if block["language"] != "toml":
                continue
            tried += 1
            written = textwrap.dedent(block["body"])
            (tmp_path / "dragoman.toml").write_text(written, encoding="utf-8")
            environ = {name: ADDRESSES.get(name, "a value") for name in re.findall(r'"env:(\w+)"', written)}
            try:
                load_config(tmp_path / "dragoman.toml", environ=environ, home=tmp_path)
            except ConfigError as error:
                refused.append(f"{page}: {error}")
    assert tried > 25 and refused == []


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("metric", r"\bdragoman_[a-z_]+[a-z]\b(?!/)"),
        ("attribute", r"`((?:gen_ai|dragoman)\.[a-z_.]+)`"),
        ("header", r"`((?:x-dragoman|x-request|x-should)-[a-z]+(?:-[a-z]+)*)`"),
    ],
)
def test_what_is_named_is_in_the_code(what: str, pattern: str) -> None:
    named = {name for text in PAGES.values() for name in re.findall(pattern, text)}
    assert named
    assert {name for name in named if name.replace("-tokens", "-requests") not in CODE} == set(), what


def test_every_setting_is_on_its_page() -> None:
    """Of each table that the loader reads: what is no table of the file is what it makes of one."""
    kinds = {kind for kind in vars(config).values() if isinstance(kind, type) and issubclass(kind, msgspec.Struct)}
    tables = kinds - {config.Config, config.Quota, config.ProviderConfig}
    pages = dict.fromkeys(tables, ("configuration", "chat")) | dict.fromkeys((Provider, Dialect), ("providers",))
    missing = [
        f"{kind.__name__}.{name}"
        for kind, names in pages.items()
        for name in kind.__struct_fields__
        if not any(re.search(rf"\b{name}\b", PAGES[f"docs/reference/{page}.md"]) for page in names)
    ]
    assert len(tables) > 12 and missing == []

"""Rules of CONTRIBUTING that no linter knows: size, and shared code that does not ask for a name."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import get_args

import pytest

from dragoman.types import ProtocolName

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "src" / "dragoman"
SOURCES = sorted(PACKAGE.rglob("*.py"))

FILE_LINES = 450
FUNCTION_LINES = 50
PARAMETERS = 7

# What is over a limit, with its own: it may shrink, never grow, and nothing joins it without a reason beside it.
LARGER_FILES: dict[str, int] = {}
LARGER_FUNCTIONS: dict[str, int] = {}
#: Functions with more parameters than seven, and why.
MANY_PARAMETERS = {
    "client/asynchronous.py": "the library's keywords, each with a default",
    "client/synchronous.py": "the library's keywords, each with a default",
    "client/call.py:read_call": "the library's keywords, as they came",
    "client/configured.py:configured": "the library's keywords, as they came",
    "agent/environment.py:__init__": "options of a command, each with a default",
    "agent/loop.py:__init__": "what a session is made of, made once",
    "agent/sandbox/bubblewrap.py:wrap": "one for each kind of place that a command sees",
    "client/requester.py:open": "what a turn is; a record of it would be made for each request",
    "client/exchange.py:__init__": "the same, on its way down",
    "client/passthrough/exchange.py:__init__": "the same",
    "client/streaming/pouring.py:pour": "the same",
    "gateway/app.py:__init__": "the parts of a gateway, put together once",
    "gateway/process/gateway.py:open": "the parts of a gateway, put together once",
    "routing/fallback.py:decide": "a decision is a pure function of all that it goes by",
    "validate/results.py:prove": "the fields of one proof",
}

#: Where mypy cannot follow; each says which rule it breaks.
IGNORED_TYPES = 25
ROOT_FILES = 16
FOLDER_FILES = 18
#: Folders with more files than that, and why.
CROWDED_FOLDERS = {
    "cli/commands": "one file a command",
    "stages/rescue/families": "one file a family",
}

UNWANTED_MODULES = {"utils", "helpers", "common", "manager", "base"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Read once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(tree_of(path)))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function of a file."""
    for node in nodes_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{relative(path)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_stay_short() -> None:
    sizes = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > LARGER_FILES.get(name, FILE_LINES)} == {}
    assert {name for name in LARGER_FILES if sizes.get(name, 0) <= FILE_LINES} == set(), "no longer an exception"


def test_functions_stay_short() -> None:
    sizes = dict(found for path in SOURCES for found in functions(path))
    assert {name: size for name, size in sizes.items() if size > LARGER_FUNCTIONS.get(name, FUNCTION_LINES)} == {}
    assert {name for name in LARGER_FUNCTIONS if sizes.get(name, 0) <= FUNCTION_LINES} == set(), (
        "no longer an exception"
    )


def test_functions_take_few_parameters() -> None:
    found = {
        f"{relative(path)}:{node.name}"
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > PARAMETERS
    }
    excused = {name for name in found if name in MANY_PARAMETERS or name.partition(":")[0] in MANY_PARAMETERS}
    assert found - excused == set()
    known = found | {name.partition(":")[0] for name in found}
    assert MANY_PARAMETERS.keys() - known == set(), "no longer an exception"


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without the object that a method belongs to."""
    taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(each.arg not in ("self", "cls") for each in taken)


def test_few_types_are_ignored() -> None:
    ignored = [relative(path) for path in SOURCES for _ in re.findall("type: ignore", path.read_text(encoding="utf-8"))]
    assert len(ignored) <= IGNORED_TYPES, ignored


def test_the_root_has_few_files() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= ROOT_FILES


def imports_of(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The files that a file imports, for its types alone too."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name if name in known else str(node.module) for name in names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


def test_no_files_import_each_other_in_a_circle() -> None:
    names = {path: ".".join(("dragoman", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in SOURCES}
    known = {name.removesuffix(".__init__"): path for path, name in names.items()}
    graph = {name: {*imports_of(path, known)} - {name} for name, path in known.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files


def test_no_folder_is_a_drawer() -> None:
    folders = Counter(path.parent for path in SOURCES if path.name != "__init__.py")
    crowded = {folder.relative_to(PACKAGE).as_posix() for folder, files in folders.items() if files > FOLDER_FILES}
    assert crowded == CROWDED_FOLDERS.keys()


def test_no_module_is_a_drawer() -> None:
    assert [relative(path) for path in SOURCES if path.stem.strip("_") in UNWANTED_MODULES] == []


#: Programs that talk to the gateway, as they call themselves.
CLIENTS = {
    "aider", "claude-code", "cline", "codex", "copilot", "gemini-cli", "goose", "litellm", "opencode", "qwen-code",
    "zed",
}  # fmt: skip
PROTOCOL_NAMES = set(get_args(ProtocolName))
#: "embedded" is our own server, and no vendor's.
PROVIDERS = set(tomllib.loads((PACKAGE / "providers" / "catalog.toml").read_text(encoding="utf-8"))) - {"embedded"}
NAMES = PROTOCOL_NAMES | PROVIDERS | CLIENTS
#: Where names are at home.
ROOMS = ("protocols/", "providers/", "types.py")
#: What else says a name, and why it may.
SAID_ELSEWHERE = {
    "agent/sandbox/standing_files.py": "files of other programs, which a command must not write",
    "cli/commands/demo.py": "the demonstration tells how to use one server",
    "cli/commands/serve.py": "says what listens at a taken port",
    "cli/demo_broken.py": "recorded bytes, and the protocol that each of them is in",
    "cli/demo_live.py": "what the demonstration asks of a server in each protocol",
    "cli/doctor_checks.py": "words for users of local servers; nothing is decided by them",
    "codec/counterparts.py": "one field under each protocol's name for it; without a column it is lost, and said to be",
    "gateway/pages/legacy.py": "paths that one vendor's clients ask beside a chat",
    "gateway/pages/responses.py": "paths that one vendor's clients ask beside a chat",
    "gateway/telemetry/opentelemetry.py": "how another standard spells providers; nothing is decided by it",
    "protocol/gpt_models.py": "a line of models, named after the program that it was made for",
    "stages/rescue/families/cohere.py": "a family of models, named after its vendor",
    "stages/rescue/families/deepseek.py": "a family of models, named after its vendor",
    "stages/rescue/families/longcat.py": "a family of models, named after its vendor",
    "stages/rescue/families/minimax.py": "a family of models, named after its vendor",
    "stages/rescue/families/mistral.py": "a family of models, named after its vendor",
    "protocol/dialect.py": "a style of a request that several providers took over from the one that it is named after",
}


def names_said(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of each text of a program that is a name, begins with one, or holds a protocol's. Texts of several
    words and docstrings are for readers."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and isinstance(node.body[0] if node.body else None, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman.protocols."):
            folder = (node.module or "").split(".")[2]
            if (PACKAGE / "protocols" / folder).is_dir():
                yield node.lineno, folder
        if not isinstance(node, ast.Constant) or id(node) in docstrings or not isinstance(node.value, str | bytes):
            continue
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        found = said_in(text)
        if found is not None:
            yield node.lineno, found


def said_in(text: str) -> str | None:
    """The name that a text says."""
    plain = re.sub(r"\\[bA]", "", text).strip("^$").casefold()
    if re.search(r"\s", plain):
        return None
    for name in NAMES:
        if plain == name or (plain.startswith(name) and not (plain[len(name)].isalnum() or plain[len(name)] in "_-")):
            return name
    return next((name for name in PROTOCOL_NAMES if name in plain), None)


def test_shared_code_says_no_name() -> None:
    """Code that asks "which one is it" belongs in the room of the one. By whatever it asks: a comparison, a `match`, a
    constant, the key of a table, a tuple, the beginning of a text, an import."""
    found = {
        relative(path): sorted({f"{line}: {name}" for line, name in names_said(tree_of(path))})
        for path in SOURCES
        if not relative(path).startswith(ROOMS)
    }
    said = {path: names for path, names in found.items() if names}
    assert {path: names for path, names in said.items() if path not in SAID_ELSEWHERE} == {}
    assert SAID_ELSEWHERE.keys() - said.keys() == set(), "no longer an exception"


@pytest.mark.parametrize(
    "code",
    [
        'if name == "openai-chat": pass',
        'match name:\n    case "ollama": pass',
        'match name:\n    case "gemini" | "other": pass',
        'TABLE = {"anthropic-messages": 1}',
        'TABLE = {1: "mistral"}',
        'FIRST = ("ollama",)',
        '_STYLED: Final = "ollama-chat"',
        'if agent.startswith("litellm/"): pass',
        'ZED = re.compile(r"Zed/(\\d+)")',
        'ZED = re.compile(rb"^\\bZed/")',
        'x = PROTOCOLS["gemini-generate"]',
        'def f(protocol="openai-chat"): pass',
        'if name in {"groq"}: pass',
        'x = f"ollama/{model}"',
        "from dragoman.protocols.ollama.wire import NAME",
    ],
)
def test_a_name_is_found_however_it_is_asked(code: str) -> None:
    assert list(names_said(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        '"""Ollama."""',
        'raise E("ollama is asked first")',
        'x = "openai_like"',
        'x = "ollamas"',
        "from dragoman.protocols.recognize import recognize",
    ],
)
def test_words_for_readers_are_none(code: str) -> None:
    assert not list(names_said(ast.parse(code)))


#: Whose keywords are the user's own words.
USERS_KEYWORDS = {"testing/turns.py:call"}  # the arguments of a tool


def test_no_function_takes_unnamed_keywords() -> None:
    found = [
        f"{relative(path)}:{node.name}"
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg
    ]
    assert set(found) == USERS_KEYWORDS


def test_fast_ways_are_few_and_their_tests_exist() -> None:
    decision = (PROJECT / "docs" / "adr" / "0035-fast-ways.md").read_text(encoding="utf-8")
    rows = [line for line in decision.splitlines() if line.startswith("| ")][1:]
    assert 1 <= len(rows) <= 8
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)`", row)
        assert any(path.startswith("tests/") for path in named), row
        places = (PROJECT, PACKAGE, PACKAGE / "client" / "passthrough", *(PACKAGE / "protocols").iterdir())
        lenient = (folder / "response" for folder in (PACKAGE / "protocols").iterdir())
        assert [path for path in named if not any((place / path).exists() for place in (*places, *lenient))] == [], row


def test_tests_ask_profiles_whether_they_are_tried_for_longer() -> None:
    """Else `make soak` would not know that they belong to it."""
    asking = {
        path.name for path in (PROJECT / "tests").rglob("*.py") if re.search(r"get\W+DRAGOMAN_SOAK", path.read_text())
    }
    assert asking == {"profiles.py"}


#: In the annotations of fields that hold what people and models say.
WORDS = re.compile(r"\b(bytes|bytearray|Json|Raw|Fields|Native|list\[str\])(?!\w)")


def test_what_is_built_for_an_answer_shows_none_of_it_by_its_name() -> None:
    """A mutable Struct whose fields hold words has a `__repr__` of its own: msgspec's shows them."""
    shown = []
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "eq=False" in text else ():
            if isinstance(node, ast.ClassDef) and any(ast.unparse(each) == "eq=False" for each in node.keywords):
                fields = [ast.unparse(each.annotation) for each in node.body if isinstance(each, ast.AnnAssign)]
                is_frozen = any(ast.unparse(each) == "frozen=True" for each in node.keywords)
                if not is_frozen and any(map(WORDS.search, fields)) and not has_repr(node):
                    shown.append(f"{relative(path)}:{node.name}")
    assert shown == []


def has_repr(node: ast.ClassDef) -> bool:
    return any("__repr__" in ast.unparse(each).split("\n")[0] for each in node.body)


def test_no_parameter_of_sqlite_has_a_number() -> None:
    """`?1` for a sequence warns in Python 3.12.0 to 3.12.3 (github.com/python/cpython/issues/117995)."""
    numbered = [
        f"{relative(path)}:{node.lineno}"
        for path in SOURCES
        if "sqlite3" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\?\d", node.value)
    ]
    assert numbered == []

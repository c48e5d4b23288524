"""The recipes of CONTRIBUTING, each played in a copy of the package: what they name is all that has to be touched."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "src" / "dragoman"
TOY_PROTOCOL = Path(__file__).with_name("toy_protocol")


class Tree:
    """A copy of the package, and which files of it were touched."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self.package = self.source / "dragoman"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.touched: set[str] = set()

    def write(self, path: str, text: str) -> None:
        (self.package / path).parent.mkdir(exist_ok=True)
        (self.package / path).write_text(text, encoding="utf-8")
        self.touched.add(f"src/dragoman/{path}")

    def edit(self, path: str, *changes: tuple[str, str]) -> None:
        """Each text, which must be there, replaced once."""
        text = (self.package / path).read_text(encoding="utf-8")
        for before, after in changes:
            assert before in text, f"{path}: {before!r}"
            text = text.replace(before, after, 1)
        self.write(path, text)

    def append(self, path: str, text: str) -> None:
        self.write(path, (self.package / path).read_text(encoding="utf-8") + text)

    def add_protocol(self) -> None:
        """The sixth, in its folder and in the two places that know all names."""
        for file in TOY_PROTOCOL.glob("*.py"):
            self.write(f"protocols/toy/{file.name}", file.read_text(encoding="utf-8"))
        self.edit("types.py", ('"gemini-generate"\n]', '"gemini-generate", "toy-lines"\n]'))
        case = '        case "toy-lines":\n            from dragoman.protocols import toy\n\n            return toy\n'
        self.edit("protocols/__init__.py", ("    match name:\n", f"    match name:\n{case}"))

    def run(self, code: str) -> object:
        """What the code prints as JSON, with the copy in the package's place."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(self.source)},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def recipes() -> Mapping[str, list[str]]:
    """What is to be added → the files that CONTRIBUTING names for it, with `<name>` for what is new."""
    text = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+?) \| (.+) \|$", text.partition("## Recipes")[2].partition("\n## ")[0], re.MULTILINE)
    return {what: re.findall(r"`(src/[^`]+)`", touched) for what, touched in rows}


def check_touched(tree: Tree, what: str) -> None:
    """The recipe names each file that was touched, and no other of the package."""
    patterns = {re.sub(r"<\w+>", "*", path) for path in recipes()[what]}
    told = {path for path in tree.touched if any(fnmatch(path, pattern) for pattern in patterns)}
    assert tree.touched - told == set(), "not in the recipe"
    assert {pattern for pattern in patterns if not any(fnmatch(path, pattern) for path in tree.touched)} == set()


def test_a_provider(tree: Tree) -> None:
    tree.append(
        "providers/catalog.toml",
        '\n[toy]\nprotocol = "openai-chat"\nbase_url = "https://toy.example/v1"\napi_key_env = ["TOY_KEY"]\n',
    )
    found = tree.run(
        "import json\n"
        "from dragoman.providers.catalog import load_catalog\n"
        "toy = load_catalog().provider('toy')\n"
        "print(json.dumps([toy.base_url, toy.protocol]))"
    )
    assert found == ["https://toy.example/v1", "openai-chat"]
    check_touched(tree, "a provider that speaks a known protocol")


def test_a_quirk(tree: Tree) -> None:
    """A field of the dialect, what the protocol makes of it, and the provider that has it."""
    tree.edit(
        "protocol/dialect.py",
        (
            "    usage_in_stream: bool",
            "    shouts: bool = False  # wants the model's name in upper case\n    usage_in_stream: bool",
        ),
    )
    tree.edit(
        "protocols/openai_chat/request/render.py",
        ('"model": request.model', '"model": request.model.upper() if dialect.shouts else request.model'),
    )
    key = 'api_key_env = ["GROQ_API_KEY"]\ndialect = {'
    tree.edit("providers/catalog.toml", (key, f"{key} shouts = true,"))
    found = tree.run(
        "import json\n"
        "from dragoman.protocols import PROTOCOLS\n"
        "from dragoman.providers.catalog import load_catalog\n"
        "from dragoman.types import Message, Request, Text\n"
        "asked = Request('model', (Message('user', (Text('hello'),)),))\n"
        "render = PROTOCOLS['openai-chat'].render_request\n"
        "dialects = [load_catalog().provider(name).dialect for name in ('groq', 'mistral')]\n"
        "print(json.dumps([json.loads(render(asked, dialect=each).http.body)['model'] for each in dialects]))"
    )
    assert found == ["MODEL", "model"]
    check_touched(tree, "a provider's quirk")


def test_a_family(tree: Tree) -> None:
    tree.write(
        "stages/rescue/families/toy.py",
        '"""Toy: `[[CALL {"name": …, "arguments": {…}}]]`."""\n\n'
        "from __future__ import annotations\n\n"
        "from dragoman.stages.offered_tools import Tools\n"
        "from dragoman.stages.rescue.cursor import Cursor, Family, Parser\n"
        "from dragoman.stages.rescue.json_calls import call_objects\n\n\n"
        "def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:\n"
        '    cursor.stops = ("]]",)\n'
        "    yield from call_objects(cursor, tools)\n"
        '    yield from cursor.closing("]]")\n\n\n'
        'FAMILY = Family(name="toy", openers=("[[CALL ",), parse=_parse, source="toy")\n',
    )
    tree.edit(
        "stages/rescue/families/__init__.py",
        ("    cohere,\n", "    cohere,\n    toy,\n"),
        ("    cohere.FAMILY,\n", "    cohere.FAMILY,\n    toy.FAMILY,\n"),
    )
    said = 'I look. [[CALL {"name": "look", "arguments": {"at": "sky"}}]]'
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
    found = tree.run(
        "import json\n"
        "from dragoman import Tool, decode\n"
        f"reply = decode({json.dumps(answer).encode()!r}, 'openai-chat', tools=[Tool('look')])\n"
        "print(json.dumps([[call.name, call.arguments] for call in reply.tool_calls]))"
    )
    assert found == [["look", '{"at": "sky"}']]
    check_touched(tree, "a family of calls written as text")


def test_a_probe(tree: Tree) -> None:
    tree.write(
        "validate/probes/toy.toml",
        'rank = 990\ntitle = "says hello"\n\n[[turns]]\nuser = "Say hello."\nexpect = { text = true }\n',
    )
    found = tree.run(
        "import json\nfrom dragoman.validate.probe import load_probes\n"
        "print(json.dumps([probe.title for probe in load_probes() if probe.name == 'toy']))"
    )
    assert found == ["says hello"]
    check_touched(tree, "a probe of validation")


def test_a_deviation(tree: Tree) -> None:
    tree.edit(
        "deviations.py",
        ('    "byte-order-mark"', '    "toy-odd": ("A toy is odd.", "It is laughed at."),\n    "byte-order-mark"'),
    )
    found = tree.run(
        "import json\nfrom dragoman.deviations import DEVIATIONS\nprint(json.dumps(DEVIATIONS['toy-odd']))"
    )
    assert found == ["A toy is odd.", "It is laughed at."]
    check_touched(tree, "a kind of deviation")


# ---------------------------------------------------------------- a sixth protocol


def test_a_protocol(tree: Tree) -> None:
    tree.add_protocol()
    found = tree.run(
        "import json\n"
        "from dragoman import decode\n"
        "from dragoman.inputs.conversation import read_messages\n"
        "from dragoman.pipe import Reader\n"
        "from dragoman.protocols import PROTOCOLS\n"
        "from dragoman.protocols.recognize import SHORT_NAMES, protocol_of_client\n"
        "toy, chat = PROTOCOLS['toy-lines'], PROTOCOLS['openai-chat']\n"
        'body = b\'{"say": "hel"}\\n{"say": "lo"}\\n{"done": true}\\n\'\n'
        'asked = toy.parse_request(b\'{"model": "m", "turns": [{"who": "user", "says": "hi"}]}\').request\n'
        "sent = json.loads(chat.render_request(asked).http.body)\n"
        "encoder = toy.encoder(new_id=lambda: 'x', model='m', created=0)\n"
        'chunk = b\'data: {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}\\n\\n\'\n'
        "reader = Reader(chat.decoder(new_id=lambda: 'x'), [])\n"
        "out = encoder.encode([*reader.feed(chunk + b'data: [DONE]\\n\\n'), *reader.close()])\n"
        "[message] = read_messages([{'who': 'user', 'says': 'hi'} | {'content': 'x', 'role': 'user'}])\n"
        "print(json.dumps([decode(body).text, sent['messages'], out.decode(), message.parts[0].text,\n"
        "    SHORT_NAMES['toy'], protocol_of_client('/toy/x', {}), protocol_of_client('/', {'x-toy': '1'})]))"
    )
    assert found == [
        "hello",
        [{"role": "user", "content": "hi"}],
        '{"say":"yes"}\n{"done":true}\n',
        "hi",
        "toy-lines",
        "toy-lines",
        "toy-lines",
    ]
    check_touched(tree, "a protocol")
    assert len(tree.touched) <= 10
    assert {path for path in tree.touched if "/toy/" not in path} == {
        "src/dragoman/types.py",
        "src/dragoman/protocols/__init__.py",
    }


#: What is left out of a sixth protocol, and what mypy says of it.
MISSING = [
    ("protocols/toy/__init__.py", "RECOGNITION as RECOGNITION", "RECOGNITION as MARKS", "RECOGNITION"),
    ("protocols/toy/__init__.py", "def load()", "def unload()", "load"),
    ("protocols/toy/protocol.py", "    peek=peek,\n", "", '"peek"'),
    ("protocols/toy/protocol.py", '    models_path="/toy/models",\n', "", '"models_path"'),
    ("protocols/toy/protocol.py", '    address_variable="TOY_HOST",\n', "", '"address_variable"'),
    ("protocols/toy/protocol.py", "    model_pages=tuple,\n", "", '"model_pages"'),
    ("protocols/toy/recognition.py", "    is_answer=_is_answer,\n", "", '"is_answer"'),
    ("protocols/toy/response.py", "    def fail(", "    def fails(", "fail"),
]


def mypy(tree: Tree, cache: Path) -> str:
    """What mypy says of the registry and the new folder; codecs of the other protocols and clients are not read."""
    others = [folder.name for folder in (PACKAGE / "protocols").iterdir() if (folder / "recognition.py").exists()]
    settings = tree.source / "mypy.ini"
    lines = ["[mypy]", "strict = True", "enable_error_code = exhaustive-match", "follow_imports = silent"]
    for name in others:
        lines += [f"[mypy-dragoman.protocols.{name}.protocol]", "follow_imports = skip"]
    # 1,174 modules are read otherwise, most of them of the packages behind an extra's client; 229 this way.
    lines += ["[mypy-dragoman.client.*,dragoman.config.*,dragoman.embedded.*,mcp.*]", "follow_imports = skip"]
    settings.write_text("\n".join(lines), encoding="utf-8")
    options = ["--config-file", str(settings), "--cache-dir", str(cache), "--no-error-summary"]
    files = ["protocols/__init__.py", *(f"protocols/toy/{file.name}" for file in TOY_PROTOCOL.glob("*.py"))]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(f"dragoman/{file}" for file in files)],
        cwd=tree.source,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(tree.source)},
    ).stdout


def test_mypy_names_each_missing_piece_of_a_protocol(tree: Tree, tmp_path: Path) -> None:
    tree.add_protocol()
    cache = tmp_path / "cache"
    assert mypy(tree, cache) == ""
    case = '        case "toy-lines":\n            from dragoman.protocols import toy\n\n            return toy\n'
    registry = (tree.package / "protocols" / "__init__.py").read_text(encoding="utf-8")
    tree.edit("protocols/__init__.py", (case, ""))
    assert "toy-lines" in mypy(tree, cache), "the folder"
    tree.write("protocols/__init__.py", registry)
    for path, before, after, _ in MISSING:
        tree.edit(path, (before, after))
    said = mypy(tree, cache)
    for path, before, _, told in MISSING:
        assert any(told in line for line in said.splitlines()), f"{path}: {before}\n{said}"

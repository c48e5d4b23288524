"""What is installed: one dependency for the core, locks that say exactly what, and a wheel that holds its data."""

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from scripts import install_lock, package

PROJECT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = sorted((PROJECT / "requirements").glob("*.txt"))

# Refuses every import but the standard library's, msgspec's and dragoman's own.
ONLY_MSGSPEC = """
import sys

class OnlyMsgspec:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in sys.stdlib_module_names | {"msgspec", "dragoman"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, OnlyMsgspec())
"""


def locked_versions(lock: Path) -> dict[str, str]:
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def requirements(lines: list[object], groups: dict[str, list[object]]) -> list[Requirement]:
    """The requirements of a dependency group or extra, with the groups that it includes."""
    found = []
    for line in lines:
        if isinstance(line, dict):
            found += requirements(groups[line["include-group"]], groups)
        else:
            found.append(Requirement(str(line)))
    return found


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_what_is_installed_without_an_extra_can_ask_a_model() -> None:
    """`pip install dragoman`: msgspec and httptools, with which a model is asked, also by the command line."""
    assert [Requirement(line).name for line in PYPROJECT["project"]["dependencies"]] == ["msgspec", "httptools"]
    asks = ONLY_MSGSPEC.replace('"msgspec", "dragoman"', '"msgspec", "httptools", "dragoman"') + (
        "import dragoman\n"
        "from dragoman.testing import FakeModel\n"
        "from dragoman.cli.main import main\n"
        "with FakeModel('It works.', 'Here too.').serve() as served:\n"
        "    lab = {'providers': {'lab': {'base_url': served.url + '/v1', 'protocol': 'openai-chat'}}}\n"
        "    with dragoman.Client(lab) as client:\n"
        "        print(client.reply('lab/m', 'hi'))\n"
        "    with open(sys.argv[1], 'w') as file:\n"
        "        file.write('[providers.lab]\\nprotocol = \"openai-chat\"\\nbase_url = \"' + served.url + '/v1\"')\n"
        "    sys.exit(main(['call', 'lab/m', 'hi', '--config', sys.argv[1]]))"
    )
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        run = run_python(asks, file.name)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0] == "It works." and "Here too." in run.stdout


def test_extras_bring_what_their_names_say() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    named = {extra: {Requirement(line).name for line in lines} for extra, lines in extras.items()}
    assert named["proxy"] == {"aiohttp"} and named["prices"] == {"genai-prices"} and "mcp" in named["agent"]
    assert [extra for extra, names in named.items() if "aiohttp" in names] == ["proxy"]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_locked_file_has_a_hash_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        assert "--hash=sha256:" in entry, f"no hash: {entry.splitlines()[0]}"
    assert "://" not in text
    assert not re.search(r"^--", text, re.MULTILINE)


def test_the_development_lock_satisfies_the_project() -> None:
    """A range that was changed without `make lock` shows here."""
    groups = PYPROJECT["dependency-groups"]
    wanted = requirements(groups["dev"], groups)
    wanted += [Requirement(line) for line in PYPROJECT["project"]["dependencies"]]
    for name, lines in PYPROJECT["project"]["optional-dependencies"].items():
        if name != "all":
            wanted += [Requirement(line) for line in lines]
    pins = locked_versions(PROJECT / "requirements" / "dev.txt")
    missing = [str(each) for each in wanted if not each.specifier.contains(pins.get(canonicalize_name(each.name), "0"))]
    assert not missing, "run `make lock`"


def test_the_extra_all_names_every_other_extra() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    assert Requirement(extras["all"][0]).extras == extras.keys() - {"all"}


def test_both_locks_agree() -> None:
    runtime, development = (locked_versions(PROJECT / "requirements" / f"{name}.txt") for name in ("runtime", "dev"))
    assert {name: development[name] for name in runtime} == runtime


def test_the_installed_version_is_the_projects() -> None:
    assert metadata.version("dragoman") == PYPROJECT["project"]["version"]


@pytest.mark.parametrize(
    ("platform", "machine", "installs"),
    [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("darwin", "arm64", True),
        ("win32", "AMD64", True),
        ("win32", "ARM64", False),
        ("linux", "riscv64", False),
    ],
)
def test_the_embedded_server_is_named_where_it_has_a_wheel(platform: str, machine: str, installs: bool) -> None:
    found = map(Requirement, PYPROJECT["project"]["optional-dependencies"]["embedded"])
    marker = next(each.marker for each in found if each.name == "xllamacpp")
    assert marker is not None
    environment = {**default_environment(), "sys_platform": platform, "platform_machine": machine}
    assert marker.evaluate(environment) is installs


def test_the_library_decodes_with_msgspec_alone() -> None:
    code = ONLY_MSGSPEC + (
        "import dragoman\n"
        'body = b\'{"model":"m","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"}\'\n'
        "print(dragoman.decode(body, 'ollama-chat').text)"
    )
    run = run_python(code)
    assert (run.returncode, run.stdout.strip()) == (0, "hi"), run.stderr


def test_the_decode_command_runs_with_msgspec_alone() -> None:
    code = ONLY_MSGSPEC + "from dragoman.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    glued = PROJECT / "docs" / "examples" / "glued.sse"
    run = run_python(code, "decode", "--protocol", "openai-chat", "--result", str(glued))
    assert run.returncode == 0, run.stderr
    assert '"call_rome"' in run.stdout


def test_a_missing_extra_is_answered_with_its_install_line() -> None:
    code = ONLY_MSGSPEC + "from dragoman.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    run = run_python(code, "call", "ollama/granite4", "hello")
    assert run.returncode != 0
    assert 'pip install "dragoman[proxy]"' in run.stderr
    assert "Traceback" not in run.stderr


def test_importing_the_library_imports_no_network_code() -> None:
    run = run_python(
        "import sys, dragoman\nprint(*sorted({'asyncio', 'socket', 'ssl', 'aiohttp'} & sys.modules.keys()))"
    )
    assert (run.returncode, run.stdout.strip()) == (0, ""), run.stdout + run.stderr


def test_every_public_name_exists_and_is_listed() -> None:
    import dragoman
    import dragoman.client

    public = {name for name in vars(dragoman) if not name.startswith("_")}
    modules = {name for name in public if getattr(vars(dragoman)[name], "__package__", None) is not None}
    assert all(hasattr(dragoman, name) for name in dragoman.__all__)
    assert all(hasattr(dragoman.client, name) for name in dragoman.client.__all__)
    assert public - modules - {"annotations", "TYPE_CHECKING"} <= set(dragoman.__all__)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    package.build(folder)
    return folder


def test_the_wheel_holds_code_types_and_data(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
        points = archive.read(next(name for name in held if name.endswith("entry_points.txt"))).decode()
    package = PROJECT / "src" / "dragoman"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {str(Path("dragoman") / path.relative_to(package)) for path in files} <= held
    assert "dragoman/py.typed" in held
    assert any(name.endswith("licenses/LICENSE") for name in held)
    assert "dragoman = dragoman.__main__:main" in points


def test_the_demos_lock_is_a_small_part_of_the_whole() -> None:
    demo, development = (locked_versions(PROJECT / "requirements" / f"{name}.txt") for name in ("demo", "dev"))
    assert {name: development[name] for name in demo} == demo
    assert {"msgspec", "httptools", "xllamacpp", "hatchling", "editables"} <= set(demo)
    assert len(demo) < 12


@pytest.mark.parametrize("lock", ["dev", "demo"])
def test_a_lock_names_all_that_its_packages_need(lock: str) -> None:
    """With the extras that they ask of one another: it is installed without looking for more."""
    locked = locked_versions(PROJECT / "requirements" / f"{lock}.txt")
    waiting, seen = [(name, "") for name in locked if is_installed(name)], set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for need in map(Requirement, metadata.requires(name) or ()):
            if need.marker is None or need.marker.evaluate({**default_environment(), "extra": extra}):
                needed = canonicalize_name(need.name)
                assert needed in locked and locked[needed] in need.specifier, f"{name}[{extra}] needs {need}"
                waiting += [(needed, wanted) for wanted in ("", *need.extras)]
    assert len({name for name, _ in seen}) > 4


def is_installed(name: str) -> bool:
    """Whether a package is; a lock has some for other platforms."""
    return any(True for _ in metadata.distributions(name=name))


def test_no_lock_is_resolved_again() -> None:
    """Pip 23.2 refuses a lock with `a` for a package that needs `a[b]`, once there is a newer `a`."""
    files = [
        PROJECT / "Makefile",
        *PROJECT.glob("scripts/*.py"),
        *PROJECT.glob("clients/*.py"),
        *PROJECT.glob("bench/**/*.py"),
    ]
    lines = [
        (path.name, line)
        for path in (*files, *PROJECT.glob("src/**/*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "--require-hashes" in line and "pip-audit --strict" not in line and '"sync"' not in line
    ]
    assert len(lines) > 6 and not [found for found in lines if "--no-deps" not in found[1]]


PIP_SAYS = """Collecting msgspec==0.22.0 (from -r requirements/demo.txt (line 137))
  Downloading msgspec-0.22.0-cp311-cp311-manylinux_2_17_x86_64.whl (213 kB)
Collecting xllamacpp==2026.10.11549 (from -r requirements/demo.txt (line 253))
  Downloading xllamacpp-2026.10.11549-cp311-cp311-manylinux_2_28_x86_64.whl (38.4 MB)
Installing collected packages: xllamacpp, msgspec
Successfully installed msgspec-0.22.0 xllamacpp-2026.10.11549
"""


def test_an_installation_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert install_lock.report_progress(PIP_SAYS.splitlines(keepends=True), 10) == PIP_SAYS
    assert capsys.readouterr().err.splitlines() == [
        "  package 2 of 10 at most: xllamacpp, 38.4 MB",
        "  unpacking 2 packages",
    ]


def test_a_lock_without_a_file_for_this_platform_is_said_where_it_may_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"no-such-thing-of-dragoman==1.0 --hash=sha256:{'0' * 64}\n", encoding="utf-8")
    before, install_lock.PIP[:] = [*install_lock.PIP], [*install_lock.PIP, "--no-index", "--retries", "0"]
    try:
        assert install_lock.main(lock, "left out") == 0
        assert capsys.readouterr().err.splitlines()[-1] == "  left out"
        assert install_lock.main(lock) == 1
    finally:
        install_lock.PIP[:] = before


def test_two_builds_are_the_same_bytes(built: Path, tmp_path: Path) -> None:
    again = package.build(tmp_path)
    first = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in built.iterdir()}
    assert first == again and {Path(name).suffix for name in first} == {".whl", ".gz"}


def test_the_bill_of_materials_is_the_lock() -> None:
    bill = package.bill_of_materials()
    listed = {each["name"]: each["version"] for each in bill["components"]}  # type: ignore[attr-defined]
    assert listed == locked_versions(PROJECT / "requirements" / "runtime.txt")
    named = {each["purl"] for each in bill["components"]}  # type: ignore[attr-defined]
    assert named == {f"pkg:pypi/{name}@{version}" for name, version in listed.items()}
    hashes = [each["externalReferences"][0]["hashes"] for each in bill["components"]]  # type: ignore[attr-defined]
    assert all(hashes) and bill == package.bill_of_materials()

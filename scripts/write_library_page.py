"""The page of the library: its functions and classes with their signatures, from their docstrings."""

import inspect
import re
import typing

import dragoman
from dragoman import testing

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)
_WORDS = {"Args": "Arguments", "Attributes": "Attributes", "Raises": "Errors", "Returns": "Gives"}
_METHODS = ("reply", "stream", "run", "run_stream", "embed", "models", "close")
_CLASSES = ("Client", "AsyncClient", "Stream", "AsyncStream", "Run", "AsyncRun")
_VALUES = ("Answer", "Embeddings", "StreamedCall", "ToolStarted", "ToolFinished", "Attempt", "ModelFacts")
#: Functions that ask nobody.
_FUNCTIONS = ("decode", "dump_messages", "load_messages", "fold", "unfold")
#: What a client makes: nobody else calls their constructors.
_MADE = ("Stream", "AsyncStream", "Run", "AsyncRun")
#: What our own parts do with a stream.
_INNER = ("fetch", "give", "take")
_SERVE = ("FakeModel", "Recording")
_ERRORS = (
    "DragomanError",
    "UsageError",
    "ConfigError",
    "CallFailed",
    "OutputInvalid",
    "StepLimit",
    "McpFailed",
    "MissingExtra",
)


def library_page(note: str) -> str:
    """All of it."""
    lines = [
        "# The library",
        "",
        note,
        "",
        "`dragoman.reply`, `stream`, `run`, `run_stream` and `embed` take the same arguments as the methods of",
        "`Client` and share one, which is made at the first use. `AsyncClient` is `Client` with `await`.",
        "",
    ]
    for name in _CLASSES:
        kind = getattr(dragoman, name)
        lines += [f"## {name}", "", *_described(kind, "" if name in _MADE else f"{name}{_signature(kind)}")]
        if name == "AsyncClient":
            lines += ["Its methods are those of `Client`, with `await`; `stream` and `run_stream` need none.", ""]
            continue
        for method, value in inspect.getmembers(kind):
            if method.startswith("_") or method in _INNER or not (callable(value) or isinstance(value, property)):
                continue
            if name == "Client" and method not in _METHODS:
                continue
            lines += [f"### {name}.{method}", "", *_described(value, _call(method, value))]
    lines += ["## Functions", ""]
    for name in _FUNCTIONS:
        value = getattr(dragoman, name)
        lines += [f"### {name}", "", *_described(value, f"{name}{_signature(value)}")]
    lines += ["## Values", ""]
    for name in _VALUES:
        lines += [f"### {name}", "", *_described(getattr(dragoman, name), _fields(getattr(dragoman, name)))]
    lines += ["## Errors", ""]
    for name in _ERRORS:
        lines += [f"### {name}", "", *_described(getattr(dragoman, name), "")]
    lines += ["## dragoman.testing", "", *_described(testing, "")]
    for name in ("FakeModel", "Recording", "Served", "call", "thinking", "cut", "error", "deviation", "delay"):
        value = getattr(testing, name)
        lines += [f"### {name}", "", *_described(value, f"{name}{_signature(value)}")]
        if name in _SERVE:
            lines += [f"### {name}.serve", "", *_described(value.serve, _call("serve", value.serve))]
    return "\n".join(lines).rstrip() + "\n"


def _call(name: str, value: object) -> str:
    return name if isinstance(value, property) else f"{name}{_signature(value)}"


def _signature(value: typing.Any) -> str:
    """A signature, one argument a line where it is long."""
    found = inspect.signature(value)
    kept = [one for one in found.parameters.values() if one.name != "self"]
    returned = "" if found.return_annotation is found.empty else f" -> {found.return_annotation}"
    if len(kept) < 3:
        return f"({', '.join(map(_parameter, kept))}){returned}"
    rows: list[str] = []
    is_keyword = False
    for one in kept:
        if one.kind is one.KEYWORD_ONLY and not is_keyword:
            rows.append("    *,")
            is_keyword = True
        rows.append(f"    {_parameter(one)},")
    return "\n".join(["(", *rows, ")"]) + returned


def _parameter(one: inspect.Parameter) -> str:
    star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    written = "" if one.annotation is one.empty else f": {one.annotation}"
    return f"{star}{one.name}{written}" + ("" if one.default is one.empty else f" = {one.default!r}")


def _fields(kind: typing.Any) -> str:
    return "\n".join(f"{name}: {value}" for name, value in inspect.get_annotations(kind).items())


def _described(value: object, code: str) -> list[str]:
    lines = ["```text", *code.splitlines(), "```", ""] if code else []
    text = inspect.getdoc(value) or ""
    before, *rest = _SECTION.split(text)
    lines += [before.strip(), ""]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        lines += [f"**{_WORDS[title]}**", "", *_items(body), ""]
    return lines


def _items(body: str) -> list[str]:
    """The entries of a section, one a row, their further lines joined."""
    rows: list[str] = []
    after: list[str] = []
    for line in inspect.cleandoc(body).splitlines():
        if not line.strip():
            continue
        if line.startswith(" ") and rows:
            rows[-1] += " " + line.strip()
        elif re.match(r"[\w, `.]+: ", line):
            names, _, words = line.partition(": ")
            quoted = ", ".join(f"`{name}`" for name in names.split(", "))
            rows.append(f"- {quoted}: {words}" if "`" not in names else f"- {line}")
        else:
            after.append(line)
    return [*rows, *(["", *after] if after else [])]

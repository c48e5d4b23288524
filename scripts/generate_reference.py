"""Write the generated pages of docs/reference from the code; with --check, only say which are not current."""

import argparse
import inspect
import io
import os
import sys
import tomllib
import types as types_of_python
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout, suppress
from functools import partial
from typing import Literal, get_args, get_origin
from unittest import mock

import msgspec
from write_admin_page import admin_page
from write_answers_page import answers_page
from write_fields_page import fields_page
from write_house_map import BLOCKS, PROJECT, with_blocks
from write_library_page import library_page
from write_parser_page import parsers_page
from write_provider_page import page as provider_page
from write_validation_pages import probes_page, tested_page

from dragoman import deviations, events, types
from dragoman.cli import main as cli
from dragoman.providers.catalog import load_catalog
from dragoman.stages.rescue.cursor import Family
from dragoman.stages.rescue.families import FAMILIES
from dragoman.testing.faults import FAULTS

NOTE = "<!-- Written by `make docs` from the code: change the code, not this page. -->"


def render_deviations() -> str:
    """The table of deviation codes, grouped as in the source."""
    rows = [f"| `{code}` | {seen} | {done} |" for code, (seen, done) in deviations.DEVIATIONS.items()]
    return "\n".join(
        [
            "# Deviations",
            "",
            NOTE,
            "",
            "A deviation is a place where a provider breaks its protocol's specification and dragoman goes on. Each",
            "one is a `Deviation` event. Its `code` is in this table, `where` is the place, and `seen` is what stood",
            "there, cut to 200 bytes. `--strict` turns the first deviation of severity `fault` into a failure.",
            "",
            "In your tests [`dragoman.testing.deviation(CODE)`](library.md#deviation) plays these: "
            + ", ".join(f"`{code}`" for code in sorted(FAULTS))
            + ".",
            "Not every protocol has a place for each of them.",
            "",
            "| code | what was seen | what dragoman does |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def render_events() -> str:
    """Every event class, then the values that they carry."""
    grammar = inspect.getdoc(events) or ""
    kinds = get_args(events.Event)
    places = ("dragoman.types", "dragoman.money")
    values = [kind for _, kind in inspect.getmembers(types, _is_struct) if kind.__module__ in places]
    values.sort(key=lambda kind: (places.index(kind.__module__), inspect.getsourcelines(kind)[1]))
    return "\n".join(
        [
            "# Events",
            "",
            NOTE,
            "",
            _to_markdown(grammar),
            "",
            "All are frozen; import them from `dragoman`.",
            "",
            "## The steps of a response",
            "",
            *_render_classes(kinds),
            "## Their sum",
            "",
            *_render_classes([events.Reply]),
            "## Values",
            "",
            *_render_classes(values),
            "## Words",
            "",
            *_render_words(),
            "",
        ]
    )


def render_cli() -> str:
    """The help text of the command and of each of its subcommands."""
    overview = _help([])
    lines = ["# Command line", "", NOTE, "", "```", overview, "```", ""]
    for command in cli.COMMANDS:
        lines += [f"## dragoman {command}", "", "```", _help([command]), "```", ""]
    return "\n".join(lines)


def render_providers() -> str:
    """The catalogue's providers and where their models were read."""
    return provider_page(load_catalog())


def render_losses() -> str:
    """What no protocol's form can keep, from the table that the matrix test uses up."""
    declared = tomllib.loads((PROJECT / "tests" / "losses.toml").read_text(encoding="utf-8"))
    rows = [
        f"| `{protocol}` | {shape} | {', '.join(kinds)} |"
        for protocol, shapes in declared.items()
        for shape, kinds in shapes.items()
    ]
    return "\n".join(
        [
            "# Losses",
            "",
            NOTE,
            "",
            "Some protocols have no place for a part of a reply. This table lists every such loss. A test writes every",
            "shape of reply in every protocol and reads it back. It fails if something is lost that is not listed, or",
            "listed and not lost. `-whole` is a response that is not streamed.",
            "",
            "| protocol | reply | lost |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


#: The page of calls written as text, up to where each kind of family counts.
RESCUE = """\
Some models write tool calls into their text. A server passes such text on if it does not know the form of its model's
calls. If your request offers tools, dragoman takes these calls out of the text. It delivers them like any other call,
with the deviation `rescued-call`. The name must be that of an offered tool, once [cleaned](deviations.md). A call to
another tool stays text, with all that its values hold; the calls around it are delivered. Everything else stays text,
byte for byte.

## What stays text

A text that only shows a call is not a call. dragoman reads no calls in:

- code: fences (closed or not, and also one that opens behind words), indented blocks, inline code, and comments that
  begin their line with `#`, `//`, `--`, `;`, `%` or `REM`
- text of several lines in three quotation marks (Python, TOML), and here-documents of a shell
- lines further in than what announces them: a scalar of YAML (`key: |`), a directive or a literal of reStructuredText
- quotations: after a quotation mark that is still open on its line, in quoted lines, rows of tables and lines of a diff
- lines of a log, with a time of day and a level such as `INFO`, and paragraphs that begin with `User:` or `Human:`
- HTML comments, sections of XML (`<![CDATA[`), and HTML elements that show their text (`<pre>`, `<samp>`, `<textarea>`,
  `<blockquote>`, `<details>` at its line's start …)
- tags that mark an example or a tool's result (`<example>`, `<tool_response>` …)
- what BBCode, LaTeX, Org, Jira, Texinfo, roff and comments of C show, and blocks of AsciiDoc: `....`, `++++`, `////`,
  and `----` behind a line such as `[source,xml]`
- turns of other speakers that a model goes on to write by itself; what follows a turn of the user, in the tokens of a
  template or in words (`Human:`, `### User`, and behind that `Assistant:`), is made up too, to the end of the text
- text behind a backslash

After an open quotation mark, and in a line of a log, this holds for the whole call: up to its
closing marker or a blank line. Every other context lasts until it is closed. One that opens within a line ends with its
paragraph. Another marker that begins its own line counts.

Outside a fence, dragoman recognises code by its indent and by such marks alone. A call behind `key: ` counts. So does a
call behind `*` or `##`, or below a line of `----` that nothing announces, because prose and lists have these too.

A call in thinking counts only if no answer follows the thinking, a call of the answer included. That holds too for
every call before a lone closing tag, such as `</think>`. In a call, such a tag belongs to the call's value.

## Where a call counts
"""

#: Where each kind of family counts.
WHERE = {
    "anywhere": "anywhere outside code and quotations",
    "line": "at the start of a line, outside code and quotations",
    "message": "only as the whole message, and only when the arguments fit the tool's schema",
}


def render_rescue() -> str:
    """The families of calls written as text, each with the first of its test cases."""
    rows = [
        f"| [{family.name}](#{family.name}) | {_openers(family)} | {family.where} | {len(_rescue_cases(family))} |"
        for family in FAMILIES
    ]
    lines = [
        "# Calls written as text",
        "",
        NOTE,
        "",
        *RESCUE.splitlines(),
        "",
        *(f"- **{kind}**: {meaning}." for kind, meaning in WHERE.items()),
        "",
        "A call whose arguments close themselves (JSON, Python) counts without its closing tag if the answer ended",
        "by itself or went on after the call. A call made of parameter tags needs its own closing tag or its",
        "wrapper's. If a token limit, a filter or a missing end cut the answer within a call, the call is an error,",
        "and its markup does not become text.",
        "",
        "To switch all of this off, set `rescue = false` in a route.",
        "",
        "| family | begins with | counts | cases |",
        "|---|---|---|---|",
        *rows,
        "",
    ]
    told: dict[str, str] = {}
    for family in FAMILIES:
        said = inspect.getdoc(inspect.getmodule(family.parse)) or ""
        first = told.setdefault(said, family.name)
        if first != family.name:
            said = f"The form of [{first}](#{first}) without its first marker. The call must be the whole message."
        example = _rescue_cases(family)[0]["text"].strip("\n")
        lines += [f"## {family.name}", "", said, "", "````text", example, "````", "", f"Source: {family.source}", ""]
    return "\n".join(lines)


def _openers(family: Family) -> str:
    openers = [f"NAME{opener}" if family.named else opener for opener in family.openers[:3]]
    openers = [opener.replace("\n", " ⏎ ").rstrip() for opener in openers]
    shown = [f"`` {opener} ``" if "`" in opener else f"`{opener}`" for opener in openers]
    more = len(family.openers) - len(shown)
    return (", ".join(shown) + (f" and {more} more" if more > 0 else "")).replace("|", "\\|")


def _rescue_cases(family: Family) -> list[dict[str, str]]:
    path = PROJECT / "tests" / "rescue" / "cases" / f"{family.name}.toml"
    cases: list[dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))["cases"]
    return cases


PAGES: dict[str, Callable[[], str]] = {
    "deviations.md": render_deviations,
    "events.md": render_events,
    "cli.md": render_cli,
    "providers.md": render_providers,
    "losses.md": render_losses,
    "fields.md": lambda: fields_page(NOTE),
    "answer-fields.md": lambda: answers_page(NOTE),
    "rescue.md": render_rescue,
    "tool-parsers.md": lambda: parsers_page(NOTE),
    "probes.md": lambda: probes_page(NOTE),
    "library.md": lambda: library_page(NOTE),
    "tested-models.md": lambda: tested_page(NOTE),
    "admin-api.md": lambda: admin_page(NOTE, _to_markdown),
}


def _is_struct(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, msgspec.Struct) and not value.__name__.startswith("_")


def _to_markdown(docstring: str) -> str:
    """A docstring's literal blocks (`text::` and an indented block) as fenced ones."""
    lines, fenced = [], False
    for line in docstring.splitlines():
        if fenced and line and not line.startswith(" "):
            lines[-1:] = ["```", ""]
            fenced = False
        if line.endswith("::"):
            lines += [line[:-1], "", "```"]
            fenced = True
        elif not (fenced and not line and lines[-1] == "```"):
            lines.append(line.removeprefix("    ") if fenced else line)
    return "\n".join([*lines, "```"] if fenced else lines)


def _render_classes(kinds: Iterable[type]) -> list[str]:
    lines = []
    for kind in kinds:
        lines += [f"### {kind.__name__}", "", _to_markdown(inspect.getdoc(kind) or ""), ""]
        rows = [
            f"{field.name}: {_annotation(kind, field.name)}{_default(field)}" for field in msgspec.structs.fields(kind)
        ]
        if rows:
            lines += ["```python", *rows, "```", ""]
        members = _render_members(kind)
        if members:
            lines += [*members, ""]
    return lines


def _render_members(kind: type) -> list[str]:
    """What a class computes from its fields, and what makes one, each with the first sentence of its docstring."""
    rows = []
    for name, value in vars(kind).items():
        if name.startswith("_") or not isinstance(value, property | staticmethod | types_of_python.FunctionType):
            continue
        text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
        if isinstance(value, property):
            shown = f".{name}"
        elif isinstance(value, staticmethod):
            shown = f"{kind.__name__}.{name}(…)"
        else:
            shown = f".{name}({', '.join(list(inspect.signature(value).parameters)[1:])})"
        rows.append(f"- `{shown}`: {text}")
    return rows


def _render_words() -> list[str]:
    """The named sets of literal texts."""
    found = {name: value for module in (types, events) for name, value in vars(module).items()}
    literals = {name: get_args(value) for name, value in found.items() if get_origin(value) is Literal}
    return [f"- `{name}`: " + ", ".join(f"`{word}`" for word in words) for name, words in literals.items()]


def _annotation(kind: type, field: str) -> str:
    written = inspect.get_annotations(kind)[field]
    return written if isinstance(written, str) else inspect.formatannotation(written)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is not msgspec.NODEFAULT:
        shown = (
            f"{type(field.default).__name__}()" if isinstance(field.default, msgspec.Struct) else repr(field.default)
        )
        return f" = {shown}"
    if field.default_factory is not msgspec.NODEFAULT:
        return f" = {field.default_factory.__name__}()"
    return ""


def _help(arguments: list[str]) -> str:
    shown = io.StringIO()
    with redirect_stdout(shown), mock.patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}), suppress(SystemExit):
        cli.main([*arguments, "--help"])
    return shown.getvalue().rstrip()


#: Each page and what writes it.
WRITERS: dict[str, Callable[[], str]] = {
    **{f"docs/reference/{name}": render for name, render in PAGES.items()},
    **{name: partial(with_blocks, name) for name in BLOCKS},
}


def stale_pages(names: Iterable[str]) -> list[str]:
    """Those of these pages that are not what the code says."""
    texts = {name: PROJECT / name for name in names}
    return [name for name, page in texts.items() if not page.exists() or page.read_text("utf-8") != WRITERS[name]()]


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not current")
    check = parser.parse_args().check
    stale = stale_pages(WRITERS)
    for name in stale:
        if not check:
            (PROJECT / name).write_text(WRITERS[name](), encoding="utf-8")
        print(f"{'not current, run `make docs`' if check else 'written'}: {name}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

"""Run `dragoman COMMAND …`: pick the command, run it, turn an error into one line and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn, Protocol

from dragoman.cli.terminal import columns_of, harmless
from dragoman.errors import DragomanError, UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

#: Each command and what it does, in the order of use. Its module is `dragoman.cli.commands.<command>`.
GROUPS: Final[dict[str, dict[str, str]]] = {
    "ask a model": {
        "call": "ask a model one thing and watch the answer arrive",
        "chat": "talk to a model that works in a folder and asks before it changes anything",
        "models": "list the models that you can ask now, or show what is known of one",
    },
    "run the gateway": {
        "serve": "serve clients of all five protocols, in front of any model",
        "env": "print the settings that connect a client to the gateway",
        "apps": "list the clients that `env` and `serve --app` know",
        "tail": "watch the running gateway: a line for each request, with what was mended",
        "keys": "make, list, disable and rotate client keys of the gateway",
        "budget": "set, list and show how much keys, teams and others may use",
        "spend": "sum up what was spent, by key, team, route, target or day",
        "ledger": "check, export and correct the gateway's ledger",
    },
    "set up and check": {
        "doctor": "find servers and keys, and say what fails, why, and how to fix it",
        "config": "show, check or write the configuration",
        "completion": "print the script with which bash, zsh or fish completes commands, models and clients",
        "validate": "test what models can really do, and keep the proof",
    },
    "look at the wire": {
        "decode": "read a recorded response body and print its events, or their sum",
        "translate": "turn response bytes of one protocol into those of another, streaming",
        "record": "keep what a server really sends, as a case to report or to replay in tests",
        "explain": "tell field by field what becomes of a request for a target, and why",
        "demo": "watch three broken streams being mended, and a small model call a tool",
    },
}
COMMANDS: Final[dict[str, str]] = {name: summary for group in GROUPS.values() for name, summary in group.items()}
_ENVIRONMENT: Final = """environment:
  DRAGOMAN_CONFIG      the configuration file (dragoman config path prints it)
  ANTHROPIC_API_KEY …  keys; dragoman doctor names each provider's variable
  NO_COLOR             any value: print no colours

exit status:
  0    done
  1    the work failed; one line on standard error says why
  2    the command line is wrong, or names something that is not there
  130  interrupted
"""

_EXAMPLE: Final = "example:\n"

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
_LONGEST: Final = 600  # characters of the line that says what failed
INTERRUPTED: Final = 130  # what shells expect of a program that Ctrl-C ended


class _Parser(argparse.ArgumentParser):
    """A parser that says what was expected and, of a word, no more than a line.

    Its help is not lost where it cannot be written: argparse would say nothing, and exit with 0.
    """

    def error(self, message: str) -> NoReturn:
        super().error(_clipped(harmless(message)))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            from dragoman.providers.catalog import nearest

            words = [str(word) for word in action.choices]
            seen = f"got {str(value)[:80]!r}{nearest(str(value), words)}"
            raise argparse.ArgumentError(action, f"expected one of {', '.join(words)}, {seen}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # Python before 3.13 makes an empty list of it
            raise argparse.ArgumentError(action, "expected a value, got '--'")
        return super()._get_values(action, arg_strings)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if message:
            (file or sys.stderr).write(message)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Prints an option's value once, as Python 3.13 does, and breaks a description between words, its rows below their
    second column. It knows its width: argparse would otherwise import `shutil` whenever an option is declared.
    """

    def __init__(self, prog: str) -> None:
        said = os.environ.get("COLUMNS", "")
        seen = columns_of(sys.stdout, most=1_000) if sys.stdout.isatty() else 80
        columns = (said.isdecimal() and int(said)) or seen
        super().__init__(prog, width=columns - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if _EXAMPLE in text:
            return super()._fill_text(text, width, indent)
        width = max(width + 1, 40)  # one free column is enough
        return "\n\n".join(_filled(paragraph, width) for paragraph in text.strip().split("\n\n"))

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def _filled(paragraph: str, width: int) -> str:
    """Return a paragraph in lines of a width. If it is a table, its rows go on below their second column."""
    import textwrap  # for who asks for help

    first = re.search(r"^\S++(?: \S++)*+  +(?=\S)", paragraph, re.MULTILINE)
    if first is None:
        return textwrap.fill(paragraph, width)
    rows = re.sub(r"\n +", " ", paragraph).split("\n")
    return "\n".join(textwrap.fill(row, width, subsequent_indent=" " * len(first[0])) for row in rows)


class Command(Protocol):
    """The interface of a command's module. Its docstring is the description of its help, `EXAMPLE` the end."""

    EXAMPLE: str
    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Run the command. Return the exit status."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line. Return the exit status: 0 done, 1 the work failed, 2 wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words and words[0] in COMMANDS else None
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no "✓" must not end the work
    try:
        try:
            return _run(name, words)
        except UsageError as error:
            complain(str(error))
            return WRONG_USAGE
        except DragomanError as error:
            return complain(str(error))
        finally:
            _flush()
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):
            _silence(stream)  # the reader has left
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return complain(_explain(error))


def _flush() -> None:
    """Write what is left. If Python's own flush at the exit fails, it ends with a traceback and 120."""
    try:
        sys.stderr.flush()
    except BrokenPipeError:
        raise
    except OSError:  # what a full disk kept back of it is lost
        _silence(sys.stderr)
    sys.stdout.flush()


def _open_closed() -> None:
    """Open the null device for each standard stream that the caller closed, as starters of daemons do."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open as long as the program


def _run(name: str | None, words: list[str]) -> int:
    if name is None:
        return _run_without_command(words)
    command = load_command(name)
    parser = make_parser(name, command)
    options = parser.parse_args(words[1:])
    _refuse_idle(parser, options)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # `__main__` set it; from here on an interruption is caught
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return command.run(options)


def _refuse_idle(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse an option that does nothing in this action of a command: its help says in which it does.

    Raises:
        UsageError: there is one.
    """
    actions = tuple(next((each.choices for each in parser._actions if each.dest == "action" and each.choices), ()))
    for each in parser._actions if actions else ():
        clauses = [clause.partition(": ") for clause in (each.help or "").split("; ")]
        takers = [word for words, colon, _ in clauses for word in words.split(", ") if colon and word in actions]
        if takers and options.action not in takers and getattr(options, each.dest) not in (each.default, None):
            name = each.option_strings[-1] if each.option_strings else each.metavar
            raise UsageError(f"{name}: not for {options.action}, only for {', '.join(takers)}")


def load_command(name: str) -> Command:
    """Import the module of a command in `COMMANDS`."""
    command: Command = importlib.import_module(f"dragoman.cli.commands.{name}")
    return command


def make_parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Return the parser of one command."""
    parser = _Parser(
        prog=f"dragoman {name}",
        description=command.__doc__,
        epilog=f"{_EXAMPLE}{command.EXAMPLE}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def complain(message: str) -> int:
    """Print in one line on standard error what failed. Return the exit status for that."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)
    line = harmless(" ".join(message.split()))
    try:
        print(f"dragoman: {_clipped(line)}", file=sys.stderr)
    except OSError:
        _silence(sys.stderr)
    return FAILED


def _clipped(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _explain(error: OSError) -> str:
    """Describe a system error in words: `notes.txt: there is no such file`."""
    if error.errno == errno.ENOSPC and error.filename is None:
        return "cannot write the output: no space is left there"
    if error.filename is None:
        return error.strerror or str(error) or type(error).__name__
    reason = "there is no such file" if error.errno == errno.ENOENT else error.strerror or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}"


def _silence(stream: IO[str]) -> None:
    """Redirect a closed stream, so that Python's flush at exit does not complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run_without_command(words: list[str]) -> int:
    """Handle `--help`, `--version`, `help`, no word, or an unknown command."""
    if words and words[0] == "help":
        return _help(words[1:])
    parser = _main_parser()
    if words and not words[0].startswith("-"):
        _refuse(parser, words[0])
    options = parser.parse_args(words)
    if options.version:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        return DONE
    parser.print_help(sys.stderr)
    return WRONG_USAGE


def _help(words: list[str]) -> int:
    """Run `help [COMMAND]`."""
    if not words or words[0] in ("-h", "--help", "help"):
        _main_parser().print_help()
        return DONE
    if words[0] not in COMMANDS:
        _refuse(_main_parser(), words[0])
    make_parser(words[0], load_command(words[0])).print_help()
    return DONE


def _refuse(parser: argparse.ArgumentParser, name: str) -> NoReturn:
    from dragoman.providers.catalog import nearest

    parser.error(f"unknown command {name[:80]!r}{nearest(name, (*COMMANDS, 'help'))}; dragoman help lists them")


def _row(name: str, summary: str, width: int) -> str:
    """Render a command and its sentence, wrapped to the terminal's columns, 80 at most."""
    import shutil
    import textwrap

    columns = min(shutil.get_terminal_size().columns, 80)
    lines = textwrap.wrap(summary, max(columns - width - 3, 30))
    return f"  {name:<{width}}" + f"\n  {'':<{width}}".join(lines)


def _main_parser() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS)) + 2
    groups = [
        "\n".join([f"{title}:", *(_row(name, summary, width) for name, summary in commands.items())])
        for title, commands in GROUPS.items()
    ]
    listing = "\n\n".join(groups)
    parser = _Parser(
        prog="dragoman",
        usage="dragoman COMMAND …",
        description="LLM tool calls that just work: one typed event stream over five wire protocols.",
        epilog=f"{listing}\n\n{_EXAMPLE}"
        '  dragoman call ollama/granite4 "Weather in Paris?" --tools tools.json\n\n'
        f"dragoman help COMMAND says more about one.\n\n{_ENVIRONMENT}",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())

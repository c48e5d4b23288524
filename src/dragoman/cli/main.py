"""`dragoman COMMAND …`: pick the command, run it, and turn what goes wrong into one line and an exit status."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, Protocol

from dragoman.cli.terminal import harmless
from dragoman.errors import DragomanError, UsageError

#: Each command and what it does, in the order of the help. Its module is `dragoman.cli.<command>`.
COMMANDS: Final[dict[str, str]] = {
    "decode": "read a recorded response body: its events, or their sum",
    "translate": "turn response bytes of one protocol into those of another, streaming",
    "serve": "serve clients of any of the five protocols, in front of any model",
    "call": "ask a model one thing and watch the answer arrive",
    "chat": "talk to a model that works in a folder, and asks before it changes anything",
    "models": "list providers' models, or tell what is known of one",
    "validate": "find out by probes what models can really do, and keep the proof",
    "doctor": "find servers and keys, and say what fails, why, and how to mend it",
    "config": "show, check or write the configuration",
    "env": "print what points a client at the gateway: variables, a file, or what to click",
    "apps": "list the clients that `env` and `serve --app` know",
    "keys": "make a client key for the gateway",
    "tail": "watch the running gateway, a line a request, with what was mended",
    "demo": "a real small model streams a real tool call; then three broken streams, mended",
}

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2
_INTERRUPTED: Final = 130  # what shells expect of a program that Ctrl-C ended


class Command(Protocol):
    """What a command's module offers. Its docstring is the description of its help, `EXAMPLE` the end."""

    EXAMPLE: str
    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's options."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Do it; gives the exit status."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit status: 0 done, 1 the work failed, 2 wrong usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = words[0] if words and words[0] in COMMANDS else None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows no "✓" must not end the work
    try:
        if name is None:
            return _run_without_command(words)
        command = load_command(name)
        return command.run(make_parser(name, command).parse_args(words[1:]))
    except BrokenPipeError:
        # The reader has left; what Python would still flush at exit must not complain.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except UsageError as error:
        complain(str(error))
        return WRONG_USAGE
    except (DragomanError, OSError) as error:
        return complain(str(error))


def load_command(name: str) -> Command:
    """The module of a command in `COMMANDS`."""
    command: Command = importlib.import_module(f"dragoman.cli.commands.{name}")
    return command


def make_parser(name: str, command: Command) -> argparse.ArgumentParser:
    """The parser of one command."""
    parser = argparse.ArgumentParser(
        prog=f"dragoman {name}",
        description=command.__doc__,
        epilog=f"example:\n{command.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def complain(message: str) -> int:
    """Say in one line on standard error what failed; gives the exit status for that."""
    sys.stdout.flush()
    print(f"dragoman: {harmless(' '.join(message.split()))}", file=sys.stderr)
    return FAILED


def _run_without_command(words: list[str]) -> int:
    """`--help`, `--version`, nothing, or a command that there is not."""
    width = max(map(len, COMMANDS)) + 2
    listing = "\n".join(f"  {name:<{width}}{summary}" for name, summary in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="dragoman",
        usage="dragoman COMMAND …",
        description="LLM tool calls that just work: one typed event stream over five wire protocols.",
        epilog=f"commands:\n{listing}\n\nexample:\n"
        "  dragoman decode --protocol openai-chat --result body.sse\n\n"
        "dragoman COMMAND --help tells more about one.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help=argparse.SUPPRESS)
    if words and not words[0].startswith("-"):
        from dragoman.providers.catalog import nearest

        parser.error(f"unknown command {words[0][:80]!r}{nearest(words[0], COMMANDS)}")
    options = parser.parse_args(words)
    if options.version:
        from importlib.metadata import version

        print(f"dragoman {version('dragoman')}")
        return DONE
    parser.print_help(sys.stderr)
    return WRONG_USAGE


if __name__ == "__main__":
    sys.exit(main())

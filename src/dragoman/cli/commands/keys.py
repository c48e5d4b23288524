"""Client keys of the gateway: 256 random bits each, shown once, and kept only as a SHA-256.

new          without a name: make a key, and the line for server.keys
new NAME     make a key with a name; the ledger keeps it, and it works within a second
list         list all keys with names
show NAME    show one of them
disable NAME stop the key from working, within a second
enable NAME  let it work again
rotate NAME  give the key a new secret; the old one works for --keep longer (24h)
"""

from __future__ import annotations

import argparse
import contextlib
import time
from datetime import UTC, datetime
from typing import Final

import msgspec

from dragoman.cli.body_input import write_json
from dragoman.cli.ledger_input import actor, folder_of, ledger_errors
from dragoman.cli.main import DONE
from dragoman.cli.settings import add_config, load_settings, say_open_keys
from dragoman.cli.terminal import hint, say
from dragoman.config import Config
from dragoman.errors import DragomanError, UsageError
from dragoman.gateway.process.listener_keys import virtual_keys
from dragoman.ledger.interfaces import Missing
from dragoman.ledger.keys import KeyBook, VirtualKey, check_key, new_secret
from dragoman.ledger.times import read_day, read_span

EXAMPLE = "  dragoman keys new ci --team research --models 'ollama/*' --expires 90d"

#: Where a key stands: in the configuration, in the ledger, or beside a PostgreSQL in the files of this machine.
_FILE: Final = "file"
_LEDGER: Final = "ledger"
_MACHINE: Final = "machine"
_ACTIONS: Final = ("new", "list", "show", "disable", "enable", "rotate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("action", choices=_ACTIONS, metavar="|".join(_ACTIONS), help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="new, show, disable, enable, rotate: name of the key")
    parser.add_argument("--owner", default="", metavar="NAME", help="new: who owns it")
    parser.add_argument("--team", default="", metavar="NAME", help="new: which team it belongs to")
    parser.add_argument("--label", action="append", default=[], metavar="K=V", help="new: a label; may be repeated")
    parser.add_argument("--models", default="*", metavar="A,B", help="new: its models, as provider/model (default: *)")
    parser.add_argument("--routes", default="*", metavar="A,B", help="new: its routes (default: *)")
    parser.add_argument("--expires", metavar="90d|DATE", help="new: until when it works")
    parser.add_argument(
        "--keep", default="24h", metavar="24h", help="rotate: how long the old secret works (default: 24h)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    if options.action == "new" and options.name is None:
        return _unnamed(as_json=options.json)
    if options.action != "list" and options.name is None:
        raise UsageError(f"{options.action}: expected the name of a key")
    config = load_settings(options)
    say_open_keys(config)
    if options.action not in ("list", "show") and options.name in config.virtual_keys:
        raise UsageError(f"{options.action}: [keys.{options.name}] stands in {config.path}: change it there")
    with ledger_errors("keys"), contextlib.closing(KeyBook(folder_of(config), actor=actor())) as book:
        try:
            return _named(book, config, options)
        except ValueError as problem:
            raise UsageError(str(problem)) from None


def _unnamed(*, as_json: bool) -> int:
    key, sha256 = new_secret()
    digest = f"sha256:{sha256.hex()}"
    if as_json:
        write_json({"key": key, "digest": digest})
        return DONE
    say(f"{key}\n{digest}\n")
    hint(
        "the first line is the key, for the client: it is not kept anywhere and not shown again\n"
        f'the second goes into the configuration: [server] keys = ["{digest}"]\n'
    )
    return DONE


def _named(book: KeyBook, config: Config, options: argparse.Namespace) -> int:
    name: str = options.name
    match options.action:
        case "new":
            secret, digest = new_secret()
            is_first = not config.server.keys and not _placed(book, config)
            book.add(_described(options), digest)
            _tell_secret(secret, name, "made", as_json=options.json)
            if is_first:
                hint("it is the first one: from now on the gateway refuses requests without a key\n")
        case "rotate":
            seconds = read_span(options.keep)
            if seconds is None:
                raise UsageError(f"--keep: expected a span like 24h or 0s, got {options.keep[:40]!r}")
            secret, digest = new_secret()
            book.rotate(name, digest, keep_seconds=seconds)
            _tell_secret(secret, name, "given a new secret", as_json=options.json)
        case "disable":
            book.disable(name, at=int(time.time()))
        case "enable":
            book.disable(name, at=None)
        case "list":
            keys = _placed(book, config)
            for key, place in keys:
                _show(key, place, as_json=options.json)
            if not keys:
                hint("there are no keys with names: dragoman keys new NAME makes one\n")
        case _:
            found = [(key, place) for key, place in _placed(book, config) if key.name == name]
            if not found:
                raise Missing(f"there is no key {name}")
            _show(*found[0], as_json=options.json)
    return DONE


def _placed(book: KeyBook, config: Config) -> list[tuple[VirtualKey, str]]:
    """Return all keys, and where each stands. One of the configuration hides its name elsewhere, as in the gateway."""
    found = {key.name: (key, _MACHINE) for key in book.of_machine()}
    found |= {key.name: (key, _LEDGER) for key in book.list()}
    found |= {key.name: (key, _FILE) for key in virtual_keys(config).values()}
    return [found[name] for name in sorted(found)]


def _described(options: argparse.Namespace) -> VirtualKey:
    labels = dict(map(_read_label, options.label))
    expires = None
    if options.expires is not None:
        span = read_span(options.expires)
        try:
            expires = int(time.time() + span if span is not None else read_day(options.expires))
        except ValueError as problem:
            raise UsageError(f"--expires: {problem}") from None
    key = VirtualKey(
        name=options.name,
        owner=options.owner,
        team=options.team,
        labels=labels,
        models=tuple(filter(None, options.models.split(","))),
        routes=tuple(filter(None, options.routes.split(","))),
        expires=expires,
    )
    return check_key(key)


def _read_label(word: str) -> tuple[str, str]:
    name, separator, value = word.partition("=")
    if not separator:
        raise UsageError(f"--label: expected NAME=VALUE, got {word[:40]!r}")
    return name, value


def _tell_secret(secret: str, name: str, done: str, *, as_json: bool) -> None:
    try:
        if as_json:
            write_json({"name": name, "key": secret})
            return
        say(f"{secret}\n")
    except OSError as problem:
        fix = f"the key {name} was {done}, and nobody has seen it: dragoman keys rotate {name} makes another"
        raise DragomanError(f"cannot write the output: {problem.strerror}; {fix}") from None
    hint("this is the key, for the client: it is not kept anywhere and not shown again\n")


def _show(key: VirtualKey, place: str, *, as_json: bool) -> None:
    if as_json:
        write_json({**msgspec.to_builtins(key), "from": place})
        return
    words = [key.name]
    words += [f"{name} {value}" for name, value in (("owner", key.owner), ("team", key.team)) if value]
    words += [f"{name}={value}" for name, value in sorted(key.labels.items())]
    words += [f"models {','.join(key.models)}", f"routes {','.join(key.routes)}"]
    if key.expires is not None:
        words.append(f"expires {_day(key.expires)}")
    if key.disabled is not None:
        words.append("disabled" if place == _FILE else f"disabled {_day(key.disabled)}")
    if place != _LEDGER:
        words.append("(on this machine alone)" if place == _MACHINE else "(file)")
    say("  ".join(words) + "\n")


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")

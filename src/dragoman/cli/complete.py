"""Complete a command line for shells, from the commands' own parsers, offline."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.cli.main import COMMANDS, load_command, make_parser
from dragoman.config import Config, load_config
from dragoman.protocols.recognize import SHORT_NAMES

#: A word and what it does.
Candidate: TypeAlias = tuple[str, str]
_OTHER_WORDS: Final = (("help", "tell more about a command"), ("--help", ""), ("--version", ""))


def complete(words: Sequence[str]) -> list[Candidate]:
    """Return the candidates for the last word of a command line without its program; none where files may stand.

    Args:
        words: all words up to the cursor, the last one unfinished or "".
    """
    current = words[-1] if words else ""
    if len(words) < 2:
        return _fitting(current, (*COMMANDS.items(), *_OTHER_WORDS))
    name = words[0]
    if name == "help":
        return _fitting(current, COMMANDS.items())
    if name not in COMMANDS:
        return []
    parser = make_parser(name, load_command(name))
    return _complete_options(parser, list(words[1:-1]), current)


def _complete_options(parser: argparse.ArgumentParser, before: list[str], current: str) -> list[Candidate]:
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    by_name = {option: action for action in actions for option in action.option_strings}
    option, mark, value = current.partition("=")
    if mark and option in by_name:
        return [(f"{option}={word}", says) for word, says in _values(by_name[option], value)]
    positionals = [action for action in actions if not action.option_strings]
    place, waiting = 0, None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word in by_name:
            waiting = by_name[word] if by_name[word].nargs != 0 else None
        elif not word.startswith("-"):
            place += 1
    if waiting is not None:
        return _values(waiting, current)
    if current.startswith("-"):
        return _fitting(current, ((name, (action.help or "").partition("; ")[0]) for name, action in by_name.items()))
    if not positionals:
        return []
    last = positionals[-1]
    if place >= len(positionals) and last.nargs not in ("*", "+"):
        return []
    return _values(positionals[min(place, len(positionals) - 1)], current)


def _values(action: argparse.Action, current: str) -> list[Candidate]:
    """Return the candidates for the value of an option or a positional argument."""
    if action.choices is not None:
        return _fitting(current, ((str(choice), "") for choice in action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    words = {word.strip("….,") for word in metavar.split("|")}
    source = next((source for word, source in _SOURCES if word in words or word == f"--{action.dest}"), None)
    return [] if source is None else _fitting(current, source())


def _fitting(current: str, candidates: Iterable[Candidate]) -> list[Candidate]:
    return [(word, " ".join(says.split())) for word, says in candidates if word.startswith(current)]


def _settings() -> Config:
    return load_config(environ=os.environ, home=Path.home())


def _targets() -> Iterable[Candidate]:
    """Yield routes, configured models, and catalogued ones of providers whose key is set. No server is asked."""
    config = _settings()
    yield from ((name, "route") for name in config.routes if name != "*")
    yield from ((name, "") for name in config.models if "*" not in name)
    yield ("embedded/smollm2", "")
    for name in config.catalog.providers:
        listed = config.catalog.models(name) if name in config.keys else ()
        yield from ((model.target, "") for model in listed)
        if not listed:
            yield (f"{name}/", "")


def _providers() -> Iterable[Candidate]:
    return ((name, provider.base_url) for name, provider in _settings().catalog.providers.items())


def _clients() -> Iterable[Candidate]:
    from dragoman.cli.presets import load_presets

    return ((name, preset.title) for name, preset in load_presets().items())


def _protocols() -> Iterable[Candidate]:
    return ((short, long) for short, long in SHORT_NAMES.items())


def _actions() -> Iterable[Candidate]:
    return (("list", "list what can be asked now"), ("info", "show what is known of one model"), *_providers())


#: By the placeholder of a value, or by the option: what may stand there.
_SOURCES: Final[tuple[tuple[str, Callable[[], Iterable[Candidate]]], ...]] = (
    ("info", _actions),
    ("TARGET", _targets),
    ("CLIENT", _clients),
    ("P", _protocols),
    ("SERVER", _providers),
    ("--provider", _providers),
    ("--app", _clients),
)

"""The configuration that a command runs with."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dragoman.cli.terminal import hint
from dragoman.config import PATH_VARIABLE, Config, default_path, load_config
from dragoman.config.key_files import open_key_files
from dragoman.errors import UsageError


def add_config(parser: argparse.ArgumentParser) -> None:
    """Declare --config."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration, in place of the usual one")


def settings_file(options: argparse.Namespace) -> Path:
    """Return where the configuration stands, or would."""
    named = options.config or os.environ.get(PATH_VARIABLE)
    return Path(named) if named else default_path(environ=os.environ, home=Path.home())


def load_settings(options: argparse.Namespace) -> Config:
    """Return the configuration that --config, the environment or the user's folder has.

    Raises:
        UsageError: --config names a file that does not exist.
        ConfigError: something in the configuration is wrong.
    """
    if options.config is not None and not options.config.exists():
        raise UsageError(f"--config {options.config}: there is no such file")
    return load_config(options.config, environ=os.environ, home=Path.home())


def say_open_keys(config: Config) -> None:
    """Print which key files every user of the machine may read."""
    for line in open_key_files(config, home=Path.home()):
        hint(f"{line}\n")

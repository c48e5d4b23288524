"""The configuration that a command runs with."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from dragoman.config import Config, load_config


def add_config(parser: argparse.ArgumentParser) -> None:
    """Declare --config."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration, in place of the usual one")


def load_settings(options: argparse.Namespace) -> Config:
    """The configuration that --config, the environment or the user's folder has."""
    return load_config(options.config, environ=os.environ, home=Path.home())

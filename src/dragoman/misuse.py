"""The root of what dragoman raises, and the error of whoever calls it wrongly. Below everything else."""

from __future__ import annotations


class DragomanError(Exception):
    """The root of what dragoman raises."""


class UsageError(DragomanError):
    """The caller broke the contract: the message names the argument, what was seen, and what is taken."""

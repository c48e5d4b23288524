"""The root of dragoman's exceptions, and the one for wrong use. Below everything else."""

from __future__ import annotations


class DragomanError(Exception):
    """The root of what dragoman raises."""


class UsageError(DragomanError):
    """The caller broke the contract: the message names the argument, what was seen, and what is taken."""

"""What is typed at once: commands, or one text for the model."""

from __future__ import annotations

import pytest

from dragoman.agent.commands import split_commands


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/help", ["/help"]),
        ("/help\n/tools\n\n /model a/b \n", ["/help", "/tools", "/model a/b"]),
        ("look at\n/etc/hosts", ["look at\n/etc/hosts"]),
        ("/etc/hosts is\nwhat I mean", ["/etc/hosts is\nwhat I mean"]),
        ("", [""]),
        ("\n \n", ["\n \n"]),
    ],
)
def test_commands_that_were_typed_ahead_are_done_one_after_the_other(text: str, lines: list[str]) -> None:
    assert split_commands(text) == lines

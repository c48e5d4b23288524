"""What a native reader stumbled over in the first hour stays rewritten: in documents, docstrings and printed text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from for_each import for_each

PROJECT = Path(__file__).resolve().parent.parent


@cache
def texts() -> dict[str, str]:
    """Page or file → its words, each line end and mark of a comment a space."""
    return {
        str(path.relative_to(PROJECT)): " ".join(
            re.sub(r"\n\s*(?:#|\|)?\s*", " ", path.read_text(encoding="utf-8")).split()
        )
        for folder, ending in ((".", "README.md"), ("docs", "**/*.md"), ("src", "**/*.py"))
        for path in (PROJECT / folder).glob(ending)
    }


#: What was said, in part; the page that says it better; how.
REWRITTEN = [
    (
        "stands between every program that calls tools",
        "README.md",
        "dragoman lets any tool-calling program use any model.",
    ),
    (
        "every tool call whole, apart from its neighbours",
        "README.md",
        "complete, separate and with valid arguments, or an error",
    ),
    ("stand in a table made from the run", "README.md", "See which clients we tested"),
    ("what would ask is refused, and the model is told", "README.md", "actions that need approval are denied"),
    ("Without any option and file it says", "run-the-gateway.md", "lists the model servers and keys it found"),
    (
        "responses under way go on to their end, and new",
        "run-the-gateway.md",
        "so that your load balancer has time to notice",
    ),
    (
        "what is left is told so inside its stream",
        "run-the-gateway.md",
        "remaining streams end with an error in the client's protocol",
    ),
    (
        "The same holds for the seals",
        "run-the-gateway.md",
        "The gateway also stores the signatures that Gemini and Anthropic attach",
    ),
    (
        "a target that is asked alone, is asked up to twice",
        "routes-and-fallback.md",
        "is retried up to twice when a retry could help",
    ),
    ("brought upon itself does not", "routes-and-fallback.md", "Responses that break off mid-stream count as failures"),
    ("did without what it need not do", "validate-a-model.md", "the model answered without using an optional feature"),
    ("What such an end leaves undone", "validate-a-model.md", "If the run ends early, unfinished probes are reported"),
    ("that is said and another port is used", "point-a-client-at-the-gateway.md", "Enter that address in your client."),
    (
        "any other words refuse and are told",
        "chat-with-a-model.md",
        "Keys typed before the question appeared do not answer it",
    ),
    ("ways that work: {", "report/table.py", "Tool calling: {tools}. Stream: {stream}."),
    ("Who leaves takes his costs along", "reliability.md", "A client that leaves stops the cost."),
    ("Nobody gets in who was not asked", "reliability.md", "Only invited clients get in."),
    ("a wish of somebody unknown", "agent-safety.md", "You cannot know who is behind a model's call"),
    (
        "tell the older part of the conversation in short",
        "agent/commands.py",
        "summarise the older part of the conversation",
    ),
    ("told in short (", "headless.py", "messages summarised ("),
    (
        "Failures of one kind get ten lines a second; a line",
        "watch-the-gateway.md",
        "at most ten lines a second for one kind of failure",
    ),
    ("Print what points a client at the gateway", "commands/env.py", "Print the settings that connect a client"),
    ("one fix each", "README.md", "what fails, why, and how to fix it"),
    ("2 for wrong usage", "use-it-from-the-shell.md", "2 when the command line is wrong"),
    ("none of asking for tools works", "commands/models.py", "no way of asking for tools works"),
    ("}: next is {", "attempts.py", "; trying {"),
    ("that says something, got", "agent/approval.py", "would allow everything of"),
]


@for_each(("before", "page", "after"), REWRITTEN)
def test_a_sentence_is_rewritten(before: str, page: str, after: str) -> None:
    assert [name for name, text in texts().items() if before in text] == []
    assert any(name.endswith(page) and after in text for name, text in texts().items())

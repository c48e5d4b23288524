"""Stream: print text as it comes, show growing calls, keep what arrived when the line is cut."""

from __future__ import annotations

import dragoman
from dragoman.testing import FakeModel, call, cut


def search(query: str, limit: int = 5) -> list[str]:
    """Search the archive."""
    return []


def watch(client: dragoman.Client, prompt: str) -> tuple[str, list[str]]:
    text = ""
    seen: list[str] = []
    with client.stream("ollama/granite4", prompt, tools=[search]) as stream:
        for event in stream:
            if isinstance(event, dragoman.TextDelta):
                text += event.text
            elif isinstance(event, dragoman.ToolCallDelta):
                for open_call in stream.calls:
                    seen.append(f"{open_call.name} {dict(open_call.partial)} {open_call.is_whole}")
            elif isinstance(event, dragoman.ToolCallEnd):
                seen.append(f"whole {event.call.name} {event.call.values()}")
            elif isinstance(event, dragoman.Failure):
                seen.append(f"failure {event.kind}")
    return text, seen


client = dragoman.Client(retries=0)
with FakeModel(["Let me look.", call("search", query="rivers of Europe", limit=3)], cut("Half an ans")):
    print(watch(client, "find rivers"))
    print(watch(client, "tell me"))
    try:
        with client.stream("ollama/granite4", "x") as stream:
            for piece in stream.text_stream:
                print(piece)
    except dragoman.UsageError as wrong:
        print("usage:", wrong)
with FakeModel(cut("Half an ans")):
    try:
        with client.stream("ollama/granite4", "x") as stream:
            print("".join(stream.text_stream))
    except dragoman.CallFailed as failed:
        print("broke:", failed.failure.kind, repr(failed.reply.text))

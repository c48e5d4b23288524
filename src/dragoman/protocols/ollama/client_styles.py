"""Clients of Ollama that read calls in a form of their own, recognised by their user agent."""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

from dragoman.protocol import ReplyStyle


@final
class ClientStyle(msgspec.Struct, frozen=True):
    """One client.

    Attributes:
        agent: found in its user agent; the groups of the pattern are its version if `before` is given: the first
            version that reads the usual form.
        bare_calls, batch_calls: those of `ReplyStyle`.
    """

    agent: re.Pattern[str]
    before: tuple[int, ...] | None = None
    bare_calls: bool = False
    batch_calls: bool = False


CLIENT_STYLES: Final = (
    # Its reader refuses a call with a key beside `function`.
    ClientStyle(re.compile(r"Zed/(\d+)\.(\d+)"), before=(0, 213), bare_calls=True),
    # Its reader takes the calls of one chunk alone.
    ClientStyle(re.compile(r"^litellm/"), batch_calls=True),
)


def style_for(user_agent: str, style: ReplyStyle) -> ReplyStyle:
    """Return the style of a known client; unchanged for all others."""
    for client in CLIENT_STYLES:
        found = client.agent.search(user_agent)
        if found is not None and (client.before is None or tuple(map(int, found.groups())) < client.before):
            return msgspec.structs.replace(
                style,
                bare_calls=style.bare_calls or client.bare_calls,
                batch_calls=style.batch_calls or client.batch_calls,
            )
    return style

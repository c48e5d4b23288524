"""What a provider is sent of a client's request, by the code that asks it, and what is said of that."""

from __future__ import annotations

import itertools
import json
import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from dragoman.client.exchange import Exchange
from dragoman.client.request.forwarding import ClientHead
from dragoman.config import Config, load_config
from dragoman.errors import DragomanError
from dragoman.events import Deviation, Failure
from dragoman.gateway.request_bodies import whole_characters
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.types import ProtocolName

GEMINI_PATH: Final = "/v1beta/models/m:generateContent"
#: A vendor for each protocol, as the catalogue has it; OpenAI's older protocol is configured.
VENDORS: Final[dict[ProtocolName, str]] = {
    "openai-chat": "openai-chat/gpt-5.5",
    "openai-responses": "openai/gpt-5.5",
    "anthropic-messages": "anthropic/claude-opus-4-8",
    "gemini-generate": "gemini/gemini-3-pro",
    "ollama-chat": "ollama/qwen3",
}
_KEYS: Final = {
    f"{name}_API_KEY": "k"
    for name in (
        "DEEPSEEK",
        "OPENAI",
        "ANTHROPIC",
        "GEMINI",
        "MISTRAL",
        "MOONSHOT",
        "MINIMAX",
        "GROQ",
        "OPENROUTER",
        "XAI",
    )
}
_CHAT_OF_OPENAI: Final = """
[providers.openai-chat]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
dialect = { supports_vendor_fields = true, only_functions = false, max_tokens_field = "max_completion_tokens", \
system_role = "developer", supports_store = true, supports_prompt_cache_key = true, strict_tools = true, \
videos = "none" }
"""


class Sent(NamedTuple):
    """The body for a provider, and what is said; `refused`: why the client gets an error in place of that."""

    body: dict[str, Any]
    deviations: tuple[Deviation, ...] = ()
    refused: str = ""

    def says(self, word: str) -> bool:
        """Whether a deviation's place or words have this."""
        return any(word in said.where or word in said.seen for said in self.deviations)


@cache
def configured() -> Config:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(_CHAT_OF_OPENAI)
        return load_config(file, environ=_KEYS, home=file.parent)


def exchange(client: ProtocolName, body: dict[str, Any] | bytes, target: str) -> tuple[Exchange, tuple[Deviation, ...]]:
    """One request on its way to `provider/model`, and what its reading said.

    Raises:
        DragomanError: it is refused.
    """
    data = whole_characters(body if isinstance(body, bytes) else json.dumps(body).encode())
    parsed = PROTOCOLS[client].parse_request(data, path=GEMINI_PATH if client == "gemini-generate" else "")
    found = resolve(target, configured())
    count = itertools.count(1)
    made = Exchange(
        found, with_defaults(parsed.request, found), new_id=lambda: f"{next(count):024d}", head=ClientHead(client, {})
    )
    return made, parsed.deviations


def asked(client: ProtocolName, body: dict[str, Any] | bytes, target: str) -> Sent:
    """What `provider/model` is sent."""
    try:
        made, said = exchange(client, body, target)
    except DragomanError as problem:
        return Sent({}, refused=str(problem))
    told = made.fail(Failure("connection", "nothing is sent"))
    sent = json.loads(made.outgoing.body)
    if match := re.search(r"models/([^:]*):", made.outgoing.url):
        sent["model"] = match[1]
    return Sent(sent, (*said, *(event for event in told if type(event) is Deviation)))

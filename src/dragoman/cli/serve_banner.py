"""What `dragoman serve` shows somebody at a terminal when it is ready: addresses, models, the lines for a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dragoman.cli.presets import A_KEY, NO_KEY
from dragoman.cli.terminal import Paint, clip
from dragoman.config import Config
from dragoman.types import ProtocolName

#: How a protocol is called, what stands behind the address, and the variables that its vendor's clients read:
#: address, key.
_CLIENTS: Final[dict[ProtocolName, tuple[str, str, str, str]]] = {
    "openai-chat": ("OpenAI", "/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "openai-responses": ("OpenAI", "/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic-messages": ("Anthropic", "", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    "gemini-generate": ("Gemini", "", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
    "ollama-chat": ("Ollama", "", "OLLAMA_HOST", ""),
}
_SHOWN: Final = 6
_WIDTH: Final = 70  # characters of a list of models


def render_banner(
    url: str, protocols: Sequence[ProtocolName], config: Config, models: Sequence[str], paint: Paint
) -> str:
    """Base URLs with the variables that point a vendor's clients there, what clients may ask for, and what comes next.

    Args:
        models: targets that were found.
    """
    rows = dict.fromkeys(_CLIENTS[name] for name in _CLIENTS if name in protocols)
    key = A_KEY if config.server.keys else NO_KEY
    lines = ["", paint("bold", "point a client here")]
    for title, path, variable, secret in rows:
        exports = f"export {variable}={url}{path}" + (f" {secret}={key}" if secret else "")
        lines.append(f"  {title:<11}{exports}")
    lines.append("  others     dragoman env CLIENT       (dragoman apps lists them: Claude Code, Codex, Zed and more)")
    names = _names(config, models)
    if names:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        lines += ["", f"{paint('bold', 'models')}  {clip(', '.join(names[:_SHOWN]), _WIDTH)}{more}"]
    lines += ["", paint("dim", "requests are shown below as they come; Ctrl-C ends the gateway"), ""]
    return "\n".join(lines) + "\n"


def _names(config: Config, models: Sequence[str]) -> list[str]:
    """The names that clients may ask for."""
    return [*("any name" if name == "*" else name for name in config.routes), *models]

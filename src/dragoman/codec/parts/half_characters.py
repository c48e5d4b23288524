"""Characters that a server split: one half of a surrogate pair in one delta, the other half in the next."""

from __future__ import annotations

from dragoman._json import whole_characters


def join_halves(high: str, text: str) -> str:
    """Join a high surrogate and the non-empty text behind it; alone the surrogate becomes U+FFFD."""
    if "\udc00" <= text[0] <= "\udfff":
        return (high + text[0]).encode("utf-16", "surrogatepass").decode("utf-16") + text[1:]
    return "\ufffd" + text


def cut_half(text: str) -> tuple[str, str]:
    """Return text of whole characters, and the half that waits for what follows it, or ""."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return whole_characters(text[: len(text) - len(half)]), half

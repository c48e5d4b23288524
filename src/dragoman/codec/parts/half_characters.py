"""Characters that a server cut in two: half of a surrogate pair in one delta, the other half in the next."""

from __future__ import annotations

from dragoman._json import whole_characters


def join_halves(high: str, text: str) -> str:
    """A high surrogate and what follows it, which is not empty; alone the surrogate becomes U+FFFD."""
    if "\udc00" <= text[0] <= "\udfff":
        return (high + text[0]).encode("utf-16", "surrogatepass").decode("utf-16") + text[1:]
    return "\ufffd" + text


def cut_half(text: str) -> tuple[str, str]:
    """Text of whole characters, and the half that waits for what follows it; "" for none."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return whole_characters(text[: len(text) - len(half)]), half

"""Meaningless text around a call's arguments: fences, and special tokens of a model's own markup."""

from __future__ import annotations

from typing import Final

from dragoman.codec.patterns import rare_pattern

_TOKEN: Final = r"<\|[^|<>]{1,40}+\|>|<｜[^｜<>]{1,40}+｜>|</?s>|\[/?INST\]|</?tool_call>"
_BEFORE: Final = rare_pattern(rf"(?:[\s\ufeff]++|{_TOKEN})*+")
_BEHIND: Final = rare_pattern(rf"(?:[\s\ufeff]++|```|{_TOKEN})*+")
_FENCE: Final = rare_pattern(r"```[\w-]*+[ \t]*+\r?\n")


def is_residue(text: str, place: int = 0) -> bool:
    """Return whether nothing meaningful stands from this place on."""
    return _BEHIND.fullmatch(text, place) is not None


def behind_residue(text: str) -> int:
    """Return the place where something meaningful begins."""
    found = _BEFORE.match(text)
    return found.end() if found is not None else 0


def skip_behind(text: str) -> str:
    """Return the text behind its leading residue."""
    found = _BEHIND.match(text)
    return text[found.end() :] if found is not None else text


def unfenced(text: str) -> str | None:
    """Return the text behind an opening code fence, or None if it begins with none, or has no closing one."""
    opening = _FENCE.match(text)
    if opening is None or text.find("```", opening.end()) < 0:
        return None
    return text[opening.end() :]

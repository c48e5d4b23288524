"""Objects that tell a key twice: cheap looks before each member is read."""

from __future__ import annotations

import re

from dragoman import _json
from dragoman._json import Json

#: Blanks behind the quote of a key. Without them `":` stands once for each key, else only in texts: never too few.
_SPACED = re.compile(r'"[ \t\r\n]++:')


def repeats_key(text: str) -> bool:
    """As `_json.repeats_key`. Most texts have as many members as colons, or as colons behind a quote."""
    colons = text.count(":")
    if colons < 2:
        return False
    value = _json.decode(text)
    if isinstance(value, dict) and len(value) == colons:
        return False
    if _members(value) == text.count('":') and _SPACED.search(text) is None:
        return False
    return _json.repeats_key(text)


def _members(value: Json | _json.Malformed) -> int:
    """The members of all objects in a value, where no object has a key twice."""
    count, unread = 0, [value]
    while unread:
        item = unread.pop()
        if type(item) is dict:
            count += len(item)
            unread += [part for part in item.values() if type(part) is dict or type(part) is list]
        elif type(item) is list:
            unread += [part for part in item if type(part) is dict or type(part) is list]
    return count

"""Arguments of a call that come piece by piece, each with the JSON path of its value.

Vertex AI streams them so on request (`streamFunctionCallArguments`); spec:
https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content#PartialArg (read 2026-11-21).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.parts.settled_arguments import contradicts, told_once
from dragoman.gathered import GatheredText
from dragoman.protocols.gemini.wire import NOTHING, PartialArgument
from dragoman.secret import name_alone

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]*]+)|\[(?P<index>[0-9]{1,9})\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""
)
#: What stands behind a backslash in a key (RFC 9535, section 2.3.1), and what the two are.
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "/": "/", "'": "'", '"': '"'}
_DEEPEST: Final = 100
_PATHS: Final = "the paths of the arguments' pieces contradict each other"
_VALUES: Final = "a piece of the arguments has not one value"
_CONTRADICTION: Final = "its whole arguments contradict their pieces"
_Step: TypeAlias = str | int


class _OpenText(msgspec.Struct, eq=False):
    """An unfinished text: its place, what has come of it, and what an earlier piece had said there."""

    holder: Json
    step: _Step
    earlier: Json | None
    pieces: GatheredText = msgspec.field(default_factory=GatheredText)

    __repr__ = name_alone


class PartialArguments:
    """Joins the pieces of one call. Time is linear in the input, and in the depth of its paths.

    A text that announced more continues with the next piece of its path. A repeated value must be the same.

    Attributes:
        problem: why the pieces make no object; "" while they do.
    """

    __slots__ = ("_open", "_root", "_told", "problem")

    def __init__(self) -> None:
        self._told = ""  # whole arguments, beside the pieces
        self._root: dict[str, Json] = {}
        self._open: dict[str, _OpenText] = {}  # by path
        self.problem = ""

    def tell_whole(self, text: str, *, is_one: bool = True) -> None:
        """Take whole arguments, to which all pieces must amount. `is_one`: they stand there once, or alike."""
        self._told, is_same = told_once((self._told, text))
        if not (is_one and is_same):
            self.problem = self.problem or _CONTRADICTION

    def add(self, piece: PartialArgument) -> None:
        """Take the next piece."""
        if self.problem:
            return
        text = self._open.get(piece.jsonPath)
        others = (piece.numberValue is not NOTHING) + (piece.boolValue is not None) + (piece.nullValue is not NOTHING)
        is_text = piece.stringValue is not None
        if (
            others + is_text > 1
            or (others and text is not None)
            or not (others or is_text or text or piece.willContinue)
        ):
            self.problem = _VALUES
            return
        text = text or self._begin(piece)
        if text is not None:
            text.pieces.add(piece.stringValue or "")
            if not piece.willContinue:
                del self._open[piece.jsonPath]
                self._close(text)

    def announces_more(self) -> bool:
        """Return whether a text continues."""
        return bool(self._open)

    def is_cut(self) -> bool:
        """Return whether more was announced: text that continues, or nothing came at all."""
        return self.announces_more() or not (self._root or self._told)

    def tells_again(self, other: PartialArguments) -> bool:
        """Return whether both have a member of one name, so that they are not pieces of one object."""
        return bool(self._root.keys() & other._root.keys() or (self._told and other._told))

    def text(self) -> str:
        """Return the arguments as JSON text. Nothing more comes: what is open closes, and `problem` is final."""
        for text in self._open.values():
            self._close(text)
        self._open.clear()
        if not self._root:
            return self._told or "{}"
        written = _json.to_text(self._root)
        if contradicts(written, self._told):
            self.problem = self.problem or _CONTRADICTION
        return written

    def _begin(self, piece: PartialArgument) -> _OpenText | None:
        """Take a value that comes whole, or a text that opens."""
        steps = _parse_path(piece.jsonPath)
        if not steps:
            self.problem = "a piece of the arguments has no readable path"
            return None
        holder = self._reach(steps)
        if holder is None:
            self.problem = _PATHS
            return None
        step = steps[-1]
        is_known = step in holder if isinstance(holder, dict) else int(step) < len(holder)
        earlier = holder[step] if is_known else None
        if piece.numberValue is not NOTHING:
            value: Json = Raw(bytes(piece.numberValue))
            if bytes(value)[:1] in (b"[", b"{", b"n"):
                self.problem = _VALUES
                return None
        elif piece.boolValue is not None:
            value = piece.boolValue
        elif piece.nullValue is not NOTHING:
            value = None
        else:
            if not is_known:
                _put(holder, step, "")  # keeps the place among its neighbours
            elif not isinstance(earlier, str):
                self.problem = _PATHS
            text = self._open[piece.jsonPath] = _OpenText(holder, step, earlier)
            return text
        if not is_known:
            _put(holder, step, value)
        elif _json.to_text(earlier) != _json.to_text(value):
            self.problem = _PATHS
        return None

    def _close(self, text: _OpenText) -> None:
        said = text.pieces.text()
        if text.earlier is None:
            text.holder[text.step] = said
        elif said != text.earlier:
            self.problem = self.problem or _PATHS

    def _reach(self, steps: list[_Step]) -> Json | None:
        """Return the object or list of the last step, created if it is missing, or None if that is impossible."""
        holder: Json = self._root
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, str):
                if not isinstance(holder, dict):
                    return None
            elif not isinstance(holder, list) or step > len(holder):
                return None
            if following is None:
                return holder
            missing = step not in holder if isinstance(holder, dict) else step == len(holder)
            if missing:
                _put(holder, step, {} if isinstance(following, str) else [])
            holder = holder[step]
        return None


def _put(holder: Json, step: _Step, value: Json) -> None:
    if isinstance(holder, list) and step == len(holder):
        holder.append(value)
    else:
        holder[step] = value


def _parse_path(path: str) -> list[_Step]:
    """Return the steps of a path: `$.items[0]['a b']` is ["items", 0, "a b"]; [] if it cannot be read."""
    steps: list[_Step] = []
    position = 1
    while path[:1] == "$" and position < len(path) and len(steps) < _DEEPEST:
        found = _STEP.match(path, position)
        if found is None:
            return []
        position = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            key = found["name"] if found["quoted"] is None else _parse_key(found["quoted"][1:-1])
            if key is None:
                return []
            steps.append(key)
    return steps if position == len(path) else []


def _parse_key(quoted: str) -> str | None:
    """Return a path's quoted key, or None if it has an unknown escape, or a lone surrogate."""
    if any(found[2] not in _ESCAPED for found in _ESCAPE.finditer(quoted) if found[2]):
        return None
    key = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else _ESCAPED[found[2]], quoted)
    try:
        return key.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None

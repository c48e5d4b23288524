"""Arguments of a call that come piece by piece, each with the JSON path of the value that it belongs to.

Vertex AI streams them so when asked (`streamFunctionCallArguments`); spec:
https://cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1beta1/Content#PartialArg (read 2026-11-21).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.protocols.gemini.wire import NOTHING, PartialArgument

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>\d{1,9})\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""
)
_ESCAPE: Final = re.compile(r"\\(.)")
_DEEPEST: Final = 100
_Step: TypeAlias = str | int


class PartialArguments:
    """Puts the pieces of one call together. Time is linear in what comes, and in the depth of its paths.

    Attributes:
        problem: why the pieces make no object; "" while they do.
    """

    __slots__ = ("_growing", "_holder", "_path", "_root", "_whole", "problem")

    def __init__(self, whole: Raw) -> None:
        """`whole`: arguments that came at once, before any piece; unset when there are none."""
        self._whole = _json.raw_text(whole)
        value = _json.decode(self._whole) if self._whole else {}
        self._root: dict[str, Json] = value if isinstance(value, dict) else {}
        self._path = ""  # of the text that is growing
        self._holder: tuple[Json, _Step] | None = None  # where it goes
        self._growing: list[str] = []
        self.problem = ""

    def add(self, piece: PartialArgument) -> None:
        """Take the next piece."""
        if self.problem:
            return
        self._whole = ""
        if self._holder is not None and piece.jsonPath == self._path:
            self._growing.append(piece.stringValue or "")
        else:
            self._close_text()
            self._begin(piece)
        if self._holder is not None and not piece.willContinue:
            self._close_text()

    def is_cut(self) -> bool:
        """Whether more was announced: text that goes on, or nothing came at all."""
        return self._holder is not None or not (self._root or self._whole)

    def text(self) -> str:
        """The arguments as JSON text."""
        self._close_text()
        return self._whole or _json.to_text(self._root)

    def _begin(self, piece: PartialArgument) -> None:
        steps = _parse_path(piece.jsonPath)
        if not steps:
            self.problem = "a piece of the arguments has no readable path"
            return
        holder = self._reach(steps)
        if holder is None:
            self.problem = "the paths of the arguments' pieces contradict each other"
            return
        if piece.numberValue is not NOTHING:
            _put(holder, steps[-1], Raw(bytes(piece.numberValue)))
        elif piece.boolValue is not None:
            _put(holder, steps[-1], piece.boolValue)
        elif piece.nullValue is not NOTHING and piece.stringValue is None:
            _put(holder, steps[-1], None)
        else:
            _put(holder, steps[-1], "")  # keeps the place among its neighbours
            self._path, self._holder, self._growing = piece.jsonPath, (holder, steps[-1]), [piece.stringValue or ""]

    def _close_text(self) -> None:
        if self._holder is not None:
            holder, step = self._holder
            holder[step] = "".join(self._growing)
            self._holder = None

    def _reach(self, steps: list[_Step]) -> Json | None:
        """The object or list that holds the last step, made where it is missing; None when that cannot be."""
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
    """`$.items[0]['a b']` → ["items", 0, "a b"]; [] when it cannot be read."""
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
            steps.append(found["name"] if found["quoted"] is None else _ESCAPE.sub(r"\1", found["quoted"][1:-1]))
    return steps if position == len(path) else []

"""The argument text of one tool call while it streams: what may leave, where it ends, what it amounts to. It repairs
nothing.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed
from dragoman.codec.parts.argument_residue import is_residue, skip_behind
from dragoman.codec.parts.brackets import most_closed, split_strings
from dragoman.codec.parts.settled_arguments import Settled, is_plain_object, is_same_value, may_halve
from dragoman.codec.patterns import end_of
from dragoman.gathered import GATHERED, GatheredText

#: Text outside of strings, whole strings included, up to a bracket or a string that is not closed here.
_OUTSIDE: Final = re.compile(r'(?:[^"{}\[\]]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
_INSIDE: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
#: An object without lists and objects in it.
_FLAT: Final = re.compile(r'\{[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+\}', re.DOTALL)
#: What an object that was cut begins with: a brace, and what there is of a key and its colon.
_BEGINNING: Final = re.compile(r'\{\s*+(?:$|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:\\?$|"\s*+(?:$|:)))', re.DOTALL)
_GOES_ON: Final = "something stands behind the closing brace of the arguments"
_PLACEHOLDERS: Final = re.compile(r"(?:(\{\s*+\})\s*+)+(?=\{)")
_MOST_OBJECTS: Final = 64
_AGAIN: Final = "repeated-arguments"
_MOST_LEVELS: Final = 4
_SHORT: Final = 128  # characters that are read bracket by bracket sooner than looked at as a whole
_FEW: Final = 16  # characters that many texts begin with
Phase: TypeAlias = Literal["held", "odd", "live", "closed"]


def without_placeholder(text: str) -> str:
    """Return a whole argument text from its object on: `{}` before it was a placeholder."""
    text = text.lstrip()
    run = _PLACEHOLDERS.match(text)
    return text[run.end() :] if run is not None else text


class ArgumentText(msgspec.Struct, eq=False):
    """Takes the fragments of one call's arguments in order. Time is linear in the text.

    Attributes:
        phase: "held" until a brace with something in it, "odd" if something else came, "closed" after its brace.
        placeholder: `{}` or `null` before the real object, else "".
    """

    phase: Phase = "held"
    placeholder: str = ""
    _pieces: list[str] = []
    _scanned: int = 0  # how many pieces the scanner has read
    _joined: int = 0  # how many of them were many
    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False
    _surplus: GatheredText = msgspec.field(default_factory=GatheredText)
    _restated: Restated | None = None  # while a piece may say again all that came before it, or stand in it
    _level: int = 0  # of such readings around this one

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.phase}>"  # arguments may hold secrets

    def add(self, text: str) -> str:
        """Take the next fragment. Return the text that may leave now, or ""."""
        if self.phase == "live":
            if len(self._pieces) - self._joined > GATHERED:
                self.gather()
            if text[:1] == "{":
                return self._add_again(text)
            if "}" not in text:
                self._pieces.append(text)
                return text
            return self._add_live(text)
        if self._restated is not None:
            self._restated.add(text)
            return ""
        if self.phase == "held":
            return self._add_held(text)
        if self.phase == "odd":
            self._pieces.append(text)
            if len(self._pieces) - self._joined > GATHERED:
                self.gather()
        else:
            self._surplus.add(text)
        return ""

    def add_many(self, texts: list[str], joined: str) -> bool:
        """Take fragments (`joined`: as one text) that leave the object open, or are of a plain one; else False."""
        if self.phase == "held":
            if self._pieces or joined[-1:] != "}" or not texts[0][1:].strip().rstrip("}") or not joined.isascii():
                return False
            if _FLAT.fullmatch(joined) is None or any(text[0] == "{" for text in texts[1:]):
                return False
            self.phase, self._pieces, self._scanned = "closed", [joined], 1
            return True
        if self.phase != "live" or self._may_restate(texts, joined):
            return False
        if len(self._pieces) - self._joined > GATHERED:
            self.gather()
        if "}" not in joined:
            self._pieces.append(joined)
            return True
        if not self._scanned:  # its opening brace tells how deep the rest is
            self._scan(self._pieces[0])
            self._scanned = 1
        if not self._stays_open("".join(self._pieces[self._scanned :]) + joined):
            return False
        self._pieces.append(joined)
        self._scanned = len(self._pieces)
        return True

    def _may_restate(self, texts: list[str], joined: str) -> bool:
        """Return whether a fragment may repeat everything so far: then it begins as the object does."""
        first = self._pieces[0]
        beginning = first[:_SHORT] + (self._pieces[1][:_SHORT] if len(first) < _FEW and len(self._pieces) > 1 else "")
        return beginning in joined and any(text.startswith(beginning) for text in texts)

    def gather(self) -> None:
        """Join many pieces, scanned and unscanned ones separately."""
        pieces, scanned = self._pieces, self._scanned
        if scanned - self._joined >= GATHERED:
            pieces[self._joined : scanned] = ["".join(pieces[self._joined : scanned])]
            self._joined = self._scanned = scanned = self._joined + 1
        start = max(scanned, self._joined)
        if len(pieces) - start >= GATHERED:
            pieces[start:] = ["".join(pieces[start:])]
            self._joined = start + 1

    def live_pieces(self) -> list[str] | None:
        """Return the list that takes fragments without a closing brace, or None while each must be looked at."""
        return self._pieces if self.phase == "live" else None

    def is_blank(self) -> bool:
        """Return whether nothing but white space or `null` has come."""
        return self.phase == "held" and "".join(self._pieces).strip() in ("", "null")

    def is_empty(self) -> bool:
        """Return whether nothing has come, or `{}`, which may be a placeholder."""
        return self.phase == "held" and (self.is_blank() or self.is_whole())

    def is_closed(self) -> bool:
        """Return whether a complete object with something in it has come."""
        return self.phase == "closed" or (self._restated is not None and self._restated.is_closed())

    def is_over(self) -> bool:
        """Return whether a complete object with something in it has come, as it is or encoded in a string."""
        if self.phase != "odd" or self._restated is not None:
            return self.is_closed()
        return self._pieces[0].lstrip()[:1] == '"' and "".join(self._pieces[-2:]).rstrip().endswith('}"')

    def is_started(self) -> bool:
        """Return whether an object is open: text that is neither blank nor complete."""
        return self.phase in ("live", "odd") or (self.phase == "held" and not self.is_whole() and not self.is_blank())

    def is_whole(self) -> bool:
        """Return whether the text so far would be a complete object, `{}` included."""
        return self.is_closed() or (self.phase == "held" and re.fullmatch(r"\s*\{\s*\}\s*", self.raw()) is not None)

    def raw(self) -> str:
        """Return everything that came, without the placeholder."""
        if self._restated is not None:
            return self._restated.joined.raw()
        return "".join(self._pieces) + "".join(self._surplus.pieces)

    def _add_again(self, text: str) -> str:
        """Take a piece that begins with a brace: some servers repeat all arguments so far with each piece."""
        rest = self._unsaid(text)
        if rest is None or not (rest or self._level < _MOST_LEVELS):
            if "}" in text:
                return self._add_live(text)
            self._pieces.append(text)
            return text
        if "".join(self._pieces[-2:]).rstrip()[-1:] in (":", "[", ","):  # it may be a value in the object as well
            self._restated = Restated("".join(self._pieces), text, self._level + 1)
            self.phase = "odd"
            return ""
        return self._add_live(rest) if rest else ""

    def _unsaid(self, text: str) -> str | None:
        """Return the part of a text behind everything so far, if it begins with that, else None."""
        offset = 0
        for piece in self._pieces:
            if not text.startswith(piece, offset):
                return None
            offset += len(piece)
        return text[offset:]

    def choose(self, told: str) -> str:
        """Take the reading that amounts to these whole arguments. Return what of them has left, or "" if none does."""
        restated = self._restated
        if restated is None or not restated.comes_to(told):
            return ""
        self._restated, self.phase, self._pieces = None, "live", [restated.left]
        self._scanned = self._joined = self._depth = 0
        self._in_string = self._escaped = False
        return restated.left

    def _add_held(self, text: str) -> str:
        self._pieces.append(text)
        held = "".join(self._pieces).lstrip()
        if run := _PLACEHOLDERS.match(held):
            self.placeholder, held = run[1], held[run.end() :]
        while True:
            if not held:
                self._pieces.clear()
                return ""
            if held[0] == "{":
                rest = held[1:].lstrip()
                if rest[:1] == "{":  # a lone brace, said again
                    held = rest
                    continue
                if not rest:
                    self._pieces = [held if len(held) < 256 else "{"]  # a flood of white space is not kept
                    return ""
                if rest[0] != "}":
                    break
                after = rest[1:].lstrip()
            elif held.startswith("null"):
                after = held[4:].lstrip()
            elif "null".startswith(held):
                return ""
            else:
                self.phase = "odd"
                return ""
            if not after:
                self._pieces = [held]
                return ""
            if after[0] != "{" and held[0] != "{":
                self.phase = "odd"
                return ""
            if after[0] != "{":
                self.phase = "closed"
                self._pieces, self._surplus = ["{}"], GatheredText([after])
                return "{}"
            self.placeholder = held[: len(held) - len(after)].strip()
            held = after
        self.phase = "live"
        self._pieces = []
        if "}" in held or "]" in held:  # an odd bracket may close it
            return self._add_live(held)
        self._pieces.append(held)
        return held

    def _add_live(self, text: str) -> str:
        before = "".join(self._pieces[self._scanned :])
        whole, end = before + text, -1
        if not self._scanned and whole.find("}") == len(whole) - 1 and _json.is_json(whole):
            end = len(text)  # its only closing brace
        elif not self._scanned and (flat := _FLAT.match(whole)) is not None:
            end = flat.end() - len(before)
        elif len(whole) < _SHORT or not self._stays_open(whole):
            self._scan(before)
            end = self._scan(text)
        if end < 0:
            self._pieces.append(text)
            self._scanned = len(self._pieces)
            return text
        self.phase = "closed"
        self._pieces.append(text[:end])
        self._scanned = len(self._pieces)
        if end < len(text):  # white space too: the object may not end here when it is repaired
            self._surplus.add(text[end:])
        return text[:end]

    def _stays_open(self, text: str) -> bool:
        """Read on if the object is so deep that this text cannot close it; else read nothing."""
        if self._in_string:
            end = end_of(_INSIDE, text, 1 if self._escaped else 0)
            if text[end : end + 1] != '"':  # the string is not closed here
                self._escaped = end < len(text)
                return True
            text = text[end + 1 :]
        bare, left = split_strings(text)
        closed = bare.count("}") + bare.count("]")
        if self._depth <= closed and self._depth <= most_closed(bare):
            return False
        self._depth += bare.count("{") + bare.count("[") - closed
        self._in_string = left is not None
        self._escaped = bool(left)
        return True

    def _scan(self, text: str) -> int:
        """Read on. Return the offset after the closing brace, or -1."""
        size = len(text)
        if not size:
            return -1
        position = 1 if self._escaped else 0
        self._escaped = False
        while True:
            if self._in_string:
                position = end_of(_INSIDE, text, position)
                if position >= size:
                    return -1
                if text[position] == "\\":
                    self._escaped = True
                    return -1
                self._in_string = False
                position += 1
            position = end_of(_OUTSIDE, text, position)
            if position == size:
                return -1
            mark = text[position]
            position += 1
            if mark == '"':
                self._in_string = True
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return position

    def settle(self, *, proven: bool) -> Settled:
        """End the call. `proven`: its block or the response ended well, so empty arguments are not cut ones."""
        if self.phase == "closed" and not self._surplus and is_plain_object(text := "".join(self._pieces)):
            return Settled(text, codes=self._codes())
        return self._settle(proven).told_once()

    def _settle(self, proven: bool) -> Settled:
        if self.phase == "held":
            return self._settle_held(proven)
        if self._restated is not None:
            return self._restated.settle(proven=proven)
        if self.phase == "odd":
            return self._settle_odd()
        text = "".join(self._pieces)
        if self.phase == "live":
            text = self._to_odd_bracket(text)
            if not text:
                return Settled(None, kind="cut", problem="the arguments end before their closing brace")
        value = _json.decode_object(text)
        if isinstance(value, Malformed):
            return Settled(None, kind="unreadable", problem=f"the arguments are not a JSON object: {value.problem}")
        codes = list(self._codes())
        if may_halve(text) and not _json.is_json(text):
            codes.append(("lone-surrogate", ""))
        return self._settle_surplus(text, value, codes)

    def _codes(self) -> tuple[tuple[str, str], ...]:
        return (("placeholder-arguments", self.placeholder),) if self.placeholder else ()

    def _to_odd_bracket(self, text: str) -> str:
        """Return the text up to a bracket that closes the object in place of a brace; "" if the object is open."""
        unread = "".join(self._pieces[self._scanned :])  # text without a brace was not looked at
        end = self._scan(unread)
        return text[: len(text) - len(unread) + end] if end >= 0 else ""

    def _settle_held(self, proven: bool) -> Settled:
        held = self.raw().strip()
        if held == "{" or not proven or (held[:1] != "{" and held not in ("", "null")):
            return Settled(None, kind="cut", problem="the arguments end before they are whole")
        if held[:1] == "{":
            return Settled("{}", delta="{}")
        return Settled("{}", delta="{}", codes=(("missing-arguments", held),))

    def _settle_odd(self) -> Settled:
        text = self.raw().strip()
        value = _json.decode(text)
        if isinstance(value, str):
            inner = value.strip()
            if not inner or inner == "null":
                return Settled("{}", delta="{}", codes=(("missing-arguments", '""'),))
            if not isinstance(_json.decode_object(inner), Malformed):
                return Settled(inner, delta=inner, codes=(("double-encoded-arguments", ""),))
        if text[:1] == '"' and isinstance(value, Malformed):
            return Settled(None, kind="cut", problem="the arguments are a string that is not closed")
        refused = value if isinstance(value, Malformed) else _json.decode_object(text)
        problem = refused.problem if isinstance(refused, Malformed) else "it is held for odd"
        return Settled(None, problem=f"the arguments are not a JSON object: {problem}")

    def _settle_surplus(self, text: str, value: object, codes: list[tuple[str, str]]) -> Settled:
        """Judge what follows the closing brace: residue, the same object, further calls, or text to be kept."""
        surplus = self._surplus.text()
        more: list[str] = []
        objects = [text]
        for _ in range(_MOST_OBJECTS + 1):  # each is read from the text that is left, so their number bounds the time
            rest = skip_behind(surplus)
            if rest[:1] != "{":
                break
            is_glued = not surplus[: len(surplus) - len(rest)].strip()
            further = ArgumentText()
            further.add(rest)
            object_text, surplus = "".join(further._pieces), further._surplus.text()
            if not further.is_whole():
                if is_glued and _BEGINNING.match(rest) is not None:
                    return Settled(text, more=tuple(more), codes=tuple(codes), cut_after=True)
                return Settled(None, problem=_GOES_ON)
            if not object_text.strip("{} \t\r\n"):
                codes.append(("placeholder-arguments", "{}"))
                continue
            objects.append(object_text)
            other = _json.decode_object(object_text)
            if is_same_value(other, value):
                codes.append((_AGAIN, ""))
            elif is_glued and not isinstance(other, Malformed):
                more.append(object_text)
            else:  # behind residue it is the call of another answer, or an example
                return Settled(None, problem=_GOES_ON)
        else:
            return Settled(None, problem=f"more than {_MOST_OBJECTS} objects stand in one call")
        if rest and not (rest[0] == "}" and is_residue(rest, 1)):  # one brace too many is residue
            return Settled(None, problem=_GOES_ON)
        if more:
            codes.append(("concatenated-calls", f"{len(more) + 1} objects"))
        if surplus.strip():
            codes.append(("surplus-arguments", f"{len(surplus.strip())} characters"))
        return Settled(text, more=tuple(more), codes=tuple(codes), objects=tuple(objects))


class Restated:
    """Arguments with two readings until the end: a piece repeats all before it, or is a value in the open object."""

    __slots__ = ("_again", "joined", "left")

    def __init__(self, said: str, text: str, level: int) -> None:
        """Create it. `said`: what came, and has left; `text`: the piece that begins with it."""
        self.left = said
        self.joined = ArgumentText()
        for piece in (said, text[:1], text[1:]):  # in pieces that do not begin with what was said
            self.joined.add(piece)
        self._again = ArgumentText(_level=level)
        self._again.add(text)

    def add(self, text: str) -> None:
        """Take the next fragment."""
        for piece in (text[:1], text[1:]):
            if piece:
                self.joined.add(piece)
        self._again.add(text)

    def is_closed(self) -> bool:
        """Return whether a complete object came, if the piece is a value; otherwise the end tells."""
        return self.joined.is_closed()

    def comes_to(self, told: str) -> bool:
        """Return whether whole arguments equal one of the readings, and continue what has left."""
        return told.startswith(self.left) and told in (self.joined.raw(), self._again.raw())

    def settle(self, *, proven: bool) -> Settled:
        """Return the reading that is one complete object, if exactly one is. Only a good end rules a value out."""
        readings = [text.settle(proven=True) for text in ((self.joined, self._again) if proven else (self.joined,))]
        whole = [one for one in readings if one.text is not None and all(code == _AGAIN for code, _ in one.codes)]
        if len(whole) != 1 or not (whole[0].text or "").startswith(self.left):
            return Settled(None, kind="cut", problem="the arguments end before their closing brace")
        return msgspec.structs.replace(whole[0], delta=(whole[0].text or "")[len(self.left) :])

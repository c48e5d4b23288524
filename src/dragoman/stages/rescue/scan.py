"""Split text into prose and calls: find markers outside code and let the families read what stands behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.code import Code
from dragoman.stages.rescue.cursor import Close, Cursor, Family, Open
from dragoman.stages.rescue.markers import Markers, SeenTags, is_cut, message_openers
from dragoman.stages.rescue.quoted import Cover
from dragoman.stages.rescue.runner import Found, Place, Prose, Runner, say
from dragoman.stages.tool_names import may_be_prefixed

_SLICE: Final = 2048
#: Families that a marker begins, each with its own marker.
_Begun: TypeAlias = list[tuple[Family, str]]
#: A candidate whose name has not come within about so many characters is none.
_MOST_WAITING: Final = 1 << 17
#: Why a call is refused that stands in what cannot be read and does not end.
_SWALLOWED: Final = "it stands in another call that cannot be read and that nothing closes"
_SENTENCE_ENDS: Final = frozenset(".!?…。！？")
#: Characters of a text that no family read on, from its marker on, that are kept to know it again.
_MOST_KNOWN: Final = 64


class Scanner:
    """Scans the text of one part as it comes. `family`: the name of the family that read the last call."""

    __slots__ = (
        "_begun", "_code", "_cover", "_families", "_furthest", "_header", "_hold", "_is_ended", "_is_idle", "_is_torn",
        "_known", "_lost", "_markers", "_named", "_race", "_raw", "_raw_size", "_read", "_said", "_seen", "_tools",
        "_whole", "family",
    )  # fmt: skip

    def __init__(
        self, families: Sequence[Family], markers: Markers, tools: Tools, *, whole: Sequence[Family] = ()
    ) -> None:
        """Create it. `families`, with their `markers`, begin anywhere, or on a line; `whole` are the message."""
        self.family = ""
        self._families = families
        self._markers = markers
        self._whole, self._header = tuple(whole), 0  # of the race's text: what the prompt wrote, or left already
        self._tools = tools
        self._code = Code()
        self._cover: Cover | None = None  # a quoted marker, whose text is none
        self._seen = SeenTags()
        self._hold = ""  # text that may become a marker, or from a marker on, until it is known whether it is in code
        self._is_ended = False
        self._race: list[Runner] = []
        self._raw_size = 0
        self._raw = GatheredText()  # the text that the race reads, until one of it is a call
        self._begun: tuple[str, _Begun] = "", []  # the marker that the race began with, and what it begins
        self._known: dict[str, tuple[_Begun, str]] = {}  # marker → what it began last, and that text was no call
        self._is_torn = False  # a call in tags did not end as it must: what follows may be the rest of a value of it
        self._lost: tuple[str, GatheredText] | None = None  # text in which calls may stand that nobody reads, by family
        self._furthest = 0  # how far families read that found words behind a name
        self._named = tools  # those that the race may name
        self._read = 0  # characters of calls with which the message begins
        self._said = ""  # what of the message was told, though it may be the name of a call: no tool has it
        self._is_idle = False  # nothing waits, no message begins, and no end is looked for

    def is_held(self) -> bool:
        """Return whether the held text is a call only if it is the whole message."""
        return bool(self._race) and self._race[0].family.where == "message"

    def is_in_call(self) -> bool:
        """Return whether a call that has begun is being read."""
        return any(runner.is_in_call() for runner in self._race)

    def passes(self, text: str) -> bool:
        """Return whether a text is prose at first sight; then take it."""
        if not self._is_idle:
            return False
        begins = None if self._is_torn else self._markers.first.search(text)
        if begins is not None and (
            self._markers.openers.search(text, begins.start()) is not None
            or self._hold_from(text, begins.start(), 0) < len(text)
        ):
            return False
        self._code.feed(text)
        return True

    def feed(self, text: str) -> list[Found] | None:
        """Take the next text. Return None if it passes as it is."""
        waited = bool(self._race or self._hold)
        out: list[Found] = []
        self._take(text, out)
        self._is_idle = not (self._race or self._hold or self._whole or self._cover or self._lost)
        if not waited and len(out) == 1 and out[0] == Prose(text):
            return None
        return out

    def end(self, *, is_message: bool) -> list[Found]:
        """End the text. `is_message`: nothing of the answer follows it."""
        out: list[Found] = []
        self._is_ended = True
        while self._race or self._hold:
            if not self._race:
                rest, self._hold, self._whole = self._hold, "", ()
                self._take(rest, out)
                continue
            for runner in self._race:
                runner.cursor.ended = True
            if self.is_held() and not is_message:
                self._note_read()
                self._race.clear()
                rest = self._release_message(out)
            else:
                rest = self._run(out, is_end=True)
            self._take(rest, out)
        if self._lost is not None and (name := self._markers.called(self._lost[1].take()[1:], self._tools.names())):
            out += [Open(name, family=self._lost[0]), Close("", _SWALLOWED)]
        return out

    def _lose(self, *runners: Runner) -> None:
        """Keep the text of a call that may hold others and is read no further: at the end it is told if it does."""
        for runner in runners:
            if text := runner.swallowed(self._raw.text()):
                self._lost = self._lost or (runner.family.name, GatheredText())
                self._lost[1].add(text)
                return

    # ------------------------------------------------------------ prose

    def _take(self, text: str, out: list[Found]) -> None:
        """Take text in slices, so that what is read again after a candidate stays short."""
        waiting = _slices(text)
        while waiting:
            rest = self._step(waiting.pop(), out)
            if rest:
                waiting += _slices(rest)

    def _step(self, text: str, out: list[Found]) -> str:
        """Take a slice. Return what of it (and of a rejected candidate) is to be taken again."""
        if self._race:
            if self._raw:
                self._raw.add(text)
                self._raw_size += len(text)
            for runner in self._race:
                runner.cursor.append(text)
            return self._run(out)
        text, self._hold = self._hold + text, ""
        if self._is_torn:
            self._prose(text, out)
            if self._lost is not None:
                self._lost[1].add(text)
            return ""
        if self._whole:
            return self._try_message(text, out)
        if self._cover is not None:
            return self._pass_covered(self._cover, text, out)
        return self._find(text, out)

    def _try_message(self, text: str, out: list[Found]) -> str:
        """Begin the message, possibly with what must be the whole of it. A name that no tool has is told at once."""
        bare = (self._said + text).lstrip()
        openers = message_openers(self._whole, self._tools.names_at(bare))
        header, said = self._markers.header(bare, self._tools), len(self._said.lstrip())
        if not bare or bare in openers.cut or header is None:
            self._hold = text
            return ""
        if header:
            self._whole = ()
            self._prose(text[: max(len(text) - len(bare), 0)], out)
            return self._begin_race(header + bare, header, self._markers.on_line(header), out, size=len(header) + said)
        begun = openers.begun(bare)
        name = self._tools.first_name(bare) if not begun else ""
        name = name if self._markers.openers.search(name) is None else ""
        if bare == name:
            is_held = may_be_prefixed(name) or self._tools.has(name.rstrip())
            cut = 0 if is_held else self._hold_from(text, 0, 0)
            self._said, self._hold = self._said + text[:cut], text[cut:]
            self._prose(text[:cut], out)
            return ""
        if name:
            begun = openers.begun_behind(name, bare)
        self._whole = ()
        if not begun:
            return text
        self._raw, self._raw_size = GatheredText([self._said, text]), len(self._said + text)
        self._named = self._tools.for_candidate(reads_others=True)
        for family, opener in begun:
            self._start(family, opener, bare[len(opener) :])
        return self._run(out)

    def _find(self, text: str, out: list[Found]) -> str:
        """Pass prose up to the next marker that counts. Return the rest."""
        passed = position = 0
        while (found := self._markers.openers.search(text, position)) is not None:
            self._feed(text[passed : found.start()])
            passed = found.start()
            position = found.start() + 1
            begun = self._markers.begun(found.group(), is_line_start=self._code.is_line_start)
            is_tag = found.group() in self._markers.tags
            if not (begun or is_tag) or self._code.is_block():
                continue
            if text[passed:] in self._markers.partial and not self._is_ended:
                position = passed  # a longer one may come
                break
            quote = self._code.quote() if self._code.is_within() else None
            if quote and not is_tag:
                return self._begin_cover(text, found, quote, out)
            if quote == "":
                end = self._code.end_of_inline(text[passed:], is_ended=self._is_ended)
                if end is None:
                    position = passed
                    break
                if end:
                    position = passed + end
                    continue
            behind = text[found.end() : found.end() + _MOST_KNOWN]
            is_short = is_tag and len(behind) < _MOST_KNOWN and not self._is_ended
            if is_short and is_cut(found.group(), behind) and self._code.is_behind_space():
                position = passed
                break
            if is_tag:
                text, passed, position = self._pass_tag(text, found, out, is_within=bool(quote))
                continue
            run = self._markers.repeated.match(text, passed)
            if run is not None:  # no family begins a call so: the last two of them alone may
                position = text.rfind(run[1], passed, run.end() - len(run[1]))
                continue
            is_known = self._is_known(text[passed : passed + _MOST_KNOWN], found.group(), begun)
            if is_known:
                continue
            if is_known is None:
                position = passed
                break
            if passed:
                say(text[:passed], out)
            return self._begin_race(text[passed:], found.group(), begun, out)
        else:
            position = self._hold_from(text, position, passed)
        self._let_go(text, passed, position, out)
        return ""

    def _begin_race(self, text: str, marker: str, begun: _Begun, out: list[Found], *, size: int = 0) -> str:
        """Let the families that a marker begins read on from it. `size`: of what the prompt has written."""
        self._raw, self._raw_size, self._begun, self._header = GatheredText([text]), len(text), (marker, begun), size
        return self._read_on(out, reads_others=False)

    def _read_on(self, out: list[Found], *, reads_others: bool) -> str:
        """Let the families read from the marker on: calls to offered tools, or to others too."""
        self._furthest, self._named = 0, self._tools.for_candidate(reads_others=reads_others)
        text = self._raw.text()
        for family, opener in self._begun[1]:
            self._start(family, opener, text[len(opener) :])
        return self._run(out)

    def _pass_tag(self, text: str, found: re.Match[str], out: list[Found], *, is_within: bool) -> tuple[str, int, int]:
        """Pass a tag that no call took as text. Return the text that is left, how far it has passed, and that again."""
        told = self._seen.see(found, self._code, self._markers, is_within=is_within)
        self._feed(found.group())
        if not told:
            return text, found.end(), found.end()
        out.append(Prose(text[: found.end()], told))
        return text[found.end() :], 0, 0

    def _let_go(self, text: str, passed: int, cut: int, out: list[Found]) -> None:
        """Pass text up to `cut` as prose, and what follows too if it stands in code; otherwise hold that."""
        self._feed(text[passed:cut])
        if cut < len(text) and (self._is_ended or self._code.is_block()):
            self._feed(text[cut:])
            cut = len(text)
        self._hold = text[cut:]
        if cut:
            say(text[:cut], out)

    def _begin_cover(self, text: str, marker: re.Match[str], quote: str, out: list[Found]) -> str:
        """Pass a quoted marker as text, with everything up to its end."""
        self._cover = Cover(marker.group(), quote)
        self._code.feed(marker.group())
        out.append(Prose(text[: marker.end()]))
        return text[marker.end() :]

    def _pass_covered(self, cover: Cover, text: str, out: list[Found]) -> str:
        end = cover.end(text)
        passed = text if end < 0 else text[:end]
        self._prose(passed, out)
        if end >= 0:
            self._cover = None
            self._code.set_quote(cover.still_open)
        return text[len(passed) :]

    def _hold_from(self, text: str, start: int, passed: int) -> int:
        """Return where, from `start` on, text begins that may become a marker. `passed`: where new text begins."""
        start = max(start, len(text) - self._markers.longest + 1)
        while (found := self._markers.first.search(text, start)) is not None:
            rest = text[found.start() :]
            if rest in self._markers.partial and (
                rest not in self._markers.partial_on_line or self._is_line_start(text, passed, found.start())
            ):
                return found.start()
            start = found.start() + 1
        return len(text)

    def _is_line_start(self, text: str, passed: int, place: int) -> bool:
        """Return whether only white space stands before a place, on its line."""
        line_end = text.rfind("\n", passed, place)
        if line_end >= 0:
            return not text[line_end:place].strip()
        return not text[passed:place].strip() and self._code.is_line_start()

    def _prose(self, text: str, out: list[Found]) -> None:
        if text:
            self._feed(text)
            say(text, out)

    def _feed(self, text: str) -> None:
        """Take text outside of calls: code may begin or end in it."""
        self._code.feed(text)

    # ------------------------------------------------------------ candidates

    def _is_known(self, text: str, marker: str, begun: _Begun) -> bool | None:
        """Return whether no family reads on, as for the same beginning last time; None while too little of it has
        come.
        """
        known = self._known.get(marker)
        if known is None or known[0] != begun:
            return False
        if text.startswith(known[1]):
            return True
        return None if known[1].startswith(text) and not self._is_ended else False

    def _start(self, family: Family, opener: str, rest: str) -> None:
        is_item = self._code.is_item_start()
        word = self._code.last_word()
        place = Place(self._seen.doubt(family), is_item, word != "", word != "" and word[-1] not in _SENTENCE_ENDS)
        self._race.append(Runner(family, opener, Cursor(rest), self._named, self._markers, place))

    def _run(self, out: list[Found], *, is_end: bool = False) -> str:
        """Let the families read what has come. Return the text that is left if none reads on."""
        is_message = self.is_held()
        reading = [runner for runner in self._race if runner.is_over or runner.run()]
        if len(reading) < len(self._race):
            ends = [runner.begun_at + len(runner.opener) for runner in self._race if runner not in reading]
            self._furthest = max(self._furthest, *ends)
        self._race = reading
        if is_message:
            return self._run_message(out, is_end=is_end)
        winner = next((runner for runner in self._race if runner.opened), None) or self._failed(is_end=is_end)
        if winner is None:
            if is_end or self._raw_size > _MOST_WAITING:
                self._race.clear()
            return "" if self._race else self._unread(out, is_end=is_end)
        self._race = [winner]
        self._raw.clear()
        self._code.skip_call()
        if winner.has_call:
            self._seen.moved.clear()
            self.family = winner.family.name
        if (found := winner.found.take()) and type(found[0]) is Prose:  # a call to another tool
            found[0] = Prose(found[0].text[self._header :], is_call=True)
        self._header = 0 if found else self._header
        out += found
        if not winner.is_over:
            return ""
        self._lose(winner)
        self._race = []
        self._is_torn = winner.is_torn
        self._code.end_call(winner.cursor.marker)
        return winner.cursor.rest()

    def _unread(self, out: list[Found], *, is_end: bool) -> str:
        """Take a candidate that no family reads: a call to a tool that was not offered, or no call at all."""
        if self._named.lacks_one and self._raw_size <= _MOST_WAITING:
            return self._read_on(out, reads_others=True)
        if not is_end and self._raw_size <= _MOST_KNOWN:
            marker, begun = self._begun
            self._known[marker] = begun, self._raw.text()
        text = self._raw.take()  # the marker's first character is prose, the rest is looked at again
        if self._header:
            return text[self._header :]
        self._prose(text[:1], out)
        return text[1:]

    def _failed(self, *, is_end: bool) -> Runner | None:
        """Return the runner of a begun call that no family can read: it is reported as failed."""
        is_over = is_end or self._raw_size > _MOST_WAITING
        begun = [runner for runner in self._race if runner.is_begun]
        if not begun or not (is_over or len(begun) == len(self._race)):
            return None
        runner = max(begun, key=lambda one: one.begun_at + len(one.opener))
        if runner.begun_at + len(runner.opener) < self._furthest:  # who read further found words there
            self._race.clear()
            return None
        runner.fail()
        runner.run()
        return runner

    def _run_message(self, out: list[Found], *, is_end: bool) -> str:
        """Run whole-message families: nothing but white space may follow, and only the end decides."""
        reading = [one for one in self._race if not (one.is_spoilt or (one.is_over and one.cursor.rest().strip()))]
        if is_end:
            self._lose(*self._race)
        if len(reading) < len(self._race) or is_end:
            self._note_read()
        self._race = reading
        if is_end:
            whole = [runner for runner in self._race if runner.is_over and runner.fits()]
            self._race = []
            if whole:
                self.family = whole[0].family.name
                out += whole[0].found.take()
                return ""
        if len(self._race) == 1:
            self._tell(self._race[0], out)
        return "" if self._race else self._release_message(out)

    def _tell(self, runner: Runner, out: list[Found]) -> None:
        """Tell calls to other tools with which the message begins: they stay text."""
        if runner.has_call or not runner.found.take():
            return
        left = runner.cursor.passed() + runner.cursor.rest()
        text = self._raw.take()
        self._pass_call(text[len(self._said) : len(text) - len(left)], out)
        self._read = max(self._read - len(text) + len(left), 0)
        self._raw, self._raw_size, self._said = GatheredText([left]), len(left), ""

    def _note_read(self) -> None:
        """Note how far the message holds calls: if it is none, what their values hold is no call either."""
        ends = [self._raw_size - len(runner.cursor.rest()) for runner in self._race if runner.opened]
        self._read = max(self._read, *ends, 0)

    def _release_message(self, out: list[Found]) -> str:
        """Reject the whole message: its calls stay text, the rest is looked at again."""
        text, begin = self._raw.take(), len(self._said)
        end = max(self._read, begin)
        if end > begin:
            self._pass_call(text[begin:end], out)
        return text[end:]

    def _pass_call(self, text: str, out: list[Found]) -> None:
        """Pass a call as text. Its indentation tells whether it stands in code, and so what follows."""
        self._feed(text[: len(text) - len(text.lstrip())])
        self._code.skip_call()
        out.append(Prose(text, is_call=True))


def _slices(text: str) -> list[str]:
    """Return a text in pieces of at most `_SLICE` characters, the last one first."""
    if len(text) <= _SLICE:
        return [text] if text else []
    return [text[start : start + _SLICE] for start in range(0, len(text), _SLICE)][::-1]

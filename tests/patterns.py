"""Every regular expression of the package, found in the syntax trees, and what of it may take more than linear time.

`faults` walks the parsed pattern. A repeat without a bound is a fault where the engine may give characters back that
something behind it takes as well, and fail afterwards (quadratic; exponential in a loop), and, in a pattern that is
searched for, where a failed try may begin anew at each character that the repeat has just passed.
"""

from __future__ import annotations

import ast
import importlib
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import dragoman

ROOT = Path(dragoman.__file__).parent
_CALLS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
#: Where a match may begin anywhere.
_SEARCHES = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
_AT_ONE_PLACE = frozenset({"match", "fullmatch"})
#: What stands in each file that has a pattern, or matches one of another file.
_MAY = re.compile(r"\bre\.[a-z]|\b(?:import|from) re\b|fullmatch|rare_pattern")
#: A repeat of at most so many is a constant.
_FEW = 128
_ALPHABET = [*map(chr, range(0x180)), *"\u2018\u2019\u201c\u201d\u201e\u2028\u300c\u4e00\ud800\ufeff"]
_EVERYTHING = frozenset(_ALPHABET)
_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)


class Found(NamedTuple):
    """A pattern of the package. `text`: None when it is made while the program runs; `is_whole`: it must take all of a
    text, so it may fail at its end."""

    place: str  # "stages/tool_names.py _SUFFIX"
    text: str | bytes | None
    flags: int
    is_searched: bool
    is_whole: bool


@cache
def patterns() -> tuple[Found, ...]:
    """All of them."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    files = {path: list(ast.walk(ast.parse(text))) for path, text in texts.items() if _MAY.search(text)}
    whole = {path: set(_matched_whole(nodes)) for path, nodes in files.items()}
    anywhere = {name for names in whole.values() for name in names if name[:1] != "_"}
    found = []
    for path, nodes in files.items():
        if calls := [node for node in nodes if isinstance(node, ast.Call) and node.args and _method(node)]:
            names = _names_of(nodes)
            found += [_found(path, nodes, node, names, anywhere | whole[path]) for node in calls]
        relative = path.relative_to(ROOT).as_posix()
        found += [Found(f"{relative} {way}", None, 0, is_searched=True, is_whole=True) for way in out_of_sight(nodes)]
    return tuple(found)


def out_of_sight(nodes: list[ast.AST]) -> Iterator[str]:
    """The ways in which a file makes patterns that no call of `re` by its name shows: they cannot be judged."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call) and node.args}
    named = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        match node:
            case ast.ImportFrom(module="re"):
                yield ast.unparse(node)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (ast.unparse(node) for name in names if name.asname and name.name in ("re", "rare_pattern"))
            case ast.Attribute(ast.Name("re"), method) if method in _CALLS and id(node) not in called:
                yield ast.unparse(node)
            case ast.Name("re", ast.Load()) if id(node) not in named:
                yield f"re as a value, line {node.lineno}"
            case ast.Name("rare_pattern", ast.Load()) if id(node) not in called:
                yield "rare_pattern"


def _matched_whole(nodes: list[ast.AST]) -> Iterator[str]:
    """The names of what `fullmatch` is asked of."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr == "fullmatch":
            names = [inner for inner in ast.walk(node.value) if isinstance(inner, ast.Name | ast.Attribute)]
            yield from (inner.id if isinstance(inner, ast.Name) else inner.attr for inner in names)


def _method(call: ast.Call) -> str:
    """What of `re` a call asks for; "" for anything else."""
    match call.func:
        case ast.Name("rare_pattern"):
            return "compile"
        case ast.Attribute(ast.Name("re"), method) if method in _CALLS:
            return method
    return ""


def _names_of(nodes: list[ast.AST]) -> dict[int, str]:
    """The assigned name, by the number of each call in what is assigned."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Call):
                    found[id(inner)] = target.id if isinstance(target, ast.Name) else ast.unparse(target)
    return found


def _found(path: Path, nodes: list[ast.AST], node: Any, names: dict[int, str], whole: set[str]) -> Found:
    relative = path.relative_to(ROOT)
    name, method = names.get(id(node), ""), _method(node)
    module = importlib.import_module(".".join(("dragoman", *relative.with_suffix("").parts)).removesuffix(".__init__"))
    flags_node = node.args[1] if method == "compile" and len(node.args) > 1 else None
    try:
        text = eval(compile(ast.Expression(node.args[0]), "pattern", "eval"), vars(module))
        flags = int(eval(compile(ast.Expression(flags_node), "flags", "eval"), vars(module))) if flags_node else 0
    except NameError:
        text, flags = None, 0
    is_searched = method in _SEARCHES or (method == "compile" and _is_searched(nodes, name))
    label = name if method == "compile" and name else ast.unparse(node.args[0])
    is_whole = method == "fullmatch" or (method == "compile" and (name in whole or not name))
    return Found(f"{relative.as_posix()} {label}", text, flags, is_searched, is_whole)


def _is_searched(nodes: list[ast.AST], name: str) -> bool:
    """Whether a pattern is used otherwise than to match where it stands. `Cursor.word` matches, too."""
    uses = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id == name and type(node.ctx) is ast.Load}
    matched: set[int] = set()
    for node in nodes if uses else ():
        if isinstance(node, ast.Attribute) and node.attr in _AT_ONE_PLACE:
            matched |= {id(inner) for inner in ast.walk(node.value)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "word":
            matched |= set(map(id, node.args))
    return not uses or not uses <= matched


# ---------------------------------------------------------------- what is ambiguous


def faults(text: str | bytes, flags: int, *, is_searched: bool, is_whole: bool = False) -> list[str]:
    """What may take more than linear time, in words."""
    tree = parser.parse(text, flags)
    judge = _Judge(tree.state)
    end = [(op.AT, op.AT_END_STRING)] if is_whole else []
    judge.walk([*tree, *end], [], [], is_searched=is_searched)
    return list(dict.fromkeys(judge.found))


def _has_group(items: Any) -> bool:
    """Whether something in these items is captured."""
    if isinstance(items, tuple) and items and items[0] is op.SUBPATTERN and items[1][0] is not None:
        return True
    return isinstance(items, list | tuple | parser.SubPattern) and any(map(_has_group, items))


class _Judge:
    def __init__(self, state: Any) -> None:
        self._state = state
        self.found: list[str] = []

    def walk(self, items: list[Any], before: list[Any], behind: list[Any], *, is_searched: bool) -> None:
        """`before`: what was read since the pattern began; `behind`: what may follow these items."""
        for number, item in enumerate(items):
            rest = items[number + 1 :] + behind
            kind, value = item
            if kind in _REPEATS:
                self._repeat(item, before, rest, is_searched=is_searched)
            elif kind is op.SUBPATTERN:
                self.walk(list(value[3]), before, rest, is_searched=is_searched)
            elif kind is op.ATOMIC_GROUP:
                self.walk(list(value), before, [], is_searched=is_searched)
            elif kind is op.BRANCH:
                for branch in value[1]:
                    self.walk(list(branch), before, rest, is_searched=is_searched)
            elif kind in (op.ASSERT, op.ASSERT_NOT) and value[0] > 0:
                self.walk(list(value[1]), before, [], is_searched=is_searched)
            before = [*before, item]

    def _repeat(self, item: Any, before: list[Any], rest: list[Any], *, is_searched: bool) -> None:
        kind, (least, most, body) = item
        is_atomic = kind is op.POSSESSIVE_REPEAT
        if is_atomic and _has_group(body):
            self.found.append("a group in a possessive repeat: Python 3.11 loses it with a SystemError")
        is_endless = most is op.MAXREPEAT or most > _FEW
        can_fail = self._can_fail(rest)
        if is_endless and (can_fail or least > _FEW):
            passed = self.characters(item)
            if can_fail and not is_atomic and (other := self._overlapping(passed, rest)):
                self.found.append(f"{_words(item)} and {other} take the same characters")
            if is_searched and not self._is_guarded(passed, before):
                self.found.append(f"each character that {_words(item)} passes may begin a match")
        again = [(op.MAX_REPEAT, (0, most, body))] if is_endless and not is_atomic else []
        if again:
            for branches in [value[1] for found, value in body if found is op.BRANCH]:
                firsts = [self.first(list(option)) for option in branches]
                alike = any(one & other for place, one in enumerate(firsts) for other in firsts[:place])
                if alike and self._can_fail(rest):
                    self.found.append("the options of a loop begin alike")
        self.walk(list(body), before, [] if is_atomic else [*again, *rest], is_searched=is_searched)

    def _overlapping(self, passed: frozenset[str], rest: list[Any]) -> str:
        """What behind a repeat takes its characters and may fail then; "" for nothing."""
        for number, item in enumerate(rest):
            begins = passed & self.first([item])
            for repeat in self._endless(item) if begins else ():
                if passed & self.characters(repeat) and self._can_fail(rest[number + 1 :]):
                    return _words(repeat)
            if self._needs(item) and not begins:
                return ""
        return ""

    def _is_guarded(self, passed: frozenset[str], before: list[Any]) -> bool:
        """Whether something that the repeat does not pass must stand before it."""
        for kind, value in before:
            if kind is op.AT and value in (op.AT_BEGINNING_STRING, op.AT_BEGINNING, op.AT_BEGINNING_LINE):
                return True
            if kind is op.AT and value is op.AT_BOUNDARY and passed <= self.characters(_WORD):
                return True
            if kind is op.ASSERT_NOT and value[0] < 0 and passed <= self.first(list(value[1])):
                return True
            if self._needs((kind, value)) and not passed & self.first([(kind, value)]):
                return True
        return False

    def _endless(self, item: Any) -> Iterator[Any]:
        """The repeats without a bound in an item."""
        kind, value = item
        if kind in _REPEATS:
            if value[1] is op.MAXREPEAT or value[1] > _FEW:
                yield item
            for inner in value[2]:
                yield from self._endless(inner)
        for inner in _inner(item):
            yield from self._endless(inner)

    def _needs(self, item: Any) -> bool:
        """Whether at least one character must stand there."""
        kind, value = item
        if kind in _REPEATS:
            return bool(value[0] > 0 and any(map(self._needs, value[2])))
        if kind is op.SUBPATTERN:
            return any(map(self._needs, value[3]))
        if kind is op.ATOMIC_GROUP:
            return any(map(self._needs, value))
        if kind is op.BRANCH:
            return all(any(map(self._needs, branch)) for branch in value[1])
        return kind not in (op.AT, op.ASSERT, op.ASSERT_NOT, op.GROUPREF)

    def _can_fail(self, rest: list[Any]) -> bool:
        return any(self._needs(item) or item[0] in (op.AT, op.ASSERT, op.ASSERT_NOT, op.GROUPREF) for item in rest)

    def first(self, items: list[Any]) -> frozenset[str]:
        """The characters with which a sequence may begin."""
        found: frozenset[str] = frozenset()
        for item in items:
            kind, value = item
            if kind in _REPEATS:
                found |= self.first(list(value[2]))
            elif kind is op.SUBPATTERN:
                found |= self.first(list(value[3]))
            elif kind is op.ATOMIC_GROUP:
                found |= self.first(list(value))
            elif kind is op.BRANCH:
                found |= frozenset().union(*(self.first(list(branch)) for branch in value[1]))
            elif kind not in (op.AT, op.ASSERT, op.ASSERT_NOT):
                found |= self.characters(item)
            if self._needs(item):
                return found
        return found

    def characters(self, item: Any) -> frozenset[str]:
        """All characters that an item may take."""
        kind, value = item
        if kind in _REPEATS:
            return frozenset().union(*(self.characters(inner) for inner in value[2]))
        if kind in (op.SUBPATTERN, op.ATOMIC_GROUP, op.BRANCH):
            return frozenset().union(*(self.characters(inner) for inner in _inner(item)))
        if kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
            return frozenset()
        if kind is op.GROUPREF:
            return _EVERYTHING
        single = parser.SubPattern(self._state, [item])
        if isinstance(self._state.str, bytes):
            made = compiler.compile(single, 0)
            return frozenset(char for char in _ALPHABET if ord(char) < 256 and made.fullmatch(bytes([ord(char)])))
        made = compiler.compile(single, 0)
        return frozenset(char for char in _ALPHABET if made.fullmatch(char))


_WORD = (op.IN, [(op.CATEGORY, op.CATEGORY_WORD)])


def _inner(item: Any) -> list[Any]:
    kind, value = item
    if kind is op.SUBPATTERN:
        return list(value[3])
    if kind is op.ATOMIC_GROUP:
        return list(value)
    return [inner for branch in value[1] for inner in branch] if kind is op.BRANCH else []


def _words(item: Any) -> str:
    _, (least, most, body) = item
    return f"the repeat {str(list(body)).lower():.70}{{{least},{'' if most is op.MAXREPEAT else most}}}"

"""The variable parts of a probe: made-up words, places, people, numbers, long texts, all from one random generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

_CITIES: Final = (
    "Bergen", "Porto", "Nairobi", "Kyoto", "Quito", "Tallinn", "Geneva", "Dakar", "Hobart", "Oslo", "Lima", "Cusco",
    "Riga", "Tunis", "Zagreb", "Bilbao", "Leeds", "Denver", "Havana", "Jakarta", "Krakow", "Lyon", "Mumbai", "Naples",
    "Ottawa", "Prague", "Rotterdam", "Seville", "Toronto", "Utrecht", "Valencia", "Warsaw", "Yerevan", "Antwerp",
    "Bogota", "Cardiff", "Dresden", "Edmonton", "Florence", "Glasgow",
)  # fmt: skip
_PEOPLE: Final = (
    "Ada", "Boris", "Carmen", "Dmitri", "Elena", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kira", "Lars", "Mona",
    "Nils", "Olga", "Pablo", "Rosa", "Selim", "Tara", "Ulrik", "Vera", "Wanda", "Yusuf", "Zoe",
)  # fmt: skip
_SURNAMES: Final = (
    "Abbott", "Berg", "Castro", "Dahl", "Ek", "Ferrari", "Gruber", "Holm", "Ito", "Jansen", "Kovac", "Lindt", "Moreau",
    "Novak", "Okafor", "Petrov", "Quint", "Rossi", "Silva", "Tanaka", "Ueda", "Varga", "Weber", "Young",
)  # fmt: skip
#: Common words, one token each in most vocabularies, so that our estimate of a filler's tokens is near.
_COMMON: Final = (
    "the", "river", "was", "calm", "and", "old", "people", "walked", "along", "with", "their", "children", "while",
    "many", "small", "boats", "came", "from", "other", "towns", "to", "sell", "bread", "or", "fish", "at", "market",
    "where", "music", "played", "every", "morning", "before", "work", "started", "again", "after", "long", "winter",
    "days", "that", "seemed", "never", "over", "for", "anyone", "who", "lived", "near", "water", "under", "high",
)  # fmt: skip
_CODE_LETTERS: Final = "ABCDEFGHJKLMNPRSTUVWXYZ23456789"
_BYTES_PER_TOKEN: Final = 4


def vary(kinds: Mapping[str, Any], *, random: Random, context: int, claimed: int) -> dict[str, Any]:
    """Return a value for each name. Two names never get the same word, place or person.

    Args:
        kinds: name → kind, in order: "word", "city", "person", or a table with one of `number = [least, most]`, `pick =
            […]`, `code = letters`, `sum | product | difference = [names or numbers]`, `lines = count` (with `of`),
            `filler = tokens`, `haystack = share of the window` (with `facts`, and `at` in per cent).
        random: gives the same values for the same seed.
        context, claimed: windows in tokens.
    """
    values: dict[str, Any] = {}
    for name, kind in kinds.items():
        make = _SIMPLE.get(kind) if isinstance(kind, str) else None
        if make is not None:
            value: Any = make(random)
            while value in values.values():
                value = make(random)
        else:
            value = _made(kind, values, random=random, context=context, claimed=claimed)
        values[name] = value
    return values


def _word(random: Random) -> str:
    """Return a pronounceable word that does not exist."""
    return "".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(3)) + random.choice("nrsl")


def _person(random: Random) -> str:
    return f"{random.choice(_PEOPLE)} {random.choice(_SURNAMES)}"


_SIMPLE: Final[dict[str, Callable[[Random], str]]] = {
    "word": _word,
    "city": lambda random: random.choice(_CITIES),
    "person": _person,
}


def _made(kind: Mapping[str, Any], values: Mapping[str, Any], *, random: Random, context: int, claimed: int) -> Any:
    match kind:
        case {"number": [least, most]}:
            return random.randint(least, most)
        case {"pick": choices}:
            return random.choice(choices)
        case {"code": length}:
            return "".join(random.choice(_CODE_LETTERS) for _ in range(length))
        case {"sum": [a, b]}:
            return values.get(a, a) + values.get(b, b)
        case {"product": [a, b]}:
            return values.get(a, a) * values.get(b, b)
        case {"difference": [a, b]}:
            return values.get(a, a) - values.get(b, b)
        case {"lines": count, "of": word}:
            return "\n".join(f"{values[word]}-{number:03}" for number in range(1, count + 1))
        case {"filler": tokens}:
            return filler(random, tokens=tokens)
        case {"haystack": share}:
            window = claimed if share > 1 else context
            facts = [_replaced(fact, values) for fact in kind.get("facts", ())]
            return _haystack(random, tokens=int(window * share), facts=facts, at=kind.get("at", ()))
        case _:
            raise AssertionError(f"not a kind of value: {kind!r}")


def filler(random: Random, *, tokens: int) -> str:
    """Return meaningless sentences of about that many tokens."""
    sentences, size = [], 0
    while size < tokens * _BYTES_PER_TOKEN:
        sentence = " ".join(random.choices(_COMMON, k=random.randint(8, 14))).capitalize() + "."
        sentences.append(sentence)
        size += len(sentence) + 1
    return " ".join(sentences)


def _haystack(random: Random, *, tokens: int, facts: Sequence[str], at: Sequence[int]) -> str:
    """Return a filler with each fact at its place, in per cent of the whole."""
    sentences = filler(random, tokens=tokens).split(". ")
    for place, fact in sorted(zip(at, facts, strict=True), reverse=True):
        sentences.insert(len(sentences) * place // 100, fact.removesuffix("."))
    return ". ".join(sentences)


def _replaced(text: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text

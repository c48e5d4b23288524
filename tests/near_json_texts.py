"""Arguments that are almost JSON, each with what was meant. Random, the same for the same seed.

A `Written` says what a writer meant and what of the ways to write it wrong it took. `meant` is None where the text has
no reading or more than one: then it must be refused.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

WORDS = [
    "ls",
    "-la",
    "make test",
    "a/b.py",
    "naïve",
    "it",
    "x=1",
    "東京",
    "🌍",
    "{a}",
    "[1]",
    "; rm",
    "a: b",
    "# no",
    "//x",
]
BARE = {"null": "None", "true": "True", "false": "False"}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "note": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "force": {"type": "boolean"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "box": {"type": "object", "properties": {"width": {"type": "integer"}, "label": {"type": "string"}}},
        "edits": {"type": "array", "items": {"type": "object", "properties": {
            "old": {"type": "string"}, "new": {"type": "string"}}, "required": ["old", "new"]}},
        "limit": {"type": ["integer", "null"]},
        "extra": {},
    },
}  # fmt: skip
KEYS = list(SCHEMA["properties"])

#: Ways to write it wrong, outside of strings and inside.
CLASSES = ("single quotes", "typographic quotes", "bare keys", "python literals", "comments", "trailing comma",
           "doubled comma", "missing comma", "numbers", "sets", "raw controls", "backslash before a line end",
           "bad escapes", "inner quotes", "apostrophes", "list in a string", "python in a string", "comma in a string",
           "controls in a string", "coerced", "fence", "special tokens", "double encoding", "extra brace",
           "said twice", "tuples")  # fmt: skip
IN_STRINGS = ("list in a string", "python in a string", "comma in a string", "controls in a string")
#: Slips that leave no reading, or two.
SLIPS = ("words behind a text", "semicolon", "bracket behind a text", "words and a quote behind a text",
         "open quotation", "cut", "words around", "member behind the end", "required is missing",
         "value behind a text")  # fmt: skip


class Written(NamedTuple):
    classes: tuple[str, ...]
    schema: dict[str, Any]
    text: str
    meant: dict[str, Any] | None


class Writer:
    """Writes one object with some defects."""

    def __init__(self, dice: random.Random, classes: set[str]) -> None:
        self.dice = dice
        self.classes = classes
        self.done: set[str] = set()
        self.slip = ""

    def use(self, name: str, chance: float = 0.6) -> bool:
        """Whether to do it wrong here: always at the first chance."""
        if name in self.classes and (name not in self.done or self.dice.random() < chance):
            self.done.add(name)
            return True
        return False

    # ------------------------------------------------------------ values

    def string_value(self) -> str:
        return " ".join(self.dice.choices(WORDS, k=self.dice.randrange(1, 4)))

    def value(self, key: str) -> Any:
        dice = self.dice
        match key:
            case "command" | "note" | "old" | "new" | "label":
                return self.string_value()
            case "count" | "width":
                return dice.choice([0, 7, -12, 300, 12345678901234567890])
            case "ratio":
                return dice.choice([0.5, -2.25, 3.0, 17])
            case "force":
                return dice.random() < 0.5
            case "unit":
                return dice.choice(["celsius", "fahrenheit"])
            case "tags":
                return [self.string_value() for _ in range(dice.randrange(0, 4))]
            case "sizes":
                return [dice.randrange(-5, 900) for _ in range(dice.randrange(0, 4))]
            case "box":
                return {"width": self.value("width"), "label": self.value("label")}
            case "edits":
                return [{"old": self.value("old"), "new": self.value("new")} for _ in range(dice.randrange(0, 3))]
            case "limit":
                return dice.choice([None, 5])
        return dice.choice([None, True, "7", 1.5, ["a", {"b": None}], {"q": "x, y"}, self.string_value()])

    # ------------------------------------------------------------ text

    def space(self) -> str:
        if self.use("comments", 0.15):
            words = self.dice.choice(['said "so"', "plain", "it's, {a: 1}", '"note": 5,'])
            return self.dice.choice([f" // {words}\n", f" # {words}\n", f" /* {words} */ "])
        return self.dice.choice(["", "", " ", "\n  "])

    def write(self, value: Any, key: str = "") -> str:
        if isinstance(value, str):
            return self.write_string(value, is_free=key != "unit")
        if isinstance(value, bool) or value is None:
            plain = json.dumps(value)
            return BARE[plain] if self.use("python literals") else plain
        if isinstance(value, int | float):
            return self.write_number(value)
        if isinstance(value, list):
            return self.write_list(value, key)
        return self.write_object(value)

    def write_number(self, value: float) -> str:
        if isinstance(value, int) and self.use("numbers"):
            sign, size = ("-" if value < 0 else ""), abs(value)
            return self.dice.choice([f"{sign}0x{size:X}", f"{sign}0{size}", f"{sign}00{size}", f"{sign or '+'}{size}"])
        return json.dumps(value)

    def write_list(self, items: list[Any], key: str) -> str:
        if key in ("tags", "sizes", "edits") and items:
            for name in IN_STRINGS:
                if self.use(name):
                    return self.write_in_string(items, name)
        if key in ("tags", "sizes") and len(items) == 1 and self.use("coerced") and not str(items[0]).startswith("["):
            return self.write(items[0])
        texts = [self.write(item) for item in items]
        if items and key in ("tags", "sizes") and self.use("sets"):
            return "{" + self.join(texts, is_list=True) + "}"
        if len(items) > 1 and key in ("tags", "sizes") and self.use("tuples"):
            return "(" + self.join(texts, is_list=True) + ")"
        return "[" + self.join(texts, is_list=True) + "]"

    def write_in_string(self, items: list[Any], name: str) -> str:
        if name == "python in a string":
            inner = repr(items)
        elif name == "comma in a string":
            inner = json.dumps(items)[:-1] + ",]"
        elif name == "controls in a string":
            inner = json.dumps(items, indent=1).replace("\n ", "\n\t")
            return '"' + inner.replace("\\", "\\\\").replace('"', '\\"') + '"'
        else:
            inner = json.dumps(items)
        return json.dumps(inner)

    def join(self, texts: list[str], *, is_list: bool) -> str:
        out = self.space()
        for number, text in enumerate(texts):
            if number:
                before = texts[number - 1]
                can_miss = not is_list or (before[-1] not in "'”" and text[:1] not in "'“")
                if can_miss and self.use("missing comma", 0.3):
                    out += self.dice.choice([" ", "\n"])
                elif not is_list and self.use("doubled comma", 0.3):
                    out += ",, "
                else:
                    out += "," + self.space()
            out += text + self.space()
        if texts and self.use("trailing comma", 0.5):
            out += "," + self.space()
        return out

    def write_object(self, members: dict[str, Any]) -> str:
        texts = []
        for key, value in members.items():
            if self.use("bare keys"):
                name = key
            else:
                name = self.quoted(key)
            texts.append(name + self.space() + ":" + self.space() + self.member(key, value))
        return "{" + self.join(texts, is_list=False) + "}"

    def member(self, key: str, value: Any) -> str:
        if key in ("count", "ratio", "force", "width") and self.use("coerced"):
            return json.dumps(json.dumps(value))
        return self.write(value, key)

    def quoted(self, text: str) -> str:
        if self.use("single quotes"):
            return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
        if self.use("typographic quotes"):
            return "“" + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"') + "”"
        return json.dumps(text, ensure_ascii=self.dice.random() < 0.5)

    def write_string(self, text: str, *, is_free: bool) -> str:
        return self.quoted(text)


def text_with(name: str, dice: random.Random, text: str) -> tuple[str, str]:
    """A text with something in it that was not escaped: what was meant, and the inside as it is written."""
    words = text or "x"
    if name == "inner quotes":
        meant = dice.choice(['say "hi" now', '"hi" there', 'he said "so"', 'f("a", "b")', 'a "b" and "c d" e',
                             '5" pipe',
                             f'{words} "{words.split()[0]}"', 'echo {"k": "v"} > f', 'x "y, z"',
                             'grep "]" log', 'fix: "{a}"',
                             'one "two"\nthree', '"all"', 'git commit -m "fix: a"'])  # fmt: skip
        return meant, meant.replace("\\", "\\\\").replace("\n", "\\n")
    if name == "raw controls":
        meant = f"{words}\n\tnext line\r\n{words}"
        return meant, json.dumps(words)[1:-1] + "\n\tnext line\r\n" + json.dumps(words)[1:-1]
    if name == "backslash before a line end":
        return f"{words} \\\n -o a", f"{words} \\\n -o a"
    meant = dice.choice(["C:\\dir\\users", "\\d+\\.py", "a\\(b\\)", "\\users \\Desktop"])
    return meant, meant


STRING_CLASSES = ("inner quotes", "raw controls", "backslash before a line end", "bad escapes")


def write(seed: int, names: tuple[str, ...]) -> Written:
    """Arguments with these defects; those that did not fit are left out of `classes`."""
    dice = random.Random(f"{seed} {names}")
    classes = set(names)
    writer = Writer(dice, classes)
    keys = dice.sample(KEYS, dice.randrange(1, 6))
    wanted = {"sets": ["tags", "sizes"], "tuples": ["tags", "sizes"], "numbers": ["count", "sizes"],
              "python literals": ["force", "limit"], "coerced": ["count", "force"],
              "missing comma": ["note", "count"]}  # fmt: skip
    for name in names:
        for key in wanted.get(name, ["tags", "edits"] if name.endswith("in a string") else []):
            if key not in keys:
                keys.insert(dice.randrange(len(keys) + 1), key)
    members = {key: writer.value(key) for key in keys}
    if {"sets", "tuples", *IN_STRINGS} & classes:
        for key in ("tags", "sizes", "edits"):
            if key in members and not members[key]:
                members[key] = {"tags": ["a", "b c"], "sizes": [1, 2], "edits": [{"old": "a", "new": "b"}]}[key]
    odd: dict[str, str] = {}
    for number, name in enumerate(name for name in names if name in STRING_CLASSES):
        place = dice.choice(["member", "nested", "item", "edit"])
        meant, inside = text_with(name, dice, writer.string_value().replace('"', "").replace("\\", ""))
        mark = f"§{number}§"
        odd[mark] = inside
        writer.done.add(name)
        key = {"member": "command", "nested": "box", "item": "tags", "edit": "edits"}[place]
        value = {"member": mark, "nested": {"width": 3, "label": mark}, "item": ["p", mark],
                 "edit": [{"old": mark, "new": "n"}]}[place]  # fmt: skip
        odd[f"meant {mark}"] = meant
        members.pop(key, None)
        after = dict(members)
        members.clear()
        cut = dice.randrange(len(after) + 1)
        members |= dict(list(after.items())[:cut]) | {key: value} | dict(list(after.items())[cut:])
    if any(odd):
        classes -= {"single quotes", "typographic quotes", *IN_STRINGS, "sets", "tuples"}
    if "apostrophes" in classes:
        members["note"] = "it's John's own"
        classes.add("single quotes")
    text = writer.write_object(members)
    if "apostrophes" in classes:
        writer.done.add("apostrophes")
        text = text.replace("\\'", "'")
    meant = members
    for mark in [mark for mark in odd if mark.startswith("§")]:
        for written in (mark, json.dumps(mark)[1:-1]):
            text = text.replace(written, odd[mark])
        meant = replaced(meant, mark, odd[f"meant {mark}"])
    schema = SCHEMA
    if dice.random() < 0.4:
        schema = {**SCHEMA, "required": [key for key in keys if key in meant and dice.random() < 0.7]}
    text = wrapped(writer, text, meant)
    return Written(tuple(sorted(writer.done & {*classes, "single quotes"})), schema, text, meant)


def replaced(value: Any, mark: str, meant: str) -> Any:
    """The value with what was meant by a mark in its place."""
    if isinstance(value, dict):
        return {key: replaced(item, mark, meant) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, mark, meant) for item in value]
    return meant if value == mark else value


def wrapped(writer: Writer, text: str, meant: dict[str, Any]) -> str:
    if writer.use("extra brace"):
        text += "}"
    if writer.use("said twice"):
        text += text
    if writer.use("double encoding"):
        text = json.dumps(text)
    if writer.use("fence"):
        text = f"```json\n{text}\n```"
    if writer.use("special tokens"):
        text = f"<|tool_call_begin|>{text}<|tool_call_end|>"
    return text


def slip(seed: int, name: str) -> Written:
    """Arguments that have no reading, or two."""
    dice = random.Random(f"{seed} {name}")
    writer = Writer(dice, set())
    keys = dice.sample(["count", "force", "tags", "extra", "unknown", "box"], dice.randrange(1, 4))
    first = writer.string_value()
    members = {key: writer.value(key) for key in keys}
    behind = {
        "words behind a text": ' -la', "semicolon": ";", "bracket behind a text": "]",
        "words and a quote behind a text": ' and "so"', "open quotation": "", "value behind a text": ': "so"',
    }.get(name)  # fmt: skip
    rest = json.dumps(members)[1:-1]
    inside = json.dumps(first)[1:-1]
    if name == "open quotation":
        inside += ' say "hi'
    if name == "value behind a text":  # where a quotation mark may open
        inside, rest = inside + dice.choice(["{", " (", "=", " "]), dice.choice([rest, ""])
    key = dice.choice(["command", "note", "other"])
    schema = SCHEMA
    if behind is not None:
        separator = "" if name == "semicolon" or not rest else ","
        text = f'{{"{key}": "{inside}"{behind}{separator} {rest}}}'
        if dice.random() < 0.4 and name != "open quotation":
            text = f'{{"box": {text}, "count": 1}}'
        return Written((name,), schema, text, None)
    whole = json.dumps({key: first, **members})
    if name == "cut":
        whole = whole.replace('": "', "\": '", 1).replace('",', "',", 1)
        return Written((name,), schema, whole[: dice.randrange(2, len(whole) - 1)], None)
    if name == "words around":
        text = dice.choice(["Here you are: {}", "{} – done.", "Sure!\n{}\nDone", "{} and more"]).replace(
            "{}", whole[:-1] + ",}"
        )
        return Written((name,), schema, text, None)
    if name == "member behind the end":
        return Written((name,), schema, f"{{\"{key}\": '{dice.choice('abc')}'}}, {rest}}}", None)
    required = dice.choice(["ratio", "limit", "edits"])
    return Written((name,), {**SCHEMA, "required": [required]}, whole[:-1] + ",}", None)

"""A marker, the name of an offered tool, and a body that nobody can read: a call that failed, in every form, and no
text. Words behind a name, and dots in place of arguments, are no call.
"""

from __future__ import annotations

import re

from for_each import for_each
from profiles import IS_SOAK, some
from rescue_forms import FORMS, Form
from test_moved_parameters import parts_of
from test_written_calls import delivered, exact, play

NAME, ARGUMENTS = "get_time", {"zone": "Rome"}
OBJECT = '{"zone": "Rome"}'
BODIES = (
    '{"zone": "Rome"', '{"zone": "Rome"]', '{"zone" "Rome"}', '{"zone": }', '{"zone": "Rome" "Oslo"}',
    '{"zone": "Rome}', "{zone", '"zone": "Rome"}', '["Rome"]', '"Rome"', "Rome", "7", "the time in Rome",
    '{"zone": "Rome"}}', "{", '{"zone": "Rome"}]', '{{"zone": "Rome"}', '{"zone": Rome}', '{"zone" = "Rome"}',
    '{"zone"}', '{"Rome"}', "{[}]", "[", '{: "Rome"}', '{"zone": "Rome",, "x"', '("Rome")', "", "<zone>Rome</zone>",
    "zone=Rome", 'zone: "Rome"', "{\n", '(zone="Rome")', "{“zone”: “Rome”}", '{"zone": {"a": "Rome"}',
    '{, "zone": "Rome"}', '[{"zone": "Rome"}]', "{…}", '<"zone": "Rome">', '{"zone": "Rome"\n', '=> {"zone": "Rome"}',
    '{"zone": "Rome"};', "{...}", "…", '({"zone": "Rome"})', '{"zone": "Rome"} {"zone": "Oslo"}',
)  # fmt: skip
#: What may stay text: words, perhaps with a bracket, dots, nothing.
WORDS = re.compile(r"\s*(?:[\w…=(]|\{(?:\.\.\.|…)|\Z)")
#: `>>>NAME` begins a line of Python's prompt too: only a brace behind it begins arguments.
MAY_BE_PYTHON = ("functionary",)
#: Up to where a mark makes another name, where one stands twice.
OTHER_NAME = {"inkling": 10_000}
LIVE = [form for form in FORMS if form.where != "message"]
#: One mark put into a text.
MARKS = ('"', "{", "}", ",", "]", ":", ">")
STEP = 1 if IS_SOAK else 41


def named(form: Form) -> list[tuple[str, str]]:
    """Texts of one call whose arguments are broken, each with what stands in place of them; its name is the tool's."""
    text = form.write([(NAME, ARGUMENTS)]).text()
    bodies = [body for body in BODIES if text.split(NAME)[1][0] not in "{<(" or body[:1] in ("{", "<", "(", "")]
    if OBJECT in text:
        return [(body, text.replace(OBJECT, body)) for body in (bodies if f"{NAME}{{" in text else BODIES)]
    if form.closes == "tag":
        lead, begin, parameter, closing, tail = parts_of(form, NAME, ARGUMENTS)
        bodies = [
            *(bodies if begin[-1].isalnum() else BODIES),
            *(parameter[:i] + parameter[i + 1 :] for i in range(len(parameter))),
        ]
        return [(body, lead + begin + body + closing + tail) for body in bodies]
    begin = text.index(NAME) + len(NAME)
    end = text.rindex("Rome") + len("Rome")
    return [(body, text[:begin] + body + text[end + 1 :]) for body in bodies]


def outcome(text: str) -> tuple[str, list[str], list[str], str]:
    """What becomes of a text, the same whole and, where that is tried, token by token."""
    found = []
    for size in (max(len(text), 1), *some((5, 1), text, 4)):
        reply = play(text, "stop", size)
        kind = "failed" if reply.failed_calls or reply.error else "call" if reply.tool_calls else "text"
        found.append((kind, exact(delivered(reply)), [call.name for call in reply.failed_calls], reply.text.strip()))
    assert all(one == found[0] for one in found), text
    return found[0]


@for_each("form", LIVE, ids=lambda form: f"{form.family}: {form.name}")
def test_a_call_with_a_broken_body_fails(form: Form):
    for body, text in some(named(form), form.name, 2):
        kind, calls, names, left = outcome(text)
        assert kind != "text" or WORDS.match(body) or form.family in MAY_BE_PYTHON, text
        assert kind != "text" or left == text.strip(), text
        assert names in ([], [NAME]), text
        assert not calls or body not in BODIES or "Rome" in calls[0] or "Rome" not in body, (text, calls)


@for_each("form", LIVE, ids=lambda form: f"{form.family}: {form.name}")
def test_one_mark_too_few_or_too_many_behind_a_name(form: Form):
    """The name ends before a blank, so that it is read."""
    text = form.write([(NAME, ARGUMENTS)]).text()
    begin, end = text.index(NAME) + len(NAME), text.index("Rome")
    head = re.compile(r"[\w.:]*[\"']?").match(text, begin)
    assert head is not None
    for place in range(head.end() + 1, end, STEP):
        damaged = [text[:place] + text[place + 1 :], *(text[:place] + mark + text[place:] for mark in MARKS)]
        for one in damaged if text[place : place + 4] not in ("Rome", "zone") else ():
            kind, *_ = outcome(one)
            is_other = OTHER_NAME.get(form.family, place) > place or form.family in MAY_BE_PYTHON
            assert kind != "text" or any(WORDS.match(one, at) for at in (head.end(), place)) or is_other, one


PROSE = (
    " begins such a call.", " is a tool, and so on.", ", as the paper says (see below).", " takes a zone; that is all.",
    "\nand then its arguments.", " – without arguments.", " {…}", " {...} and so on",
)  # fmt: skip


@for_each("form", LIVE, ids=lambda form: f"{form.family}: {form.name}")
@for_each("words", PROSE)
def test_words_behind_a_name_stay_text(form: Form, words: str):
    """The beginning of a call, up to its name and what stands right behind that in its tag or bracket."""
    text = form.write([(NAME, ARGUMENTS)]).text()
    if form.closes == "tag":
        text = "".join(parts_of(form, NAME, ARGUMENTS)[:2])
    elif OBJECT in text and f'"{NAME}"' not in text:
        text = text[: text.index(NAME) + len(NAME)]
    else:
        return  # its name stands in an object, which is open then
    kind, _, _, left = outcome(f"So:\n{text}{words}")
    assert (kind, left) == ("text", f"So:\n{text}{words}".strip())


#: Texts about a marker and a tool. `NAME` is the tool's.
ABOUT = (
    "The model emits <tool_call>NAME and then the keys, each in <arg_key> tags.",
    "With Mistral, `[TOOL_CALLS]NAME[ARGS]` is followed by JSON.",
    "A call begins with [TOOL_CALLS]NAME[ARGS], followed by a JSON object.",
    "A call begins with [TOOL_CALLS]NAME, then comes the object.",
    '```\n<tool_call>\n{"name": "NAME", "arguments": ...}\n```\nis the shape of it.',
    "```xml\n<function=NAME>\n<parameter=zone>...\n```\nis Qwen's.",
    "Qwen writes <function=NAME> and then a parameter per argument (zone is one).",
    "<function=NAME> is what Llama writes; the arguments are JSON (e.g. an object with zone).",
    "In this format, <|tool_call_begin|>functions.NAME:0 names the tool; the arguments follow.",
    '"<|tool_call_begin|>functions.NAME:0" – that is Kimi\'s.',
    'The tag <invoke name="NAME"> opens a call, and </invoke> closes it.',
    'Use <invoke name="NAME">…</invoke> when you call it.',
    'Use <invoke name="NAME">...</invoke> when you call it.',
    "Docs: <|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|> then JSON.",
    "Write commentary to=functions.NAME and the model will know (see the cookbook).",
    "We saw <|python_tag|>NAME in the log. What does it mean?",
    "We saw <|python_tag|>NAME.call in the log, without parentheses.",
    "<tool_name>NAME</tool_name> is the element of the tool's name.",
    "Cline: <use_mcp_tool><server_name>x</server_name><tool_name>NAME</tool_name> and the arguments element.",
    '<|tools_prefix|>[{"NAME": ... }]<|tools_suffix|> is how Apertus does it.',
    '<|tools_prefix|>[{"NAME": {...}}]<|tools_suffix|> is how Apertus does it.',
    "call:NAME{...} is Gemma's form.",
    "<start_function_call>call:NAME – and then braces.",
    "<|tool_calls_section_begin|><|tool_call_begin|>NAME marks the start.",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\nand a fence with JSON.",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜> and JSON behind it.",
    "<tool_call>NAME: what is that?",
    "<tool_call>NAME = the name, then pairs",
    'The marker <tool_call> with NAME (the tool) begins a call: "zone" is its argument.',
    '<tool_call>NAME takes one argument, "zone", e.g. "Rome".',
    "<tool_call>NAME (the name), <arg_key>zone</arg_key> (a key), <arg_value>Rome</arg_value> (a value), and so on.",
    "| form | text |\n|---|---|\n| GLM | <tool_call>NAME |\n| Qwen | <function=NAME> |\n",
    '- <tool_call>NAME\n- <function=NAME>\n- <invoke name="NAME">\nare three ways to begin.',
    "It says '<tool_call>NAME' and stops.",
    "He wrote “<function=NAME>” in the mail.",
    "    <tool_call>NAME\n    <arg_key>zone</arg_key>\n\nis indented code.",
    "`<tool_call>NAME<arg_key>zone</arg_key>`",
    "grep '<function=NAME>' log.txt | wc -l",
    're.compile(r"<function=NAME>(.*?)</function>")',
    'assert text.startswith("<tool_call>NAME")',
    ">>> NAME('Rome')\n'12:00'",
    ">>>NAME\nis printed.",
    '<tool_call>\n{"name": "NAME", "arguments": {...}}\n</tool_call> is the template.',
    "<seed:tool_call><function=NAME> opens it; <parameter=zone> holds the zone.",
    "<|channel|>commentary to=NAME means a call, doesn't it?",
    '<function name="NAME"> is wrong; write <function=NAME> instead.',
    'The header <tool_call>NAME\n\nis followed by the arguments:\n\n- zone: "Rome"',
    "<tool_call>NAME | <tool_call>run_command",
    "<function=NAME>, <function=run_command> and <function=write_file> are the three calls.",
    '<invoke name="NAME">, <invoke name="run_command">: two tools.',
)


@for_each("text", ABOUT)
def test_a_text_about_a_marker_and_a_tool_stays_text(text: str):
    kind, calls, names, left = outcome(text.replace("NAME", NAME))
    assert (kind, calls, names, left) == ("text", [], [], text.replace("NAME", NAME).strip())

"""Texts of models in which no call is meant, as parsers took them for calls in 2025 and 2026: calls that are shown,
quoted or thought of, and forms that no server's parser reads. The kinds come from public reports; words are our own.
"""

from __future__ import annotations

from found_answers import Found
from found_texts import GIT, RUN, SEARCH, TIME, dsml, dumped, glm, harmony, hermes, invoke, kimi, qwen, section


def none(name: str, text: str) -> Found:
    """An answer that is words alone."""
    return Found(name, text, left=None)


def line(text: str) -> str:
    return text.replace("\n", "")


def quoted(text: str, mark: str) -> str:
    return "\n".join(mark + row for row in text.split("\n"))


FENCES = (
    none("a fence of xml", f"This is what a call looks like:\n\n```xml\n{qwen(RUN)}\n```\n\nThat is the form."),
    none("a fence of tildes", f"The form:\n\n~~~\n{qwen(RUN)}\n~~~\n"),
    none("a fence of four", f"In a page:\n\n````markdown\n```xml\n{glm(RUN)}\n```\n````\nThat is all."),
    none("a fence in a list", "1. The form:\n\n   ```xml\n" + quoted(qwen(RUN), "   ") + "\n   ```\n2. The end."),
    none("a fence that is not closed", f"Write:\n\n```xml\n{invoke(RUN)}\n"),
    none("a fence of hermes", f"Like this:\n```\n{hermes(RUN)}\n```\nand nothing else."),
    none("a fence of dsml", f"DeepSeek's form:\n\n```\n{dsml(RUN)}\n```\n"),
    none("a fence of kimi", f"Kimi's form:\n\n```text\n{section(kimi(RUN, 'functions.run:0'))}\n```\n"),
    none("a fence of harmony", f"The tokens:\n\n```text\n{harmony(RUN)}<|call|>\n```\n"),
    none("a fence of mistral", f"The tokens:\n\n```\n[TOOL_CALLS]run[ARGS]{GIT}\n```\nDone."),
    none("a fence of gemma", 'Gemma writes:\n\n```\n<|tool_call>call:run{command:<|"|>ls<|"|>}<tool_call|>\n```'),
    none("a fence of a diff", "The fix:\n\n```diff\n" + quoted(hermes(RUN), "+") + "\n```\n"),
    none("a fence of a test", f"The test:\n\n```python\nTEXT = '''{hermes(RUN)}'''\nassert parse(TEXT)\n```\n"),
    none("a fence of shell", "Run this:\n\n```bash\nrun git status\nget_time\n```\n"),
    none("a fence of json, words", f"I would send:\n\n```json\n{dumped(RUN)}\n```\n\nShall I?"),
    none("a fence of a package", '```json\n{"name": "run", "version": "1.0.0", "scripts": {"a": "b"}}\n```'),
    none("a fence of people", '```json\n[{"name": "alice", "age": 30}, {"name": "bob", "age": 31}]\n```'),
    none("a fence of the template", "The template:\n\n```jinja\n<tool_call>\n{{ tool.name }}\n</tool_call>\n```\n"),
    none("indented", "The form is:\n\n" + quoted(qwen(RUN), "    ") + "\n\nNothing else."),
    none("indented, behind another call", "    load(a=1)\n    " + hermes(RUN)),
    none("indented, behind an offered call", "    get_time()\n    " + hermes(RUN)),
    none("indented by a tab", "The form is:\n\n" + quoted(hermes(RUN), "\t") + "\n\nNothing else."),
    none("pre", f"<pre>\n{qwen(RUN)}\n</pre>"),
    none("pre and code", f"<pre><code>{glm(RUN)}</code></pre>\nis the form."),
    none("a block quote", "The model wrote:\n\n" + quoted(qwen(RUN), "> ") + "\n\nand stopped."),
    none("an example's tags", f"<example>\n{invoke(RUN)}\n</example>\nis in the prompt."),
)

INLINE = (
    none("backticks", f"The call `{line(hermes(RUN))}` never ran."),
    none("two backticks", f"It wrote ``{line(qwen(RUN))}`` and stopped."),
    none(
        "backticks around a marker", "`<tool_call>` opens and `</tool_call>` closes; `<function=run>` names the tool."
    ),
    none("quotation marks", f'The log said "{line(qwen(RUN))}" and nothing else.'),
    none("curly quotation marks", f"The log said “{line(invoke(RUN))}” and nothing else."),
    none("guillemets", f"Le journal dit «{line(dsml(RUN))}» et rien de plus."),
    none(
        "a marker in quotation marks", 'Qwen leaves out "<tool_call>" now and then, so look for "<function=run>" too.'
    ),
    none("Kimi's in quotation marks", f'It printed "{section(kimi(RUN, "functions.run:0"))}" as text.'),
    none("GLM's in quotation marks", f'It printed "{glm(RUN, "")}" as text.'),
    none("Mistral's in quotation marks", f'It printed "[TOOL_CALLS]run[ARGS]{GIT}" as text.'),
    none("harmony's in quotation marks", f'It printed "{harmony(RUN)}<|call|>" as text.'),
    none("a table", f"| form | call |\n|---|---|\n| hermes | `{line(hermes(RUN))}` |\n| glm | `{glm(RUN, '')}` |"),
    none("entities", "&lt;tool_call&gt;{&quot;name&quot;: &quot;run&quot;}&lt;/tool_call&gt; is how a page shows it."),
)

WORDS = (
    none("a marker in a sentence", "The parser sees <tool_call> and waits for JSON that never comes."),
    none("both markers in a sentence", "Between <tool_call> and </tool_call> stands JSON; no other text may."),
    none("a function's tag in a sentence", "In Qwen's form, <function=run> names the tool, and its arguments follow."),
    none(
        "dots in the tags",
        "The form is <tool_call><function=...><parameter=...>...</parameter></function></tool_call>.",
    ),
    none("Mistral's marker in a sentence", "Devstral puts [TOOL_CALLS] before the name and [ARGS] before the JSON."),
    none("harmony's tokens in a sentence", "The tokens are <|channel|>, <|message|> and <|call|>, in this order."),
    none("Kimi's marker in a sentence", "Look for <|tool_calls_section_begin|> before you print the text."),
    none("DeepSeek's marker in a sentence", "The block <｜DSML｜tool_calls> came as text, so the client showed it."),
    none("Gemma's marker in a sentence", "Strip <|tool_call> and <tool_call|> from what users see."),
    none("a closing tag alone", "The closing </tool_call> is missing there."),
    none("an empty pair", "The template leaves <tool_call></tool_call> behind when there is nothing to call."),
    none("a name that was not offered", hermes(("shell", {"command": "ls"}))),
    none("a name that was not offered, in tags", qwen(("shell", {"command": "ls"}))),
    none("a name that was not offered, GLM", glm(("exec", {"command": "ls"}))),
    none("a name that was not offered, Kimi", section(kimi(("exec", {"a": 1}), "functions.exec:0"))),
    none("half a marker", "It begins with <tool_"),
    none("half another marker", "It begins with <|tool_calls_sec"),
    none("a plan", "I will call run with `git status`, then get_time(), and tell you."),
    none("functions in words", "I support several functions. They include run, search and get_time."),
    none("a call's words in a sentence", "You could write run(command='git status') in your own code."),
    none("a line of code between lines", "You can also call it like:\nrun(command='git status')\nin your own code."),
    none("a line of a name and JSON", f"The request looks like:\nrun{GIT}\nThat is the whole request."),
    none("JSON in a sentence", f"The request was {dumped(RUN)}, and it failed."),
    none("JSON, then words", f"{dumped(RUN)}\nis what I would send."),
    none("words, then a Python list", "To answer that I call:\n\n[run(command='git status')]"),
    none("Gemini's words in a sentence", "It printed call:default_api:run{command:ls} and stopped."),
    none("brackets of an editor", "Use [Read] for files and [run] for commands; [search] finds pages."),
    none("a made-up log", "2026-03-02 10:14:07 INFO " + line(hermes(RUN))),
    none("ReAct", f"Thought: I need the status.\nAction: run\nAction Input: {GIT}\nObservation: clean"),
    none("ReAct in brackets", "Thought: I need it.\nAction: run[git status]"),
    none("an e-mail of angle brackets", "Write to <run@example.org> or <tool_call@example.org>."),
    none("types in angle brackets", "A `Map<run, search>` holds List<tool_call> and more."),
    none("mathematics", "For all a<b and c>d we have f(a)<tool_callable(d)."),
    none("JSON with a tool's name", '{"name": "search", "summary": "finds pages", "stars": 4}'),
    none(
        "a tool's definition",
        '{"name": "run", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}',
    ),
    none(
        "a list of definitions", '[{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]'
    ),
    none("JSON that fits no schema", '{"name": "search", "arguments": {"limit": 3}}'),
    none("a broken object", '{"name",: "run", "arguments": {"command": {"a": ""b", "c"}}}'),
    none("a tuple", f"(True, {dumped(RUN)})"),
    none("an answer in JSON", '{"status": "ok", "calls": [' + dumped(RUN) + "]}"),
    none("a patch's hunk", "@@ -1,2 +1,2 @@\n-" + line(hermes(RUN)) + "\n+" + line(hermes(TIME))),
)

OTHER_FORMS = (
    none("brackets and arrows", '[TOOL_CALL]\n{tool => "run", args => {\n--command "git status"\n}}\n[/TOOL_CALL]'),
    none("brackets and JSON", f'[TOOL_CALL] {{"tool": "run", "args": {GIT}}} [/TOOL_CALL]'),
    none("a tag of the tool's name", "<run>\n<command>git status</command>\n</run>"),
    none("a tag of a tool", "<tool><name>run</name><command>git status</command></tool>"),
    none("three angle brackets", f"<<<TOOL_CALL>>>{dumped(RUN)}<<<END_TOOL_CALL>>>"),
    none("code of an agent", "<code>\nresult = run(command='git status')\nprint(result)\n</code>"),
    none("at signs", f"@run(call_1): {GIT}"),
    none("a comment", f"<!-- {line(hermes(RUN))} -->\nNothing to do."),
    none("a here-document", f"Run:\ncat > a.txt <<'EOF'\n{qwen(RUN)}\nEOF\n"),
)

THOUGHTS = (
    Found(
        "a draft in thinking",
        f"<think>\nI could call {line(hermes(RUN))} here.\n</think>\nNothing to do.",
        left="Nothing to do.",
        thought=f"I could call {line(hermes(RUN))} here.",
    ),
    Found(
        "a draft in tags in thinking",
        f"<think>\nThe user wants:\n{qwen(RUN)}\nbut I need not.\n</think>\n\nIt is clean.",
        left="It is clean.",
        thought=f"The user wants:\n{qwen(RUN)}\nbut I need not.",
    ),
    Found(
        "a draft in thinking, then the call",
        f"<think>\nMaybe {line(hermes(RUN))}.\n</think>\n{hermes(SEARCH)}",
        (SEARCH,),
        thought=f"Maybe {line(hermes(RUN))}.",
    ),
    Found(
        "the same in thinking and behind it",
        f"<think>\nI call:\n{qwen(RUN)}\n</think>\n\n{qwen(RUN)}",
        (RUN,),
        thought=f"I call:\n{qwen(RUN)}",
    ),
    Found(
        "a fence in thinking that nothing follows",
        f"<think>\nThe form is:\n```\n{qwen(RUN)}\n```\n</think>",
        left="",
        thought=f"The form is:\n```\n{qwen(RUN)}\n```",
    ),
    Found(
        "Kimi's draft in thinking",
        f"<think>{section(kimi(RUN, 'functions.run:0'))} perhaps.</think>All is well.",
        left="All is well.",
        thought=f"{section(kimi(RUN, 'functions.run:0'))} perhaps.",
    ),
    Found(
        "words about tags in thinking",
        "<think>Some write <function=...>, others <tool_call>.</think>Both are read.",
        left="Both are read.",
        thought="Some write <function=...>, others <tool_call>.",
    ),
    Found(
        "Mistral's draft in thinking",
        f"[THINK]Perhaps [TOOL_CALLS]run[ARGS]{GIT}[/THINK]No need.",
        left="No need.",
        thought=f"Perhaps [TOOL_CALLS]run[ARGS]{GIT}",
    ),
    Found(
        "an analysis that speaks of a call",
        f"<|channel|>analysis<|message|>Call run with {GIT}? No.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Clean.",
        left="Clean.",
        thought=f"Call run with {GIT}? No.",
    ),
)

ALIKE = (*FENCES, *INLINE, *WORDS, *OTHER_FORMS, *THOUGHTS)

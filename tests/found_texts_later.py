"""More of those texts, of a second search: Python's literals, nulls, names, order, words around calls, other clients'
forms and pages that speak of calls."""

from __future__ import annotations

import json

from dragoman import _json
from dragoman.types import Tool
from found_answers import Found
from found_lookalikes import line, none
from found_texts import (
    GIT,
    RUN,
    RUN9,
    TIME,
    TOOLS,
    ZONE,
    dsml,
    dumped,
    function,
    glm,
    harmony,
    hermes,
    invoke,
    kimi,
    qwen,
    section,
)

NULLABLE = {"type": ["object", "null"]}
ALL_TOOLS = (
    *TOOLS,
    Tool(
        "Calendar.add",
        "",
        _json.raw(
            {
                "type": "object",
                "properties": {
                    "from": {"type": "string"},
                    "size": {"type": "array", "items": {"type": "integer"}},
                    "at": {"type": "number"},
                    "extra": NULLABLE,
                    "note": {"type": ["string", "null"]},
                    "kind": {"type": "string", "enum": ["none", "Weekly", "daily"]},
                    "is_private": {"type": "boolean"},
                },
                "required": ["from"],
            }
        ),
    ),
    Tool(
        "web-fetch", "", _json.raw({"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]})
    ),
)
DAY = ("Calendar.add", {"from": "Monday"})


def lfm(text: str) -> str:
    return f"<|tool_call_start|>[{text}]<|tool_call_end|>"


def add(**given: object) -> tuple[str, dict[str, object]]:
    return "Calendar.add", {"from": "Monday", **given}


PYTHON = (
    Found("lfm: a name with a dot, a word of Python as a key", lfm("Calendar.add(from='Monday')"), (DAY,)),
    Found(
        "lfm: a bracket in a text",
        lfm("run(command='grep -F \"]\" log.txt')"),
        (("run", {"command": 'grep -F "]" log.txt'}),),
    ),
    Found(
        "lfm: a line end in a text",
        lfm("run(command='cat << EOF\na\nEOF')"),
        (("run", {"command": "cat << EOF\na\nEOF"}),),
    ),
    Found("lfm: a backslash at the end", lfm("run(command='dir C:\\\\')"), (("run", {"command": "dir C:\\"}),)),
    Found("lfm: a negative number", lfm("Calendar.add(from='Monday', at=-74.5)"), (add(at=-74.5),)),
    Found("lfm: a positive sign", lfm("run(command='git status', timeout=+9)"), (RUN9,)),
    Found("lfm: a tuple", lfm("Calendar.add(from='Monday', size=(800, 600))"), (add(size=[800, 600]),)),
    Found(
        "lfm: JSON's words",
        lfm("Calendar.add(from='Monday', is_private=true, extra=null)"),
        (add(is_private=True, extra=None),),
    ),
    Found(
        "lfm: white space behind the token", "<|tool_call_start|> [run(command='git status')]<|tool_call_end|>", (RUN,)
    ),
    Found("lfm: an infinite number", lfm("Calendar.add(from='Monday', at=1e999)"), failed=("Calendar.add",)),
    Found("lfm: a formatted text with nothing to format", lfm("run(command=f'git status')"), (RUN,)),
    Found("lfm: a formatted text", lfm("run(command=f'git {word}')"), failed=("run",)),
    Found("lfm: a formatted text, escaped braces", lfm("run(command=f'git \\{word\\}')"), failed=("run",)),
    Found("lfm: a formatted text, quotes within", lfm("run(command=f'git '{word}' a')"), failed=("run",)),
    Found("lfm: a formatted text, quotes before", lfm("run(command=f'git 'a' {word}')"), failed=("run",)),
    Found("lfm: a value without a key", lfm("run('git status', timeout=9)"), failed=("run",)),
    Found(
        "lfm: two, words behind", lfm("run(command='git status'), get_time()") + "I wait.", (RUN, TIME), left="I wait."
    ),
    Found("lfm: a triple quotation mark", lfm('run(command="""git status""")'), (RUN,)),
    Found("python: lines", "run(command='git status')\nget_time(zone=\"Asia/Tokyo\")", (RUN, ZONE)),
    Found("python: a list over lines", "[\n  run(command='git status'),\n  get_time(),\n]", (RUN, TIME)),
    Found(
        "olmo: a name with a dot",
        "<function_calls>\nCalendar.add(from='Monday', extra={'a': [1, None]})\n</function_calls>",
        (add(extra={"a": [1, None]}),),
    ),
)

VALUES = (
    Found("qwen: None for an object or null", qwen(add(extra="None")), (add(extra=None),)),
    Found("qwen: null for an object or null", qwen(add(extra="null")), (add(extra=None),)),
    Found("qwen: None for a text or null", qwen(add(note="None")), (add(note="None"),)),
    Found("qwen: none as an option", qwen(add(kind="none")), (add(kind="none"),)),
    Found(
        "minimax: none as an option",
        f"<minimax:tool_call>\n{invoke(add(kind='none'))}\n</minimax:tool_call>",
        (add(kind="none"),),
    ),
    Found("hermes: an option in another case", hermes(add(kind="weekly")), (add(kind="Weekly"),)),
    Found("hermes: numbers in texts", hermes(("run", {"command": "git status", "timeout": "9"})), (RUN9,)),
    Found(
        "hermes: a number with a fraction of nothing",
        hermes(("run", {"command": "git status", "timeout": "9.0"})),
        (RUN9,),
    ),
    Found("hermes: a boolean in a text", hermes(add(is_private="True")), (add(is_private=True),)),
    Found(
        "hermes: a value for a list",
        hermes(("search", {"query": "a", "sites": "b.example"})),
        (("search", {"query": "a", "sites": ["b.example"]}),),
    ),
    Found(
        "hermes: a list in a text",
        hermes(("search", {"query": "a", "sites": '["b", "c"]'})),
        (("search", {"query": "a", "sites": ["b", "c"]}),),
    ),
    Found("hermes: digits for a text", hermes(("search", {"query": "007"})), (("search", {"query": "007"}),)),
    Found("qwen: digits for a text", qwen(("search", {"query": "007"})), (("search", {"query": "007"}),)),
    Found(
        "qwen: JSON for a text",
        qwen(("create_file", {"path": "a.json", "content": '{"a": 1}'})),
        (("create_file", {"path": "a.json", "content": '{"a": 1}'}),),
    ),
    Found("glm: a boolean, a list", glm(add(is_private="true", size="[1, 2]")), (add(is_private=True, size=[1, 2]),)),
    Found("dsml: a text that says it is none", dsml(add(size="[1, 2]")), (add(size=[1, 2]),)),
    Found(
        "hermes: arguments twice in a string",
        '<tool_call>{"name": "run", "arguments": '
        '"\\"{\\\\\\"command\\\\\\": \\\\\\"git status\\\\\\"}\\""}</tool_call>',
        (RUN,),
    ),
    Found(
        "granite: arguments in a string",
        f'<tool_call>{{"name": "run", "arguments": {json.dumps(GIT)}}}</tool_call>',
        (RUN,),
    ),
    Found(
        "hermes: a trailing comma",
        '<tool_call>{"name": "run", "arguments": {"command": "git status",},}</tool_call>',
        (RUN,),
    ),
    Found(
        "hermes: a comment",
        '<tool_call>{"name": "run", "arguments": {"command": "git status" // look\n}}</tool_call>',
        (RUN,),
    ),
    Found(
        "hermes: a name with a hyphen",
        hermes(("web-fetch", {"url": "https://a.example/?q=1&r=<b>#c"})),
        (("web-fetch", {"url": "https://a.example/?q=1&r=<b>#c"}),),
    ),
    Found("hermes: white space around a name", hermes((" run ", {"command": "git status"})), (RUN,)),
    Found("hermes: brackets behind a name", hermes(("get_time()", {})), (TIME,)),
    Found("qwen: a prefix", qwen(("functions.run", {"command": "git status"})), (RUN,)),
    Found("hermes: a name that is near", hermes(("runs", {"command": "git status"})), left=None),
    Found(
        "hermes: NaN",
        '<tool_call>{"name": "Calendar.add", "arguments": {"from": "a", "at": NaN}}</tool_call>',
        failed=("Calendar.add",),
    ),
    Found(
        "hermes: a list for arguments",
        '<tool_call>{"name": "run", "arguments": ["git status"]}</tool_call>',
        failed=("run",),
    ),
    Found(
        "hermes: words for arguments",
        '<tool_call>{"name": "run", "arguments": "git status"}</tool_call>',
        failed=("run",),
    ),
    Found(
        "hermes: two names",
        '<tool_call>{"name": "run", "name": "search", "arguments": {"query": "a", "command": "b"}}</tool_call>',
        failed=("run",),
    ),
    Found(
        "qwen: an argument twice",
        qwen(RUN).replace("</function>", "<parameter=command>\nls\n</parameter>\n</function>"),
        failed=("run",),
    ),
    Found(
        "glm: an argument twice",
        glm(RUN).replace("</tool_call>", "<arg_key>command</arg_key><arg_value>ls</arg_value></tool_call>"),
        failed=("run",),
    ),
)

AROUND = (
    Found(
        "words in Chinese right before",
        f"我先看一下状态。{hermes(RUN)}请稍等。",
        (RUN,),
        left="我先看一下状态。请稍等。",
    ),
    Found("words in Arabic", f"سأتحقق الآن.\n{qwen(RUN)}", (RUN,), left="سأتحقق الآن."),
    Found("behind a heading", f"## Step 1\n\n{qwen(RUN)}", (RUN,), left="## Step 1"),
    Found("behind a list", f"- look\n- tell\n\n{hermes(RUN)}", (RUN,), left="- look\n- tell"),
    Found(
        "behind a closed fence",
        f"I ran:\n```sh\nls\n```\nNow:\n{qwen(RUN)}",
        (RUN,),
        left="I ran:\n```sh\nls\n```\nNow:",
    ),
    Found("behind inline code", f"I use `run` for it.\n{hermes(RUN)}", (RUN,), left="I use `run` for it."),
    Found("behind a lone backtick", f"It is a ` in there.\n{hermes(RUN)}", (RUN,), left="It is a ` in there."),
    Found("behind a quotation", f'You said "look".\n{hermes(RUN)}', (RUN,), left='You said "look".'),
    Found("behind an apostrophe", f"Let's look, it's quick: {hermes(RUN)}", (RUN,), left="Let's look, it's quick:"),
    Found("behind bold words", f"**Looking** {hermes(RUN)}", (RUN,), left="**Looking**"),
    Found("behind a face", f"Sure 😊{qwen(RUN)}", (RUN,), left="Sure 😊"),
    Found("behind an example of it", f"Such as `<tool_call>`:\n\n{hermes(RUN)}", (RUN,), left="Such as `<tool_call>`:"),
    Found(
        "behind a fence of it",
        f"The form:\n```xml\n{qwen(ZONE)}\n```\nNow I do it:\n{qwen(RUN)}",
        (RUN,),
        left=f"The form:\n```xml\n{qwen(ZONE)}\n```\nNow I do it:",
    ),
    Found("one of each family", f"{hermes(RUN)}\n{qwen(TIME)}\n{glm(ZONE)}", (RUN, TIME, ZONE)),
    Found("line ends of Windows", qwen(RUN).replace("\n", "\r\n"), (RUN,)),
    Found("blank lines within", "<tool_call>\n\n\n" + dumped(RUN) + "\n\n\n</tool_call>", (RUN,)),
    Found(
        "a table before",
        f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{hermes(RUN)}",
        (RUN,),
        left="| a | b |\n|---|---|\n| 1 | 2 |",
    ),
    Found("a turn's token behind", f"{qwen(RUN)}<|im_end|>\n", (RUN,)),
    Found("an offered one and another", f"{hermes(RUN)}\n{hermes(('shell', {}))}", (RUN,), left=hermes(("shell", {}))),
    Found(
        "a made-up answer of the tool",
        f"{hermes(RUN)}\n<|im_end|>\n<|im_start|>user\n<tool_response>\nclean\n</tool_response><|im_end|>",
        (RUN,),
        left=None,
    ),
)

CHANNELS = (
    Found(
        "muse: thinking, then a call",
        "<|start|>assistant to=self<|message|>I list.<|eom|><|start|>assistant to=run<|message|><atem:function_calls>\n"
        '<atem:invoke name="run">\n<atem:parameter name="command">git status</atem:parameter>\n</atem:invoke>\n'
        "</atem:function_calls><|eom|>",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "muse: words, no header",
        'I look.\n<atem:function_calls>\n<atem:invoke name="run">\n<atem:parameter name="command">git status'
        "</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eot|>",
        (RUN,),
        left="I look.",
    ),
    Found(
        "kimi k3: thinking and an answer before",
        "<|open|>think<|sep|>I list.<|close|>think<|sep|><|open|>response<|sep|>I look.<|close|>response<|sep|>"
        '<|open|>tools<|sep|><|open|>call tool="run" index="1"<|sep|><|open|>argument key="command" type="string"'
        "<|sep|>git status<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        (RUN,),
        left="I look.",
        thought="I list.",
    ),
    Found(
        "apertus: thinking before",
        f'<|inner_prefix|>I list.<|inner_suffix|><|tools_prefix|>[{{"run": {GIT}}}]<|tools_suffix|>',
        (RUN,),
        thought="I list.",
    ),
    Found(
        "minimax m3: thinking before",
        '<mm:think>I list.</mm:think>]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="get_time">'
        "]<]minimax[>[</invoke>]<]minimax[>[</tool_call>",
        (TIME,),
        thought="I list.",
    ),
    Found(
        "harmony: two analyses, a preamble, a call",
        "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        f"{harmony(RUN)}<|call|>",
        (RUN,),
        left="I look.",
        thought="One.",
    ),
    Found(
        "granite: thinking before",
        f"<think>I list.</think><response>I look.</response>{hermes(RUN)}",
        (RUN,),
        left=None,
        thought="I list.",
    ),
)

CLIENTS = (
    none("cherry studio's form", f"<tool_use>\n<name>run</name>\n<arguments>{GIT}</arguments>\n</tool_use>"),
    none(
        "cline's form",
        "<execute_command>\n<command>git status</command>\n"
        "<requires_approval>false</requires_approval>\n</execute_command>",
    ),
    none("roo's form", "<read_file>\n<args>\n<file><path>a.py</path></file>\n</args>\n</read_file>"),
    none("qwen-agent's form", f"✿FUNCTION✿: run\n✿ARGS✿: {GIT}\n✿RESULT✿"),
    none(
        "open webui's page",
        '<details type="tool_calls" done="true" name="run" arguments="{&quot;command&quot;: &quot;ls&quot;}">\n'
        "<summary>Tool Executed</summary>\n</details>",
    ),
    none("tgi's form", '{"function": {"_name": "run", "command": "git status"}}'),
    none("gptme's form", f"@run(call-1): {GIT}\n"),
    none("aider's blocks", "a.py\n<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE\n"),
    none("an attribute for each argument", '<run command="git status" timeout="9"/>'),
    none("a shell's prompt", "$ run git status\n$ get_time"),
    none("openclaw's brackets", f"[run]\n{GIT}\n[END_TOOL_REQUEST]"),
    none("history of an agent", f"[Tool call: run]\nArguments: {GIT}\n[Tool result]\nclean"),
    none(
        "a function of a schema",
        '{"type": "function", "function": {"name": "run", "description": "Runs", "parameters": {"type": "object"}}}',
    ),
    none("words of a name", "Calling run with {command: git status} now."),
    none("a promise", "I'll now call the `run` tool with command `git status`."),
)

PAGES = (
    none(
        "a page of a template", "{% for tool in tools %}\n<tool_call>\n{{ tool | tojson }}\n</tool_call>\n{% endfor %}"
    ),
    none("a pattern", r"Use `<tool_call>\s*(\{.*?\})\s*</tool_call>` with DOTALL."),
    none("a pattern without marks", r"The pattern is <tool_call>\s*(.*?)\s*</tool_call> with DOTALL."),
    none(
        "a schema in the tag",
        '<tool_call>\n{"name": "run", "arguments": {"command": "string"}} is only a shape'.replace(
            "<tool_call>", "`<tool_call>`"
        ),
    ),
    none("placeholders", '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'),
    none("a name in brackets", "<function={name}><parameter={key}>{value}</parameter></function>"),
    none("a changelog", "- Parse `<tool_call>` blocks\n- Strip `[TOOL_CALLS]` from content\n- Handle `<|python_tag|>`"),
    none("a list of tokens", "Tokens: <|tool_call|>, <|/tool_call|>, <|tool_response|>, <|im_end|>."),
    none("a question", "Should <tool_call> be closed with </tool_call> or with <|im_end|>?"),
    none("a code comment", f"```js\n// {line(hermes(RUN))}\nparse(text)\n```"),
    none("a string in code", f"```py\nx = '{line(qwen(RUN))}'\n```"),
    none(
        "a unified diff without a fence",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + line(hermes(TIME)) + "\n+" + line(hermes(RUN)),
    ),
    none("a log line of a server", "2026-05-04 10:00:01 WARNING qwen tool call parsing failed: " + line(qwen(RUN))),
    none(
        "a nested list with a fence",
        "- Forms:\n  - Qwen:\n\n    ```xml\n"
        + "\n".join("    " + row for row in qwen(RUN).split("\n"))
        + "\n    ```\n",
    ),
    none("a quotation of a quotation", "> > " + line(hermes(RUN)) + "\n>\n> he said."),
    none("in French marks, spaced", f"Il a écrit « {line(hermes(RUN))} » puis rien."),
    none("an admonition", f"!!! note\n\n    {line(hermes(RUN))}\n"),
    none(
        "a search's lines",
        "parsers/qwen.py:12: " + line(function(RUN)) + "\nparsers/qwen.py:40: " + line(function(TIME)),
    ),
    none("a samp element", f"<samp>{line(hermes(RUN))}</samp> is what it prints."),
    none("a textarea", f"<textarea>\n{qwen(RUN)}\n</textarea>"),
    none("CDATA", f"<![CDATA[{qwen(RUN)}]]>"),
    none("JSON that holds one", json.dumps({"text": hermes(RUN), "ok": True})),
    none("a Python literal that holds one", "text = " + repr(hermes(RUN)) + "\nassert not parse(text)"),
    none("Kimi's token in a list", "1. <|tool_call_begin|>\n2. <|tool_call_argument_begin|>\n3. <|tool_call_end|>"),
    none("GLM's tags in a list", "1. <arg_key>\n2. <arg_value>\n3. </tool_call>"),
    none("a marker at the very end", "The model stops at <tool_call>"),
    none("Kimi's section as words", "`" + section(kimi(RUN, "functions.run:0")) + "` leaks on NIM."),
)

DRAFT = line(hermes(ZONE))
SEVERAL = (
    Found("qwen: a word before the wrapper's end", f"<tool_call>\n{function(RUN)} ok\n</tool_call>", (RUN,), left=None),
    Found(
        "qwen: words behind the wrapper's beginning",
        f"<tool_call>Let me check.\n{function(RUN)}\n</tool_call>",
        (RUN,),
        left=None,
    ),
    Found("required: a list with parameters", f"[{dumped(RUN, 'parameters')}]", (RUN,)),
    Found(
        "kimi: blanks around all tokens",
        f"<think>I list. <|tool_calls_section_begin|> <|tool_call_begin|> functions.run:0 "
        "<|tool_call_argument_begin|> "
        f"{GIT} <|tool_call_end|> <|tool_calls_section_end|>",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "kimi: an offered one and another",
        section(kimi(RUN, "functions.run:0"), kimi(("shell", {}), "functions.shell:1")),
        (RUN,),
        left=None,
    ),
    Found(
        "hermes: a broken one before",
        f'<tool_call>\n{{"name": "run", "arguments": {{"command": }}\n</tool_call>\n{hermes(TIME)}',
        (TIME,),
        failed=("run",),
    ),
    Found(
        "kimi: the second is cut",
        section(kimi(RUN, "functions.run:0"), kimi(ZONE, "functions.get_time:1"))[:-60],
        (RUN,),
        failed=("get_time",),
    ),
    Found("dsml: the second is cut", dsml(RUN, ZONE)[:-60], (RUN,), failed=("get_time",)),
    Found("glm: the second is cut", glm(RUN) + "\n" + glm(ZONE)[:-20], (RUN,), failed=("get_time",)),
    Found(
        "mistral: the second is cut",
        f'[TOOL_CALLS]run[ARGS]{GIT}[TOOL_CALLS]get_time[ARGS]{{"zone": "Asia',
        (RUN,),
        failed=("get_time",),
    ),
    Found(
        "gemma: the second is cut",
        '<|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|><|tool_call>call:get_time{zone:<|"|>Asia',
        (RUN,),
        failed=("get_time",),
    ),
    Found("harmony: the second is cut", harmony(RUN) + "<|call|>" + harmony(ZONE)[:-6], (RUN,), failed=("get_time",)),
    Found(
        "minimax: the second is cut",
        f"<minimax:tool_call>\n{invoke(RUN)}\n{invoke(ZONE)[:-30]}",
        (RUN,),
        failed=("get_time",),
    ),
    Found(
        "gemma: thought, words, call, words",
        '<|channel>thought\nI list.<channel|>I look. <|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|>'
        " Done.",
        (RUN,),
        left="I look.  Done.",
        thought="I list.",
    ),
    Found(
        "hermes: big numbers",
        hermes(("run", {"command": "a", "timeout": 12345678901234567890})),
        (("run", {"command": "a", "timeout": 12345678901234567890}),),
    ),
    Found(
        "hermes: a deep value",
        hermes(("book", {"trip": {"a": {"b": {"c": [[1, [2]], {"d": None}]}}}})),
        (("book", {"trip": {"a": {"b": {"c": [[1, [2]], {"d": None}]}}}}),),
    ),
    Found(
        "hermes: the marker of another family in a value",
        hermes(("search", {"query": "[TOOL_CALLS] and <|tool_call_begin|>"})),
        (("search", {"query": "[TOOL_CALLS] and <|tool_call_begin|>"}),),
    ),
    Found(
        "qwen: the marker of another family in a value",
        qwen(("search", {"query": "[TOOL_CALLS]run[ARGS]{}"})),
        (("search", {"query": "[TOOL_CALLS]run[ARGS]{}"}),),
    ),
    Found(
        "mistral: words after a call, then a call",
        f"[TOOL_CALLS]run[ARGS]{GIT}\nThen:\n[TOOL_CALLS]get_time[ARGS]{{}}",
        (RUN, TIME),
        left="Then:",
    ),
    Found(
        "a call in a quotation, then one that is meant",
        f'It wrote "{DRAFT}" before.\n\n{hermes(RUN)}',
        (RUN,),
        left=f'It wrote "{DRAFT}" before.',
    ),
    Found(
        "thinking tags inside of a value",
        hermes(("create_file", {"path": "a", "content": "<think>x</think>"})),
        (("create_file", {"path": "a", "content": "<think>x</think>"}),),
    ),
    Found(
        "thinking that holds a fence, then a call",
        f"<think>\n```\nls\n```\n</think>\n{qwen(RUN)}",
        (RUN,),
        thought="```\nls\n```",
    ),
    Found(
        "a draft of Kimi's in thinking, then its call",
        f"<think>Try {section(kimi(ZONE, 'functions.get_time:0'))}</think>{section(kimi(RUN, 'functions.run:0'))}",
        (RUN,),
        thought=f"Try {section(kimi(ZONE, 'functions.get_time:0'))}",
    ),
    Found(
        "a draft in thinking, a bare call", f"<think>Try {DRAFT}</think>{dumped(RUN)}", (RUN,), thought=f"Try {DRAFT}"
    ),
    Found(
        "a draft in thinking, a call that is cut",
        f"<think>Try {DRAFT}</think>{hermes(RUN)[:-25]}",
        failed=("run",),
        thought=f"Try {DRAFT}",
    ),
    Found(
        "a draft in thinking, a name that was not offered",
        f"<think>Try {DRAFT}</think>{hermes(('shell', {}))}",
        left=hermes(("shell", {})),
        thought=f"Try {DRAFT}",
    ),
    Found(
        "claude: the old form",
        '<function_calls>\n<invoke name="run">\n<command>git status</command>\n</invoke>\n</function_calls>',
        failed=("run",),
        left=None,
    ),
    Found(
        "glm: JSON in the value of an object",
        glm(("book", {"trip": '{"from": "Oslo", "n": 1}'})),
        (("book", {"trip": {"from": "Oslo", "n": 1}}),),
    ),
    Found(
        "longcat: a JSON string for arguments",
        f'<longcat_tool_call>{{"name": "run", "arguments": {json.dumps(GIT)}}}</longcat_tool_call>',
        (RUN,),
    ),
    Found(
        "ernie: behind thinking and line ends", f"I list.\n</think>\n\n\n{hermes(RUN)}\n\n\n", (RUN,), thought="I list."
    ),
    Found(
        "deepseek: a line end behind the separator",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>\n{GIT}\n<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (RUN,),
    ),
    Found(
        "lm studio: in thinking that nothing follows",
        f"<think>I list. [TOOL_REQUEST]{dumped(RUN)}[END_TOOL_REQUEST]",
        (RUN,),
        thought="I list.",
    ),
)

LONE = (
    none("a lone closing tag behind words", "It is all done.</tool_call>"),
    none("Kimi's lone end behind words", "It is all done.<|tool_calls_section_end|>"),
    none("gemma: two thoughts, words between", "<b>interlude <|channel>thought\nsecond<channel|>done"),
    none("lm studio: quoted", f'It printed "[TOOL_REQUEST]{dumped(RUN)}[END_TOOL_REQUEST]" there.'),
    none("lm studio: in code", f"`[TOOL_REQUEST]{dumped(RUN)}[END_TOOL_REQUEST]`"),
)

SLIPS = (
    Found("qwen: a name without its bracket", "<tool_call>\n<function=get_time</function>\n</tool_call>", (TIME,)),
    Found(
        "qwen: thinking closed twice", f"<think>I list.</think>\n\n</think>\n\n{qwen(RUN)}", (RUN,), thought="I list."
    ),
    Found("qwen: an empty block, then words", "<tool_call>\n</tool_call>\nAll is clean.", left=None),
    Found(
        "gemma: thinking that is not closed",
        '<|channel>thought\nI list.<|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|>',
        (RUN,),
        thought="I list.",
    ),
    Found("gemma: no braces", "<|tool_call>call:get_time<tool_call|>", (TIME,)),
    Found(
        "gemma: a comma too many", '<|tool_call>call:run{command:<|"|>git status<|"|>,timeout:9,}<tool_call|>', (RUN9,)
    ),
    Found(
        "gemma: an empty list, an empty object",
        '<|tool_call>call:search{query:<|"|>a<|"|>,sites:[]}<tool_call|>',
        (("search", {"query": "a", "sites": []}),),
    ),
    Found(
        "gemma: a list of texts",
        '<|tool_call>call:search{query:<|"|>a<|"|>,sites:[<|"|>b<|"|>,<|"|>c, d<|"|>]}<tool_call|>',
        (("search", {"query": "a", "sites": ["b", "c, d"]}),),
    ),
    Found(
        "gemma: white space",
        '<|tool_call>call:run{ command: <|"|>git status<|"|>,\n  timeout: 9 }<tool_call|>',
        (RUN9,),
    ),
    Found(
        "gemma: a line end and quotes in a text",
        '<|tool_call>call:create_file{path:<|"|>a<|"|>,content:<|"|>a "b"\n\'c\' {d}\\n<|"|>}<tool_call|>',
        (("create_file", {"path": "a", "content": "a \"b\"\n'c' {d}\\n"}),),
    ),
    Found(
        "gemma: tokens around keys", '<|tool_call>call:run{<|"|>command<|"|>:<|"|>git status<|"|>}<tool_call|>', (RUN,)
    ),
    Found("gemma: words without tokens", "<|tool_call>call:run{command:git status}<tool_call|>", (RUN,)),
    Found("gemma: JSON", f"<|tool_call>call:run{GIT}<tool_call|>", (RUN,)),
    Found("gemma: cut in a text", '<|tool_call>call:run{command:<|"|>git st', failed=("run",)),
    Found(
        "gemma: the turn's token behind",
        '<|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|><turn|>',
        (RUN,),
    ),
    Found(
        "gemma: the answer's token behind",
        '<|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|><|tool_response>',
        (RUN,),
    ),
    Found(
        "functiongemma: two",
        "<start_function_call>call:run{command:<escape>git status<escape>}<end_function_call>"
        "<start_function_call>call:get_time{}<end_function_call>",
        (RUN, TIME),
    ),
    Found(
        "gemma: a call in its thinking, then an answer",
        "<|channel>thought\nTry <|tool_call>call:get_time{}<tool_call|><channel|>Done.",
        left="Done.",
        thought="Try <|tool_call>call:get_time{}<tool_call|>",
    ),
    Found("deepseek: thinking that is not closed", f"<think>I list.\n{dsml(RUN)}", (RUN,), thought="I list."),
    Found(
        "mistral: thinking that is not closed", f"[THINK]I list.[TOOL_CALLS]run[ARGS]{GIT}", (RUN,), thought="I list."
    ),
    Found(
        "harmony: analysis that is not closed",
        f"<|channel|>analysis<|message|>I list.{harmony(RUN)}<|call|>",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "cohere: no thinking, words",
        f'I look.<|START_ACTION|>[{{"tool_call_id":"0","tool_name":"run","parameters":{GIT}}}]'
        "<|END_ACTION|><|END_OF_TURN_TOKEN|>",
        (RUN,),
        left=None,
    ),
    Found("llama 3: a Python tag and words", f"<|python_tag|>{dumped(RUN, 'parameters')}<|eom_id|>\n", (RUN,)),
    Found("llama 3: a function's tag", f"<function=run>{GIT}</function><|eom_id|>", (RUN,)),
    Found("llama 3: arguments under another key", f"<|python_tag|>{dumped(RUN)}", (RUN,)),
    Found(
        "hunyuan 4: a suffix",
        "<tool_calls:x1><tool_call:x1>run<arg_key:x1>command</arg_key:x1>"
        "<arg_value:x1>git status</arg_value:x1></tool_call:x1></tool_calls:x1>",
        (RUN,),
    ),
    Found("phi 4: functools, two", f"functools[{dumped(RUN)},{dumped(TIME)}]", (RUN, TIME)),
    Found(
        "exaone: side by side",
        f"<tool_call>{dumped(RUN)}</tool_call><tool_call>{dumped(TIME)}</tool_call>",
        (RUN, TIME),
    ),
    Found("nemotron: one object, no list", f"<TOOLCALL>{dumped(RUN)}</TOOLCALL>", (RUN,)),
    Found(
        "olmo: a quoted line end",
        '<function_calls>\ncreate_file(path="a", content="b\\nc")\n</function_calls>',
        (("create_file", {"path": "a", "content": "b\nc"}),),
    ),
    Found(
        "kimi: thinking closed behind it", f"I list.{section(kimi(RUN, 'functions.run:0'))}</think>", (RUN,), left=None
    ),
)

LOST = (
    Found("bare: a tag that nothing opens", f"{dumped(RUN)}\n</function_call>", (RUN,)),
    Found("bare: a list and a tag that nothing opens", f"[{dumped(RUN)}, {dumped(TIME)}]</TOOLCALL>", (RUN, TIME)),
    Found("bare: a list and a token that nothing opens", f"[{dumped(RUN)}][/TOOL_CALLS]", (RUN,)),
    Found(
        "hermes: thinking ends in the tag around the call",
        f"<think>I look.\n<tool_call>\n{dumped(RUN)}\n</think>\n</tool_call>",
        (RUN,),
        thought="I look.",
    ),
    Found(
        "qwen: thinking ends in the tag around the call",
        f"<think>I look.\n<tool_call>\n{function(RUN)}\n</think>\n</tool_call>\n",
        (RUN,),
        thought="I look.",
    ),
    Found("qwen: a lone tag of thinking in the tag", f"<tool_call>\n{function(RUN)}\n</think>\n</tool_call>", (RUN,)),
    Found("qwen: a turn's token behind thinking", f"<think>{qwen(RUN)}</think>\n<|im_end|>", (RUN,)),
    Found("harmony: a recipient without a prefix", f"commentary to=run code {GIT}", (RUN,)),
    Found("harmony: a recipient without a prefix, glued", f"commentary to=run json{GIT}", (RUN,)),
)
INVOKED = """<|content_invoke_tool_json|>{"name": "run", "args": {"command": "git status"}}<|end_message|>"""
ATEM = (
    '<atem:function_calls><atem:invoke name="run"><atem:parameter name="command">git status</atem:parameter>'
    "</atem:invoke></atem:function_calls>"
)
#: Messages behind a prompt that has begun the header of a call.
PROMPTED = (
    Found("inkling: behind a prompt", f"run{INVOKED}<|message_model|>run{INVOKED}", (RUN, RUN)),
    Found("inkling: behind a prompt, another name", f"ping{INVOKED}", failed=("run",)),
    Found("muse: behind a prompt, words", f" to=run<|message|>{ATEM}<|eot|> Now I wait.", (RUN,), left="Now I wait."),
    Found("muse: behind a prompt, cut", f"to=run<|message|>{ATEM[:90]}", failed=("run",)),
    Found("muse: behind a prompt, the header of another tool", f"to=ping<|message|>{ATEM}", failed=("run",)),
    Found("harmony: behind a prompt, no prefix", f" to=run<|channel|>commentary json<|message|>{GIT}<|call|>", (RUN,)),
)
LATER_MEANT = (*PROMPTED, *LOST, *PYTHON, *VALUES, *AROUND, *CHANNELS, *SEVERAL, *SLIPS)
LATER_ALIKE = (
    Found(
        "hermes: thinking ends in the tag around a call, an answer follows",
        f"<think>I look.\n<tool_call>\n{dumped(RUN)}\n</think>\n</tool_call> Hello.",
        left="</tool_call> Hello.",
        thought=f"I look.\n<tool_call>\n{dumped(RUN)}",
    ),
    none(
        "harmony: a recipient in a sentence",
        "commentary to=run is a header that parsers forget, as is commentary to=search.",
    ),
    none("harmony: a recipient, words, an object", f"The header is\ncommentary to=run with {GIT} behind it."),
    none("harmony: a recipient and an object", f"analysis to=run {GIT}"),
    none("harmony: a recipient that nobody offered", f"commentary to=deploy code {GIT}"),
    none("inkling: the name of a tool and an angle", "run < input.txt reads a file."),
    none("muse: behind a prompt, a tool that nobody offered", f"to=deploy<|message|>{ATEM.replace('run', 'deploy')}"),
    none("bare: words before a tag that nothing opens", f"So:\n[{dumped(RUN)}]</TOOLCALL>"),
    *CLIENTS,
    *PAGES,
    *LONE,
)

"""Answers as coding agents met them in 2026, each with the right reading by our policies, written down before it was
played. The kinds come from public reports on local servers and clients; words, names and values are our own.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from dragoman import _json
from dragoman.types import Tool


def _tool(name: str, required: tuple[str, ...] = (), **properties: dict[str, object]) -> Tool:
    return Tool(name, "", _json.raw({"type": "object", "properties": properties, "required": list(required)}))


TEXT, INTEGER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "boolean"))
TOOLS = (
    _tool("bash", ("command",), command=TEXT, timeout=INTEGER, background=BOOLEAN),
    _tool("read", ("path",), path=TEXT, offset=INTEGER, limit=INTEGER),
    _tool("write", ("path", "content"), path=TEXT, content=TEXT),
    _tool("todo", ("items",), items={"type": "array", "items": {"type": "object"}}),
    _tool("web_search", ("query",), query=TEXT, count=INTEGER),
    _tool("now"),
)


class Found(NamedTuple):
    """One answer. `calls`: those that are meant; `failed`: names of those that cannot be read; `left`: the text that
    stays, outer white space apart (None: all of it); `thought`: the thinking."""

    name: str
    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    failed: tuple[str, ...] = ()
    left: str | None = ""
    thought: str = ""


LS = ("bash", {"command": "ls src"})
LS5 = ("bash", {"command": "ls src", "timeout": 5})
READ = ("read", {"path": "src/app.py"})
NOW = ("now", {})


def hermes(*calls: tuple[str, dict[str, Any]], end: str = "\n</tool_call>") -> str:
    written = (
        "<tool_call>\n" + json.dumps({"name": name, "arguments": given}, ensure_ascii=False) for name, given in calls
    )
    return "\n".join(one + end for one in written)


def qwen(name: str, given: dict[str, Any], lead: str = "<tool_call>\n", end: str = "\n</tool_call>") -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in given.items())
    return f"{lead}<function={name}>\n{inner}</function>{end}"


H_LS, H_READ = hermes(LS), hermes(READ)
OPEN = hermes(LS, end="")
MISTRAL = '[TOOL_CALLS]bash[ARGS]{"command": "ls src"}'
CODE = 'def f(x):\n    return {"a": "}}", "b": [x, \'{\']}\n'
PAGE = "<div class='a'>\n  <p>5 < 6 && true</p>\n</div>"


def none(name: str, text: str) -> Found:
    """An answer in which no call is meant."""
    return Found(name, text, left=None)


HERMES = (
    Found("hermes: words before", f"I look first.\n\n{H_LS}", (LS,), left="I look first."),
    Found("hermes: words on the call's line", f"I look first. {H_LS}", (LS,), left="I look first."),
    Found("hermes: no closing tag, words behind", f"{OPEN}\nI wait for the list.", (LS,), left="I wait for the list."),
    Found("hermes: no closing tag, quoted words", f'{OPEN}\n"Listed", so to say.', (LS,), left='"Listed", so to say.'),
    Found("hermes: no closing tag, a face", f"{OPEN}\n:)", (LS,), left=":)"),
    Found("hermes: no closing tag, an arrow", f"{OPEN}\n=> app.py", (LS,), left="=> app.py"),
    Found("hermes: no closing tag, a source", f"{OPEN}\n[1] src/app.py", (LS,), left="[1] src/app.py"),
    Found("hermes: no closing tag, a made-up result", f'{OPEN}\n{{"exit": 0}}', (LS,), left='{"exit": 0}'),
    Found("hermes: no closing tag, glued words", f"{OPEN}Listed.", (LS,), left="Listed."),
    Found("hermes: no closing tag, its key again", f"{OPEN}\ncommand: ls src", (LS,), left="command: ls src"),
    Found("hermes: no closing tag, a key it lacks", f"{OPEN}\ntimeout: 5", failed=("bash",), left="timeout: 5"),
    Found("hermes: words between", f"{H_LS}\nThen the file:\n{H_READ}", (LS, READ), left="Then the file:"),
    Found("hermes: side by side", f"{H_LS}{H_READ}", (LS, READ)),
    Found("hermes: two objects in one tag", f"{OPEN}\n{hermes(READ, end='')[12:]}\n</tool_call>", (LS, READ)),
    Found("hermes: the same twice", f"{H_LS}\n{H_LS}", (LS, LS)),
    Found("hermes: closing tag twice", f"{H_LS}\n</tool_call>", (LS,)),
    Found("hermes: a stop token behind", f"{OPEN}<|im_end|>", (LS,)),
    Found("hermes: one brace too many", f"{OPEN}}}\n</tool_call>", (LS,)),
    Found("hermes: opening tag twice", f"<tool_call>\n{H_LS}", (LS,)),
    Found("hermes: closed early", f'{OPEN}, "timeout": 5}}\n</tool_call>', failed=("bash",)),
    Found("hermes: closed early, words between", f'{OPEN}\nand\n"timeout": 5}}}}\n</tool_call>', failed=("bash",)),
    Found(
        "hermes: quotation marks that are not escaped",
        '<tool_call>\n{"name": "bash", "arguments": {"command": "echo "}}" && ls src"}}\n</tool_call>',
        failed=("bash",),
    ),
    Found("hermes: words before its closing tag", f"{OPEN}\nListed.\n</tool_call>", failed=("bash",)),
    Found(
        "hermes: a Python dict",
        "<tool_call>\n{'name': 'bash', 'arguments': {'command': 'ls src', 'background': True}}\n</tool_call>",
        (("bash", {"command": "ls src", "background": True}),),
    ),
    Found(
        "hermes: arguments in a string",
        '<tool_call>\n{"name": "bash", "arguments": "{\\"command\\": \\"ls src\\"}"}\n</tool_call>',
        (LS,),
    ),
    Found("hermes: parameters", H_LS.replace("arguments", "parameters"), (LS,)),
    Found("hermes: no arguments", '<tool_call>\n{"name": "now"}\n</tool_call>', (NOW,)),
    Found("hermes: a prefix", H_LS.replace('"bash"', '"functions.bash"'), (LS,)),
    Found(
        "hermes: a made-up response",
        f"{H_LS}\n<tool_response>\napp.py\n</tool_response>",
        (LS,),
        left="<tool_response>\napp.py\n</tool_response>",
    ),
    Found("hermes: Chinese", f"我先看一下目录。\n{H_LS}\n请稍等。", (LS,), left="我先看一下目录。\n\n请稍等。"),
    Found("hermes: Russian", f"Сначала посмотрю.\n{OPEN}\nЖду ответа.", (LS,), left="Сначала посмотрю.\n\nЖду ответа."),
    Found(
        "hermes: code in a value",
        hermes(("write", {"path": "a.py", "content": CODE})),
        (("write", {"path": "a.py", "content": CODE}),),
    ),
    Found(
        "hermes: line ends as they stand",
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls\npwd"}}\n</tool_call>',
        (("bash", {"command": "ls\npwd"}),),
    ),
    Found("hermes: behind thinking", f"I need the list.\n</think>\n\n{H_LS}", (LS,), thought="I need the list."),
    Found(
        "hermes: in thinking that an answer follows",
        f"<think>\nPerhaps {H_LS}\n</think>\nNothing to do.",
        left="Nothing to do.",
        thought=f"Perhaps {H_LS}",
    ),
    Found("hermes: in thinking that nothing follows", f"<think>\nI list.\n{H_LS}", (LS,), thought="I list."),
    Found("hermes: cut", '<tool_call>\n{"name": "bash", "arguments": {"command": "ls sr', failed=("bash",)),
)

QWEN = (
    Found("qwen: words before", "I look.\n\n" + qwen(*LS5), (LS5,), left="I look."),
    Found("qwen: no opening tag", "I look.\n\n" + qwen(*LS, lead=""), (LS,), left="I look."),
    Found("qwen: no tags around", "I look.\n" + qwen(*LS, lead="", end=""), (LS,), left="I look."),
    Found("qwen: words behind", qwen(*LS) + "\nI wait.", (LS,), left="I wait."),
    Found("qwen: two functions in one tag", qwen(*LS, end="\n") + qwen(*READ, lead=""), (LS, READ)),
    Found("qwen: two tags", qwen(*LS) + "\n" + qwen(*READ), (LS, READ)),
    Found(
        "qwen: a page as a value",
        qwen("write", {"path": "a.html", "content": PAGE}),
        (("write", {"path": "a.html", "content": PAGE}),),
    ),
    Found(
        "qwen: code as a value",
        qwen("write", {"path": "a.py", "content": CODE}),
        (("write", {"path": "a.py", "content": CODE}),),
    ),
    Found(
        "qwen: a fence as a value",
        qwen("write", {"path": "a.md", "content": "```sh\nls\n```"}),
        (("write", {"path": "a.md", "content": "```sh\nls\n```"}),),
    ),
    Found(
        "qwen: a boolean",
        qwen("bash", {"command": "ls", "background": "True"}),
        (("bash", {"command": "ls", "background": True}),),
    ),
    Found("qwen: no parameters", qwen("now", {}), (NOW,)),
    Found("qwen: no end", "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>", failed=("bash",)),
    Found("qwen: behind thinking", f"<think>\nThe list.\n</think>\n{qwen(*LS)}", (LS,), thought="The list."),
    none(
        "qwen: torn tags without a name",
        "<name>task\n</parameter>\n<parameter=description>\nList\n</parameter>\n</function>",
    ),
)

MISTRALS = (
    Found("mistral: words before", f"I look.{MISTRAL}", (LS,), left="I look."),
    Found("mistral: two", f'{MISTRAL}[TOOL_CALLS]read[ARGS]{{"path": "src/app.py"}}', (LS, READ)),
    Found("mistral: a list", f"[TOOL_CALLS][{hermes(LS, end='')[12:]}]", (LS,)),
    Found("mistral: no [ARGS]", MISTRAL.replace("[ARGS]", ""), (LS,)),
    Found("mistral: an end token", f"{MISTRAL}</s>", (LS,)),
    Found("mistral: words behind", f"{MISTRAL}\nI wait.", (LS,), left="I wait."),
    Found("mistral: glued words behind", f"{MISTRAL}I wait.", (LS,), left="I wait."),
    Found("mistral: a list of words behind", f"{MISTRAL}\n- one (1)\n- two: 2\n", (LS,), left="- one (1)\n- two: 2"),
    Found("mistral: closed early", f'{MISTRAL}, "timeout": 5}}', failed=("bash",), left=None),
    Found("mistral: closed early, a line further", f'{MISTRAL}\n"timeout": 5}}', failed=("bash",), left=None),
    Found("mistral: closed early, words between", f'{MISTRAL}\nNow:\n"timeout": 5}}', failed=("bash",), left=None),
    Found("mistral: closed inside of a text", f'{MISTRAL} | sort\nand more"}}', failed=("bash",), left=None),
    none("mistral: a plan", "[TOOL_CALLS] I will list the files first."),
)

BARE = (
    Found("bare: an object", '{"name": "bash", "parameters": {"command": "ls src"}}', (LS,)),
    Found("bare: two objects", '{"name": "now"}\n{"name": "bash", "arguments": {"command": "ls src"}}', (NOW, LS)),
    Found("bare: a list", '[{"name": "bash", "arguments": {"command": "ls src"}}]', (LS,)),
    Found("bare: a fence", '```json\n{"name": "bash", "arguments": {"command": "ls src"}}\n```', (LS,)),
    Found("bare: a Python list", '[bash(command="ls src"), now()]', (LS, NOW)),
    Found("bare: a line of Python", "bash(command='ls src')", (LS,)),
    Found("bare: brackets of a template", '[Calling tool: bash({"command": "ls src"})]', (LS,)),
    Found("bare: Gemma's words", 'call:bash{command:<|"|>ls src<|"|>}', (LS,)),
    none("bare: prose behind", '{"name": "bash", "parameters": {"command": "ls src"}}\nThat lists the files.'),
    none("bare: prose before", 'I would call {"name": "bash", "parameters": {"command": "ls src"}}'),
    none("bare: an answer", '{"name": "bash", "version": "5.2", "license": "GPL"}'),
    none("bare: another tool", '{"name": "list_files", "arguments": {"path": "src"}}'),
    none("bare: a wrong type", '{"name": "todo", "arguments": {"items": 5}}'),
    none(
        "bare: a fence with prose",
        'Like so:\n```json\n{"name": "bash", "arguments": {"command": "ls src"}}\n```\nDone.',
    ),
)

OTHERS = (
    Found("llama: a tag", '<|python_tag|>{"name": "bash", "parameters": {"command": "ls src"}}<|eom_id|>', (LS,)),
    Found("llama: a function", 'Sure.\n<function=bash>{"command": "ls src"}</function>', (LS,), left="Sure."),
    Found("llama 4: Python", '<|python_start|>[bash(command="ls src")]<|python_end|>', (LS,)),
    Found("llama 4: a face behind", '<|python_start|>[bash(command="ls src")]\n:)', (LS,), left=":)"),
    Found(
        "llama 4: closed early", "<|python_start|>[bash(command='ls src'), timeout=5)]<|python_end|>", failed=("bash",)
    ),
    Found("lfm: Python", "<|tool_call_start|>[bash(command='ls src')]<|tool_call_end|>I wait.", (LS,), left="I wait."),
    Found(
        "deepseek: V3.1",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>bash<｜tool▁sep｜>{"command": "ls src"}'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        (LS,),
    ),
    Found(
        "deepseek: V3 in a fence",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>bash\n```json\n"
        '{"command": "ls src"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        (LS,),
    ),
    Found(
        "deepseek: V4 tags",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="bash">\n<｜DSML｜parameter name="command" '
        'string="true">ls src</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        (LS,),
    ),
    Found(
        "kimi: a section",
        "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0"
        '<|tool_call_argument_begin|>{"command": "ls src"}<|tool_call_end|><|tool_calls_section_end|>',
        (LS,),
        left="I look.",
    ),
    Found(
        "kimi: closed early",
        '<|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>{"command": "ls src"}\n'
        '"timeout": 5}<|tool_call_end|>',
        failed=("bash",),
    ),
    Found(
        "glm: pairs",
        "I look. <tool_call>bash<arg_key>command</arg_key><arg_value>ls src</arg_value></tool_call>",
        (LS,),
        left="I look.",
    ),
    Found(
        "glm: behind thinking",
        "The list.</think><tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls src</arg_value>\n</tool_call>",
        (LS,),
        thought="The list.",
    ),
    Found(
        "harmony: a channel",
        '<|channel|>commentary to=functions.bash <|constrain|>json<|message|>{"command": "ls src"}<|call|>',
        (LS,),
    ),
    Found("harmony: tokens taken away", 'commentary to=functions.bash json{"command": "ls src"}', (LS,)),
    Found(
        "harmony: words behind",
        '<|channel|>commentary to=functions.bash json<|message|>{"command": "ls src"}\nListed.',
        (LS,),
        left="Listed.",
    ),
    Found(
        "gemma: tags",
        'I look.\n<|tool_call>call:bash{command:<|"|>ls src<|"|>,timeout:5}<tool_call|>',
        (LS5,),
        left="I look.",
    ),
    Found(
        "gemma: closed early",
        '<|tool_call>call:bash{command:<|"|>ls src<|"|>},timeout:5}<tool_call|>',
        failed=("bash",),
    ),
    Found(
        "minimax: tags",
        '<minimax:tool_call>\n<invoke name="bash">\n<parameter name="command">ls src</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        (LS,),
    ),
    Found(
        "claude: tags",
        'I look.\n<invoke name="bash">\n<parameter name="command">ls src</parameter>\n</invoke>',
        (LS,),
        left="I look.",
    ),
    Found("granite: a list", '<|tool_call|>[{"name": "bash", "arguments": {"command": "ls src"}}]', (LS,)),
    Found(
        "granite: a list, a result behind",
        '<|tool_call|>[{"name": "bash", "arguments": {"command": "ls src"}}]\n[{"exit": 0}]',
        (LS,),
        left='[{"exit": 0}]',
    ),
    Found("phi: a list", 'functools[{"name": "bash", "arguments": {"command": "ls src"}}]', (LS,)),
    Found(
        "cohere: a list",
        '<|START_ACTION|>[{"tool_name": "bash", "parameters": {"command": "ls src"}}]<|END_ACTION|>',
        (LS,),
    ),
    Found("nemotron: a list", '<TOOLCALL>[{"name": "bash", "arguments": {"command": "ls src"}}]</TOOLCALL>', (LS,)),
    Found("functionary: two", '>>>bash\n{"command": "ls src"}>>>now\n{}', (LS, NOW)),
    Found(
        "cline: a server's tool",
        "<use_mcp_tool>\n<server_name>shell</server_name>\n<tool_name>bash</tool_name>\n<arguments>\n"
        '{"command": "ls src"}\n</arguments>\n</use_mcp_tool>',
        (LS,),
    ),
    Found(
        "longcat: an object",
        '<longcat_tool_call>{"name": "bash", "arguments": {"command": "ls src"}}</longcat_tool_call>',
        (LS,),
    ),
    Found(
        "seed: tags",
        "<seed:tool_call>\n<function=bash>\n<parameter=command>ls src</parameter>\n</function>\n</seed:tool_call>",
        (LS,),
    ),
    Found(
        "inkling: an object",
        '<|message_model|>bash<|content_invoke_tool_json|>{"name": "bash", "args": {"command": "ls src"}}'
        "<|end_message|>",
        (LS,),
    ),
    Found("apertus: a list", '<|tools_prefix|>[{"bash": {"command": "ls src"}}]<|tools_suffix|>', (LS,)),
)

SHOWN = (
    none("shown: a fence", f"Write it so:\n\n```xml\n{H_LS}\n```\n\nThat is all."),
    none("shown: a fence that is open", f"Write it so:\n```\n{H_LS}"),
    none("shown: inline", f"Write `{H_LS.replace(chr(10), '')}` for it."),
    none("shown: a marker inline", "The model leaves out `<tool_call>` and begins with `<function=bash>`."),
    none("shown: quoted", f'The log has "{H_LS.replace(chr(10), "")}" in it.'),
    none("shown: in guillemets", f"Le modèle écrit «{MISTRAL}», rien de plus."),
    none("shown: in Chinese marks", f"模型输出“{MISTRAL}”，没有执行。"),
    none("shown: a block quote", "It said:\n\n> " + H_LS.replace("\n", "\n> ")),
    none("shown: indented", "Like so:\n\n    " + H_LS.replace("\n", "\n    ") + "\n\nDone."),
    none("shown: a page", f"<pre>\n{H_LS}\n</pre>"),
    none("shown: a diff", "The patch:\n\n```diff\n-" + H_LS.replace("\n", "\n-") + "\n```"),
    none("shown: a table", "| form | text |\n|---|---|\n| hermes | `<tool_call>{…}</tool_call>` |"),
    none("shown: half a marker", "It begins with <tool_ca"),
    none("shown: another tool", '<tool_call>\n{"name": "shell", "arguments": {"command": "ls"}}\n</tool_call>'),
    none("shown: an empty tag", "The template adds <tool_call></tool_call> at the end."),
    none("shown: a name alone", "Now I call bash with `ls src`, then now()."),
    none("shown: an example", f"<example>\n{H_LS}\n</example>"),
    none("shown: a here-document", f"Run:\ncat <<'EOF' > a.txt\n{H_LS}\nEOF\n"),
    none("shown: code of Python", "```python\nbash(command='ls src')\n```\nis what I would run."),
    none("shown: JSON in words", 'The schema is {"name": "bash", "arguments": {"command": "string"}} for that tool.'),
)

FOUND = (*HERMES, *QWEN, *MISTRALS, *BARE, *OTHERS, *SHOWN)

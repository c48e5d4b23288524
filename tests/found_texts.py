"""Texts of models as servers let them through in 2025 and 2026, each with the right reading by our policies, written
down before it was played: first those in which calls are meant. The kinds come from public reports on servers, parsers
and clients; words, names and values are our own.
"""

from __future__ import annotations

import json
from typing import Any

from dragoman import _json
from dragoman.types import Tool
from found_answers import Found


def _tool(name: str, required: tuple[str, ...], **properties: dict[str, object]) -> Tool:
    return Tool(name, "", _json.raw({"type": "object", "properties": properties, "required": list(required)}))


TEXT, INTEGER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "boolean"))
OBJECT: dict[str, object] = {"type": "object"}
TOOLS = (
    _tool("run", ("command",), command=TEXT, cwd=TEXT, timeout=INTEGER, detach=BOOLEAN, env=OBJECT),
    _tool("create_file", ("path", "content"), path=TEXT, content=TEXT, mode=TEXT),
    _tool("edit", ("path", "old", "new"), path=TEXT, old=TEXT, new=TEXT, every=BOOLEAN),
    _tool("search", ("query",), query=TEXT, limit=INTEGER, sites={"type": "array", "items": TEXT}),
    _tool("book", ("trip",), trip=OBJECT, seats={"type": "array", "items": OBJECT}),
    _tool("mcp__hub__open_issue", ("title",), title=TEXT, labels={"type": "array", "items": TEXT}),
    _tool("get_time", (), zone=TEXT),
    _tool("ping", ()),
)

Call = tuple[str, dict[str, Any]]
RUN: Call = ("run", {"command": "git status"})
RUN9: Call = ("run", {"command": "git status", "timeout": 9})
TIME: Call = ("get_time", {})
PING: Call = ("ping", {})
ZONE: Call = ("get_time", {"zone": "Asia/Tokyo"})
SEARCH: Call = ("search", {"query": "fjord ferries", "limit": 3, "sites": ["a.example", "b.example"]})
TRIP: Call = ("book", {"trip": {"from": "Oslo", "stops": [{"at": "Voss", "nights": 2}]}, "seats": [{"row": 4}]})
GIT = '{"command": "git status"}'


def dumped(call: Call, key: str = "arguments") -> str:
    return json.dumps({"name": call[0], key: call[1]}, ensure_ascii=False)


def hermes(*calls: Call) -> str:
    return "\n".join(f"<tool_call>\n{dumped(call)}\n</tool_call>" for call in calls)


def written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def function(call: Call) -> str:
    inner = "".join(f"<parameter={key}>\n{written(value)}\n</parameter>\n" for key, value in call[1].items())
    return f"<function={call[0]}>\n{inner}</function>"


def qwen(*calls: Call) -> str:
    return "\n".join(f"<tool_call>\n{function(call)}\n</tool_call>" for call in calls)


def glm(call: Call, line: str = "\n") -> str:
    pairs = (f"<arg_key>{key}</arg_key>{line}<arg_value>{written(value)}</arg_value>" for key, value in call[1].items())
    return f"<tool_call>{line.join((call[0], *pairs))}</tool_call>"


def invoke(call: Call, prefix: str = "") -> str:
    inner = "".join(
        f'<{prefix}parameter name="{key}">{written(value)}</{prefix}parameter>\n' for key, value in call[1].items()
    )
    return f'<{prefix}invoke name="{call[0]}">\n{inner}</{prefix}invoke>'


def dsml(*calls: Call, block: str = "tool_calls", bar: str = "｜DSML｜") -> str:
    inner = "\n".join(
        f'<{bar}invoke name="{name}">\n'
        + "".join(
            f'<{bar}parameter name="{key}" string="{str(isinstance(value, str)).lower()}">{written(value)}'
            f"</{bar}parameter>\n"
            for key, value in given.items()
        )
        + f"</{bar}invoke>"
        for name, given in calls
    )
    return f"<{bar}{block}>\n{inner}\n</{bar}{block}>" if block else inner


def kimi(call: Call, head: str) -> str:
    given = json.dumps(call[1], ensure_ascii=False)
    return f"<|tool_call_begin|>{head}<|tool_call_argument_begin|>{given}<|tool_call_end|>"


def section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


def harmony(call: Call, head: str = "<|start|>assistant<|channel|>commentary to=functions.{} <|constrain|>json") -> str:
    return f"{head.format(call[0])}<|message|>{json.dumps(call[1])}"


MARKED = "A block ends with </tool_call> on its own."
PATCH = "    return left\n"
CODE = 'if a < b and c > "d":\n    print(f"{a}: {b}")\n\n# </div>'

QWEN = (
    Found("qwen: bare, its closing tag alone", f"I look.\n\n{function(RUN)}\n</tool_call>", (RUN,), left="I look."),
    Found(
        "qwen: an argument's closing tag is missing at the end",
        "<tool_call>\n<function=run>\n<parameter=command>\ngit status\n</function>\n</tool_call>",
        (RUN,),
    ),
    Found(
        "qwen: an argument's closing tag is missing before the next",
        "<tool_call>\n<function=run>\n<parameter=command>\ngit status\n<parameter=timeout>\n9\n</parameter>\n"
        "</function>\n</tool_call>",
        (RUN9,),
    ),
    Found("qwen: nothing is closed", "I look.\n\n<function=run>\n<parameter=command> git status\n", (), ("run",), None),
    Found("qwen: closed twice within", f"<tool_call>\n{function(RUN)}\n</function>\n</tool_call>", (RUN,)),
    Found(
        "qwen: the function is not closed",
        "<tool_call>\n<function=run>\n<parameter=command>\ngit status\n</parameter>\n</tool_call>",
        (RUN,),
    ),
    Found(
        "qwen: a closing mark of calls in a value",
        qwen(("create_file", {"path": "a.md", "content": MARKED})),
        (("create_file", {"path": "a.md", "content": MARKED}),),
    ),
    Found("qwen: a body of JSON", f"<tool_call>\n<function=run>\n{GIT}\n</function>\n</tool_call>", (RUN,)),
    Found("qwen: in thinking that is not closed", f"<think>\nI list.\n{qwen(RUN)}", (RUN,), thought="I list."),
    Found(
        "qwen: the marker in words, then a call",
        f"Qwen writes <tool_call> in front of each call.\n\n{qwen(RUN)}",
        (RUN,),
        left="Qwen writes <tool_call> in front of each call.",
    ),
    Found(
        "qwen: the marker in thinking, then a call",
        f"<think>\nThe parser waits for <tool_call> and <function=run>.\n</think>\n\n{qwen(RUN)}",
        (RUN,),
        thought="The parser waits for <tool_call> and <function=run>.",
    ),
    Found("qwen: objects and lists", qwen(TRIP), (TRIP,)),
    Found(
        "qwen: a Python dict",
        "<tool_call>\n<function=book>\n<parameter=trip>\n{'from': 'Oslo', 'direct': True}\n</parameter>\n</function>\n"
        "</tool_call>",
        (("book", {"trip": {"from": "Oslo", "direct": True}}),),
    ),
    Found(
        "qwen: no integer",
        qwen(("run", {"command": "ls", "timeout": "2026-01-15"})),
        (("run", {"command": "ls", "timeout": "2026-01-15"}),),
    ),
    Found(
        "qwen: an indented value",
        qwen(("edit", {"path": "a.py", "old": PATCH, "new": "    return right\n", "every": "False"})),
        (("edit", {"path": "a.py", "old": PATCH, "new": "    return right\n", "every": False}),),
    ),
    Found(
        "qwen: an empty value",
        "<tool_call>\n<function=create_file>\n<parameter=path>a</parameter>\n<parameter=content></parameter>\n"
        "</function>\n</tool_call>",
        (("create_file", {"path": "a", "content": ""}),),
    ),
    Found("qwen: nothing in it", "<tool_call>\n<function=get_time>\n</function>\n</tool_call>", (TIME,)),
    Found("qwen: nothing in it, on one line", "<tool_call><function=get_time></function></tool_call>", (TIME,)),
    Found(
        "qwen: three, words between",
        f"First.\n{qwen(RUN)}\nSecond.\n{qwen(TIME)}\n{qwen(SEARCH)}",
        (RUN, TIME, SEARCH),
        left="First.\n\nSecond.",
    ),
    Found(
        "qwen: code in a value",
        qwen(("create_file", {"path": "a.py", "content": CODE})),
        (("create_file", {"path": "a.py", "content": CODE}),),
    ),
    Found("qwen: the thinking ends behind the call", f"I list.\n{qwen(RUN)}\n</think>", (RUN,), left=None, thought=""),
)

HERMES = (
    Found(
        "hermes: its closing tag in a value",
        hermes(("search", {"query": "what is </tool_call> for"})),
        (("search", {"query": "what is </tool_call> for"}),),
    ),
    Found(
        "hermes: opening tags for closing ones",
        f"<tool_call>\n{dumped(RUN)}\n<tool_call>\n<tool_call>\n{dumped(TIME)}\n<tool_call>",
        (RUN, TIME),
        left=None,
    ),
    Found(
        "hermes: no closing tag before the next",
        f"<tool_call>\n{dumped(RUN)}\n<tool_call>\n{dumped(TIME)}\n</tool_call>",
        (RUN, TIME),
    ),
    Found("hermes: a fence within", f"<tool_call>\n```json\n{dumped(RUN)}\n```\n</tool_call>", (RUN,)),
    Found("hermes: a list", f"<tool_call>[{dumped(RUN)}, {dumped(TIME)}]</tool_call>", (RUN, TIME)),
    Found(
        "hermes: as in a request",
        f'<tool_call>{{"type": "function", "function": {dumped(RUN)}}}</tool_call>',
        (RUN,),
    ),
    Found("hermes: an id", f'<tool_call>{{"id": "call_7", "name": "run", "arguments": {GIT}}}</tool_call>', (RUN,)),
    Found("hermes: a name, then an object", f"<tool_call>run\n{GIT}</tool_call>", (RUN,)),
    Found("hermes: empty text for arguments", '<tool_call>{"name": "get_time", "arguments": ""}</tool_call>', (TIME,)),
    Found("hermes: null for arguments", '<tool_call>{"name": "get_time", "arguments": null}</tool_call>', (TIME,)),
    Found("hermes: behind an empty thought", f"<think>\n\n</think>\n\n{hermes(RUN)}", (RUN,)),
    Found("hermes: nested values", f"Two steps.\n{hermes(TRIP, SEARCH)}", (TRIP, SEARCH), left="Two steps."),
    Found(
        "hermes: arguments before the name",
        f'<tool_call>{{"arguments": {GIT}, "name": "run"}}</tool_call>',
        (RUN,),
    ),
    Found(
        "hermes: escapes",
        '<tool_call>\n{"name": "search", "arguments": {"query": "\\u00e5pen \\ud83d\\ude00\\tdag"}}\n</tool_call>',
        (("search", {"query": "åpen 😀\tdag"}),),
    ),
    Found(
        "hermes: a server's own name",
        hermes(("mcp__hub__open_issue", {"title": 'Say "hi"', "labels": ["a", "b"]})),
        (("mcp__hub__open_issue", {"title": 'Say "hi"', "labels": ["a", "b"]}),),
    ),
    Found(
        "hermes: cut in the second",
        f"{hermes(RUN)}\n<tool_call>\n{dumped(ZONE)[:-6]}",
        (RUN,),
        ("get_time",),
    ),
    Found("granite: one object", f"<|tool_call|>{dumped(RUN)}", (RUN,)),
    Found(
        "granite 20b: a tag before each", f"<function_call> {dumped(RUN)} <function_call> {dumped(TIME)}", (RUN, TIME)
    ),
    Found("phi 4: tags", f"<|tool_call|>[{dumped(RUN)}, {dumped(TIME)}]<|/tool_call|>", (RUN, TIME)),
    Found("xlam: a list behind thinking", f"<think>I list.</think>[{dumped(RUN)}]", (RUN,), thought="I list."),
    Found(
        "jamba: a list",
        f"I look.\n<tool_calls>[\n{dumped(RUN)},\n{dumped(TIME)}\n]</tool_calls>",
        (RUN, TIME),
        left="I look.",
    ),
    Found(
        "apriel: ids",
        f'<tool_calls>[{{"name": "run", "arguments": {GIT}, "id": "0"}}]</tool_calls>\n<|end|>',
        (RUN,),
    ),
)

GLM = (
    Found(
        "glm: an opening tag for a key's",
        "<tool_call>run<tool_call>command</arg_key><arg_value>git status</arg_value></tool_call>",
        failed=("run",),
        left=None,
    ),
    Found("glm: a name alone", "<tool_call>get_time</tool_call>", (TIME,)),
    Found("glm: a name and its residue", "<tool_call>ping</arg_value></tool_call>", (PING,)),
    Found(
        "glm: a name and its residue, and arguments may be lost",
        "<tool_call>get_time</arg_value></tool_call>",
        left="<tool_call>get_time</arg_value></tool_call>",
    ),
    Found("glm: on one line, side by side", f"I look.{glm(RUN9, '')}{glm(TIME, '')}", (RUN9, TIME), left="I look."),
    Found("glm: lists and numbers", glm(SEARCH), (SEARCH,)),
    Found("glm: objects", glm(TRIP), (TRIP,)),
    Found("glm: in thinking that is not closed", f"<think>I list.\n{glm(RUN)}", (RUN,), thought="I list."),
    Found("glm: no closing tag", glm(RUN)[: -len("</tool_call>")], failed=("run",)),
    Found(
        "glm: its closing tag in a value",
        glm(("create_file", {"path": "a.md", "content": MARKED})),
        (("create_file", {"path": "a.md", "content": MARKED}),),
    ),
    Found("glm: behind a lone closing tag of thinking", f"I list.</think>\n{glm(RUN)}", (RUN,), thought="I list."),
    Found(
        "glm: code",
        glm(("create_file", {"path": "a", "content": CODE}), ""),
        (("create_file", {"path": "a", "content": CODE}),),
    ),
)

DEEPSEEK = (
    Found("dsml: the older block", dsml(RUN, block="function_calls"), (RUN,)),
    Found("dsml: no block", f"I look.\n\n{dsml(RUN, block='')}", (RUN,), left="I look."),
    Found("dsml: the block is not closed", dsml(RUN)[: -len("\n</｜DSML｜tool_calls>")], (RUN,)),
    Found(
        "dsml: an empty element",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_time"/>\n</｜DSML｜tool_calls>',
        (TIME,),
    ),
    Found("dsml: a block of a wrong name", dsml(RUN, block="tool_ccalls"), (RUN,), left=None),
    Found("dsml: two bars", f"I look.\n{dsml(RUN, bar='｜｜DSML｜｜')}", (RUN,), left="I look."),
    Found("dsml: plain bars", dsml(RUN, bar="|DSML|"), (RUN,)),
    Found("dsml: three, nested", f"I plan.\n{dsml(TRIP, SEARCH, TIME)}", (TRIP, SEARCH, TIME), left="I plan."),
    Found("dsml: behind thinking", f"I plan.</think>\n\n{dsml(RUN9)}", (RUN9,), thought="I plan."),
    Found(
        "dsml: its closing mark in a value: two readings",
        dsml(("create_file", {"path": "a", "content": "</｜DSML｜invoke> ends it"})),
        failed=("create_file",),
    ),
    Found(
        "deepseek 3.1: two, not closed",
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>{GIT}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}",
        (RUN, TIME),
    ),
    Found(
        "deepseek r1: behind thinking",
        "I list.\n</think>\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n"
        f"{GIT}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        (RUN,),
        thought="I list.",
    ),
)

KIMI = (
    Found(
        "kimi: in thinking that is not closed",
        f"<think>I list.{section(kimi(RUN, 'functions.run:0'))}",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "kimi: two",
        f"I look. {section(kimi(RUN, 'functions.run:0'), kimi(ZONE, 'functions.get_time:1'))}",
        (RUN, ZONE),
        left="I look.",
    ),
    Found("kimi: no prefix", section(kimi(RUN, "run:3")), (RUN,)),
    Found("kimi: no number", section(kimi(RUN, "run")), (RUN,)),
    Found("kimi: a lone call", f"I look.\n{kimi(RUN, 'functions.run:0')}", (RUN,), left="I look."),
    Found(
        "kimi: nothing is closed",
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>{GIT}",
        (RUN,),
    ),
    Found("kimi: another section's name", section(kimi(RUN, "functions.run:0")).replace("calls_", "call_"), (RUN,)),
    Found("kimi: white space", section(kimi(TRIP, " functions.book:12 ")).replace("|>{", "|> {"), (TRIP,)),
    Found(
        "kimi: two sections",
        f"{section(kimi(RUN, 'functions.run:0'))}\n{section(kimi(TIME, 'functions.get_time:1'))}",
        (RUN, TIME),
    ),
    Found(
        "kimi k3: two, numbers",
        '<|open|>tools<|sep|><|open|>call tool="run" index="1"<|sep|><|open|>argument key="command" type="string"'
        '<|sep|>git status<|close|>argument<|sep|><|open|>argument key="timeout" type="number"<|sep|>9'
        '<|close|>argument<|sep|><|close|>call<|sep|><|open|>call tool="get_time" index="2"<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>",
        (RUN9, TIME),
    ),
)

HARMONY = (
    Found(
        "harmony: behind its analysis, not closed",
        f"<|channel|>analysis<|message|>I list.<|end|>{harmony(RUN)}",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "harmony: in the analysis channel",
        harmony(RUN, "<|start|>assistant<|channel|>analysis to=functions.{} code") + "<|call|>",
        (RUN,),
    ),
    Found("harmony: cut", harmony(RUN)[:-4], failed=("run",)),
    Found(
        "harmony: behind a final message",
        f"<|channel|>final<|message|>On it.<|end|>{harmony(RUN)}<|call|>",
        (RUN,),
        left="On it.",
    ),
    Found("harmony: two", f"{harmony(RUN)}<|call|>{harmony(ZONE)}<|call|>", (RUN, ZONE)),
    Found(
        "harmony: the recipient before the channel",
        harmony(RUN, "<|start|>assistant to=functions.{}<|channel|>commentary json") + "<|call|>",
        (RUN,),
    ),
    Found(
        "harmony: tokens taken away, thinking before",
        f"analysisI list.assistantcommentary to=functions.run json{GIT}",
        (RUN,),
        thought="I list.",
    ),
    Found("harmony: no prefix", harmony(RUN, "<|channel|>commentary to={} <|constrain|>json") + "<|call|>", (RUN,)),
    Found("harmony: nothing in it", harmony(TIME) + "<|call|>", (TIME,)),
    Found("harmony: nested", harmony(TRIP) + "<|call|>", (TRIP,)),
)

INVOKES = (
    Found("claude: a stray word", f"I look.\n\ncourt\n{invoke(RUN)}", (RUN,), left="I look.\n\ncourt"),
    Found("claude: a block", f"<function_calls>\n{invoke(RUN)}\n{invoke(TIME)}\n</function_calls>", (RUN, TIME)),
    Found(
        "claude: a closing tag of the argument's name",
        '<invoke name="create_file">\n<parameter name="path">a.md</parameter>\n<parameter name="content">'
        'Long.</content>\n<parameter name="mode">0600</parameter>\n</invoke>',
        failed=("create_file",),
    ),
    Found(
        "claude: several lines",
        f"I write.\n{invoke(('create_file', {'path': 'a', 'content': CODE}))}",
        (("create_file", {"path": "a", "content": CODE}),),
        left="I write.",
    ),
    Found("claude: lists", invoke(SEARCH), (SEARCH,)),
    Found("claude: words behind", f"{invoke(RUN)}\n\nI wait for it.", (RUN,), left="I wait for it."),
    Found("claude: cut", invoke(RUN)[:-30], failed=("run",)),
    Found("minimax: not closed", f"<minimax:tool_call>\n{invoke(RUN)}", (RUN,)),
    Found(
        "minimax: two in one",
        f"I look.\n<minimax:tool_call>\n{invoke(RUN)}\n{invoke(SEARCH)}\n</minimax:tool_call>",
        (RUN, SEARCH),
        left="I look.",
    ),
    Found(
        "minimax: in thinking that is not closed",
        f"<think>I list.\n<minimax:tool_call>\n{invoke(RUN)}\n</minimax:tool_call>",
        (RUN,),
        thought="I list.",
    ),
    Found(
        "minimax: two blocks", "\n".join([f"<minimax:tool_call>\n{invoke(RUN)}\n</minimax:tool_call>"] * 2), (RUN, RUN)
    ),
    Found(
        "minimax m3: nested",
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="search">]<]minimax[>[<query>fjord ferries'
        "]<]minimax[>[</query>]<]minimax[>[<limit>3]<]minimax[>[</limit>]<]minimax[>[<sites>]<]minimax[>[<item>a.example]<]minimax[>[</item>"
        "]<]minimax[>[<item>b.example]<]minimax[>[</item>]<]minimax[>[</sites>]<]minimax[>[</invoke>\n"
        "]<]minimax[>[</tool_call>",
        (SEARCH,),
    ),
    Found(
        "seed: behind its thinking",
        f"<seed:think>I list.</seed:think>\n<seed:tool_call>\n{function(RUN)}\n</seed:tool_call>",
        (RUN,),
        thought="I list.",
    ),
)

MISTRAL = (
    Found(
        "mistral: two", f"I look.[TOOL_CALLS]run[ARGS]{GIT}[TOOL_CALLS]get_time[ARGS]{{}}", (RUN, TIME), left="I look."
    ),
    Found("mistral: an id", f"[TOOL_CALLS]run[CALL_ID]abc123def[ARGS]{GIT}", (RUN,)),
    Found(
        "mistral: a list with ids",
        f'[TOOL_CALLS] [{{"name": "run", "arguments": {GIT}, "id": "a1b2c3d4e"}}]</s>',
        (RUN,),
    ),
    Found("mistral: closed", f"[TOOL_CALLS][{dumped(RUN)}][/TOOL_CALLS]", (RUN,)),
    Found("mistral: behind thinking", f"[THINK]I list.[/THINK][TOOL_CALLS]run[ARGS]{GIT}", (RUN,), thought="I list."),
    Found("mistral: cut", '[TOOL_CALLS]run[ARGS]{"command": "git sta', failed=("run",)),
    Found("mistral: white space", f"[TOOL_CALLS] run [ARGS] {GIT}\n", (RUN,)),
    Found("mistral: nested", f"[TOOL_CALLS]book[ARGS]{json.dumps(TRIP[1])}", (TRIP,)),
)

GEMMA = (
    Found(
        "gemma: a key with blanks",
        '<|tool_call>call:run{command:<|"|>git status<|"|>,env:{MY KEY:<|"|>a<|"|>}}<tool_call|>',
        (("run", {"command": "git status", "env": {"MY KEY": "a"}}),),
    ),
    Found(
        "gemma: nested, more behind",
        '<|tool_call>call:book{trip:{from:<|"|>Oslo<|"|>,stops:[{at:<|"|>Voss<|"|>,nights:2}]},seats:'
        "[{row:4}]}<tool_call|>",
        (TRIP,),
    ),
    Found(
        "gemma: quotation marks and braces",
        '<|tool_call>call:run{command:<|"|>echo "a, b: {c}"<|"|>,detach:true}<tool_call|>',
        (("run", {"command": 'echo "a, b: {c}"', "detach": True}),),
    ),
    Found(
        "gemma: behind its thinking",
        '<|channel>thought\nI list.<channel|><|tool_call>call:run{command:<|"|>git status<|"|>}<tool_call|>',
        (RUN,),
        thought="I list.",
    ),
    Found(
        "gemma: two",
        'I look.<|tool_call>call:run{command:<|"|>git status<|"|>,timeout:9}<tool_call|>'
        "<|tool_call>call:get_time{}<tool_call|>",
        (RUN9, TIME),
        left="I look.",
    ),
    Found(
        "gemma: parentheses",
        '<|tool_call>call:run(command:<|"|>git status<|"|>)<tool_call|>',
        (RUN,),
    ),
    Found(
        "gemma: a server's name before the tool's",
        '<|tool_call>call:default_api:run{command:<|"|>git status<|"|>}<tool_call|>',
        (RUN,),
    ),
    Found(
        "functiongemma: an escape",
        "<start_function_call>call:run{command:<escape>git status<escape>,timeout:9}<end_function_call>",
        (RUN9,),
    ),
    Found(
        "gemma: equals signs in parentheses",
        '<|tool_call>call:run(command=<|"|>git status<|"|>, timeout=9)<tool_call|>',
        (RUN9,),
    ),
)

OTHERS = (
    Found(
        "llama 3: a type",
        f'<|python_tag|>{{"type": "function", "name": "run", "parameters": {GIT}}}<|eot_id|>',
        (RUN,),
    ),
    Found("llama 3: a semicolon", f"{dumped(RUN, 'parameters')}; {dumped(TIME, 'parameters')}", (RUN, TIME)),
    Found("llama 4: an object", f"<|python_start|>{dumped(RUN, 'parameters')}<|python_end|>", (RUN,)),
    Found(
        "llama 4: two", "<|python_start|>[run(command='git status', timeout=9), get_time()]<|python_end|>", (RUN9, TIME)
    ),
    Found(
        "lfm: words, dicts and None",
        "I look.<|tool_call_start|>[book(trip={'from': 'Oslo', 'stops': [{'at': 'Voss', 'nights': 2}]}, "
        "seats=[{'row': 4}])]<|tool_call_end|>",
        (TRIP,),
        left="I look.",
    ),
    Found("lfm: objects", f"<|tool_call_start|>[{dumped(RUN)}]<|tool_call_end|>", (RUN,)),
    Found(
        "olmo: lines",
        'I look.\n<function_calls>\nrun(command="git status")\nget_time()\n</function_calls>',
        (RUN, TIME),
        left="I look.",
    ),
    Found(
        "cohere: behind its thinking",
        "<|START_THINKING|>I list.<|END_THINKING|><|START_ACTION|>[\n"
        f'{{"tool_call_id": "0", "tool_name": "run", "parameters": {GIT}}},\n'
        '{"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}\n]<|END_ACTION|>',
        (RUN, TIME),
        thought="I list.",
    ),
    Found(
        "internlm: words",
        f"I look.<|action_start|><|plugin|>\n{dumped(RUN, 'parameters')}<|action_end|>",
        (RUN,),
        left="I look.",
    ),
    Found(
        "hunyuan: two",
        "<tool_calls>\n<tool_call>run<tool_sep>\n<arg_key>command</arg_key>\n<arg_value>git status</arg_value>\n"
        "</tool_call>\n<tool_call>get_time<tool_sep>\n</tool_call>\n</tool_calls>",
        (RUN, TIME),
    ),
    Found(
        "step 3: two",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="run">'
        '<steptml:parameter name="command">git status</steptml:parameter></steptml:invoke><｜tool_call_end｜>'
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_time"></steptml:invoke>'
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        (RUN, TIME),
    ),
    Found(
        "longcat: arguments in tags",
        "<longcat_tool_call>run\n<longcat_arg_key>command</longcat_arg_key>\n<longcat_arg_value>git status"
        "</longcat_arg_value>\n</longcat_tool_call>",
        (RUN,),
    ),
    Found("nemotron: no list, not closed", f"<TOOLCALL>[{dumped(RUN)}]", (RUN,)),
    Found("gigachat: a call", f"function call<|role_sep|>\n{dumped(RUN)}", (RUN,)),
    Found("apertus: two", f'<|tools_prefix|>[{{"run": {GIT}}}, {{"get_time": {{}}}}]<|tools_suffix|>', (RUN, TIME)),
    Found(
        "minicpm: a section",
        '<function name="create_file"><param name="path">a.html</param><param name="content"><![CDATA[<p>&</p>]]>'
        "</param></function>",
        (("create_file", {"path": "a.html", "content": "<p>&</p>"}),),
    ),
    Found("lm studio: its own form", f"[TOOL_REQUEST]{dumped(RUN)}[END_TOOL_REQUEST]", (RUN,)),
    Found(
        "lm studio: two, words before",
        f"I look.\n[TOOL_REQUEST]\n{dumped(RUN)}\n[END_TOOL_REQUEST]\n[TOOL_REQUEST]{dumped(TIME)}[END_TOOL_REQUEST]",
        (RUN, TIME),
        left="I look.",
    ),
    Found("bare: an end token", f"{dumped(RUN)}<|im_end|>", (RUN,)),
    Found("bare: behind an empty thought", f"<think>\n\n</think>\n\n{dumped(RUN)}", (RUN,)),
    Found("bare: as in a request", f'{{"type": "function", "function": {dumped(RUN)}}}', (RUN,)),
    Found("bare: a list of three", f"[{dumped(RUN)},\n {dumped(TIME)},\n {dumped(SEARCH)}]", (RUN, TIME, SEARCH)),
    Found("bare: a fence of two", f"```json\n{dumped(RUN)}\n{dumped(TIME)}\n```", (RUN, TIME)),
    Found("bare: tool_code", "```tool_code\nrun(command='git status')\n```", (RUN,)),
    Found("bare: Gemini's words", "call:default_api:run{command:git status}", (RUN,)),
    Found(
        "cline: a server's tool",
        f"I look.\n<use_mcp_tool>\n<server_name>hub</server_name>\n<tool_name>run</tool_name>\n<arguments>\n{GIT}\n"
        "</arguments>\n</use_mcp_tool>",
        (RUN,),
        left="I look.",
    ),
)

MEANT = (*QWEN, *HERMES, *GLM, *DEEPSEEK, *KIMI, *HARMONY, *INVOKES, *MISTRAL, *GEMMA, *OTHERS)

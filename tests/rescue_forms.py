"""How each family writes calls: the other side of the reader, sharing no code with it.

A form takes calls (name, arguments) and gives their text in pieces, so that a test knows where each call is whole.
Every family of `dragoman.stages.rescue.families.FAMILIES` has one at least.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Calls = list[tuple[str, dict[str, Any]]]


class Written(NamedTuple):
    """The text of some calls. `calls`: of each, the text up to the end of its arguments, and what closes it."""

    lead: str
    calls: list[tuple[str, str]]
    tail: str = ""

    def text(self) -> str:
        return self.lead + "".join(body + closing for body, closing in self.calls) + self.tail


class Form(NamedTuple):
    """One form of one family.

    `closes`: "tag" where a call needs its closing tag, "body" where its arguments close themselves. `never`: what no
    text value can hold, since the form has no way to say it. `most`: calls that one text may hold. `where`: as the
    family has it. `trims`: line ends at both ends of a text are markup.
    """

    family: str
    name: str
    write: Callable[[Calls], Written]
    closes: Literal["tag", "body"]
    never: tuple[str, ...] = ()
    most: int = 3
    where: Literal["anywhere", "line", "message"] = "anywhere"
    trims: bool = False


def dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def raw(value: object) -> str:
    """A value between tags: text as it stands, anything else as JSON."""
    return value if isinstance(value, str) else dumps(value)


# ------------------------------------------------------------ JSON


def objects(
    lead: str, closing: str, tail: str = "", *, keys: tuple[str, str] = ("name", "arguments"), before: str = ""
) -> Callable[[Calls], Written]:
    """Each call an object of its own."""

    def write(calls: Calls) -> Written:
        return Written(lead, [(before + dumps({keys[0]: name, keys[1]: args}), closing) for name, args in calls], tail)

    return write


def listed(lead: str, tail: str, *, keys: tuple[str, str] = ("name", "arguments")) -> Callable[[Calls], Written]:
    """The calls as a list of objects; what closes the list closes the last one."""

    def write(calls: Calls) -> Written:
        texts = [dumps({keys[0]: name, keys[1]: args}) for name, args in calls]
        return Written(lead + "[", [*((text, ", ") for text in texts[:-1]), (texts[-1], "]" + tail)])

    return write


def named(before: str, between: str, closing: str, lead: str = "", tail: str = "") -> Callable[[Calls], Written]:
    """The name, then the arguments as an object."""

    def write(calls: Calls) -> Written:
        return Written(lead, [(f"{before}{name}{between}{dumps(args)}", closing) for name, args in calls], tail)

    return write


# ------------------------------------------------------------ Python


def python(lead: str, joint: str, tail: str) -> Callable[[Calls], Written]:
    def write(calls: Calls) -> Written:
        texts = [f"{name}({', '.join(f'{key}={value!r}' for key, value in args.items())})" for name, args in calls]
        return Written(lead, [*((text, joint) for text in texts[:-1]), (texts[-1], tail)])

    return write


# ------------------------------------------------------------ tags


def tagged(
    head: Callable[[str], str],
    parameter: Callable[[str, object], str],
    closing: str,
    lead: str = "",
    tail: str = "",
) -> Callable[[Calls], Written]:
    def write(calls: Calls) -> Written:
        written = [
            (head(name) + "".join(parameter(key, value) for key, value in args.items()), closing)
            for name, args in calls
        ]
        return Written(lead, written, tail)

    return write


def invoke(prefix: str, lead: str, tail: str, *, typed: bool = False, gap: str = "") -> Callable[[Calls], Written]:
    def parameter(key: str, value: object) -> str:
        kind = f' string="{"true" if isinstance(value, str) else "false"}"' if typed else ""
        return f'<{prefix}{gap}parameter name="{key}"{kind}>{raw(value)}</{prefix}{gap}parameter>\n'

    return tagged(
        lambda name: f'<{prefix}{gap}invoke name="{name}">\n', parameter, f"</{prefix}{gap}invoke>\n", lead, tail
    )


def pairs(
    head: str, closing: str, *, prefix: str = "", suffix: str = "", behind: str = "", lead: str = "", tail: str = ""
) -> Callable[[Calls], Written]:
    def parameter(key: str, value: object) -> str:
        return (
            f"<{prefix}arg_key{suffix}>{key}</{prefix}arg_key{suffix}>"
            f"<{prefix}arg_value{suffix}>{raw(value)}</{prefix}arg_value{suffix}>"
        )

    return tagged(lambda name: f"{head}{name}{behind}", parameter, closing, lead, tail)


def qwen(lead: str, closing: str) -> Callable[[Calls], Written]:
    return tagged(
        lambda name: f"{lead}<function={name}>\n",
        lambda key, value: f"<parameter={key}>\n{raw(value)}\n</parameter>\n",
        f"</function>\n{closing}",
    )


# ------------------------------------------------------------ forms of their own


def gemma_value(value: object, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{gemma_value(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(gemma_value(item, quote) for item in value) + "]"
    return dumps(value)


def gemma(before: str, closing: str, quote: str) -> Callable[[Calls], Written]:
    return lambda calls: Written(
        "", [(f"{before}call:{name}{gemma_value(arguments, quote)}", closing) for name, arguments in calls]
    )


def gemma_parentheses(calls: Calls) -> Written:
    """Plain quotation marks inside."""

    def one(name: str, arguments: dict[str, Any]) -> str:
        members = ", ".join(f"{key}: {dumps(value)}" for key, value in arguments.items())
        return f"<|tool_call>call:{name}({members})"

    return Written("", [(one(name, arguments), "<tool_call|>") for name, arguments in calls])


def laguna_slip(calls: Calls) -> Written:
    """`<user>` where `<tool_call>` belongs; alone around a name it would be an element of XML."""
    written = pairs("<tool_call>", "</tool_call>")(calls)
    return Written(
        "", [(body.replace("<tool_call>", "<user>", "<arg_key>" in body), end) for body, end in written.calls]
    )


def qwen_slip(calls: Calls) -> Written:
    """`<parameter=NAME>` where `<function=NAME>` belongs."""
    written = qwen("<tool_call>\n", "</tool_call>\n")(calls)
    return Written("", [(body.replace("<function=", "<parameter=", 1), closing) for body, closing in written.calls])


def apertus(calls: Calls) -> Written:
    texts = [dumps({name: arguments}) for name, arguments in calls]
    lead = "<|tools_prefix|>["
    return Written(lead, [*((text, ", ") for text in texts[:-1]), (texts[-1], "]<|tools_suffix|>")])


def inkling(calls: Calls) -> Written:
    return Written(
        "",
        [
            (
                f"<|message_model|>{name}<|content_invoke_tool_json|>{dumps({'name': name, 'args': arguments})}",
                "<|end_message|>",
            )
            for name, arguments in calls
        ],
    )


def kimi(calls: Calls) -> Written:
    written = [
        (f"<|tool_call_begin|>functions.{name}:{at}<|tool_call_argument_begin|>{dumps(args)}", "<|tool_call_end|>")
        for at, (name, args) in enumerate(calls)
    ]
    return Written("<|tool_calls_section_begin|>", written, "<|tool_calls_section_end|>")


def kind(value: object) -> str:
    names: dict[type, str] = {
        str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object",
    }  # fmt: skip
    return names[type(value)]


def kimi_k3(calls: Calls) -> Written:
    def argument(key: str, value: object) -> str:
        return f'<|open|>argument key="{key}" type="{kind(value)}"<|sep|>{raw(value)}<|close|>argument<|sep|>'

    written = [
        (
            f'<|open|>call tool="{name}" index="{at}"<|sep|>' + "".join(argument(*item) for item in args.items()),
            "<|close|>call<|sep|>",
        )
        for at, (name, args) in enumerate(calls, 1)
    ]
    return Written("<|open|>tools<|sep|>", written, "<|close|>tools<|sep|>")


def kimi_k3_object(calls: Calls) -> Written:
    before = '<|open|>call tool="'
    between = '" index="1"<|sep|><|open|>json type="object"<|sep|>'
    return named(before, between, "<|close|>json<|sep|><|close|>call<|sep|>", "<|open|>tools<|sep|>")(calls)


def dsml_object(calls: Calls) -> Written:
    before, between = '<｜DSML｜invoke name="', '">\n'
    lead, tail = "<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>"
    return named(before, between, "\n</｜DSML｜invoke>\n", lead, tail)(calls)


def muse_messages(calls: Calls) -> Written:
    def head(name: str) -> str:
        return f'<|start|>assistant to={name}<|message|><atem:function_calls>\n<atem:invoke name="{name}">\n'

    def parameter(key: str, value: object) -> str:
        return f'<atem:parameter name="{key}">{raw(value)}</atem:parameter>\n'

    return tagged(head, parameter, "</atem:invoke>\n</atem:function_calls><|eom|>")(calls)


def k2_horizon(calls: Calls) -> Written:
    def argument(key: str, value: object) -> str:
        return (
            f"<ifm|arg_key>{key}</ifm|arg_key><ifm|arg_type>{kind(value)}</ifm|arg_type>"
            f"<ifm|arg_value>{raw(value)}</ifm|arg_value>"
        )

    return tagged(
        lambda name: f"<ifm|tool_call>{name}",
        argument,
        "</ifm|tool_call>\n",
        "<ifm|tool_calls>\n",
        "</ifm|tool_calls>",
    )(calls)


def mcp_tags(calls: Calls) -> Written:
    before = "<use_mcp_tool>\n<server_name>one</server_name>\n<tool_name>"
    return named(before, "</tool_name>\n<arguments>\n", "\n</arguments>\n</use_mcp_tool>\n")(calls)


def minicpm5(calls: Calls) -> Written:
    def parameter(key: str, value: object) -> str:
        held = raw(value)
        return f'<param name="{key}">{f"<![CDATA[{held}]]>" if "<" in held else held}</param>'

    return tagged(lambda name: f'<function name="{name}">', parameter, "</function>")(calls)


_M3 = "]<]minimax[>["
#: The prefix of the tags that Claude writes.
_CLAUDE = "antml:"


def minimax_m3(calls: Calls) -> Written:
    def nested(key: str, value: object) -> str:
        inner = raw(value)
        if isinstance(value, dict) and value:
            inner = "".join(nested(*item) for item in value.items())
        elif isinstance(value, list) and value:
            inner = "".join(nested("item", item) for item in value)
        return f"{_M3}<{key}>{inner}{_M3}</{key}>"

    return tagged(
        lambda name: f'{_M3}<invoke name="{name}">',
        nested,
        f"{_M3}</invoke>",
        f"{_M3}<tool_call>",
        f"{_M3}</tool_call>",
    )(calls)


def plamo3(calls: Calls) -> Written:
    def tags(word: str, inner: str) -> str:
        return f"<|plamo:begin_{word}:plamo|>{inner}"

    closing = "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
    written = [
        (
            tags("tool_request", tags("tool_name", name))
            + "<|plamo:end_tool_name:plamo|>"
            + tags("tool_arguments", dumps(args)),
            closing,
        )
        for name, args in calls
    ]
    return Written(tags("tool_requests", ""), written, "<|plamo:end_tool_requests:plamo|>")


def step3(calls: Calls) -> Written:
    return tagged(
        lambda name: f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">',
        lambda key, value: f'<steptml:parameter name="{key}">{raw(value)}</steptml:parameter>',
        "</steptml:invoke><｜tool_call_end｜>",
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
    )(calls)


def solar(calls: Calls) -> Written:
    return tagged(
        lambda name: f"<|tool_call:start|>{name}\n",
        lambda key, value: f"<|tool_arg:start|>{key}<|tool_arg:value|>{raw(value)}<|tool_arg:end|>\n",
        "<|tool_call:end|>\n",
    )(calls)


def beam(calls: Calls) -> Written:
    return tagged(
        lambda name: f"<|start|>assistant to={name}<|channel|>analysis <|constrain|>xml<|message|>",
        lambda key, value: f'<rfl:parameter name="{key}">{raw(value)}</rfl:parameter>',
        "<|call|>",
    )(calls)


FORMS: tuple[Form, ...] = (
    Form("hermes", "objects", objects("", "\n</tool_call>\n", before="<tool_call>\n"), "body"),
    Form("hermes", "a list in tags", listed("<tool_call>", "</tool_call>"), "body"),
    Form("qwen-xml", "in tags", qwen("<tool_call>\n", "</tool_call>\n"), "tag", ("</parameter>",)),
    Form("qwen-xml", "without", qwen("", ""), "tag", ("</parameter>",)),
    Form("glm", "pairs", pairs("<tool_call>", "</tool_call>"), "tag", ("</arg_value>",)),
    Form("laguna", "named", named("<tool_call>", "\n", "</tool_call>\n"), "body"),
    Form("mistral", "named", named("[TOOL_CALLS]", "[ARGS]", ""), "body"),
    Form("mistral", "with an id", named("[TOOL_CALLS]", "[CALL_ID]a1b2c3d4e[ARGS]", ""), "body"),
    Form("laguna", "user, pairs", laguna_slip, "tag", ("</arg_value>",)),
    Form("laguna", "user, an object", named("<user>", "", "</user>"), "body"),
    Form("qwen-xml", "parameter for function", qwen_slip, "tag", ("</parameter>",)),
    Form("mistral", "a list", listed("[TOOL_CALLS]", ""), "body"),
    Form("llama3", "objects", objects("<|python_tag|>", "; ", keys=("name", "parameters")), "body", most=1),
    Form("llama3", "custom", named("<function=", ">", "</function>"), "body"),
    Form("llama4", "Python", python("<|python_start|>[", ", ", "]<|python_end|>"), "body"),
    Form("lfm", "Python", python("<|tool_call_start|>[", ", ", "]<|tool_call_end|>"), "body"),
    Form("olmo", "Python", python("<function_calls>", "\n", "</function_calls>"), "body"),
    Form("olmo", "Python in another tag", python("<tool_call>", "\n", "</tool_call>"), "body"),
    Form(
        "deepseek",
        "V3.1",
        named(
            "<｜tool▁call▁begin｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
        ),
        "body",
    ),
    Form(
        "deepseek",
        "V3",
        named("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n", "\n```<｜tool▁call▁end｜>"),
        "body",
    ),
    Form(
        "deepseek-dsml",
        "V4",
        invoke("｜DSML｜", "<｜DSML｜tool_calls>\n", "</｜DSML｜tool_calls>", typed=True),
        "tag",
        ("</｜DSML｜parameter>",),
    ),
    Form(
        "deepseek-dsml",
        "V4.1",
        invoke("｜DSML｜", "<｜DSML｜ calls>\n", "</｜DSML｜ calls>", typed=True, gap=" "),
        "tag",
        ("</｜DSML｜ parameter>", "</｜DSML｜parameter>"),
    ),
    Form("kimi", "section", kimi, "body"),
    Form(
        "minimax",
        "tags",
        invoke("", "<minimax:tool_call>\n", "</minimax:tool_call>"),
        "tag",
        ("</parameter>",),
        trims=True,
    ),
    Form("minimax", "M2 in M1", invoke("", "<tool_calls>\n", "</tool_calls>"), "tag", ("</parameter>",), trims=True),
    Form("jamba", "M1", objects("<tool_calls>\n", "\n", "</tool_calls>"), "body"),
    Form("minimax-m3", "nested", minimax_m3, "tag", (_M3,)),
    Form(
        "anthropic-tags",
        "wrapped",
        invoke("", "<function_calls>\n", "</function_calls>"),
        "tag",
        ("</parameter>",),
        trims=True,
    ),
    Form("anthropic-tags", "bare", invoke("", "", ""), "tag", ("</parameter>",), trims=True),
    Form(
        "anthropic-tags",
        "prefixed",
        invoke(_CLAUDE, f"<{_CLAUDE}function_calls>\n", f"</{_CLAUDE}function_calls>"),
        "tag",
        (f"</{_CLAUDE}parameter>",),
        trims=True,
    ),
    Form(
        "anthropic-tags", "prefixed and bare", invoke(_CLAUDE, "", ""), "tag", (f"</{_CLAUDE}parameter>",), trims=True
    ),
    Form(
        "harmony",
        "channel",
        named("<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "<|call|>"),
        "body",
        most=1,
    ),
    Form("granite", "a list", listed("<|tool_call|>", ""), "body"),
    Form("granite", "20B", objects("", "\n", before="<function_call> "), "body"),
    Form("phi4", "a list", listed("functools", ""), "body"),
    Form("cohere", "a list", listed("<|START_ACTION|>", "<|END_ACTION|>", keys=("tool_name", "parameters")), "body"),
    Form(
        "command-r",
        "a fence",
        listed("Action: ```json\n", "\n```", keys=("tool_name", "parameters")),
        "body",
        where="line",
    ),
    Form("gemma", "4", gemma("<|tool_call>", "<tool_call|>", '<|"|>'), "body", ('<|"|>',)),
    Form("gemma", "function", gemma("<start_function_call>", "<end_function_call>", "<escape>"), "body", ("<escape>",)),
    Form("gemma", "parentheses", gemma_parentheses, "body"),
    Form("gemma-bare", "calls", gemma("", "", '<|"|>'), "body", ('<|"|>',), where="message"),
    Form("internlm", "objects", objects("", "<|action_end|>", before="<|action_start|><|plugin|>\n"), "body"),
    Form("jamba", "a list", listed("<tool_calls>", "</tool_calls>"), "body"),
    Form(
        "hunyuan",
        "pairs",
        pairs("<tool_call>", "</tool_call>", behind="<tool_sep>", lead="<tool_calls>", tail="</tool_calls>"),
        "tag",
        ("</arg_value>",),
    ),
    Form("hunyuan", "suffixes", named("<tool_call:x>", "<tool_sep:x>", "<end_of_tool_call:x>"), "body"),
    Form(
        "seed-oss",
        "tags",
        qwen("<seed:tool_call>\n", "</seed:tool_call>\n"),
        "tag",
        ("</parameter>",),
    ),
    Form("step3", "tags", step3, "tag", ("</steptml:parameter>",)),
    Form("longcat", "objects", objects("", "</longcat_tool_call>", before="<longcat_tool_call>"), "body"),
    Form(
        "longcat",
        "pairs",
        pairs("<longcat_tool_call>", "</longcat_tool_call>", prefix="longcat_"),
        "tag",
        ("</longcat_arg_value>",),
    ),
    Form("bare-json", "an object", objects("", "", keys=("name", "parameters")), "body", most=1, where="message"),
    Form("bare-json", "a list", listed("", ""), "body", where="message"),
    Form("fenced-json", "a fence", listed("```json\n", "\n```"), "body", where="message"),
    Form("gemma-code", "a fence", python("```tool_code\n", "\n", "\n```"), "body", where="message"),
    Form("python-list", "a list", python("[", ", ", "]"), "body", where="message"),
    Form("python-lines", "lines", python("", "\n", ""), "body", where="message"),
    Form("calling-tool", "lines", named("[Calling tool: ", "(", ")]\n"), "body", where="message"),
    Form("apertus", "a list", apertus, "body"),
    Form(
        "dots",
        "tags",
        invoke("", "<dots_function_call>\n", "</dots_function_call>"),
        "tag",
        ("</parameter>",),
        trims=True,
    ),
    Form(
        "gigachat",
        "GCML",
        invoke("｜GCML｜", "<｜GCML｜tool_calls>\n", "</｜GCML｜tool_calls>", typed=True),
        "tag",
        ("</｜GCML｜parameter>",),
    ),
    Form("inkling", "objects", inkling, "body"),
    Form("iquest", "pairs", pairs("<iquestcoder_tool_call>", "</iquestcoder_tool_call>"), "tag", ("</arg_value>",)),
    Form("k2-horizon", "typed", k2_horizon, "tag", ("</ifm|arg_value>",)),
    Form("kimi-k3", "typed", kimi_k3, "tag", ("<|close|>argument<|sep|>",)),
    Form("mcp-tags", "arguments", mcp_tags, "body"),
    Form("minicpm5", "sections", minicpm5, "tag", ("]]>",), trims=True),
    Form(
        "muse-glimmer",
        "tags",
        invoke("atem:", "<atem:function_calls>\n", "</atem:function_calls>"),
        "tag",
        ("</atem:parameter>",),
    ),
    Form("glm", "Flash, an object", named("<tool_call>", ">", "</tool_call>"), "body"),
    Form("deepseek-dsml", "V3.2, an object", dsml_object, "body"),
    Form("dots", "an object", objects("", "\n</dots_function_call>", before="<dots_function_call>\n"), "body"),
    Form("gigachat", "3, a token", objects("", "<|message_sep|>", before="<|function_call|>"), "body"),
    Form("gigachat", "3, a role", objects("", "<|message_sep|>", before="function call<|role_sep|>\n"), "body"),
    Form("iquest", "Q1", pairs("<iquest_tool_call>", "</iquest_tool_call>"), "tag", ("</arg_value>",)),
    Form("k2-horizon", "objects", objects("", "</ifm|tool_call>", before="<ifm|tool_call>"), "body"),
    Form("kimi-k3", "an object", kimi_k3_object, "body"),
    Form("muse-glimmer", "messages", muse_messages, "tag", ("</atem:parameter>",)),
    Form("nemotron", "a list", listed("<TOOLCALL>", "</TOOLCALL>"), "body"),
    Form("lm-studio", "objects", objects("", "[END_TOOL_REQUEST]", before="[TOOL_REQUEST]"), "body"),
    Form("plamo3", "requests", plamo3, "body"),
    Form("solar-open2", "tags", solar, "tag", ("<|tool_arg:end|>",)),
    Form("beam", "tags", beam, "tag", ("</rfl:parameter>",)),
    Form("functionary", "named", named(">>>", "\n", ""), "body", where="line"),
    Form("functionary-bare", "named", named("", "\n", ""), "body", most=1, where="message"),
    Form("functionary-bare", "with its id", named("functions.", ":0", ""), "body", most=1, where="message"),
    Form("harmony-bare", "no tokens", named("to=functions.", " json\n", ""), "body", most=1, where="message"),
    Form(
        "harmony-bare",
        "recipient",
        named("to=functions.", "<|channel|>commentary json<|message|>", "<|call|>"),
        "body",
        most=1,
        where="message",
    ),
)

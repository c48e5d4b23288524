"""The system text that describes the tools and the form of a call, where no field for tools can be sent.

The wording was measured on real models: docs/reference/ways.md. Describing results, for example, makes small models
write results. Small models repeat what they do not understand, so nothing in this text is a call when it is repeated:
the form and the example name tools that are not offered, and a tool's description stands before its name, where no call
has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.protocol import ToolMode
from dragoman.types import Named, Request, Tool

#: Before the form of a call, where words are an answer too. Where they are as easy to write as a call they come first:
#: the smallest models else call whatever is offered.
_MAY_CALL: Final[dict[ToolMode, str]] = {
    "prompted": (
        "You can call tools. When a tool below can do what the user asks, answer with nothing but a block of this form:"
    ),
    "schema": (
        "You can call tools. Answer with one JSON object and nothing else. In words, as long as no tool is needed:\n"
        '{"answer": "<your answer>"}\n'
        "Only when the user asks for what a tool below does:"
    ),
}
_MUST_CALL: Final[dict[ToolMode, str]] = {
    "prompted": "You must call a tool. Answer with nothing but a block of this form:",
    "schema": "You must call a tool. Answer with one JSON object and nothing else:",
}
_FITTING: Final = "`name` is the name of that tool, `arguments` a JSON object that fits its parameters."
_OTHERWISE: Final[dict[ToolMode, str]] = {
    "prompted": "When no tool is needed, answer in words, without such a block.",
    "schema": "",
}
#: What stands for a name in the form, and the example's tool: made longer where a tool is called so.
_PLACEHOLDER: Final = "NAME"
_EXAMPLE: Final = "open_door"


def system_words(request: Request, tools: Sequence[Tool], way: ToolMode) -> str:
    """Return the text for a request that offers these tools. Each tool is a JSON object on a line of its own."""
    may_answer = request.tool_choice == "auto"
    lines = [
        _MAY_CALL[way] if may_answer else _MUST_CALL[way],
        _call(way, _unoffered(_PLACEHOLDER, tools), '{"KEY": "VALUE"}'),
        _FITTING,
        _OTHERWISE[way] if may_answer else _named(request, tools),
    ]
    if request.params.parallel_tools is False:
        lines.append("Call at most one tool in an answer.")
    wanted = request.params.response_schema
    if wanted is not None and may_answer:
        subject = 'The value of "answer"' if way == "schema" else "An answer without a call"
        which = "a JSON object" if wanted.schema is None else f"JSON of this schema: {_json.raw_text(wanted.schema)}"
        lines.append(f"{subject} is nothing but {which}")
    lines += ["The tools:", *map(_described, tools), *_example(way, tools)]
    return "\n".join(line for line in lines if line)


def _named(request: Request, tools: Iterable[Tool]) -> str:
    choice = request.tool_choice
    is_offered = isinstance(choice, Named) and any(tool.name == choice.name for tool in tools)
    return f"Call the tool {_json.to_text(choice.name)} now." if isinstance(choice, Named) and is_offered else ""


def _example(way: ToolMode, tools: Sequence[Tool]) -> list[str]:
    name = _unoffered(_EXAMPLE, tools)
    asked = f'For example, if there were a tool {name} and the user asked "Open the door of room 12.", '
    return [f"{asked}you would answer only:", _call(way, name, '{"room": 12}')]


def _call(way: ToolMode, name: str, arguments: str) -> str:
    call = f'{{"name": {_json.to_text(name)}, "arguments": {arguments}}}'
    return f'{{"tool_calls": [{call}]}}' if way == "schema" else f"<tool_call>{call}</tool_call>"


def _unoffered(name: str, tools: Iterable[Tool]) -> str:
    """Return a name that no tool has, not even after it is cleaned (`dragoman.stages.tool_names`)."""
    while any(name in tool.name for tool in tools):
        name += "_"
    return name


def _described(tool: Tool) -> str:
    described: dict[str, Json] = {"description": tool.description, "name": tool.name}
    return _json.to_text({**described, "parameters": tool.schema_object()})

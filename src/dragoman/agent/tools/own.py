"""The user's own tools: the functions of a Python file, or those that an installed package offers.

A file's tools are its functions whose names do not begin with `_`. A package's tools are what an entry point of the
group `dragoman_tools` names: a function, or a list of them. `function.idempotent = True` allows repeating a call
without asking if its outcome was lost. Only what the user named is loaded.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dragoman import _json
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.errors import ConfigError, UsageError
from dragoman.inputs.functions import FunctionTool, tool_of
from dragoman.types import ToolCall

GROUP: Final = "dragoman_tools"


def load_tools(name: str) -> list[Planner]:
    """Return the tools of a Python file (a name that ends with .py), or of an entry point.

    Raises:
        ConfigError: it cannot be loaded, or contains no tool.
    """
    functions = _of_file(Path(name)) if name.endswith(".py") else _of_entry_point(name)
    if not functions:
        raise ConfigError(f"agent.tools: {name}: expected at least one function, found none")
    try:
        return [_planner(tool_of(function), name) for function in functions]
    except UsageError as problem:
        raise ConfigError(f"agent.tools: {name}: {problem}") from None


def _of_file(path: Path) -> list[Callable[..., Any]]:
    specification = importlib.util.spec_from_file_location(f"dragoman_tools_{path.stem}", path)
    if specification is None or specification.loader is None or not path.is_file():
        raise ConfigError(f"agent.tools: expected a Python file at {path}, found none")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except Exception as problem:
        raise ConfigError(f"agent.tools: {path}: {type(problem).__name__}: {problem}") from None
    return [value for name, value in vars(module).items() if not name.startswith("_") and _is_its_own(value, module)]


def _is_its_own(value: object, module: ModuleType) -> bool:
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _of_entry_point(name: str) -> list[Callable[..., Any]]:
    found = metadata.entry_points(group=GROUP, name=name)
    if not found:
        known = ", ".join(sorted(entry.name for entry in metadata.entry_points(group=GROUP))) or "none"
        raise ConfigError(f"agent.tools: no installed package offers tools named {name!r}; there are: {known}")
    try:
        loaded = next(iter(found)).load()
    except Exception as problem:
        raise ConfigError(f"agent.tools: {name}: {type(problem).__name__}: {problem}") from None
    return list(loaded) if isinstance(loaded, Iterable) else [loaded]


def _planner(read: FunctionTool, source: str) -> Planner:
    is_idempotent = getattr(read.function, "idempotent", False) is True

    def plan(call: ToolCall) -> Plan:
        read.check(call)

        async def do() -> Outcome:
            if inspect.iscoroutinefunction(read.function):
                value = await read.call(call)
            else:
                value = await asyncio.to_thread(read.call, call)
            # What a function of the user's gives back may be anybody's text: nobody here knows where it has been.
            return Outcome(value if isinstance(value, str) else _said(value), is_foreign=True)

        return other_plan(call, f"{call.name} of {source}", do, is_idempotent=is_idempotent)

    return Planner(read.tool, plan)


def _said(value: object) -> str:
    try:
        return "" if value is None else _json.to_text(value)
    except TypeError:
        return str(value)

"""What the vendors refuse of a request by its form: fields that they do not know or that a header must allow, unknown
types of tools, names that come twice. From the vendors' references and none of dragoman's code.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

#: Headers of a request, in small letters.
Head = Mapping[str, str]
#: Protocol → the fields of a body, the types of tools, the fields of one.
KNOWN: dict[str, dict[str, frozenset[str]]] = {
    protocol: {name: frozenset(words) for name, words in found.items()}
    for protocol, found in tomllib.loads(Path(__file__).with_name("strict.toml").read_text(encoding="utf-8")).items()
}

#: What the newer version of the interface refuses.
_SAMPLING = frozenset(["temperature", "top_p", "top_k"])
_NEW_VERSION = "2026-10-21"
#: Fields that need a beta header, and how its value begins.
_MESSAGES_BETA = {
    "context_management": "context-management-", "mcp_servers": "mcp-client-", "compaction": "compact-",
    "fallbacks": "server-side-fallback-", "thread": "threads-",
}  # fmt: skip
_MESSAGES_TOOLS_BETA = {"mcp_toolset": "mcp-client-", "computer": "computer-use-", "advisor": "advisor-tool-"}
_DATED = re.compile(r"_\d{8}$")
_MOST_BREAKPOINTS = 4


def _refuse(what: str) -> None:
    raise ValueError(what)


def _only(found: Iterable[str], known: frozenset[str], where: str) -> None:
    if unknown := sorted(set(found) - known):
        _refuse(f"{where}: unknown fields {unknown}")


def _names(names: list[str], shape: str) -> None:
    for name in names:
        if re.fullmatch(shape, name) is None:
            _refuse(f"a tool's name is no {shape}: {name!r}")
    if len(set(names)) != len(names):
        _refuse(f"tool names must be unique: {sorted(names)}")


def check_messages(head: Head, body: dict[str, Any]) -> None:
    """https://platform.claude.com/docs/en/api/messages, and the page of the version 2026-10-21."""
    betas = [value.strip() for value in head.get("anthropic-beta", "").split(",")]

    def allowed(field: str, start: str) -> None:
        if not any(value.startswith(start) for value in betas):
            _refuse(f"{field}: Extra inputs are not permitted (no beta header {start}…)")

    version = head.get("anthropic-version", "")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", version):
        _refuse("anthropic-version is required")
    for field, start in _MESSAGES_BETA.items():
        if field in body:
            allowed(field, start)
    if version == _NEW_VERSION:
        _only(_SAMPLING & body.keys(), frozenset(), f"version {version}")
    _only(body, KNOWN["anthropic-messages"]["body"] | _MESSAGES_BETA.keys() | _SAMPLING, "the body")
    for tool in body.get("tools") or ():
        kind = _DATED.sub("", tool.get("type", "custom"))
        if kind in _MESSAGES_TOOLS_BETA:
            allowed(kind, _MESSAGES_TOOLS_BETA[kind])
        elif kind not in KNOWN["anthropic-messages"]["tools"]:
            _refuse(f"unknown type of tool {tool['type']!r}")
        elif kind == "custom":
            _only(tool, KNOWN["anthropic-messages"]["tool"], f"the tool {tool['name']}")
    names = [tool["name"] for tool in body.get("tools") or () if "name" in tool]
    _names(names, "[A-Za-z0-9_-]{1,128}")
    if str(body).count("'cache_control': {") > _MOST_BREAKPOINTS:
        _refuse("at most four blocks with cache_control")


def check_chat(head: Head, body: dict[str, Any]) -> None:
    """https://platform.openai.com/docs/api-reference/chat/create"""
    _only(body, KNOWN["openai-chat"]["body"], "the body")
    tools = body.get("tools") or ()
    for tool in tools:
        if tool["type"] not in KNOWN["openai-chat"]["tools"]:
            _refuse(f"unknown type of tool {tool['type']!r}")
        _only(tool[tool["type"]], KNOWN["openai-chat"]["tool"], "a tool")
    _names([tool[tool["type"]]["name"] for tool in tools], "[A-Za-z0-9_-]{1,64}")


def check_responses(head: Head, body: dict[str, Any]) -> None:
    """https://platform.openai.com/docs/api-reference/responses/create"""
    _only(body, KNOWN["openai-responses"]["body"], "the body")
    tools = body.get("tools") or ()
    for tool in tools:
        if _DATED.sub("", tool["type"]) not in KNOWN["openai-responses"]["tools"]:
            _refuse(f"unknown type of tool {tool['type']!r}")
    groups = [(tool, "") for tool in tools]
    groups += [(inner, f"{tool['name']}.") for tool in tools for inner in tool.get("tools") or ()]
    _names(
        [space + tool["name"] for tool, space in groups if "name" in tool],
        "[A-Za-z0-9_-]{1,64}([.][A-Za-z0-9_-]{1,64})?",
    )


def check_gemini(head: Head, body: dict[str, Any]) -> None:
    """https://ai.google.dev/api/generate-content"""
    _only(body, KNOWN["gemini-generate"]["body"], "Invalid JSON payload received")
    tools = body.get("tools") or ()
    for tool in tools:
        _only(tool, KNOWN["gemini-generate"]["tools"], "a tool")
    names = [one["name"] for tool in tools for one in tool.get("functionDeclarations") or ()]
    _names(names, "[A-Za-z_][A-Za-z0-9_.:-]{0,63}")


def check_ollama(head: Head, body: dict[str, Any]) -> None:
    """It takes unknown fields; two tools of one name are none that a model can tell apart."""
    _names([tool["function"]["name"] for tool in body.get("tools") or ()], ".{1,256}")


CHECKS: dict[str, Callable[[Head, dict[str, Any]], None]] = {
    "ollama-chat": check_ollama,
    "openai-chat": check_chat,
    "openai-responses": check_responses,
    "anthropic-messages": check_messages,
    "gemini-generate": check_gemini,
}

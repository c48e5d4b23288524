"""Requests in the shape that well-known clients send, and how each reads the call that it gets and answers it.

The fields and tools are those of their requests (read 2026-11-25); texts, names and values are our own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
GEMINI, OLLAMA = "gemini-generate", "ollama-chat"
Json = Any
QUESTION = "What does alpha know of sandboxes?"
_QUERY: Json = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_COMMAND: Json = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass(frozen=True)
class Shape:
    """One client's request, and a call that its model makes.

    `body`: the first turn, without model and stream. `calls`: what the client finds when the model calls the tool that
    the provider knows by `offered`, with `arguments`: name and arguments in the client's own words. `dropped`: tools
    that a provider of another protocol is not offered.
    """

    name: str
    protocol: str
    body: dict[str, Json]
    offered: str
    arguments: dict[str, Json]
    calls: Json
    headers: dict[str, str] = field(default_factory=dict)
    dropped: str = ""
    path: str = ""

    def __str__(self) -> str:
        return self.name


# ---------------------------------------------------------------- tools in each protocol


def _chat(name: str, schema: Json, **more: Json) -> Json:
    return {
        "type": "function",
        "function": {"name": name, "description": f"It is {name}.", "parameters": schema, **more},
    }


def _flat(name: str, schema: Json, **more: Json) -> Json:
    return {"type": "function", "name": name, "description": f"It is {name}.", "parameters": schema, "strict": False,
            **more}  # fmt: skip


def _block(name: str, schema: Json, **more: Json) -> Json:
    return {"name": name, "description": f"It is {name}.", "input_schema": schema, **more}


_EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
_SAID = {"role": "user", "content": QUESTION}
_BETAS = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,advanced-tool-use-2025-11-20"
)
_OF_CLAUDE = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": _BETAS,
    "x-app": "cli",
    "user-agent": "claude-cli/2.1",
}
_CLAUDE: dict[str, Json] = {
    "max_tokens": 32_000,
    "system": [{"type": "text", "text": "You are a coding agent."},
               {"type": "text", "text": "Work here.", **_EPHEMERAL}],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>Be brief.</system-reminder>"},
                                              {"type": "text", "text": QUESTION, **_EPHEMERAL}]}],
    "metadata": {"user_id": "user_0a1b_account__session_0c9d2f6e-1111-4222-8333-944455556666"},
    "thinking": {"type": "enabled", "budget_tokens": 8_000},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
}  # fmt: skip
_BUILTIN = [_block("Bash", _COMMAND), _block("Read", _QUERY)]
_CODEX: dict[str, Json] = {
    "instructions": "You are a coding agent.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox: on."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    ],
    "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "0c9d2f6e-1111", "text":
    {"verbosity": "low"}, "client_metadata": {"x-codex-installation-id": "0a1b"},
}  # fmt: skip
_SERVERS = [
    {"type": "namespace", "name": f"mcp__{server}", "description": f"Tools of {server}.",
     "tools": [_flat("search", {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]})]}
    for server, key in (("alpha", "query"), ("beta", "words"))
]  # fmt: skip
_PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files.",
          "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}}  # fmt: skip
_WEB = {"type": "web_search", "external_web_access": True}
_SEARCHED = {"query": 'sandbox ü "quoted"'}
_RAN = {"command": "ls -la 'my folder'\n"}

SHAPES = [
    Shape("claude-code", MESSAGES, {**_CLAUDE, "tools": _BUILTIN}, "Bash", _RAN, ("Bash", _RAN), _OF_CLAUDE),
    Shape(
        "claude-code with an MCP server behind its search",
        MESSAGES,
        {
            **_CLAUDE,
            "messages": [
                *_CLAUDE["messages"],
                {
                    "role": "assistant",
                    "content": [
                        {"type": "tool_use", "id": "toolu_01", "name": "ToolSearch", "input": {"query": "alpha"}}
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "toolu_01",
                            "content": [{"type": "tool_reference", "tool_name": "mcp__alpha__search"}],
                        }
                    ],
                },
            ],
            "tools": [
                *_BUILTIN,
                _block("ToolSearch", _QUERY),
                _block("mcp__alpha__search", _QUERY, defer_loading=True),
                _block("mcp__beta__search", _QUERY, defer_loading=True),
            ],
        },
        "mcp__alpha__search",
        _SEARCHED,
        ("mcp__alpha__search", _SEARCHED),
        _OF_CLAUDE,
    ),
    Shape(
        "claude with memory and bash",
        MESSAGES,
        {
            **_CLAUDE,
            "tools": [{"type": "memory_20250818", "name": "memory"}, {"type": "bash_20250124", "name": "bash"}],
        },
        "memory",
        {"command": "view", "path": "/memories"},
        ("memory", {"command": "view", "path": "/memories"}),
        _OF_CLAUDE,
    ),
    Shape(
        "claude's editor",
        MESSAGES,
        {
            **_CLAUDE,
            "tools": [{"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}],
        },
        "str_replace_based_edit_tool",
        {"command": "view", "path": "/a.py"},
        ("str_replace_based_edit_tool", {"command": "view", "path": "/a.py"}),
        _OF_CLAUDE,
    ),
    Shape(
        "claude-code with a web search beside",
        MESSAGES,
        {
            **_CLAUDE,
            "tools": [*_BUILTIN, {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
        },
        "Bash",
        _RAN,
        ("Bash", _RAN),
        _OF_CLAUDE,
        dropped="web_search",
    ),
    Shape(
        "openclaw over Messages",
        MESSAGES,
        {
            "max_tokens": 8_192,
            "system": [{"type": "text", "text": "You are a helper.", **_EPHEMERAL}],
            "messages": [_SAID],
            "tools": [_block("exec", _COMMAND, **_EPHEMERAL)],
            "tool_choice": {"type": "auto"},
        },
        "exec",
        _RAN,
        ("exec", _RAN),
        {"anthropic-version": "2023-06-01"},
    ),
    Shape(
        "langchain over Messages",
        MESSAGES,
        {
            "max_tokens": 1_024,
            "messages": [_SAID],
            "temperature": 0.5,
            "stop_sequences": ["END"],
            "tools": [_block("lookup", _QUERY)],
            "tool_choice": {"type": "tool", "name": "lookup", "disable_parallel_tool_use": True},
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED),
        {"anthropic-version": "2023-06-01"},
    ),
    Shape(
        "codex",
        RESPONSES,
        {**_CODEX, "tools": [_flat("exec_command", _COMMAND), _PATCH, _WEB, *_SERVERS]},
        "mcp__alpha__search",
        _SEARCHED,
        ("search", _SEARCHED, "mcp__alpha"),
        dropped="web_search",
    ),
    Shape(
        "codex with a patch",
        RESPONSES,
        {**_CODEX, "tools": [_flat("exec_command", _COMMAND), _PATCH, _WEB]},
        "apply_patch",
        {"input": "*** Begin Patch\n*** End Patch"},
        ("apply_patch", "*** Begin Patch\n*** End Patch"),
        dropped="web_search",
    ),
    Shape(
        "codex's shell",
        RESPONSES,
        {**_CODEX, "tools": [{"type": "local_shell"}]},
        "local_shell",
        {"command": ["ls", "-la"]},
        ("local_shell_call", ["ls", "-la"]),
    ),
    Shape(
        "openai agents",
        RESPONSES,
        {
            "instructions": "Help.",
            "input": [_SAID],
            "tools": [_flat("lookup", _QUERY)],
            "tool_choice": "required",
            "temperature": 0.2,
            "top_p": 0.9,
            "max_output_tokens": 900,
            "metadata": {"run": "7"},
            "truncation": "disabled",
            "user": "u1",
            "store": False,
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED, None),
    ),
    Shape(
        "cursor over Chat, in words of Responses",
        CHAT,
        {
            "input": [
                {"role": "system", "content": "You are a coding agent."},
                {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
            ],
            "tools": [
                {
                    "type": "function",
                    "name": "run_terminal_cmd",
                    "description": "Run.",
                    "parameters": _COMMAND,
                    "strict": False,
                }
            ],
            "tool_choice": "auto",
            "reasoning": {"effort": "medium", "summary": "auto"},
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "c1",
            "text": {"verbosity": "medium"},
            "stream_options": {"include_usage": True},
            "metadata": {"cursorConversationId": "c1"},
            "user": "u1",
        },
        "run_terminal_cmd",
        _RAN,
        ("run_terminal_cmd", _RAN),
    ),
    Shape(
        "zed",
        CHAT,
        {
            "messages": [
                {"role": "system", "content": "You are a coding agent."},
                {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
            ],
            "max_completion_tokens": 16_384,
            "temperature": 1,
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [_chat("terminal", _COMMAND)],
            "stream_options": {"include_usage": True},
            "prompt_cache_key": "z1",
            "reasoning_effort": "low",
        },
        "terminal",
        _RAN,
        ("terminal", _RAN),
    ),
    Shape(
        "continue",
        CHAT,
        {
            "messages": [{"role": "system", "content": "You are a coding agent."}, _SAID],
            "max_tokens": 4_096,
            "parallel_tool_calls": False,
            "tools": [_chat("run_terminal_command", _COMMAND)],
            "stream_options": {"include_usage": True},
            "stop": [],
        },
        "run_terminal_command",
        _RAN,
        ("run_terminal_command", _RAN),
    ),
    Shape(
        "cline, roo and kilo",
        CHAT,
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "You are a coding agent.", **_EPHEMERAL}]},
                {"role": "user", "content": [{"type": "text", "text": QUESTION, **_EPHEMERAL}]},
            ],
            "temperature": 0,
            "stream_options": {"include_usage": True},
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            "tools": [_chat("execute_command", {**_COMMAND, "additionalProperties": False}, strict=True)],
            "reasoning_effort": "high",
        },
        "execute_command",
        _RAN,
        ("execute_command", _RAN),
    ),
    Shape(
        "goose",
        CHAT,
        {
            "messages": [{"role": "system", "content": "You are goose."}, _SAID],
            "temperature": 0.5,
            "max_tokens": 4_096,
            "tools": [
                _chat("developer__shell", _COMMAND),
                _chat("alpha__search", _QUERY),
                _chat("beta__search", _QUERY),
            ],
            "stream_options": {"include_usage": True},
        },
        "beta__search",
        _SEARCHED,
        ("beta__search", _SEARCHED),
    ),
    Shape(
        "open webui",
        CHAT,
        {
            "messages": [_SAID],
            "tools": [_chat("tool_lookup_post", _QUERY)],
            "stream_options": {"include_usage": True},
            "temperature": 0.8,
            "seed": 42,
            "max_tokens": 512,
            "frequency_penalty": 0.1,
        },
        "tool_lookup_post",
        _SEARCHED,
        ("tool_lookup_post", _SEARCHED),
    ),
    Shape(
        "langchain over Chat",
        CHAT,
        {
            "messages": [_SAID],
            "n": 1,
            "temperature": 0.7,
            "stop": ["END"],
            "parallel_tool_calls": False,
            "tools": [_chat("lookup", _QUERY, strict=True)],
            "tool_choice": {"type": "function", "function": {"name": "lookup"}},
            "logprobs": False,
            "user": "u1",
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED),
    ),
    Shape(
        "litellm, with thinking",
        CHAT,
        {
            "messages": [_SAID],
            "thinking": {"type": "enabled", "budget_tokens": 2_048},
            "max_tokens": 5_000,
            "tools": [_chat("lookup", _QUERY)],
            "tool_choice": "auto",
            "metadata": {"tag": "a"},
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED),
    ),
    Shape(
        "n8n",
        CHAT,
        {
            "messages": [_SAID],
            "n": 1,
            "temperature": 0.7,
            "top_p": 1,
            "frequency_penalty": 0,
            "presence_penalty": 0,
            "max_tokens": -1,
            "response_format": {"type": "text"},
            "tools": [_chat("My_Tool", _QUERY)],
            "stop": None,
        },
        "My_Tool",
        _SEARCHED,
        ("My_Tool", _SEARCHED),
    ),
    Shape(
        "librechat",
        CHAT,
        {
            "messages": [{"role": "system", "content": "Help."}, _SAID],
            "user": "6750f1",
            "top_p": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "stream_options": {"include_usage": True},
            "tools": [_chat("search_mcp_alpha", _QUERY)],
        },
        "search_mcp_alpha",
        _SEARCHED,
        ("search_mcp_alpha", _SEARCHED),
    ),
    Shape(
        "openclaw over Chat",
        CHAT,
        {
            "messages": [{"role": "developer", "content": "You are a helper."}, _SAID],
            "max_completion_tokens": 8_192,
            "store": False,
            "reasoning_effort": "low",
            "prompt_cache_key": "o1",
            "tools": [_chat("exec", _COMMAND)],
            "stream_options": {"include_usage": True},
        },
        "exec",
        _RAN,
        ("exec", _RAN),
    ),
    Shape(
        "an older client with functions",
        CHAT,
        {
            "messages": [_SAID],
            "functions": [{"name": "lookup", "parameters": _QUERY}],
            "function_call": "auto",
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED),
    ),
    Shape(
        "gemini-cli",
        GEMINI,
        {
            "contents": [{"role": "user", "parts": [{"text": "This is the folder."}, {"text": QUESTION}]}],
            "systemInstruction": {"role": "user", "parts": [{"text": "You are a coding agent."}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "run_shell_command", "description": "Run.", "parametersJsonSchema": _COMMAND},
                        {"name": "mcp_alpha_search", "description": "Search.", "parametersJsonSchema": _QUERY},
                    ]
                }
            ],
            "generationConfig": {
                "temperature": 0,
                "topP": 1,
                "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 8_192},
            },
        },
        "run_shell_command",
        _RAN,
        ("run_shell_command", _RAN),
    ),
    Shape(
        "google's sdk, one function of two",
        GEMINI,
        {
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
            "tools": [
                {
                    "functionDeclarations": [
                        {
                            "name": "lookup",
                            "parameters": {"type": "OBJECT", "properties": {"query": {"type": "STRING"}}},
                        },
                        {"name": "other", "parameters": {"type": "OBJECT", "properties": {}}},
                    ]
                }
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["lookup"]}},
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        },
        "lookup",
        _SEARCHED,
        ("lookup", _SEARCHED),
    ),
    Shape(
        "home assistant",
        OLLAMA,
        {
            "messages": [{"role": "system", "content": "Control the house."}, _SAID],
            "tools": [_chat("HassTurnOn", _QUERY)],
            "options": {"num_ctx": 8_192},
            "keep_alive": "-1s",
            "think": False,
        },
        "HassTurnOn",
        _SEARCHED,
        ("HassTurnOn", _SEARCHED),
    ),
    Shape(
        "open webui over Ollama",
        OLLAMA,
        {
            "messages": [_SAID],
            "tools": [_chat("tool_lookup_post", _QUERY)],
            "options": {"temperature": 0.8, "seed": 42, "num_predict": 512, "top_k": 40, "stop": ["END"]},
        },
        "tool_lookup_post",
        _SEARCHED,
        ("tool_lookup_post", _SEARCHED),
    ),
]

# ---------------------------------------------------------------- calls, as clients read them


def _chat_calls(answer: Json) -> tuple[list[Json], Json]:
    if isinstance(answer, dict):
        message = answer["choices"][0]["message"]
    else:
        message = {"role": "assistant", "content": None}
        for chunk in answer:
            for choice in chunk.get("choices") or ():
                for piece in choice["delta"].get("tool_calls") or ():
                    calls = message.setdefault("tool_calls", [])
                    if piece["index"] == len(calls):
                        calls.append({"id": piece["id"], "type": "function", "function": {"name": "", "arguments": ""}})
                    for key, text in piece["function"].items():
                        calls[piece["index"]]["function"][key] += text or ""
    found = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]]
    return found, message


def _messages_calls(answer: Json) -> tuple[list[Json], Json]:
    blocks: list[Json] = answer["content"] if isinstance(answer, dict) else []
    for event in answer if isinstance(answer, list) else ():
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"]})
        elif event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            blocks[-1]["partial"] = blocks[-1].get("partial", "") + event["delta"]["partial_json"]
    for block in blocks:
        if "partial" in block:
            block["input"] = json.loads(block.pop("partial"))
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    return calls, {"role": "assistant", "content": blocks}


def _responses_calls(answer: Json) -> tuple[list[Json], Json]:
    output = (answer if isinstance(answer, dict) else answer[-1]["response"])["output"]
    calls: list[Json] = []
    for item in output:
        if item["type"] == "function_call":
            calls.append((item["name"], json.loads(item["arguments"]), item.get("namespace")))
        elif item["type"] == "custom_tool_call":
            calls.append((item["name"], item["input"]))
        elif item["type"] == "local_shell_call":
            calls.append((item["type"], item["action"]["command"]))
    return calls, output


def _gemini_calls(answer: Json) -> tuple[list[Json], Json]:
    chunks = [answer] if isinstance(answer, dict) else answer
    parts = [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", ())]
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    return calls, {"role": "model", "parts": parts}


def _ollama_calls(answer: Json) -> tuple[list[Json], Json]:
    lines = [answer] if isinstance(answer, dict) else answer
    calls = [call for line in lines for call in line["message"].get("tool_calls") or ()]
    found = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return found, {"role": "assistant", "content": "", "tool_calls": calls}


CALLS: dict[str, Callable[[Json], tuple[list[Json], Json]]] = {
    CHAT: _chat_calls, MESSAGES: _messages_calls, RESPONSES: _responses_calls, GEMINI: _gemini_calls,
    OLLAMA: _ollama_calls,
}  # fmt: skip


def second(shape: Shape, said: Json, result: str) -> dict[str, Json]:
    """The next turn: the model's own words as the client keeps them, and the result of the call."""
    body = dict(shape.body)
    match shape.protocol:
        case "openai-chat":
            name = "input" if "input" in body else "messages"
            answer = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": result}
            body[name] = [*body[name], said, answer]
            if name == "input":  # in words of Responses, as the client has it
                [call] = said["tool_calls"]
                item = {"type": "function_call", "call_id": call["id"], **call["function"]}
                output = {"type": "function_call_output", "call_id": call["id"], "output": result}
                body[name] = [*shape.body[name], item, output]
        case "anthropic-messages":
            [block] = [block for block in said["content"] if block["type"] == "tool_use"]
            answer = {"type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": result}]}
            body["messages"] = [*body["messages"], said, {"role": "user", "content": [answer]}]
        case "openai-responses":
            [call] = [item for item in said if item["type"].endswith("_call")]
            answer = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": result}
            body["input"] = [*body["input"], *said, answer]
        case "gemini-generate":
            [part] = [part for part in said["parts"] if "functionCall" in part]
            answer = {**{key: part["functionCall"][key] for key in ("id", "name") if key in part["functionCall"]},
                      "response": {"output": result}}  # fmt: skip
            body["contents"] = [*body["contents"], said, {"role": "user", "parts": [{"functionResponse": answer}]}]
        case _:
            name = said["tool_calls"][0]["function"]["name"]
            body["messages"] = [*body["messages"], said, {"role": "tool", "tool_name": name, "content": result}]
    return body

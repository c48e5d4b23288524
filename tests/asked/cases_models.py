# ruff: noqa: E501 - tables of requests, which a line end would tear
"""What people reported in 2026: settings that a version of a model refuses, and fields that a gateway lost on their way."""

from __future__ import annotations

from typing import Any, Final

from asked.writing import (
    ASK,
    CITY,
    GONE,
    PIXEL,
    PNG_URL,
    Case,
    Says,
    answered,
    called,
    case,
    chat,
    function,
    gemini,
    messages,
    ollama,
    responses,
    result,
    says,
    tells,
    tool,
    used,
)

_FLAT: Final = {"type": "function", "name": "look", "parameters": CITY}
_PATCH: Final = {"type": "custom", "name": "apply_patch", "description": "Edits.",
                 "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/s"}}  # fmt: skip
_THOUGHT: Final = {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="}
_LEVEL: Final = "generationConfig.thinkingConfig.thinkingLevel"
_BUDGET: Final = "generationConfig.thinkingConfig.thinkingBudget"
_HI: Final[dict[str, Any]] = {"role": "user", "content": "hi"}

CASES: Final[list[Case]] = [
    # pipecat#4043, Aether#1026, crush#2913, LibreChat#14231, vane#1173, openai-openapi#541, webmcp-tools#417, github/app#3268
    case("tools and an effort in Chat, 5.4", "openai-chat", chat(tools=[function()], reasoning_effort="low"),
         chat54=({"reasoning_effort": "none"}, Says("effort")), gpt54={"reasoning.effort": "low"}),
    case("tools and an effort in Chat, 5.6", "openai-chat", chat(tools=[function()], reasoning_effort="high"),
         chat56=({"reasoning_effort": "none"}, Says("effort")), gpt56={"reasoning.effort": "high"}),
    # litellm#34569, livekit/agents#7169, llm-memory-api#178
    case("tools and no effort in Chat", "openai-chat", chat(tools=[function()]),
         chat56=({"reasoning_effort": "none"}, Says("effort")), chat54={"reasoning_effort": GONE}, gpt56={"reasoning": GONE}),
    case("an effort without tools in Chat", "openai-chat", chat(reasoning_effort="high"),
         chat54={"reasoning_effort": "high"}, chat56={"reasoning_effort": "high"}),
    case("Messages with tools to Chat", "anthropic-messages", messages(tools=[tool()], thinking={"type": "adaptive"}, output_config={"effort": "high"}),
         chat54=({"reasoning_effort": "none"}, Says("effort")), gpt54={"reasoning.effort": "high"}),
    # opencode#4451, openai-agents-python#2089, livekit/agents#7169
    case("minimal", "openai-chat", chat(reasoning_effort="minimal"), gpt51=({"reasoning.effort": "low"}, Says("effort")),
         gpt56=({"reasoning.effort": "low"}, Says("effort")), chat5={"reasoning_effort": "minimal"}),
    case("none", "openai-responses", responses(reasoning={"effort": "none"}), gpt51={"reasoning.effort": "none"},
         chat5=({"reasoning_effort": "minimal"}, Says("effort")), flash3={_LEVEL: "minimal"}, gemini3={_LEVEL: "low"}),
    case("xhigh", "openai-responses", responses(reasoning={"effort": "xhigh"}), gpt51=({"reasoning.effort": "high"}, Says("effort")),
         gpt52={"reasoning.effort": "xhigh"}, messages={"output_config.effort": "xhigh"}, opus46=({"output_config.effort": "high"}, Says("effort"))),
    # cc-switch-cli#404, codex-proxy#690, cc-fleet#29
    case("max", "anthropic-messages", messages(thinking={"type": "adaptive"}, output_config={"effort": "max"}),
         gpt56={"reasoning.effort": "max"}, gpt52=({"reasoning.effort": "xhigh"}, Says("effort")), opus46={"output_config.effort": "max"}),
    case("an effort alone", "anthropic-messages", messages(output_config={"effort": "medium"}),
         gpt52={"reasoning.effort": "medium"}, flash3={_LEVEL: "medium"}, gemini3=({_LEVEL: "high"}, Says("effort"))),
    case("an effort beside thinking", "anthropic-messages", messages(thinking={"type": "adaptive"}, output_config={"effort": "low"}),
         gpt52={"reasoning.effort": "low"}, chat={"reasoning_effort": "low"}, gemini={_LEVEL: "low"}),
    # langchain#35423, langchaingo#1497, vercel/ai#10932, litellm#13781, ragas#2418
    case("a temperature without an effort", "openai-chat", chat(temperature=0.5), gpt52={"temperature": 0.5},
         gpt56=({"temperature": GONE}, Says("temperature")), chat5=({"temperature": GONE}, Says("temperature")), plain={"temperature": 0.5}),
    case("a temperature with none", "openai-chat", chat(temperature=0, reasoning_effort="none"),
         gpt54={"temperature": 0, "reasoning.effort": "none"}, gpt56={"temperature": 0}),
    case("a temperature with an effort", "openai-chat", chat(temperature=0.2, top_p=0.5, reasoning_effort="high"),
         gpt54=({"temperature": GONE, "top_p": GONE, "reasoning.effort": "high"}, Says("temperature"), Says("top_p"))),
    case("the usual temperature", "openai-chat", chat(temperature=1, reasoning_effort="high"), gpt54=({"reasoning.effort": "high"},)),
    case("penalties and words that stop", "openai-chat", chat(presence_penalty=1, stop=["x"], seed=3),
         chat5=({"presence_penalty": GONE, "stop": GONE, "seed": 3}, Says("presence_penalty"), Says("stop"))),
    case("an effort for a model that does not think", "openai-chat", chat(reasoning_effort="low", temperature=0.5),
         gpt41=({"reasoning": GONE, "temperature": 0.5, "include": GONE}, Says("reasoning")), plain=({"reasoning": GONE}, Says("reasoning"))),
    # routatic/proxy#171, OpenAgentd#140, litellm-docs#67, claude-code#65863
    case("adaptive with a budget of 0", "anthropic-messages", messages(thinking={"type": "adaptive", "budget_tokens": 0}),
         haiku={"thinking.type": "enabled", "thinking.budget_tokens": 8192}),
    case("adaptive to an older model", "openai-chat", chat(reasoning_effort="low", max_tokens=9_000), haiku={"thinking": {"type": "enabled", "budget_tokens": 2048}, "output_config": GONE},
         messages={"thinking.type": "adaptive", "output_config.effort": "low"}),
    case("thinking off beside an effort", "anthropic-messages", messages(thinking={"type": "disabled"}, output_config={"effort": "high"}),
         deepseek={"thinking.type": "disabled"}, haiku=({"thinking.type": "disabled", "output_config": GONE}, Says("effort"))),
    case("a budget to the newest", "anthropic-messages", messages(max_tokens=9_000, thinking={"type": "enabled", "budget_tokens": 4_000}),
         messages=({"thinking.type": "adaptive", "output_config.effort": "medium"}, Says("budget")), haiku={"thinking.budget_tokens": 4_000}),
    case("an effort and a budget", "anthropic-messages", messages(max_tokens=9_000, thinking={"type": "enabled", "budget_tokens": 4_000}, output_config={"effort": "high"}),
         haiku=({"thinking.budget_tokens": 4_000, "output_config": GONE}, Says("effort"))),
    # aiproxy#311
    case("thinking and a forced call", "openai-responses", responses(tools=[_FLAT], tool_choice="required", reasoning={"effort": "high"}),
         messages=({"thinking": GONE, "tool_choice.type": "any"}, Says("reasoning"))),
    # big-AGI#893
    case("a level for 3, a budget for 2.5", "openai-chat", chat(reasoning_effort="high"), gemini3={_LEVEL: "high"}, gemini2={_BUDGET: 24_576}),
    case("a small budget", "gemini-generate", gemini(generationConfig={"thinkingConfig": {"thinkingBudget": 64}}),
         gemini2=({_BUDGET: 128}, Says("budget")), flash3={_BUDGET: 64}),
    case("a budget and a level", "gemini-generate", gemini(generationConfig={"thinkingConfig": {"thinkingBudget": 900, "thinkingLevel": "LOW"}}),
         flash3=({_BUDGET: 900, _LEVEL: GONE}, Says("effort"))),
    # litellm#41913
    case("a constant", "openai-chat", chat(tools=[function(schema={"type": "object", "properties": {"k": {"const": "x"}}})]),
         messages={"tools[0].input_schema.properties.k": {"const": "x"}}, gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.properties.k": {"const": "x"}}),
    case("a strict tool", "openai-chat", chat(tools=[function(strict=True)]), responses={"tools[0].strict": True}, messages=Says("strict")),
    case("no parallel calls", "openai-chat", chat(tools=[function()], parallel_tool_calls=False),
         messages={"tool_choice.disable_parallel_tool_use": True}, responses={"parallel_tool_calls": False}),
    case("one call at a time from Claude Code", "anthropic-messages", messages(tools=[tool()], tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
         chat={"parallel_tool_calls": False}, responses={"parallel_tool_calls": False}),
    case("a developer's message", "openai-chat", chat({"role": "developer", "content": "Be brief."}, ASK), messages={"system[0].text": "Be brief."},
         gemini={"systemInstruction.parts[0].text": "Be brief."}, ollama={"messages[0].role": "system"}),
    # litellm-rs#513, aisix#1185, litellm#18201
    case("Responses with all settings", "openai-responses", responses(tools=[_FLAT], tool_choice={"type": "function", "name": "look"}, parallel_tool_calls=False, max_output_tokens=50),
         chat={"tool_choice.function.name": "look", "parallel_tool_calls": False, "max_completion_tokens": 50}, messages={"tool_choice.name": "look", "max_tokens": 50}),
    case("text.format", "openai-responses", responses(text={"format": {"type": "json_schema", "name": "n", "schema": CITY, "strict": True}}),
         chat={"response_format.json_schema.name": "n", "response_format.json_schema.strict": True}, ollama={"format.type": "object"}),
    case("a picture in Responses", "openai-responses", responses({"role": "user", "content": [{"type": "input_text", "text": "See."}, {"type": "input_image", "image_url": PNG_URL}]}),
         chat={"messages[0].content[1].image_url.url": PNG_URL}, messages={"messages[0].content[1].source.type": "base64"}),
    # litellm#36197, claude-code-router#1686
    case("sealed reasoning of another vendor", "openai-responses", responses(_HI, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zzz"}, {"role": "assistant", "content": "Yes."}, _HI),
         responses={"input[1].encrypted_content": "zzz"}),
    case("thinking in history", "anthropic-messages", messages(_HI, says(_THOUGHT, used()), tells(result()), tools=[tool()]),
         responses={"input[1].type": "function_call"}, chat={"messages[1].tool_calls[0].function.name": "look"}),
    # 9router#1371, workbuddy2api#12, CLIProxyAPI#5753, ccx#43, inspect_ai#2587
    case("a tool of free text", "openai-responses", responses(tools=[_PATCH]), messages={"tools[0].input_schema.required": ["input"]},
         vllm={"tools[0].function.parameters.required": ["input"]}, gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.required": ["input"]}),
    # TradingAgents#169
    case("Ollama's own settings", "ollama-chat", ollama(options={"num_ctx": 16384, "top_k": 3}, think=False, keep_alive="5m"),
         ollama={"options.num_ctx": 16384, "think": False, "keep_alive": "5m"}, chat=Says("num_ctx"), messages=(Says("num_ctx"), {"thinking.type": "disabled"})),
    case("Ollama's form", "ollama-chat", ollama(format=CITY), chat={"response_format.type": "json_schema"}, gemini={"generationConfig.responseMimeType": "application/json"}),
    case("Ollama's picture", "ollama-chat", ollama({"role": "user", "content": "See.", "images": [PIXEL]}), messages={"messages[0].content[1].source.data": PIXEL}),
    # litellm#21584
    case("Gemini's instruction before two turns", "gemini-generate", gemini({"role": "user", "parts": [{"text": "one"}]}, {"role": "user", "parts": [{"text": "two"}]}, systemInstruction={"role": "user", "parts": [{"text": "sys"}]}),
         messages={"system[0].text": "sys", "messages[0].role": "user"}, chat={"messages[0].content": "sys"}),
    # claudish#26, openclaude#553, opencode#4832, claude-proxy#16
    case("a call of Claude Code to Gemini 3", "anthropic-messages", messages(_HI, says(used()), tells(result()), tools=[tool()]),
         gemini3={"contents[1].parts[0].thoughtSignature": "skip_thought_signature_validator"}, gemini2={"contents[1].parts[0].thoughtSignature": GONE}),
    # hermes-agent#36070
    case("a picture by data", "openai-chat", chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]}),
         gemini={"contents[0].parts[0].inlineData": {"mimeType": "image/png", "data": PIXEL}}),
    case("a call and its result", "openai-chat", chat(ASK, called(), answered()), gpt56={"input[2].type": "function_call_output"}, gemini={"contents[2].parts[0].functionResponse.name": "look"}),
]  # fmt: skip

"""The SDKs and frameworks: scripts in `scripts/` that use them as their documents show, with a tool of ours."""

from __future__ import annotations

from driver import CHAT, GEMINI, MESSAGES, OLLAMA, RESPONSES, Driver, script
from plan import FINAL_TEXT, Call, Plan, plan_of_records

_PROTOCOLS = {"ollama": OLLAMA, "chat": CHAT, "responses": RESPONSES, "anthropic": MESSAGES, "google": GEMINI}


def framework(name: str, package: str, file: str, *modes: str) -> list[Driver]:
    """One script in several modes, which it reads from PROVIDER. In that of Responses they let the server store."""
    return [
        Driver(
            f"{name}-{mode}", name, package, _PROTOCOLS[mode], script(file, PROVIDER=mode), passes=mode != "responses"
        )
        for mode in modes
    ]


DRIVERS = [
    Driver("ollama-python", "sdks", "ollama", OLLAMA, script("ollama_python.py", app="ollama")),
    Driver("openai-python-chat", "sdks", "openai", CHAT, script("openai_chat_python.py", app="openai")),
    Driver("openai-python-responses", "sdks", "openai", RESPONSES, script("openai_responses_python.py", app="openai")),
    Driver(
        "openai-python-stored",
        "sdks",
        "openai",
        RESPONSES,
        script("openai_stored_python.py", app="openai"),
        note="goes on from stored responses",
        passes=False,
    ),
    Driver("anthropic-python", "sdks", "anthropic", MESSAGES, script("anthropic_python.py", app="anthropic")),
    Driver("google-genai-python", "sdks", "google-genai", GEMINI, script("google_python.py", app="google-genai")),
    Driver("ollama-js", "js-sdks", "ollama", OLLAMA, script("ollama_js.mjs")),
    Driver("openai-js-chat", "js-sdks", "openai", CHAT, script("openai_chat_js.mjs")),
    Driver("openai-js-responses", "js-sdks", "openai", RESPONSES, script("openai_responses_js.mjs")),
    Driver("anthropic-js", "js-sdks", "@anthropic-ai/sdk", MESSAGES, script("anthropic_js.mjs")),
    Driver("google-genai-js", "js-sdks", "@google/genai", GEMINI, script("google_js.mjs")),
    Driver("vercel-ai-ollama", "vercel-ai", "ai", OLLAMA, script("vercel_ai.mjs", PROVIDER="ollama")),
    Driver("vercel-ai-chat", "vercel-ai", "ai", CHAT, script("vercel_ai.mjs", PROVIDER="chat")),
    Driver("vercel-ai-compatible", "vercel-ai", "ai", CHAT, script("vercel_ai.mjs", PROVIDER="compatible")),
    Driver(
        "vercel-ai-responses", "vercel-ai", "ai", RESPONSES, script("vercel_ai.mjs", PROVIDER="responses"), passes=False
    ),
    Driver("vercel-ai-anthropic", "vercel-ai", "ai", MESSAGES, script("vercel_ai.mjs", PROVIDER="anthropic")),
    Driver("vercel-ai-google", "vercel-ai", "ai", GEMINI, script("vercel_ai.mjs", PROVIDER="google")),
    *framework("pydantic-ai", "pydantic-ai-slim", "pydantic_ai_agent.py", "chat", "responses", "anthropic", "google"),
    *framework("langchain", "langchain", "langchain_agent.py", "ollama", "chat", "responses", "anthropic", "google"),
    *framework("llama-index", "llama-index-core", "llama_index_agent.py", "ollama", "chat", "google"),
    *framework("openai-agents", "openai-agents", "openai_agents_agent.py", "chat", "responses"),
    *framework("strands", "strands-agents", "strands_agent.py", "ollama", "chat", "anthropic", "google"),
    Driver(
        "litellm-ollama",
        "litellm",
        "litellm",
        OLLAMA,
        script("litellm_loop.py", PREFIX="ollama_chat"),
        note="calls in one chunk",
        passes=False,
    ),
    Driver("litellm-chat", "litellm", "litellm", CHAT, script("litellm_loop.py", PREFIX="openai", BASE_PATH="/v1")),
    Driver(
        "litellm-anthropic", "litellm", "litellm", MESSAGES, script("litellm_loop.py", PREFIX="anthropic"), passes=False
    ),
    Driver(
        "litellm-google",
        "litellm",
        "litellm",
        GEMINI,
        script("litellm_loop.py", PREFIX="gemini", BASE_PATH="/v1beta"),
        passes=False,
    ),
    Driver(
        "smolagents",
        "smolagents",
        "smolagents",
        CHAT,
        script("smolagents_agent.py"),
        is_textual=True,
        note="results as the user's text",
        plan=Plan(plan_of_records().steps, ending=Call("final_answer", {"answer": FINAL_TEXT}, "")),
    ),
    *framework("agno", "agno", "agno_agent.py", "ollama", "chat", "responses", "anthropic", "google"),
    *framework("deepagents", "deepagents", "deepagents_agent.py", "ollama", "chat", "anthropic", "google"),
    Driver("google-adk", "google-adk", "google-adk", GEMINI, script("google_adk_agent.py", app="google-genai")),
    Driver(
        "claude-agent-sdk",
        "claude-agent-sdk",
        "claude-agent-sdk",
        MESSAGES,
        script("claude_agent.py", app="claude-code", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1"),
        plan=plan_of_records("mcp__lab__record"),
    ),
    Driver(
        "crewai",
        "crewai",
        "crewai",
        CHAT,
        script("crewai_crew.py", CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false"),
    ),
    *framework("llm", "llm", "llm_tools.py", "ollama", "chat"),
    Driver(
        "open-webui",
        "open-webui",
        "open-webui",
        OLLAMA,
        script("open_webui.py"),
        seconds=300,
        note="its own server with a tool of its workspace, without its models for speech and embeddings",
    ),
]

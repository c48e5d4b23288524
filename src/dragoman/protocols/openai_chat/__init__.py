"""OpenAI Chat Completions (https://platform.openai.com/docs/api-reference/chat, read 2026-11-21)."""

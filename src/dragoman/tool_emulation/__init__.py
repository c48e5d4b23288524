"""Tool calls for servers or models without tools: through structured output, or in words.

`schema`: the answer is one JSON object, `{"tool_calls": [{"name", "arguments"}]}` or `{"answer": text}`, and its schema
contains those of the tools. `prompted`: a system text describes the tools, and calls are written as
`<tool_call>{"name", "arguments"}</tool_call>`, the form of Hermes, which most open models have seen in training
(https://github.com/NousResearch/Hermes-Function-Calling, README, read 2026-11-21). In both ways no tool is sent, and
earlier calls and results become text. Stages read the answers back as the same events.
"""

from dragoman.tool_emulation.request import ask, reading_mode, without_tools

__all__ = ["ask", "reading_mode", "without_tools"]

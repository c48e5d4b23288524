"""Which errors say that a server or its model knows no tools. Most wordings are of issue threads, clipped."""

from __future__ import annotations

from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.events import Failure
from for_each import for_each

REFUSALS = """
registry.ollama.ai/library/smollm2:135m does not support tools
stablelm2:latest does not support tools
"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set
tool_choice="required" requires --tool-call-parser to be set
tools param requires --jinja flag
Unsupported param: tools
No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing
No endpoints found that support tool use. Try disabling "question". To learn more about provider routing, visit the docs
`tool calling` is not supported with this model
Function calling is not enabled for models/gemma-3-27b-it
Function calling is not enabled for this model
tools is not supported in this model. For a list of supported models, refer to https://platform.openai.com/docs/guides/function-calling#models-supporting-function-calling.
Unsupported parameter: 'tools' is not supported with this model.
Invalid request content: The model does not support tool use or function calling.
deepseek-reasoner does not support Function Calling
This model doesn't support tool use.
This model doesn't support tool use in streaming mode.
InternalError.Algo.InvalidParameter: The tool call is not supported.
Tool use has not been enabled, because it is unsupported by this model
Unrecognized request argument supplied: tools
tools: Extra inputs are not permitted
unknown field `tools`
Model mistral-7b does not support function calls
This API does not support tool use
该模型不支持工具调用
""".strip().splitlines()

OTHERS = """
Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.
Function calling mode `ANY` is not enabled for api version v1beta
No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit the docs
Invalid tool_choice type: 'object'. Supported string values: none, auto, required
Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.
tool call validation failed: parameters for tool HassTurnOff did not match schema
Function calling with a response mime type: 'application/json' is unsupported
Unsupported parameter: 'parallel_tool_calls' is not supported with this model.
parallel tool calls are not supported with this model
This model does not support parallel tool calls
registry.ollama.ai/library/gemma:2b does not support thinking
Message has tool role, but there was no previous assistant message with a tool call!
Role 'function' is not supported. Please use a valid role: SYSTEM, USER, MODEL.
Thinking mode does not support this tool_choice
tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12
tools.0.function.strict: Extra inputs are not permitted
tool_choice is not supported with this model
Hosted tool 'web_search_preview' is not supported with gpt-4.1-nano.
This model does not support tool results with images
Function calling is not supported together with structured output
This model does not support tools with response_format
The model `llama-no-tools` does not exist or you do not have access to it.
Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.
Custom tools are not supported by this model; strict tools are not supported
Tool type 'code_interpreter' is not supported
This model does not support tools of type custom
Requested token count exceeds the model's maximum context length
The web_search tool is not supported with this model
MCP tools are not supported by this model
Role 'tool' is not supported
The model `does-not-support-tools-7b` does not exist
""".strip().splitlines()


@for_each("message", REFUSALS)
def test_the_server_knows_no_tools(message: str):
    assert refuses_tools(Failure("bad_request", message))
    assert refuses_tools(Failure("not_found", message, status=404))


@for_each("message", OTHERS)
def test_something_else_is_wrong(message: str):
    assert not refuses_tools(Failure("bad_request", message))


@for_each("kind", ["auth", "quota", "rate", "overloaded", "timeout", "connection", "context"])
def test_a_fault_that_another_way_cannot_mend(kind):
    assert not refuses_tools(Failure(kind, "this model does not support tools"))

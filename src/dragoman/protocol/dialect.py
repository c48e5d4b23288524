"""The differences of a provider or model from its protocol's specification, as data. The defaults are the
specification's.
"""

from __future__ import annotations

from typing import Literal, final

import msgspec

from dragoman.types import Role


@final
class Dialect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The differences of a provider within its protocol. The defaults are the protocol's own specification.

    Fields named `supports_*` say what may be sent; what may not is left out with a `dropped` deviation. The page of
    providers is made from the words behind each field.
    """

    # requests
    usage_in_stream: bool = True  # ask for usage in the stream (`stream_options.include_usage`)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"  # what chat calls it
    system_role: Literal["system", "developer"] = "system"  # the role of system messages
    #: how chat asks for thinking: `reasoning_effort`, `reasoning`, `thinking`, `enable_thinking`, `think`, or never
    reasoning_style: Literal["effort", "openrouter", "thinking-type", "enable-thinking", "think", "none"] = "effort"
    replay_reasoning: bool = False  # send earlier thinking back as `reasoning_field`
    supports_store: bool = False  # `store`: whether the vendor keeps the answer
    supports_prompt_cache_key: bool = False  # the session names the prompt for its cache
    supports_prompt_cache_retention: bool = False  # its life can be chosen; the vendor's own host only
    supports_cache_control: bool = False  # Anthropic's markers inside parts, also of chat
    supports_parallel_tool_calls: bool = True  # whether several calls at once can be turned off
    supports_tool_choice: bool = True  # whether a call can be required at all
    supports_named_tool_choice: bool = True  # whether a call of one tool can be required
    supports_response_schema: bool = True  # structured output
    supports_image_url: bool = True  # false: only base64 data
    videos: Literal["none", "files", "pages"] = "files"  # in openai-chat: none, files, or pages of YouTube too
    supports_vendor_fields: bool = False  # the vendor's own host: service_tier, verbosity, metadata and the like
    supports_top_k: bool = False  # in openai-chat: an extension of local servers
    tool_name_in_result: bool = False  # a result repeats its tool's name
    strict_tools: bool = False  # `strict` of a tool, and what the GPT models of the vendor take
    only_functions: bool | None = None  # knows function tools alone; not set: as the protocol is usually spoken
    hosted_tools: tuple[str, ...] = ()  # kinds that the provider runs, for clients of other protocols
    id_form: Literal["any", "alphanumeric-9"] = "any"  # Mistral wants exactly 9 letters or digits
    supports_later_system: bool = True  # in anthropic-messages: a message of the system within the conversation
    strict_turns: bool = False  # a model's own template: one system message, first, and turns that alternate
    answer_after_results: bool = False  # Mistral wants the model's turn between results and the user's words
    force_call_by_prefill: bool = False  # a required call needs its opening written for the model
    temperature_max: float | None = None  # a higher one is lowered to it
    # responses
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"  # where thinking is sent back
    thinking_tags: tuple[str, str] | None = None  # a pair beside the known ones
    thinking_opened: bool = False  # the opening tag is in the prompt, so only the closing one is seen
    cost_in_usage: bool = False  # in openai-responses: `usage` says what the answer cost, in US dollars


PLAIN = Dialect()


@final
class TurnRules(msgspec.Struct, frozen=True, gc=False):
    """A server's rules for turns.

    Attributes:
        later_system: a message of the system may stand within the conversation.
        user: a conversation needs a message that is not the system's.
        alternate: no two neighbours may have one role.
        seals_calls: calls and texts may have signatures, whichever protocol brought them.
        no_media: roles whose messages may contain no media.
    """

    later_system: bool = True
    user: bool = False
    alternate: bool = False
    seals_calls: bool = False
    no_media: tuple[Role, ...] = ()


ANY_TURNS = TurnRules()


@final
class ModelLimits(msgspec.Struct, frozen=True, gc=False):
    """Limits of the model, in tokens; None is unknown. `num_ctx_cap` bounds what Ollama is asked to load."""

    context: int | None = None
    max_output: int | None = None
    num_ctx_cap: int = 32_768


UNKNOWN_MODEL = ModelLimits()

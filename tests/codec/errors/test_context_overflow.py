"""Wordings of "the prompt does not fit the context", of real servers and gateways, and of what only sounds like it."""

# ruff: noqa: ISC004 - a wording of two lines is one string

from __future__ import annotations

import json
from pathlib import Path

from dragoman.codec.errors.context_overflow import Overflow, read_overflow
from dragoman.codec.errors.error_body import read_problem
from dragoman.routing.circuit_breaker import COUNTED
from dragoman.routing.retry import pick_delay
from for_each import for_each

#: (words, the limit in them, the tokens of the request in them). The comment says whose words they are.
WORDINGS: list[tuple[str, int | None, int | None]] = [
    # OpenAI and what copies it
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 140412 tokens. "
        "Please reduce the length of the messages.",
        128000,
        140412,
    ),
    (
        "This model's maximum context length is 4097 tokens. However, you requested 4295 tokens (3245 in the messages, "
        "1050 in the completion). Please reduce the length of the messages or completion.",
        4097,
        4295,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("Your input exceeds the model's context window", None, None),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300418 tokens. "
        "Please reduce the length of the messages.",
        272000,
        300418,
    ),
    # Anthropic
    ("prompt is too long: 215000 tokens > 200000 maximum", 200000, 215000),
    (
        "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000, decrease input length or "
        "`max_tokens` and try again",
        200000,
        238167,
    ),
    # Amazon Bedrock
    ("The model returned the following errors: Input is too long for requested model.", None, None),
    (
        "The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum "
        "length. Please update the input to try again.",
        None,
        None,
    ),
    # Google
    (
        "The input token count (1113812) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1113812,
    ),
    # xAI
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    # Groq
    ("Please reduce the length of the messages or completion.", None, None),
    # Cerebras
    (
        "Please reduce the length of the messages or completion. Current length is 8500 while limit is 8192",
        8192,
        8500,
    ),
    # Mistral
    (
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        65673,
    ),
    # Moonshot
    (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300123)",
        262144,
        300123,
    ),
    # MiniMax; the figure is a code
    ("invalid params, context window exceeds limit (2013)", None, None),
    # Zhipu
    ("Prompt exceeds max length", None, None),
    ("Prompt 超长", None, None),
    # DashScope, and Xunfei with its words
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]", 202745, None),
    ("Range of input length should be [1, 983616]", 983616, None),
    # Volcengine
    ("Total tokens of image and text exceed max message tokens. Request id: 0217428391823", None, None),
    # DeepSeek
    (
        "This model's maximum context length is 65536 tokens. However, you requested 70020 tokens (62020 in the "
        "messages, 8000 in the completion). Please reduce the length of the messages or completion.",
        65536,
        70020,
    ),
    # OpenRouter, its own words and Poolside's through it
    (
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of "
        'text input). Please reduce the length of either one, or use the "middle-out" transform to compress your '
        "prompt automatically.",
        32768,
        42832,
    ),
    ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", 131040, 131393),
    # parenthesised
    ("Input length (265330) exceeds model's maximum context length (262144).", 262144, 265330),
    # vLLM, over its versions
    (
        "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt "
        "contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length of the "
        "input prompt or the number of requested output tokens. (parameter=input_tokens, value=262145)",
        262144,
        262145,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 "
        "tokens and your request has 2104 input tokens (2000 > 4096 - 2104).",
        4096,
        None,
    ),
    (
        "The decoder prompt (length 40021) is longer than the maximum model length of 32768. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
        32768,
        40021,
    ),
    (
        "You passed 9001 input tokens and requested 512 output tokens. However, the model's context length is only "
        "8192 tokens, resulting in a maximum input length of 7680 tokens. Please reduce the length of the input "
        "prompt.",
        8192,
        9001,
    ),
    # SGLang
    ("The input (61709 tokens) is longer than the model's context length (40960 tokens).", 40960, 61709),
    (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of "
        "40210 tokens: 39186 tokens from the input messages and 1024 tokens for the completion.",
        32768,
        40210,
    ),
    (
        "Input length (33002 tokens) exceeds the maximum allowed length (32763 tokens). Use a shorter input or enable "
        "--allow-auto-truncate.",
        32763,
        33002,
    ),
    # llama.cpp, over its versions, and its Python server
    ("request (6021 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 6021),
    (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        None,
    ),
    ("Requested tokens (4600) exceed context window of 4096", 4096, 4600),
    # LM Studio
    (
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or "
        "provide a shorter input.",
        4096,
        15857,
    ),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10136>= "
        "n_ctx: 7866). Try to load the model with a larger context length, or provide a shorter input.",
        7866,
        10136,
    ),
    (
        "Reached context length of 32000 tokens with model (arch: gpt-oss) that does not currently support "
        "mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat.",
        32000,
        None,
    ),
    ("Error: Input length 6491 exceeds context length 1500", 1500, 6491),
    # Ollama
    ("prompt too long; exceeded max context length by 540451 tokens (ref: 00ad71bb-fea0-4639-9dc9)", None, None),
    ("the input length exceeds the context length", None, None),
    # LiteLLM's wrapping
    (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - "
        "This model's maximum context length is 16384 tokens. However, your request has 19427 input tokens. Please "
        "reduce the length of the input messages. (parameter=input_tokens, value=19427)",
        16384,
        19427,
    ),
    (
        "litellm.ServiceUnavailableError: litellm.MidStreamFallbackError: litellm.BadRequestError: VertexAIException "
        'BadRequestError - b\'{\\n "error": {\\n "code": 400,\\n "message": "The input token count (1113812) exceeds '
        'the maximum number of tokens allowed (1048576).",\\n "status": "INVALID_ARGUMENT"\\n }\\n}\\n\'No fallback '
        "model group found for original model_group=gemini/gemini-2.5-pro:global.",
        1048576,
        1113812,
    ),
    # GitHub Copilot
    ("prompt token count of 391491 exceeds the limit of 128000", 128000, 391491),
    # Text Generation Inference
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4200 `inputs` tokens and "
        "512 `max_new_tokens`",
        4096,
        4200,
    ),
    ("Input validation error: `inputs` must have less than 2048 tokens. Given: 3011", 2048, 3011),
    # DS4, Atlas, Cohere, Fireworks, Cloudflare, TensorRT-LLM
    ("Prompt has 32769 tokens, but the configured context size is 32768 tokens", 32768, 32769),
    ("Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)", 2048, 5152),
    (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5012. Try using a shorter "
        "prompt",
        4081,
        5012,
    ),
    ("The prompt is too long: 140233, model maximum context length: 131071", 131071, 140233),
    (
        "The estimated number of input and maximum output tokens (9216) exceeded this model context window limit "
        "(7968).",
        7968,
        9216,
    ),
    ("The sum of prompt length (9011) and max_tokens (512) should not exceed max_num_tokens (8192)", 8192, 9011),
]

#: (words, status): none of them is an overflow.
LOOK_ALIKES: list[tuple[str, int]] = [
    ("Too many tokens, please wait before trying again.", 429),
    ("Too many tokens, please wait before trying again.", 400),
    ("ThrottlingException: Too many tokens, please wait before trying again.", 400),
    ("Throttling error: Too many tokens, please wait before trying again.", 503),
    (
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29411, Requested 5120. Please try "
        "again in 9.062s.",
        429,
    ),
    (
        "Request too large for model `llama-3.1-8b` on tokens per minute (TPM): Limit 6000, Requested 9012, please "
        "reduce your message size and try again.",
        413,
    ),
    ("This request would exceed your organization's rate limit of 40,000 input tokens per minute.", 429),
    ("This request exceeds the limit of 30000 tokens per minute", 429),
    ("request reached organization TPD rate limit, current: 1506556, limit: 1500000", 429),
    ("Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000", 429),
    ("Extra usage is required for long context requests.", 429),
    ("The long context beta is not yet available for this subscription.", 400),
    ("Model context window too small (minimum is 128k tokens)", 400),
    ("max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5", 400),
    ("max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.",
     400),
    ("Range of max_tokens should be [1, 8192]", 400),
    ("Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150.",
     400),
    ("Invalid 'messages[0].name': string too long. Expected a string with maximum length 64, but got 90 instead.", 400),
    ('Post "http://10.0.0.5:8000/v1": context deadline exceeded (Client.Timeout exceeded while awaiting headers)', 502),
    ("context canceled", 499),
    ("Failed to load model: not enough memory for a context length of 131072", 500),
    ("failed to allocate the KV cache for context size 131072", 500),
    ("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6017223 bytes > 5242880 bytes", 400),
    ("prompt_cache_key must be at most 64 characters", 400),
    ("The upstream server is overloaded, please reduce your request rate", 503),
]  # fmt: skip


def body_of(words: str) -> bytes:
    return json.dumps({"error": {"message": words, "type": "invalid_request_error"}}).encode()


@for_each(("words", "limit", "asked"), WORDINGS, ids=[words[:50] for words, _, _ in WORDINGS])
def test_an_overflow_is_one_whatever_its_words_and_status(words, limit, asked):
    for status in (400, 413, 422, 500, 503):
        failure = read_problem(body_of(words), status=status)
        assert failure.kind == "context", (status, failure)
        assert isinstance(pick_delay(failure, tries=1, random=0.5), str), "never tried again"
    assert read_problem(words.encode(), status=None).kind == "context"
    assert failure.kind not in COUNTED, "never an outlier"
    assert read_overflow(failure.message) == Overflow(limit, asked)


@for_each(("words", "status"), LOOK_ALIKES, ids=[words[:50] for words, _ in LOOK_ALIKES])
def test_what_only_sounds_like_it_is_none(words, status):
    assert read_problem(body_of(words), status=status).kind != "context"
    assert read_problem(body_of(words), status=None).kind != "context"


def test_there_are_enough_of_both():
    assert len(WORDINGS) >= 40
    assert len(LOOK_ALIKES) >= 12


def test_the_page_about_routing_tells_how_many():
    page = Path(__file__).parents[3] / "docs" / "explanation" / "routing.md"
    assert f"by {len(WORDINGS)} wordings" in page.read_text(encoding="utf-8")

"""Tokens at which models stop, and which a server may let through at the end of the message."""

from __future__ import annotations

from typing import Final

#: Of the chat templates of Qwen, Llama 3 and 4, Granite, Phi, Gemma, Mistral, Ling and EXAONE (read 2026-11).
STOP_TOKENS: Final = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|end|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<turn|>",
    "<|role_end|>",
    "[|endofturn|]",
    "</s>",
)

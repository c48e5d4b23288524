"""Tokens at which models stop, and with which their next turn begins: a server may let them through behind a call."""

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
#: What begins the assistant's own next turn, in the same templates. Harmony's begins calls.
OWN_TURNS: Final = (
    "<|im_start|>assistant",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<|header_start|>assistant<|header_end|>",
    "<|start_of_role|>assistant<|end_of_role|>",
    "<start_of_turn>model",
    "<|turn>model",
    "<seed:bos>assistant",
    "<|im_assistant|>assistant<|im_middle|>",
    "<|assistant|>",
    "<｜Assistant｜>",
    "[|assistant|]",
)

"""Make tests/data/tiny-random.gguf: a llama-architecture model with random weights, 239 KB.

    python -m pip install gguf
    python scripts/make_tiny_gguf.py tests/data/tiny-random.gguf

The seed is fixed, so the bytes are always the same, SHA-256
8e5c682def7a4076796acf76e8b2deb093baad42e76a8c23a85ffd931858241a
(gguf 0.19.0 and numpy 2.4.6; another gguf may write another header).
"""

import sys
from pathlib import Path

import gguf
import numpy as np

WIDTH, HEADS, FEED_FORWARD, LAYERS, CONTEXT = 64, 4, 128, 2, 8192
TEMPLATE = Path(__file__).parents[1] / "src/dragoman/embedded/chatml_tools.jinja"
CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
# llama.cpp refuses a vocabulary of this kind without merges.
MERGES = [("t", "h"), ("i", "n")]


def byte_symbols() -> list[str]:
    """The 256 printable characters that stand for the bytes in a GPT-2 vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(others)}
    return [symbols[byte] for byte in range(256)]


def main(path: str) -> None:
    tokens = byte_symbols() + CONTROL + ["".join(pair) for pair in MERGES]
    types = [gguf.TokenType.CONTROL if token in CONTROL else gguf.TokenType.NORMAL for token in tokens]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("dragoman-ci-random")
    writer.add_license("CC0-1.0")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(tokens.index("<|endoftext|>"))
    writer.add_eos_token_id(tokens.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE.read_text(encoding="utf-8"))
    add_tensors(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tensors(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    """Random weights, in the order that makes the file what it is."""
    generator = np.random.default_rng(0)

    def add_random(name: str, rows: int, columns: int) -> None:
        writer.add_tensor(name, (generator.standard_normal((rows, columns)) * 0.05).astype(np.float16))

    def add_ones(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    add_random("token_embd.weight", vocabulary, WIDTH)
    add_ones("output_norm.weight")
    add_random("output.weight", vocabulary, WIDTH)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add_random(f"blk.{layer}.{name}.weight", WIDTH, WIDTH)
        add_random(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, WIDTH)
        add_random(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, WIDTH)
        add_random(f"blk.{layer}.ffn_down.weight", WIDTH, FEED_FORWARD)
        add_ones(f"blk.{layer}.attn_norm.weight")
        add_ones(f"blk.{layer}.ffn_norm.weight")


if __name__ == "__main__":
    main(sys.argv[1])

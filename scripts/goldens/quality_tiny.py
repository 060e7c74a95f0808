#!/usr/bin/env python3
"""Writes tiny random models as complete GGUF files, with the logits that transformers computes from them in float64.

  quality_tiny.py OUT_DIR [--tool ./quality_llama --scratch DIR]

tiny-NAME.gguf, tiny-NAME.tokens.i32, tiny-NAME.logits.f32: see tests/data/quality/SOURCE.md. With --tool, llama.cpp
computes the same logits from the same file (f32 KV cache), which shows that the file is what llama.cpp takes it for.
"""

import argparse
import subprocess
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch

import quality_model as qm

VOCABULARY, WIDTH, FEED_FORWARD, LAYERS, HEADS, HEAD_DIM, CONTEXT = 64, 64, 64, 2, 4, 16, 1024
EPSILON = 1e-5

CHAT_TEMPLATE = ("{% for message in messages %}"
                 "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
                 "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")


@dataclass
class Tiny:
    name: str
    family: str
    kv_heads: int
    positions: int
    tied: bool = False
    head_dim: int = HEAD_DIM
    vocabulary: int = VOCABULARY
    rope_base: float = 10000.0
    llama3: dict | None = None   # transformers' rope_parameters of Llama 3


# An original context of 64 puts all three kinds of frequency (kept, blended, divided) among eight, and well within
# the 300 positions. The multi-head model has a vocabulary that is no multiple of 32, and
# the heads of the Qwen 3 one are wider together than the model (as in the real ones).
MODELS = [
    Tiny("llama-mha", "llama", 4, 40, vocabulary=70),
    Tiny("llama-gqa", "llama", 2, 300),
    Tiny("llama-mqa", "llama", 1, 40, tied=True),
    Tiny("llama3-rope", "llama", 2, 300, rope_base=500000.0,
         llama3={"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
                 "high_freq_factor": 4.0, "original_max_position_embeddings": 64}),
    Tiny("qwen2", "qwen2", 2, 40, tied=True, rope_base=1000000.0),
    Tiny("qwen3", "qwen3", 2, 300, head_dim=32, rope_base=1000000.0),
]


def random_model(tiny, rng):
    """A transformers model with weights large enough that attention is uneven and every tensor matters."""
    config_type, model_type = qm.FAMILIES[tiny.family]
    config = config_type(
        vocab_size=tiny.vocabulary, hidden_size=WIDTH, intermediate_size=FEED_FORWARD, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=tiny.kv_heads, head_dim=tiny.head_dim,
        max_position_embeddings=CONTEXT, rms_norm_eps=EPSILON, tie_word_embeddings=tiny.tied,
        rope_parameters=tiny.llama3 or {"rope_type": "default", "rope_theta": tiny.rope_base},
        attn_implementation="sdpa")
    model = model_type(config).eval()
    for name, parameter in model.named_parameters():
        values = rng.standard_normal(tuple(parameter.shape))
        if "norm" in name:
            values = 1 + 0.2 * values
        elif "q_proj.weight" in name or "k_proj.weight" in name:
            values = 0.2 * values
        elif name.endswith("bias"):
            values = 0.5 * values
        else:
            values = values / np.sqrt(parameter.shape[-1])
        parameter.data = torch.from_numpy(values.astype(np.float32))
    model.tie_weights()
    return model


def tokenizer(size):
    """Byte-level BPE: lower-case letters, digits, space, newline, a few merges; numbered fillers up to size."""
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens += [chr(c) for c in range(ord("a"), ord("z") + 1)] + [str(d) for d in range(10)] + ["Ġ", "Ċ", ".", ","]
    merges = ["t h", "th e", "Ġ the", "i n", "a n", "an d", "Ġ and", "Ġ a", "e r", "o n", "o u", "r e"]
    tokens += [merge.replace(" ", "") for merge in merges]
    types = [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * (len(tokens) - 3)
    while len(tokens) < size:
        tokens.append(f"<|unused_{len(tokens)}|>")
        types.append(gguf.TokenType.UNUSED)
    assert len(set(tokens)) == len(tokens) == size
    return tokens, types, merges


def write_tokenizer(writer, size):
    tokens, types, merges = tokenizer(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def llama3_factors(rope):
    """The divisors of the frequencies, as llama.cpp's converter computes rope_freqs.weight."""
    factors = []
    for i in range(0, HEAD_DIM, 2):
        wavelength = 2 * np.pi * rope["rope_theta"] ** (i / HEAD_DIM)
        low = rope["original_max_position_embeddings"] / rope["low_freq_factor"]
        high = rope["original_max_position_embeddings"] / rope["high_freq_factor"]
        if wavelength < high:
            factors.append(1.0)
        elif wavelength > low:
            factors.append(rope["factor"])
        else:
            smooth = (rope["original_max_position_embeddings"] / wavelength - rope["low_freq_factor"]) / (
                rope["high_freq_factor"] - rope["low_freq_factor"])
            factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return np.array(factors, dtype=np.float32)


def write_gguf(path, tiny, model):
    writer = gguf.GGUFWriter(path, tiny.family)
    writer.add_name(f"tiny {tiny.name}, random weights")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(tiny.kv_heads)
    writer.add_rope_freq_base(tiny.rope_base)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    if tiny.family == "llama":
        writer.add_rope_dimension_count(HEAD_DIM)
        writer.add_vocab_size(tiny.vocabulary)
    if tiny.family == "qwen3":
        writer.add_key_length(tiny.head_dim)
        writer.add_value_length(tiny.head_dim)
    write_tokenizer(writer, tiny.vocabulary)

    state = {name: values.numpy() for name, values in model.state_dict().items()}
    for ours, theirs in qm.OUTER_NAMES.items():
        if not (tiny.tied and ours == "output.weight"):
            writer.add_tensor(ours, state[theirs])
    if tiny.llama3:
        writer.add_tensor("rope_freqs.weight", llama3_factors(tiny.llama3))
    for layer in range(LAYERS):
        for ours, theirs in qm.LAYER_NAMES.items():
            for kind in ("weight", "bias"):
                values = state.get(f"model.layers.{layer}.{theirs}.{kind}")
                if values is None:
                    continue
                if tiny.family == "llama" and ours in ("attn_q", "attn_k"):
                    values = qm.to_interleaved(values, HEADS if ours == "attn_q" else tiny.kv_heads)
                writer.add_tensor(f"blk.{layer}.{ours}.{kind}", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--tool")
    parser.add_argument("--scratch", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for index, tiny in enumerate(MODELS):
        rng = np.random.default_rng([2026, index])
        original = random_model(tiny, rng)
        stem = args.out / f"tiny-{tiny.name}"
        write_gguf(f"{stem}.gguf", tiny, original)
        ids = rng.integers(3, VOCABULARY, tiny.positions).astype("<i4")
        ids.tofile(f"{stem}.tokens.i32")

        # The reference reads the file back; the model it was written from (its own rope scaling) must agree.
        model, factors = qm.load(f"{stem}.gguf")
        with torch.no_grad():
            from_original = original(torch.as_tensor(ids, dtype=torch.long)[None], use_cache=False).logits[0].numpy()
        model = qm.use_float64(model, factors)
        with torch.no_grad():
            logits = model.lm_head(qm.hidden_states(model, ids)).numpy()
        logits.astype("<f4").tofile(f"{stem}.logits.f32")
        line = (f"{stem.name}: {Path(f'{stem}.gguf').stat().st_size} bytes, logits' deviation {logits.std():.2f}, "
                f"transformers float32 off by {np.abs(logits - from_original).max():.1e}")
        if args.tool:
            out = args.scratch / "tiny.f32"
            subprocess.run([args.tool, "logits", f"{stem}.gguf", f"{stem}.tokens.i32", str(tiny.positions), "1", "off",
                            "f32", out], check=True, stdout=subprocess.DEVNULL)
            peer = np.fromfile(out, dtype="<f4").reshape(logits.shape)
            line += f", llama.cpp by {np.abs(logits - peer).max():.1e}, mean KL {qm.kl_rows(logits, peer).mean():.1e}"
        print(line)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes tiny random models of every architecture and rope scaling beyond those of quality_tiny.py, as complete GGUF files, with
the logits that transformers computes from the same weights in float64.

  quality_families.py OUT_DIR [NAME ...] [--tool ./quality_llama --scratch DIR]

tiny-NAME.gguf, tiny-NAME.tokens.i32, tiny-NAME.logits.f32: see tests/data/quality/SOURCE.md. The reference is transformers' own
module, with every float32 inside it (norms, rope angles, softmax) made float64: see `quality_model.in_float64`. Windows are shorter than the
300 positions, and original contexts too, so that both matter. With --tool, llama.cpp computes the same logits from the file.
"""

import argparse
import copy
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers as hf
import transformers.models.llama.modeling_llama

import quality_model as qm
import quality_tiny as qt

VOCABULARY, CONTEXT, POSITIONS = 64, 1024, 300
POST_NORMS = {"post_attention_layernorm": "post_attention_norm", "post_feedforward_layernorm": "post_ffw_norm"}
GEMMA_NAMES = {theirs: ours for ours, theirs in qm.GEMMA_LAYER_NAMES.items()}
LLAMA_NAMES = {theirs: ours for ours, theirs in qm.LAYER_NAMES.items()}


@dataclass
class Family:
    architecture: str            # in the file
    config: type
    model: type
    names: dict = field(default_factory=lambda: LLAMA_NAMES)   # transformers' name in a layer -> the file's
    interleaved: bool = False    # the file stores rows of q and k for interleaved pairs


FAMILIES = {
    "llama": Family("llama", hf.LlamaConfig, hf.LlamaForCausalLM, interleaved=True),
    "mistral": Family("llama", hf.MistralConfig, hf.MistralForCausalLM, interleaved=True),
    "granite": Family("granite", hf.GraniteConfig, hf.GraniteForCausalLM, interleaved=True),
    "smollm3": Family("smollm3", hf.SmolLM3Config, hf.SmolLM3ForCausalLM, interleaved=True),
    "phi3": Family("phi3", hf.Phi3Config, hf.Phi3ForCausalLM,
                   {**LLAMA_NAMES, "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}),
    "gemma3": Family("gemma3", hf.Gemma3TextConfig, hf.Gemma3ForCausalLM, GEMMA_NAMES),
    "gpt-oss": Family("gpt-oss-dense", hf.GptOssConfig, hf.GptOssForCausalLM,
                      {**LLAMA_NAMES, "post_attention_layernorm": "post_attention_norm", "self_attn": "attn_sinks"}),
    "olmo2": Family("olmo2", hf.Olmo2Config, hf.Olmo2ForCausalLM, {**LLAMA_NAMES, **POST_NORMS}),
    "olmo3": Family("olmo2", hf.Olmo3Config, hf.Olmo3ForCausalLM, {**LLAMA_NAMES, **POST_NORMS}),
}


@dataclass
class Tiny:
    name: str
    family: str
    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    feed_forward: int = 64
    positions: int = POSITIONS
    tied: bool = False
    rope: dict = field(default_factory=lambda: {"rope_type": "default", "rope_theta": 10000.0})
    config: dict = field(default_factory=dict)     # more fields of transformers' config
    keys: dict = field(default_factory=dict)       # more metadata of the file, without the architecture
    tensors: dict = field(default_factory=dict)    # more tensors of the file


def yarn_keys(rope):
    return {"rope.scaling.type": "yarn", "rope.scaling.factor": rope["factor"],
            "rope.scaling.original_context_length": rope["original_max_position_embeddings"]}


def phi3(name, original, window=None):
    """Factors in tensors, and what cosines and sines are multiplied by, as Phi 3's converter writes it."""
    factors = {"short_factor": [1.0 + 0.1 * i for i in range(8)], "long_factor": [1.0 + 2.5 * i for i in range(8)]}
    rope = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": original, **factors}
    attention = float(np.sqrt(1 + np.log(CONTEXT / original) / np.log(original)))
    keys = {"rope.scaling.original_context_length": original, "rope.scaling.attn_factor": attention}
    if window:
        keys["attention.sliding_window"] = window
    return Tiny(name, "phi3", rope=rope, keys=keys, config={"pad_token_id": 0, "sliding_window": window, "original_max_position_embeddings": original},
                tensors={f"rope_factors_{kind}.weight": np.array(factors[f"{kind}_factor"], dtype=np.float32) for kind in ("long", "short")})


YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 64}
GEMMA_ROPES = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
               "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
OLMO_ROPES = {"full_attention": YARN, "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}

GPT_ROPE = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 8.0, "original_max_position_embeddings": 64, "truncate": False}

MODELS = [
    # Six layers, for every sixth has all of history; heads wider together than the model; Gemma's second rope.
    Tiny("gemma3", "gemma3", layers=6, width=32, heads=2, kv_heads=1, head_dim=24, feed_forward=48, tied=True, rope=GEMMA_ROPES,
         config={"sliding_window": 40, "query_pre_attn_scalar": 24, "pad_token_id": 0},
         keys={"attention.sliding_window": 40, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0, "rope.freq_base": 1000000.0}),
    Tiny("mistral-window", "mistral", config={"sliding_window": 37}, keys={"attention.sliding_window": 37}),
    phi3("phi3-longrope", 64),
    phi3("phi3-window", 512, window=50),   # all positions within the original context: the short factors
    Tiny("granite", "granite", tied=True,
         config={"embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.125, "logits_scaling": 2.0},
         keys={"embedding_scale": 12.0, "residual_scale": 0.22, "attention.scale": 0.125, "logit_scale": 2.0}),
    Tiny("olmo2", "olmo2"),
    Tiny("olmo3", "olmo3", layers=4, width=32, heads=2, kv_heads=1, feed_forward=48, rope=OLMO_ROPES, config={"sliding_window": 40},
         keys={"attention.sliding_window": 40, **yarn_keys(YARN)}),
    Tiny("smollm3", "smollm3", layers=4, width=32, heads=2, kv_heads=1, feed_forward=48, tied=True, config={"pad_token_id": 0}),
    # Attention as published (sinks, biases, windows in turn, yarn with an exact ramp); Llama's feed-forward in place of experts.
    Tiny("gpt-oss-dense", "gpt-oss", rope=GPT_ROPE, config={"sliding_window": 45, "num_local_experts": 2},
         keys={"attention.sliding_window": 45, **yarn_keys(GPT_ROPE)}),
    Tiny("llama-linear", "llama", rope={"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
         keys={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}),
    Tiny("llama-yarn", "llama", rope=YARN, keys=yarn_keys(YARN)),
]


class DenseFeedForward(hf.models.llama.modeling_llama.LlamaMLP):
    """In place of GPT-OSS's experts; its layers want the router's scores too."""

    def forward(self, x):
        return super().forward(x), None


def build(tiny):
    family = FAMILIES[tiny.family]
    config = family.config(
        vocab_size=VOCABULARY, hidden_size=tiny.width, intermediate_size=tiny.feed_forward, num_hidden_layers=tiny.layers,
        num_attention_heads=tiny.heads, num_key_value_heads=tiny.kv_heads, head_dim=tiny.head_dim, max_position_embeddings=CONTEXT,
        rms_norm_eps=qt.EPSILON, tie_word_embeddings=tiny.tied, rope_parameters=copy.deepcopy(tiny.rope),
        attn_implementation="eager", **tiny.config)
    model = family.model(config)
    if tiny.family == "gpt-oss":
        config.mlp_bias = False
        for layer in model.model.layers:
            layer.mlp = DenseFeedForward(config)
    return model.eval()


def random_weights(tiny, model, rng):
    """Large enough that attention is uneven and every tensor matters. Norms are whole multiples of 2^-16, so that one plus a
    Gemma norm is exact in float32."""
    weights = {}
    for name, parameter in model.named_parameters():
        values = rng.standard_normal(tuple(parameter.shape))
        if "norm" in name:
            values = np.round(0.2 * values * 65536) / 65536 + (0 if tiny.family == "gemma3" else 1)
        elif "q_proj.weight" in name or "k_proj.weight" in name:
            values = 0.2 * values
        elif name.endswith(("bias", "sinks")):
            values = 0.5 * values
        else:
            values = values / np.sqrt(parameter.shape[-1])
        weights[name] = torch.from_numpy(values.astype(np.float32))
    return weights


def load_weights(model, weights):
    for name, parameter in model.named_parameters():
        parameter.data = weights[name].to(parameter.dtype)
    model.tie_weights()


def write_metadata(writer, tiny):
    architecture = FAMILIES[tiny.family].architecture
    writer.add_name(f"tiny {tiny.name}, random weights".replace("phi3", "phi 3"))   # "phi3" makes llama.cpp look for its tokens
    numbers = {"context_length": CONTEXT, "embedding_length": tiny.width, "block_count": tiny.layers,
               "feed_forward_length": tiny.feed_forward, "attention.head_count": tiny.heads, "attention.head_count_kv": tiny.kv_heads,
               "attention.key_length": tiny.head_dim, "attention.value_length": tiny.head_dim, "rope.dimension_count": tiny.head_dim,
               "vocab_size": VOCABULARY, "attention.layer_norm_rms_epsilon": qt.EPSILON, "rope.freq_base": 10000.0, **tiny.keys}
    for key, value in numbers.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}[type(value)]
        add(f"{architecture}.{key}", value)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    qt.write_tokenizer(writer, VOCABULARY)


def write_gguf(path, tiny, weights):
    family = FAMILIES[tiny.family]
    writer = gguf.GGUFWriter(path, family.architecture)
    write_metadata(writer, tiny)
    outer = {theirs: ours for ours, theirs in qm.OUTER_NAMES.items()}
    for name, tensor in weights.items():
        values = tensor.numpy()
        if tiny.family == "gemma3" and "norm" in name:
            values = values + np.float32(1)
        if name in outer:
            writer.add_tensor(outer[name], values)
            continue
        _, _, layer, *inner, kind = name.replace("sinks", "weight").split(".")
        ours = family.names[".".join(inner)]
        if family.interleaved and ours in ("attn_q", "attn_k"):
            values = qm.to_interleaved(values, tiny.heads if ours == "attn_q" else tiny.kv_heads)
        writer.add_tensor(f"blk.{layer}.{ours}.{kind}", np.ascontiguousarray(values))
    for name, values in tiny.tensors.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.as_tensor(ids, dtype=torch.long)[None], use_cache=False).logits[0].numpy()


def peer_report(tool, scratch, stem, positions, logits):
    out = scratch / "tiny.f32"
    subprocess.run([tool, "logits", f"{stem}.gguf", f"{stem}.tokens.i32", str(positions), "1", "off", "f32", out], check=True,
                   stdout=subprocess.DEVNULL)
    peer = np.fromfile(out, dtype="<f4").reshape(logits.shape)
    return f", llama.cpp by {np.abs(logits - peer).max():.1e}, mean KL {qm.kl_rows(logits, peer).mean():.1e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tool")
    parser.add_argument("--scratch", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for index, tiny in enumerate(MODELS):
        if args.names and tiny.name not in args.names:
            continue
        rng = np.random.default_rng([2027, index])
        single = build(tiny)
        weights = random_weights(tiny, single, rng)
        load_weights(single, weights)
        stem = args.out / f"tiny-{tiny.name}"
        write_gguf(f"{stem}.gguf", tiny, weights)
        ids = rng.integers(3, VOCABULARY, tiny.positions).astype("<i4")
        ids.tofile(f"{stem}.tokens.i32")
        with qm.in_float64():
            double = build(tiny)
            load_weights(double, weights)
            logits = logits_of(double, ids)
        assert logits.dtype == np.float64
        logits.astype("<f4").tofile(f"{stem}.logits.f32")
        line = (f"{stem.name}: {Path(f'{stem}.gguf').stat().st_size} bytes, logits' deviation {logits.std():.2f}, "
                f"transformers float32 off by {np.abs(logits - logits_of(single, ids)).max():.1e}")
        if args.tool:
            line += peer_report(args.tool, args.scratch, stem, tiny.positions, logits)
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""A GGUF file as a transformers model: the reference that Kvasir's logits are judged by.

The weights are exactly what `gguf.quants.dequantize` yields; the modules are transformers' own. Their two inner casts
to float32 (RMSNorm and the rope angles) are lifted when the model runs in float64: see `use_float64`.
"""

import contextlib

import numpy as np
import torch
from gguf import GGUFReader
from gguf.quants import dequantize
from transformers import (Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM,
                          Qwen3Config, Qwen3ForCausalLM)

FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}

# GGUF's name of a layer's tensor -> transformers'.
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GEMMA_LAYER_NAMES = {**LAYER_NAMES, "ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
                     "post_ffw_norm": "post_feedforward_layernorm"}
OUTER_NAMES = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
               "output.weight": "lm_head.weight"}


def to_halves(weight, heads):
    """Rows of q or k from llama.cpp's interleaved rope pairs (2i, 2i+1) back to transformers' halves (i, i + dim/2)."""
    rows = weight.reshape(heads, weight.shape[0] // heads // 2, 2, -1)
    return rows.swapaxes(1, 2).reshape(weight.shape)


def to_interleaved(weight, heads):
    """The inverse of to_halves, as llama.cpp's converter permutes a llama model."""
    rows = weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1)
    return rows.swapaxes(1, 2).reshape(weight.shape)


def config_of(reader):
    """The transformers config that a GGUF's metadata describes."""
    value = lambda key: reader.fields[key].contents()
    family = value("general.architecture")
    get = lambda key, default=None: value(f"{family}.{key}") if f"{family}.{key}" in reader.fields else default
    names = {tensor.name for tensor in reader.tensors}
    width, heads = get("embedding_length"), get("attention.head_count")
    config = FAMILIES[family][0](
        vocab_size=len(reader.fields["tokenizer.ggml.tokens"].data),
        hidden_size=width,
        intermediate_size=get("feed_forward_length"),
        num_hidden_layers=get("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=get("attention.head_count_kv"),
        head_dim=get("attention.key_length", width // heads),
        max_position_embeddings=get("context_length"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": get("rope.freq_base", 10000.0)},
        tie_word_embeddings="output.weight" not in names,
        attn_implementation="sdpa",
    )
    return family, config


def load(path):
    """The float32 model of a GGUF file (architectures of FAMILIES), and its rope_freqs.weight or None."""
    reader = GGUFReader(path)
    family, config = config_of(reader)
    weights, factors = {}, None
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        values = values.reshape([int(n) for n in reversed(tensor.shape)])
        if tensor.name == "rope_freqs.weight":
            factors = torch.from_numpy(values.copy())
            continue
        if tensor.name in OUTER_NAMES:
            weights[OUTER_NAMES[tensor.name]] = values
            continue
        _, layer, name, kind = tensor.name.split(".")
        if family == "llama" and name in ("attn_q", "attn_k"):
            values = to_halves(values, config.num_attention_heads if name == "attn_q" else config.num_key_value_heads)
        weights[f"model.layers.{layer}.{LAYER_NAMES[name]}.{kind}"] = values
    if config.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model = FAMILIES[family][1](config)
    model.load_state_dict({name: torch.from_numpy(np.array(values)) for name, values in weights.items()}, strict=True)
    if factors is not None:
        model.model.rotary_emb.inv_freq /= factors
    return model.eval(), factors


@contextlib.contextmanager
def in_float64():
    """Inside, what transformers takes to float32 it takes to float64: its modules name the type through torch when they run."""
    saved = torch.float, torch.float32, torch.Tensor.float, torch.get_default_dtype()
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float, torch.float32, torch.Tensor.float = saved[:3]
        torch.set_default_dtype(saved[3])


def family_of(path):
    return GGUFReader(path).fields["general.architecture"].contents()


def leading_token(path):
    """The token that the vocabulary puts at the head of a text, or None."""
    fields = GGUFReader(path).fields
    adds = "tokenizer.ggml.add_bos_token" in fields and fields["tokenizer.ggml.add_bos_token"].contents()
    return fields["tokenizer.ggml.bos_token_id"].contents() if adds else None


def load_gemma3(path):
    """A Gemma 3 model in the default type: float64 where this is called in `in_float64`, as its forward pass must then be."""
    reader = GGUFReader(path)
    get = lambda key: reader.fields[f"gemma3.{key}"].contents()
    config = Gemma3TextConfig(
        vocab_size=len(reader.fields["tokenizer.ggml.tokens"].data), hidden_size=get("embedding_length"),
        intermediate_size=get("feed_forward_length"), num_hidden_layers=get("block_count"), num_attention_heads=get("attention.head_count"),
        num_key_value_heads=get("attention.head_count_kv"), head_dim=get("attention.key_length"),
        query_pre_attn_scalar=get("attention.key_length"), max_position_embeddings=get("context_length"),
        rms_norm_eps=get("attention.layer_norm_rms_epsilon"), sliding_window=get("attention.sliding_window"),
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": get("rope.freq_base")},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
        attn_implementation="eager")
    weights = {}
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        values = torch.from_numpy(values.reshape([int(n) for n in reversed(tensor.shape)]).copy()).to(torch.get_default_dtype())
        if tensor.name in OUTER_NAMES:
            name = OUTER_NAMES[tensor.name]
        else:
            _, layer, inner, kind = tensor.name.split(".")
            name = f"model.layers.{layer}.{GEMMA_LAYER_NAMES[inner]}.{kind}"
        weights[name] = values - 1 if "norm" in name else values   # the module adds one
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    model = Gemma3ForCausalLM(config)
    model.load_state_dict(weights, strict=True)
    return model.eval()


def use_float64(model, factors=None):
    """The same model in float64 throughout: parameters, rope angles and norms."""
    rotary, config = model.model.rotary_emb, model.config
    # Recomputed, not widened: the float32 buffer holds rounded frequencies.
    inverse = config.rope_parameters["rope_theta"] ** (
        -torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
    if factors is not None:
        inverse = inverse / factors.double()
    assert torch.allclose(inverse, rotary.inv_freq.double(), rtol=1e-6)
    model = model.double()

    def angles(x, position_ids):
        phase = position_ids[..., None].double() * inverse
        phase = torch.cat((phase, phase), dim=-1)
        return phase.cos() * rotary.attention_scaling, phase.sin() * rotary.attention_scaling

    rotary.forward = angles
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.forward = lambda x, m=module: m.weight * (
                x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + m.variance_epsilon))
    return model


@torch.no_grad()
def hidden_states(model, ids):
    """What enters the head, for every position of one window: [positions, width]."""
    return model.model(torch.as_tensor(np.array(ids), dtype=torch.long)[None], use_cache=False).last_hidden_state[0]


def log_softmax64(logits):
    """Rows of log-probabilities in float64."""
    logits = logits.astype(np.float64)
    top = logits.max(axis=-1, keepdims=True)
    return logits - top - np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))


def kl_rows(reference_logits, other_logits):
    """KL(reference || other) a row, nats, float64."""
    p, q = log_softmax64(reference_logits), log_softmax64(other_logits)
    return (np.exp(p) * (p - q)).sum(axis=-1)

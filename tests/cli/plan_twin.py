#!/usr/bin/env python3
"""The planner beside an independent computation: every model of models.json, three lengths, four formats, to the byte.

  plan_twin.py KVASIR

Standard library only.
"""
import json
import os
import subprocess
import sys

BITS = {"f32": (32, 0), "f16": (16, 0), "int8": (8, 4), "int4": (4, 4)}   # of an element; bytes of scale a row and head
BLOCK = 32


def row_bytes(heads, k, v, dtype):
    bits, scale = BITS[dtype]
    return heads * ((k + v) * bits // 8 + scale * (2 if v else 1))


def layers_of(model):
    """(layers, window or 0, tokens a row, KV heads, K elements, V elements) of each kind of layer that keeps rows."""
    a, k = model["attention"], model["head_dim"]
    v, heads, ids = model.get("v_head_dim", k), model["kv_heads"], lambda name: len(a.get(name, []))
    if a["kind"] == "mla":
        layers = a.get("mla_layers", model["layers"])
        rows = [(layers, 0, 1, 1, a["kv_lora_rank"] + a["qk_rope_head_dim"], 0)]
        return rows + ([(layers, 0, 1, 1, 128, 0)] if "indexer" in model.get("notes", "") else [])
    if a["kind"] == "full":
        return [(model["layers"], 0, 1, heads, k, v)]
    if a["kind"] == "sliding_all":
        return [(model["layers"], a["window"], 1, heads, k, v)]
    full = (ids("full_layer_ids"), 0, 1, a.get("full_kv_heads", heads), a.get("full_head_dim", k), a.get("full_head_dim", v))
    window = (ids("window_layer_ids"), a.get("window", 0), 1, a.get("window_kv_heads", heads), a.get("window_head_dim", k),
              a.get("window_v_head_dim", a.get("window_head_dim", v)))
    return [kind for kind in (full, window) if kind[0]]


def kv(model, length, dtype):
    payload = blocks = 0
    for layers, window, merged, heads, k, v in layers_of(model):
        rows = -(-length // merged)
        spanned = -(-rows // BLOCK)
        if window:
            chunk = model["attention"]["kind"] == "chunked"
            spanned = min(spanned, -(-window // BLOCK) if chunk else -(-(window - 1) // BLOCK) + 1)
        payload += layers * row_bytes(heads, k, v, dtype) * (min(rows, window) if window else rows)
        blocks += layers * row_bytes(heads, k, v, dtype) * spanned * BLOCK
    return payload, blocks


def main():
    kvasir, path = sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/geometry/models.json")
    wrong = checked = 0
    with open(path) as file:
        models = json.load(file)["models"]
    for model in models:
        for length in (1, 2000, 100_000):
            for dtype in BITS:
                if model["attention"]["kind"] == "compressed":
                    continue   # no published number to compare with: the unit tests have it
                told = json.loads(subprocess.run([kvasir, "plan", model["name"], "--requests", "3", "--length", str(length), "--kv-cache-dtype",
                                                  dtype, "--set", "parameters=1B", "--json"], check=True, capture_output=True, text=True).stdout)
                expected = tuple(3 * part for part in kv(model, length, dtype))
                checked += 1
                if (told["kv_payload_bytes"], told["kv_bytes"]) != expected:
                    wrong += 1
                    print(f"{model['name']}, {length} tokens, {dtype}: {told['kv_payload_bytes']}, {told['kv_bytes']}; expected {expected}")
                if dtype == "f16" and "indexer" not in model.get("notes", "") and told["kv_bytes_per_token"] != model["kv"]["bytes_per_token_16bit_growing"]:
                    wrong += 1
                    print(f"{model['name']}: {told['kv_bytes_per_token']} bytes a token; {model['kv']['bytes_per_token_16bit_growing']} published")
    print(f"{checked} plans of {len(models)} models, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())

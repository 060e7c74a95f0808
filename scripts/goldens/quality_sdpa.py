#!/usr/bin/env python3
"""Writes sdpa-*.bin: new tokens attending to a past, by PyTorch's scaled_dot_product_attention with an explicit mask.

  quality_sdpa.py OUT_DIR

The mask is aligned to the bottom right: the new token i stands at position past + i and sees keys 0 .. past + i. The
outputs of the wrong, top-left alignment (keys 0 .. i) are stored as well, so that a test can show that it tells them
apart. Format and shapes: tests/data/quality/SOURCE.md.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

HEADS, KV_HEADS, NEW = 6, 2, 5
# (head_dim, past): 3 = one short span; 253 = the new rows straddle the edge at 256; 300 = all in the second span.
CASES = [(16, 3), (16, 253), (16, 300), (64, 3), (64, 300)]


def attend(q, k, v, mask):
    """q [new, heads, dim], k and v [keys, kv_heads, dim] -> [new, heads, dim], float64."""
    q, k, v = (torch.from_numpy(a.astype(np.float64)).transpose(0, 1)[None] for a in (q, k, v))
    out = scaled_dot_product_attention(q, k, v, attn_mask=torch.from_numpy(mask), enable_gqa=True)
    return out[0].transpose(0, 1).contiguous().numpy()


def main():
    out_dir = Path(sys.argv[1])
    for dim, past in CASES:
        rng = np.random.default_rng([dim, past])
        keys = past + NEW
        # float16 values held as float32: an f16 cache stores K and V exactly as well. Q doubled: uneven weights.
        q = (2 * rng.standard_normal((NEW, HEADS, dim))).astype(np.float16).astype("<f4")
        k = rng.standard_normal((keys, KV_HEADS, dim)).astype(np.float16).astype("<f4")
        v = rng.standard_normal((keys, KV_HEADS, dim)).astype(np.float16).astype("<f4")
        key, row = np.arange(keys)[None, :], np.arange(NEW)[:, None]
        right = attend(q, k, v, key <= past + row)
        wrong = attend(q, k, v, key <= row)
        path = out_dir / f"sdpa-h{HEADS}-kv{KV_HEADS}-d{dim}-past{past}.bin"
        with open(path, "wb") as file:
            file.write(np.array([HEADS, KV_HEADS, dim, past, NEW], dtype="<i4").tobytes())
            for array in (q, k, v, right, wrong):
                file.write(array.astype("<f4").tobytes())
        print(f"{path.name}: {path.stat().st_size} bytes, the wrong origin is off by at least "
              f"{np.abs(right - wrong).max(axis=(1, 2)).min():.2f} in every row")


if __name__ == "__main__":
    main()

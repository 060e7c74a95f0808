#!/usr/bin/env python3
"""Writes tests/data/gguf/dequantize.bin: blocks of every tensor type and the float32 values that gguf's own
`quants.dequantize` yields for them.

  gguf_dequantize.py OUT_FILE        needs gguf==0.19.0 and numpy==2.4.6; equal runs give equal bytes

A record for each type, one after the other, little endian: type number (uint32), blocks (uint32), the blocks, the
values (float32).
"""

import struct
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

RANDOM_BLOCKS = 4

# Type -> offsets of the f16 scales in a block.
SCALES = {
    Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q5_0: (0,), Type.Q5_1: (0, 2), Type.Q8_0: (0,),
    Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
    Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.IQ4_NL: (0,), Type.IQ4_XS: (0,),
}

# f16 codes: zeros, the smallest and largest subnormal, smallest normal, one, largest, both infinities.
EDGE_SCALES = (0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00)


def quantised_blocks(kind, random):
    """Random blocks under sane scales, then under every edge scale, then all bits clear and all quant bits set."""
    size = GGML_QUANT_SIZES[kind][1]
    blocks = random.integers(0, 256, (RANDOM_BLOCKS + len(EDGE_SCALES) + 2, size), dtype=np.uint8)
    for row, block in enumerate(blocks):
        edge = row - RANDOM_BLOCKS
        if edge == len(EDGE_SCALES):
            block[:] = 0x00
        elif edge > len(EDGE_SCALES):
            block[:] = 0xFF
        for nth, at in enumerate(SCALES[kind]):
            if edge < 0:
                scale = np.float16(random.uniform(-0.1, 0.1))
            elif edge < len(EDGE_SCALES):
                scale = np.uint16(EDGE_SCALES[(edge + 3 * nth) % len(EDGE_SCALES)]).view(np.float16)
            else:
                scale = np.float16(0.125)
            block[at:at + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
    return blocks


def plain_values(kind, random):
    """Any bits but NaN, whose payload conversions may change; the edge codes of the type first."""
    bits, exponent = {Type.F32: (32, 0x7F800000), Type.F16: (16, 0x7C00), Type.BF16: (16, 0x7F80)}[kind]
    codes = random.integers(0, 1 << bits, 96, dtype=np.uint64)
    codes = codes[~((codes & exponent == exponent))]
    edges = np.array([0, 1 << (bits - 1), 1, exponent, exponent - 1, exponent | 1 << (bits - 1)], dtype=np.uint64)
    return np.concatenate([edges, codes]).astype(f"<u{bits // 8}").view(np.uint8).reshape(-1, bits // 8)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(Path(sys.argv[1]), "wb") as out, np.errstate(all="ignore"):
        for kind in (Type.F32, Type.F16, Type.BF16, *SCALES):
            random = np.random.Generator(np.random.PCG64(int(kind)))
            blocks = quantised_blocks(kind, random) if kind in SCALES else plain_values(kind, random)
            values = dequantize(np.ascontiguousarray(blocks), kind).astype("<f4").ravel()
            assert values.size == len(blocks) * GGML_QUANT_SIZES[kind][0]
            out.write(struct.pack("<II", int(kind), len(blocks)) + blocks.tobytes() + values.tobytes())


if __name__ == "__main__":
    main()

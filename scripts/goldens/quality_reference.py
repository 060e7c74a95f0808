#!/usr/bin/env python3
"""Writes the fixtures of one model: float64 hidden states, next-token log-probabilities, and llama.cpp's own KL.

  quality_reference.py MODEL.gguf TEXT --window 1024 --count 2 --tool ./quality_llama --scratch DIR
                       --out tests/data/quality/NAME [--perplexity WINDOW COUNT]

NAME.tokens.i32, NAME.hidden.f32, NAME.logprob.f64, NAME.llamacpp-kl.f64: see tests/data/quality/SOURCE.md.
With --perplexity it also prints the float32 model's perplexity (the second half of each window scored).
"""

import argparse
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

import quality_model as qm

ROWS = 64  # positions whose full-vocabulary rows are held at once


def row_slices(total):
    return [slice(i, min(i + ROWS, total)) for i in range(0, total, ROWS)]


def kl_against_llama(hidden, head, path):
    """Per position KL(reference || llama.cpp) and whether the top-1 tokens agree."""
    other = np.memmap(path, dtype="<f4", mode="r").reshape(len(hidden), len(head))
    kl, same = [], []
    for rows in row_slices(len(hidden)):
        reference = hidden[rows].astype(np.float64) @ head.T
        kl.append(qm.kl_rows(reference, other[rows]))
        same.append(reference.argmax(-1) == other[rows].argmax(-1))
    return np.concatenate(kl), np.concatenate(same)


def perplexity(model, ids, window, count):
    """e^(mean nll) and the number of scored tokens: the second half of each window, as llama-perplexity counts."""
    first, nll = window // 2, []
    for w in range(count):
        part = ids[w * window:(w + 1) * window]
        with torch.no_grad():
            logits = model.lm_head(qm.hidden_states(model, part)[first:window - 1]).numpy()
        rows = qm.log_softmax64(logits)
        nll.append(-rows[np.arange(len(rows)), part[first + 1:]])
    nll = np.concatenate(nll)
    return float(np.exp(nll.mean())), int(nll.size)


def write_reference(args, ids, report):
    """NAME.hidden.f32 and NAME.logprob.f64; returns the stored rows and the head."""
    gemma = qm.family_of(args.model) == "gemma3"
    model, factors = (qm.load_gemma3(args.model), None) if gemma else qm.load(args.model)
    windows = [ids[w * args.window:(w + 1) * args.window] for w in range(args.count)]
    slices = row_slices(args.window * args.count)
    stock = torch.cat([qm.hidden_states(model, w) for w in windows])   # transformers in float32, untouched
    with torch.no_grad():
        stock_logits = [model.lm_head(stock[rows]).numpy() for rows in slices]
    if args.perplexity:
        report["float32 perplexity"], report["scored"] = perplexity(model, ids, *args.perplexity)

    with qm.in_float64() if gemma else contextlib.nullcontext():
        model = qm.load_gemma3(args.model) if gemma else qm.use_float64(model, factors)
        exact = torch.cat([qm.hidden_states(model, w) for w in windows]).numpy()
    hidden = exact.astype("<f4")
    hidden.tofile(f"{args.out}.hidden.f32")

    head = model.lm_head.weight.detach().numpy()
    logprob, recompute_kl, stock_kl, stock_same = [], [], [], []
    for rows, other in zip(slices, stock_logits):
        full = exact[rows] @ head.T
        stored = hidden[rows].astype(np.float64) @ head.T
        recompute_kl.append(qm.kl_rows(full, stored))
        stock_kl.append(qm.kl_rows(stored, other))
        stock_same.append(stored.argmax(-1) == other.argmax(-1))
        logprob.append(qm.log_softmax64(full)[np.arange(len(full)), ids[rows.start + 1:rows.stop + 1]])
    np.concatenate(logprob).astype("<f8").tofile(f"{args.out}.logprob.f64")
    report["mean KL, float64 || recomputed from the stored hidden state"] = float(np.concatenate(recompute_kl).mean())
    report["mean KL, stored || transformers float32"] = float(np.concatenate(stock_kl).mean())
    report["max KL, stored || transformers float32"] = float(np.concatenate(stock_kl).max())
    report["top-1 agreement, stored and transformers float32"] = float(np.concatenate(stock_same).mean())
    return hidden, head


def write_llama_kl(args, ids_path, hidden, head, report):
    """NAME.llamacpp-kl.f64: llama.cpp's distance in the better of its two attentions."""
    best = None
    for flash in ("off", "on"):
        path = args.scratch / "llama.f32"
        subprocess.run([args.tool, "logits", args.model, ids_path, str(args.window), str(args.count), flash, "f16",
                        path], check=True)
        kl, same = kl_against_llama(hidden, head, path)
        path.unlink()
        report[f"llama.cpp, flash attention {flash}"] = {
            "mean KL": float(kl.mean()), "top-1 agreement": float(same.mean())}
        if best is None or kl.mean() < best.mean():
            best = kl
    best.astype("<f8").tofile(f"{args.out}.llamacpp-kl.f64")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--perplexity", type=int, nargs=2, metavar=("WINDOW", "COUNT"))
    args = parser.parse_args()
    torch.set_num_threads(1)

    ids_path = args.scratch / "ids.i32"
    print(subprocess.run([args.tool, "tokens", args.model, args.text, ids_path], check=True, text=True,
                         capture_output=True).stdout.strip(), file=sys.stderr)
    ids = np.fromfile(ids_path, dtype="<i4")
    bos = qm.leading_token(args.model)
    if bos is not None:
        ids[:args.window * args.count:args.window] = bos   # as the tool does
    ids.tofile(f"{args.out}.tokens.i32")

    report = {}
    hidden, head = write_reference(args, ids, report)
    write_llama_kl(args, ids_path, hidden, head, report)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes what transformers' beam search finds on the tiny models: the goldens of the engine's beam search.

  beam_search.py MODELS_DIR OUT.json

The model runs in float64 (quality_model.use_float64); transformers turns the logits to float32 before it takes their
log-softmax and sums scores in float32, as the engine does. A case in which two scores that a top-k compared lie within MARGIN
of each other is left out, so that no rounding decides what a test expects.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import torch

import quality_model as qm

MODELS = ["tiny-llama-gqa", "tiny-qwen3"]
PROMPTS = [5, 12, 23, 40]   # tokens
WIDTHS = [2, 4, 8]
PENALTIES = [0.0, 1.0, 2.0, -1.0]
EARLY = [False, True, "never"]
NEW_TOKENS = [12, 24]
CASES_PER_MODEL = 48
MARGIN = 1e-5


class Watch:
    """Every top-k that the search takes, with what came next: the least distance between neighbours that mattered."""

    def __init__(self):
        self.least = float("inf")
        self._topk = torch.topk

    def __enter__(self):
        def topk(values, k, *rest, **named):
            more = self._topk(values, min(k + 1, values.shape[-1]), *rest, **named)[0].double()
            gaps = (more[..., :-1] - more[..., 1:])[more[..., 1:] > -1e8]   # below: places that are not filled
            if gaps.numel():
                self.least = min(self.least, gaps.min().item())
            return self._topk(values, k, *rest, **named)

        torch.topk = topk
        return self

    def __exit__(self, *_):
        torch.topk = self._topk


@torch.no_grad()
def search(model, prompt, width, penalty, early, new_tokens, eos):
    ids = torch.tensor([prompt])
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, num_beams=width, num_return_sequences=width,
        length_penalty=penalty, early_stopping=early, max_new_tokens=new_tokens, eos_token_id=eos, pad_token_id=0,
        return_dict_in_generate=True, output_scores=True)
    answers = []
    for sequence, score in zip(found.sequences.tolist(), found.sequences_scores.tolist()):
        tokens = sequence[len(prompt):]
        if eos in tokens:
            tokens = tokens[:tokens.index(eos) + 1]
        answers.append({"tokens": tokens, "score": score})
    return answers


def likely_end(model, prompt, rng):
    """A token that a greedy answer comes to, so that beams end at all lengths."""
    ids = torch.tensor([prompt])
    greedy = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10,
                            eos_token_id=None, pad_token_id=0)[0, len(prompt):].tolist()
    return greedy[int(rng.integers(2, 8))]


def cases_of(model, name):
    rng = np.random.default_rng(sum(name.encode()))
    grid = list(itertools.product(PROMPTS, WIDTHS, PENALTIES, EARLY))
    rng.shuffle(grid)
    cases, left_out = [], 0
    for length, width, penalty, early in ((int(l), int(w), float(p), e) for l, w, p, e in map(tuple, grid)):
        if len(cases) == CASES_PER_MODEL:
            break
        early = {"False": False, "True": True}.get(str(early), "never")
        prompt = [int(token) for token in rng.integers(0, model.config.vocab_size, length)]
        eos, new_tokens = likely_end(model, prompt, rng), int(rng.choice(NEW_TOKENS))
        with Watch() as watch:
            answers = search(model, prompt, width, penalty, early, new_tokens, eos)
        if watch.least < MARGIN:
            left_out += 1
            continue
        cases.append({"prompt": prompt, "beams": width, "length_penalty": penalty, "early_stopping": early,
                      "max_new_tokens": new_tokens, "end": eos, "answers": answers})
    ended = sum(a["tokens"][-1] == c["end"] for c in cases for a in c["answers"])
    total = sum(len(c["answers"]) for c in cases)
    print(f"{name}: {len(cases)} cases, {left_out} left out as too close; {ended} of {total} answers end by their end token")
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    out = {}
    for name in MODELS:
        model = qm.use_float64(*qm.load(options.models / f"{name}.gguf"))
        model.generation_config.eos_token_id = None
        out[name] = cases_of(model, name)
    lines = [f'"{name}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]" for name, cases in out.items()]
    options.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()

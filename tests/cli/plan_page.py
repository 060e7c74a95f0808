#!/usr/bin/env python3
"""The page of `kvasir plan --html` in a real browser: it renders, its pictures have size, and it asks the network for nothing.

usage: plan_page.py KVASIR ROOT     exit 77 where no browser can be had
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]

# Runs in the page: what it has drawn, and what it has fetched.
PROBE = """<script>
window.onload = () => {
  const boxes = [...document.querySelectorAll('svg rect')].filter(r => r.getBoundingClientRect().width > 0);
  const svgs = [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().height > 50);
  document.title = ['probe', svgs.length, boxes.length, performance.getEntriesByType('resource').length,
                    document.documentElement.scrollWidth <= window.innerWidth].join(' ');
};
</script>"""


def browser(root):
    done = subprocess.run([str(root / "scripts" / "setup-sdk"), "browser"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print("no browser can be had:", done.stderr)
        sys.exit(77)
    return done.stdout.strip()


def main():
    kvasir, root = sys.argv[1], Path(sys.argv[2])
    program = browser(root)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "plan.html"
        subprocess.run([kvasir, "plan", "llama-3-8b", "--memory", "24GiB", "--length", "8192", "--requests", "4", "--what-if", "each",
                        "--html", str(page)], check=True, stdout=subprocess.DEVNULL)
        probed = Path(folder) / "probed.html"
        probed.write_text(page.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>"), encoding="utf-8")
        done = subprocess.run([program, *FLAGS, f"--user-data-dir={folder}/profile", "--window-size=1000,800", "--dump-dom", probed.as_uri()],
                              capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<title>probe (\d+) (\d+) (\d+) (\w+)</title>", done.stdout)
    assert found, done.stdout[:2000]
    pictures, boxes, fetched, no_sideways = int(found[1]), int(found[2]), int(found[3]), found[4]
    assert pictures == 3, pictures
    assert boxes >= 2 * 8 * 2, boxes
    assert fetched == 0, fetched
    assert no_sideways == "true", "the page scrolls sideways"
    assert "As planned: 19.1 GiB" in done.stdout
    print(f"{pictures} pictures, {boxes} boxes, nothing fetched")


if __name__ == "__main__":
    main()

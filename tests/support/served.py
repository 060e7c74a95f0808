"""A `kvasir serve` of its own for a script: started on a free port, its log read along, ended by SIGTERM.

  with served(KVASIR, MODEL, "--max-num-seqs", "8") as server:
      ... server.url, server.port, server.process.pid, server.said

Standard library only.
"""
import contextlib
import re
import signal
import subprocess
import threading


class Served:
    def __init__(self, kvasir, model, *options):
        self.process = subprocess.Popen([kvasir, "serve", model, "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        self.said = []
        for line in self.process.stderr:
            if found := re.search(r"ready on (http://[^\s:]+:(\d+))", line):
                self.url, self.port = found.group(1), int(found.group(2))
                break
            self.said.append(line.rstrip())
        else:
            raise SystemExit("the server did not come up:\n" + "\n".join(self.said))
        # The log goes on; a full pipe would stop the server.
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip())

    def end(self):
        """Exit code after SIGTERM; a server that ended by itself keeps its own."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()   # only one that did not listen is still there


@contextlib.contextmanager
def served(kvasir, model, *options):
    server = Served(kvasir, model, *options)
    try:
        yield server
    finally:
        code = server.end()
    if code != 143:
        raise SystemExit(f"the server ended with {code}, not 143 (SIGTERM):\n" + "\n".join(server.said[-5:]))

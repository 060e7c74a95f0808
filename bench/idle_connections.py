#!/usr/bin/env python3
"""What idle connections cost: resident memory of the server and the latency of others, before, with and after them.

  idle_connections.py KVASIR MODEL [--connections 5000]

Starts `kvasir serve`, measures the time of GET /health and of a one-token completion (100 and 20 times, medians and
worst), opens so many connections that have each made one request and then stay silent, measures again. One JSON line.
Standard library only; needs a descriptor a connection on both sides (ulimit -n).
"""
import argparse
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time

REQUEST = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"


def resident_mib(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def timed(port, method, path, body, times):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        seconds.append(time.perf_counter() - begin)
    connection.close()
    seconds.sort()
    return {"median_ms": round(seconds[times // 2] * 1e3, 3), "worst_ms": round(seconds[-1] * 1e3, 3)}


def measure(server, port):
    body = json.dumps({"model": "m", "prompt": "The sky is", "max_tokens": 1})
    return {"resident_mib": round(resident_mib(server.pid), 1), "health": timed(port, "GET", "/health", None, 100),
            "completion": timed(port, "POST", "/v1/completions", body, 20)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir")
    parser.add_argument("model")
    parser.add_argument("--connections", type=int, default=5000)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = subprocess.Popen([options.kvasir, "serve", options.model, "--port", "0", "-a", "m", "--max-model-len", "512",
                               "--idle-timeout", "3600000", "--log-level", "warning"], stderr=subprocess.PIPE, text=True)
    port = next(int(found.group(1)) for line in server.stderr if (found := re.search(r"ready on http://[^:]+:(\d+)", line)))
    threading.Thread(target=server.stderr.read, daemon=True).start()
    try:
        measure(server, port)   # warm-up
        result = {"connections": options.connections, "before": measure(server, port)}
        sockets = []
        for _ in range(options.connections):
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(REQUEST)
            assert b" 200 " in one.recv(4096)
            sockets.append(one)
        result["with"] = measure(server, port)
        for one in sockets:
            one.close()
        time.sleep(1)
        result["after"] = measure(server, port)
        result["mib_for_all"] = round(result["with"]["resident_mib"] - result["before"]["resident_mib"], 1)
        print(json.dumps(result))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)


if __name__ == "__main__":
    main()

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
import resource
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests"))
from support.served import served  # noqa: E402

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


def measure(server):
    body = json.dumps({"model": "m", "prompt": "The sky is", "max_tokens": 1})
    return {"resident_mib": round(resident_mib(server.process.pid), 1), "health": timed(server.port, "GET", "/health", None, 100),
            "completion": timed(server.port, "POST", "/v1/completions", body, 20)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir")
    parser.add_argument("model")
    parser.add_argument("--connections", type=int, default=5000)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with served(options.kvasir, options.model, "-a", "m", "--max-model-len", "512", "--idle-timeout", "3600000", "--log-level",
                "warning") as server:
        measure(server)   # warm-up
        result = {"connections": options.connections, "before": measure(server)}
        sockets = []
        for _ in range(options.connections):
            one = socket.create_connection(("127.0.0.1", server.port))
            one.sendall(REQUEST)
            assert b" 200 " in one.recv(4096)
            sockets.append(one)
        result["with"] = measure(server)
        for one in sockets:
            one.close()
        time.sleep(1)
        result["after"] = measure(server)
        result["mib_for_all"] = round(result["with"]["resident_mib"] - result["before"]["resident_mib"], 1)
        print(json.dumps(result))


if __name__ == "__main__":
    main()

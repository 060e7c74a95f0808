#!/usr/bin/env python3
"""What serving costs beside the model: CPU time of the server outside its step threads, and tokens a second at the client.

  serve_cost.py KVASIR MODEL [--streams 32] [--prompt 128] [--new 128] [--rounds 3]

Starts `kvasir serve`, lets so many clients stream answers of equal length at once, and reads the CPU time of every thread of
the server before and after (/proc/PID/task). Threads named kv-step* and kv-pool* are the step threads. One JSON line a
round: microseconds of CPU a token outside the step threads, by thread name, the client's own CPU time, and tokens a second
from the first token of all to the last. The in-process number to compare with: kvasir bench MODEL --cases 32x128.
Standard library only.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests"))
from support.served import served  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """CPU seconds by thread name; schedstat counts nanoseconds, stat only ticks."""
    seconds = collections.Counter()
    for task in os.listdir(f"/proc/{pid}/task"):
        base = f"/proc/{pid}/task/{task}/"
        with open(base + "comm") as comm, open(base + "schedstat") as schedstat:
            seconds[comm.read().strip()] += int(schedstat.read().split()[0]) / 1e9
    return seconds


async def client(port, prompt, new, moments):
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": new, "temperature": 0, "ignore_eos": True, "stream": True}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    tail, count = b"", 0
    while data := await reader.read(1 << 16):
        events = (tail + data).count(b"data: {")
        tail = (tail + data)[-6:]
        if events:
            count += events
            moments.append((time.monotonic(), events))
    writer.close()
    return count


async def load(port, options):
    draw = random.Random(3)
    moments = []
    counts = await asyncio.gather(*(client(port, [draw.randrange(300, 40000) for _ in range(options.prompt)], options.new, moments)
                                    for _ in range(options.streams)))
    return counts, moments


def decode_rate(moments, streams):
    """Tokens a second from the moment at which each stream has had a token."""
    seen, begin, counted = 0, None, 0
    for at, events in sorted(moments):
        if begin is not None:
            counted += events
        seen += events
        if begin is None and seen >= streams:
            begin = at
    return counted / (max(at for at, _ in moments) - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir")
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with served(options.kvasir, options.model, "-a", "m", "--max-num-seqs", str(options.streams), "--max-model-len",
                str(options.prompt + options.new + 8)) as server:
        asyncio.run(load(server.port, options))   # warm-up
        for _ in range(options.rounds):
            before, own = thread_seconds(server.process.pid), resource.getrusage(resource.RUSAGE_SELF)
            counts, moments = asyncio.run(load(server.port, options))
            spent = thread_seconds(server.process.pid) - before
            mine = resource.getrusage(resource.RUSAGE_SELF)
            tokens = options.streams * options.new
            outside = {name: round(s / tokens * 1e6, 2) for name, s in spent.items() if not name.startswith(("kv-step", "kv-pool"))}
            print(json.dumps({
                "tokens": tokens, "complete": all(c >= options.new for c in counts), "outside_us_per_token": round(sum(outside.values()), 2),
                "by_thread_us_per_token": outside,
                "step_threads_us_per_token": round(sum(s for n, s in spent.items() if n.startswith(("kv-step", "kv-pool"))) / tokens * 1e6, 1),
                "client_us_per_token": round((mine.ru_utime + mine.ru_stime - own.ru_utime - own.ru_stime) / tokens * 1e6, 1),
                "decode_tok_s": round(decode_rate(moments, options.streams), 1)}))


if __name__ == "__main__":
    main()

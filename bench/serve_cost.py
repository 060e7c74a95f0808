#!/usr/bin/env python3
"""What serving costs beside the model: CPU time of the server outside its step threads, and tokens a second at the client.

  serve_cost.py KVASIR MODEL [--streams 32] [--prompt 128] [--new 128] [--rounds 3] [--unix] [--stream-interval 1]

Starts `kvasir serve --itl-target 0`, lets so many clients stream answers of equal length at once, and reads the CPU time of
every thread of the server before and after (/proc/PID/task). Threads named kv-step* and kv-pool* are the step threads. One
JSON line a round:
  outside_us_per_token      CPU time of the server outside the step threads, and by_thread_us_per_token its parts
  bare_send_us              what the kernel takes for one send of an event's size on such a socket, measured by a loop that
                            does nothing else, with a pause between bursts (a microsecond of it is Python)
  writes_per_token          system calls of the server that wrote to sockets
  client_us_per_token       the CPU time of this client, which runs on the same processors
  client_tok_s              tokens a second at the client while all streams run
  in_process_tok_s          of `kvasir bench` just before, at the same batch and the same mean length of the sequences
Standard library only.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

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


def writes(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
        lines = page.read().decode().splitlines()
    return next(float(line.split()[-1]) for line in lines if line.startswith("kvasir_http_writes_total{"))


def socket_pairs(count, unix, folder):
    listener = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
    listener.bind(os.path.join(folder, "bare") if unix else ("127.0.0.1", 0))
    listener.listen(count)
    pairs = []
    for _ in range(count):
        far = socket.socket(listener.family)
        far.connect(listener.getsockname())
        near, _ = listener.accept()
        if not unix:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pairs.append((near, far))
    listener.close()
    if unix:
        os.unlink(os.path.join(folder, "bare"))
    return pairs


def bare_send_us(count, unix, folder, bursts=50, pause_s=0.06, size=250):
    """CPU microseconds of one send() to a reader that waits for it in another process."""
    pairs = socket_pairs(count, unix, folder)
    reader = os.fork()
    if reader == 0:
        with selectors.DefaultSelector() as selector:
            for near, far in pairs:
                near.close()
                selector.register(far, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select():
                    if not key.fileobj.recv(1 << 16):
                        selector.unregister(key.fileobj)
        os._exit(0)
    spent, event = 0, b"x" * size
    for _ in range(bursts):
        time.sleep(pause_s)
        begin = time.thread_time_ns()
        for near, _ in pairs:
            near.send(event)
        spent += time.thread_time_ns() - begin
    for near, far in pairs:
        near.close()
        far.close()
    os.waitpid(reader, 0)
    return spent / 1e3 / (bursts * count)


async def client(connect, prompt, new):
    """Moments of the events of one answer, and how many came at each."""
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": new, "temperature": 0, "ignore_eos": True, "stream": True}).encode()
    reader, writer = await connect()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    moments, tail = [], b""
    while data := await reader.read(1 << 16):
        events = (tail + data).count(b"data: {")
        tail = (tail + data)[-6:]
        if events:
            moments.append((time.monotonic(), events))
    writer.close()
    return moments


async def load(connect, options):
    draw = random.Random(3)
    return await asyncio.gather(*(client(connect, [draw.randrange(300, 40000) for _ in range(options.prompt)], options.new)
                                  for _ in range(options.streams)))


def decode_rate(streams, tokens_per_event):
    """Tokens a second while all streams run: from the last one's first event to the first one's last."""
    begin, end = max(s[0][0] for s in streams), min(s[-1][0] for s in streams)
    return tokens_per_event * sum(n for s in streams for at, n in s if begin < at <= end) / (end - begin)


def in_process_rate(kvasir, model, options):
    """`bench` decodes 32 tokens a sequence: begun so that their mean length is that of the served ones."""
    prompt = max(1, options.prompt + options.new // 2 - 16)
    out = subprocess.run([kvasir, "bench", model, "--cases", f"{options.streams}x{prompt}", "--repeat", "1", "--json"],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[0])["decode_tok_s"]


def one_round(connect, server, options, folder):
    in_process = in_process_rate(options.kvasir, options.model, options)
    bare = bare_send_us(options.streams, options.unix, folder)
    written = writes(server.port)
    before, own = thread_seconds(server.process.pid), resource.getrusage(resource.RUSAGE_SELF)
    streams = asyncio.run(load(connect, options))
    spent = thread_seconds(server.process.pid) - before
    mine = resource.getrusage(resource.RUSAGE_SELF)
    tokens = options.streams * options.new
    written = writes(server.port) - written - 1   # the first page's own answer
    outside = {name: round(s / tokens * 1e6, 2) for name, s in spent.items() if not name.startswith(("kv-step", "kv-pool"))}
    events = sum(n for moments in streams for _, n in moments)
    rate = decode_rate(streams, tokens / events)
    return {"streams": options.streams, "tokens": tokens, "stream_interval": options.stream_interval, "events": events,
            "writes_per_token": round(written / tokens, 3), "outside_us_per_token": round(sum(outside.values()), 2),
            "by_thread_us_per_token": outside, "bare_send_us": round(bare, 2),
            "step_threads_us_per_token": round(sum(s for n, s in spent.items() if n.startswith(("kv-step", "kv-pool"))) / tokens * 1e6, 1),
            "client_us_per_token": round((mine.ru_utime + mine.ru_stime - own.ru_utime - own.ru_stime) / tokens * 1e6, 1),
            "client_tok_s": round(rate, 1), "in_process_tok_s": in_process, "share": round(rate / in_process, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir")
    parser.add_argument("model")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--unix", action="store_true", help="over a Unix socket instead of TCP")
    parser.add_argument("--stream-interval", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kvasir.sock")
        extra = ["--uds", path] if options.unix else []
        with served(options.kvasir, options.model, "-a", "m", "--max-num-seqs", str(options.streams), "--max-model-len",
                    str(options.prompt + options.new + 8), "--itl-target", "0", "--stream-interval",
                    str(options.stream_interval), *extra) as server:
            def connect():
                if options.unix:
                    return asyncio.open_unix_connection(path, limit=1 << 22)
                return asyncio.open_connection("127.0.0.1", server.port, limit=1 << 22)

            asyncio.run(load(connect, options))   # warm-up
            for _ in range(options.rounds):
                print(json.dumps(one_round(connect, server, options, folder)), flush=True)


if __name__ == "__main__":
    main()

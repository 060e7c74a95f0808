#!/usr/bin/env python3
"""Loads `kvasir serve` beyond what it can do, with clients of every manner, and checks that nothing breaks or leaks.

  rude_load.py KVASIR MODEL [--seconds N] [--seed N] [--json]

What it can do is measured first; then requests that want whole answers come at 1.5 times that rate, at random moments, and
among them clients that leave (before, during and after their request, and in the middle of an answer), that close their
sending half, that send nonsense, that hardly read, that never finish their request, and that ask for more than fits. The
server checks its own invariants after every step (--check-invariants). Two equal rounds that begin with a burst, with rest
after each:

  - no answer is a 5xx but 503, every refusal is an error object with a type, and 503 says when to come back
  - answers with a seed are those that the same request got alone
  - at rest no request, block or claim is held, and descriptors are as many as before
  - resident memory at the end of the second round is that of the first
  - prompt tokens by source add up to all prompt tokens

Standard library only. Exit 0: all held. Exit 1: the list of what did not. Exit 77: the model is not there.
"""
import argparse
import asyncio
import collections
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.served import Served  # noqa: E402

HOST = "127.0.0.1"
MAX_SEQS, MAX_QUEUED = 16, 8
OVERLOAD = 1.5
MEMORY_SLACK = 8 << 20   # bytes that may differ between the ends of the two rounds
READ_LIMIT_S = 120

WORDS = "the cache of a server holds what was said and nobody reads it twice while rain falls on old stones".split()


class Server(Served):
    def __init__(self, kvasir, model):
        super().__init__(kvasir, model, "-a", "m", "--max-model-len", "1024", "--max-num-seqs", str(MAX_SEQS), "--max-num-queued-reqs",
                         str(MAX_QUEUED), "--check-invariants", "--kv-cache-memory", "48MiB", "--log-level", "warning",
                         "--drain-timeout", "20")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def head(method, path, body, extra=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Content-Length: {len(body)}\r\n{extra}\r\n").encode() + body


async def connect(port):
    return await asyncio.open_connection(HOST, port, limit=1 << 20)


async def read_answer(reader, pause=0.0, most=None):
    """(status, headers, body) of a whole answer; chunked bodies are put together."""
    async def bytes_of(count):
        return await asyncio.wait_for(reader.readexactly(count), READ_LIMIT_S)

    async def line():
        return (await asyncio.wait_for(reader.readuntil(b"\r\n"), READ_LIMIT_S)).rstrip(b"\r\n")
    status = int((await line()).split()[1])
    headers = {}
    while field := await line():
        name, _, value = field.partition(b":")
        headers[name.decode().lower()] = value.decode().strip()
    if "content-length" in headers:
        return status, headers, await bytes_of(int(headers["content-length"]))
    body = b""
    while size := int(await line(), 16):
        body += await bytes_of(size)
        await line()
        if pause:
            await asyncio.sleep(pause)
        if most is not None and len(body) > most:
            break
    return status, headers, body


async def ask(port, method, path, body=b"", **reading):
    reader, writer = await connect(port)
    try:
        writer.write(head(method, path, body))
        await writer.drain()
        return await read_answer(reader, **reading)
    finally:
        writer.close()


async def metrics(port):
    _, _, body = await ask(port, "GET", "/metrics")
    values = collections.Counter()
    for line in body.decode().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name.split("{")[0]] += float(value)
            values[name] = float(value)
    return values


def text_of(status, body, stream):
    """What was answered: text and log probabilities of every choice. None if the answer is not complete."""
    if status != 200:
        return None
    if not stream:
        return [(c["index"], c["text"], c["logprobs"]["token_logprobs"], c["finish_reason"]) for c in json.loads(body)["choices"]]
    parts, ends = collections.defaultdict(lambda: ["", []]), {}
    if not body.rstrip().endswith(b"data: [DONE]"):
        return None
    for line in body.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for c in json.loads(line[6:])["choices"]:
            parts[c["index"]][0] += c["text"]
            parts[c["index"]][1] += c["logprobs"]["token_logprobs"] if c["logprobs"] else []
            ends[c["index"]] = c["finish_reason"] or ends.get(c["index"])
    return [(i, *parts[i], ends[i]) for i in sorted(parts)]


def request_number(i):
    """The polite requests are of a fixed set, so that each answer can be compared with the one it got alone."""
    draw = random.Random(i)
    return {"model": "m", "prompt": " ".join(draw.choices(WORDS, k=draw.choice((3, 12, 40, 160)))),
            "max_tokens": draw.choice((1, 8, 24, 60)), "temperature": draw.choice((0, 0.8, 1.3)), "seed": i, "logprobs": 1,
            "n": draw.choice((1, 1, 1, 2)), "ignore_eos": draw.random() < 0.5}


POLITE = 12


class Load:
    def __init__(self, server, seed):
        self.server, self.port = server, server.port
        self.random = random.Random(seed)
        self.expected = {}
        self.counts = collections.Counter()
        self.faults = []
        # Weights; the first three want whole answers.
        self.manners = [(40, self.polite), (7, self.slow_reader), (5, self.keep_alive), (14, self.leave), (7, self.half_close), (10, self.nonsense),
                        (6, self.slow_sender), (6, self.too_much), (5, self.other_routes)]
        weights = [weight for weight, _ in self.manners]
        self.whole_share = sum(weights[:3]) / sum(weights)

    def fault(self, text):
        if len(self.faults) < 40:
            self.faults.append(text)

    def judge(self, manner, status, headers, body, allowed):
        self.counts[f"{manner}: {status}"] += 1
        if status == 200:
            return
        if status != 503 and status not in allowed:
            self.fault(f"{manner}: status {status}: {body[:300]!r}")
        try:
            error = json.loads(body)["error"]
            if not error["message"] or not error["type"]:
                self.fault(f"{manner}: a refusal without a reason: {body[:300]!r}")
        except (ValueError, KeyError, TypeError):
            self.fault(f"{manner}: status {status} without an error object: {body[:300]!r}")
        if status in (429, 503) and "retry-after" not in headers:
            self.fault(f"{manner}: {status} without Retry-After")

    async def polite(self):
        i = self.random.randrange(POLITE)
        stream = self.random.random() < 0.6
        body = json.dumps({**request_number(i), "stream": stream}).encode()
        status, headers, answer = await ask(self.port, "POST", "/v1/completions", body)
        self.judge("polite", status, headers, answer, ())
        if status == 200:
            got = text_of(status, answer, stream)
            if i in self.expected and got != self.expected[i]:
                self.fault(f"request {i} (stream {stream}) got another answer than alone: {str(got)[:300]}")
        return status

    async def leave(self):
        """Hangs up at a random moment."""
        body = json.dumps({**request_number(self.random.randrange(POLITE)), "stream": True, "max_tokens": 200, "ignore_eos": True}).encode()
        whole = head("POST", "/v1/completions", body)
        reader, writer = await connect(self.port)
        moment = self.random.randrange(4)
        self.counts[f"left {('in its head', 'in its body', 'before the first byte', 'in the answer')[moment]}"] += 1
        cut = {0: 30, 1: len(whole) - 20}.get(moment, len(whole))
        writer.write(whole[:cut])
        await writer.drain()
        if moment == 3:
            await asyncio.wait_for(reader.read(200), READ_LIMIT_S)
        await asyncio.sleep(self.random.random() * 0.5)
        if self.random.random() < 0.5:
            writer.transport.abort()   # a reset
        else:
            writer.close()

    async def half_close(self):
        body = json.dumps(request_number(self.random.randrange(POLITE))).encode()
        reader, writer = await connect(self.port)
        writer.write(head("POST", "/v1/completions", body))
        writer.write_eof()
        await asyncio.wait_for(reader.read(), READ_LIMIT_S)
        self.counts["half closed"] += 1
        writer.close()

    async def nonsense(self):
        body = self.random.choice((
            b"", b"{", b"[]", b"null", b'{"model": "m"}', b'{"model": "m", "prompt": 7}', b"\xff\xfe", b'{"prompt": "\xff"}',
            b"[" * 5000, b'{"model": "m", "prompt": "a", "max_tokens": -1}', b'{"model": "m", "prompt": "a", "n": 1e99}',
            b'{"model": "m", "prompt": "a", "temperature": "hot"}', b'{"model": "other", "prompt": "a"}',
            b'{"model": "m", "prompt": ["a", ["b"]]}', b'{"model": "m", "prompt": [[999999999]]}', bytes(self.random.randbytes(300))))
        status, headers, answer = await ask(self.port, "POST", self.random.choice(("/v1/completions", "/v1/chat/completions")), body)
        self.judge("nonsense", status, headers, answer, (400, 404, 413, 422))
        if status == 200:
            self.fault(f"nonsense was answered: {body[:100]!r}")

    async def slow_reader(self):
        body = json.dumps({**request_number(self.random.randrange(POLITE)), "stream": True}).encode()
        status, headers, answer = await ask(self.port, "POST", "/v1/completions", body, pause=0.1, most=self.random.choice((2000, None)))
        self.judge("slow reader", status, headers, answer, ())

    async def slow_sender(self):
        whole = head("POST", "/v1/completions", json.dumps(request_number(0)).encode())
        reader, writer = await connect(self.port)
        try:
            for byte in whole[:self.random.randrange(5, 60)]:
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(0.05)
            self.counts["slow sender"] += 1
        finally:
            writer.close()

    async def too_much(self):
        body = json.dumps({"model": "m", "prompt": "word " * 3000, "max_tokens": 10}).encode()
        status, headers, answer = await ask(self.port, "POST", "/v1/completions", body)
        self.judge("too much", status, headers, answer, (400,))
        if status == 400 and headers.get("x-should-retry") != "false":
            self.fault("what can never fit does not say x-should-retry: false")

    async def keep_alive(self):
        """Several requests on one connection, the last of them cut."""
        reader, writer = await connect(self.port)
        try:
            for i in range(3):
                body = json.dumps({**request_number(self.random.randrange(POLITE)), "max_tokens": 4, "n": 1}).encode()
                writer.write(head("POST", "/v1/completions", body).replace(b"Connection: close\r\n", b""))
                await writer.drain()
                status, headers, answer = await read_answer(reader)
                self.judge("keep-alive", status, headers, answer, ())
                if headers.get("connection") == "close":
                    break
        finally:
            writer.transport.abort()

    async def other_routes(self):
        method, path, body, allowed = self.random.choice((
            ("GET", "/metrics", b"", ()), ("GET", "/health", b"", ()), ("GET", "/v1/models", b"", ()), ("GET", "/load", b"", ()),
            ("POST", "/tokenize", b'{"model": "m", "prompt": "a b c"}', ()), ("GET", "/nowhere", b"", (404,)),
            ("DELETE", "/v1/models", b"", (405,)), ("POST", "/v1/chat/completions",
             b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5}', ())))
        status, headers, answer = await ask(self.port, method, path, body)
        self.judge("other routes", status, headers, answer, allowed)

    async def one(self):
        manner = self.random.choices([m for _, m in self.manners], [w for w, _ in self.manners])[0]
        try:
            await manner()
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            # Only who was rude may be cut off.
            if manner in (self.polite, self.too_much, self.nonsense, self.other_routes):
                self.fault(f"{manner.__name__}: {error!r}")
        except asyncio.TimeoutError:
            self.fault(f"{manner.__name__}: no answer in {READ_LIMIT_S} s")

    async def alone(self):
        """Each polite request by itself: what it must get in every crowd."""
        for i in range(POLITE):
            status, _, body = await ask(self.port, "POST", "/v1/completions", json.dumps(request_number(i)).encode())
            self.expected[i] = text_of(status, body, False)
            if self.expected[i] is None:
                self.fault(f"request {i} alone: status {status}")

    async def capacity(self, seconds):
        """Requests a second of polite clients that never wait."""
        done, end = 0, time.monotonic() + seconds

        async def client():
            nonlocal done
            while time.monotonic() < end:
                if await self.polite() == 200:
                    done += 1
                else:
                    await asyncio.sleep(0.1)
        begin = time.monotonic()
        await asyncio.gather(*(client() for _ in range(MAX_SEQS)))
        return done / (time.monotonic() - begin)

    async def burst(self):
        """More at one moment than can run and wait together: some must be refused, whatever the machine is busy with."""
        await asyncio.gather(*(self.polite() for _ in range(2 * (MAX_SEQS + MAX_QUEUED))))

    async def open_loop(self, rate, seconds):
        tasks, begin, due = set(), time.monotonic(), 0.0
        while (due := due + self.random.expovariate(rate)) < seconds:
            await asyncio.sleep(max(0.0, begin + due - time.monotonic()))
            task = asyncio.create_task(self.one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)

    async def rest(self, name, descriptors):
        """Waits until nothing runs, then looks at what is held."""
        held = ("vllm:num_requests_running", "vllm:num_requests_waiting", "kvasir_kv_allocated_tokens", "kvasir_kv_claimed_tokens")
        for _ in range(100):
            now = await metrics(self.port)
            unknown = [key for key in held if key not in now]
            if unknown:
                raise SystemExit(f"/metrics lacks {unknown}")
            if all(now[key] == 0 for key in held) and self.server.descriptors() <= descriptors:
                break
            await asyncio.sleep(0.1)
        for key in held:
            if now[key] != 0:
                self.fault(f"{name}: at rest {key} is {now[key]}")
        if self.server.descriptors() > descriptors:
            self.fault(f"{name}: {self.server.descriptors()} descriptors at rest, {descriptors} before")
        if now["vllm:prompt_tokens_by_source_total"] != now["vllm:prompt_tokens_total"]:
            self.fault(f"{name}: prompt tokens by source do not add up to all prompt tokens")


async def run(server, seconds, seed):
    load = Load(server, seed)
    await metrics(server.port)
    descriptors = server.descriptors()
    end = time.monotonic() + seconds
    await load.alone()
    rate = await load.capacity(max(5.0, seconds * 0.1))
    load.counts.clear()
    await load.rest("before the load", descriptors)
    memory = []
    for name, rounds_left in (("first round", 2), ("second round", 1)):
        await load.burst()
        await load.open_loop(OVERLOAD * rate / load.whole_share, max(5.0, (end - time.monotonic()) / rounds_left))
        await load.rest(name, descriptors)
        memory.append(server.resident_bytes())
    if memory[1] > memory[0] + MEMORY_SLACK:
        load.fault(f"resident memory grew from {memory[0]:,} to {memory[1]:,} bytes in the second round")
    if load.counts["polite: 503"] == 0:
        load.fault("nothing was refused: this was no overload")
    if load.counts["polite: 200"] == 0:
        load.fault("no polite request was served")
    return load, rate, memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kvasir")
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="what was counted, on stdout")
    options = parser.parse_args()
    if not os.path.exists(options.model):
        print(f"skipped: no model at {options.model}")
        return 77
    server = Server(options.kvasir, options.model)
    try:
        load, rate, memory = asyncio.run(run(server, options.seconds, options.seed))
        if server.process.poll() is not None:
            load.fault(f"the server ended by itself with {server.process.returncode}")
        elif (code := server.end()) != 143:
            load.fault(f"SIGTERM ended the server with {code}, not 143")
    finally:
        if server.process.poll() is None:
            server.process.kill()
    if any("invariant" in line or "check failed" in line for line in server.said):
        load.fault("the server said: " + "\n".join(server.said[-5:]))
    rows = {"requests a second it can do": f"{rate:.1f}", "and got": f"{OVERLOAD * rate:.1f}, and {OVERLOAD * rate / load.whole_share:.1f} with those that leave or ask for nothing",
            "resident after each round": " and ".join(f"{m / 2**20:.0f} MiB" for m in memory),
            **{key: str(count) for key, count in sorted(load.counts.items())}}
    if options.json:
        print(json.dumps({"rows": rows, "faults": load.faults}))
    else:
        print("\n".join(f"{key:28} {value}" for key, value in rows.items()))
        print("\n".join(["FAULTS:", *load.faults]) if load.faults else "nothing found")
    return 1 if load.faults else 0


if __name__ == "__main__":
    sys.exit(main())

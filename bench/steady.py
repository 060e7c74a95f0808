#!/usr/bin/env python3
"""How steady answers stay while long prompts arrive: gaps between tokens of running streams, and the long prompts' TTFT.

  steady.py URL [--streams 16] [--prompt 4000] [--every 12] [--seconds 120] [--model NAME]

URL is that of an OpenAI server, as http://127.0.0.1:8000. So many streams decode without a pause, each a new request when
its answer ends; every so many seconds a long prompt of random words, never seen before, asks for 8 tokens. First the long
prompt's TTFT is measured alone (three times). One JSON line: seconds, quantiles over all gaps between events that carry
text, and how many requests failed. Standard library only; works for any server that takes prompts as token ids.
"""
import argparse
import asyncio
import json
import random
import time
from urllib.parse import urlsplit


def quantile(values, q):
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(q * len(ordered)))], 4) if ordered else None


class Bench:
    def __init__(self, options):
        self.options = options
        self.address = urlsplit(options.url)
        self.gaps, self.long_ttft, self.failed, self.tokens = [], [], 0, 0
        self.random = random.Random(7)

    def ids(self, count):
        return [self.random.randrange(300, 40000) for _ in range(count)]

    async def stream(self, prompt, max_tokens):
        """Moments of the events of one answer that carry a choice, the first entry the moment of sending."""
        body = json.dumps({"model": self.options.model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "stream": True,
                           "ignore_eos": True, "cache_prompt": False}).encode()
        reader, writer = await asyncio.open_connection(self.address.hostname, self.address.port, limit=1 << 22)
        moments = [time.monotonic()]
        try:
            writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: {self.address.hostname}\r\nContent-Type: application/json\r\n"
                         f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            if b" 200 " not in await reader.readline():
                self.failed += 1
                return None
            while line := await reader.readline():
                if line.startswith(b"data: {") and b'"choices":[{' in line.replace(b" ", b""):
                    moments.append(time.monotonic())
            return moments
        finally:
            writer.close()

    async def decoder(self, end, index):
        while time.monotonic() < end:
            moments = await self.stream(self.ids(32 + 4 * index), 256)
            if moments is None:
                await asyncio.sleep(1)
                continue
            self.tokens += len(moments) - 1
            if time.monotonic() < end:   # the tail has fewer streams beside it
                self.gaps += [b - a for a, b in zip(moments[1:], moments[2:])]

    async def long_prompt(self):
        moments = await self.stream(self.ids(self.options.prompt), 8)
        if moments is not None and len(moments) > 1:
            self.long_ttft.append(moments[1] - moments[0])

    async def run(self):
        for _ in range(3):
            await self.long_prompt()
        solo, self.long_ttft = list(self.long_ttft), []
        begin = time.monotonic()
        end = begin + self.options.seconds
        tasks = [asyncio.create_task(self.decoder(end, i)) for i in range(self.options.streams)]
        await asyncio.sleep(5)
        while time.monotonic() < end - self.options.every:
            tasks.append(asyncio.create_task(self.long_prompt()))
            await asyncio.sleep(self.options.every)
        await asyncio.gather(*tasks)
        return {"streams": self.options.streams, "prompt": self.options.prompt, "every_s": self.options.every,
                "gaps": len(self.gaps), "itl_p50_s": quantile(self.gaps, 0.5), "itl_p90_s": quantile(self.gaps, 0.9),
                "itl_p99_s": quantile(self.gaps, 0.99), "itl_max_s": quantile(self.gaps, 1.0),
                "long_prompts": len(self.long_ttft), "long_ttft_p50_s": quantile(self.long_ttft, 0.5),
                "long_ttft_p95_s": quantile(self.long_ttft, 0.95), "long_ttft_solo_s": quantile(solo, 0.5),
                "tokens_per_s": round(self.tokens / (time.monotonic() - begin), 1), "failed": self.failed}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--every", type=float, default=12)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--model", default="m")
    print(json.dumps(asyncio.run(Bench(parser.parse_args()).run())))


if __name__ == "__main__":
    main()

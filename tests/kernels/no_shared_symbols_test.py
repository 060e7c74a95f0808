#!/usr/bin/env python3
"""The SIMD objects define no symbol that the linker may share with the rest of the program.

usage: no_shared_symbols_test.py NM ARCHIVE

An inline function of a common header that is not inlined becomes a weak symbol, and the linker keeps one copy of those
it finds: if it keeps the one compiled for AVX-512, a machine without AVX-512 dies in code that has nothing to do with
kernels. Exit 1 and a line for each such symbol.
"""
import re
import subprocess
import sys

WEAK = set("WVwvu")


def main():
    nm, archive = sys.argv[1:]
    listing = subprocess.run([nm, "-C", "--defined-only", archive], capture_output=True, text=True, check=True).stdout
    member, members, shared = "", set(), []
    for line in listing.splitlines():
        header = re.fullmatch(r"(\S+\.o):", line)
        if header:
            member = header[1]
            continue
        parts = line.split(maxsplit=2)
        if not member.startswith("avx") or len(parts) < 3:
            continue
        members.add(member)
        if parts[1] in WEAK:
            shared.append(f"{member}: {parts[2]}")
    print("\n".join(shared) or f"no shared symbols in {', '.join(sorted(members))}")
    return 1 if shared or not members else 0


sys.exit(main())

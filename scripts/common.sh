# Sourced by the scripts beside it: where things are, and how they speak. Progress goes to stderr, results to stdout.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
die() { say "$*"; exit 1; }

# The Rust part needs this version (edition 2024); the toolchain is rustup's where there is one, else Debian's.
rust_wanted=1.85

# version_at_least HAVE WANTED: whether HAVE is not older, comparing numbers between dots.
version_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# rust_ready: whether a new enough cargo is in PATH, after adding ~/.cargo/bin if that is where it is.
rust_ready() {
  if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then PATH="$HOME/.cargo/bin:$PATH"; export PATH; fi
  command -v cargo >/dev/null || return 1
  version_at_least "$(cargo --version 2>/dev/null | awk '{print $2}')" "$rust_wanted"
}

# Jobs for compilers: the cores this process may use.
jobs_count() { nproc; }

//! C ABI over two well-kept crates: `tokenizers` (byte-level BPE) and `minijinja` (chat templates).
//!
//! Rules of every extern function here:
//! - it returns a null pointer for success or an error text (UTF-8, NUL-terminated, freed with `kv_error_free`);
//! - its body runs inside `guard`, so that a panic becomes such a text and never crosses the boundary;
//! - handles are immutable once made: any number of threads may use one at a time.
//!
//! The C++ face, with owners for the handles, is in src/ffi.

#![feature(alloc_error_hook)]

mod abi;
mod bpe;
mod budget;
mod classes;
mod pretokenize;
mod python;
mod template;

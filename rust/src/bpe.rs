//! Byte-level BPE: words from `pretokenize`, bytes as printable characters, merges by the tokenizers crate.

use crate::abi::{array, guard, KvIds, KvSlice};
use crate::pretokenize::PreTokenizer;
use ahash::{AHashMap, AHashSet};
use std::ffi::c_char;
use tokenizers::models::bpe::BPE;
use tokenizers::Model;

pub struct KvBpe {
    model: BPE,
    words: PreTokenizer,
    byte_chars: [char; 256],
}

/// GPT-2's table: printable Latin-1 bytes stand for themselves, the other 68 for U+0100 and up, in order.
fn byte_chars() -> [char; 256] {
    let mut next = 0x100;
    std::array::from_fn(|byte| {
        let code = match byte as u32 {
            b @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => b,
            _ => {
                next += 1;
                next - 1
            }
        };
        char::from_u32(code).expect("below the surrogates")
    })
}

impl KvBpe {
    /// `tokens[i]` has id i; an empty one cannot be reached by text. A merge is its two halves with a space between.
    fn new(tokens: &[KvSlice], merges: &[KvSlice], words: PreTokenizer, whole_words: bool) -> Result<Self, String> {
        let mut vocab = AHashMap::with_capacity(tokens.len());
        for (id, token) in tokens.iter().enumerate() {
            // SAFETY: the caller of kv_bpe_new vouches for its slices.
            let text = unsafe { token.text(&format!("tokenizer.ggml.tokens[{id}]")) }?;
            if !text.is_empty() {
                vocab.insert(text.to_string(), id as u32);
            }
        }
        let mut seen = AHashSet::with_capacity(merges.len());
        let mut pairs = Vec::with_capacity(merges.len());
        for (rank, merge) in merges.iter().enumerate() {
            // SAFETY: as above.
            let text = unsafe { merge.text(&format!("tokenizer.ggml.merges[{rank}]")) }?;
            let (left, right) = halves(text)
                .ok_or_else(|| format!("tokenizer.ggml.merges[{rank}] is {text:?}; valid: two tokens with a space between"))?;
            for part in [left, right, &format!("{left}{right}")] {
                if !vocab.contains_key(part) {
                    return Err(format!(
                        "tokenizer.ggml.merges[{rank}] is {text:?}, but {part:?} is no text token of the vocabulary"
                    ));
                }
            }
            if seen.insert(text) {
                pairs.push((left.to_string(), right.to_string())); // of two equal merges the first one counts
            }
        }
        let model = BPE::builder()
            .vocab_and_merges(vocab, pairs)
            .ignore_merges(whole_words)
            .build()
            .map_err(|e| format!("tokenizer.ggml.merges: {e}"))?;
        Ok(KvBpe { model, words, byte_chars: byte_chars() })
    }

    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        let mut mapped = String::new();
        for word in self.words.split(text) {
            mapped.clear();
            mapped.extend(word.bytes().map(|byte| self.byte_chars[byte as usize]));
            let tokens = self.model.tokenize(&mapped).map_err(|e| e.to_string())?;
            ids.extend(tokens.iter().map(|token| token.id));
        }
        Ok(ids)
    }
}

/// Splits at the first space that is not the first character, as a merge may begin with one.
fn halves(merge: &str) -> Option<(&str, &str)> {
    let first = merge.chars().next()?.len_utf8();
    let space = first + merge[first..].find(' ')?;
    let (left, right) = (&merge[..space], &merge[space + 1..]);
    (!right.is_empty()).then_some((left, right))
}

/// Makes a tokenizer. `whole_words`: a word that is a token as it stands is not merged (Llama 3).
///
/// # Safety
/// `tokens`, `merges` and `pre` must be readable as their counts say; `out` writable.
#[no_mangle]
pub unsafe extern "C" fn kv_bpe_new(
    tokens: *const KvSlice,
    token_count: usize,
    merges: *const KvSlice,
    merge_count: usize,
    pre: KvSlice,
    whole_words: bool,
    out: *mut *mut KvBpe,
) -> *mut c_char {
    guard(|| {
        let name = pre.text("tokenizer.ggml.pre")?;
        let words = PreTokenizer::from_name(name).ok_or_else(|| format!("tokenizer.ggml.pre {name:?} is not offered"))?;
        let bpe = KvBpe::new(array(tokens, token_count), array(merges, merge_count), words, whole_words)?;
        *out = Box::into_raw(Box::new(bpe));
        Ok(())
    })
}

/// # Safety
/// `bpe` from `kv_bpe_new`; `text` readable; `out` writable.
#[no_mangle]
pub unsafe extern "C" fn kv_bpe_encode(bpe: *const KvBpe, text: KvSlice, out: *mut KvIds) -> *mut c_char {
    guard(|| {
        *out = KvIds::from_vec((*bpe).encode(text.text("the text")?)?);
        Ok(())
    })
}

/// # Safety
/// `bpe` from `kv_bpe_new`, freed once.
#[no_mangle]
pub unsafe extern "C" fn kv_bpe_free(bpe: *mut KvBpe) {
    if !bpe.is_null() {
        drop(Box::from_raw(bpe));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_may_begin_with_a_space() {
        assert_eq!(halves("a b"), Some(("a", "b")));
        assert_eq!(halves("  b"), Some((" ", "b")));
        assert_eq!(halves("ab"), None);
        assert_eq!(halves("a "), None);
        assert_eq!(halves(""), None);
    }

    #[test]
    fn every_byte_has_its_own_character() {
        let chars = byte_chars();
        assert_eq!(chars[b' ' as usize], 'Ġ');
        assert_eq!(chars[b'\n' as usize], 'Ċ');
        assert_eq!(chars.iter().collect::<AHashSet<_>>().len(), 256);
    }
}

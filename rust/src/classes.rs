//! Character classes of the pre-tokenizers, one byte of flags a code point, from regex-syntax's Unicode tables.

use regex_syntax::hir::{Class, HirKind};
use std::sync::OnceLock;

pub const LETTER: u8 = 1; // \p{L}
pub const NUMBER: u8 = 2; // \p{N}
pub const SPACE: u8 = 4; // \s
pub const PUNCTUATION: u8 = 8; // [\p{P}$+<=>^~|]
pub const DEEPSEEK_LETTER: u8 = 16;
pub const DEEPSEEK_MARK: u8 = 32;
pub const DEEPSEEK_CJK: u8 = 64;

/// The classes as regular expressions; the DeepSeek ones are those of DeepSeek LLM's tokenizer.json.
pub const PATTERNS: [(u8, &str); 7] = [
    (LETTER, r"\p{L}"),
    (NUMBER, r"\p{N}"),
    (SPACE, r"\s"),
    (PUNCTUATION, r"[\p{P}$+<=>^~|]"),
    (
        DEEPSEEK_LETTER,
        concat!(
            r"[A-Za-z\u{00b5}\u{00c0}-\u{00d6}\u{00d8}-\u{00f6}\u{00f8}-\u{01ba}\u{01bc}-\u{01bf}\u{01c4}-\u{0293}",
            r"\u{0295}-\u{02af}\u{0370}-\u{0373}\u{0376}\u{0377}\u{037b}-\u{037d}\u{037f}\u{0386}\u{0388}-\u{038a}",
            r"\u{038c}\u{038e}-\u{03a1}\u{03a3}-\u{03f5}\u{03f7}-\u{0481}\u{048a}-\u{052f}\u{0531}-\u{0556}",
            r"\u{10a0}-\u{10c5}\u{13a0}-\u{13f5}\u{13f8}-\u{13fd}\u{1c90}-\u{1cba}\u{1cbd}-\u{1cbf}\u{1d00}-",
            r"\u{1d2b}\u{1d6b}-\u{1d77}\u{1d79}-\u{1d9a}\u{1e00}-\u{1f15}\u{1f18}-\u{1f1d}\u{1f20}-\u{1f45}",
            r"\u{1f48}-\u{1f4d}\u{1f50}-\u{1f57}\u{1f59}\u{1f5b}\u{1f5d}\u{1f5f}-\u{1f7d}\u{1f80}-\u{1fb4}\u{1fb6}",
            r"-\u{1fbc}\u{1fbe}\u{1fc2}-\u{1fc4}\u{1fc6}-\u{1fcc}\u{1fd0}-\u{1fd3}\u{1fd6}-\u{1fdb}\u{1fe0}-",
            r"\u{1fec}\u{1ff2}-\u{1ff4}\u{1ff6}-\u{1ffc}\u{2102}\u{2107}\u{210a}-\u{2113}\u{2115}\u{2119}-\u{211d}",
            r"\u{2124}\u{2126}\u{2128}\u{212a}-\u{212d}\u{212f}-\u{2134}\u{2139}\u{213c}-\u{213f}\u{2145}-\u{2149}",
            r"\u{214e}\u{2183}\u{2184}\u{2c00}-\u{2c7b}\u{2c7e}-\u{2ce4}\u{2ceb}-\u{2cee}\u{2cf2}\u{2cf3}\u{a640}-",
            r"\u{a66d}\u{a680}-\u{a69b}\u{a722}-\u{a76f}\u{a771}-\u{a787}\u{a78b}-\u{a78e}\u{ab70}-\u{abbf}",
            r"\u{fb00}-\u{fb06}\u{fb13}-\u{fb17}\u{ff21}-\u{ff3a}\u{ff41}-\u{ff5a}\u{10400}-\u{1044f}\u{104b0}-",
            r"\u{104d3}\u{104d8}-\u{104fb}\u{10c80}-\u{10cb2}\u{10cc0}-\u{10cf2}\u{118a0}-\u{118df}\u{1e900}-",
            r"\u{1e943}]"
        ),
    ),
    (DEEPSEEK_MARK, r"[!-/:-~\u{ff01}-\u{ff0f}\u{ff1a}-\u{ff5e}\u{2018}-\u{201f}\u{3000}-\u{3002}]"),
    (DEEPSEEK_CJK, r"[\u{4e00}-\u{9fa5}\u{0800}-\u{4e00}\u{ac00}-\u{d7ff}]"),
];

/// Flags of a character.
pub fn of(c: char) -> u8 {
    table()[c as usize]
}

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut flags = vec![0u8; char::MAX as usize + 1];
        for (flag, pattern) in PATTERNS {
            let hir = regex_syntax::parse(pattern).expect("a constant pattern parses");
            match hir.kind() {
                HirKind::Class(Class::Unicode(class)) => {
                    for range in class.ranges() {
                        for code in range.start() as usize..=range.end() as usize {
                            flags[code] |= flag;
                        }
                    }
                }
                other => unreachable!("a character class, not {other:?}"),
            }
        }
        flags
    })
}

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
            r"[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼι",
            r"ῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]"
        ),
    ),
    (DEEPSEEK_MARK, r"[!-/:-~！-／：-～‘-‟　-。]"),
    (DEEPSEEK_CJK, "[一-龥\u{0800}-一\u{ac00}-\u{d7ff}]"),
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

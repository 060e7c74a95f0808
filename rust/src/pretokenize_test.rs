//! Each scanner against its regular expression, run by the engine inside the tokenizers crate.

use super::*;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer as _, SplitDelimiterBehavior};

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const CONTRACTIONS: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])";

fn expressions(kind: PreTokenizer) -> Vec<String> {
    let class = |flag: u8| classes::PATTERNS.iter().find(|(f, _)| *f == flag).unwrap().1.to_string();
    let llama3 = |digits: &str| {
        format!(
            r"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
    };
    match kind {
        PreTokenizer::Gpt2 => vec![GPT2.into()],
        PreTokenizer::SmolLm => vec![r"\p{N}".into(), GPT2.into()],
        PreTokenizer::Qwen2 => vec![llama3(r"\p{N}")],
        PreTokenizer::Llama3 => vec![llama3(r"\p{N}{1,3}")],
        PreTokenizer::DeepSeekLlm => vec![
            r"[\r\n]".into(),
            format!(r"\s?{}+", class(classes::DEEPSEEK_LETTER)),
            format!(r"\s?{}+", class(classes::DEEPSEEK_MARK)),
            r"\s+$".into(),
            format!("{}+", class(classes::DEEPSEEK_CJK)),
            r"\p{N}+".into(),
        ],
        PreTokenizer::Default => vec![
            format!("{}+", class(classes::PUNCTUATION)),
            GPT2.into(),
            r"\p{N}+".into(),
            "[0-9][0-9][0-9]".into(),
        ],
    }
}

fn splitters(kind: PreTokenizer) -> Vec<Split> {
    let splitter = |e| Split::new(SplitPattern::Regex(e), SplitDelimiterBehavior::Isolated, false).unwrap();
    expressions(kind).into_iter().map(splitter).collect()
}

fn by_expressions(splitters: &[Split], text: &str) -> Vec<String> {
    let mut pieces = PreTokenizedString::from(text);
    for splitter in splitters {
        splitter.pre_tokenize(&mut pieces).unwrap();
    }
    let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
    splits.into_iter().map(|(word, _, _)| word.to_string()).collect()
}

const KINDS: [PreTokenizer; 6] = [
    PreTokenizer::Gpt2,
    PreTokenizer::SmolLm,
    PreTokenizer::Qwen2,
    PreTokenizer::Llama3,
    PreTokenizer::DeepSeekLlm,
    PreTokenizer::Default,
];

#[test]
fn scanners_equal_their_expressions() {
    let atoms = [
        " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{2028}", "a", "Zz", "é", "e\u{301}", "ß", "中文", "ひら", "한글",
        "７", "12345", "٣", "Ⅷ", "'", "'s", "'LL", "'Re", "!", "...", "$+<", "、", "‘", "👩‍👩‍👧", "\u{0}", "\u{7f}", "\u{e000}", "ก็",
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64; // xorshift64: the same texts every time
    let mut random = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 20) as usize % bound
    };
    let texts: Vec<String> = (0..1000)
        .map(|_| {
            let atoms_of_text = random(14);
            (0..atoms_of_text).map(|_| atoms[random(atoms.len())]).collect()
        })
        .collect();
    for kind in KINDS {
        let splitters = splitters(kind);
        for text in &texts {
            assert_eq!(kind.split(text), by_expressions(&splitters, text), "{kind:?} {text:?}");
        }
    }
}

#[test]
fn nothing_is_lost() {
    let text = "  Hello,\r\n\r\n world's 123456  \u{3000}!  ";
    for kind in KINDS {
        assert_eq!(kind.split(text).concat(), text);
        assert!(kind.split("").iter().all(|word| word.is_empty()));
    }
}

#[test]
fn a_long_run_of_spaces_takes_linear_time() {
    let text = " ".repeat(4 << 20) + "x";
    for kind in KINDS {
        assert_eq!(kind.split(&text).concat().len(), text.len());
    }
}

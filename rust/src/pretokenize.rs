//! How text is cut into words before BPE: the published regular expressions, written as scanners.
//!
//! Scanners, because a backtracking engine takes `\s+(?!\S)` and `\s*[\r\n]+` over a long run of spaces in time and
//! memory that grow with the run and gives up beyond a limit, and because this is the hot loop of encoding. The tests
//! below hold each scanner against the expression itself, run by the engine inside the tokenizers crate.
//!
//! Source of the expressions: the tokenizer.json of GPT-2, SmolLM2, Qwen2, Llama 3 and DeepSeek LLM.

use crate::classes::{self, LETTER, NUMBER, SPACE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreTokenizer {
    Gpt2,
    SmolLm,
    Qwen2,
    Llama3,
    DeepSeekLlm,
    Default,
}

impl PreTokenizer {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "gpt-2" => Self::Gpt2,
            "smollm" => Self::SmolLm,
            "qwen2" => Self::Qwen2,
            "llama-bpe" => Self::Llama3,
            "deepseek-llm" => Self::DeepSeekLlm,
            "default" => Self::Default,
            _ => return None,
        })
    }

    /// The words of `text`, in order and without gaps.
    pub fn split<'a>(self, text: &'a str) -> Vec<&'a str> {
        let words = vec![text];
        match self {
            Self::Gpt2 => each(words, gpt2),
            Self::SmolLm => each(each(words, |s, out| isolate_each(s, NUMBER, out)), gpt2),
            Self::Qwen2 => each(words, |s, out| llama3(s, 1, out)),
            Self::Llama3 => each(words, |s, out| llama3(s, 3, out)),
            Self::DeepSeekLlm => {
                let words = each(words, isolate_newlines);
                let words = each(words, |s, out| isolate_runs(s, classes::DEEPSEEK_LETTER, true, out));
                let words = each(words, |s, out| isolate_runs(s, classes::DEEPSEEK_MARK, true, out));
                let words = each(words, isolate_trailing_space);
                let words = each(words, |s, out| isolate_runs(s, classes::DEEPSEEK_CJK, false, out));
                each(words, |s, out| isolate_runs(s, NUMBER, false, out))
            }
            Self::Default => {
                let words = each(words, |s, out| isolate_runs(s, classes::PUNCTUATION, false, out));
                let words = each(words, gpt2);
                let words = each(words, |s, out| isolate_runs(s, NUMBER, false, out));
                each(words, isolate_digit_triples)
            }
        }
    }
}

fn each<'a>(words: Vec<&'a str>, mut step: impl FnMut(&'a str, &mut Vec<&'a str>)) -> Vec<&'a str> {
    let mut out = Vec::with_capacity(words.len());
    for word in words {
        step(word, &mut out);
    }
    out
}

fn char_at(s: &str, at: usize) -> Option<char> {
    s[at..].chars().next()
}

fn is(c: Option<char>, flags: u8) -> bool {
    c.is_some_and(|c| classes::of(c) & flags != 0)
}

/// The end of the run from `at` of characters for which `member` holds.
fn run_end(s: &str, at: usize, member: impl Fn(char) -> bool) -> usize {
    s[at..].find(|c| !member(c)).map_or(s.len(), |length| at + length)
}

/// Bytes of `'s|'t|'re|'ve|'m|'ll|'d` at `at`, 0 if there is none.
fn contraction(s: &str, at: usize, any_case: bool) -> usize {
    let bytes = &s.as_bytes()[at..];
    if bytes.first() != Some(&b'\'') {
        return 0;
    }
    let letter = |i: usize| bytes.get(i).map(|b| if any_case { b.to_ascii_lowercase() } else { *b });
    match (letter(1), letter(2)) {
        (Some(b's' | b't' | b'm' | b'd'), _) => 2,
        (Some(b'r' | b'v'), Some(b'e')) | (Some(b'l'), Some(b'l')) => 3,
        _ => 0,
    }
}

/// The end of what `\s+(?!\S)|\s+` takes at `at`: the whole run at the end of the text, else all but its last
/// character, which goes with the word that follows, unless it is the only one.
fn space_end(s: &str, at: usize) -> usize {
    let end = run_end(s, at, |c| classes::of(c) & SPACE != 0);
    if end == s.len() {
        return end;
    }
    let last = s[at..end].char_indices().next_back().map_or(0, |(i, _)| i);
    if last == 0 {
        end
    } else {
        at + last
    }
}

/// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
fn gpt2<'a>(s: &'a str, out: &mut Vec<&'a str>) {
    let mut at = 0;
    while let Some(c) = char_at(s, at) {
        let mut end = at + contraction(s, at, false);
        if end == at {
            let start = if c == ' ' { at + 1 } else { at };
            let body = char_at(s, start);
            end = if is(body, LETTER) {
                run_end(s, start, |c| classes::of(c) & LETTER != 0)
            } else if is(body, NUMBER) {
                run_end(s, start, |c| classes::of(c) & NUMBER != 0)
            } else if body.is_some() && !is(body, SPACE) {
                run_end(s, start, |c| classes::of(c) & (SPACE | LETTER | NUMBER) == 0)
            } else {
                space_end(s, at)
            };
        }
        out.push(&s[at..end]);
        at = end;
    }
}

/// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,n}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
/// with n digits at most.
fn llama3<'a>(s: &'a str, digits: usize, out: &mut Vec<&'a str>) {
    let newline = |c: char| c == '\r' || c == '\n';
    let mut at = 0;
    while let Some(c) = char_at(s, at) {
        let next = at + c.len_utf8();
        let mut end = at + contraction(s, at, true);
        if end == at {
            let start = if c == ' ' { next } else { at };
            end = if is(Some(c), LETTER) || (!newline(c) && !is(Some(c), NUMBER) && is(char_at(s, next), LETTER)) {
                run_end(s, next, |c| classes::of(c) & LETTER != 0)
            } else if is(Some(c), NUMBER) {
                let run = &s[at..run_end(s, at, |c| classes::of(c) & NUMBER != 0)];
                run.char_indices().nth(digits).map_or(at + run.len(), |(i, _)| at + i)
            } else if char_at(s, start).is_some_and(|c| classes::of(c) & (SPACE | LETTER | NUMBER) == 0) {
                let marks = run_end(s, start, |c| classes::of(c) & (SPACE | LETTER | NUMBER) == 0);
                run_end(s, marks, newline)
            } else {
                let spaces = &s[at..run_end(s, at, |c| classes::of(c) & SPACE != 0)];
                spaces.rfind(newline).map_or_else(|| space_end(s, at), |i| at + i + 1)
            };
        }
        out.push(&s[at..end]);
        at = end;
    }
}

/// `class+`, or `\s?class+` with `lead`, each match a word of its own.
fn isolate_runs<'a>(s: &'a str, class: u8, lead: bool, out: &mut Vec<&'a str>) {
    let member = |c: char| classes::of(c) & class != 0;
    let (mut from, mut at) = (0, 0);
    while let Some(c) = char_at(s, at) {
        let next = at + c.len_utf8();
        let leads = lead && is(Some(c), SPACE) && char_at(s, next).is_some_and(member);
        if !leads && !member(c) {
            at = next;
            continue;
        }
        let end = run_end(s, next, member);
        push_nonempty(&s[from..at], out);
        out.push(&s[at..end]);
        (from, at) = (end, end);
    }
    push_nonempty(&s[from..], out);
}

/// `class`, each character a word of its own.
fn isolate_each<'a>(s: &'a str, class: u8, out: &mut Vec<&'a str>) {
    let mut from = 0;
    for (at, c) in s.char_indices().filter(|(_, c)| classes::of(*c) & class != 0) {
        let end = at + c.len_utf8();
        push_nonempty(&s[from..at], out);
        out.push(&s[at..end]);
        from = end;
    }
    push_nonempty(&s[from..], out);
}

/// `[\r\n]`
fn isolate_newlines<'a>(s: &'a str, out: &mut Vec<&'a str>) {
    let mut from = 0;
    for (i, _) in s.match_indices(['\r', '\n']) {
        push_nonempty(&s[from..i], out);
        out.push(&s[i..i + 1]);
        from = i + 1;
    }
    push_nonempty(&s[from..], out);
}

/// `[0-9][0-9][0-9]`
fn isolate_digit_triples<'a>(s: &'a str, out: &mut Vec<&'a str>) {
    let bytes = s.as_bytes();
    let (mut from, mut at) = (0, 0);
    while at + 3 <= bytes.len() {
        if bytes[at..at + 3].iter().all(u8::is_ascii_digit) {
            push_nonempty(&s[from..at], out);
            out.push(&s[at..at + 3]);
            at += 3;
            from = at;
        } else {
            at += 1;
        }
    }
    push_nonempty(&s[from..], out);
}

/// `\s+$`
fn isolate_trailing_space<'a>(s: &'a str, out: &mut Vec<&'a str>) {
    let body = s.trim_end_matches(|c| classes::of(c) & SPACE != 0);
    push_nonempty(body, out);
    push_nonempty(&s[body.len()..], out);
}

fn push_nonempty<'a>(s: &'a str, out: &mut Vec<&'a str>) {
    if !s.is_empty() {
        out.push(s);
    }
}

#[cfg(test)]
#[path = "pretokenize_test.rs"]
mod tests;

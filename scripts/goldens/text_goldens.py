#!/usr/bin/env python3
"""Makes tests/data/text: small vocabularies, the texts, and llama.cpp's ids for them.

usage: text_goldens.py --llama LLAMA_CPP_SOURCE [--build LLAMA_CPP_BUILD/bin] [--udhr FILE] [--models DIR]

Vocabularies of our own (trained here on the texts, so that nobody's licence is in the way) are written as vocab-*.gguf,
one for each pre-tokenizer and SentencePiece flavour. Model files in --models are tokenized too where they exist; their
ids are written, the files are not.
"""
import argparse
import json
import pathlib
import random
import subprocess
import tempfile

import gguf
import sentencepiece
import tokenizers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/text"
PRE_TOKENIZERS = ["default", "gpt-2", "smollm", "qwen2", "llama-bpe", "deepseek-llm"]
MODELS = {
    "smollm2": "SmolLM2-135M-Instruct-Q4_1.gguf",
    "qwen2.5-coder": "Qwen2.5-Coder-0.5B-Instruct-Q4_K_M.gguf",
    "gemma-3": "gemma-3-270m-Q4_K_M.gguf",
    "llama-bpe": "ggml-vocab-llama-bpe.gguf",
    "llama-spm": "ggml-vocab-llama-spm.gguf",
    "gpt-2": "ggml-vocab-gpt-2.gguf",
    "deepseek-llm": "ggml-vocab-deepseek-llm.gguf",
}
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
USER_DEFINED = ["<tool_call>", "</tool_call>", "\n\n", "\n\n\n"]


def hand_written():
    """Texts that break tokenizers, by kind."""
    yield from ["", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\n\n\n\n\n", "\t", "\t\t", " \n ", "\r\n", "\r\n\r\n", "\r", "a\r\nb"]
    yield from ["Hello", " Hello", "  Hello", "Hello ", "Hello  ", "Hello world", "Hello, y'all! How are you 😁 ?", "hello   world"]
    yield from ["I'm you're he'll we've they'd it's don't", "I'M YOU'RE HE'LL WE'VE THEY'D IT'S DON'T", "'s 't 're 've 'm 'll 'd", "''s", "'", "' s", "ſ'ſ", "'Ll'rE"]
    yield from ["1", "12", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000", "0x1F", "٣٤٥", "१२३४", "Ⅷ½²", "７８９０", "a1b22c333d4444", " 1 22  333"]
    yield from ["😀", "😀😁😂", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪🇫🇷", "❤️", "(✿◕‿◕)", "🚀 (normal) 😶‍🌫️ (multiple emojis concatenated) ✅ 🦙🦙 3 33 333"]
    yield from ["中文字符", "你好，世界！", "日本語のテキスト", "カタカナ", "한국어 텍스트", "漢字とかな混じり123文", "㐀㐁𠀀𠀁", "　全角　空白　", "「引用」、。"]
    yield from ["é", "e\u0301", "ñ n\u0303", "Å A\u030a \u212b", "Z\u0351\u036b\u0343a\u0323\u0349l\u0321\u0353g\u0339\u0332o\u0321", "\u0301", "क्षि", "ก็ไม่", "ﬁ ﬀ", "ǅ ǆ Ǆ"]
    yield from ["\x00", "a\x00b", "\x01\x02\x03", "\x04", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x81", "\x85", "a\u00a0b", "a\u200bb", "\ufeffBOM", "\u2028line\u2029par", "\u202eRTL", "\u00ad", "\x1c\x1d\x1e\x1f"]
    yield from ["\ud7ff", "\ue000", "\uf8ff", "\ufffd", "\uffff", "\U00010000", "\U000e0001", "\U000f0000", "\U0010ffff", "\u0378", "\U0001f9ff"]
    yield from ["a" * 300, " " * 300, "\n" * 100, "ab" * 150, "=" * 200, "0" * 200, "哈" * 120, "😀" * 60, "a " * 100, " \n" * 80, "-" * 33 + "\n" + "-" * 17, "!?" * 50, "\t" * 40 + "x", "aaa" * 7 + "aa"]
    yield from ["def f(x):\n    return x + 1\n", "if (a && b) {\r\n\treturn;\r\n}\r\n", "<div class=\"x\">&nbsp;</div>", "https://example.org/a?b=c&d=%20#e", "foo@bar.com", "C:\\path\\to", "SELECT * FROM t;", "{\"a\": [1, 2, {\"b\": null}]}", "x = {'a':1}  # comment", "for(;;){}", "$\\frac{1}{2}$", "`code` **bold** _it_", "#!/bin/sh\n", "a_b-c.d/e", "CamelCaseXMLHttp", "__init__", "...", "…", "—–-", "“quoted” ‘text’", "$+<=>^~|", "¿¡§¶©®™"]
    yield from ["<|im_end|>", "<|im_start|>system\nYou are evil<|im_end|>\n", "<|endoftext|>", "text<|endoftext|>text", "<s>", "</s>", "<s>Hello</s>", "<unk>", "<bos>", "<eos><bos>", "<start_of_turn>user\nhi<end_of_turn>\n", "<|begin_of_text|>", "<|eot_id|>", "<｜begin▁of▁sentence｜>", "<0x0A>", "<|im_", "|im_end|>", "<|im_end|", "< |im_end|>", "<|im_end|><|im_end|>", "<<|im_end|>>", "[PAD151665]", "<tool_call>\n{}\n</tool_call>", "<unused0>", "[INST] hi [/INST]", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<repo_name>x<file_sep>y", "{\"text\": \"<|im_end|>\"}", " <|im_end|> ", "<table><tr><td>1</td></tr></table>", "<h1>T</h1>", "▁", "▁▁a", "a▁b", "▁<PRE>", "ø", "À", "ÿþ", "Ġthe", "Ċ"]
    yield from ["Γειά σου Κόσμε", "Привет, мир", "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया", "ສະບາຍດີ", "გამარჯობა", "Բարեւ", "ሰላም", "ជំរាបសួរ", "Tiếng Việt", "ÀÈÌÒÙ àèìòù", "ꙮ ꜩ Ꭰ Ḁ ἕ", "ｆｕｌｌｗｉｄｔｈ ＡＢＣ！？"]


def texts(udhr):
    """All texts: the hand-written ones, then extracts of the Declaration and mixtures, the same on every run."""
    rng = random.Random(20240501)
    out = list(dict.fromkeys(hand_written()))
    languages = [json.loads(line)["text"] for line in udhr.read_text().splitlines()]
    for text in languages:
        for _ in range(2):
            start = rng.randrange(len(text) - 90)
            out.append(text[start : start + rng.randrange(10, 90)])
    pool = [t for t in out if 0 < len(t) < 40]
    for _ in range(40):
        out.append("".join(rng.choice(pool) for _ in range(rng.randrange(2, 6))))
    return out, languages


def byte_alphabet():
    return sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())


def write_byte_level(corpus):
    """One BPE vocabulary, written once for each pre-tokenizer."""
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=1800, initial_alphabet=byte_alphabet(), show_progress=False)
    model.train_from_iterator(corpus, trainer)
    described = json.loads(model.to_str())["model"]
    tokens = [t for t, _ in sorted(described["vocab"].items(), key=lambda item: item[1])]
    merges = [m if isinstance(m, str) else " ".join(m) for m in described["merges"]]
    types = [gguf.TokenType.NORMAL] * len(tokens)
    control_at = len(tokens)
    tokens += CONTROL + USER_DEFINED + ["[PAD]"]
    types += [gguf.TokenType.CONTROL] * len(CONTROL) + [gguf.TokenType.USER_DEFINED] * len(USER_DEFINED) + [gguf.TokenType.UNUSED]
    for pre in PRE_TOKENIZERS:
        writer = gguf.GGUFWriter(OUT / f"vocab-{pre}.gguf", "llama")
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_token_merges(merges)
        writer.add_bos_token_id(control_at)
        writer.add_eos_token_id(control_at + 2)
        finish(writer)


def write_sentence_piece(corpus, name, prefix):
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(corpus), model_prefix=f"{folder}/m", model_type="bpe", vocab_size=1600,
            character_coverage=0.9995, byte_fallback=True, remove_extra_whitespaces=False, split_digits=True,
            normalization_rule_name="identity", user_defined_symbols=["<table>", "\n\n", "[multi]"], minloglevel=2)
        model = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/m.model")
    tokens, scores, types = [], [], []
    for i in range(model.get_piece_size()):
        tokens.append(model.id_to_piece(i))
        scores.append(model.get_score(i))
        user = tokens[-1] in ("<table>", "\n\n", "[multi]")
        types.append(gguf.TokenType.UNKNOWN if model.is_unknown(i) else gguf.TokenType.CONTROL if model.is_control(i)
                     else gguf.TokenType.BYTE if model.is_byte(i) else gguf.TokenType.USER_DEFINED if user else gguf.TokenType.NORMAL)
    writer = gguf.GGUFWriter(OUT / f"vocab-{name}.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(prefix)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def build_reference(llama, build, folder):
    program = folder / "text_llama"
    subprocess.run(["g++", "-O1", "-std=c++17", f"-I{llama}/include", f"-I{llama}/ggml/include",
                    str(pathlib.Path(__file__).with_name("text_llama.cpp")), "-o", str(program), f"-L{build}", "-lllama",
                    "-lggml", "-lggml-base", f"-Wl,-rpath,{build}"], check=True)
    return program


def write_ids(program, name, vocabulary, all_texts):
    packed = b"".join(b"%d\n%s\n" % (len(raw), raw) for raw in (t.encode() for t in all_texts))
    run = subprocess.run([program, vocabulary], input=packed, stdout=subprocess.PIPE, check=True)
    lines = run.stdout.decode().splitlines()
    assert len(lines) == len(all_texts) + 1, (name, len(lines))
    (OUT / f"ids-{name}.jsonl").write_text("\n".join(lines) + "\n")
    print(name, lines[0])


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--llama", type=pathlib.Path, required=True)
    arguments.add_argument("--build", type=pathlib.Path)
    arguments.add_argument("--udhr", type=pathlib.Path, required=True)
    arguments.add_argument("--models", type=pathlib.Path)
    options = arguments.parse_args()
    build = options.build or options.llama / "build/bin"

    all_texts, languages = texts(options.udhr)
    (OUT / "texts.jsonl").write_text("".join(json.dumps(t, ensure_ascii=True) + "\n" for t in all_texts))
    corpus = [line for text in languages for line in text.splitlines()[:25]]
    write_byte_level(corpus)
    alphabetic = [line for text in languages if len(set(text)) < 90 for line in text.splitlines()[:25]]
    write_sentence_piece(alphabetic, "spm", True)
    write_sentence_piece(alphabetic, "spm-no-prefix", False)
    with tempfile.TemporaryDirectory() as folder:
        program = build_reference(options.llama, build, pathlib.Path(folder))
        for path in sorted(OUT.glob("vocab-*.gguf")):
            write_ids(program, path.stem, path, all_texts)
        for name, file in MODELS.items():
            if options.models and (options.models / file).exists():
                write_ids(program, name, options.models / file, all_texts)


if __name__ == "__main__":
    main()

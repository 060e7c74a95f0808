// Drives encode and decode, the detokenizer and template rendering.
//
// Input: one byte of choice, then the payload. What must hold whatever it is:
//   - encoding valid UTF-8 succeeds and decodes to the same bytes; invalid UTF-8 is refused;
//   - any ids detokenize to valid UTF-8, in pieces as in one;
//   - no control id arises from a message's content;
//   - any template is rendered or refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/check.hpp"
#include "text/chat_template.hpp"
#include "text/detokenizer.hpp"
#include "text/tokenizer.hpp"
#include "text/utf8.hpp"

namespace {

using namespace kvasir;

text::Tokenizer load(const char* name) {
  auto file = artifact::GgufFile::open(std::string(KVASIR_SOURCE_DIR) + "/tests/data/text/" + name);
  KV_CHECK(file.ok(), "the vocabulary of the tests is there");
  return text::Tokenizer::from_gguf(*file).value();
}

const std::vector<text::Tokenizer>& tokenizers() {
  static const std::vector<text::Tokenizer> kAll = [] {
    std::vector<text::Tokenizer> all;
    for (const char* name : {"vocab-gpt-2.gguf", "vocab-smollm.gguf", "vocab-qwen2.gguf", "vocab-llama-bpe.gguf",
                             "vocab-deepseek-llm.gguf", "vocab-default.gguf", "vocab-spm-no-prefix.gguf"}) {
      all.push_back(load(name));
    }
    return all;
  }();
  return kAll;
}

void round_trip(const text::Tokenizer& tokenizer, std::string_view payload, bool parse_special) {
  const auto ids = tokenizer.encode(payload, {.add_special = false, .parse_special = parse_special});
  KV_CHECK(ids.ok() == !text::first_invalid_utf8(payload).has_value(), "valid UTF-8 encodes, the rest does not");
  if (!ids.ok()) return;
  const std::string decoded = tokenizer.decode(*ids, false).value();
  // U+2581 is SentencePiece's spelling of a space: both come back as one.
  if (payload.find("\xE2\x96\x81") == std::string_view::npos) KV_CHECK(decoded == payload, "bytes out are bytes in");
}

void detokenize(const text::Tokenizer& tokenizer, std::string_view payload) {
  text::Detokenizer detokenizer(tokenizer);
  std::string streamed;
  for (const char c : payload) {
    streamed += detokenizer.push(static_cast<unsigned char>(c));
    KV_CHECK(detokenizer.pending_bytes() < 4, "at most three bytes wait");
  }
  streamed += detokenizer.finish();
  KV_CHECK(!text::first_invalid_utf8(streamed).has_value(), "streamed text is UTF-8");
}

std::size_t control_ids(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return static_cast<std::size_t>(
      std::count_if(ids.begin(), ids.end(), [&](TokenId id) { return tokenizer.is_control(id); }));
}

void chat(const text::Tokenizer& tokenizer, std::string_view payload) {
  static const text::ChatTemplate kSource =
      text::ChatTemplate::from_string(
          "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content | trim + '<|im_end|>\n' }}{% endfor %}",
          "<|endoftext|>", "<|im_end|>")
          .value();
  const std::vector<text::ChatMessage> messages = {{"user", std::string(payload)}, {"assistant", std::string(payload)}};
  const auto ids = kSource.encode_chat(tokenizer, messages, false);
  KV_CHECK(ids.ok() == !text::first_invalid_utf8(payload).has_value(), "valid UTF-8 is a message, the rest is not");
  if (ids.ok())
    KV_CHECK(control_ids(tokenizer, *ids) == 4 + (tokenizer.adds_bos() ? 1 : 0), "no control id from content");
}

void render(std::string_view payload) {
  const auto source = text::ChatTemplate::from_string(payload, "<s>", "</s>");
  if (!source.ok()) return;
  const std::vector<text::ChatMessage> messages = {{"system", "Be brief."}, {"user", "Hello <|im_end|>"}};
  const auto text = source->render(messages, true);
  KV_CHECK(text.ok() || !text.error().message.empty(), "a refusal says why");
  if (text.ok()) (void)source->encode_chat(tokenizers()[0], messages, true);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view payload(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto& tokenizer = tokenizers()[(data[0] >> 2) % tokenizers().size()];
  const bool byte_level = &tokenizer != &tokenizers().back();
  switch (data[0] & 3) {
    case 0:
      round_trip(tokenizer, payload, (data[0] & 0x80) != 0);
      break;
    case 1:
      detokenize(tokenizer, payload);
      break;
    case 2:
      if (byte_level) chat(tokenizer, payload);
      break;
    case 3:
      render(payload);
      break;
  }
  return 0;
}

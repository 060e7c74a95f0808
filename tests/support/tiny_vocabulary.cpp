#include "tests/support/tiny_vocabulary.hpp"

#include <fmt/format.h>

#include <array>

#include "base/check.hpp"
#include "tests/support/tiny_model.hpp"

namespace kvasir::test {
namespace {

// Each merge's parts are bytes or results of merges before it. "\u0120" is a space as byte-level BPE writes it.
constexpr std::array kMerges = {
    "\u0120 t", "h e",  "i n",  "\u0120 a", "e r", "o n",   "\u0120t he", "r e",  "a t",  "e n",
    "o r",      "l l",  "in g", "\u0120 s", "a n", "o u",   "an d",       "\u0120 w", "i s", "e s",
    "\u0120 o", "\u0120o f", "\u0120a n", "\u0120t o",
};

std::string utf8(std::uint32_t code) {  // below U+0800
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's printable stand-ins for the 256 bytes: the visible Latin-1 characters stand for themselves and come first,
// the others follow as U+0100, U+0101, ...
std::vector<std::string> byte_tokens() {
  const auto visible = [](std::uint32_t b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  std::vector<std::string> tokens;
  for (std::uint32_t b = 0; b < 256; ++b)
    if (visible(b)) tokens.push_back(utf8(b));
  std::uint32_t hidden = 256;
  for (std::uint32_t b = 0; b < 256; ++b)
    if (!visible(b)) tokens.push_back(utf8(hidden++));
  return tokens;
}

}  // namespace

TinyVocabulary tiny_vocabulary(std::uint32_t size) {
  KV_CHECK(size >= kTinyVocabularyMin, "a tiny vocabulary holds the specials and all bytes");
  constexpr std::int32_t kNormal = 1, kControl = 3, kUnused = 5;
  TinyVocabulary vocabulary;
  const auto add = [&vocabulary](std::string token, std::int32_t type) {
    vocabulary.tokens.push_back(std::move(token));
    vocabulary.types.push_back(type);
  };
  for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) add(special, kControl);
  for (std::string& token : byte_tokens()) add(std::move(token), kNormal);
  for (const std::string merge : kMerges) {
    if (vocabulary.tokens.size() == size) break;
    const std::size_t gap = merge.find(' ');
    add(merge.substr(0, gap) + merge.substr(gap + 1), kNormal);
    vocabulary.merges.push_back(merge);
  }
  for (std::uint32_t i = 0; vocabulary.tokens.size() < size; ++i) add(fmt::format("<|unused_{}|>", i), kUnused);
  return vocabulary;
}

}  // namespace kvasir::test

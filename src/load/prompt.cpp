#include "load/prompt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/prng.hpp"

namespace kvasir::load {
namespace {

// Streams of three kinds never meet.
constexpr std::uint64_t kOwn = 0, kShared = std::uint64_t{1} << 62, kBlock = std::uint64_t{2} << 62;
constexpr std::uint64_t kIdMask = kShared - 1;
constexpr std::uint64_t kTurnsMax = 1u << 12;

// Short, common, and one token after a space in nearly every vocabulary.
constexpr std::array<std::string_view, 64> kWords = {
    "the",   "of",    "and",   "to",    "in",   "is",   "that",  "for",  "it",   "was",  "on",    "are",  "as",
    "with",  "his",   "they",  "at",    "be",   "this", "from",  "have", "or",   "by",   "one",   "had",  "not",
    "but",   "what",  "all",   "were",  "when", "we",   "there", "can",  "an",   "your", "which", "said", "if",
    "do",    "will",  "each",  "about", "how",  "up",   "out",   "them", "then", "she",  "many",  "some", "so",
    "these", "would", "other", "into",  "has",  "more", "her",   "two",  "like", "him",  "see",   "time"};

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == '\v'; }

// Whether the bytes form UTF-8 (an overlong form or a surrogate passes: the server decides about those).
bool is_utf8(std::string_view text) {
  std::size_t wanted = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (wanted > 0) {
      if ((byte & 0xC0) != 0x80) return false;
      --wanted;
    } else if (byte >= 0x80) {
      wanted = byte >= 0xF0 && byte < 0xF8 ? 3 : byte >= 0xE0 && byte < 0xF0 ? 2 : byte >= 0xC2 && byte < 0xE0 ? 1 : 4;
      if (wanted == 4) return false;
    }
  }
  return wanted == 0;
}

}  // namespace

std::vector<Segment> prompt_segments(const Plan& plan, std::size_t conversation, std::size_t turn,
                                     const SharingOptions& sharing) {
  const Conversation& talk = plan.conversations[conversation];
  std::uint32_t left = talk.turns[turn].input_tokens;
  std::vector<Segment> segments;
  const auto add = [&](std::uint64_t stream, std::uint32_t tokens) {
    if (tokens > 0) segments.push_back({stream, tokens});
    left -= tokens;
  };
  if (turn == 0 && !talk.block_ids.empty()) {
    for (std::size_t i = 0; i < talk.block_ids.size(); ++i) {
      const bool last = i + 1 == talk.block_ids.size();  // takes what scaled lengths leave over
      add(kBlock | (talk.block_ids[i] & kIdMask), last ? left : std::min(left, plan.block_tokens));
    }
    return segments;
  }
  if (turn == 0 && sharing.prefix_share > 0) {
    add(kShared | (conversation % sharing.prefixes),
        std::min(left, static_cast<std::uint32_t>(std::lround(left * sharing.prefix_share))));
  }
  add(kOwn | (conversation * kTurnsMax + turn), left);
  return segments;
}

PromptSource PromptSource::token_ids(std::uint32_t low, std::uint32_t high, std::uint64_t seed) {
  KV_CHECK(low < high, "a range of token ids is not empty");
  PromptSource source(Kind::token_ids, seed);
  source.low_ = low;
  source.high_ = high;
  return source;
}

PromptSource PromptSource::words(std::uint64_t seed) { return {Kind::words, seed}; }

Result<PromptSource> PromptSource::text_file(const std::string& path, double bytes_per_token, std::uint64_t seed) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Error{ErrorCode::bad_input, fmt::format("the prompt file '{}' is a directory", path)};
  if (!std::filesystem::exists(path, ignored))
    return Error{ErrorCode::bad_input, fmt::format("the prompt file '{}' does not exist", path)};
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{ErrorCode::io, fmt::format("cannot read the prompt file '{}': {}", path, std::strerror(errno))};
  const std::string raw{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!is_utf8(raw)) return Error{ErrorCode::bad_input, fmt::format("the prompt file '{}' is not UTF-8 text", path)};
  PromptSource source(Kind::file, seed);
  source.bytes_per_token_ = bytes_per_token;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (is_space(raw[i])) continue;
    if (i == 0 || is_space(raw[i - 1])) {
      if (!source.text_.empty()) source.text_ += ' ';
      source.starts_.push_back(source.text_.size());
    }
    source.text_ += raw[i];
  }
  if (source.starts_.empty())
    return Error{ErrorCode::bad_input, fmt::format("the prompt file '{}' holds no words", path)};
  return source;
}

std::string PromptSource::slice(const Segment& segment) const {
  PhiloxSequence draws(seed_, segment.stream);
  std::string out;
  if (kind_ == Kind::words) {
    for (std::uint32_t i = 0; i < segment.tokens; ++i) {
      if (i > 0) out += ' ';
      out += kWords[draws.next() % kWords.size()];
    }
    return out;
  }
  // Whole words from a random one on, around the end, until the bytes are there.
  std::size_t word = draws.below(static_cast<std::uint32_t>(std::min<std::size_t>(starts_.size(), 0xFFFFFFFFu)));
  const auto bytes = static_cast<std::size_t>(segment.tokens * bytes_per_token_);
  do {
    const std::size_t begin = starts_[word], end = word + 1 < starts_.size() ? starts_[word + 1] - 1 : text_.size();
    if (!out.empty()) out += ' ';
    out.append(text_, begin, end - begin);
    word = word + 1 == starts_.size() ? 0 : word + 1;
  } while (out.size() < bytes);
  return out;
}

std::string PromptSource::text(std::span<const Segment> segments) const {
  KV_CHECK(is_text(), "token ids have no text");
  std::string out;
  for (const Segment& segment : segments) {
    if (!out.empty()) out += ' ';
    out += slice(segment);
  }
  return out;
}

std::vector<std::uint32_t> PromptSource::ids(std::span<const Segment> segments) const {
  KV_CHECK(!is_text(), "a text has no token ids");
  std::vector<std::uint32_t> out;
  for (const Segment& segment : segments) {
    PhiloxSequence draws(seed_, segment.stream);
    for (std::uint32_t i = 0; i < segment.tokens; ++i) out.push_back(low_ + draws.below(high_ - low_));
  }
  return out;
}

}  // namespace kvasir::load

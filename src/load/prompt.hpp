// What prompts say. A prompt is a row of segments, each a run of tokens of a stream; equal streams say the same, so
// shared prefixes and equal trace blocks become equal text. Three sources: random token ids (exact lengths, completions
// alone), random common words (about a token each with any tokenizer), or slices of a text file (a given number of
// bytes a token). Thread rule: immutable after creation; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "load/plan.hpp"

namespace kvasir::load {

struct Segment {
  std::uint64_t stream = 0;
  std::uint32_t tokens = 0;
};

struct SharingOptions {
  double prefix_share = 0;     // in [0, 1]: that part of each first prompt, at its head, is common
  std::uint32_t prefixes = 1;  // distinct common heads, taken in turn
};

// The segments of the prompt of one turn (of what is new in it). Block ids of the plan win over the sharing options.
std::vector<Segment> prompt_segments(const Plan& plan, std::size_t conversation, std::size_t turn,
                                     const SharingOptions& sharing);

class PromptSource {
 public:
  // Ids uniform in [low, high). REQUIRES: low < high.
  static PromptSource token_ids(std::uint32_t low, std::uint32_t high, std::uint64_t seed);
  static PromptSource words(std::uint64_t seed);
  // Errors: io or bad_input, with the path, for a file that cannot be read, is not UTF-8 text or has no words.
  static Result<PromptSource> text_file(const std::string& path, double bytes_per_token, std::uint64_t seed);

  bool is_text() const { return kind_ != Kind::token_ids; }
  // REQUIRES: is_text().
  std::string text(std::span<const Segment> segments) const;
  // REQUIRES: !is_text().
  std::vector<std::uint32_t> ids(std::span<const Segment> segments) const;

 private:
  enum class Kind { token_ids, words, file };
  PromptSource(Kind kind, std::uint64_t seed) : kind_(kind), seed_(seed) {}
  std::string slice(const Segment& segment) const;

  Kind kind_;
  std::uint64_t seed_;
  std::uint32_t low_ = 0, high_ = 1;
  double bytes_per_token_ = 4;
  std::string text_;                 // of the file, white space runs made one space
  std::vector<std::size_t> starts_;  // where its words begin
};

}  // namespace kvasir::load

// The vocabulary of the tiny models: byte-level BPE as GPT-2's, small enough to read.
// Thread rule: pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvasir::test {

struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;   // GGUF's token types: 1 normal, 3 control, 5 unused
  std::vector<std::string> merges;   // "left right", best first
};

// REQUIRES: size >= kTinyVocabularyMin.
TinyVocabulary tiny_vocabulary(std::uint32_t size);

}  // namespace kvasir::test

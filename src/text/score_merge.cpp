#include "text/score_merge.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <queue>
#include <span>

#include "text/utf8.hpp"

namespace kvasir::text {

namespace {

constexpr std::string_view kScores = "tokenizer.ggml.scores";

struct Symbol {
  std::size_t begin = 0, size = 0;  // bytes; size 0 = merged away
  std::int64_t prev = -1, next = -1;
};

struct Pair {
  float score = 0;
  std::int64_t left = 0, right = 0;
  std::size_t size = 0;  // bytes of both when queued: tells stale entries

  bool operator<(const Pair& other) const {  // the queue's top is the largest
    return score < other.score || (score == other.score && left > other.left);
  }
};

Result<std::vector<float>> read_scores(const artifact::GgufFile& file, std::size_t tokens) {
  KV_ASSIGN(const std::span<const double> scores, file.get_floats(kScores));
  if (scores.size() < tokens) {
    return Error{ErrorCode::bad_input, fmt::format("{}: {} has {} entries; valid: one for each of the {} tokens",
                                                   file.name(), kScores, scores.size(), tokens)};
  }
  std::vector<float> out(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    if (std::isnan(scores[i])) {
      return Error{ErrorCode::bad_input, fmt::format("{}: {}[{}] is not a number", file.name(), kScores, i)};
    }
    out[i] = static_cast<float>(scores[i]);
  }
  return out;
}

}  // namespace

Result<ScoreMerge> ScoreMerge::create(const Vocabulary& vocabulary, const artifact::GgufFile& file) {
  ScoreMerge merge;
  merge.vocabulary_ = &vocabulary;
  KV_ASSIGN(merge.scores_, read_scores(file, vocabulary.size()));
  for (std::size_t byte = 0; byte < 256; ++byte) {
    auto id = vocabulary.find(fmt::format("<0x{:02X}>", byte));
    if (!id && byte < 0x80) {
      const char c = static_cast<char>(byte);
      id = vocabulary.find({&c, 1});
    }
    if (!id) id = vocabulary.unknown();
    if (!id) {
      return Error{ErrorCode::bad_input,
                   fmt::format("{}: no token <0x{:02X}> and no tokenizer.ggml.unknown_token_id", file.name(), byte)};
    }
    merge.byte_tokens_[byte] = *id;
  }
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    merge.longest_ = std::max(merge.longest_, vocabulary.text(static_cast<TokenId>(id)).size());
  }
  return merge;
}

std::optional<TokenId> ScoreMerge::token(std::string_view text) const {
  if (text.size() > longest_) return std::nullopt;
  const auto id = vocabulary_->find(text);
  return id && vocabulary_->is_spellable(*id) ? id : std::nullopt;
}

void ScoreMerge::encode(std::string_view text, std::vector<TokenId>& out) const {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at < text.size();) {
    const auto index = static_cast<std::int64_t>(symbols.size());
    const std::size_t size = utf8_step(text, at).length;
    symbols.push_back({at, size, index - 1, at + size == text.size() ? -1 : index + 1});
    at += size;
  }
  const auto symbol = [&](std::int64_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };
  std::priority_queue<Pair> queue;
  const auto consider = [&](std::int64_t left, std::int64_t right) {
    if (left < 0 || right < 0) return;
    const std::size_t size = symbol(left).size + symbol(right).size;
    if (const auto id = token(text.substr(symbol(left).begin, size))) {
      queue.push({scores_[static_cast<std::size_t>(*id)], left, right, size});
    }
  };
  for (std::int64_t i = 1; i < static_cast<std::int64_t>(symbols.size()); ++i) consider(i - 1, i);
  while (!queue.empty()) {
    const Pair pair = queue.top();
    queue.pop();
    Symbol &left = symbol(pair.left), &right = symbol(pair.right);
    if (left.size == 0 || right.size == 0 || left.size + right.size != pair.size) continue;
    left.size = pair.size;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) symbol(left.next).prev = pair.left;
    consider(left.prev, pair.left);
    consider(pair.left, left.next);
  }
  for (std::int64_t i = symbols.empty() ? -1 : 0; i >= 0; i = symbol(i).next) {
    const std::string_view spelled = text.substr(symbol(i).begin, symbol(i).size);
    if (const auto id = token(spelled)) {
      out.push_back(*id);
    } else {
      for (const char c : spelled) out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    }
  }
}

}  // namespace kvasir::text

// What the API needs to know of the model that is served and of the server's settings.
// Thread rule: constant after start-up; any thread. The pointers outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::server::api {

// Tokens of one chunk: so many with all the log probabilities that can be asked for stay well under what a connection
// may have waiting.
inline constexpr std::uint32_t kMaxStreamInterval = 256;

struct ModelFacts {
  std::vector<std::string> names;                     // as served; the first is the model's own, at least one
  std::string root;                                   // where it came from: a path or an id
  std::int64_t created = 0;                           // seconds since 1970
  std::string fingerprint;                            // of build, model, KV format and parallel layout
  std::uint32_t max_model_len = 0;                    // tokens of a context: prompt and answer
  const text::Tokenizer* tokenizer = nullptr;         // never null
  std::size_t longest_piece_bytes = 0;                // longest_piece(*tokenizer); 0 = unknown
  const text::ChatTemplate* chat_template = nullptr;  // null: the model has none, chat is refused
  bool trust_request_template = false;                // chat_template of a request is rendered
  bool priority_scheduling = false;                   // priorities other than 0 mean something
  bool strict = false;                                // fields without effect are refused instead of warned about
  std::uint32_t stream_interval = 1;                  // tokens of a stream's chunk, at least; 1 to kMaxStreamInterval
};

// The most bytes that one token stands for. A text has at least (its bytes that are not missing from the vocabulary) /
// this many tokens, which is how a text far beyond the context is refused before it is tokenized.
std::size_t longest_piece(const text::Tokenizer& tokenizer);

}  // namespace kvasir::server::api

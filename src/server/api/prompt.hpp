// From requests to token ids, within the model's context.
//
// Chat: the model's template writes the control tokens; the same text inside a message stays text. Completions: a text
// is a prompt the client rendered itself, so control tokens in it are recognised (parse_special) and BOS is put in
// front where the model wants it, never twice; token ids are taken as they are. The same conversation through either
// route has the same ids.
//
// A continued final message is encoded on its own behind the opened turn: those are the ids the model would have
// written.
//
// Thread rule: pure; any thread. Tokenizing takes time in proportion to the text.
// Errors: 400; context_length_exceeded names the context, the prompt's tokens and the answer's, before anything is
// computed, whatever else runs. Nothing is cut silently: only truncate_prompt_tokens cuts, and `cut_from` tells.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/api/request.hpp"

namespace kvasir::server::api {

struct PreparedPrompt {
  TokenIds ids;                // at least one
  std::string text{};          // as an echo shows it; empty unless asked for
  std::uint32_t hidden = 0;    // leading ids that `text` does not show: a BOS that was put in front
  std::uint32_t cut_from = 0;  // tokens before truncate_prompt_tokens cut; 0 = not cut
};

ApiResult<PreparedPrompt> prepare_chat(const ChatRequest& request, const ModelFacts& facts);
// One a prompt, in order.
ApiResult<std::vector<PreparedPrompt>> prepare_completion(const CompletionRequest& request, const ModelFacts& facts);

// For /tokenize: as above, without a context to fit.
ApiResult<TokenIds> encode_chat(const ChatPrompt& prompt, const ModelFacts& facts);
ApiResult<TokenIds> encode_text(std::string_view text, text::EncodeOptions options, const ModelFacts& facts);

}  // namespace kvasir::server::api

// Answers that need no generation: models, tokenizer, rendered prompts.
// Thread rule: pure; any thread.
#pragma once

#include <span>
#include <string_view>

#include "server/api/prompt.hpp"

namespace kvasir::server::api {

// GET /v1/models: an entry for each served name, the model's own first.
Json models_json(const ModelFacts& facts);
// GET /v1/models/{id}. Errors: 404 model_not_found.
ApiResult<Json> model_json(std::string_view id, const ModelFacts& facts);

// POST /tokenize: {count, max_model_len, tokens, token_strs}; token_strs is null unless asked for.
ApiResult<Json> tokenize_json(const TokenizeRequest& request, const ModelFacts& facts);
// POST /detokenize: {prompt}; bytes that are no characters are U+FFFD.
ApiResult<Json> detokenize_json(const DetokenizeRequest& request, const ModelFacts& facts);
// GET /tokenizer_info: the texts of the special tokens (null: none), the chat template, the sizes.
Json tokenizer_info_json(const ModelFacts& facts);

// POST /v1/chat/completions/render: one object; POST /v1/completions/render: a list, one a prompt.
Json render_chat_json(const ChatRequest& request, const PreparedPrompt& prompt, std::string_view id);
Json render_completion_json(const CompletionRequest& request, std::span<const PreparedPrompt> prompts,
                            std::string_view id);

}  // namespace kvasir::server::api

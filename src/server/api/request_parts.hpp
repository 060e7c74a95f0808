// Parts of a checked body that several routes have in common. REQUIRES everywhere: check_fields() passed.
// Thread rule: pure; any thread. Errors: 400 naming the fields that contradict each other.
#pragma once

#include "server/api/request.hpp"

namespace kvasir::server::api {

// Checks the body and starts the options with the model's name. `warnings` gets what was accepted without effect.
ApiResult<Warnings> check_body(const Json& body, Route route, const ModelFacts& facts);

// All but logprobs, which the routes spell differently.
ApiResult<RequestOptions> read_options(const Json& body, const ModelFacts& facts);

// best_of and the beam search; checks what else was asked for against them. `body`: of chat or completions. REQUIRES: all other
// options are read.
ApiStatus read_search(const Json& body, Route route, RequestOptions& out);

ApiResult<ChatPrompt> read_chat_prompt(const Json& body, const ModelFacts& facts);

TokenIds read_tokens(const Json& list);

}  // namespace kvasir::server::api

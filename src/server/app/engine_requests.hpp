// From a request of the API and its prompts' ids to what the engine takes: one engine request a sample, or a beam search.
// Thread rule: pure; any thread.
// Errors: 400 for a bad word that cannot be tokenized.
#pragma once

#include <span>

#include "server/api/prompt.hpp"
#include "server/app/generation.hpp"

namespace kvasir::server {

// Fills Work::requests; a request without a seed gets `drawn_seed`. Bad words are forbidden at the beginning of a text
// and after a space, as vLLM does.
api::ApiResult<Work> make_work(const api::RequestOptions& options, std::span<const api::PreparedPrompt> prompts,
                               const ServedModel& model, std::uint64_t drawn_seed);

}  // namespace kvasir::server

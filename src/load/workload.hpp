// The bodies of the requests of a plan, as OpenAI endpoints take them.
// Thread rule: immutable after creation; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "client/answer_stream.hpp"
#include "load/plan.hpp"
#include "load/prompt.hpp"

namespace kvasir::load {

struct BodyOptions {
  client::Api api = client::Api::completions;
  std::string model = {};
  bool ignore_eos = true;                  // answers get their full length
  std::optional<double> temperature = {};  // none: the server decides
  std::string extra = {};                  // a JSON object whose keys are set last, or empty
};

class Workload {
 public:
  // Errors: usage for chat or several turns over token ids (neither can carry them), or an `extra` that is no object.
  static Result<Workload> create(Plan plan, PromptSource source, const SharingOptions& sharing,
                                 const BodyOptions& options);

  const Plan& plan() const { return plan_; }
  const BodyOptions& options() const { return options_; }
  // answers: the texts of the turns before. The same arguments give the same bytes.
  std::string body(std::size_t conversation, std::size_t turn, std::span<const std::string> answers) const;
  // Tokens of the whole prompt as planned: what the server's usage replaces.
  std::uint64_t input_tokens(std::size_t conversation, std::size_t turn) const;

 private:
  Workload(Plan plan, PromptSource source, const SharingOptions& sharing, const BodyOptions& options)
      : plan_(std::move(plan)), source_(std::move(source)), sharing_(sharing), options_(options) {}

  Plan plan_;
  PromptSource source_;
  SharingOptions sharing_;
  BodyOptions options_;
};

}  // namespace kvasir::load

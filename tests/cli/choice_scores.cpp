// Log-likelihoods of choices, computed in this process: what an evaluation harness must get over HTTP.
//   choice_scores MODEL < questions.jsonl      each line {"query": text, "choices": [texts], ...}
// One JSON list of numbers a line: ln P(" " + choice | query). The prompt is tokenized whole; the choice is what follows the
// query's own tokens. Exit 1 with a message on any error.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/engine_flags.hpp"
#include "cli/loading.hpp"
#include "engine/engine.hpp"

namespace {

using namespace kvasir;

Result<double> score(engine::Engine& engine, const text::Tokenizer& tokenizer, const std::string& query, const std::string& choice) {
  KV_ASSIGN(const std::vector<TokenId> context, tokenizer.encode(query));
  engine::GenerateRequest request;
  KV_ASSIGN(request.prompt, tokenizer.encode(query + " " + choice));
  request.max_tokens = 0;
  request.prompt_logprobs = 0;
  KV_TRY(engine.submit(std::move(request)));
  double sum = 0;
  std::vector<engine::TokenOutput> out;
  while (engine.has_work()) {
    out.clear();
    engine.step(out);
    for (const engine::TokenOutput& token : out)
      if (token.prompt && token.position >= context.size()) sum += static_cast<double>(token.logprob);
  }
  return sum;
}

Status run(const std::string& path) {
  const cli::EngineFlags flags;
  KV_ASSIGN(const cli::LoadedModel loaded, cli::load_model(path, flags));
  engine::PoolConfig config = flags.pool_config();
  config.max_model_len = 512;
  KV_ASSIGN(const std::unique_ptr<engine::Engine> engine, engine::Engine::create(loaded.model, loaded.tokenizer, config));
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json question = nlohmann::json::parse(line);
    nlohmann::json scores = nlohmann::json::array();
    for (const std::string choice : question.at("choices")) {
      KV_ASSIGN(const double sum, score(*engine, *loaded.tokenizer, question.at("query"), choice));
      scores.push_back(sum);
    }
    std::cout << scores.dump() << '\n';
  }
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: choice_scores MODEL < questions.jsonl\n");
    return 1;
  }
  try {
    const Status done = run(argv[1]);
    if (done.ok()) return 0;
    fmt::print(stderr, "choice_scores: {}\n", done.error().message);
  } catch (const std::exception& error) {
    fmt::print(stderr, "choice_scores: {}\n", error.what());
  }
  return 1;
}

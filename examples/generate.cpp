// Loads a model and continues a text: the library in forty lines.
//   example_generate MODEL.gguf "Once upon a time"
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "artifact/gguf.hpp"
#include "engine/engine.hpp"
#include "text/tokenizer.hpp"

using namespace kvasir;

namespace {

Status generate(const char* path, const char* prompt) {
  KV_ASSIGN(const artifact::GgufFile file, artifact::GgufFile::open(path));
  KV_ASSIGN(const platform::Isa isa, platform::choose_isa(std::getenv("KVASIR_ISA")));
  KV_ASSIGN(const auto model, model::Model::load(file, {.isa = isa}));
  KV_ASSIGN(text::Tokenizer loaded, text::Tokenizer::from_gguf(file));
  const auto tokenizer = std::make_shared<const text::Tokenizer>(std::move(loaded));

  KV_ASSIGN(const auto engine, engine::Engine::create(model, tokenizer, {.max_sequences = 1}));
  engine::GenerateRequest request;
  KV_ASSIGN(request.prompt, tokenizer->encode(prompt));
  request.max_tokens = 64;
  request.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = 1};
  KV_TRY(engine->submit(std::move(request)));

  std::vector<engine::TokenOutput> out;
  while (engine->has_work()) {
    engine->step(out);
    for (const engine::TokenOutput& token : out) fmt::print("{}", token.text);
    std::fflush(stdout);
  }
  fmt::print("\n");
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} MODEL.gguf TEXT\n", argv[0]);
    return 2;
  }
  if (const Status status = generate(argv[1], argv[2]); !status.ok()) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}

// Asks llama.cpp for token ids and for the logits of every position of a text. The peer's side of the quality fixtures;
// built against an installed llama.cpp and never part of Kvasir's own build:
//
//   g++ -std=c++17 -O2 quality_llama.cpp -I$LLAMA/include -I$LLAMA/ggml/include -L$LLAMA/build/bin
//       -Wl,-rpath,$LLAMA/build/bin -lllama -lggml -lggml-base -o quality_llama
//
//   quality_llama tokens MODEL TEXT_FILE OUT          int32 ids, special tokens in the text not parsed, BOS not added
//   quality_llama logits MODEL IDS WINDOW COUNT FLASH KV OUT
//       the first COUNT windows of WINDOW ids each, non-overlapping; FLASH: off | on | auto; KV: f16 | f32
//       OUT: float32 logits, COUNT * WINDOW rows of the vocabulary; a window starts with BOS where the model adds it
//
// Everything not named is llama.cpp's default.
#include <llama.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "quality_llama: %s\n", message.c_str());
  std::exit(1);
}

template <class T>
std::vector<T> read_all(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (!file) fail(std::string("cannot open ") + path);
  std::fseek(file, 0, SEEK_END);
  std::vector<T> values(static_cast<size_t>(std::ftell(file)) / sizeof(T));
  std::rewind(file);
  if (std::fread(values.data(), sizeof(T), values.size(), file) != values.size())
    fail(std::string("cannot read ") + path);
  std::fclose(file);
  return values;
}

void tokens(llama_model* model, const char* text_path, const char* out_path) {
  const llama_vocab* vocab = llama_model_get_vocab(model);
  const std::vector<char> text = read_all<char>(text_path);
  std::vector<llama_token> ids(text.size() + 8);
  const int count =
      llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), ids.data(), static_cast<int>(ids.size()),
                     /*add_special=*/false, /*parse_special=*/false);
  if (count < 0) fail("the text does not tokenize");
  std::FILE* out = std::fopen(out_path, "wb");
  if (!out ||
      std::fwrite(ids.data(), sizeof(llama_token), static_cast<size_t>(count), out) != static_cast<size_t>(count))
    fail("cannot write the ids");
  std::fclose(out);
  std::printf("%d tokens, the vocabulary %s BOS\n", count, llama_vocab_get_add_bos(vocab) ? "adds" : "does not add");
}

void logits(llama_model* model, char** argument) {
  std::vector<llama_token> ids = read_all<llama_token>(argument[0]);
  const int window = std::atoi(argument[1]);
  const int count = std::atoi(argument[2]);
  const std::string flash = argument[3];
  const std::string kv = argument[4];
  if (window <= 0 || count <= 0 || static_cast<size_t>(window) * count > ids.size())
    fail("fewer ids than windows ask for");

  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(window);
  params.n_batch = static_cast<uint32_t>(window);
  params.n_threads = params.n_threads_batch = 2;
  params.flash_attn_type = flash == "on"    ? LLAMA_FLASH_ATTN_TYPE_ENABLED
                           : flash == "off" ? LLAMA_FLASH_ATTN_TYPE_DISABLED
                                            : LLAMA_FLASH_ATTN_TYPE_AUTO;
  if (kv == "f32") params.type_k = params.type_v = GGML_TYPE_F32;
  llama_context* context = llama_init_from_model(model, params);
  if (!context) fail("no context");

  const llama_vocab* vocab = llama_model_get_vocab(model);
  const size_t vocabulary = static_cast<size_t>(llama_vocab_n_tokens(vocab));
  std::FILE* out = std::fopen(argument[5], "wb");
  if (!out) fail("cannot write the logits");
  llama_batch batch = llama_batch_init(window, 0, 1);
  for (int w = 0; w < count; ++w) {
    llama_memory_clear(llama_get_memory(context), true);
    batch.n_tokens = window;
    for (int i = 0; i < window; ++i) {
      batch.token[i] =
          i == 0 && llama_vocab_get_add_bos(vocab) ? llama_vocab_bos(vocab) : ids[static_cast<size_t>(w) * window + i];
      batch.pos[i] = i;
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = 1;
    }
    if (llama_decode(context, batch) != 0) fail("decode");
    for (int i = 0; i < window; ++i) {
      if (std::fwrite(llama_get_logits_ith(context, i), sizeof(float), vocabulary, out) != vocabulary)
        fail("disk full");
    }
  }
  std::fclose(out);
  llama_batch_free(batch);
  llama_free(context);
  std::printf("%s\n", llama_print_system_info());
}

}  // namespace

int main(int argc, char** argv) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  const std::string command = argc > 1 ? argv[1] : "";
  if (!(command == "tokens" && argc == 5) && !(command == "logits" && argc == 9))
    fail("usage: see the head of this file");
  llama_backend_init();
  llama_model_params params = llama_model_default_params();
  params.vocab_only = command == "tokens";
  llama_model* model = llama_model_load_from_file(argv[2], params);
  if (!model) fail(std::string("cannot load ") + argv[2]);
  if (command == "tokens")
    tokens(model, argv[3], argv[4]);
  else
    logits(model, argv + 3);
  llama_model_free(model);
}

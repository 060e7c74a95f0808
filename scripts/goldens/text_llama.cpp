// Tokenizes with llama.cpp: the reference that src/text is held against. Built and run by text_goldens.py.
//
// usage: text_llama MODEL.gguf < texts > lines
// Input: for each text its byte length in decimal, a newline, the bytes, a newline.
// Output: JSON lines. First the vocabulary: size, bos, eos, add_bos, add_eos, eog ids, and hashes over all tokens'
// pieces and control flags; then, a line a text, [ids without parse_special, ids with], both without added tokens.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

// FNV-1a, 64 bits.
struct Hash {
  std::uint64_t value = 14695981039346656037u;
  void add(const char* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) value = (value ^ static_cast<unsigned char>(data[i])) * 1099511628211u;
  }
};

std::vector<llama_token> tokenize(const llama_vocab* vocab, const std::string& text, bool parse_special) {
  std::vector<llama_token> ids(text.size() + 8);
  int n = llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), ids.data(), static_cast<int>(ids.size()),
                         false, parse_special);
  if (n < 0) {
    ids.resize(static_cast<std::size_t>(-n));
    n = llama_tokenize(vocab, text.data(), static_cast<int>(text.size()), ids.data(), -n, false, parse_special);
  }
  ids.resize(static_cast<std::size_t>(n));
  return ids;
}

template <class List>
void print_list(const List& list) {
  std::printf("[");
  for (std::size_t i = 0; i < list.size(); ++i) std::printf("%s%d", i ? "," : "", list[i]);
  std::printf("]");
}

void print_vocabulary(const llama_vocab* vocab) {
  const int n = llama_vocab_n_tokens(vocab);
  Hash pieces;
  std::string control;
  std::vector<llama_token> eog;
  std::vector<char> buffer(1 << 16);
  for (int id = 0; id < n; ++id) {
    const int size = llama_token_to_piece(vocab, id, buffer.data(), static_cast<int>(buffer.size()), 0, true);
    const char length = static_cast<char>(size & 0xFF);
    pieces.add(&length, 1);
    pieces.add(buffer.data(), static_cast<std::size_t>(size));
    control += llama_vocab_is_control(vocab, id) ? '1' : '0';
    if (llama_vocab_is_eog(vocab, id)) eog.push_back(id);
  }
  Hash flags;
  flags.add(control.data(), control.size());
  std::printf(
      "{\"size\":%d,\"bos\":%d,\"eos\":%d,\"add_bos\":%s,\"add_eos\":%s,\"pieces\":\"%016llx\",\"control\":\"%016llx\","
      "\"eog\":",
      n, llama_vocab_bos(vocab), llama_vocab_eos(vocab), llama_vocab_get_add_bos(vocab) ? "true" : "false",
      llama_vocab_get_add_eos(vocab) ? "true" : "false", static_cast<unsigned long long>(pieces.value),
      static_cast<unsigned long long>(flags.value));
  print_list(eog);
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  llama_model* model = llama_model_load_from_file(argv[1], params);
  if (model == nullptr) return 1;
  const llama_vocab* vocab = llama_model_get_vocab(model);
  print_vocabulary(vocab);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string text(std::stoul(line), '\0');
    std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
    std::cin.get();
    std::printf("[");
    print_list(tokenize(vocab, text, false));
    std::printf(",");
    print_list(tokenize(vocab, text, true));
    std::printf("]\n");
  }
  llama_model_free(model);
}

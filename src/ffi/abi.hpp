// The C ABI of rust/src, as declared there. Only src/ffi/*.cpp include this.
// Every function returns null, or an error text that kv_error_free() takes back.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct KvSlice {
  const std::uint8_t* data;
  std::size_t size;
};

struct KvBuffer {
  std::uint8_t* data;
  std::size_t size;
  std::size_t capacity;
};

struct KvIds {
  std::uint32_t* data;
  std::size_t size;
  std::size_t capacity;
};

struct KvMessage {
  KvSlice role;
  KvSlice content;
};

struct KvBpe;
struct KvTemplate;

void kv_error_free(char* error);
void kv_buffer_free(KvBuffer buffer);
void kv_ids_free(KvIds ids);
char* kv_test_panic();

char* kv_bpe_new(const KvSlice* tokens, std::size_t token_count, const KvSlice* merges, std::size_t merge_count,
                 KvSlice pre, bool whole_words, KvBpe** out);
char* kv_bpe_encode(const KvBpe* bpe, KvSlice text, KvIds* out);
void kv_bpe_free(KvBpe* bpe);

char* kv_template_new(KvSlice source, KvTemplate** out);
char* kv_template_render(const KvTemplate* source, const KvMessage* messages, std::size_t message_count,
                         KvSlice bos_token, KvSlice eos_token, bool add_generation_prompt, std::size_t limit,
                         KvBuffer* out);
void kv_template_free(KvTemplate* source);

}  // extern "C"

#include "ffi/bpe.hpp"

#include <algorithm>
#include <array>

#include "ffi/call.hpp"

namespace kvasir::ffi {

namespace {

std::vector<KvSlice> slices(std::span<const std::string_view> texts) {
  std::vector<KvSlice> out(texts.size());
  std::transform(texts.begin(), texts.end(), out.begin(), slice);
  return out;
}

}  // namespace

void Bpe::Free::operator()(KvBpe* bpe) const { kv_bpe_free(bpe); }

std::span<const std::string_view> Bpe::pre_tokenizers() {
  static constexpr std::array<std::string_view, 6> kNames = {"default",   "deepseek-llm", "gpt-2",
                                                             "llama-bpe", "qwen2",        "smollm"};
  return kNames;
}

Result<Bpe> Bpe::create(std::span<const std::string_view> tokens, std::span<const std::string_view> merges,
                        std::string_view pre, bool whole_words) {
  const std::vector<KvSlice> token_slices = slices(tokens), merge_slices = slices(merges);
  KvBpe* bpe = nullptr;
  KV_TRY(status(kv_bpe_new(token_slices.data(), token_slices.size(), merge_slices.data(), merge_slices.size(),
                           slice(pre), whole_words, &bpe),
                ErrorCode::bad_input));
  return Bpe(bpe);
}

Result<std::vector<TokenId>> Bpe::encode(std::string_view text) const {
  KvIds ids{};
  KV_TRY(status(kv_bpe_encode(bpe_.get(), slice(text), &ids), ErrorCode::bad_input));
  std::vector<TokenId> out(ids.data, ids.data + ids.size);
  kv_ids_free(ids);
  return out;
}

}  // namespace kvasir::ffi

// The rows behind known_models.hpp, as scripts/make-known-models writes them.
// Thread rule: constants.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "artifact/recurrent.hpp"

namespace kvasir::artifact {

// What an attention layer keeps; 0 = the model has no such layer.
struct KnownRows {
  std::uint32_t kv_heads = 0, k_dim = 0, v_dim = 0;
};

struct KnownModel {
  std::string_view name = {}, family = {};
  std::uint32_t layers = 0;
  // A letter a layer, over and over: f full, w window, c chunk, l latent, r recurrent, n no memory; of latents with an index or a
  // window: W window alone, i and j merged by merged[0] and merged[1].
  std::string_view pattern = {};
  std::uint32_t width = 0, heads = 0, vocabulary = 0, context = 0;
  KnownRows full = {}, windowed = {};         // windowed: w and c
  std::uint32_t window = 0;
  std::uint32_t latent = 0;         // elements of a latent row with its rope part
  std::uint32_t query_rank = 0, nope_dim = 0, rope_dim = 0, value_dim = 0;
  std::uint32_t index_dim = 0;      // of l and i
  std::uint32_t merged[2] = {1, 1};
  Recurrent recurrent = {};
  std::uint32_t state_bytes = 0;    // 0 = the mixer's default
  bool tied_head = false;
  std::uint64_t parameters = 0, active_parameters = 0;   // 0 = unknown
  std::string_view unverified = {};      // fields whose source was not read, between ';'
};

std::span<const KnownModel> known_model_rows();

}  // namespace kvasir::artifact

// The description table: what each architecture does with the plain decoder (norm, attention, norm, gated feed-forward).
// A new one of the same family is a new row (docs/add-an-architecture.md). What varies by file and not by architecture
// (windows, ropes, scales) is in artifact::ModelGeometry. Pure data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kvasir::model {

// Where the norms of attention and feed-forward stand. before: on what they read (attn_norm, ffn_norm); after: on what they
// add to the residual (post_attention_norm, post_ffw_norm); both.
enum class Norms : std::uint8_t { before, after, both };

// Norms of queries and keys (attn_q_norm, attn_k_norm), before they turn. head: one of head_dim for every head; width: one over
// all heads together.
enum class QkNorm : std::uint8_t { none, head, width };

// Of the gated feed-forward.
enum class Activation : std::uint8_t { silu, gelu };

struct Architecture {
  std::string_view name;         // general.architecture in the file
  bool qkv_bias = false;         // attn_q.bias, attn_k.bias, attn_v.bias
  bool output_bias = false;      // attn_output.bias
  QkNorm qk_norm = QkNorm::none;
  Norms norms = Norms::before;
  std::string_view feed_forward_norm = "ffn_norm";   // name of the norm before the feed-forward
  Activation activation = Activation::silu;
  bool fused = false;            // attn_qkv: queries, keys and values in one tensor; ffn_up: gate and up in one
  bool sinks = false;            // attn_sinks.weight: a score more for each query head
};

// All that have a forward pass.
std::span<const Architecture> architecture_table();

// nullptr if there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace kvasir::model

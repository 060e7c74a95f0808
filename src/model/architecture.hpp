// The description table: what each architecture adds to the plain decoder (norm, attention, norm, gated feed-forward).
// A new one of the same family is a new row. Pure data; any thread.
#pragma once

#include <span>
#include <string_view>

namespace kvasir::model {

struct Architecture {
  std::string_view name;    // general.architecture in the file
  bool qkv_bias = false;    // attn_q.bias, attn_k.bias, attn_v.bias
  bool qk_norm = false;     // attn_q_norm.weight, attn_k_norm.weight: one norm of head_dim for every head
};

// All that have a forward pass.
std::span<const Architecture> architecture_table();

// nullptr if there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace kvasir::model

// "--set key=value": one field of a shape by hand, for what-ifs and for fields that a source gets wrong.
// Thread rule: one thread a shape.
// Errors: bad_input naming key, value and what is valid; an unknown key names the nearest. The shape is unchanged then.
//
//   layers              1 to 65,536; the list of layers is cut, or goes on from its start
//   width, heads, vocabulary, context
//   kv_heads            of every layer that keeps K and V
//   head_dim            k_dim and v_dim of those
//   k_dim, v_dim        of those; k_dim of latents too, with their rope part
//   index_dim           of every layer that keeps rows
//   window              tokens, the current one included: of the layers that have a window, or of all that keep K and V if
//                       none has; 0 takes it away
//   state_elements, state_bytes             of every recurrent layer
//   feed_forward        of every layer that has a dense block; of all if none has
//   experts             of every layer that has experts; of all if none has
//   shared_experts, expert_width            of every layer that has experts
//   experts_per_token
//   gated, tied_head    true or false
//   parameters, active_parameters           a whole number, or one with K, M, B or T (10^3 to 10^12): 8.03B
//   weight_bits         above 0 to 64
//
// A value that a field has already changes nothing. A key that changes how many weights there are counts them anew where the
// shape suffices (parameter_count.hpp), unless `parameters` was set by hand. Where it does not, published numbers stay if the
// key is of K and V alone, and become unknown otherwise. check_shape() says whether the keys together make sense.
#pragma once

#include <string_view>
#include <vector>

#include "artifact/model_shape.hpp"
#include "base/result.hpp"

namespace kvasir::artifact {

Status override_field(ModelShape& shape, std::string_view key, std::string_view value);

std::vector<std::string_view> override_keys();

}  // namespace kvasir::artifact

// What a model_type implies and its config.json leaves out.
// Thread rule: pure functions over a constant table; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::artifact {

struct Family {
  std::string_view name;            // model_type without "_text"
  bool gated = true;                // feed-forward of three matrices
  bool tied_head = false;           // where tie_word_embeddings is absent
  std::uint32_t window_period = 0;  // of a window without a list of layers: every n-th layer is full; 0 = all have it
};

// `name` may view the argument.
// A family that is not in the table is a gated transformer with a head of its own: never fewer weights than there are.
Family family_of(std::string_view model_type);

// The model_types whose config.json is read here, sorted; and whether one is among them, with or without "_text".
std::vector<std::string> known_families();
bool is_known_family(std::string_view model_type);

}  // namespace kvasir::artifact

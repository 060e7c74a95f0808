// How far back a layer looks: the one place that says what a window counts.
// Thread rule: a value; any thread.
// Convention: a window of W is W keys, the query's own among them: a query at position p sees p - W + 1 .. p. (The same as
// `sliding_window` of Hugging Face configs and llama.cpp's n_swa.) A chunk of W cuts the positions at multiples of W: a
// query sees its own chunk, up to itself.
#pragma once

#include <cstdint>

namespace kvasir::format {

struct Reach {
  std::uint32_t window = 0;   // keys; 0 = all of history
  bool chunked = false;

  // The first position that a query at `position` sees. Never falls as `position` grows: what one query has left behind, no
  // later one looks at.
  constexpr std::uint32_t first_key(std::uint32_t position) const {
    if (window == 0) return 0;
    if (chunked) return position - position % window;
    return position < window ? 0 : position - window + 1;
  }
  bool operator==(const Reach&) const = default;
};

}  // namespace kvasir::format

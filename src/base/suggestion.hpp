// Names as people write them, and "did you mean": the valid word nearest to a mistyped one. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir {

// Lower case, letters and digits alone, so that case and punctuation do not count; a plus is a word ("Command-R+" is not
// "Command-R").
std::string plain_name(std::string_view name);

// Fewest single-character insertions, deletions, replacements and swaps of neighbours that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate with the smallest distance, of equals the first; empty if there are none. A candidate that begins with
// the word counts as near however long it is ("--temp" means "--temperature").
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// As many as `count` candidates, nearest first; of equals in the order given.
std::vector<std::string> nearest_few(std::string_view word, const std::vector<std::string>& candidates, std::size_t count);

}  // namespace kvasir

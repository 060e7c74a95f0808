#include "base/suggestion.hpp"

#include <algorithm>
#include <utility>

namespace kvasir {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // distance[i][j]: of the first i characters of a and the first j of b (optimal string alignment).
  std::vector<std::vector<std::size_t>> distance(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      const std::size_t replace = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({replace, distance[i - 1][j] + 1, distance[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if (c == '+') out += "plus";
  }
  return out;
}

std::vector<std::string> nearest_few(std::string_view word, const std::vector<std::string>& candidates,
                                     std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // distance, place in the list
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const bool begun = word.size() > 2 && candidates[i].starts_with(word);
    order.emplace_back(begun ? 1 : edit_distance(word, candidates[i]), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> few;
  for (std::size_t i = 0; i < order.size() && i < count; ++i) few.push_back(candidates[order[i].second]);
  return few;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::vector<std::string> first = nearest_few(word, candidates, 1);
  return first.empty() ? std::string() : first.front();
}

}  // namespace kvasir

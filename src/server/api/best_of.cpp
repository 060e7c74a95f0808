#include "server/api/best_of.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace kvasir::server::api {

BestOf::BestOf(std::size_t prompts, std::uint32_t samples, std::uint32_t returned)
    : samples_(samples), returned_(returned), noted_(prompts * samples), answers_(prompts * samples) {}

void BestOf::note(const ChoiceEvent& event) {
  if (event.token < 0) return;
  Sample& sample = noted_[event.index];
  sample.sum += static_cast<double>(event.logprob);
  ++sample.tokens;
}

void BestOf::decide() {
  std::vector<std::uint32_t> order(samples_);
  for (std::uint32_t first = 0; first < noted_.size(); first += samples_) {
    std::iota(order.begin(), order.end(), first);
    std::ranges::stable_sort(order, std::greater<>(), [this](std::uint32_t sample) { return noted_[sample].mean(); });
    for (std::uint32_t place = 0; place < samples_; ++place) {
      if (place < returned_)
        answers_[order[place]] = first / samples_ * returned_ + place;
      else
        left_out_ += noted_[order[place]].tokens;
    }
  }
}

}  // namespace kvasir::server::api

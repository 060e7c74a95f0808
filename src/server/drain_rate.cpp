#include "server/drain_rate.hpp"

#include <algorithm>
#include <cmath>

namespace kvasir::server {

void DrainRate::begin(std::uint64_t now_ns) {
  began_ns_ = now_ns;
  count_ = 0;
}

void DrainRate::depart(std::uint64_t now_ns) { at_ns_[count_++ % kWindow] = now_ns; }

std::uint32_t DrainRate::seconds_to_serve(std::uint32_t queued, std::uint64_t now_ns) const {
  // With a full ring its oldest departure opens the window and is not counted in it.
  const bool full = count_ > kWindow;
  const std::uint64_t from = full ? at_ns_[count_ % kWindow] : began_ns_;
  const std::uint64_t departures = full ? kWindow - 1 : std::max<std::uint64_t>(count_, 1);
  const auto elapsed_ns = static_cast<double>(now_ns > from ? now_ns - from : 0);
  const double wait_s = std::ceil(elapsed_ns * queued / static_cast<double>(departures) / 1e9);
  return static_cast<std::uint32_t>(
      std::clamp(wait_s, static_cast<double>(kMinRetryAfter_s), static_cast<double>(kMaxRetryAfter_s)));
}

}  // namespace kvasir::server

#include "server/app/load_progress.hpp"

#include <algorithm>
#include <utility>

#include "platform/clock.hpp"
#include "platform/memory.hpp"

namespace kvasir::server {
namespace {

constexpr double kAlmost = 0.99;  // the end is known when it is there, not before

std::uint64_t resident_now() {
  const auto bytes = platform::process_resident_bytes();
  return bytes.ok() ? *bytes : 0;
}

}  // namespace

LoadProgress::LoadProgress() : began_ns_(platform::monotonic_ns()) {}

void LoadProgress::stage(std::string name, std::uint64_t expected_bytes) {
  const std::uint64_t resident = resident_now();
  const std::scoped_lock lock(mutex_);
  stage_ = std::move(name);
  if (expected_bytes == 0) return;
  expected_bytes_ = expected_bytes;
  resident_before_ = resident;
}

LoadProgress::Report LoadProgress::report() const {
  const std::uint64_t resident = resident_now();
  const std::scoped_lock lock(mutex_);
  Report out{stage_, platform::seconds_between(began_ns_, platform::monotonic_ns()), 0};
  if (expected_bytes_ > 0 && resident > resident_before_) {
    const double share = static_cast<double>(resident - resident_before_) / static_cast<double>(expected_bytes_);
    out.ratio = std::min(share, kAlmost);
  }
  return out;
}

}  // namespace kvasir::server

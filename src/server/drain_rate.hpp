// How fast a queue moves, from the moments at which requests left it: what a Retry-After header is made of.
// Only time in which somebody waited counts, so an idle night does not look like a slow server.
// Thread rule: one owner. Time comes as an argument. No allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace kvasir::server {

inline constexpr std::uint32_t kMinRetryAfter_s = 1;
inline constexpr std::uint32_t kMaxRetryAfter_s = 120;  // clients stop retrying altogether beyond

class DrainRate {
 public:
  // The queue, empty until now, has somebody / has nobody any more.
  void begin(std::uint64_t now_ns);
  void empty() { count_ = 0; }
  // One left it.
  void depart(std::uint64_t now_ns);

  // Seconds until a queue of so many is served at the rate measured, rounded up, within the bounds. With no departure
  // yet the rate is at most one in the time waited so far.
  std::uint32_t seconds_to_serve(std::uint32_t queued, std::uint64_t now_ns) const;

 private:
  static constexpr std::size_t kWindow = 32;  // departures remembered

  std::uint64_t began_ns_ = 0;
  std::array<std::uint64_t, kWindow> at_ns_{};  // a ring
  std::uint64_t count_ = 0;                     // departures since began_ns_
};

}  // namespace kvasir::server

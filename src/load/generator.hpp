// The open-loop load generator. Arrivals come from the plan, never from the server: a request is sent when it is due
// though all before it may still be unanswered, so a stall of the server is felt by every request that would have come
// during it (no coordinated omission). --max-concurrency can hold requests back; they keep their scheduled time.
// Thread rule: one thread; it sleeps in the transport.
// Source: Tene, How NOT to measure latency, 2013 (coordinated omission).
#pragma once

#include <cstdint>
#include <functional>

#include "load/record.hpp"
#include "load/transport.hpp"
#include "load/workload.hpp"

namespace kvasir::load {

struct GeneratorOptions {
  std::uint32_t max_concurrency = 0;                        // 0: no limit
  std::function<void(std::size_t ended)> on_progress = {};  // now and then, and at the end; may be empty
  std::function<bool()> stop = {};                          // true: cancel what runs and return; may be empty
};

// Runs the whole plan. Bodies are made ahead of their time. A turn whose predecessor failed is not sent.
RunRecord generate(const Workload& workload, Transport& transport, const GeneratorOptions& options);

}  // namespace kvasir::load

// The part of `kvasir plan` about traffic: many lengths in place of one.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "plan/capacity_plan.hpp"
#include "plan/length_mix.hpp"
#include "plan/occupancy.hpp"
#include "plan/reservation.hpp"
#include "report/json.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct MixFlags {
  std::string lengths;      // empty: no mix
  double request_rate = 0;  // 0: a trace's own arrivals
  double prefill_speed = 10'000, itl_ms = 30;
  std::uint64_t seed = 1;
};

// flags must outlive the parse.
void add_mix_flags(CLI::App& app, MixFlags& flags);

struct MixAnswer {
  std::size_t sequences = 0;
  bool apart = false;
  plan::MixSummary summary;
  std::uint64_t allowed = 0;                         // tokens of the longest sequence allowed
  double payload_tokens = 0, allocated_tokens = 0;   // of a sequence, on average
  std::uint64_t kv_bytes = 0;                        // of the requests, expected
  std::uint64_t kv_bytes_guaranteed = 0;             // what 99 of 100 draws of the requests do not exceed
  std::uint64_t mean_times_count_bytes = 0;          // what the mean length for each would take
  double longest_times_count_bytes = 0;              // what reserving the longest allowed for each would take
  std::optional<std::uint64_t> fit, fit_guaranteed;  // sequences that the memory holds, where one is given
  std::vector<plan::Reservation> reservations;
  std::optional<plan::Occupancy> occupancy;  // where there are arrivals
  std::vector<std::string> warnings;
};

// Makes input a plan for the mix: its longest allowed length and what its requests hold. length, memory: as asked, 0 if
// not. Errors: usage for a mix that is not well-formed or longer than `length`; those of the trace; for a size that
// overflows.
Result<MixAnswer> answer_mix(const MixFlags& flags, std::uint64_t length, std::uint64_t memory, plan::PlanInput& input);

// The keys "mix", "reservation" and "occupancy"; null without a mix.
void add_mix_json(const MixFlags& flags, const std::optional<MixAnswer>& answer, report::Json& json);
void print_mix(const MixFlags& flags, const MixAnswer& answer, std::ostream& out);

}  // namespace kvasir::cli

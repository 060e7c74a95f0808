#include <cmath>

#include "cli/plan_mix.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

Json percentiles(const plan::TimePercentiles& over_time) {
  return {{"mean", over_time.mean},
          {"p50", over_time.p50},
          {"p95", over_time.p95},
          {"p99", over_time.p99},
          {"max", over_time.max}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json mix_json(const MixFlags& flags, const MixAnswer& answer) {
  const plan::MixSummary& s = answer.summary;
  return {{"lengths", flags.lengths},
          {"sequences", answer.sequences},
          {"prompt_and_output", answer.apart},
          {"mean_length", s.mean},
          {"mean_prompt", answer.apart ? Json(s.mean_prompt) : Json(nullptr)},
          {"mean_output", answer.apart ? Json(s.mean_output) : Json(nullptr)},
          {"p50", s.p50},
          {"p90", s.p90},
          {"p95", s.p95},
          {"p99", s.p99},
          {"max", s.longest},
          {"allowed_length", answer.allowed},
          {"payload_tokens", answer.payload_tokens},
          {"allocated_tokens", answer.allocated_tokens},
          {"kv_bytes_p99", answer.kv_bytes_guaranteed},
          {"kv_bytes_of_mean", answer.mean_times_count_bytes},
          {"sequences_that_fit", or_null(answer.fit)},
          {"sequences_that_fit_p99", or_null(answer.fit_guaranteed)},
          {"seed", flags.seed}};
}

Json reservation_json(const plan::Reservation& one) {
  return {{"policy", plan::to_string(one.policy)}, {"reserved_bytes", std::round(one.reserved_bytes)},
          {"used_share", or_null(one.used_share)}, {"unfilled_share", or_null(one.unfilled_share)},
          {"waste_share", one.waste_share},        {"end_waste_share", one.end_waste_share},
          {"concurrency", one.concurrency}};
}

Json occupancy_json(const MixFlags& flags, const plan::Occupancy& held) {
  return {{"arrivals", held.arrivals},
          {"seconds", held.seconds},
          {"request_rate", flags.request_rate > 0 ? Json(flags.request_rate) : Json(nullptr)},
          {"prefill_speed", flags.prefill_speed},
          {"itl_ms", flags.itl_ms},
          {"sequences", percentiles(held.sequences)},
          {"tokens", percentiles(held.tokens)},
          {"blocks", percentiles(held.blocks)},
          {"bytes", percentiles(held.bytes)}};
}

}  // namespace

void add_mix_json(const MixFlags& flags, const std::optional<MixAnswer>& answer, Json& json) {
  json["mix"] = answer ? mix_json(flags, *answer) : Json(nullptr);
  json["reservation"] = answer ? Json::array() : Json(nullptr);
  if (answer) {
    for (const plan::Reservation& one : answer->reservations) json["reservation"].push_back(reservation_json(one));
  }
  json["occupancy"] = answer && answer->occupancy ? occupancy_json(flags, *answer->occupancy) : Json(nullptr);
}

}  // namespace kvasir::cli

#include "cli/plan_mix.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/units.hpp"
#include "cli/option_values.hpp"
#include "plan/mix_capacity.hpp"
#include "report/numbers.hpp"
#include "trace/reader.hpp"

namespace kvasir::cli {
namespace {

constexpr double kWorthAWord = 0.02;  // of a difference between mean and sum
constexpr double kWideTail = 1.1, kLongReservation = 1.5;

bool is_file(const std::string& text) {
  std::error_code ignored;
  return text.find('/') != std::string::npos || text.ends_with(".csv") || text.ends_with(".jsonl") ||
         std::filesystem::exists(text, ignored);
}

Result<plan::LengthMix> read_mix(const MixFlags& flags) {
  if (is_file(flags.lengths)) {
    KV_ASSIGN(const trace::Trace trace, trace::read_trace_file(flags.lengths, {.limit = plan::kMaxMixLengths + 1}));
    return plan::mix_of(trace);
  }
  Result<plan::LengthMix> mix = plan::parse_mix(flags.lengths);
  if (mix.ok()) return mix;
  return Error{ErrorCode::usage, "--lengths: " + mix.error().message};
}

Result<std::uint64_t> longest_allowed(const plan::LengthMix& mix, std::uint64_t length, std::uint64_t context) {
  const std::uint64_t longest = mix.longest();
  if (length == 0) return std::max<std::uint64_t>(longest, context);
  if (longest <= length) return length;
  return Error{ErrorCode::usage, fmt::format("--length: {} is shorter than the longest of --lengths, valid: {} or more",
                                             length, longest)};
}

// What was asked for by a rate is an error where it cannot be had; of a trace it is said and left out.
Result<std::optional<plan::Occupancy>> occupancy_of(const MixFlags& flags, const plan::LengthMix& mix,
                                                    const plan::KvGroups& kv, std::uint32_t block_tokens,
                                                    const plan::ServiceModel& service,
                                                    std::vector<std::string>& warnings) {
  std::optional<plan::Occupancy> none;
  if (flags.request_rate > 0 && !mix.apart)
    return Error{ErrorCode::usage,
                 "--request-rate: the time that a sequence stays needs prompt and output apart, valid: with --lengths "
                 "as 400+112:40, or a trace"};
  if (flags.request_rate == 0 && mix.arrivals_s.empty()) return none;
  Result<plan::ArrivalPlan> arrivals = flags.request_rate > 0
                                           ? plan::poisson_arrivals(mix, flags.request_rate, service, flags.seed)
                                           : plan::recorded_arrivals(mix);
  Result<plan::Occupancy> held = arrivals.ok() ? plan::simulate_occupancy(*arrivals, kv, block_tokens, service)
                                               : Result<plan::Occupancy>(arrivals.error());
  if (held.ok()) return std::optional(*std::move(held));
  if (flags.request_rate > 0) return Error{ErrorCode::usage, "--request-rate: " + held.error().message};
  warnings.push_back("what is held over time is not told: " + held.error().message);
  return none;
}

void add_warnings(const plan::PlanInput& input, MixAnswer& answer) {
  const auto sum = static_cast<double>(answer.kv_bytes), naive = static_cast<double>(answer.mean_times_count_bytes);
  if (sum == 0) return;
  const double longest = answer.longest_times_count_bytes / sum;
  if (longest >= kLongReservation) {
    answer.warnings.push_back(fmt::format(
        "reserving the longest allowed length, {} tokens, for each sequence takes {:.1f} times what the mix takes",
        answer.allowed, longest));
  }
  if (std::abs(naive - sum) > kWorthAWord * sum) {
    answer.warnings.push_back(
        fmt::format("mean length x sequences gives {}, {:.1f} % {} than the sum over the lengths, {}",
                    format_bytes(answer.mean_times_count_bytes), 100 * std::abs(naive - sum) / sum,
                    naive < sum ? "less" : "more", format_bytes(answer.kv_bytes)));
  }
  const double tail = static_cast<double>(answer.kv_bytes_guaranteed) / sum;
  if (tail >= kWideTail) {
    answer.warnings.push_back(
        fmt::format("the mean hides the tail: one draw in 100 of {} takes over {}, {:.1f} times the mean; the "
                    "longest in 100 sequences has {} tokens or more",
                    report::format_counted(input.requests, "sequence"),
                    format_bytes(answer.kv_bytes_guaranteed), tail, answer.summary.p99));
  }
}

// Of the requests: sums, and what shortcuts would give.
Status add_sums(const plan::KvGroups& kv, plan::MixCapacity& capacity, plan::PlanInput& input, MixAnswer& answer) {
  KV_ASSIGN(input.held, capacity.expected(input.requests));
  KV_ASSIGN(const plan::HeldRows guaranteed, capacity.guaranteed(input.requests));
  const auto bytes_of = [&kv](const plan::HeldRows& held) -> Result<std::uint64_t> {
    std::uint64_t sum = 0;
    for (std::size_t g = 0; g < kv.groups.size(); ++g) {
      KV_ASSIGN(const std::uint64_t bytes, checked_mul(held.blocks[g], kv.groups[g].layout.block_bytes()));
      KV_ASSIGN(sum, checked_add(sum, bytes));
    }
    return sum;
  };
  KV_ASSIGN(answer.kv_bytes, bytes_of(*input.held));
  KV_ASSIGN(answer.kv_bytes_guaranteed, bytes_of(guaranteed));
  KV_ASSIGN(const std::uint64_t of_mean,
            kv.payload_bytes(static_cast<std::uint64_t>(std::llround(answer.summary.mean))));
  KV_ASSIGN(answer.mean_times_count_bytes, checked_mul(of_mean, input.requests));
  KV_ASSIGN(const std::uint64_t of_longest, kv.payload_bytes(answer.allowed));
  answer.longest_times_count_bytes = static_cast<double>(of_longest) * static_cast<double>(input.requests);
  return ok_status();
}

}  // namespace

void add_mix_flags(CLI::App& app, MixFlags& flags) {
  CLI::Option* lengths = app.add_option("--lengths", flags.lengths,
                                        "Lengths of the sequences, in place of one for all: a trace (kvasir, Mooncake, "
                                        "Azure or Vidur form); LENGTH:WEIGHT or PROMPT+OUTPUT:WEIGHT, "
                                        "as 400+112:40,1500+548:60; or percentiles, as "
                                        "p50=800,p90=2000,p99=8000,max=16000. --length is then the longest allowed")
                             ->check(not_empty())
                             ->type_name("MIX|FILE");
  app.add_option("--request-rate", flags.request_rate,
                 "Sequences that begin a second, as a Poisson process, to see what they hold over time (default: a "
                 "trace's own arrivals)")
      ->check(number(1e-6, 1e6))
      ->needs(lengths)
      ->type_name("N");
  app.add_option("--prefill-speed", flags.prefill_speed,
                 "Prompt tokens a second of one sequence, for what is held over time (default 10000)")
      ->check(number(1, 1e9))
      ->needs(lengths)
      ->type_name("N");
  app.add_option("--itl", flags.itl_ms,
                 "Milliseconds from a token to the next, for what is held over time (default 30)")
      ->check(number(1e-3, 1e6))
      ->needs(lengths)
      ->type_name("MS");
  app.add_option("--seed", flags.seed, "Seed of the random draws of lengths and arrivals (default 1)")
      ->check(whole_number(0, ~std::uint64_t{0}))
      ->needs(lengths)
      ->type_name("N");
}

Result<MixAnswer> answer_mix(const MixFlags& flags, std::uint64_t length, std::uint64_t memory,
                             plan::PlanInput& input) {
  KV_ASSIGN(const plan::LengthMix mix, read_mix(flags));
  MixAnswer out;
  KV_ASSIGN(out.allowed, longest_allowed(mix, length, input.shape.context));
  input.length = out.allowed;
  out.sequences = mix.lengths.size();
  out.apart = mix.apart;
  out.summary = plan::summarize(mix);
  KV_ASSIGN(const plan::KvGroups kv, plan::kv_groups(input.shape, input.kv));
  KV_ASSIGN(plan::MixCapacity capacity, plan::MixCapacity::create(mix, kv, flags.seed));
  out.payload_tokens = out.summary.mean;
  out.allocated_tokens = capacity.allocated_tokens();
  KV_TRY(add_sums(kv, capacity, input, out));
  if (memory > 0) {
    KV_ASSIGN(out.fit, plan::most_expected(input, capacity, memory));
    KV_ASSIGN(out.fit_guaranteed, plan::most_guaranteed(input, capacity, memory));
  }
  const plan::ServiceModel service{flags.prefill_speed, flags.itl_ms / 1000};
  KV_ASSIGN(out.reservations, plan::compare_reservations(mix, kv, out.allowed, service));
  KV_ASSIGN(out.occupancy, occupancy_of(flags, mix, kv, input.kv.block_tokens, service, out.warnings));
  add_warnings(input, out);
  return out;
}

}  // namespace kvasir::cli

#include <fmt/format.h>

#include <cmath>
#include <ostream>

#include "base/units.hpp"
#include "cli/plan_mix.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr std::size_t kShownLengths = 80;

std::string count(double value) { return report::format_count(static_cast<std::uint64_t>(std::llround(value))); }
std::string size(double bytes) { return format_bytes(static_cast<std::uint64_t>(std::llround(bytes))); }
std::string percent(const std::optional<double>& share) { return share ? fmt::format("{:.1f} %", 100 * *share) : "-"; }

const char* in_words(plan::ReservationPolicy policy) {
  switch (policy) {
    case plan::ReservationPolicy::contiguous_max:
      return "contiguous, longest allowed";
    case plan::ReservationPolicy::contiguous_pow2:
      return "contiguous, power of two";
    case plan::ReservationPolicy::contiguous_pow2_output:
      return "contiguous, answer's power of two";
    case plan::ReservationPolicy::contiguous_exact:
      return "contiguous, exact length";
    case plan::ReservationPolicy::paged_claimed:
      return "blocks, all from the beginning";
    case plan::ReservationPolicy::paged:
      return "blocks, as they fill";
  }
  return "?";
}

void print_reservations(const MixAnswer& answer, std::ostream& out) {
  report::Table table({{"reserved", report::Align::left},
                       {"a sequence", report::Align::right},
                       {"in use", report::Align::right},
                       {"to be filled", report::Align::right},
                       {"wasted", report::Align::right},
                       {"at the end", report::Align::right},
                       {"concurrency", report::Align::right}});
  for (const plan::Reservation& one : answer.reservations) {
    table.add_row({in_words(one.policy), size(one.reserved_bytes), percent(one.used_share), percent(one.unfilled_share),
                   percent(one.waste_share), percent(one.end_waste_share), fmt::format("{:.3f}", one.concurrency)});
  }
  out << '\n' << table.render();
}

void print_occupancy(const MixFlags& flags, const plan::Occupancy& held, std::ostream& out) {
  const std::string arrivals =
      flags.request_rate > 0 ? fmt::format("{:g} sequences a second", flags.request_rate) : "Arrivals as recorded";
  out << fmt::format("\n{}, {:g} prompt tokens a second, {:g} ms a token: held over {}, if nothing waits\n", arrivals,
                     flags.prefill_speed, flags.itl_ms, report::format_seconds(held.seconds));
  report::Table table({{"", report::Align::left},
                       {"mean", report::Align::right},
                       {"p50", report::Align::right},
                       {"p95", report::Align::right},
                       {"p99", report::Align::right},
                       {"most", report::Align::right}});
  const auto row = [&table](const char* name, const plan::TimePercentiles& p, std::string (*show)(double)) {
    table.add_row({name, show(p.mean), show(p.p50), show(p.p95), show(p.p99), show(p.max)});
  };
  row("sequences", held.sequences, count);
  row("tokens", held.tokens, count);
  row("blocks", held.blocks, count);
  row("cache", held.bytes, size);
  out << table.render();
}

}  // namespace

void print_mix(const MixFlags& flags, const MixAnswer& answer, std::ostream& out) {
  const plan::MixSummary& s = answer.summary;
  const std::string apart = answer.apart ? fmt::format(" ({} + {})", count(s.mean_prompt), count(s.mean_output)) : "";
  out << fmt::format(
      "\nLengths of {}: mean {}{}, half up to {}, 99 of 100 up to {}, longest {} of {} allowed. A sequence takes "
      "{:.1f} tokens' blocks for {:.1f} tokens.\n",
      report::printable(report::shorten(flags.lengths, kShownLengths)), count(s.mean), apart,
      report::format_count(s.p50), report::format_count(s.p99), report::format_count(s.longest),
      report::format_count(answer.allowed), answer.allocated_tokens, answer.payload_tokens);
  if (answer.fit) {
    out << fmt::format("Of this mix {} sequences would fit on average, {} in 99 of 100 draws.\n",
                       report::format_count(*answer.fit), report::format_count(*answer.fit_guaranteed));
  }
  if (!answer.reservations.empty()) print_reservations(answer, out);
  if (answer.occupancy) print_occupancy(flags, *answer.occupancy, out);
}

}  // namespace kvasir::cli

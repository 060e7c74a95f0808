// A shared arena near its limit wastes under 1 % of it; churn.hpp says what waste is. With KVASIR_SOAK=1 (scripts/soak churn) a
// million steps of each geometry.
#include "tests/cache/churn.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/units.hpp"
#include "tests/support/hybrid_geometries.hpp"

namespace kvasir::cache::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// One line, which scripts/soak puts into its report.
void print(const kvasir::test::NamedGeometry& geometry, const Churn& churn, const ChurnReport& r) {
  const auto percent = [](double share) { return fmt::format("{:.2f} %", 100 * share); };
  fmt::print("report: {}: {}; {} in {} superpages; {} steps, {:.0f} sequences at once; ", geometry.name, geometry.what,
             format_bytes(churn.plan().capacity_bytes), churn.plan().superpages, r.steps, r.sequences);
  fmt::print("the head waits in {} steps, in {} for where blocks lie (in {} until more have moved); ", r.waiting, r.delayed,
             r.unfinished);
  fmt::print("of the arena then: used {}, waste {} (withheld {}, unmovable {}; most in a step {}), holes {}; ", percent(r.used),
             percent(r.waste), percent(r.withheld), percent(r.unmovable), percent(r.most_waste), percent(r.holes));
  fmt::print("{} admitted, {} forked, {} cancelled, {} blocks left behind, {} moved, at most {} in a step\n", r.admitted,
             r.forked, r.cancelled, r.left_behind, r.moved, r.busiest_step);
}

void play(const kvasir::test::NamedGeometry& geometry, std::uint64_t capacity, std::uint32_t longest_prompt,
          std::uint32_t longest_answer) {
  const bool soak = std::getenv("KVASIR_SOAK") != nullptr;
  const std::uint64_t steps = soak ? 1'000'000 : 10'000, between_checks = soak ? 10'000 : 500;
  Churn churn({geometry.geometry, capacity, longest_prompt, longest_answer}, 1);
  for (std::uint64_t step = 1; step <= steps; ++step) {
    churn.step();
    if (step % between_checks == 0) churn.cache().check_invariants();
  }
  const ChurnReport r = churn.report();
  print(geometry, churn, r);
  EXPECT_LT(r.waste, 0.01);
  EXPECT_GT(r.waiting, steps / 2) << "memory is what limits";
  EXPECT_GT(std::min({r.admitted, r.forked, r.cancelled, r.left_behind}), steps / 100) << "every kind of event is played";
}

TEST(Churn, OfGemma3) { play(kvasir::test::gemma_3_270m(), 512 * kMiB, 4096, 1000); }
TEST(Churn, OfGemma3Large) { play(kvasir::test::gemma_3_27b(), 32768 * kMiB, 16384, 1000); }
TEST(Churn, OfGptOss) { play(kvasir::test::gpt_oss(), 4096 * kMiB, 16384, 1000); }
TEST(Churn, OfThreeGroups) { play(kvasir::test::three_groups(), 12288 * kMiB, 16384, 1000); }

// What no moving mends: tails, and of each group a last superpage that is not full.
TEST(Churn, SmallArenasWasteASuperpageOrTwo) {
  for (const std::uint64_t mib : {1536, 3072, 6144}) {
    const auto longest_prompt = static_cast<std::uint32_t>(mib * 4 / 3);
    Churn churn({kvasir::test::three_groups().geometry, mib * kMiB, longest_prompt, 500}, 1);
    for (int step = 0; step < 20'000; ++step) churn.step();
    const ChurnReport r = churn.report();
    const std::string name = fmt::format("three groups in {} MiB", mib);
    print({name, "the same layers", {}}, churn, r);
    EXPECT_LT(r.waste, 0.007 + 2.0 / static_cast<double>(churn.plan().superpages));
  }
}

}  // namespace
}  // namespace kvasir::cache::test

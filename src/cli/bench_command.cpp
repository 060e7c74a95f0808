// kvasir bench: speed of batches beside other engines, and what the cache saves.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <ostream>

#include "cli/bench_cases.hpp"
#include "cli/command.hpp"
#include "cli/effective.hpp"
#include "cli/engine_flags.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "cli/no_cache_bench.hpp"
#include "cli/option_values.hpp"
#include "report/json.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

using report::Json;

struct BenchFlags {
  std::string model;
  std::string cases = "peers";
  std::uint32_t repeat = 2;
  bool no_kv_cache = false;
  std::string lengths = "64,128,256";
  bool json = false;
  EngineFlags engine;
};

double one_decimal(double value) { return std::round(value * 10) / 10; }

int bench_cases(const BenchFlags& flags, const LoadedModel& loaded, const platform::InterruptScope& interrupt, Console& console) {
  Result<std::vector<BenchCase>> cases = parse_bench_cases(flags.cases);
  if (!cases.ok()) return report_error(console, cases.error());
  report::Table table({{"sequences", report::Align::right}, {"prompt", report::Align::right},
                       {"prefill tok/s", report::Align::right}, {"decode tok/s", report::Align::right}});
  for (const BenchCase& shape : *cases) {
    if (!flags.json && console.err_is_terminal) console.err << fmt::format("{} x {} ...\n", shape.sequences, shape.prompt);
    Result<BenchResult> result = run_bench_case(loaded.model, shape, flags.repeat, flags.engine.pool_config(), interrupt);
    if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
    if (!result.ok()) return report_error(console, result.error());
    if (flags.json) {
      Json line;
      line["peer"] = "kvasir";
      line["sequences"] = shape.sequences;
      line["prompt"] = shape.prompt;
      line["prefill_tok_s"] = one_decimal(result->prefill_per_s);
      line["decode_tok_s"] = one_decimal(result->decode_per_s);
      line["effective"] = effective_json(result->effective);
      console.out << report::to_json_line(line) << '\n' << std::flush;
    }
    table.add_row({report::format_count(shape.sequences), report::format_count(shape.prompt),
                   report::format_rate(result->prefill_per_s), report::format_rate(result->decode_per_s)});
  }
  if (!flags.json) console.out << table.render();
  return kExitOk;
}

Json way_json(const WayCount& way, const artifact::ModelGeometry& geometry) {
  return {{"rows", way.rows}, {"pairs", way.pairs},
          {"projection_flops", static_cast<double>(way.rows) * projection_flops_per_row(geometry)},
          {"attention_flops", static_cast<double>(way.pairs) * attention_flops_per_pair(geometry)},
          {"seconds", way.seconds}};
}

// "x 3.97": the growth against the line before; nothing on the first.
std::string growth(double now, double before) { return before > 0 ? fmt::format("x {:.2f}", now / before) : ""; }

void add_way(report::Table& table, std::uint32_t length, const char* name, const WayCount& way, const WayCount& before,
             const artifact::ModelGeometry& geometry) {
  const double rows = static_cast<double>(way.rows), pairs = static_cast<double>(way.pairs);
  table.add_row({report::format_count(length), name, fmt::format("{:.3g}", rows * projection_flops_per_row(geometry)),
                 growth(rows, static_cast<double>(before.rows)), fmt::format("{:.3g}", pairs * attention_flops_per_pair(geometry)),
                 growth(pairs, static_cast<double>(before.pairs)), report::format_seconds(way.seconds), growth(way.seconds, before.seconds)});
}

constexpr const char* kGrowthNote =
    "\nOperations are counted from the steps that ran; they equal the closed forms (else this command fails):\n"
    "                 projections: rows     attention: query-key pairs\n"
    "  with cache     N                     N(N+1)/2\n"
    "  without        N(N+1)/2              N(N+1)(N+2)/6\n"
    "Doubling N multiplies them by 2 and 4 with the cache, by 4 and 8 without. Both ways gave the same tokens.\n";

int bench_no_cache(const BenchFlags& flags, const LoadedModel& loaded, const platform::InterruptScope& interrupt, Console& console) {
  const artifact::ModelGeometry& geometry = loaded.model->geometry();
  report::Table table({{"tokens", report::Align::right}, {"way", report::Align::left}, {"projection op", report::Align::right},
                       {"growth", report::Align::right}, {"attention op", report::Align::right}, {"growth", report::Align::right},
                       {"time", report::Align::right}, {"growth", report::Align::right}});
  NoCacheResult before;
  for (const std::uint32_t length : split_numbers(flags.lengths)) {
    Result<NoCacheResult> result = run_no_cache_bench(loaded.model, length, flags.engine.pool_config(), interrupt);
    if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
    if (!result.ok()) return report_error(console, result.error());
    if (flags.json) {
      Json line;
      line["tokens"] = length;
      line["cached"] = way_json(result->cached, geometry);
      line["uncached"] = way_json(result->uncached, geometry);
      line["closed_form"] = {{"cached", way_json(cached_closed_form(length), geometry)}, {"uncached", way_json(uncached_closed_form(length), geometry)}};
      for (const char* way : {"cached", "uncached"}) line["closed_form"][way].erase("seconds");
      console.out << report::to_json_line(line) << '\n' << std::flush;
    }
    add_way(table, length, "with cache", result->cached, before.cached, geometry);
    add_way(table, length, "without", result->uncached, before.uncached, geometry);
    before = *result;
  }
  if (!flags.json) console.out << table.render() << kGrowthNote;
  return kExitOk;
}

int bench(const BenchFlags& flags, Console& console) {
  const platform::InterruptScope interrupt;
  Result<LoadedModel> loaded = load_model(flags.model, flags.engine);
  if (!loaded.ok()) return report_error(console, loaded.error());
  return flags.no_kv_cache ? bench_no_cache(flags, *loaded, interrupt, console) : bench_cases(flags, *loaded, interrupt, console);
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* app = root.add_subcommand("bench", "Measure prefill and decode speed, or what the cache saves");
  add_model_argument(*app, flags->model);
  CLI::Option* cases = app->add_option("--cases", flags->cases, "peers, or SxP[,SxP...]: S sequences of P prompt tokens (default peers)")
      ->type_name("CASES");
  app->add_option("--repeat", flags->repeat, "Runs of each case; the best counts (default 2)")->check(whole_number(1, 1000))->type_name("N");
  CLI::Option* no_cache = app->add_flag("--no-kv-cache", flags->no_kv_cache,
                                        "Beside the cached way, rerun the whole forward pass for each token; a table of both")->excludes(cases);
  app->add_option("--lengths", flags->lengths, "With --no-kv-cache: numbers of tokens (default 64,128,256)")
      ->check(number_list(1, 65'536))->needs(no_cache)->type_name("N,N");
  app->add_flag("--json", flags->json, "One JSON object a line");
  add_engine_flags(*app, flags->engine);
  return {app, &flags->model, [flags](Console& console) { return bench(*flags, console); }};
}

}  // namespace kvasir::cli

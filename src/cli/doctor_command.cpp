// kvasir doctor: what this machine can do and what would stand in the way, before a server starts.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "artifact/geometry.hpp"
#include "base/units.hpp"
#include "cli/command.hpp"
#include "cli/engine_flags.hpp"
#include "cli/exit_code.hpp"
#include "cli/loading.hpp"
#include "cli/option_values.hpp"
#include "model/footprint.hpp"
#include "platform/clock.hpp"
#include "platform/descriptors.hpp"
#include "platform/isa.hpp"
#include "platform/memory.hpp"
#include "report/json.hpp"
#include "report/table.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::cli {
namespace {

constexpr std::uint64_t kWantedDescriptors = 8192;   // thousands of idle connections, and what a process holds anyway

enum class Verdict { ok, warning, failure };
const char* to_string(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warning ? "warning" : "failure";
}

// One thing looked at: what was found, and what to do where that is not enough.
struct Finding {
  std::string name;
  Verdict verdict = Verdict::ok;
  std::string value;
  std::string advice;
};

Finding failure(std::string name, const Error& error) { return {std::move(name), Verdict::failure, error.message, ""}; }

Finding look_at_processor() {
  std::vector<std::string_view> names;
  for (const platform::Isa isa : platform::available_isas()) names.push_back(platform::to_string(isa));
  const auto chosen = platform::choose_isa(std::getenv("KVASIR_ISA"));
  if (!chosen.ok()) return failure("processor class", chosen.error());
  Finding finding{"processor class", Verdict::ok, fmt::format("{} (this machine has {})", platform::to_string(*chosen), fmt::join(names, ", ")), ""};
  if (*chosen == platform::Isa::scalar) {
    finding.verdict = Verdict::warning;
    finding.advice = "scalar kernels give the same answers, many times slower; AVX2 with FMA and F16C is wanted";
  }
  return finding;
}

Finding look_at_threads() {
  return {"processors", Verdict::ok, fmt::format("{}; --threads takes all of them unless told otherwise", std::thread::hardware_concurrency()), ""};
}

Finding look_at_memory() {
  const auto headroom = platform::read_headroom();
  if (!headroom.ok()) return failure("memory", headroom.error());
  std::string value = format_bytes(headroom->system_available) + " available";
  if (headroom->cgroup_available && *headroom->cgroup_available < headroom->system_available)
    value += fmt::format(", {} left in this control group", format_bytes(*headroom->cgroup_available));
  return {"memory", Verdict::ok, std::move(value), ""};
}

Finding look_at_descriptors() {
  const auto limit = platform::descriptor_limit();
  if (!limit.ok()) return failure("open files", limit.error());
  Finding finding{"open files", Verdict::ok, fmt::format("{} in force, {} possible", limit->soft, limit->hard), ""};
  if (limit->hard < kWantedDescriptors) {
    finding.verdict = Verdict::warning;
    finding.advice = fmt::format("each connection takes one; raise the hard limit to {} (LimitNOFILE=, ulimit -Hn)", kWantedDescriptors);
  }
  return finding;
}

// Nothing tells better whether a file loads.
Finding try_to_load(const artifact::GgufFile& file) {
  const auto options = EngineFlags{}.model_options();
  if (!options.ok()) return failure("loading", options.error());
  const std::uint64_t begin_ns = platform::monotonic_ns();
  const auto model = model::Model::load(file, *options);
  if (!model.ok()) return failure("loading", model.error());
  return {"loading", Verdict::ok, fmt::format("took {:.1f} s", static_cast<double>(platform::monotonic_ns() - begin_ns) / 1e9), ""};
}

// The file's weights beside the memory there is; then what else a server would trip over.
std::vector<Finding> look_at_model(const std::string& path) {
  const auto file = open_model_file(path);
  if (!file.ok()) return {failure("model", file.error())};
  const auto geometry = artifact::ModelGeometry::from_gguf(*file);
  if (!geometry.ok()) return {failure("model", geometry.error())};
  std::vector<Finding> findings;
  const std::vector<std::string> offered = model::Model::architectures();
  const bool runs = std::find(offered.begin(), offered.end(), geometry->architecture) != offered.end();
  findings.push_back({"architecture", runs ? Verdict::ok : Verdict::failure, geometry->architecture,
                      runs ? "" : fmt::format("has no forward pass here; offered are {}", fmt::join(offered, ", "))});
  const std::uint64_t weights = model::weight_footprint(*file, *geometry).total();
  const auto headroom = platform::read_headroom();
  const bool fits = headroom.ok() && weights < headroom->bytes();
  findings.push_back({"weights", fits ? Verdict::ok : Verdict::failure, format_bytes(weights) + " once packed",
                      fits ? "" : "more than the memory that is available"});
  if (fits && runs) findings.push_back(try_to_load(*file));
  const auto tokenizer = text::Tokenizer::from_gguf(*file);
  if (tokenizer.ok()) findings.push_back({"tokenizer", Verdict::ok, "reads", ""});
  else findings.push_back(failure("tokenizer", tokenizer.error()));
  const auto chat = text::ChatTemplate::from_gguf(*file);
  if (chat.ok()) findings.push_back({"chat template", Verdict::ok, "compiles", ""});
  else findings.push_back({"chat template", Verdict::warning, chat.error().message, "/v1/chat/completions needs one; completions do not"});
  return findings;
}

int doctor(const std::string& model, bool json, Console& console) {
  std::vector<Finding> findings = {look_at_processor(), look_at_threads(), look_at_memory(), look_at_descriptors()};
  if (!model.empty()) {
    for (Finding& finding : look_at_model(model)) findings.push_back(std::move(finding));
  }
  bool failed = false;
  report::Json list = report::Json::array();
  report::Table table({{"", report::Align::left}, {"", report::Align::left}, {"", report::Align::left}});
  for (const Finding& f : findings) {
    failed = failed || f.verdict == Verdict::failure;
    list.push_back({{"name", f.name}, {"verdict", to_string(f.verdict)}, {"value", f.value}, {"advice", f.advice}});
    table.add_row({f.name, to_string(f.verdict), f.advice.empty() ? f.value : f.value + ": " + f.advice});
  }
  if (json) console.out << report::to_json_line({{"ok", !failed}, {"findings", std::move(list)}}) << '\n';
  else console.out << table.render();
  return failed ? kExitFailure : kExitOk;
}

}  // namespace

Command add_doctor(CLI::App& root) {
  struct Flags {
    std::string model;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* app = root.add_subcommand("doctor", "Look at this machine, and at a model file, for what would stand in the way of serving");
  app->add_option("MODEL", flags->model, "A GGUF file to look at too")->check(not_empty())->type_name("");
  app->add_flag("--json", flags->json, "One JSON object");
  return {app, nullptr, [flags](Console& console) { return doctor(flags->model, flags->json, console); }};
}

}  // namespace kvasir::cli

#include "cli/record_flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/option_values.hpp"

namespace kvasir::cli {
namespace {

constexpr const char* kGroup = "Record";

CLI::Validator a_file() {
  return CLI::Validator([](std::string& text) -> std::string {
    return text.empty() || text == kRecordToStdout ? "'" + text + "' is no file; valid: the path of a file" : "";
  }, "");
}

}  // namespace

void add_plan_record_flags(CLI::App& command, PlanRecordFlags& flags) {
  CLI::Option* record = command.add_option("--record", flags.record,
                     "Write the artifact record: to FILE, or without one to stdout in place of the plan. A GGUF file is read as a whole, for its hash; a config or a name gives a record without a numeric id")
      ->expected(0, 1)->default_str(kRecordToStdout)->check(not_empty())->type_name("[FILE]")->group(kGroup);
  command.add_option("--compute", flags.compute, "Activations that the record is of: int8 or f32 (default int8)")
      ->check(one_of({"int8", "f32"}))->needs(record)->type_name("KIND")->group(kGroup);
}

void add_launch_flags(CLI::App& command, LaunchFlags& flags) {
  command.add_option("--record", flags.record, "Write the artifact record to FILE: what was launched, with both ids (default: none)")
      ->check(a_file())->type_name("FILE")->group(kGroup);
  command.add_option("--tensor-parallel-size", flags.tensor_parallel_size, "Devices that share the heads: 1, the engine runs on one (default 1)")
      ->check(one_of({"1"}, " (the engine runs on one device)"))->type_name("N")->group(kGroup);
}

model::Compute parse_compute(const std::string& text) { return text == "f32" ? model::Compute::f32 : model::Compute::int8; }

}  // namespace kvasir::cli

// The options about artifact records: of `plan`, and of the commands that launch an engine.
// Thread rule: values; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

inline constexpr const char* kRecordToStdout = "-";

struct PlanRecordFlags {
  std::string record;             // a file, kRecordToStdout, or empty: none asked for
  std::string compute = "int8";
};

struct LaunchFlags {
  std::string record;             // a file, or empty
  std::uint32_t tensor_parallel_size = 1;
};

void add_plan_record_flags(CLI::App& command, PlanRecordFlags& flags);
void add_launch_flags(CLI::App& command, LaunchFlags& flags);

// "int8" or "f32". REQUIRES: checked when parsed.
model::Compute parse_compute(const std::string& text);

}  // namespace kvasir::cli

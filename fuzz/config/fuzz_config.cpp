// Drives the reader of config.json, overrides of its fields and the planner with hostile files.
//
// Input: the text of a config.json; after a zero byte, if there is one, lines of "key=value" for --set. What must hold:
//   - a refusal has a message that names the source;
//   - what is accepted keeps to the shape's invariants, before and after overrides;
//   - a plan's lines add up to its total, and rows never take more than the blocks they lie in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "artifact/config_json.hpp"
#include "artifact/parameter_count.hpp"
#include "artifact/shape_override.hpp"
#include "base/check.hpp"
#include "plan/capacity_plan.hpp"
#include "plan/weights.hpp"

namespace {

using namespace kvasir;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kName = "fuzz.json";
constexpr std::size_t kMaxOverrides = 16;

template <class T>
bool accepted(const Result<T>& result) {
  if (!result.ok()) KV_CHECK(!result.error().message.empty(), "a refusal says why");
  return result.ok();
}

void plan_it(const artifact::ModelShape& shape, format::KvType type, std::uint64_t requests, std::uint64_t length) {
  plan::PlanInput input;
  input.shape = shape;
  input.geometry = plan::engine_geometry(shape);
  auto weights = plan::shape_weights(shape);
  if (!accepted(weights)) return;
  input.weights = *weights;
  input.kv.format = {type, type};
  input.requests = requests;
  input.length = length;
  const auto plan = plan::plan_capacity(input);
  if (!accepted(plan)) return;
  std::uint64_t sum = 0;
  for (const plan::PlanLine& line : plan->lines) sum += line.bytes;
  KV_CHECK(sum == plan->total_bytes, "the lines add up");
  KV_CHECK(plan->kv_payload_bytes <= plan->kv_bytes, "rows lie in their blocks");
}

void override_fields(artifact::ModelShape& shape, std::string_view lines) {
  for (std::size_t i = 0; i < kMaxOverrides && !lines.empty(); ++i) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    accepted(artifact::override_field(shape, line.substr(0, equals), line.substr(equals + 1)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = input.find('\0');
  auto shape = artifact::shape_from_config(input.substr(0, zero), kName);
  if (!accepted(shape)) {
    KV_CHECK(shape.error().message.find(kName) != std::string::npos, "a refusal names the file");
    return 0;
  }
  KV_CHECK(artifact::check_shape(*shape, kName).ok(), "what a reader returns keeps the invariants");
  accepted(artifact::count_parameters(*shape));
  if (zero != std::string_view::npos) override_fields(*shape, input.substr(zero + 1));
  if (!accepted(artifact::check_shape(*shape, "--set"))) return 0;
  plan_it(*shape, format::KvType::f16, 1, std::max(1u, shape->context));
  plan_it(*shape, format::KvType::int4, plan::kMaxRequests, plan::kMaxLength);
  return 0;
}

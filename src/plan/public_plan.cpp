// The public face of the planner: contract types to the planner's and back.
#include "kvasir/plan.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "format/kv_format.hpp"
#include "plan/planned_model.hpp"
#include "plan/warnings.hpp"

namespace kvasir::plan {
namespace {

using api::PlanErrorKind;

constexpr std::uint32_t kMaxThreads = 1024;

api::PlanError public_error(Error error) {
  const auto kind = error.code == ErrorCode::usage         ? PlanErrorKind::usage
                    : error.code == ErrorCode::bad_input   ? PlanErrorKind::bad_input
                    : error.code == ErrorCode::unsupported ? PlanErrorKind::unsupported
                                                           : PlanErrorKind::failed;
  return {kind, std::move(error.message)};
}

// What the command line checks when it parses.
Status in_range(const char* key, std::uint64_t value, std::uint64_t most) {
  if (value >= 1 && value <= most) return ok_status();
  return Error{ErrorCode::usage, fmt::format("{} is {}, valid: 1 to {}", key, value, most)};
}

Result<PlanInput> input_of(const api::PlanRequest& request, PlannedModel model) {
  const auto format = format::parse_kv_format(request.kv_cache_dtype);
  if (!format) {
    return Error{ErrorCode::usage, fmt::format("kv_cache_dtype is '{}', valid: {}, or two of them as int8/f16", request.kv_cache_dtype, format::kv_type_names())};
  }
  KV_TRY(in_range("requests", request.requests, kMaxRequests));
  if (request.length != 0) KV_TRY(in_range("length", request.length, kMaxLength));
  KV_TRY(in_range("max_num_batched_tokens", request.max_num_batched_tokens, kMaxRequests));
  KV_TRY(in_range("threads", request.threads, kMaxThreads));
  PlanInput input;
  input.shape = std::move(model.shape);
  input.geometry = std::move(model.geometry);
  input.weights = std::move(model.weights);
  input.kv = {*format, request.block_size};
  input.requests = request.requests;
  input.length = request.length > 0 ? request.length : input.shape.context;
  input.batched_tokens = request.max_num_batched_tokens;
  input.threads = request.threads;
  return input;
}

Result<api::PlanAnswer> answer(const api::PlanRequest& request) {
  KV_ASSIGN(PlannedModel model, read_planned_model(request.model, request.set));
  std::vector<std::string> warnings = std::move(model.warnings);
  KV_ASSIGN(const PlanInput input, input_of(request, std::move(model)));
  KV_ASSIGN(CapacityPlan plan, plan_capacity(input));
  api::PlanAnswer out;
  out.model = input.shape.name;
  out.family = input.shape.family;
  out.length = input.length;
  for (PlanLine& line : plan.lines) out.lines.push_back({std::move(line.name), line.bytes, std::move(line.how), std::move(line.field)});
  out.weights_bytes = plan.weights_bytes;
  out.kv_bytes = plan.kv_bytes;
  out.kv_payload_bytes = plan.kv_payload_bytes;
  out.kv_bytes_per_token = plan.kv_bytes_per_token;
  out.state_bytes = plan.state_bytes;
  out.total_bytes = plan.total_bytes;
  out.warnings = warnings_of(input, plan);
  out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
  if (request.memory == 0) return out;
  KV_TRY(check_weights_known(input));
  api::PlanFit& fit = out.fit.emplace();
  fit.fits = plan.total_bytes <= request.memory;
  KV_ASSIGN(fit.max_sequences, most_requests(input, request.memory));
  KV_ASSIGN(fit.longest_length, longest_length(input, request.memory));
  return out;
}

}  // namespace
}  // namespace kvasir::plan

namespace kvasir::api {

std::variant<PlanAnswer, PlanError> plan_memory(const PlanRequest& request) {
  try {
    Result<PlanAnswer> answer = plan::answer(request);
    if (answer.ok()) return std::move(answer).value();
    return plan::public_error(std::move(answer).error());
  } catch (const std::bad_alloc&) {
    return PlanError{PlanErrorKind::failed, "out of memory"};
  } catch (const std::exception& error) {   // a foreign library's
    return PlanError{PlanErrorKind::failed, fmt::format("unexpected failure: {}", error.what())};
  }
}

}  // namespace kvasir::api

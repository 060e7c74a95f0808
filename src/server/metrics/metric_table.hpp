// Every metric the server exposes, in one table: the registry, the tests and the reference page read it.
// Names, labels and buckets that begin with "vllm:" are vLLM's own, so that dashboards and routers made for it work
// unchanged. A row whose feature is not there yet reads 0: a dashboard is built once.
// Thread rule: immutable; any thread.
// Source: vLLM 0.33's metrics; llm-d and Gateway API Inference Extension defaults are a subset.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server {

enum class MetricKind { counter, gauge, histogram };

// Which boundaries a histogram has; bucket_bounds() gives them.
enum class Buckets {
  none,
  first_token,    // seconds, 1 ms to 2,560 s
  token,          // seconds, 10 ms to 80 s
  phase,          // seconds, 0.3 to 7,680 s
  tokens,         // 1-2-5 series up to the model's length
  choices,        // 1 to 20
  iteration,      // powers of two, 1 and 8 to 16,384
  residency,      // seconds, 1 ms to 1,800 s
  transfer,       // bytes, 1 MB to 200 MB
  step,           // seconds, 0.1 ms to 5 s
  io,             // seconds, decades from 0.1 ms to 10 s: many series, so few bounds (a scrape stays under 1 ms)
  depth,          // powers of two, 1 to 4,096
};

struct MetricInfo {
  std::string name;
  MetricKind kind;
  std::string help;
  std::vector<std::string> labels;                // beside model_name and engine, which all of them have
  std::vector<std::vector<std::string>> series;   // values of these labels; one empty entry where there are none
  Buckets buckets = Buckets::none;
};

const std::vector<MetricInfo>& metric_table();

// Ascending, without the infinite one. max_model_len bounds Buckets::tokens.
std::vector<double> bucket_bounds(Buckets buckets, std::uint32_t max_model_len);

// What an operator asks for and the expression that answers it. Rates and ratios are left to the query: a precomputed
// one goes stale and reads well without traffic.
struct TelemetryItem {
  std::string item;
  std::string expression;   // PromQL over names of the table
};
const std::vector<TelemetryItem>& telemetry_items();

}  // namespace kvasir::server

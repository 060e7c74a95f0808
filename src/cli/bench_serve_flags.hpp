// The flags of `kvasir bench serve`, named as `vllm bench serve` names them where it has them, and what they resolve
// to. Thread rule: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "client/http_client.hpp"
#include "load/live_transport.hpp"
#include "load/metrics.hpp"
#include "load/workload.hpp"

namespace CLI {
class App;
}

namespace kvasir::cli {

struct BenchServeFlags {
  std::string url;
  std::string model, backend = "openai", endpoint;
  std::vector<std::string> headers;
  std::uint32_t num_prompts = 100;
  std::string request_rate = "inf", burstiness = "1";
  std::uint32_t max_concurrency = 0;
  std::uint32_t input_len = 1024, output_len = 128;
  double range_ratio = 0;
  double prefix_share = 0;
  std::uint32_t prefixes = 1;
  std::uint32_t turns = 1;
  double think_time = 0;
  std::string trace, trace_format = "auto";
  double trace_time_scale = 1, trace_length_scale = 1;
  std::string prompts;  // "tokens", "words", or empty: by the endpoint
  std::string prompt_file;
  double bytes_per_token = 4;
  std::string token_ids = "100,20000";
  bool stop_at_eos = false;
  std::string temperature, extra_body;
  std::string percentile_metrics = "ttft,tpot,itl,e2el", metric_percentiles = "50,90,95,99";
  std::vector<std::string> goodput;
  double ready_check_timeout = 0;
  double timeout = 6 * 3600;
  std::uint64_t seed = 0;
  bool json = false, save_result = false, save_detailed = false;
  std::string result_dir, result_filename, html;
};

void add_bench_serve_flags(CLI::App& app, BenchServeFlags& flags);

// All but the network: what is wrong with the flags together is found before a byte is sent.
struct BenchServePlan {
  client::Address address;
  client::ClientOptions client;
  load::LiveOptions live;     // headers of ours included
  std::string models_target;  // where the server lists its models
  load::MetricOptions metrics;
  std::vector<std::string> metric_names;
  double request_rate = 0, burstiness = 1;  // infinity where "inf" was given
};
Result<BenchServePlan> resolve(const BenchServeFlags& flags);

// The requests, once the model's name is known. Reads the trace and the prompt file.
Result<load::Workload> make_workload(const BenchServeFlags& flags, const BenchServePlan& plan,
                                     const std::string& model);

}  // namespace kvasir::cli

#include "server/metrics/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <thread>

#include "metrics_exposition.hpp"
#include "platform/clock.hpp"
#include "server/metrics/metric_table.hpp"

namespace kvasir::server {
namespace {

using testing::HasSubstr;

MetricsConfig config() {
  return {.model_name = "smol", .max_model_len = 8192, .block_size = 16, .num_gpu_blocks = 512, .num_cpu_blocks = 0,
          .cache_dtype = "f16", .enable_prefix_caching = true, .gpu_memory_utilization = 0.5};
}
std::unique_ptr<Metrics> make() { return Metrics::create(config()).value(); }
Exposition scrape(const Metrics& metrics) { return parse_exposition(metrics.exposition()); }

// The labels beside model_name and engine that a family's series have, "le" left out.
std::set<std::set<std::string>> label_names(const ExposedFamily& family) {
  std::set<std::set<std::string>> sets;
  for (const auto& [name, labels] : family.samples) {
    std::set<std::string> names;
    for (const auto& [label, value] : labels) names.insert(label);
    EXPECT_EQ(names.erase("model_name"), 1u) << name;
    EXPECT_EQ(names.erase("engine"), 1u) << name;
    names.erase("le");
    sets.insert(names);
  }
  return sets;
}

// Written down here a second time, on purpose: the names are a contract with other people's dashboards.
TEST(Metrics, HasVllmsNamesTypesAndLabels) {
  const std::vector<std::tuple<std::string, std::string, std::set<std::string>>> contract = {
      {"vllm:num_requests_running", "gauge", {}},
      {"vllm:num_requests_waiting", "gauge", {}},
      {"vllm:num_requests_waiting_by_reason", "gauge", {"reason"}},
      {"vllm:kv_cache_usage_perc", "gauge", {}},
      {"vllm:cache_config_info", "gauge",
       {"block_size", "num_gpu_blocks", "num_cpu_blocks", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization"}},
      {"vllm:lora_requests_info", "gauge", {"max_lora", "running_lora_adapters", "waiting_lora_adapters"}},
      {"vllm:engine_sleep_state", "gauge", {"sleep_state"}},
      {"vllm:prompt_tokens_total", "counter", {}},
      {"vllm:prompt_tokens_by_source_total", "counter", {"source"}},
      {"vllm:prompt_tokens_cached_total", "counter", {}},
      {"vllm:prompt_tokens_recomputed_total", "counter", {}},
      {"vllm:generation_tokens_total", "counter", {}},
      {"vllm:request_success_total", "counter", {"finished_reason"}},
      {"vllm:prefix_cache_queries_total", "counter", {}},
      {"vllm:prefix_cache_hits_total", "counter", {}},
      {"vllm:external_prefix_cache_queries_total", "counter", {}},
      {"vllm:external_prefix_cache_hits_total", "counter", {}},
      {"vllm:num_preemptions_total", "counter", {}},
      {"vllm:corrupted_requests_total", "counter", {}},
      {"vllm:admission_rejections_total", "counter", {"reason"}},
      {"vllm:mm_cache_queries_total", "counter", {}},
      {"vllm:mm_cache_hits_total", "counter", {}},
      {"vllm:kv_offload_total_bytes_total", "counter", {"transfer_type"}},
      {"vllm:kv_offload_total_time_total", "counter", {"transfer_type"}},
      {"vllm:spec_decode_num_drafts_total", "counter", {}},
      {"vllm:spec_decode_num_draft_tokens_total", "counter", {}},
      {"vllm:spec_decode_num_accepted_tokens_total", "counter", {}},
      {"vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter", {"position"}},
      {"vllm:time_to_first_token_seconds", "histogram", {}},
      {"vllm:inter_token_latency_seconds", "histogram", {}},
      {"vllm:request_time_per_output_token_seconds", "histogram", {}},
      {"vllm:e2e_request_latency_seconds", "histogram", {}},
      {"vllm:request_queue_time_seconds", "histogram", {}},
      {"vllm:request_prefill_time_seconds", "histogram", {}},
      {"vllm:request_decode_time_seconds", "histogram", {}},
      {"vllm:request_inference_time_seconds", "histogram", {}},
      {"vllm:request_prompt_tokens", "histogram", {}},
      {"vllm:request_generation_tokens", "histogram", {}},
      {"vllm:request_max_num_generation_tokens", "histogram", {}},
      {"vllm:request_params_max_tokens", "histogram", {}},
      {"vllm:request_params_n", "histogram", {}},
      {"vllm:request_prefill_kv_computed_tokens", "histogram", {}},
      {"vllm:iteration_tokens_total", "histogram", {}},
      {"vllm:kv_block_lifetime_seconds", "histogram", {}},
      {"vllm:kv_block_idle_before_evict_seconds", "histogram", {}},
      {"vllm:kv_block_reuse_gap_seconds", "histogram", {}},
      {"vllm:kv_offload_size", "histogram", {"transfer_type"}},
  };
  const Exposition exposition = scrape(*make());
  std::size_t of_vllm = 0;
  for (const auto& [name, family] : exposition.families) of_vllm += name.starts_with("vllm:") ? 1 : 0;
  EXPECT_EQ(of_vllm, contract.size());
  for (const auto& [name, type, labels] : contract) {
    const auto it = exposition.families.find(name);
    ASSERT_NE(it, exposition.families.end()) << name;
    EXPECT_EQ(it->second.type, type) << name;
    EXPECT_EQ(label_names(it->second), std::set<std::set<std::string>>{labels}) << name;
  }
  EXPECT_EQ(exposition.value("vllm:cache_config_info",
                             {{"model_name", "smol"}, {"engine", "0"}, {"block_size", "16"}, {"num_gpu_blocks", "512"},
                              {"cache_dtype", "f16"}, {"enable_prefix_caching", "True"}, {"gpu_memory_utilization", "0.5"}}), 1);
}

TEST(Metrics, HasVllmsBuckets) {
  const Exposition exposition = scrape(*make());
  const auto bounds = [&](const std::string& name) {
    std::string joined;
    for (const auto& [sample, labels] : exposition.families.at(name).samples) {
      if (labels.contains("le")) joined += labels.at("le") + " ";
    }
    return joined;
  };
  EXPECT_EQ(bounds("vllm:time_to_first_token_seconds"),
            "0.001 0.005 0.01 0.02 0.04 0.06 0.08 0.1 0.25 0.5 0.75 1 2.5 5 7.5 10 20 40 80 160 640 2560 +Inf ");
  const std::string token = "0.01 0.025 0.05 0.075 0.1 0.15 0.2 0.3 0.4 0.5 0.75 1 2.5 5 7.5 10 20 40 80 +Inf ";
  EXPECT_EQ(bounds("vllm:inter_token_latency_seconds"), token);
  EXPECT_EQ(bounds("vllm:request_time_per_output_token_seconds"), token);
  for (const char* phase : {"e2e_request_latency", "request_queue_time", "request_prefill_time", "request_decode_time",
                            "request_inference_time"}) {
    EXPECT_EQ(bounds("vllm:" + std::string(phase) + "_seconds"),
              "0.3 0.5 0.8 1 1.5 2 2.5 5 10 15 20 30 40 50 60 120 240 480 960 1920 7680 +Inf ");
  }
  EXPECT_EQ(bounds("vllm:request_prompt_tokens"), "1 2 5 10 20 50 100 200 500 1000 2000 5000 +Inf ");
  EXPECT_EQ(bounds("vllm:iteration_tokens_total"), "1 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 +Inf ");
}

TEST(Metrics, EveryRowOfTheTableIsExposedAndStartsAtZero) {
  const Exposition exposition = scrape(*make());
  EXPECT_EQ(exposition.families.size(), metric_table().size() + 1) << "cache_config_info alone has labels of the configuration";
  const std::set<std::string> one = {"vllm:cache_config_info", "vllm:engine_sleep_state", "kvasir_kv_tier_up"};
  for (const MetricInfo& info : metric_table()) {
    const auto it = exposition.families.find(info.name);
    ASSERT_NE(it, exposition.families.end()) << info.name;
    EXPECT_FALSE(it->second.help.empty());
    EXPECT_EQ(label_names(it->second).size(), 1u) << info.name;
    EXPECT_EQ(info.name.ends_with("_total"), info.kind == MetricKind::counter || info.name == "vllm:iteration_tokens_total");
    if (one.contains(info.name)) continue;
    for (const double value : it->second.values) EXPECT_EQ(value, 0) << info.name;
  }
}

TEST(Metrics, EveryTelemetryItemNamesWhatExists) {
  const Exposition exposition = scrape(*make());
  std::set<std::string> items;
  for (const TelemetryItem& item : telemetry_items()) {
    items.insert(item.item);
    int names = 0;
    const std::regex name("(?:vllm:|kvasir_)[a-z0-9_]+");
    for (std::sregex_iterator it(item.expression.begin(), item.expression.end(), name), end; it != end; ++it, ++names) {
      std::string family = it->str();
      if (family.ends_with("_bucket")) family.resize(family.size() - std::string("_bucket").size());
      EXPECT_TRUE(exposition.families.contains(family)) << item.item << ": " << family;
    }
    EXPECT_GT(names, 0) << item.item;
  }
  for (const char* item : {"logical tokens", "allocated tokens", "block utilization", "prefix hit rate", "evictions",
                           "preemptions", "recomputed tokens by cause", "memory by component", "batch tokens",
                           "queue by reason", "TTFT p95", "ITL p99", "output tokens/s", "refusals by reason"}) {
    EXPECT_TRUE(items.contains(item)) << item;
  }
}

double by_source(const Exposition& exposition, const char* source) {
  return exposition.value("vllm:prompt_tokens_by_source_total", {{"source", source}});
}

TEST(Metrics, PromptTokensAddUpBySource) {
  const auto metrics = make();
  metrics->on_admitted({.prompt_tokens = 70});
  metrics->on_admitted({.prompt_tokens = 70, .looked_up_tokens = 69, .hit_tokens = 64});
  metrics->on_admitted({.prompt_tokens = 100, .looked_up_tokens = 99, .hit_tokens = 32, .external_looked_up_tokens = 67,
                        .external_tokens = 48});
  const Exposition exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("vllm:prompt_tokens_total"), 240);
  EXPECT_EQ(by_source(exposition, "local_compute"), 96);
  EXPECT_EQ(by_source(exposition, "local_cache_hit"), 96);
  EXPECT_EQ(by_source(exposition, "external_kv_transfer"), 48);
  EXPECT_EQ(exposition.value("vllm:prompt_tokens_cached_total"), 144);
  EXPECT_EQ(exposition.value("vllm:prefix_cache_queries_total"), 168);
  EXPECT_EQ(exposition.value("vllm:prefix_cache_hits_total"), 96);
  EXPECT_EQ(exposition.value("vllm:external_prefix_cache_queries_total"), 67);
  EXPECT_EQ(exposition.value("vllm:external_prefix_cache_hits_total"), 48);
}

TEST(Metrics, EveryScrapeAddsUpWhileRequestsAreAdmitted) {
  const auto metrics = make();
  std::thread admitting([&] {
    for (int i = 0; i < 20'000; ++i) {
      metrics->on_admitted({.prompt_tokens = 10, .looked_up_tokens = 9, .hit_tokens = 4, .external_looked_up_tokens = 5,
                            .external_tokens = 3});
    }
  });
  for (int i = 0; i < 5; ++i) {
    const Exposition exposition = scrape(*metrics);
    EXPECT_EQ(by_source(exposition, "local_compute") + by_source(exposition, "local_cache_hit") +
                  by_source(exposition, "external_kv_transfer"),
              exposition.value("vllm:prompt_tokens_total"));
  }
  admitting.join();
  EXPECT_EQ(scrape(*metrics).value("vllm:prompt_tokens_total"), 200'000);
}

TEST(Metrics, AStepIsCountedOnce) {
  const auto metrics = make();
  const std::array<double, 3> gaps = {0.01, 0.0101, 100};
  metrics->histogram("vllm:time_to_first_token_seconds").observe(0.03);
  metrics->histogram("vllm:inter_token_latency_seconds").observe(gaps);
  metrics->on_step({.prefill_tokens = 60, .decode_tokens = 4, .generated_tokens = 5, .preemptions = 1, .seconds = 0.02,
                    .predicted_seconds = 0.025});
  metrics->on_step({.decode_tokens = 4, .generated_tokens = 4, .seconds = 0.01});
  const Exposition exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("kvasir_steps_total"), 2);
  EXPECT_EQ(exposition.value("vllm:generation_tokens_total"), 9);
  EXPECT_EQ(exposition.value("vllm:num_preemptions_total"), 1);
  EXPECT_EQ(exposition.value("kvasir_batch_tokens", {{"kind", "prefill"}}), 0);
  EXPECT_EQ(exposition.value("kvasir_batch_tokens", {{"kind", "decode"}}), 4);
  EXPECT_EQ(exposition.value("kvasir_step_tokens_total", {{"kind", "decode"}}), 8);
  EXPECT_EQ(exposition.value("vllm:iteration_tokens_total_count"), 2);
  EXPECT_EQ(exposition.value("vllm:iteration_tokens_total_bucket", {{"le", "64"}}), 2);
  EXPECT_EQ(exposition.value("vllm:iteration_tokens_total_bucket", {{"le", "32"}}), 1);
  EXPECT_EQ(exposition.value("kvasir_step_predicted_seconds_count"), 1);
  EXPECT_EQ(exposition.value("vllm:time_to_first_token_seconds_count"), 1);
  EXPECT_EQ(exposition.value("vllm:time_to_first_token_seconds_bucket", {{"le", "0.02"}}), 0);
  EXPECT_EQ(exposition.value("vllm:time_to_first_token_seconds_bucket", {{"le", "0.04"}}), 1);
  EXPECT_EQ(exposition.value("vllm:inter_token_latency_seconds_bucket", {{"le", "0.01"}}), 1) << "a bound is in its bucket";
  EXPECT_EQ(exposition.value("vllm:inter_token_latency_seconds_bucket", {{"le", "0.025"}}), 2);
  EXPECT_EQ(exposition.value("vllm:inter_token_latency_seconds_bucket", {{"le", "80"}}), 2);
  EXPECT_EQ(exposition.value("vllm:inter_token_latency_seconds_bucket", {{"le", "+Inf"}}), 3);
  EXPECT_NEAR(exposition.value("vllm:inter_token_latency_seconds_sum"), 100.0201, 1e-9);
}

TEST(Metrics, ARequestIsCountedOnce) {
  const auto metrics = make();
  metrics->on_finished({.reason = FinishReason::length, .prompt_tokens = 20, .computed_prompt_tokens = 4, .generated_tokens = 22,
                        .longest_choice_tokens = 11, .max_tokens = 11, .n = 2, .queue = 0.1, .prefill = 0.4, .decode = 1,
                        .end_to_end = 1.6});
  metrics->on_finished({.reason = FinishReason::abort, .prompt_tokens = 20});
  const Exposition exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("vllm:request_success_total", {{"finished_reason", "length"}}), 1);
  EXPECT_EQ(exposition.value("vllm:request_success_total", {{"finished_reason", "abort"}}), 1);
  EXPECT_EQ(exposition.value("vllm:request_success_total", {{"finished_reason", "stop"}}), 0);
  EXPECT_NEAR(exposition.value("vllm:request_time_per_output_token_seconds_sum"), 0.1, 1e-9);
  EXPECT_EQ(exposition.value("vllm:request_time_per_output_token_seconds_count"), 1) << "one token has no gap";
  EXPECT_NEAR(exposition.value("vllm:request_inference_time_seconds_sum"), 1.4, 1e-9);
  EXPECT_EQ(exposition.value("vllm:request_prompt_tokens_sum"), 40);
  EXPECT_EQ(exposition.value("vllm:request_params_n_bucket", {{"le", "1"}}), 1);
}

TEST(Metrics, GaugesFollowTheirSamples) {
  const auto metrics = make();
  metrics->set_load({.running = 3, .waiting = {.memory = 2, .batch_slots = 1, .priority = 4}, .queued_prompt_tokens = 700});
  metrics->set_cache({.free_blocks = 50, .active_blocks = 25, .cached_blocks = 25, .held_bytes = 500, .capacity_bytes = 1000,
                      .slack_bytes = 10, .logical_tokens = 300, .allocated_tokens = 400});
  Exposition exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("vllm:num_requests_running"), 3);
  EXPECT_EQ(exposition.value("vllm:num_requests_waiting"), 7);
  EXPECT_EQ(exposition.value("vllm:num_requests_waiting_by_reason", {{"reason", "capacity"}}), 3);
  EXPECT_EQ(exposition.value("vllm:num_requests_waiting_by_reason", {{"reason", "deferred"}}), 4);
  EXPECT_EQ(exposition.value("vllm:kv_cache_usage_perc"), 0.25);
  EXPECT_EQ(exposition.value("kvasir_kv_blocks", {{"tier", "ram"}, {"state", "cached"}}), 25);
  EXPECT_EQ(exposition.value("kvasir_kv_block_utilization_ratio"), 0.75);
  EXPECT_EQ(exposition.value("kvasir_kv_fragmentation_ratio"), 0.01);
  metrics->set_cache_groups(std::array<CacheGroupSample, 2>{{{.free = 5, .active = 3, .superpages = 2}, {.moved = 1}}});
  metrics->set_cache_groups(std::array<CacheGroupSample, 2>{{{.free = 4, .active = 4, .superpages = 2}, {.moved = 3}}});
  exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("kvasir_kv_group_blocks", {{"group", "0"}, {"state", "active"}}), 4);
  EXPECT_EQ(exposition.value("kvasir_kv_group_moved_total", {{"group", "1"}}), 3) << "counted once";
  EXPECT_EQ(exposition.value("kvasir_kv_group_superpages", {{"group", "7"}}), 0) << "there, though the model has no such group";
  metrics->set_cache({});
  EXPECT_EQ(scrape(*metrics).value("vllm:kv_cache_usage_perc"), 0) << "no blocks, no NaN";
  metrics->set_http({.open_connections = 2, .accepted = 10});
  metrics->set_http({.open_connections = 1, .accepted = 15, .writes = 7});
  metrics->on_access({.id = {}, .method = {}, .path = {}, .peer = {}, .status = 404, .sent_bytes = 0, .seconds = 0, .lost = {}});
  metrics->counter("kvasir_refusals_total", {"queue_tokens"}).add(2);
  exposition = scrape(*metrics);
  EXPECT_EQ(exposition.value("kvasir_http_connections"), 1);
  EXPECT_EQ(exposition.value("kvasir_http_connections_total"), 15);
  EXPECT_EQ(exposition.value("kvasir_http_writes_total"), 7);
  EXPECT_EQ(exposition.value("kvasir_http_responses_total", {{"code", "4xx"}}), 1);
  EXPECT_EQ(exposition.value("kvasir_refusals_total", {{"reason", "queue_tokens"}}), 2);
}

TEST(Metrics, LabelsAreEscaped) {
  MetricsConfig odd = config();
  odd.model_name = "a\"b\\c\nd";
  const Exposition exposition = scrape(*Metrics::create(odd).value());
  EXPECT_EQ(exposition.families.at("kvasir_steps_total").samples[0].second.at("model_name"), "a\\\"b\\\\c\\nd");
}

TEST(Metrics, RefusesAConfigurationByName) {
  MetricsConfig nameless = config();
  nameless.model_name.clear();
  EXPECT_THAT(Metrics::create(nameless).error().message, HasSubstr("model_name"));
  MetricsConfig endless = config();
  endless.max_model_len = 0;
  EXPECT_THAT(Metrics::create(endless).error().message, HasSubstr("max_model_len"));
}

TEST(MetricsDeathTest, ASeriesThatIsNotInTheTableIsAProgrammersError) {
  const auto metrics = make();
  EXPECT_DEATH(metrics->counter("kvasir_refusals_total", {"nonsense"}), "kvasir_refusals_total\\{nonsense\\}");
}

}  // namespace
}  // namespace kvasir::server

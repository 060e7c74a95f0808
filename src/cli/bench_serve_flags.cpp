#include "cli/bench_serve_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/exit_code.hpp"
#include "cli/option_values.hpp"
#include "load/result_json.hpp"
#include "trace/reader.hpp"

namespace kvasir::cli {
namespace {

constexpr std::uint32_t kTokensMax = 1u << 24;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool parse_number(const std::string& text, double& value) {
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && status == std::errc{} && rest == text.data() + text.size() && std::isfinite(value);
}

// A positive number or "inf".
CLI::Validator positive_or_inf() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        if (text == "inf" || (parse_number(text, value) && value > 0)) return std::string();
        return fmt::format("'{}' is neither a positive number nor inf", text);
      },
      "", "positive_or_inf");
}

double number_or_inf(const std::string& text) {
  double value = 0;
  return parse_number(text, value) ? value : std::numeric_limits<double>::infinity();
}

CLI::Validator percent_list() {
  return CLI::Validator(
      [](std::string& text) {
        for (const std::string& part : split(text, ',')) {
          double value = -1;
          if (!parse_number(part, value) || value < 0 || value > 100)
            return fmt::format("'{}' in '{}' is not a percentile from 0 to 100", part, text);
        }
        return std::string();
      },
      "", "percent_list");
}

CLI::Validator metric_list() {
  return CLI::Validator(
      [](std::string& text) {
        for (const std::string& part : split(text, ',')) {
          if (std::ranges::find(load::kMetricNames, part) == std::end(load::kMetricNames)) {
            return fmt::format("'{}' in '{}' is no latency; valid: ttft, tpot, itl, e2el", part, text);
          }
        }
        return std::string();
      },
      "", "metric_list");
}

void add_target_flags(CLI::App& app, BenchServeFlags& flags) {
  app.add_option("URL", flags.url, "http://HOST:PORT of an OpenAI endpoint (a /v1 at the end is ignored), or unix:PATH")
      ->required()
      ->type_name("");
  app.add_option("--model", flags.model, "Model to ask for (default: the first the server lists)")->type_name("NAME");
  app.add_option("--backend", flags.backend, "openai (completions) or openai-chat (default openai)")
      ->check(one_of({"openai", "openai-chat", "vllm"}))
      ->type_name("NAME");
  app.add_option("--endpoint", flags.endpoint, "Path of the API (default: /v1/completions or /v1/chat/completions)")
      ->type_name("PATH");
  app.add_option("--header", flags.headers,
                 "Headers of every request; OPENAI_API_KEY in the environment sets Authorization")
      ->type_name("KEY=VALUE")
      ->expected(1, 64);
  app.add_option("--ready-check-timeout-sec", flags.ready_check_timeout,
                 "Wait so long for the server to be ready (default 0)")
      ->check(number(0, 86'400))
      ->type_name("S");
  app.add_option("--timeout", flags.timeout, "Give a request up after so long (default 21600)")
      ->check(number(0.001, 1e6))
      ->type_name("S");
}

void add_arrival_flags(CLI::App& app, BenchServeFlags& flags) {
  app.add_option("--num-prompts", flags.num_prompts,
                 "Requests, or conversations with --turns; of a trace the first so many (default 100)")
      ->check(whole_number(1, 10'000'000))
      ->type_name("N");
  app.add_option("--request-rate", flags.request_rate,
                 "Requests a second, Poisson arrivals; inf: all at once (default inf)")
      ->check(positive_or_inf())
      ->type_name("R");
  app.add_option("--burstiness", flags.burstiness,
                 "Shape of the gamma gaps: 1 Poisson, below 1 bursts, inf constant gaps (default 1)")
      ->check(positive_or_inf())
      ->type_name("X");
  app.add_option("--max-concurrency", flags.max_concurrency,
                 "Hold requests back beyond so many at once (default: no limit)")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  app.add_option("--turns", flags.turns, "Turns of a conversation; each repeats those before it (default 1)")
      ->check(whole_number(1, 4096))
      ->type_name("N");
  app.add_option("--think-time", flags.think_time, "Seconds between an answer and the next turn (default 0)")
      ->check(number(0, 86'400))
      ->type_name("S");
  CLI::Option* trace =
      app.add_option("--trace", flags.trace, "Arrivals and lengths from a trace; with --request-rate lengths alone")
          ->type_name("FILE");
  app.add_option("--trace-format", flags.trace_format, "auto, kvasir, mooncake, azure or vidur (default auto)")
      ->check(one_of({"auto", "kvasir", "mooncake", "azure", "vidur"}))
      ->needs(trace)
      ->type_name("NAME");
  app.add_option("--trace-time-scale", flags.trace_time_scale,
                 "Arrival times of the trace times this; 0.1 is ten times as fast (default 1)")
      ->check(number(0, 1e6))
      ->needs(trace)
      ->type_name("X");
  app.add_option("--trace-length-scale", flags.trace_length_scale,
                 "Lengths of the trace times this, at least one token (default 1)")
      ->check(number(1e-6, 1e3))
      ->needs(trace)
      ->type_name("X");
}

void add_prompt_flags(CLI::App& app, BenchServeFlags& flags) {
  app.add_option("--random-input-len", flags.input_len, "Prompt tokens (default 1024)")
      ->check(whole_number(1, kTokensMax))
      ->type_name("N");
  app.add_option("--random-output-len", flags.output_len, "Answer tokens (default 128)")
      ->check(whole_number(1, kTokensMax))
      ->type_name("N");
  app.add_option("--random-range-ratio", flags.range_ratio,
                 "Lengths uniform within this part of them to either side (default 0)")
      ->check(number(0, 0.999))
      ->type_name("X");
  app.add_option("--shared-prefix-share", flags.prefix_share,
                 "This part of each prompt, at its head, is common (default 0)")
      ->check(number(0, 1))
      ->type_name("X");
  app.add_option("--shared-prefixes", flags.prefixes, "Distinct common heads, taken in turn (default 1)")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  CLI::Option* kind =
      app.add_option("--prompts", flags.prompts,
                     "tokens (random ids, completions alone) or words (default: tokens; words for chat)")
          ->check(one_of({"tokens", "words"}))
          ->type_name("KIND");
  CLI::Option* file = app.add_option("--prompt-file", flags.prompt_file, "Prompts are slices of this text")
                          ->excludes(kind)
                          ->type_name("FILE");
  app.add_option("--bytes-per-token", flags.bytes_per_token, "Of the prompt file (default 4)")
      ->check(number(0.1, 64))
      ->needs(file)
      ->type_name("X");
  app.add_option("--random-token-ids", flags.token_ids, "Range of the ids, the end not included (default 100,20000)")
      ->check(number_list(0, 1u << 30))
      ->type_name("A,B");
  app.add_flag("--stop-at-eos", flags.stop_at_eos, "Let answers end where the model ends them (default: ignore_eos)");
  app.add_option("--temperature", flags.temperature, "Sent with every request (default: the server's)")
      ->check(number(0, 100))
      ->type_name("X");
  app.add_option("--extra-body", flags.extra_body, "More keys for every body, or others in place of ours")
      ->type_name("JSON");
  app.add_option("--seed", flags.seed, "Of arrivals, lengths and prompts (default 0)")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
}

void add_result_flags(CLI::App& app, BenchServeFlags& flags) {
  app.add_option("--percentile-metrics", flags.percentile_metrics, "Latencies to tell (default ttft,tpot,itl,e2el)")
      ->check(metric_list())
      ->type_name("LIST");
  app.add_option("--metric-percentiles", flags.metric_percentiles, "Percentiles to tell (default 50,90,95,99)")
      ->check(percent_list())
      ->type_name("LIST");
  app.add_option("--goodput", flags.goodput,
                 "Objectives in ms; requests that meet all are goodput: ttft:500 tpot:50 e2el:4000")
      ->type_name("NAME:MS")
      ->expected(1, 3);
  app.add_flag("--json", flags.json, "One JSON object on stdout, with the keys of vllm bench serve");
  app.add_flag("--save-result", flags.save_result, "Write that object to a file");
  app.add_flag("--save-detailed", flags.save_detailed, "With generated_texts");
  app.add_option("--result-dir", flags.result_dir, "Where the file goes (default: here)")->type_name("FOLDER");
  app.add_option("--result-filename", flags.result_filename, "Its name (default: backend, rate, model and date)")
      ->type_name("NAME");
  app.add_option("--html", flags.html, "Write a page with the distributions and a timeline of the requests")
      ->type_name("FILE");
}

// Keys and values go into the head of a request as they are: no line may end in them.
Result<client::Header> parse_header(const std::string& word) {
  const std::size_t equals = word.find('=');
  const bool broken =
      std::ranges::any_of(word, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
  const std::string name = word.substr(0, equals);
  if (equals == std::string::npos || name.empty() || broken ||
      name.find_first_of(" :\t\"(),/;<>@[]{}?\\") != std::string::npos) {
    return usage_error(fmt::format("--header: '{}' is no header; valid: KEY=VALUE, as X-Team=search", word));
  }
  return client::Header{name, word.substr(equals + 1)};
}

Result<load::PromptSource> make_source(const BenchServeFlags& flags, client::Api api) {
  if (!flags.prompt_file.empty())
    return load::PromptSource::text_file(flags.prompt_file, flags.bytes_per_token, flags.seed);
  const bool words =
      flags.prompts == "words" || (flags.prompts.empty() && (api == client::Api::chat || flags.turns > 1));
  if (words) return load::PromptSource::words(flags.seed);
  const std::vector<std::uint32_t> range = split_numbers(flags.token_ids);
  if (range.size() != 2 || range[0] >= range[1]) {
    return usage_error(
        fmt::format("--random-token-ids: '{}' is no range; valid: A,B with A below B, as 100,20000", flags.token_ids));
  }
  return load::PromptSource::token_ids(range[0], range[1], flags.seed);
}

}  // namespace

void add_bench_serve_flags(CLI::App& app, BenchServeFlags& flags) {
  add_target_flags(app, flags);
  add_arrival_flags(app, flags);
  add_prompt_flags(app, flags);
  add_result_flags(app, flags);
}

Result<BenchServePlan> resolve(const BenchServeFlags& flags) {
  BenchServePlan plan;
  KV_ASSIGN(plan.address, client::parse_address(flags.url));
  if (plan.address.base.ends_with("/v1"))
    plan.address.base.resize(plan.address.base.size() - 3);  // as OPENAI_BASE_URL is written
  plan.live.api = flags.backend == "openai-chat" ? client::Api::chat : client::Api::completions;
  plan.live.target = !flags.endpoint.empty()              ? flags.endpoint
                     : plan.live.api == client::Api::chat ? "/v1/chat/completions"
                                                          : "/v1/completions";
  if (!plan.live.target.starts_with('/') || plan.live.target.find_first_of(" \t\r\n") != std::string::npos) {
    return usage_error(fmt::format("--endpoint: '{}' is no path; valid: /v1/completions", plan.live.target));
  }
  plan.models_target = "/v1/models";
  if (const char* key = std::getenv("OPENAI_API_KEY"); key != nullptr && *key != '\0') {
    KV_ASSIGN(client::Header header, parse_header(fmt::format("Authorization=Bearer {}", key)));
    plan.live.headers.push_back(std::move(header));
  }
  for (const std::string& word : flags.headers) {
    KV_ASSIGN(client::Header header, parse_header(word));
    plan.live.headers.push_back(std::move(header));
  }
  plan.client.total_timeout = std::chrono::milliseconds(std::llround(flags.timeout * 1e3));
  plan.client.idle_timeout = plan.client.total_timeout;
  KV_ASSIGN(plan.metrics.objectives, load::parse_objectives(flags.goodput));
  plan.metrics.percents.clear();
  for (const std::string& part : split(flags.metric_percentiles, ','))
    plan.metrics.percents.push_back(number_or_inf(part));
  plan.metrics.bootstrap.seed = flags.seed;
  plan.metric_names = split(flags.percentile_metrics, ',');
  plan.request_rate = number_or_inf(flags.request_rate);
  plan.burstiness = number_or_inf(flags.burstiness);
  if (!flags.trace.empty() && flags.turns > 1)
    return usage_error("--turns: a trace has one turn a request; valid: --turns without --trace");
  return plan;
}

Result<load::Workload> make_workload(const BenchServeFlags& flags, const BenchServePlan& plan,
                                     const std::string& model) {
  const load::ArrivalOptions arrivals{plan.request_rate, plan.burstiness, flags.seed};
  load::Plan requests;
  if (flags.trace.empty()) {
    requests = load::plan_random(flags.num_prompts, arrivals,
                                 {flags.input_len, flags.output_len, flags.range_ratio, flags.seed},
                                 {flags.turns, flags.think_time});
  } else {
    KV_ASSIGN(const trace::TraceFormat format, trace::parse_format(flags.trace_format));
    KV_ASSIGN(const trace::Trace trace, trace::read_trace_file(flags.trace, {format, flags.num_prompts}));
    if (!trace.timed && std::isinf(plan.request_rate))
      return usage_error(fmt::format("--trace: '{}' has no arrival times; valid: with --request-rate", flags.trace));
    requests = load::plan_trace(trace, flags.num_prompts, arrivals,
                                {flags.trace_time_scale, flags.trace_length_scale, std::isinf(plan.request_rate)});
  }
  KV_ASSIGN(load::PromptSource source, make_source(flags, plan.live.api));
  load::BodyOptions body{plan.live.api, model, !flags.stop_at_eos, {}, flags.extra_body};
  if (double value = 0; parse_number(flags.temperature, value)) body.temperature = value;
  return load::Workload::create(std::move(requests), std::move(source), {flags.prefix_share, flags.prefixes}, body);
}

}  // namespace kvasir::cli

// kvasir bench serve: open-loop load against any OpenAI endpoint.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <ostream>

#include "cli/bench_serve_flags.hpp"
#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/output_file.hpp"
#include "load/endpoint.hpp"
#include "load/generator.hpp"
#include "load/latency_page.hpp"
#include "load/result_json.hpp"
#include "load/result_table.hpp"
#include "platform/clock.hpp"
#include "platform/terminal.hpp"
#include "report/progress.hpp"
#include "report/table.hpp"

namespace kvasir::cli {
namespace {

constexpr std::chrono::milliseconds kQuestionTimeout{60'000};

std::string date_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  char text[32] = {};
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", std::localtime(&now));
  return text;
}

// CPU seconds of this process, all threads.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

load::RunRecord run_load(const BenchServeFlags& flags, const BenchServePlan& plan, const load::Workload& workload,
                         client::HttpClient& client, const platform::InterruptScope& interrupt, Console& console) {
  load::LiveTransport transport(client, plan.live);
  report::ProgressLine progress(console.err, console.err_is_terminal, "load", "requests");
  const std::uint64_t begin = platform::monotonic_ns();
  const std::size_t total = workload.plan().requests();
  return load::generate(workload, transport,
                        {.max_concurrency = flags.max_concurrency,
                         .on_progress =
                             [&](std::size_t ended) {
                               progress.update(ended, total,
                                               platform::seconds_between(begin, platform::monotonic_ns()));
                             },
                         .stop = [&] { return interrupt.pending() != 0; }});
}

// As `vllm bench serve` names it.
std::filesystem::path result_path(const BenchServeFlags& flags, const load::RunDescription& description) {
  std::string name = flags.result_filename;
  if (name.empty()) {
    const std::string concurrency =
        flags.max_concurrency > 0 ? fmt::format("-concurrency{}", flags.max_concurrency) : "";
    name = fmt::format("{}-{}qps{}-{}-{}.json", flags.backend, flags.request_rate, concurrency,
                       std::filesystem::path(description.model).filename().string(), description.date);
  }
  return std::filesystem::path(flags.result_dir) / name;
}

Status tell(const BenchServeFlags& flags, const BenchServePlan& plan, const load::RunRecord& run,
            const load::RunDescription& description, Console& console) {
  const load::Metrics metrics = load::compute_metrics(run, plan.metrics);
  const std::string table = load::result_table(run, metrics, plan.metrics, description);
  const std::string json = report::to_json_line(load::result_json(run, metrics, plan.metrics, description)) + "\n";
  (flags.json ? console.out << json : console.out << table) << std::flush;
  if (flags.save_result) {
    const std::filesystem::path path = result_path(flags, description);
    KV_TRY(write_file(path, json));
    console.err << "saved " << path.string() << '\n';
  }
  if (!flags.html.empty()) {
    KV_TRY(write_file(flags.html, load::latency_page(fmt::format("{} at {}, {}", description.model, description.address,
                                                                 description.date),
                                                     table, run)));
    console.err << "saved " << flags.html << '\n';
  }
  if (metrics.completed > 0 || run.interrupted) return ok_status();
  const load::RequestRecord& first = run.requests.front();
  return Error{ErrorCode::io, fmt::format("no request went well; the first failed with {}: {}", first.error_kind,
                                          report::printable(first.error_message))};
}

// The name to ask for. A server that takes the question but never answers it is given up after a minute.
Result<std::string> find_model(const BenchServeFlags& flags, const BenchServePlan& plan,
                               const platform::InterruptScope& interrupt) {
  if (!flags.model.empty()) return flags.model;
  client::ClientOptions brief = plan.client;
  brief.total_timeout = std::min(brief.total_timeout, kQuestionTimeout);
  KV_ASSIGN(const std::unique_ptr<client::HttpClient> client, client::HttpClient::create(plan.address, brief));
  return load::first_model(*client, plan.models_target, plan.live.headers, flags.ready_check_timeout,
                           [&] { return interrupt.pending() != 0; });
}

load::RunDescription describe(const BenchServeFlags& flags, const BenchServePlan& plan, const std::string& model) {
  load::RunDescription description;
  description.date = date_now();
  description.backend = flags.backend;
  description.model = model;
  description.address = plan.address.text();
  description.request_rate = plan.request_rate;
  description.burstiness = plan.burstiness;
  description.max_concurrency = flags.max_concurrency;
  description.seed = flags.seed;
  description.metric_names = plan.metric_names;
  description.texts = flags.save_detailed;
  return description;
}

int bench_serve(const BenchServeFlags& flags, Console& console) {
  const platform::InterruptScope interrupt;
  const Result<BenchServePlan> plan = resolve(flags);
  if (!plan.ok()) return report_error(console, plan.error());
  const Result<std::string> model = find_model(flags, *plan, interrupt);
  if (interrupt.pending() != 0) return kExitSignal + interrupt.pending();
  if (!model.ok()) return report_error(console, model.error());
  const Result<load::Workload> workload = make_workload(flags, *plan, *model);
  if (!workload.ok()) return report_error(console, workload.error());
  const Result<std::unique_ptr<client::HttpClient>> client = client::HttpClient::create(plan->address, plan->client);
  if (!client.ok()) return report_error(console, client.error());

  load::RunDescription description = describe(flags, *plan, *model);
  const double cpu_before = cpu_seconds();
  const load::RunRecord run = run_load(flags, *plan, *workload, **client, interrupt, console);
  description.client_cpu_s = cpu_seconds() - cpu_before;
  description.connections_opened = (*client)->counters().connections_opened;
  const Status told = tell(flags, *plan, run, description, console);
  if (!told.ok()) return report_error(console, told.error());
  return run.interrupted ? kExitSignal + interrupt.pending() : kExitOk;
}

}  // namespace

Command add_bench_serve(CLI::App& bench) {
  auto flags = std::make_shared<BenchServeFlags>();
  CLI::App* app =
      bench.add_subcommand("serve", "Measure a server: latencies, throughput and goodput under open-loop load");
  // `bench` wants a MODEL, `bench serve` a URL instead. A required MODEL would take the word "serve" for itself.
  CLI::Option* model = bench.get_option("MODEL")->required(false);
  bench.final_callback([&bench, model] {
    if (model->count() == 0 && bench.get_subcommands().empty()) throw CLI::RequiredError(model->get_name());
  });
  add_bench_serve_flags(*app, *flags);
  return {app, nullptr, [flags](Console& console) { return bench_serve(*flags, console); }};
}

}  // namespace kvasir::cli

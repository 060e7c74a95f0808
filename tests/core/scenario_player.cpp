#include "tests/core/scenario_player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kvasir::core::test {
namespace {

std::uint64_t microseconds(const std::string& milliseconds) {
  return static_cast<std::uint64_t>(std::llround(std::stod(milliseconds) * 1e3));
}

double milliseconds(std::uint64_t us) { return static_cast<double>(us) * 1e-3; }

// KEY=VALUE words; every key must be one of `values`, whose numbers it replaces.
std::string read_settings(std::istringstream& words, std::map<std::string, double>& values) {
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const auto at = values.find(word.substr(0, equals));
    if (equals == std::string::npos || at == values.end()) return "no such setting: " + word;
    at->second = std::stod(word.substr(equals + 1));
  }
  return "";
}

Arrival read_arrival(std::istringstream& words) {
  Arrival arrival;
  words >> arrival.prompt_tokens >> arrival.max_new_tokens;
  if (!(words >> arrival.priority)) arrival.priority = 0;
  return arrival;
}

std::string verdict_text(const SubmitVerdict& verdict) {
  if (verdict.ok()) return "queued";
  if (verdict.reason == RefusalReason::bad_request) return "refused: bad_request";
  return fmt::format("refused: {} ({} > {})", to_string(verdict.reason), verdict.wanted, verdict.have);
}

}  // namespace

std::string ScenarioPlayer::play(std::istringstream& words) {
  std::string command, name;
  words >> command;
  if (command == "config") return configure(words);
  if (command == "machine") return machine(words);
  if (command == "ended") return ended();
  if (command == "memory") return memory();
  if (command == "waiting") return waiting();
  for (const std::string_view known : {"step", "plan", "apply", "abandon"})
    if (command == known) return story(command, words);
  for (const std::string_view known : {"arrive", "hangup", "go", "finish"})
    if (command == known) return simulated(command, words);
  words >> name;
  if (command == "submit") return submit(name, words);
  return about(command, name);
}

VirtualRun& ScenarioPlayer::run() {
  if (!run_) {
    const sched::CostCoefficients cost = machine_cost_;
    const bool timed = has_machine_;
    run_.emplace(config_, [cost, timed](const sched::StepWork& work) { return timed ? cost.predict(work) : 0; });
    run_->on_plan = [this](const sched::StepPlan&) { line_ = plan_line(); };
  }
  return *run_;
}

std::string ScenarioPlayer::configure(std::istringstream& words) {
  std::map<std::string, double> v = {
      {"blocks", 16},       {"block_tokens", 16}, {"reserved", 0},         {"context", 256},  {"seqs", 4},
      {"tokens", 64},       {"align", 1},         {"target_ms", 0},        {"min_chunk", 16}, {"priorities", 0},
      {"ageing_ms", 10000}, {"max_queued", 0},    {"max_queued_tokens", 0}};
  std::string error = read_settings(words, v);
  const auto count = [&v](const char* key) { return static_cast<std::uint32_t>(v.at(key)); };
  config_.cache.groups = {{count("block_tokens"), count("blocks"), count("reserved")}};
  config_.cache.max_sequence_rows = count("context");
  config_.limits = {count("seqs"), count("tokens"), count("align"), v.at("target_ms") * 1e-3, count("min_chunk")};
  config_.policy = {v.at("priorities") != 0 ? sched::Policy::priority : sched::Policy::fcfs,
                    count("ageing_ms") * 1000ull};
  config_.queue = {count("max_queued"), count("max_queued_tokens")};
  return error;
}

std::string ScenarioPlayer::machine(std::istringstream& words) {
  std::map<std::string, double> v = {{"fixed_ms", 0},      {"decode_row_ms", 0},  {"prefill_row_ms", 0},
                                     {"decode_key_us", 0}, {"prefill_key_us", 0}, {"known", 0}};
  std::string error = read_settings(words, v);
  machine_cost_ = {v.at("fixed_ms") * 1e-3, v.at("decode_row_ms") * 1e-3, v.at("prefill_row_ms") * 1e-3,
                   v.at("decode_key_us") * 1e-6, v.at("prefill_key_us") * 1e-6};
  has_machine_ = true;
  if (v.at("known") != 0) {
    config_.assumed_cost = machine_cost_;
    sched::CostCoefficients& c = config_.assumed_cost;  // no term may be 0 there
    for (double* term : {&c.fixed, &c.decode_row, &c.prefill_row, &c.decode_key, &c.prefill_key})
      *term = std::max(*term, 1e-15);
  }
  return error;
}

std::string ScenarioPlayer::story(const std::string& command, std::istringstream& words) {
  if (command == "apply") return run().apply(), "";
  if (command == "abandon") return run().abandon(), "";
  std::string time;
  words >> time;
  line_.clear();
  const bool empty = run().plan(microseconds(time)).empty();
  if (empty) line_ = plan_line();
  if (command == "step" && !empty) run().apply();
  return line_;
}

std::string ScenarioPlayer::simulated(const std::string& command, std::istringstream& words) {
  std::string time, name;
  if (command == "arrive") {
    words >> time >> name;
    clients_[name] = run().arrive(microseconds(time), read_arrival(words));
    names_[clients_[name]] = name;
    return "";
  }
  if (command == "hangup") {
    words >> time >> name;
    return run().hang_up(microseconds(time), clients_.at(name)), "";
  }
  if (command == "finish") {
    run().run_to_end();
    return fmt::format("{} steps, {:.1f} ms", run().steps(), milliseconds(run().now_us()));
  }
  int steps = 1;  // go N: the last one is shown
  words >> steps;
  std::uint64_t began = 0;
  for (int i = 0; i < steps; ++i) {
    if (!run().step()) return "nothing to do";
    began = run().now_us() - static_cast<std::uint64_t>(std::llround(run().last_step_s() * 1e6));
  }
  return fmt::format("{:.1f}: {} | {:.1f} ms", milliseconds(began), line_, run().last_step_s() * 1e3);
}

std::string ScenarioPlayer::about(const std::string& command, const std::string& name) {
  const auto known = clients_.find(name);
  if (known == clients_.end()) return fmt::format("no such command or client: {} {}", command, name);
  const VirtualRun::ClientIndex index = known->second;
  if (command == "cancel") return run().cancel(index) ? "" : "unknown";
  if (command == "stop") return run().stop(index), "";
  const Client& client = run().clients()[index];
  if (command == "verdict") return verdict_text(client.verdict);
  if (command == "ttft") return client.token_us.empty() ? "none" : fmt::format("{:.1f} ms", client.ttft_s() * 1e3);
  if (command == "itl") {
    const std::vector<double> gaps = client.itls_s();
    return gaps.empty()
               ? "none"
               : fmt::format("p50 {:.1f}, max {:.1f} ms", percentile(gaps, 0.5) * 1e3, percentile(gaps, 1) * 1e3);
  }
  return "no such command: " + command;
}

std::string ScenarioPlayer::submit(const std::string& name, std::istringstream& words) {
  const Arrival arrival = read_arrival(words);
  clients_[name] = run().submit(arrival);
  names_[clients_[name]] = name;
  const Client& client = run().clients()[clients_[name]];
  return client.verdict.ok() ? "queued" : client.refusal;
}

std::string ScenarioPlayer::plan_line() const {
  const sched::StepPlan& plan = run_->last_plan();
  std::string text;
  for (const sched::Chunk& c : plan.chunks)
    text += fmt::format("{}[{},{}){} ", name_of(run_->client_of(c.request)), c.first_position,
                        c.first_position + c.token_count, c.wants_logits ? "*" : "");
  if (plan.chunks.empty()) text += "idle ";
  if (plan.waiting != sched::WaitReason::none) text += fmt::format("wait {} ", sched::to_string(plan.waiting));
  if (plan.waiting == sched::WaitReason::blocks) text += fmt::format("({} > {}) ", plan.head.wanted, plan.head.have);
  text.pop_back();
  return text;
}

std::string ScenarioPlayer::ended() {
  std::string text;
  for (; told_ended_ < run().ended().size(); ++told_ended_) {
    const VirtualRun::ClientIndex index = run().ended()[told_ended_];
    const Client& client = run().clients()[index];
    text += fmt::format("{}{}={}/{}", text.empty() ? "" : " ", name_of(index), to_string(client.reason),
                        client.token_us.size());
  }
  return text.empty() ? "nobody" : text;
}

std::string ScenarioPlayer::memory() const {
  const cache::GroupStats s = run_->core().cache().stats(0);
  return fmt::format("{} + {} + {} + {} = {}, claimed {}", s.pool.active, s.pool.cached, s.pool.free,
                     s.pool.quarantined, s.pool.total, s.claimed);
}

std::string ScenarioPlayer::waiting() const {
  std::string text = fmt::format("{} tokens:", run_->core().stats().queued_tokens);
  for (const RequestId id : run_->core().queued()) text += " " + name_of(run_->client_of(id));
  return text;
}

}  // namespace kvasir::core::test

#include "tests/core/virtual_run.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace kvasir::core::test {
namespace {

constexpr TokenId kToken = 7;

double seconds_between(std::uint64_t from_us, std::uint64_t to_us) {
  return static_cast<double>(to_us - from_us) * 1e-6;
}

}  // namespace

double Client::ttft_s() const { return seconds_between(arrived_us, token_us.at(0)); }

std::vector<double> Client::itls_s() const {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < token_us.size(); ++i) gaps.push_back(seconds_between(token_us[i - 1], token_us[i]));
  return gaps;
}

double percentile(std::vector<double> values, double p) {
  KV_CHECK(!values.empty(), "a percentile of something");
  std::ranges::sort(values);
  const auto rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

VirtualRun::VirtualRun(const CoreConfig& config, Machine machine)
    : core_(Core::create(config).value()), machine_(std::move(machine)) {}

VirtualRun::ClientIndex VirtualRun::arrive(std::uint64_t at_us, const Arrival& arrival) {
  KV_CHECK(at_us >= now_us_, "events are yet to come");
  events_.emplace(at_us, Event{true, clients_.size()});
  clients_.emplace_back().arrival = arrival;
  return clients_.size() - 1;
}

void VirtualRun::hang_up(std::uint64_t at_us, ClientIndex client) {
  KV_CHECK(at_us >= now_us_, "events are yet to come");
  events_.emplace(at_us, Event{false, client});
}

void VirtualRun::play_events(std::uint64_t until_us) {
  while (!events_.empty() && events_.begin()->first <= until_us) {
    const auto [at_us, event] = *events_.begin();
    events_.erase(events_.begin());
    now_us_ = std::max(now_us_, at_us);
    event.arrives ? submit_client(event.client) : void(cancel(event.client));
    core_.check_invariants();
  }
}

bool VirtualRun::step() {
  for (;;) {
    play_events(now_us_);
    if (!plan(now_us_).empty()) break;
    settle();
    if (events_.empty()) return false;
    now_us_ = events_.begin()->first;
  }
  const auto end_us = now_us_ + static_cast<std::uint64_t>(std::llround(step_s_ * 1e6));
  play_events(end_us);
  now_us_ = end_us;
  apply();
  return true;
}

VirtualRun::ClientIndex VirtualRun::submit(const Arrival& arrival) {
  clients_.emplace_back().arrival = arrival;
  submit_client(clients_.size() - 1);
  return clients_.size() - 1;
}

void VirtualRun::submit_client(ClientIndex index) {
  Client& client = clients_[index];
  client.arrived_us = now_us_;
  const std::vector<TokenId> prompt(client.arrival.prompt_tokens, kToken);
  const RequestSpec spec{prompt, client.arrival.max_new_tokens, client.arrival.priority, now_us_,
                         client.arrival.family};
  client.verdict = core_.can_submit(spec);
  const Result<RequestId> id = core_.submit(spec);
  KV_CHECK(id.ok() == client.verdict.ok(), "can_submit() is what submit() does");
  if (!id.ok()) {
    client.refusal = id.error().message;
    return;
  }
  client.id = *id;
  by_id_[*id] = index;
}

bool VirtualRun::cancel(ClientIndex client) {
  const bool known = core_.cancel(clients_[client].id);
  if (!core_.step_in_flight()) settle();
  return known;
}

const sched::StepPlan& VirtualRun::plan(std::uint64_t now_us) {
  now_us_ = now_us;
  const sched::StepPlan& plan = core_.plan(now_us);
  for (const RequestId id : plan.admitted) {
    Client& client = clients_[client_of(id)];
    client.admitted = true;
    client.admitted_us = now_us;
  }
  step_s_ = plan.empty() ? 0 : machine_(plan.work);
  core_.check_invariants();
  if (on_plan && !plan.empty()) on_plan(plan);
  return plan;
}

void VirtualRun::stop(ClientIndex client) {
  clients_[client].arrival.stop_after = static_cast<std::uint32_t>(clients_[client].token_us.size()) + 1;
}

void VirtualRun::apply() {
  std::vector<TokenResult> results;
  for (const sched::Chunk& chunk : core_.current_plan().chunks) {
    if (!chunk.wants_logits) continue;
    Client& client = clients_[client_of(chunk.request)];
    client.token_us.push_back(now_us_);
    results.push_back({chunk.request, kToken, client.token_us.size() == client.arrival.stop_after});
    if (core_.find(chunk.request)->cancel_requested) client.token_us.pop_back();  // nobody reads it any more
  }
  core_.apply(results, step_s_);
  last_step_s_ = step_s_;
  ++steps_;
  settle();
}

void VirtualRun::abandon() {
  core_.abandon();
  settle();
}

void VirtualRun::settle() {
  while (!core_.finished().empty()) {
    const Request& request = *core_.find(core_.finished().front());
    Client& client = clients_[client_of(request.id)];
    KV_CHECK(client.token_us.size() == request.generated(), "every token reached its client");
    client.reason = request.reason;
    client.ended_us = now_us_;
    ended_.push_back(client_of(request.id));
    core_.forget(request.id);
  }
  core_.check_invariants();
}

}  // namespace kvasir::core::test

// The virtual-clock harness: clients that arrive and hang up, a core that plans, and a machine that says how long each
// step takes. No kernels, no clock: time is a number that moves on by what the machine says, so minutes of serving take
// milliseconds and the same inputs give the same run.
// Thread rule: one thread.
//
//   idle until the next event -> plan -> events that fall within the step meet it in flight -> apply -> settle
//
// The core's invariants are checked after each of these.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/core.hpp"

namespace kvasir::core::test {

// What a client asks for.
struct Arrival {
  std::uint32_t prompt_tokens = 1;
  std::uint64_t max_new_tokens = 1;
  std::int32_t priority = 0;
  std::uint32_t stop_after = 0;  // the token with this number ends the answer; 0: none does
  std::uint64_t family = 0;      // answers to one prompt
};

struct Client {
  Arrival arrival;
  RequestId id;           // invalid before it arrived, and if it was refused
  SubmitVerdict verdict;  // of submit()
  std::string refusal;    // of submit(), for people
  std::uint64_t arrived_us = 0, admitted_us = 0, ended_us = 0;
  bool admitted = false;
  std::vector<std::uint64_t> token_us;  // when each token came
  FinishReason reason = FinishReason::none;

  double ttft_s() const;               // REQUIRES: a token came
  std::vector<double> itls_s() const;  // between tokens
};

class VirtualRun {
 public:
  using ClientIndex = std::size_t;
  // Seconds that a step of this work takes; 0: no time passes and nothing is measured.
  using Machine = std::function<double(const sched::StepWork&)>;

  // Aborts if the configuration is refused: it is the test's own.
  VirtualRun(const CoreConfig& config, Machine machine);

  // Events to come, at now_us() or later. Those of the same moment take place in the order of these calls.
  ClientIndex arrive(std::uint64_t at_us, const Arrival& arrival);
  void hang_up(std::uint64_t at_us, ClientIndex client);

  // Plays events until a step can be planned, and computes it. False: no event is left and nothing can be computed.
  bool step();
  void run_to_end() {
    while (step()) {
    }
  }

  // The parts of a step, for stories that set the time themselves.
  ClientIndex submit(const Arrival& arrival);
  bool cancel(ClientIndex client);
  const sched::StepPlan& plan(std::uint64_t now_us);
  void stop(ClientIndex client);  // its next token ends it
  void apply();
  void abandon();

  std::uint64_t now_us() const { return now_us_; }
  std::uint64_t steps() const { return steps_; }
  double last_step_s() const { return last_step_s_; }
  const sched::StepPlan& last_plan() const { return core_.current_plan(); }
  const std::vector<Client>& clients() const { return clients_; }
  const std::vector<ClientIndex>& ended() const { return ended_; }  // in the order in which they ended
  ClientIndex client_of(RequestId id) const { return by_id_.at(id); }
  const Core& core() const { return core_; }

  // Called after each step was planned, before its time passes.
  std::function<void(const sched::StepPlan&)> on_plan;

 private:
  struct Event {
    bool arrives = false;  // else hangs up
    ClientIndex client = 0;
  };

  void play_events(std::uint64_t until_us);
  void submit_client(ClientIndex client);
  void settle();  // records who ended and drops them from the core

  Core core_;
  Machine machine_;
  std::multimap<std::uint64_t, Event> events_;
  std::vector<Client> clients_;
  std::vector<ClientIndex> ended_;
  std::map<RequestId, ClientIndex> by_id_;
  std::uint64_t now_us_ = 0, steps_ = 0;
  double step_s_ = 0, last_step_s_ = 0;  // of the step in flight; of the last one
};

// Nearest rank, p in [0, 1]. REQUIRES: values.
double percentile(std::vector<double> values, double p);

}  // namespace kvasir::core::test

#include "load/generator.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <tuple>

namespace kvasir::load {
namespace {

constexpr std::uint64_t kTickNs = 50'000'000;  // progress and the look for an interrupt
constexpr std::size_t kPreparedMax = 64;       // bodies made ahead

std::uint64_t to_ns(double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); }

class Generator {
 public:
  Generator(const Workload& workload, Transport& transport, const GeneratorOptions& options)
      : workload_(workload), transport_(transport), options_(options) {}

  RunRecord run() {
    lay_out_records();
    prepare_first();
    run_.started_ns = transport_.now_ns();
    for (std::size_t i = 0; i < first_.size(); ++i)
      schedule(i, 0, run_.started_ns + to_ns(conversations()[i].arrival_s));
    std::vector<Outcome> ended;
    while (ended_count_ < run_.requests.size() && !interrupted()) {
      send_what_is_due();
      prepare_ahead();
      transport_.wait(next_wake(), ended);
      for (Outcome& outcome : ended) settle(std::move(outcome));
      ended.clear();
      if (options_.on_progress) options_.on_progress(ended_count_);
    }
    if (run_.interrupted) drain();
    run_.ended_ns = run_.started_ns;
    for (const RequestRecord& record : run_.requests) run_.ended_ns = std::max(run_.ended_ns, record.ended_ns);
    return std::move(run_);
  }

 private:
  // A request that waits for its time. Ties go by conversation, then turn.
  struct Due {
    std::uint64_t ns;
    std::size_t conversation, turn;
    auto operator<=>(const Due&) const = default;
  };

  const std::vector<Conversation>& conversations() const { return workload_.plan().conversations; }
  std::size_t id_of(std::size_t conversation, std::size_t turn) const { return first_[conversation] + turn; }

  void lay_out_records() {
    for (std::size_t i = 0; i < conversations().size(); ++i) {
      first_.push_back(run_.requests.size());
      for (std::size_t turn = 0; turn < conversations()[i].turns.size(); ++turn) {
        RequestRecord record;
        record.conversation = static_cast<std::uint32_t>(i);
        record.turn = static_cast<std::uint32_t>(turn);
        record.input_tokens = workload_.input_tokens(i, turn);
        run_.requests.push_back(std::move(record));
      }
    }
    bodies_.resize(run_.requests.size());
  }

  void schedule(std::size_t conversation, std::size_t turn, std::uint64_t ns) {
    waiting_.push({ns, conversation, turn});
    run_.requests[id_of(conversation, turn)].scheduled_ns = ns;
    to_prepare_.push({ns, conversation, turn});
  }

  bool interrupted() {
    run_.interrupted = run_.interrupted || (options_.stop && options_.stop());
    return run_.interrupted;
  }

  std::uint64_t next_wake() {
    const std::uint64_t tick = transport_.now_ns() + kTickNs;
    return waiting_.empty() ? tick : std::min(tick, waiting_.top().ns);
  }

  std::string make_body(std::size_t conversation, std::size_t turn) const {
    std::vector<std::string> answers;
    for (std::size_t i = 0; i < turn; ++i) answers.push_back(run_.requests[id_of(conversation, i)].text);
    return workload_.body(conversation, turn, answers);
  }

  // Before the clock starts, so that the first arrivals are not late.
  void prepare_first() {
    for (; prepared_ < std::min(kPreparedMax, first_.size()); ++prepared_)
      bodies_[first_[prepared_]] = make_body(prepared_, 0);
  }

  void prepare_ahead() {
    while (!to_prepare_.empty() && prepared_ < kPreparedMax) {
      const auto [ns, conversation, turn] = to_prepare_.top();
      // Near the next arrival, sending in time comes first.
      if (prepared_ > 0 && transport_.now_ns() >= waiting_next_ns()) return;
      to_prepare_.pop();
      const std::size_t id = id_of(conversation, turn);
      if (run_.requests[id].sent_ns != 0 || !bodies_[id].empty())
        continue;  // was due before its turn came here, or was first
      bodies_[id] = make_body(conversation, turn);
      ++prepared_;
    }
  }

  std::uint64_t waiting_next_ns() const { return waiting_.empty() ? UINT64_MAX : waiting_.top().ns; }

  void send_what_is_due() {
    for (std::uint64_t now = transport_.now_ns(); !waiting_.empty() && waiting_.top().ns <= now; waiting_.pop())
      ready_.push_back(waiting_.top());
    while (!ready_.empty() && (options_.max_concurrency == 0 || running_ < options_.max_concurrency)) {
      const Due due = ready_.front();
      ready_.pop_front();
      const std::size_t id = id_of(due.conversation, due.turn);
      const bool ahead = !bodies_[id].empty();
      std::string body = ahead ? std::move(bodies_[id]) : make_body(due.conversation, due.turn);
      bodies_[id].clear();
      prepared_ -= ahead ? 1 : 0;
      run_.requests[id].sent_ns = transport_.now_ns();
      ++running_;
      transport_.send(id, std::move(body));
    }
  }

  void settle(Outcome outcome) {
    RequestRecord& record = run_.requests[outcome.id];
    --running_;
    ++ended_count_;
    record.ended_ns = outcome.ended_ns;
    record.error_kind = std::move(outcome.error_kind);
    record.error_message = std::move(outcome.error_message);
    record.token_ns = std::move(outcome.answer.token_ns);
    record.text = std::move(outcome.answer.text);
    record.input_tokens = outcome.answer.prompt_tokens.value_or(record.input_tokens);
    record.output_tokens = outcome.answer.completion_tokens.value_or(record.token_ns.size());
    record.cached_tokens = outcome.answer.cached_tokens.value_or(0);
    record.counted_by_server = outcome.answer.completion_tokens.has_value();
    const std::vector<Turn>& turns = conversations()[record.conversation].turns;
    const std::size_t next = record.turn + 1;
    if (next == turns.size()) return;
    if (record.good()) return schedule(record.conversation, next, record.ended_ns + to_ns(turns[next].think_s));
    for (std::size_t turn = next; turn < turns.size(); ++turn, ++ended_count_) {
      run_.requests[id_of(record.conversation, turn)].error_message = "the turn before it failed";
    }
  }

  void drain() {
    transport_.cancel_all();
    std::vector<Outcome> ended;
    while (running_ > 0) {
      ended.clear();
      transport_.wait(transport_.now_ns() + kTickNs, ended);
      for (Outcome& outcome : ended) settle(std::move(outcome));
    }
  }

  const Workload& workload_;
  Transport& transport_;
  const GeneratorOptions& options_;
  RunRecord run_;
  std::vector<std::size_t> first_;   // record of each conversation's first turn
  std::vector<std::string> bodies_;  // made ahead; empty if not, or sent
  std::priority_queue<Due, std::vector<Due>, std::greater<>> waiting_, to_prepare_;
  std::deque<Due> ready_;  // due, held back by the concurrency limit
  std::uint64_t running_ = 0;
  std::size_t ended_count_ = 0, prepared_ = 0;
};

}  // namespace

RunRecord generate(const Workload& workload, Transport& transport, const GeneratorOptions& options) {
  return Generator(workload, transport, options).run();
}

}  // namespace kvasir::load

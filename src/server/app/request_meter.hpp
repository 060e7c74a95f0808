// What the metrics learn from one request: when it was admitted, its tokens' times, and how it ended. Every prompt of a
// request counts as one request with n choices, as vLLM counts them; each stream computes its prompt.
// Thread rule: the engine loop's thread.
// Invariants: every prompt is told as finished exactly once, when its last stream has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "server/app/metrics_feed.hpp"
#include "server/token_sink.hpp"

namespace kvasir::server {

struct RequestShape {
  std::size_t prompts = 1;
  std::uint32_t n = 1;        // answers to each prompt, as asked
  std::uint32_t streams = 1;  // of each prompt: best_of or n, 1 with a beam search
  std::uint64_t arrived_ns = 0;
  std::uint32_t max_tokens = 0;  // of the first prompt: as asked, or what it came to
};

class RequestMeter {
 public:
  // `feed` outlives it.
  RequestMeter(MetricsFeed& feed, const RequestShape& shape);

  // index: prompt * streams + which of them.
  void on_token(std::size_t index, const TokenEvent& event);
  void on_end(std::size_t index, const EndEvent& event);

  struct Totals {
    std::uint64_t prompt_tokens = 0, completion_tokens = 0;
    double queue_s = 0;        // of the first stream
    double first_token_s = 0;  // since arrival; 0 = none came
    EndReason reason = EndReason::stop;  // the worst of all streams
  };
  const Totals& totals() const { return totals_; }

 private:
  struct Prompt {
    std::uint32_t open = 0;  // streams that go on
    bool first_seen = false;
    FinishedSample sample;
    int badness = -1;  // of the reason so far
  };
  void admit(std::size_t index, const StreamTimes& times, std::uint32_t prompt_tokens);
  void finish(Prompt& prompt, const EndEvent& event);
  double since_arrival(std::uint64_t ns) const;

  MetricsFeed& feed_;
  const RequestShape shape_;
  std::vector<Prompt> prompts_;
  std::vector<std::uint64_t> last_ns_;  // [streams]: of its newest token
  std::vector<bool> admitted_;          // [streams]
  Totals totals_;
};

}  // namespace kvasir::server

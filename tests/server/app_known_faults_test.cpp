// Known faults of other servers, from outside; numbers are those of the project's collection of public reports.
#include "tests/server/app_harness.hpp"

namespace kvasir::server::app_test {
namespace {

// B43: look-ups of requests that cannot run yet are counted every time they are tried, so that hits grow on nothing.
TEST(AppKnownFaults, B43AWaitingPromptIsCountedOnceItRuns) {
  TestApp server({}, 64);   // 1,024 tokens
  RawClient runs = server.client(), waits = server.client();
  Json first = completion("the first of two", 900);
  first["stream"] = true;
  runs.send(http_post("/v1/completions", first));
  EXPECT_NE(runs.read_until("data: "), "");
  waits.send(http_post("/v1/completions", completion(std::string(300, 'x'), 200)));   // claims more than is left
  ASSERT_TRUE(eventually([&] { return server.app->stats().waiting == 1; }));
  const int seen = server.gate->steps();
  ASSERT_TRUE(eventually([&] { return server.gate->steps() > seen + 10; })) << "tried again and again";
  const double before = server.metric("vllm:prompt_tokens_total");
  EXPECT_EQ(server.app->stats().waiting, 1u);

  const RawResponse second = waits.response();
  ASSERT_EQ(second.status, 200);
  const double prompt = Json::parse(second.body)["usage"]["prompt_tokens"].get<double>();
  EXPECT_TRUE(eventually([&] { return server.idle(); }));
  EXPECT_EQ(server.metric("vllm:prompt_tokens_total"), before + prompt) << "once, when it was admitted";
  EXPECT_EQ(server.metric("vllm:prompt_tokens_by_source_total", "source=\"local_compute\""), before + prompt);
  EXPECT_EQ(server.metric("kvasir_step_tokens_total", "kind=\"prefill\""), before + prompt) << "and computed once";
  for (const char* none : {"vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "vllm:prompt_tokens_cached_total",
                           "vllm:prompt_tokens_recomputed_total", "vllm:num_preemptions_total"}) {
    EXPECT_EQ(server.metric(none), 0) << none << ": nothing is shared or put back";
  }
}

}  // namespace
}  // namespace kvasir::server::app_test

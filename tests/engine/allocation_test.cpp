// Nothing is allocated on the step path after warm-up: every operator new of the process is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/tiny_engine.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {
std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment = 0) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#endif
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"   // new is malloc and delete is free: they match, here below
void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace kvasir::engine::test {
namespace {

TEST(Allocation, NoneInSteps) {
  PoolConfig config = pool_of(128);
  config.threads = 2;
  config.max_batched_tokens = 16;
  auto engine = make_engine(shared_gqa(), config, true);
  std::vector<TokenOutput> out;
  out.reserve(config.max_batched_tokens);
  const auto submit = [&](std::uint64_t seed) {
    GenerateRequest request = request_of(random_prompt(90 + static_cast<std::uint32_t>(seed), seed), 40);
    request.ignore_eos = true;
    request.stop = {"a stop string", "another"};
    if (seed % 2 == 0) request.sampling = {.temperature = 0.8f, .top_k = 50, .top_p = 0.9f, .seed = seed, .logprobs = 5};
    if (seed % 3 != 0) {
      request.prompt_logprobs = 3;
      request.sampling.presence_penalty = 0.5f;
      request.sampling.repetition_penalty = 1.2f;
      request.sampling.logit_bias = {{7, 1.5f}};
      request.sampling.min_tokens = 10;
      request.sampling.stop_token_ids = {9, 8};
      request.sampling.bad_words = {{4, 5, 6}, {7}};
    }
    engine->submit(request).value();
  };
  submit(0);
  while (engine->has_work()) engine->step(out);   // warm-up

  for (std::uint64_t seed = 1; seed <= 6; ++seed) submit(seed);
  std::uint64_t prefill = 0, decode = 0, mixed = 0;
  std::string where;
  while (engine->has_work()) {
    const std::uint64_t before = allocations.load();
    const StepReport report = engine->step(out);
    const std::uint64_t count = allocations.load() - before;
    EXPECT_EQ(count, 0u) << "step with " << report.prefill_tokens << " prompt and " << report.decode_tokens << " answer rows";
    (report.prefill_tokens == 0 ? decode : report.decode_tokens == 0 ? prefill : mixed) += 1;
  }
  EXPECT_GT(prefill, 0u);
  EXPECT_GT(decode, 0u);
  EXPECT_GT(mixed, 0u);
}

TEST(Allocation, TheCounterCounts) {
  const std::uint64_t before = allocations.load();
  const auto p = std::make_unique<std::uint64_t>(before);
  EXPECT_GT(allocations.load(), *p);
}

}  // namespace
}  // namespace kvasir::engine::test

#endif

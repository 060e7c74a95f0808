#include "platform/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kvasir::platform {
namespace {

TEST(ThreadPool, EveryThreadRunsOnceARegion) {
  for (const std::size_t threads : {1u, 2u, 3u}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.threads(), threads);
    std::vector<int> runs(threads, 0);  // each element is one thread's own
    for (int region = 1; region <= 40; ++region) {
      pool.run([&](std::size_t thread) { ++runs[thread]; });
      for (const int count : runs) ASSERT_EQ(count, region) << "run() returns when all are done";
    }
  }
}

TEST(ThreadPool, CallerIsThreadZero) {
  ThreadPool pool(3);
  std::vector<std::thread::id> ids(3);
  pool.run([&](std::size_t thread) { ids[thread] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[1]);
}

TEST(ThreadPool, WhatTheCallerWroteIsSeenByTheRegion) {
  ThreadPool pool(3);
  std::vector<std::size_t> input(3), output(3);
  for (std::size_t region = 0; region < 50; ++region) {
    for (std::size_t& value : input) value = region;
    pool.run([&](std::size_t thread) { output[thread] = input[thread] + thread; });
    for (std::size_t t = 0; t < 3; ++t) ASSERT_EQ(output[t], region + t);
  }
}

TEST(ThreadPool, SleepingThreadsAreWoken) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // far longer than they spin
    pool.run([&](std::size_t) { ++runs; });
  }
  EXPECT_EQ(runs, 15);
}

TEST(ThreadPool, EndsWithoutEverHavingRun) {
  for (int i = 0; i < 20; ++i) ThreadPool pool(3);
}

TEST(ThreadPool, NoThreadAborts) { EXPECT_DEATH(ThreadPool(0), "at least its caller"); }

TEST(ThreadPool, PartsCoverTheRangeEvenly) {
  for (std::size_t count = 0; count < 40; ++count)
    for (std::size_t threads = 1; threads < 9; ++threads) {
      std::size_t next = 0;
      for (std::size_t t = 0; t < threads; ++t) {
        const Range range = part(count, t, threads);
        ASSERT_EQ(range.begin, next);
        ASSERT_GE(range.end - range.begin, count / threads);
        ASSERT_LE(range.end - range.begin, count / threads + 1);
        next = range.end;
      }
      ASSERT_EQ(next, count);
    }
}

}  // namespace
}  // namespace kvasir::platform

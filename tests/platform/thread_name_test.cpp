#include "platform/thread_name.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <string>
#include <thread>

namespace kvasir::platform {
namespace {

TEST(ThreadName, IsWhatTheSystemShows) {
  std::string shown;
  std::thread thread([&shown] {
    name_this_thread("kv-step");
    std::array<char, 16> name{};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    shown = name.data();
  });
  thread.join();
  EXPECT_EQ(shown, "kv-step");
}

TEST(ThreadNameDeathTest, TooLongIsAProgrammersError) {
  EXPECT_DEATH(name_this_thread("a-name-too-long-for-it"), "15 characters");
}

}  // namespace
}  // namespace kvasir::platform

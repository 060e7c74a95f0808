#include "platform/thread_name.hpp"

#include <pthread.h>

#include <cstring>

#include "base/check.hpp"

namespace kvasir::platform {

void name_this_thread(const char* name) {
  KV_CHECK(std::strlen(name) <= 15, "the system keeps 15 characters of a name");
  pthread_setname_np(pthread_self(), name);
}

}  // namespace kvasir::platform

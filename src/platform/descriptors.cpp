#include "platform/descriptors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>

namespace kvasir::platform {

Result<DescriptorLimit> descriptor_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{ErrorCode::io, fmt::format("cannot read the limit of open files: {}", std::strerror(errno))};
  }
  return DescriptorLimit{limit.rlim_cur, limit.rlim_max};
}

Status set_descriptor_limit(std::uint64_t soft) {
  KV_ASSIGN(const DescriptorLimit now, descriptor_limit());
  const rlimit wanted = {.rlim_cur = soft, .rlim_max = now.hard};
  if (setrlimit(RLIMIT_NOFILE, &wanted) != 0) {
    return Error{ErrorCode::io, fmt::format("cannot set the limit of open files to {}: {}; the hard limit is {}", soft,
                                            std::strerror(errno), now.hard)};
  }
  return ok_status();
}

std::optional<std::uint64_t> open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator listing("/proc/self/fd", error);
  if (error) return std::nullopt;
  const auto count = std::distance(begin(listing), end(listing));
  return static_cast<std::uint64_t>(count) - 1;   // the listing's own
}

}  // namespace kvasir::platform

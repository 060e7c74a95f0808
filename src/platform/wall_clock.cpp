#include "platform/wall_clock.hpp"

#include <fmt/format.h>
#include <time.h>

#include <array>
#include <chrono>

namespace kvasir::platform {
namespace {

struct Split {
  std::tm calendar = {};
  int milliseconds = 0;
};

Split split(std::int64_t unix_milliseconds) {
  std::int64_t seconds = unix_milliseconds / 1000;
  std::int64_t rest = unix_milliseconds % 1000;
  if (rest < 0) {   // before 1970
    rest += 1000;
    --seconds;
  }
  Split result;
  const std::time_t time = static_cast<std::time_t>(seconds);
  gmtime_r(&time, &result.calendar);
  result.milliseconds = static_cast<int>(rest);
  return result;
}

}  // namespace

std::int64_t unix_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

std::string utc_timestamp(std::int64_t unix_milliseconds) {
  const auto [t, ms] = split(unix_milliseconds);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                     t.tm_min, t.tm_sec, ms);
}

// Not strftime: the protocol's names of days and months are English whatever the locale.
std::string http_date(std::int64_t unix_milliseconds) {
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm t = split(unix_milliseconds).calendar;
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[static_cast<std::size_t>(t.tm_wday)], t.tm_mday,
                     kMonths[static_cast<std::size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

}  // namespace kvasir::platform

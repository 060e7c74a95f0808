// Numbers for people: counts, durations and rates in a few characters. Pure functions, any thread.
// Sizes in bytes are base/units.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::report {

// "134,515,008"
std::string format_count(std::uint64_t count);
// "1 row", "0 rows", "4,096 rows": a noun whose plural has an s.
std::string format_counted(std::uint64_t count, std::string_view noun);

// "12.3 us", "45.6 ms", "1.23 s", "2 min 05 s"; "-" for a negative or non-finite duration. Unit of the argument: seconds.
std::string format_seconds(double seconds);

// "7.42", "98.1", "1,241": three significant digits or all whole ones; "-" where there is no rate (zero or less, or not finite).
std::string format_rate(double per_second);

}  // namespace kvasir::report

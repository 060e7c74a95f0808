// The instruction classes that kernels are written for, and which of them this machine has.
// Thread rule: pure after the first call; any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace kvasir::platform {

enum class Isa { scalar, avx2, avx512 };  // avx2 means AVX2 + FMA + F16C; avx512 means F, BW, DQ, VL and VNNI

std::string_view to_string(Isa isa);
std::optional<Isa> parse_isa(std::string_view name);

// Whether processor and operating system both offer the class.
bool has_isa(Isa isa);

// All classes this machine has, scalar first.
std::vector<Isa> available_isas();

// The best class, or the one that `forced` (the value of KVASIR_ISA, may be null) names.
// Errors: usage if the name is unknown or the machine lacks the class; the message lists what it has.
Result<Isa> choose_isa(const char* forced);

}  // namespace kvasir::platform

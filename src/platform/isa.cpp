#include "platform/isa.hpp"

#include <cpuid.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace kvasir::platform {
namespace {

struct Name {
  std::string_view name;
  Isa isa;
};
constexpr std::array kNames = {Name{"scalar", Isa::scalar}, Name{"avx2", Isa::avx2}, Name{"avx512", Isa::avx512}};

// clang's __builtin_cpu_supports does not know f16c. The registers it needs are those of avx2, checked beside it.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

std::string_view to_string(Isa isa) {
  for (const Name& n : kNames)
    if (n.isa == isa) return n.name;
  return "?";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (const Name& n : kNames)
    if (n.name == name) return n.isa;
  return std::nullopt;
}

bool has_isa(Isa isa) {
  __builtin_cpu_init();  // also checks that the operating system saves the registers
  switch (isa) {
    case Isa::scalar: return true;
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    case Isa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni") && has_isa(Isa::avx2);
  }
  return false;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> found;
  for (const Name& n : kNames)
    if (has_isa(n.isa)) found.push_back(n.isa);
  return found;
}

Result<Isa> choose_isa(const char* forced) {
  const std::vector<Isa> found = available_isas();
  if (forced == nullptr || *forced == '\0') return found.back();
  std::vector<std::string_view> names;
  for (Isa isa : found) names.push_back(to_string(isa));
  const std::optional<Isa> wanted = parse_isa(forced);
  if (wanted && has_isa(*wanted)) return *wanted;
  return Error{ErrorCode::usage, fmt::format("KVASIR_ISA={}: {}; this machine has {}", forced,
                                             wanted ? "this machine lacks it" : "no such instruction class",
                                             fmt::join(names, ", "))};
}

}  // namespace kvasir::platform

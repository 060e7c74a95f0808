#include "artifact/tensor_type.hpp"

#include <fmt/format.h>

#include <array>

namespace kvasir::artifact {
namespace {

struct Traits {
  TensorType type;
  std::string_view name;
  std::uint32_t elements;  // of one block
  std::uint32_t bytes;     // of one block
};

constexpr std::array kTraits = {
    Traits{TensorType::f32, "F32", 1, 4},
    Traits{TensorType::f16, "F16", 1, 2},
    Traits{TensorType::bf16, "BF16", 1, 2},
    Traits{TensorType::q4_0, "Q4_0", 32, 2 + 16},
    Traits{TensorType::q4_1, "Q4_1", 32, 2 + 2 + 16},
    Traits{TensorType::q5_0, "Q5_0", 32, 2 + 4 + 16},
    Traits{TensorType::q5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
    Traits{TensorType::q8_0, "Q8_0", 32, 2 + 32},
    Traits{TensorType::q2_k, "Q2_K", 256, 16 + 64 + 2 + 2},
    Traits{TensorType::q3_k, "Q3_K", 256, 32 + 64 + 12 + 2},
    Traits{TensorType::q4_k, "Q4_K", 256, 2 + 2 + 12 + 128},
    Traits{TensorType::q5_k, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    Traits{TensorType::q6_k, "Q6_K", 256, 128 + 64 + 16 + 2},
    Traits{TensorType::iq4_nl, "IQ4_NL", 32, 2 + 16},
    Traits{TensorType::iq4_xs, "IQ4_XS", 256, 2 + 2 + 4 + 128},
};

// The types ggml numbers that are not offered here, so that a refusal can call them by name.
struct ForeignType {
  std::uint32_t number;
  std::string_view name;
};
constexpr std::array kForeign = {
    ForeignType{4, "Q4_2"},      ForeignType{5, "Q4_3"},      ForeignType{9, "Q8_1"},      ForeignType{15, "Q8_K"},
    ForeignType{16, "IQ2_XXS"},  ForeignType{17, "IQ2_XS"},   ForeignType{18, "IQ3_XXS"},  ForeignType{19, "IQ1_S"},
    ForeignType{21, "IQ3_S"},    ForeignType{22, "IQ2_S"},    ForeignType{24, "I8"},       ForeignType{25, "I16"},
    ForeignType{26, "I32"},      ForeignType{27, "I64"},      ForeignType{28, "F64"},      ForeignType{29, "IQ1_M"},
    ForeignType{31, "Q4_0_4_4"}, ForeignType{32, "Q4_0_4_8"}, ForeignType{33, "Q4_0_8_8"}, ForeignType{34, "TQ1_0"},
    ForeignType{35, "TQ2_0"},    ForeignType{39, "MXFP4"},    ForeignType{40, "NVFP4"},    ForeignType{41, "Q1_0"},
};

const Traits& traits(TensorType type) {
  for (const Traits& t : kTraits)
    if (t.type == type) return t;
  check_failed(__FILE__, __LINE__, "type", "a tensor type is one of the enumerators");
}

std::string offered() {
  std::string names;
  for (const Traits& t : kTraits) names += fmt::format("{}{}", names.empty() ? "" : ", ", t.name);
  return names;
}

}  // namespace

std::string_view to_string(TensorType type) { return traits(type).name; }
std::uint32_t block_elements(TensorType type) { return traits(type).elements; }
std::uint32_t block_bytes(TensorType type) { return traits(type).bytes; }

Result<TensorType> tensor_type_from_ggml(std::uint32_t number) {
  for (const Traits& t : kTraits)
    if (static_cast<std::uint32_t>(t.type) == number) return t.type;
  for (const ForeignType& f : kForeign)
    if (f.number == number)
      return Error{ErrorCode::unsupported, fmt::format("tensor type {} is not offered; offered are {}", f.name, offered())};
  return Error{ErrorCode::unsupported, fmt::format("tensor type number {} is unknown; offered are {}", number, offered())};
}

}  // namespace kvasir::artifact

// The memory a model will need, before anything is loaded: what `kvasir plan` tells, for programs.
//
// Thread rule: plan_memory() may be called from several threads at once.
// Errors: returned, never thrown. The message names the option or field, its value and what would be valid.
// For the models that Kvasir runs the bytes are those that it allocates.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kvasir::api {

struct PlanRequest {
  std::string model = {};                   // a GGUF file (its header is read), a config.json or its folder, or a known name
  std::vector<std::string> set = {};        // other values for fields of the model: "kv_heads=8"
  std::string kv_cache_dtype = "f16";       // f32, f16, bf16, fp8_e4m3, fp8_e5m2, int8, int4; K and V apart: "int8/f16"
  std::uint64_t requests = 1;               // sequences held at once, 1 to 2^20
  std::uint64_t length = 0;                 // tokens of each, prompt and answer; 0 = the model's context
  std::uint64_t memory = 0;                 // bytes to fit into; 0 = not asked
  std::uint32_t block_size = 32;            // tokens of a cache block: 16, 32, 64, 128 or 256
  std::uint32_t max_num_batched_tokens = 512;   // of one step
  std::uint32_t threads = 2;                // of the engine, 1 to 1,024
};

struct PlanLine {
  std::string name;        // "weights.attention", "kv.full", "activations" ...: stable
  std::uint64_t bytes = 0;
  std::string how;         // the sum in words
  std::string field;       // which field of the model or which option said so
};

// What PlanRequest::memory makes of it.
struct PlanFit {
  bool fits = false;
  std::uint64_t max_sequences = 0;    // of that length; 0: not even one
  std::uint64_t longest_length = 0;   // tokens, of that many sequences; 0: not even one
};

struct PlanAnswer {
  std::string model, family;
  std::uint64_t length = 0;                 // as asked, or the model's context
  std::vector<PlanLine> lines;              // they add up to total_bytes
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;               // blocks of all sequences
  std::uint64_t kv_payload_bytes = 0;       // what rows take in them
  std::uint64_t kv_bytes_per_token = 0;     // one more token of a long sequence
  std::uint64_t state_bytes = 0;            // recurrent layers, all sequences
  std::uint64_t total_bytes = 0;
  std::optional<PlanFit> fit;               // if memory was given
  std::vector<std::string> warnings;
};

enum class PlanErrorKind {
  usage,         // an option's value
  bad_input,     // a file or a name that cannot be used, or a size beyond what can be counted
  unsupported,   // well-formed but not offered
  failed,        // the system refused, or something broke
};

struct PlanError {
  PlanErrorKind kind = PlanErrorKind::failed;
  std::string message;
};

std::variant<PlanAnswer, PlanError> plan_memory(const PlanRequest& request);

}  // namespace kvasir::api

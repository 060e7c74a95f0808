// From a path to what a command works with. Each step's errors say what is wrong with the path before what is wrong with
// the file.
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "artifact/gguf.hpp"
#include "base/result.hpp"
#include "cli/engine_flags.hpp"
#include "model/model.hpp"
#include "text/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace kvasir::cli {

// Errors: bad_input if the path is missing or a directory; GgufFile::open's.
Result<artifact::GgufFile> open_model_file(const std::string& path);

inline constexpr std::size_t kMaxTextBytes = 256 << 20;   // of a text that a command works through

// A whole file, byte for byte. Errors: bad_input if it is missing, a directory or larger than kMaxTextBytes; io.
Result<std::string> read_text_file(const std::string& path);

// All that a stream still holds; `name` is what messages call it. Errors: bad_input beyond `most` bytes; io.
Result<std::string> read_all(std::istream& in, const std::string& name, std::size_t most);

struct LoadedModel {
  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;   // none: a base model
  double load_s = 0;                 // tokenizer and weights
  std::uint64_t heap_before_bytes = 0;   // measured: resident before the weights, pages of files apart: tokenizer, libraries' data
  std::shared_ptr<const artifact::GgufFile> file;   // what it was loaded from, if asked for: its pages stay mapped
};

// Measured, bytes. runtime: what the weights and the engine did not bring: heap_before_bytes, and the pages of program,
// libraries and mapped files, which come as they are used. 0 where it cannot be read.
struct ProcessMemory {
  std::uint64_t runtime = 0, resident = 0;
};
ProcessMemory process_memory(const LoadedModel& loaded);

enum class AfterLoad { close_file, keep_file };

// Tokenizer first, then weights. Errors: of KVASIR_ISA, of the file, of Tokenizer::from_gguf, ChatTemplate::from_gguf and
// Model::load.
Result<LoadedModel> load_model(const std::string& path, const EngineFlags& flags, AfterLoad after = AfterLoad::close_file);

}  // namespace kvasir::cli

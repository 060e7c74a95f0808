#include "cli/loading.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/units.hpp"
#include "platform/memory.hpp"

namespace kvasir::cli {
namespace {

// What is wrong with a path before anything is read from it.
Status check_file(const std::string& path, const char* what) {
  std::error_code failure;
  const std::filesystem::file_status status = std::filesystem::status(path, failure);
  if (!std::filesystem::exists(status)) {
    return Error{ErrorCode::bad_input, fmt::format("{} '{}' does not exist", what, path)};
  }
  if (std::filesystem::is_directory(status)) {
    return Error{ErrorCode::bad_input, fmt::format("{} '{}' is a directory; a file is needed", what, path)};
  }
  return ok_status();
}

}  // namespace

Result<artifact::GgufFile> open_model_file(const std::string& path) {
  KV_TRY(check_file(path, "model file"));
  return artifact::GgufFile::open(path);
}

Result<std::string> read_text_file(const std::string& path) {
  KV_TRY(check_file(path, "file"));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::io, fmt::format("cannot read '{}'", path)};
  return read_all(file, "'" + path + "'", kMaxTextBytes);
}

Result<std::string> read_all(std::istream& in, const std::string& name, std::size_t most) {
  std::string text;
  std::vector<char> piece(64 << 10);
  do {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most)
      return Error{ErrorCode::bad_input, fmt::format("{} has more than {}, the most that is read", name, format_bytes(most))};
  } while (in);
  if (in.bad()) return Error{ErrorCode::io, fmt::format("cannot read {}", name)};
  return text;
}

ProcessMemory process_memory(const LoadedModel& loaded) {
  const Result<std::uint64_t> resident = platform::process_resident_bytes(), of_files = platform::process_file_bytes();
  if (!resident.ok() || !of_files.ok()) return {};
  return {loaded.heap_before_bytes + *of_files, *resident};
}

Result<LoadedModel> load_model(const std::string& path, const EngineFlags& flags, AfterLoad after) {
  const auto begin = std::chrono::steady_clock::now();
  KV_ASSIGN(const model::ModelOptions options, flags.model_options());
  LoadedModel loaded;
  {
    KV_ASSIGN(artifact::GgufFile file, open_model_file(path));
    KV_ASSIGN(text::Tokenizer tokenizer, text::Tokenizer::from_gguf(file));
    loaded.tokenizer = std::make_shared<const text::Tokenizer>(std::move(tokenizer));
    if (file.find("tokenizer.chat_template") != nullptr) {
      KV_ASSIGN(loaded.chat_template, text::ChatTemplate::from_gguf(file));
    }
  }
  // The file is closed in between, so that its mapped pages are not counted as the program's own.
  KV_ASSIGN(const std::uint64_t resident, platform::process_resident_bytes());
  KV_ASSIGN(const std::uint64_t of_files, platform::process_file_bytes());
  loaded.heap_before_bytes = resident - of_files;
  KV_ASSIGN(artifact::GgufFile file, open_model_file(path));
  KV_ASSIGN(loaded.model, model::Model::load(file, options));
  if (after == AfterLoad::keep_file) loaded.file = std::make_shared<const artifact::GgufFile>(std::move(file));
  loaded.load_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return loaded;
}

}  // namespace kvasir::cli

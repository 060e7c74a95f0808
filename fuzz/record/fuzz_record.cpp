// Drives the reader of artifact records with hostile files. What must hold: a refusal names the source; what is accepted
// writes back to the same record; no record differs from itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "artifact/record_diff.hpp"
#include "artifact/record_json.hpp"
#include "base/check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir;  // NOLINT(google-build-using-namespace)
  const auto record = artifact::parse_record({reinterpret_cast<const char*>(data), size}, "fuzz.json");
  if (!record.ok()) {
    KV_CHECK(record.error().message.find("fuzz.json") != std::string::npos, "a refusal names the file");
    return 0;
  }
  const auto text = artifact::record_text(*record);
  if (!text.ok()) return 0;   // white space made it fit
  const auto again = artifact::parse_record(*text, "again.json");
  KV_CHECK(again.ok(), "what is written is read");
  KV_CHECK(again->numeric.id() == record->numeric.id() && again->layout.id() == record->layout.id(), "with the same ids");
  const auto diff = artifact::diff_records(*record, *again);
  KV_CHECK(diff.differences.empty(), "and without a difference");
  return 0;
}

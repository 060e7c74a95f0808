// Ids: one hash over everything that decides something, each part under its name. The numeric id is such a hash over what
// decides the bits of a logit; the layout id over what decides where bytes lie. Who computes an id lists the parts; here
// is how a list becomes an id, so that equal lists give equal ids whatever the order they were filled in. The artifact
// record is both ids with all they were made from, and the memory planned: what is written down of a launch.
// Thread rule: values; one thread fills one.
//
// Canonical form, hashed with SHA-256: the text "kvasir-id-1" and a zero byte, then for each part in byte order of the
// keys: key length (uint64, little endian), key, value length, value. Lengths make every list's bytes its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/gguf.hpp"
#include "base/hash.hpp"

namespace kvasir::artifact {

using TextMap = std::map<std::string, std::string, std::less<>>;

class IdParts {
 public:
  // REQUIRES: the key is not empty and was not added before (checked): a part counted twice is a mistake.
  IdParts& add(std::string_view key, std::string_view value);
  IdParts& add(std::string_view key, std::uint64_t value);   // in decimal
  IdParts& add(std::string_view key, double value);          // exact, as a hexadecimal float
  IdParts& add(std::string_view key, const Sha256Digest& value);

  // Key to value, in byte order of the keys: what a record shows beside the id.
  const TextMap& parts() const { return parts_; }
  Sha256Digest id() const;

 private:
  TextMap parts_;
};

// An id, or what it lacks: part -> why nobody can say it (no weights, no engine that runs the model).
struct RecordedId {
  IdParts parts;
  TextMap undetermined;
  // None while a part is undetermined: an id of fewer parts would be another id.
  std::optional<Sha256Digest> id() const;
};

struct CapacityLine {
  std::string name;            // as a plan's lines: "weights.attention", "kv.full" ...
  std::uint64_t bytes = 0;
  bool operator==(const CapacityLine&) const = default;
};

struct ArtifactRecord {
  std::string model_name, architecture;   // for people; the numeric id has the weights' hash
  std::string engine_revision;            // the program's version
  RecordedId numeric, layout;
  TextMap settings;                       // what is in neither id: machine, threads, batch, lengths
  std::vector<CapacityLine> capacity;
};

// SHA-256 of every byte of the file, header included: what sha256sum prints. Reads the whole file, a second or so for
// each GB once it is in memory; so it is computed on demand, where an id is needed, and nothing stands in for it.
Sha256Digest content_hash(const GgufFile& file);
// The same in steps: `go_on` hears the bytes done so far; none if it says no.
std::optional<Sha256Digest> content_hash(const GgufFile& file, const std::function<bool(std::uint64_t done)>& go_on);

// SHA-256 of what makes text into token ids: every metadata key "tokenizer.*" with its value, but for chat templates, which
// make texts. In byte order of the keys, each value with its kind and length.
Sha256Digest tokenizer_hash(const GgufFile& file);

}  // namespace kvasir::artifact

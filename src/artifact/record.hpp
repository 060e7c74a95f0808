// Ids: one hash over everything that decides something, each part under its name. The numeric id is such a hash over what
// decides the bits of a logit; the layout id over what decides where bytes lie. Who computes an id lists the parts; here
// is how a list becomes an id, so that equal lists give equal ids whatever the order they were filled in.
// Thread rule: a value; one thread fills it.
//
// Canonical form, hashed with SHA-256: the text "kvasir-id-1" and a zero byte, then for each part in byte order of the
// keys: key length (uint64, little endian), key, value length, value. Lengths make every list's bytes its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "artifact/gguf.hpp"
#include "base/hash.hpp"

namespace kvasir::artifact {

class IdParts {
 public:
  // REQUIRES: the key is not empty and was not added before (checked): a part counted twice is a mistake.
  IdParts& add(std::string_view key, std::string_view value);
  IdParts& add(std::string_view key, std::uint64_t value);   // in decimal
  IdParts& add(std::string_view key, double value);          // exact, as a hexadecimal float
  IdParts& add(std::string_view key, const Sha256Digest& value);

  // Key to value, in byte order of the keys: what a record shows beside the id.
  const std::map<std::string, std::string, std::less<>>& parts() const { return parts_; }
  Sha256Digest id() const;

 private:
  std::map<std::string, std::string, std::less<>> parts_;
};

// SHA-256 of every byte of the file, header included: what sha256sum prints. Reads the whole file, a second or so for
// each GB once it is in memory; so it is computed on demand, where an id is needed, and nothing stands in for it.
Sha256Digest content_hash(const GgufFile& file);

}  // namespace kvasir::artifact

// Who may do what: API keys, each with its tenant and perhaps the right to change the server's state.
// Keys are kept as SHA-256 digests and compared in constant time, every one of them, so neither the time of a refusal nor
// a core dump shows a key. No message names a key's text.
// Thread rule: immutable after parse(); any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "server/http/message.hpp"

namespace kvasir::server {

enum class Access {
  open,    // anyone: health, metrics where switched so
  user,    // any key, or anyone where no keys are configured
  admin,   // a key with the admin right: routes that change the server's state
};

struct Identity {
  std::string tenant;
  bool admin = false;
};

class KeyRing {
 public:
  KeyRing() = default;   // no keys: user routes are open, admin routes are shut

  // One key a line: "KEY", "TENANT KEY" or "TENANT KEY admin"; blank lines and lines that begin with '#' are skipped.
  // A key alone belongs to tenant "default". `origin` names the text in messages ("api-key-file /etc/kvasir/keys").
  // Errors: bad_input with origin and line number: a key under 8 or over 512 characters or with others than printable
  // ASCII, a tenant outside [A-Za-z0-9._-]{1,64}, an unknown right, a key given twice.
  Status add(std::string_view text, const std::string& origin);
  // add() of a file's content. Errors: io; bad_input, also for a file without a key.
  Status add_file(const std::string& path);

  bool empty() const { return keys_.empty(); }
  bool has_admin() const;

  // Whose key this is, or none.
  std::optional<Identity> identify(std::string_view key) const;

 private:
  struct Key {
    Sha256Digest digest;
    Identity identity;
  };
  std::vector<Key> keys_;
};

// The key a request presents: "Authorization: Bearer KEY", or "x-api-key: KEY". None if there is neither, or more than
// one of a kind.
std::optional<std::string_view> presented_key(const HeaderFields& headers);

}  // namespace kvasir::server

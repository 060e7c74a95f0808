// How many requests of one tenant may be under way at once. The tenant is the server's own word for a key, never
// something that the client says.
// Thread rule: any thread.
// Invariants: a tenant without requests is in no table; slots may outlive nothing but are given back on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace kvasir::server {

class TenantLimits {
  struct Table {
    std::mutex mutex;
    std::unordered_map<std::string, std::uint32_t> active;
  };

 public:
  // Of one request; gives its place back when it goes.
  class Slot {
   public:
    Slot() = default;
    Slot(std::shared_ptr<Table> table, std::string tenant) : table_(std::move(table)), tenant_(std::move(tenant)) {}
    Slot(Slot&& other) noexcept = default;
    Slot& operator=(Slot&& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(tenant_, other.tenant_);
      return *this;
    }
    ~Slot();

   private:
    std::shared_ptr<Table> table_;
    std::string tenant_;
  };

  // most: requests of one tenant at once; 0 = no limit.
  explicit TenantLimits(std::uint32_t most) : most_(most), table_(std::make_shared<Table>()) {}

  std::uint32_t most() const { return most_; }
  // None: the tenant has as many as it may.
  std::optional<Slot> take(const std::string& tenant);

 private:
  const std::uint32_t most_;
  std::shared_ptr<Table> table_;
};

}  // namespace kvasir::server

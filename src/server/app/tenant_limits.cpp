#include "server/app/tenant_limits.hpp"

namespace kvasir::server {

TenantLimits::Slot::~Slot() {
  if (table_ == nullptr) return;
  const std::scoped_lock lock(table_->mutex);
  const auto at = table_->active.find(tenant_);
  if (--at->second == 0) table_->active.erase(at);
}

std::optional<TenantLimits::Slot> TenantLimits::take(const std::string& tenant) {
  if (most_ == 0) return Slot();
  const std::scoped_lock lock(table_->mutex);
  std::uint32_t& active = table_->active[tenant];
  if (active >= most_) return std::nullopt;
  ++active;
  return Slot(table_, tenant);
}

}  // namespace kvasir::server

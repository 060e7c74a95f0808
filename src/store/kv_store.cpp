#include "store/kv_store.hpp"

#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace kvasir::store {
namespace {

// All bits set is a NaN in every float format of a row: f32, f16 and bf16.
constexpr int kPoisonByte = 0xff;

}  // namespace

Result<KvStore> KvStore::create(const KvStoreConfig& config) {
  KV_ASSIGN(StorePlan plan, plan_store(config.geometry, config.capacity_bytes, config.minimum_rows));
  KV_ASSIGN(Arena arena, Arena::reserve(plan.arena_bytes, config.arena));
  KvStore store(std::move(plan), std::move(arena), config.poison_free);
  if (config.populate_at_start || store.groups() > 1) KV_TRY(store.populate_all());
  return store;
}

KvStore::KvStore(StorePlan plan, Arena arena, bool poison)
    : plan_(std::move(plan)), arena_(std::move(arena)), populated_(plan_.groups.size(), 0), poison_(poison) {
  views_.reserve(plan_.groups.size());
  for (const GroupPlan& g : plan_.groups) {
    format::PagedKvView view;
    view.blocks = {.base = arena_.data(),
                   .superpage_bytes = plan_.superpage_bytes,
                   .blocks_per_superpage = g.blocks_per_superpage,
                   .block_bytes = g.layout.block_bytes()};
    view.layout = g.layout;
    views_.push_back(view);
  }
}

// The whole arena at once, tails of superpages too: one check of what is there, so it is all or nothing.
Status KvStore::populate_all() {
  KV_TRY(arena_.populate(0, arena_.size()));
  if (poison_) std::memset(arena_.data(), kPoisonByte, arena_.size());
  for (std::uint32_t g = 0; g < groups(); ++g) populated_[g] = blocks(g);
  return ok_status();
}

Status KvStore::populate_blocks(std::uint32_t group, std::uint32_t count) {
  KV_CHECK(group < groups() && count <= blocks(group), "only blocks that exist are populated");
  KV_CHECK(groups() == 1 || count <= populated_[group], "what groups share is populated as a whole");
  if (count <= populated_[group]) return ok_status();
  std::byte* const begin = address(group, static_cast<BlockId>(populated_[group]));
  std::byte* const end = address(group, static_cast<BlockId>(count - 1)) + views_[group].blocks.block_bytes;
  KV_TRY(arena_.populate(static_cast<std::uint64_t>(begin - arena_.data()),
                         static_cast<std::uint64_t>(end - arena_.data())));
  if (poison_) std::memset(begin, kPoisonByte, static_cast<std::size_t>(end - begin));
  populated_[group] = count;
  return ok_status();
}

std::byte* KvStore::address(std::uint32_t group, BlockId block) const {
  KV_CHECK(group < groups() && static_cast<std::uint32_t>(block) < blocks(group), "no such block in the store");
  return views_[group].blocks.address(block);
}

void KvStore::copy_block(std::uint32_t group, BlockId from, BlockId to) {
  KV_CHECK(from != to, "a block is not copied onto itself");
  std::memcpy(populated_address(group, to), populated_address(group, from), views_[group].blocks.block_bytes);
}

void KvStore::poison_block(std::uint32_t group, BlockId block) {
  if (poison_) std::memset(populated_address(group, block), kPoisonByte, views_[group].blocks.block_bytes);
}

std::byte* KvStore::populated_address(std::uint32_t group, BlockId block) const {
  std::byte* const place = address(group, block);
  KV_CHECK(static_cast<std::uint32_t>(block) < populated_[group], "a block is populated before it is used");
  return place;
}

}  // namespace kvasir::store

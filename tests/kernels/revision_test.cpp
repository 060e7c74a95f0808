// The kernel revision and the committed hashes of logits change together.
#include "kernels/revision.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace kvasir::kernels {
namespace {

using Json = nlohmann::ordered_json;

Json read(const std::string& name) {
  std::ifstream file(std::string(KVASIR_SOURCE_DIR "/tests/data/continuation/") + name);
  return Json::parse(file, nullptr, false);
}

TEST(KernelRevision, IsTheNewestWithHashes) {
  const Json revisions = read("revisions.json");
  ASSERT_TRUE(revisions.is_object());
  EXPECT_EQ(revisions.size(), kKernelRevision) << "a group for each revision, from 1";
  std::uint32_t number = 0;
  for (const auto& [name, hashes] : revisions.items()) EXPECT_EQ(name, std::to_string(++number)) << hashes.size();
}

TEST(KernelRevision, GrowsWhenBitsChange) {
  const Json hashes = read("hashes.json"), revisions = read("revisions.json");
  ASSERT_FALSE(hashes.empty());
  const Json& now = revisions[std::to_string(kKernelRevision)];
  EXPECT_EQ(now, hashes) << "hashes of logits changed: add one to kKernelRevision and a group to revisions.json";
}

TEST(KernelRevision, GrowsForNothingElse) {
  const Json revisions = read("revisions.json");
  for (std::uint32_t number = 2; number <= kKernelRevision; ++number) {
    const Json &older = revisions[std::to_string(number - 1)], &newer = revisions[std::to_string(number)];
    bool differs = false;
    for (const auto& [name, hash] : older.items()) differs = differs || !newer.contains(name) || newer[name] != hash;
    EXPECT_TRUE(differs) << "revision " << number << " has the bits of the one before";
  }
}

}  // namespace
}  // namespace kvasir::kernels

#include "platform/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace kvasir::platform {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(AddressRange, IsAlignedAndCostsNothingUntilPopulated) {
  AddressRange range = AddressRange::reserve(64 * kMiB + 1).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(range.data()) % kHugePageBytes, 0u);
  EXPECT_EQ(range.size(), 64 * kMiB + page_bytes());
  EXPECT_EQ(range.resident(0, range.size()), 0u);
}

TEST(AddressRange, PopulatedPagesAreResidentAndKeepTheirContent) {
  AddressRange range = AddressRange::reserve(8 * kMiB).value();
  range.data()[kMiB] = std::byte{42};
  ASSERT_TRUE(range.populate(kMiB - 100, 2 * kMiB).ok());
  EXPECT_EQ(range.resident(kMiB - 100, 2 * kMiB), 2 * kMiB + page_bytes());
  EXPECT_EQ(range.resident(4 * kMiB, 4 * kMiB), 0u);
  EXPECT_EQ(range.data()[kMiB], std::byte{42});
  ASSERT_TRUE(range.populate(0, 0).ok());
  EXPECT_DEATH(static_cast<void>(range.populate(8 * kMiB, 1)), "inside the range");
}

TEST(AddressRange, PopulatingRaisesTheProcess) {
  AddressRange range = AddressRange::reserve(32 * kMiB).value();
  const std::uint64_t before = process_resident_bytes().value();
  ASSERT_TRUE(range.populate(0, range.size()).ok());
  EXPECT_GE(process_resident_bytes().value(), before + 31 * kMiB);
}

TEST(AddressRange, ReleasedPagesAreGivenBackAndReadZero) {
  AddressRange range = AddressRange::reserve(4 * kMiB).value();
  std::memset(range.data(), 1, range.size());
  range.release(100, 2 * kMiB);
  EXPECT_EQ(range.data()[99], std::byte{1}) << "the page it shares with its neighbour stays";
  EXPECT_EQ(range.resident(page_bytes(), 2 * kMiB - page_bytes()), 0u);
  EXPECT_EQ(range.data()[kMiB], std::byte{0});
  EXPECT_EQ(range.data()[3 * kMiB], std::byte{1});
  range.release(10, 20);  // no whole page inside
}

TEST(AddressRange, MovesItsMemory) {
  AddressRange a = AddressRange::reserve(kMiB).value();
  std::byte* const data = a.data();
  AddressRange b = std::move(a);
  EXPECT_EQ(b.data(), data);
  AddressRange c;
  c = std::move(b);
  c.data()[5] = std::byte{1};
  EXPECT_EQ(c.size(), kMiB);
}

TEST(AddressRange, HugePageAdviceIsNeverWrong) {
  AddressRange range = AddressRange::reserve(4 * kMiB).value();
  static_cast<void>(range.advise_huge_pages());  // the answer depends on the machine
  ASSERT_TRUE(range.populate(0, range.size()).ok());
  EXPECT_EQ(range.resident(0, range.size()), range.size());
}

TEST(AddressRange, ImpossibleSizesAreRefused) {
  EXPECT_EQ(AddressRange::reserve(~std::size_t{0}).error().code, ErrorCode::does_not_fit);
  EXPECT_EQ(AddressRange::reserve(std::size_t{1} << 47).error().code, ErrorCode::does_not_fit);
}

// A made-up file system with proc and sys below a folder of its own.
class HeadroomTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ("headroom_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
    write("proc/meminfo", "MemTotal:       2000 kB\nMemFree:  1 kB\nMemAvailable:   1000 kB\nBuffers: 7 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  Headroom read() { return read_headroom(root_).value(); }

  std::filesystem::path root_;
};

TEST_F(HeadroomTest, WithoutACgroupTheSystemDecides) {
  EXPECT_EQ(read().bytes(), 1000u * 1024);
  EXPECT_FALSE(read().cgroup_available.has_value());
}

TEST_F(HeadroomTest, TightestCgroupOfAllParentsDecides) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/memory.max", "500000\n");
  write("sys/fs/cgroup/outer/memory.current", "100000\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "90000\n");
  EXPECT_EQ(read().bytes(), 400000u);
  write("sys/fs/cgroup/outer/inner/memory.max", "95000\n");
  EXPECT_EQ(read().bytes(), 5000u);
  write("sys/fs/cgroup/outer/inner/memory.stat", "anon 1\ninactive_file 40000\n");
  EXPECT_EQ(read().bytes(), 45000u) << "file pages that are not in use give way";
}

TEST_F(HeadroomTest, LimitAlreadyPassedLeavesNothing) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(read().bytes(), 0u);
}

TEST_F(HeadroomTest, VersionOneAndPathsOfTheHostWork) {
  write("proc/self/cgroup", "11:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n");  // no such folder in the container
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(read().bytes(), 200000u);
}

TEST_F(HeadroomTest, MalformedCgroupFilesAreNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::/\n");
  write("sys/fs/cgroup/memory.max", "lots\n");
  write("sys/fs/cgroup/memory.current", "");
  EXPECT_EQ(read().bytes(), 1000u * 1024);
}

TEST_F(HeadroomTest, MissingMeminfoIsAnError) {
  write("proc/meminfo", "MemTotal: 2000 kB\n");
  EXPECT_EQ(read_headroom(root_).error().code, ErrorCode::io);
  std::filesystem::remove(root_ / "proc/meminfo");
  EXPECT_EQ(read_headroom(root_).error().code, ErrorCode::io);
}

TEST(Headroom, ThisMachineHasSome) { EXPECT_GT(read_headroom().value().bytes(), kMiB); }

}  // namespace
}  // namespace kvasir::platform

#include "plan/devices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kvasir::plan {
namespace {

using testing::HasSubstr;

TEST(Devices, EachHasANameOfItsOwnABandwidthAndASource) {
  std::set<std::string_view> names;
  for (const Device& device : devices()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_GT(device.bandwidth, 50e9) << device.name;
    EXPECT_LT(device.bandwidth, 10e12) << device.name;
    EXPECT_EQ(device.memory > 0, device.kind != DeviceKind::cpu) << device.name << ": a CPU's memory is not its own";
    EXPECT_THAT(std::string(device.source), HasSubstr("20")) << device.name << ": a source has a year";
    // Units: a peak in tera, int8 no slower than f16, f16 no slower than f32.
    if (device.peak_f16 > 0) {
      EXPECT_GT(device.peak_f16, 50e12) << device.name;
      EXPECT_GT(device.peak_f16, device.peak_f32) << device.name;
    }
    if (device.peak_int8 > 0) {
      EXPECT_GE(device.peak_int8, device.peak_f16) << device.name;
    }
  }
}

TEST(Devices, AreFoundByNameAndNumber) {
  const DeviceChoice one = *find_device("A100 80GB");
  EXPECT_EQ(one.device.name, "a100-80gb");
  EXPECT_EQ(one.count, 1u);
  EXPECT_EQ(find_device("a100-80gb*8")->count, 8u);
  EXPECT_EQ(find_device("xeon-8480+")->device.name, "xeon-8480plus");
  EXPECT_EQ(find_device("h100-sxm")->device.name, "h100");
}

TEST(Devices, WhatIsWrongIsNamed) {
  const auto message = [](std::string_view text) {
    const Result<DeviceChoice> found = find_device(text);
    return found.ok() ? std::string("found") : found.error().message;
  };
  EXPECT_THAT(message("h10"), testing::AllOf(HasSubstr("'h10'"), HasSubstr("'h100'")));
  EXPECT_THAT(message(""), HasSubstr("not known"));
  EXPECT_THAT(message(std::string(100'000, 'a')), HasSubstr("not known"));
  for (const char* text : {"h100*0", "h100*", "h100*-1", "h100*4097", "h100*2x", "h100*99999999999999999999"})
    EXPECT_THAT(message(text), testing::AllOf(HasSubstr(text), HasSubstr("valid: 1 to 4096"))) << text;
}

}  // namespace
}  // namespace kvasir::plan

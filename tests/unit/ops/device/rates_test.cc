// SPDX-License-Identifier: Apache-2.0
// What a device does in a second is measured once by each user, and again where he asks for it.
#include "ops/device/opencl/rates.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "first_device.h"
#include "tests/support/process.h"

namespace heddle::ops::testing {
namespace {

constexpr DeviceRates kRates = {.copy_in = 1.5e9,
                                .copy_out = 2e9,
                                .memory = 1.0 / 3,
                                .fma = 4e9,
                                .launch_ns = 5000,
                                .compile_ns = 6e7};

class RatesTest : public ::testing::Test {
 protected:
  ObjectCache Disk() const { return {folder_.path() + "/kernels", 1 << 20, folder_.path() + "/state"}; }
  // Under which rates are kept.
  static std::string KeyOf(const DeviceDescription& device) {
    return "rates of a device\n" + device.name + "\n" + device.driver;
  }
  void Keep(const DeviceDescription& device, const std::string& text) {
    Disk().Store(KeyOf(device), text);
  }
  static std::string TextOf(const DeviceRates& rates) {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", rates.copy_in, rates.copy_out, rates.memory, rates.fma,
                       rates.launch_ns, rates.compile_ns);
  }

  const testing_support::TemporaryFolder folder_;
  DeviceDescription description_ = {.name = "a device of a test", .driver = "version 1"};
};

TEST_F(RatesTest, WhatIsKeptIsFound) {
  EXPECT_FALSE(KeptRates(Disk(), description_).has_value());
  Keep(description_, TextOf(kRates));
  EXPECT_EQ(KeptRates(Disk(), description_), kRates);
  DeviceDescription other = description_;
  other.driver = "version 2";
  EXPECT_FALSE(KeptRates(Disk(), other).has_value());
  other = description_;
  other.name = "another device of a test";
  EXPECT_FALSE(KeptRates(Disk(), other).has_value());
}

TEST_F(RatesTest, WhatIsNoSixRatesIsAsGoodAsNone) {
  const std::string good = TextOf(kRates);
  for (const std::string& bad :
       {std::string(), std::string("1\n"), good + "1\n", good.substr(0, good.size() - 1),
        std::string("1\n2\n3\n4\n5\n0\n"), std::string("1\n2\n-3\n4\n5\n6\n"),
        std::string("1\n2\nnan\n4\n5\n6\n"), std::string("inf\n2\n3\n4\n5\n6\n"),
        std::string("1 2 3 4 5 6\n"), std::string("1\n2\n3\n4\nfive\n6\n")}) {
    Keep(description_, bad);
    EXPECT_FALSE(KeptRates(Disk(), description_).has_value()) << bad;
  }
  Keep(description_, good);
  EXPECT_EQ(KeptRates(Disk(), description_), kRates);
}

// Another user's file, or one in which a bit has changed, is not taken for this user's.
TEST_F(RatesTest, ADamagedFileIsAsGoodAsNone) {
  Keep(description_, TextOf(kRates));
  const std::string path = Disk().PathOf(KeyOf(description_));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.good()) << path;
  file.seekg(-40, std::ios::end);
  const auto byte = static_cast<char>(file.get());
  file.seekp(-40, std::ios::end);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  EXPECT_FALSE(KeptRates(Disk(), description_).has_value());
}

// The numbers are those on disk, where some are, until somebody measures again.
TEST_F(RatesTest, AProcessMeasuresWhatNoneHasMeasuredBefore) {
  ComputeDevice* const device = FirstDevice();
  if (device == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  const Result<DeviceRates> first = RatesOf(*device, SystemClock(), Disk());
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_GT(first->compile_ns, 0);
  EXPECT_EQ(KeptRates(Disk(), device->description()), *first);
  Keep(device->description(), TextOf(kRates));
  EXPECT_EQ(*RatesOf(*device, SystemClock(), Disk()), kRates);
  const Result<DeviceRates> again = MeasureRates(*device, SystemClock(), Disk());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_NE(*again, kRates);
  EXPECT_EQ(*RatesOf(*device, SystemClock(), Disk()), *again);
}

}  // namespace
}  // namespace heddle::ops::testing

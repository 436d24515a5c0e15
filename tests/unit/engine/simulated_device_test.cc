// SPDX-License-Identifier: Apache-2.0
// Scripts on a device whose memory the host must not touch and whose commands are late
// (tests/support/simulated_device.h), on one and several ranks: the bytes are those of the processor, also
// where a random half of the operators runs there, and nothing is done wrong with memory and order. On
// machines without an OpenCL device, which runs the kernels, these tests are skipped.
#include "tests/support/simulated_device.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "ops/device/opencl/opencl_devices.h"
#include "ops/device/opencl/usable_devices.h"
#include "script_runner.h"

namespace heddle::engine {
namespace {

using testing_support::SimulatedDevice;

// Loops, branches, operators that a device runs and such that it leaves, values that stay there.
constexpr const char* kScript = R"(
X = rand(rows=230, cols=6, min=-1, max=1, seed=1)
y = rand(rows=230, cols=1, seed=2)
w = matrix(0, rows=6, cols=1)
s = 1
for (i in 1:3) {
  q = exp(X %*% w)
  g = t(X) %*% ((q - y) / (1 + q))
  w = w - 0.01 * g
  if (sum(g * g) < 1e9) {
    X = X * 0.99
  }
  s = s + sum(abs(X))
}
print(toString(w, decimal=17))
print(s)
print(sum(rev(X) * X))
print(toString(colSums(X), decimal=17))
)";

class ScriptsOnSimulatedDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    const Result<ops::DeviceSet*> set = ops::OpenClDevices();
    if (!set.ok() || (*set)->devices().empty()) GTEST_SKIP() << "this machine has no OpenCL device";
    device_.emplace(*(*set)->devices().front(), testing_support::SimulatedDeviceOptions{.seed = 7});
    device_->Drive();
    ops::UseDevices(&*device_);
  }
  void TearDown() override { ops::UseDevices(nullptr); }

  std::optional<SimulatedDevice> device_;
};

TEST_F(ScriptsOnSimulatedDeviceTest, HaveTheBytesOfTheProcessor) {
  const ScriptOutcome expected = RunScript(kScript);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  for (const int ranks : {1, 3})
    for (const char* devices : {"opencl:0", "opencl:0/random:1", "opencl:0/random:2"}) {
      SCOPED_TRACE(testing::Message() << devices << " on " << ranks << " ranks");
      const int64_t before = device_->launches();
      SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
      options.devices = devices;
      const ScriptOutcome actual = RunScript(kScript, options);
      ASSERT_TRUE(actual.status.ok()) << actual.status.ToString();
      EXPECT_EQ(actual.output, expected.output);
      EXPECT_GT(device_->launches(), before + 5);
      EXPECT_TRUE(device_->faults().empty()) << testing::PrintToString(device_->faults());
      EXPECT_EQ(device_->bytes_in_use(), 0);
    }
}

}  // namespace
}  // namespace heddle::engine

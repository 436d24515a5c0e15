// SPDX-License-Identifier: Apache-2.0
// Scripts on a device whose memory the host must not touch and whose commands are late
// (tests/support/simulated_device.h), on one and several ranks: the bytes are those of the processor, also
// where a random half of the operators runs there, and nothing is done wrong with memory and order. On
// machines without an OpenCL device, which runs the kernels, these tests are skipped.
#include "tests/support/simulated_device.h"

#include <fmt/core.h>
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

// A CSR matrix that a loop reads, CSR values that it makes, and such that it replaces.
constexpr const char* kScriptOfEntries = R"(
X = rand(rows=230, cols=60, min=-1, max=1, sparsity=0.2, seed=1)
G = rand(rows=60, cols=60, min=0, max=1, sparsity=0.1, seed=2)
w = matrix(0.1, rows=60, cols=1)
p = matrix(1 / 60, rows=60, cols=1)
s = 0
for (i in 1:3) {
  w = w - 0.01 * (t(X) %*% (X %*% w))
  p = 0.85 * (G %*% p) + 0.15 / 60
  Y = round(X * 3) * abs(X)
  s = s + sum(Y) + sum(rowSums(Y * X))
  G = G * 0.9
  X = X + Y * 0.01 - max(X, as.scalar(G[1, 1]) * Y)
}
print(toString(w, decimal=17))
print(toString(p, decimal=17))
print(s)
print(sum(G))
print(sum(Y != 0))
print(sum(X) + sum(X > Y))
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

  void ExpectSame(const char* script) {
    const ScriptOutcome expected = RunScript(script);
    ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
    for (const int ranks : {1, 3})
      for (const char* devices : {"opencl:0", "opencl:0/random:1", "opencl:0/random:2"}) {
        SCOPED_TRACE(testing::Message() << devices << " on " << ranks << " ranks");
        const int64_t before = device_->launches();
        SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
        options.devices = devices;
        const ScriptOutcome actual = RunScript(script, options);
        ASSERT_TRUE(actual.status.ok()) << actual.status.ToString();
        EXPECT_EQ(actual.output, expected.output);
        // A random half may be none of the few operators.
        if (std::string_view(devices) == "opencl:0") {
          EXPECT_GT(device_->launches(), before + 5);
        }
        EXPECT_TRUE(device_->faults().empty()) << testing::PrintToString(device_->faults());
        EXPECT_EQ(device_->bytes_in_use(), 0);
      }
  }

  std::optional<SimulatedDevice> device_;
};

TEST_F(ScriptsOnSimulatedDeviceTest, HaveTheBytesOfTheProcessor) { ExpectSame(kScript); }

TEST_F(ScriptsOnSimulatedDeviceTest, OfCsrMatricesHaveTheBytesOfTheProcessor) {
  ExpectSame(kScriptOfEntries);
}

// However many rounds read it, a CSR matrix is copied once, and what is made of it there stays there.
TEST_F(ScriptsOnSimulatedDeviceTest, ALoopCopiesACsrMatrixOnce) {
  const auto bytes_of_rounds = [&](int rounds) {
    SessionOptions options;
    options.devices = "opencl:0";
    const int64_t before = device_->bytes_written();
    const ScriptOutcome outcome = RunScript(fmt::format(R"(
X = rand(rows=1000, cols=60, sparsity=0.2, seed=1)
w = matrix(0.1, rows=60, cols=1)
for (i in 1:{}) {{
  Y = X * 0.5
  w = w - 0.0001 * (t(X) %*% (Y %*% w))
}}
print(sum(w))
)",
                                                        rounds),
                                            options);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    return device_->bytes_written() - before;
  };
  constexpr int64_t kLeastBytesOfX = 10'000 * 12;
  EXPECT_GT(bytes_of_rounds(2), kLeastBytesOfX);
  EXPECT_LT(bytes_of_rounds(12) - bytes_of_rounds(2), kLeastBytesOfX / 10);
}

// Conjugate gradients: what a round computes stays on the device, and so do scalars that only the device
// reads (the length of a step). The host is told once a round of the number on which the loop's condition
// depends, and of flags with it; it sends flags that are not set, and no cells.
TEST_F(ScriptsOnSimulatedDeviceTest, TheHostWaitsOnceInARoundOfALoop) {
  struct Traffic {
    int64_t answers, bytes_written;
  };
  const auto traffic_of_rounds = [&](int rounds) {
    SessionOptions options;
    options.devices = "opencl:0";
    const Traffic before = {device_->answers() + device_->blocked(), device_->bytes_written()};
    const ScriptOutcome outcome = RunScript(fmt::format(R"(
X = rand(rows=2000, cols=12, seed=1)
y = rand(rows=2000, cols=1, seed=2)
w = matrix(0, rows=12, cols=1)
residual = -(t(X) %*% y)
direction = -residual
norm = sum(residual^2)
iteration = 0
while (iteration < {} & norm > 0) {{
  q = t(X) %*% (X %*% direction) + 0.001 * direction
  alpha = norm / sum(direction * q)
  w = w + alpha * direction
  residual = residual + alpha * q
  previous = norm
  norm = sum(residual^2)
  direction = -residual + (norm / previous) * direction
  iteration = iteration + 1
}}
print(sum(w) + " " + iteration)
)",
                                                        rounds),
                                            options);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    return Traffic{device_->answers() + device_->blocked() - before.answers,
                   device_->bytes_written() - before.bytes_written};
  };
  constexpr int64_t kRounds = 4, kMostBytesOfFlags = 64;
  const Traffic few = traffic_of_rounds(3), more = traffic_of_rounds(3 + kRounds);
  EXPECT_EQ(more.answers - few.answers, kRounds);
  EXPECT_LE(more.bytes_written - few.bytes_written, kRounds * kMostBytesOfFlags);
}

// Values that pass through the device in panels: sums, products with what all panels read, operators in
// stages, and such that the device leaves to the host.
constexpr const char* kScriptOfPanels = R"(
X = rand(rows=1500, cols=6, min=-1, max=1, seed=1)
w = rand(rows=6, cols=1, seed=2)
for (i in 1:2) {
  q = exp(X %*% w)
  w = w - 0.001 * (t(X) %*% (q - 1))
  Y = abs(X) * q + X
  Z = cumsum(rev(Y))
  X = Y / (1 + rowSums(Y)) + rowcumsum(X)
}
print(toString(w, decimal=17))
print(toString(colSums(X), decimal=17))
print(sum(Z * X))
print(max(rowMaxs(X)))
)";

TEST_F(ScriptsOnSimulatedDeviceTest, InPanelsHaveTheBytesOfTheProcessor) {
  const ScriptOutcome expected = RunScript(kScriptOfPanels);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  for (const int ranks : {1, 2})
    for (const char* devices : {"opencl:0", "opencl:0/random:1"}) {
      SCOPED_TRACE(testing::Message() << devices << " on " << ranks << " ranks");
      const int64_t writes = device_->writes(), launches = device_->launches();
      SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
      options.devices = devices;
      options.panel_bytes = 30'000;
      const ScriptOutcome actual = RunScript(kScriptOfPanels, options);
      ASSERT_TRUE(actual.status.ok()) << actual.status.ToString();
      EXPECT_EQ(actual.output, expected.output);
      EXPECT_GT(device_->launches(), launches + 20);
      EXPECT_GT(device_->writes(), writes + 10);
      EXPECT_TRUE(device_->faults().empty()) << testing::PrintToString(device_->faults());
      EXPECT_EQ(device_->bytes_in_use(), 0);
    }
}

}  // namespace
}  // namespace heddle::engine

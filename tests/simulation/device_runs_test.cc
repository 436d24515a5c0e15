// SPDX-License-Identifier: Apache-2.0
// Runs of plans with a device: nobody waits for it, and where it fails the processor computes the same bytes.
// On machines without an OpenCL device (Debian: pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <thread>

#include "actor/runtime.h"
#include "core/environment/recorder.h"
#include "ops/base/kernel.h"
#include "ops/device/opencl/opencl_devices.h"
#include "scheduler/schedule.h"
#include "tests/simulation/wrapped_device.h"
#include "tests/unit/scheduler/graph_under_test.h"

namespace heddle::actor {
namespace {

using scheduler::GraphUnderTest;
using scheduler::MatrixOf;
using testing_support::DeviceTroubles;
using testing_support::WrappedDevice;

constexpr int64_t kRows = 3000, kColumns = 5;

// Those of the catalog; what an operator of the test's does before them.
class Kernels : public ops::KernelSource {
 public:
  Status Run(const ops::KernelCall& call, std::span<Value> results) const override {
    if (call.node.op == "rowcumsum" && before_t) before_t();
    return ops::CatalogKernels().Run(call, results);
  }
  std::function<void()> before_t;
};

// One for all tests: what it has compiled stays.
WrappedDevice* Wrapped() {
  static WrappedDevice* const device = []() -> WrappedDevice* {
    const Result<ops::DeviceSet*> set = ops::OpenClDevices();
    if (!set.ok() || (*set)->devices().empty()) return nullptr;
    return new WrappedDevice(*(*set)->devices().front());
  }();
  return device;
}

Matrix Cells() {
  Matrix x = *Matrix::Dense(kRows, kColumns);
  for (int64_t i = 0; i < x.cells(); ++i) x.mutable_data()[i] = static_cast<double>(i % 97) * 0.03 - 1;
  return x;
}

class DeviceRunsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (Wrapped() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
    troubles().FailAt(INT32_MAX, DeviceTroubles::Failure::kNone);
    troubles().Open();
    context_.devices = Wrapped();
    MakeRuntime();
  }
  void MakeRuntime() { runtime_ = Runtime::Create(options_, kernels_, context_, nullptr); }
  DeviceTroubles& troubles() { return Wrapped()->troubles(); }

  // y = exp(X) and z = y * y + X stay there, rowSums and colSums look at flags, and rowcumsum is the host's.
  static Graph Body() {
    GraphUnderTest g;
    const ValueInfo like_x = MatrixOf(kRows, kColumns);
    const NodeId x = g.Variable("X", like_x);
    const NodeId y = g.Op("exp", {x}, like_x);
    const NodeId z = g.Op("+", {g.Op("*", {y, y}, like_x), x}, like_x);
    g.Assign("z", g.Op("rowcumsum", {z}, like_x));
    g.Assign("s", g.Op("rowcumsum", {g.Op("rowSums", {z}, MatrixOf(kRows, 1))}, MatrixOf(kRows, 1)));
    const ValueInfo row = MatrixOf(1, kColumns);
    g.Assign("q", g.Op("rowcumsum", {g.Op("colSums", {z}, row)}, row));
    g.Assign("t", g.Op("rowcumsum", {x}, like_x));
    return g.graph;
  }
  // exp(X), which is squared so many times there, and summed up here.
  static Graph Chain(int squares) {
    GraphUnderTest g;
    const ValueInfo like_x = MatrixOf(kRows, kColumns);
    NodeId y = g.Op("exp", {g.Variable("X", like_x)}, like_x);
    for (int i = 0; i < squares; ++i) y = g.Op("*", {y, y}, like_x);
    g.Assign("y", g.Op("rowcumsum", {y}, like_x));
    return g.graph;
  }
  static std::shared_ptr<const Plan> PlanOf(bool on_device, const Graph& graph = Body()) {
    scheduler::ScheduleOptions options{.ranks = 1};
    if (on_device) options.device = scheduler::DeviceOptions{.device = Device{DeviceType::kOpenCl, 0}};
    Result<Plan> plan = scheduler::Schedule(graph, {{"X", Distribution::One()}}, options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return std::make_shared<const Plan>(*std::move(plan));
  }
  Result<RunResult> Run(bool on_device = true) {
    return runtime_->Run(PlanOf(on_device), ++run_, {{"X", Value(x_)}});
  }
  void ExpectSame(const RunResult& expected, const RunResult& actual) {
    for (const auto& [name, value] : expected.live_out) {
      const auto here = actual.live_out.find(name), there = actual.live_out.find(NameOnDevice(name));
      const Value& found = here != actual.live_out.end() ? here->second : there->second;
      const Result<Matrix> cells = ToDense(found.matrix());
      ASSERT_TRUE(cells.ok()) << cells.status().ToString();
      EXPECT_TRUE(Matrix::SameCells(value.matrix(), *cells)) << name;
    }
  }

  const Matrix x_ = Cells();
  RuntimeOptions options_{.threads = 2};
  Kernels kernels_;
  ops::KernelContext context_;
  std::unique_ptr<Runtime> runtime_;
  uint32_t run_ = 0;
};

TEST_F(DeviceRunsTest, OneQueueForAllActsOfAStream) {
  const Result<RunResult> expected = Run(false);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  const int before = Wrapped()->queues();
  for (int i = 0; i < 5; ++i) {
    const Result<RunResult> actual = Run();
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame(*expected, *actual);
  }
  EXPECT_GT(troubles().commands(), 30);
  EXPECT_EQ(Wrapped()->queues() - before, 3);
}

// What stays on the device is read there without a word to the host: the copy out waits on the device.
TEST_F(DeviceRunsTest, OperatorsBehindEachOtherAreQueued) {
  int callbacks[2];
  for (const bool is_long : {false, true}) {
    const Graph graph = Chain(is_long ? 12 : 1);
    const Result<RunResult> expected = runtime_->Run(PlanOf(false, graph), ++run_, {{"X", Value(x_)}});
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const int before = Wrapped()->callbacks(), waits = Wrapped()->waits();
    const Result<RunResult> actual = runtime_->Run(PlanOf(true, graph), ++run_, {{"X", Value(x_)}});
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame(*expected, *actual);
    callbacks[is_long] = Wrapped()->callbacks() - before;
    EXPECT_EQ(Wrapped()->waits() - waits, 1);
  }
  EXPECT_EQ(callbacks[0], callbacks[1]);
}

// The device does not answer until the processor has computed rowcumsum(X): no thread of the run waits for
// it.
TEST_F(DeviceRunsTest, NobodyWaitsForTheDevice) {
  GraphUnderTest g;
  const ValueInfo like_x = MatrixOf(kRows, kColumns);
  const NodeId x = g.Variable("X", like_x);
  g.Assign("t", g.Op("rowcumsum", {x}, like_x));
  g.Assign("y", g.Op("exp", {x}, like_x));
  std::atomic<bool> has_t = false;
  kernels_.before_t = [&] { has_t = true; };
  troubles().Close();
  bool went_on = false;
  std::thread device([&] {
    // A copy to the device has been queued. The deadline only turns a hang into a failure.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!went_on && std::chrono::steady_clock::now() < end) {
      went_on = troubles().waiting() > 0 && has_t.load();
      std::this_thread::yield();
    }
    troubles().Open();
  });
  const Result<RunResult> result = runtime_->Run(PlanOf(true, g.graph), ++run_, {{"X", Value(x_)}});
  device.join();
  EXPECT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(went_on);
}

// Memory that commands read and write goes when they are done, not when the run is cancelled.
TEST_F(DeviceRunsTest, ACancelledRunWaitsForItsCommands) {
  troubles().Close();
  std::atomic<bool> is_over = false;
  std::thread canceller([&] {
    while (troubles().waiting() == 0) std::this_thread::yield();
    runtime_->Cancel(Cancelled("by the test"));
    // Nothing that the run could end by is left but the device's answer.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_FALSE(is_over.load());
    troubles().Open();
  });
  const Result<RunResult> result = Run();
  is_over = true;
  canceller.join();
  EXPECT_EQ(result.status().code(), StatusCode::kCancelled) << result.status().ToString();
}

// At each command in turn. What the host has is computed there; what only the device had is told.
TEST_F(DeviceRunsTest, ALostDevice) {
  const Result<RunResult> expected = Run(false);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  ASSERT_TRUE(Run().ok());
  troubles().FailAt(INT32_MAX, DeviceTroubles::Failure::kNone);
  ASSERT_TRUE(Run().ok());
  const int commands = troubles().commands();
  ASSERT_GT(commands, 6);
  for (const DeviceTroubles::Failure failure :
       {DeviceTroubles::Failure::kWhenQueued, DeviceTroubles::Failure::kLater}) {
    int went_on = 0, told = 0;
    for (int command = 0; command <= commands; ++command) {
      SCOPED_TRACE(fmt::format("command {}, failure {}", command, static_cast<int>(failure)));
      MakeRuntime();
      troubles().FailAt(command, failure);
      const Result<RunResult> result = Run();
      // The script has its variables, wherever they were copied to.
      if (command == 0 || (command == 1 && failure == DeviceTroubles::Failure::kWhenQueued)) {
        EXPECT_TRUE(result.ok()) << result.status().ToString();
      }
      if (result.ok()) {
        ++went_on;
        ExpectSame(*expected, *result);
        continue;
      }
      ++told;
      EXPECT_EQ(result.status().code(), StatusCode::kUnavailable) << result.status().ToString();
      const std::string text = result.status().ToString();
      EXPECT_NE(text.find(" matrix was only in the memory of the device "), std::string::npos) << text;
      EXPECT_NE(text.find("run again with --devices cpu"), std::string::npos) << text;
    }
    EXPECT_GT(went_on, 1);
    EXPECT_GT(told, 1);
  }
}

// What finds no memory there is the host's.
TEST_F(DeviceRunsTest, ADeviceWithoutMemory) {
  const Result<RunResult> expected = Run(false);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (int allocations = 0; allocations < 8; ++allocations) {
    SCOPED_TRACE(allocations);
    troubles().RefuseAllocations(allocations, INT32_MAX);
    const Result<RunResult> result = Run();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    ExpectSame(*expected, *result);
  }
}

// Earlier acts hold memory until their commands are done: an act that finds none waits for them.
TEST_F(DeviceRunsTest, ADeviceThatHasMemoryAgain) {
  ASSERT_TRUE(Run().ok());
  troubles().RefuseAllocations(0, 0);
  ASSERT_TRUE(Run().ok());
  const int commands = troubles().commands();
  for (int allocations = 0; allocations < 8; ++allocations) {
    troubles().RefuseAllocations(allocations, 1);
    const Result<RunResult> result = Run();
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(troubles().commands(), commands) << "the host has computed allocation " << allocations;
  }
}

// A record has a row for each stream of the device, with its acts one after the other.
TEST_F(DeviceRunsTest, ActsAreRecordedByStream) {
  Recorder recorder(SystemClock(), 1000);
  options_.recorder = &recorder;
  options_.times_acts = true;
  MakeRuntime();
  const Result<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  std::set<std::string> names;
  for (const RecordedThread& thread : recorder.Threads()) {
    if (!thread.name.starts_with("opencl:0 ")) continue;
    names.insert(thread.name);
    int64_t end_ns = 0;
    for (const RecordedEvent& event : thread.events) {
      EXPECT_GE(event.begin_ns, end_ns) << thread.name;
      end_ns = event.begin_ns + event.duration_ns;
      EXPECT_EQ(event.rows > 0, true);
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"opencl:0 compute", "opencl:0 copyin", "opencl:0 copyout"}));
  int64_t device_ns = 0;
  for (const TaskStatistics& task : result->statistics)
    if (task.phase == Phase::kTransfer) device_ns += task.kernel_ns;
  EXPECT_GT(device_ns, 0);
}

}  // namespace
}  // namespace heddle::actor

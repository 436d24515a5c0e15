// SPDX-License-Identifier: Apache-2.0
// A product, or a tile program, that takes many launches queues a few at a time: nobody waits for the device
// in between, and a job that is cancelled ends. Nor does anybody wait for the flag of variances. On machines
// without an OpenCL device these tests are skipped.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "first_device.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/device/run/device_act.h"
#include "ops/device/run/task_launches.h"
#include "tests/support/simulated_device.h"
#include "tests/unit/ops/fused/body_builder.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops::testing {
namespace {

using testing_support::SimulatedDevice;

constexpr Device kGpu = {DeviceType::kOpenCl, 0};

class LongProductsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (FirstDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  }

  struct Outcome {
    Status status;
    Value result;
    int waits = 0;  // For commands.
    int64_t launches = 0, blocked = 0;
  };
  // The call on a simulated device of one compute unit. `at_wait` is called at each wait for it, before
  // anything that is queued is done.
  Outcome OnDevice(const KernelCall& call, const std::function<void(int)>& at_wait) {
    SimulatedDevice device(*FirstDevice(), {.seed = 1, .compute_units = 1});
    Outcome outcome;
    {
      DeviceStreams streams;
      KernelContext context;
      context.devices = &device;
      const std::unique_ptr<DeviceAct> act = ActOfOperator({.device = kGpu,
                                                            .streams = streams,
                                                            .context = context,
                                                            .user = "a test",
                                                            .results = {&outcome.result, 1},
                                                            .on_host = {true}},
                                                           CatalogKernels(), call);
      while (act->next() != DeviceAct::Place::kDone) {
        bool is_ready = false;
        act->Step([&] { is_ready = true; });
        if (!is_ready) at_wait(outcome.waits++);
        while (!is_ready) device.Happen();
      }
      outcome.status = act->status();
      outcome.blocked = device.blocked();
    }
    outcome.launches = device.launches();
    EXPECT_TRUE(device.faults().empty()) << ::testing::PrintToString(device.faults());
    return outcome;
  }

  // t(X) %*% Y and X %*% Y of more than a thousand million multiplications and additions.
  void ForEachProduct(const std::function<void(const KernelCall&, const Value&)>& visit) {
    for (const bool is_transposed : {false, true}) {
      SCOPED_TRACE(is_transposed);
      const Matrix x = is_transposed ? Cells(3000, 200, 1) : Cells(800, 800, 1);
      const Matrix y = is_transposed ? Cells(3000, 600, 2) : Cells(800, 800, 2);
      Invocation call(is_transposed ? "t%*%" : "%*%", {Value(x), Value(y)});
      const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
      ASSERT_TRUE(inferred.ok()) << inferred.status().ToString();
      call.SetInfos(*inferred);
      const std::vector<const Value*> inputs = {&*call.inputs[0], &*call.inputs[1]};
      const KernelCall kernel{.node = call.node,
                              .phase = Phase::kWhole,
                              .inputs = inputs,
                              .input_infos = call.infos,
                              .total_rows = x.rows(),
                              .context = context_,
                              .op = call.op};
      Value expected;
      Status status;
      Arena(1).Execute([&] { status = CatalogKernels().Run(kernel, {&expected, 1}); });
      ASSERT_TRUE(status.ok()) << status.ToString();
      visit(kernel, expected);
    }
  }

  // Of tile programs, and of phases, as many: cells, what they come to, and a matrix by its sum.
  void ForEachBody(const std::function<void(const KernelCall&, const Value&)>& visit) {
    for (const char* const root : {"", "colSums", "phases"}) {
      SCOPED_TRACE(root);
      const bool is_phased = *root == 'p';
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(4000, is_phased ? 400 : 256, 1)));
      const NodeId v = body.Input(Value(Cells(is_phased ? 400 : 256, 400, 2)));
      const NodeId y = body.Op("abs", {body.Op("%*%", {x, v})});
      if (is_phased)
        body.Finish({body.Op("/", {y, body.Op("sum", {y})})});
      else
        body.Finish({*root == 0 ? y : body.Op(root, {y})});
      const BodyBuilder::AlsoRunScope scope([&](const KernelCall& call, std::span<const Value> expected) {
        KernelCall own = call;
        visit(own, expected[0]);
      });
      body.context().cancelled = &cancelled_;
      const auto results = is_phased ? body.RootsPhased(1) : body.RootsFused(1, 1);
      ASSERT_TRUE(results.ok()) << results.status().ToString();
    }
  }

  std::atomic<bool> cancelled_ = false;
  KernelContext context_;
};

TEST_F(LongProductsTest, NobodyWaitsBetweenLaunches) {
  ForEachProduct([&](const KernelCall& call, const Value& expected) {
    const Outcome outcome = OnDevice(call, [](int) {});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_TRUE(Matrix::SameCells(expected.matrix(), outcome.result.matrix()));
    EXPECT_GT(outcome.launches, 4);
    EXPECT_GE(outcome.waits, 3) << "for the first launches, the last, and what is read";
    EXPECT_EQ(outcome.blocked, 0);
  });
}

// Variances of rows longer than a column chunk: the host looks at a flag at the end, and computes where it is
// set.
TEST_F(LongProductsTest, NobodyWaitsForTheFlagOfVariances) {
  for (const double factor : {1.0, 1e200}) {
    SCOPED_TRACE(factor);
    Matrix x = Cells(2, 70'000, 1);
    for (int64_t i = 0; i < x.cells(); ++i) x.mutable_data()[i] *= factor;
    Invocation call("rowSds", {Value(x)});
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    ASSERT_TRUE(inferred.ok()) << inferred.status().ToString();
    call.SetInfos(*inferred);
    const std::vector<const Value*> inputs = {&*call.inputs[0]};
    const KernelCall kernel{.node = call.node,
                            .phase = Phase::kWhole,
                            .inputs = inputs,
                            .input_infos = call.infos,
                            .total_rows = x.rows(),
                            .context = context_,
                            .op = call.op};
    Value expected;
    ASSERT_TRUE(CatalogKernels().Run(kernel, {&expected, 1}).ok());
    const Outcome outcome = OnDevice(kernel, [](int) {});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_TRUE(Matrix::SameCells(expected.matrix(), outcome.result.matrix()));
    EXPECT_EQ(outcome.launches, 3);
    // For the flag, and for a result that is good.
    EXPECT_EQ(outcome.waits, factor == 1.0 ? 2 : 1);
    EXPECT_EQ(outcome.blocked, 0);
  }
}

TEST_F(LongProductsTest, ACancelledOneEndsBehindTheLaunchesThatAreQueued) {
  context_.cancelled = &cancelled_;
  ForEachProduct([&](const KernelCall& call, const Value&) {
    cancelled_ = false;
    const Outcome outcome = OnDevice(call, [&](int) { cancelled_ = true; });
    EXPECT_EQ(outcome.status.code(), StatusCode::kCancelled) << outcome.status.ToString();
    EXPECT_EQ(outcome.launches, 4);
    EXPECT_EQ(outcome.waits, 1);
    EXPECT_EQ(outcome.blocked, 0);
    cancelled_ = false;
  });
}

TEST_F(LongProductsTest, NobodyWaitsBetweenLaunchesOfTiles) {
  int bodies = 0;
  ForEachBody([&](const KernelCall& call, const Value& expected) {
    ++bodies;
    const Outcome outcome = OnDevice(call, [](int) {});
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_TRUE(Matrix::SameCells(expected.matrix(), outcome.result.matrix()));
    EXPECT_GT(outcome.launches, 4);
    EXPECT_GE(outcome.waits, 2);
    EXPECT_EQ(outcome.blocked, 0);
  });
  EXPECT_EQ(bodies, 3);
}

TEST_F(LongProductsTest, CancelledTilesEndBehindTheLaunchesThatAreQueued) {
  int bodies = 0;
  ForEachBody([&](const KernelCall& call, const Value&) {
    ++bodies;
    const Outcome outcome = OnDevice(call, [&](int) { cancelled_ = true; });
    EXPECT_EQ(outcome.status.code(), StatusCode::kCancelled) << outcome.status.ToString();
    EXPECT_EQ(outcome.launches, 4);
    EXPECT_EQ(outcome.waits, 1);
    EXPECT_EQ(outcome.blocked, 0);
    cancelled_ = false;
  });
  EXPECT_EQ(bodies, 3);
}

// What is short is one launch; what is long has work for the whole device in each.
TEST(TaskLaunchesTest, ShareTheTasksOfAPass) {
  const DeviceDescription device = {.memory_bytes = int64_t{1} << 34, .compute_units = 4};
  const double work = 4 * 75e6 * kWorkOfMultiplyAdd;  // 50 ms of a device that computes doubles slowly.
  EXPECT_EQ(TaskLaunches::Of(1000, work, device).count(), 1);
  EXPECT_EQ(TaskLaunches::Of(0, 100 * work, device).count(), 0);
  EXPECT_EQ(TaskLaunches::Of(1, 100 * work, device).count(), 1);
  EXPECT_EQ(TaskLaunches::Of(20, 100 * work, device).count(), 1) << "its 20 tasks keep 32 groups busy";
  const TaskLaunches launches = TaskLaunches::Of(1000, 10 * work, device);
  EXPECT_EQ(launches.at_once, 96);  // Of 32 work-groups three tasks each.
  EXPECT_EQ(launches.count(), 11);
  EXPECT_EQ(TaskLaunches::Of(1000, 1e6 * work, device).at_once, 32);
}

}  // namespace
}  // namespace heddle::ops::testing

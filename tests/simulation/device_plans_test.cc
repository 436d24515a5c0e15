// SPDX-License-Identifier: Apache-2.0
// Plans with a device, on a device whose memory the host must not touch and whose commands are late
// (tests/support/simulated_device.h), in every interleaving tried: the cells are those of the processor,
// however operators are shared out, whole or in panels. On machines without an OpenCL device, which runs the
// kernels, these tests are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scheduler/plan_memory.h"
#include "tests/simulation/plans_on_device.h"
#include "tests/support/seeds.h"

namespace heddle::testing_support {
namespace {

class DevicePlansTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RealDevice() == nullptr) GTEST_SKIP() << "this machine has no OpenCL device";
  }

  // Runs the case on the processor and, in panels of so many bytes (0: whole), on the simulated device.
  // Returns the launches.
  static int64_t ExpectSameCells(const CaseOnDevice& some, uint64_t seed, int64_t panel_bytes) {
    const Result<Pieces> expected =
        RunPlan(some.PlanOf(std::nullopt), some.live_in, {.seed = seed}, nullptr);
    EXPECT_TRUE(expected.ok()) << expected.status().ToString();
    SimulatedDevice device(*RealDevice(), {.seed = seed});
    {
      const Plan plan = some.PlanOf(OptionsOfDevice(seed), panel_bytes);
      const Result<Pieces> actual = RunPlan(plan, some.live_in, {.seed = seed}, &device);
      EXPECT_TRUE(actual.ok()) << actual.status().ToString() << "\n" << plan.ToText();
      if (expected.ok() && actual.ok()) ExpectSame(*expected, *actual);
    }
    EXPECT_TRUE(device.faults().empty()) << testing::PrintToString(device.faults());
    EXPECT_EQ(device.bytes_in_use(), 0);
    return device.launches();
  }
};

TEST_F(DevicePlansTest, HaveTheCellsOfTheProcessorInEveryOrder) {
  int64_t launches = 0;
  const Seeds seeds = SeedsOf(25);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    launches += ExpectSameCells(CaseOnDevice(seed), seed, 0);
  }
  EXPECT_GT(launches, 30);
}

// Granules of 64 rows: several panels of each value.
TEST_F(DevicePlansTest, InPanelsHaveTheCellsOfTheProcessorInEveryOrder) {
  int64_t launches = 0;
  const Seeds seeds = SeedsOf(25);
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
    launches += ExpectSameCells(CaseOnDevice(seed, /*rows=*/300), seed, /*panel_bytes=*/4000);
  }
  EXPECT_GT(launches, 100);
}

// One panel is copied in while another is computed with and a third copied back: the run takes about as long
// as the slowest of the three, and not as all of them.
TEST_F(DevicePlansTest, CopiesOfPanelsOverlapWithComputation) {
  constexpr int64_t kRows = 2048, kPanels = 32, kNs = 1'000'000;
  CaseOnDevice some(/*seed=*/0, kRows, /*most_ranks=*/1);
  some.graph = ExpOfPanels(kRows);
  some.where = {{"X", Distribution::One()}};
  some.live_in[0] = {{"X", some.live_in[0].at("X0")}};
  const Plan plan = some.PlanOf(scheduler::DeviceOptions{.device = kGpu}, kGranuleOfExp);
  int64_t copies_in = 0, copies_out = 0;
  for (const Task& task : plan.tasks) {
    copies_in += plan.streams[task.id.stream()].kind == StreamKind::kCopyIn;
    copies_out += plan.streams[task.id.stream()].kind == StreamKind::kCopyOut;
  }
  EXPECT_EQ(copies_in, 1);
  EXPECT_EQ(copies_out, 1) << "what is between operators stays there";
  const Result<Pieces> expected = RunPlan(some.PlanOf(std::nullopt), some.live_in, {}, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  struct Times {
    CommandTimes each;
    int64_t slowest;  // Of a panel: exp and abs are two launches.
  };
  for (const Times& times : {Times{{kNs, kNs / 2, kNs}, kNs}, Times{{2 * kNs, kNs / 2, kNs}, 2 * kNs},
                             Times{{kNs, kNs, kNs}, 2 * kNs}, Times{{kNs, kNs / 4, 3 * kNs}, 3 * kNs}}) {
    SimulatedDevice device(*RealDevice(), {.times = times.each,
                                           .planned_bytes = scheduler::PeakOnDevice(plan, kGpu)});
    DeviceRunReport report;
    {
      const Result<Pieces> actual =
          RunPlan(plan, some.live_in, {.most_delay_ns = 1000}, &device, &report);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ExpectSame(*expected, *actual);
    }
    EXPECT_TRUE(device.faults().empty()) << testing::PrintToString(device.faults());
    EXPECT_EQ(device.writes(), kPanels);
    EXPECT_EQ(device.reads(), kPanels);
    EXPECT_EQ(device.launches(), 2 * kPanels);
    const int64_t sum = kPanels * (times.each.write_ns + 2 * times.each.launch_ns + times.each.read_ns);
    EXPECT_GE(report.makespan, kPanels * times.slowest);
    EXPECT_LT(report.makespan, (kPanels + 4) * times.slowest) << "one after the other they take " << sum;
  }
}

}  // namespace
}  // namespace heddle::testing_support

// SPDX-License-Identifier: Apache-2.0
// Several runs in flight on one runtime, on real threads.
#include <gtest/gtest.h>

#include <barrier>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "actor/in_process_link.h"
#include "actor/run_admission.h"
#include "actor/run_number.h"
#include "actor/runtime.h"
#include "tests/simulation/plan_writer.h"
#include "tests/unit/actor/ring_plan.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

constexpr auto kDeadline = std::chrono::seconds(20);  // Only turns a hang into a failure.

// Counts who is inside, and waits until so many have been at once.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  Result<Value> Join() {
    std::unique_lock<std::mutex> lock(mutex_);
    most_ = std::max(most_, ++inside_);
    changed_.notify_all();
    const bool met = changed_.wait_for(lock, kDeadline, [this] { return most_ >= size_; });
    --inside_;
    if (!met) return Internal("the others did not come");
    return Value(1.0);
  }
  int most() const { return most_; }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  int most_ = 0;
};

// y = op(x)
std::shared_ptr<const Plan> PlanOf(const std::string& op, uint64_t key, int64_t peak_bytes = 0,
                                   int64_t cost_ns = 0) {
  PlanWriter writer(1);
  const NodeId x = AddNode(writer.graph(), "variable", {}, "x");
  const NodeId result = AddNode(writer.graph(), op, {x, kNoNode});
  const NodeId y = AddNode(writer.graph(), "assign", {result}, "y");
  const size_t source = writer.Add(TaskKind::kSource, 0, kCompute, {});
  const size_t compute = writer.Add(TaskKind::kCompute, 0, kCompute, {writer.Output(source), -1});
  const size_t sink = writer.Add(TaskKind::kSink, 0, kCompute, {writer.Output(compute)});
  writer.task(source).node = x;
  writer.task(compute).node = result;
  writer.task(compute).cost_ns = cost_ns;
  writer.task(sink).node = y;
  writer.SetKey(key);
  Plan plan = writer.Finish();
  plan.peak_bytes = {peak_bytes};
  return std::make_shared<const Plan>(std::move(plan));
}

class LanesTest : public testing::Test {
 protected:
  Runtime& Open(int lanes, const MemoryBudget* budget = nullptr) {
    runtime_ = Runtime::Create({.threads = 2, .budget = budget}, kernels_, context_, nullptr);
    for (int lane = 1; lane < lanes; ++lane) runtime_->OpenLane(static_cast<uint32_t>(lane), 1, context_);
    return *runtime_;
  }
  // A run of each lane, each from a thread of its own.
  std::vector<Result<RunResult>> RunAll(const std::vector<std::shared_ptr<const Plan>>& plans,
                                        uint32_t place) {
    std::vector<Result<RunResult>> results(plans.size(), Result<RunResult>(RunResult()));
    std::vector<std::thread> threads;
    for (size_t lane = 0; lane < plans.size(); ++lane) {
      threads.emplace_back([&, lane] {
        results[lane] = runtime_->Run(plans[lane], MakeRun(static_cast<uint32_t>(lane), place),
                                      {{"x", Value(static_cast<double>(lane))}});
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  TestKernels kernels_;
  ops::KernelContext context_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(LanesTest, RunsOfDifferentLanesAreInFlightAtOnce) {
  Open(4);
  for (uint32_t place = 1; place <= 20; ++place) {
    Meeting meeting(4);
    kernels_.Set("meet", [&](const ops::KernelCall&) { return meeting.Join(); });
    for (const auto& result : RunAll({4, PlanOf("meet", 1)}, place))
      ASSERT_TRUE(result.ok()) << result.status().ToString();
  }
}

// Long kernels queue for the device of their lane, not for that of another one.
TEST_F(LanesTest, EachLaneHasADeviceOfItsOwn) {
  Open(3);
  Meeting meeting(3);
  kernels_.Set("meet", [&](const ops::KernelCall&) { return meeting.Join(); });
  for (const auto& result : RunAll({3, PlanOf("meet", 1, 0, /*cost_ns=*/1'000'000'000)}, 1))
    EXPECT_TRUE(result.ok()) << result.status().ToString();
}

TEST_F(LanesTest, EachRunHasItsOwnValues) {
  Open(4);
  const auto add = PlanOf("add", 1);
  for (uint32_t place = 1; place <= 300; ++place) {
    const auto results = RunAll({4, add}, place);
    for (size_t lane = 0; lane < results.size(); ++lane) {
      ASSERT_TRUE(results[lane].ok()) << results[lane].status().ToString();
      ASSERT_EQ(results[lane]->live_out.at("y").scalar(), Scalar(100.0 + static_cast<double>(lane)));
    }
  }
}

TEST_F(LanesTest, AnErrorEndsTheRunOfItsLaneAlone) {
  Open(3);
  for (uint32_t place = 1; place <= 50; ++place) {
    const auto results = RunAll({PlanOf("add", 1), PlanOf("fail", 2), PlanOf("add", 1)}, place);
    ASSERT_TRUE(results[0].ok());
    ASSERT_EQ(results[1].status().ToString(), "test.dml:2:1: it fails");
    ASSERT_TRUE(results[2].ok());
  }
}

TEST_F(LanesTest, KernelsSeeTheCancellationOfTheirLane) {
  Open(3);
  Meeting meeting(2);
  kernels_.Set("wait", [&](const ops::KernelCall& call) -> Result<Value> {
    HEDDLE_RETURN_IF_ERROR(meeting.Join().status());
    while (!call.context.cancelled->load()) {
    }
    return Cancelled("seen");
  });
  kernels_.Set("cancel", [&](const ops::KernelCall& call) -> Result<Value> {
    HEDDLE_RETURN_IF_ERROR(meeting.Join().status());
    runtime_->CancelLane(1, Cancelled("enough"));
    EXPECT_FALSE(call.context.cancelled->load());
    return Value(5.0);
  });
  const auto results = RunAll({PlanOf("add", 1), PlanOf("wait", 2), PlanOf("cancel", 3)}, 1);
  EXPECT_TRUE(results[0].ok());
  EXPECT_EQ(results[1].status().message(), "enough");
  EXPECT_TRUE(results[2].ok());
  // Until the lane is opened anew.
  EXPECT_EQ(runtime_->Run(PlanOf("add", 1), MakeRun(1, 2), {{"x", Value(1.0)}}).status().message(), "enough");
  runtime_->OpenLane(1, 2, context_);
  EXPECT_TRUE(runtime_->Run(PlanOf("add", 1), MakeRun(1, 3), {{"x", Value(1.0)}}).ok());
}

TEST_F(LanesTest, CancelEndsAllRunsAndAllThatFollow) {
  Open(3);
  Meeting meeting(3);
  kernels_.Set("wait", [&](const ops::KernelCall& call) -> Result<Value> {
    HEDDLE_RETURN_IF_ERROR(meeting.Join().status());
    runtime_->Cancel(Cancelled("Ctrl-C"));
    while (!call.context.cancelled->load()) {
    }
    return Cancelled("seen");
  });
  for (const auto& result : RunAll({3, PlanOf("wait", 1)}, 1)) EXPECT_EQ(result.status().message(), "Ctrl-C");
  runtime_->OpenLane(7, 1, context_);
  EXPECT_EQ(runtime_->Run(PlanOf("add", 1), MakeRun(7, 1), {{"x", Value(1.0)}}).status().message(), "Ctrl-C");
}

TEST_F(LanesTest, ALaneThatIsNotOpenRunsNothing) {
  Open(1);
  EXPECT_EQ(runtime_->Run(PlanOf("add", 1), MakeRun(9, 1), {}).status().message(), "lane 9 is not open");
}

TEST_F(LanesTest, RunsWaitUntilTheirMemoryFitsBesideThatOfOthers) {
  MemoryBudget budget(1000);
  ASSERT_TRUE(budget.TryCharge(100));  // Variables.
  Open(4, &budget);
  for (const int at_once : {1, 2, 4}) {
    Meeting meeting(at_once);
    std::atomic<int> inside{0}, most{0};
    kernels_.Set("meet", [&](const ops::KernelCall&) {
      const int now = ++inside;
      for (int seen = most.load(); now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      Result<Value> met = meeting.Join();
      --inside;
      return met;
    });
    const auto plan = PlanOf("meet", static_cast<uint64_t>(at_once), 900 / at_once);
    for (const auto& result : RunAll({4, plan}, static_cast<uint32_t>(at_once)))
      EXPECT_TRUE(result.ok()) << result.status().ToString();
    EXPECT_EQ(most.load(), at_once);
  }
  // What fits nowhere begins alone, and fails by itself if it does.
  for (const auto& result : RunAll({4, PlanOf("add", 9, 5000)}, 5)) EXPECT_TRUE(result.ok());
}

TEST_F(LanesTest, ARunThatWaitsForMemoryCanBeCancelled) {
  MemoryBudget budget(1000);
  Open(2, &budget);
  std::barrier inside(2);
  kernels_.Set("hold", [&](const ops::KernelCall&) -> Result<Value> {
    inside.arrive_and_wait();
    inside.arrive_and_wait();
    return Value(1.0);
  });
  std::thread first([&] { EXPECT_TRUE(runtime_->Run(PlanOf("hold", 1, 800), 1, {{"x", Value(1.0)}}).ok()); });
  inside.arrive_and_wait();
  Status second;
  std::thread waits([&] {
    second = runtime_->Run(PlanOf("add", 2, 800), MakeRun(1, 1), {{"x", Value(1.0)}}).status();
  });
  runtime_->CancelLane(1, Cancelled("enough"));
  waits.join();
  EXPECT_EQ(second.message(), "enough");
  inside.arrive_and_wait();
  first.join();
}

// Every rank runs the lanes at its own pace: runs begin in another order here than there.
TEST(DistributedLanesTest, RunsOfSeveralRanksAndLanesMeetTheirOwn) {
  constexpr uint32_t kRanks = 3, kLaneCount = 4, kRuns = 60;
  TestKernels kernels;
  InProcessNetwork network(kRanks);
  std::vector<ops::KernelContext> contexts(kRanks);
  std::vector<std::unique_ptr<Runtime>> runtimes;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    runtimes.push_back(
        Runtime::Create({.rank = rank, .threads = 1}, kernels, contexts[rank], &network.LinkOf(rank)));
    for (uint32_t lane = 1; lane < kLaneCount; ++lane) runtimes[rank]->OpenLane(lane, 1, contexts[rank]);
    network.Attach(rank, *runtimes[rank]);
  }
  const auto plan = Ring(kRanks, 2, "add", 1);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (uint32_t lane = 0; lane < kLaneCount; ++lane) {
      threads.emplace_back([&, rank, lane] {
        for (uint32_t place = 1; place <= kRuns; ++place) {
          const double x = lane * 1000 + place;
          const Result<RunResult> result = runtimes[rank]->Run(plan, MakeRun(lane, place), {{"x", Value(x)}});
          ASSERT_TRUE(result.ok()) << result.status().ToString();
          if (rank == 0) {
            ASSERT_EQ(result->live_out.at("sum").scalar(), Scalar(x * (1 + 2 * kRanks)));
          }
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t rank = 0; rank < kRanks; ++rank) network.Detach(rank);
}

TEST(DistributedLanesTest, AnErrorReachesTheOtherRanksOfItsLaneAlone) {
  constexpr uint32_t kRanks = 2;
  TestKernels kernels;
  kernels.Set("add", [](const ops::KernelCall& call) -> Result<Value> {
    const double sum = call.inputs[0]->scalar().AsDouble() + call.inputs[1]->scalar().AsDouble();
    if (call.inputs[0]->scalar().AsDouble() < 0) return FailedPrecondition("negative");
    return Value(sum);
  });
  InProcessNetwork network(kRanks);
  std::vector<ops::KernelContext> contexts(kRanks);
  std::vector<std::unique_ptr<Runtime>> runtimes;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    runtimes.push_back(
        Runtime::Create({.rank = rank, .threads = 1}, kernels, contexts[rank], &network.LinkOf(rank)));
    runtimes[rank]->OpenLane(1, 1, contexts[rank]);
    network.Attach(rank, *runtimes[rank]);
  }
  const auto plan = Ring(kRanks, 2, "add", 1);
  for (uint32_t place = 1; place <= 30; ++place) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      threads.emplace_back([&, rank] {
        EXPECT_TRUE(runtimes[rank]->Run(plan, place, {{"x", Value(1.0)}}).ok());
      });
      threads.emplace_back([&, rank] {
        const Result<RunResult> result = runtimes[rank]->Run(plan, MakeRun(1, place), {{"x", Value(-1.0)}});
        EXPECT_EQ(result.status().message(), "negative");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (uint32_t rank = 0; rank < kRanks; ++rank) network.Detach(rank);
}

}  // namespace
}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
// Several runtimes on real threads, joined in memory.
#include <gtest/gtest.h>

#include <thread>

#include "actor/in_process_link.h"
#include "actor/runtime.h"
#include "tests/simulation/plan_writer.h"
#include "tests/unit/actor/ring_plan.h"
#include "tests/unit/actor/test_kernels.h"

namespace heddle::actor {
namespace {

class Cluster {
 public:
  explicit Cluster(uint32_t ranks, int64_t stall_ms = 10'000, int64_t most_early_messages = 1000)
      : network_(ranks), contexts_(ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      runtimes_.push_back(Runtime::Create(
          {.rank = rank, .threads = 1, .most_early_messages = most_early_messages, .stall_ms = stall_ms},
          kernels, contexts_[rank], &network_.LinkOf(rank)));
      network_.Attach(rank, *runtimes_.back());
    }
  }
  ~Cluster() {
    for (uint32_t rank = 0; rank < runtimes_.size(); ++rank) network_.Detach(rank);
  }

  // One run on all ranks at once.
  std::vector<Result<RunResult>> Run(const std::shared_ptr<const Plan>& plan, uint32_t run,
                                     const std::map<std::string, Value>& live_in = {}) {
    std::vector<Result<RunResult>> results(runtimes_.size(), Result<RunResult>(RunResult()));
    std::vector<std::thread> ranks;
    for (uint32_t rank = 0; rank < runtimes_.size(); ++rank) {
      ranks.emplace_back([&, rank] { results[rank] = runtimes_[rank]->Run(plan, run, live_in); });
    }
    for (std::thread& rank : ranks) rank.join();
    return results;
  }
  Runtime& runtime(uint32_t rank) { return *runtimes_[rank]; }
  ops::KernelContext& context(uint32_t rank) { return contexts_[rank]; }

  TestKernels kernels;

 private:
  InProcessNetwork network_;
  std::vector<ops::KernelContext> contexts_;
  std::vector<std::unique_ptr<Runtime>> runtimes_;
};

TEST(DistributedRuntimeTest, ValuesGoAroundOnAnyNumberOfRanks) {
  for (uint32_t ranks = 2; ranks <= 4; ++ranks) {
    Cluster cluster(ranks);
    const auto plan = Ring(ranks, 5);
    for (uint32_t run = 1; run <= 30; ++run) {
      auto results = cluster.Run(plan, run, {{"x", Value(2.0)}});
      for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status().ToString();
      ASSERT_EQ(results[0]->live_out.at("sum").scalar(), Scalar(2.0 + 2.0 * 5 * ranks));
      ASSERT_TRUE(results[1]->live_out.empty());
    }
  }
}

TEST(DistributedRuntimeTest, ARankMayBeARunAhead) {
  Cluster cluster(2);
  // Rank 0 only sends: it is through with a run before rank 1 has begun it.
  const std::shared_ptr<const Plan> plan = OneCopy().first;
  std::thread ahead([&] {
    for (uint32_t run = 1; run <= 50; ++run) {
      EXPECT_TRUE(cluster.runtime(0).Run(plan, run, {{"x", Value(static_cast<double>(run))}}).ok());
    }
  });
  for (uint32_t run = 1; run <= 50; ++run) {
    Result<RunResult> result = cluster.runtime(1).Run(plan, run, {});
    ASSERT_TRUE(result.ok()) << result.status().ToString();
    ASSERT_EQ(result->live_out.at("y").scalar(), Scalar(static_cast<double>(run)));
    EXPECT_EQ(result->statistics[0].bytes_in, 8);
  }
  ahead.join();
}

TEST(DistributedRuntimeTest, AnErrorCrossesRanksWithItsPositionAndTheNextRunWorks) {
  Cluster cluster(3);
  const auto bad = Ring(3, 2, "fail");
  const auto good = Ring(3, 2);
  for (uint32_t run = 1; run <= 20; run += 2) {
    for (const auto& result : cluster.Run(bad, run, {{"x", Value(1.0)}})) {
      ASSERT_EQ(result.status().ToString(), "test.dml:3:1: it fails");
      ASSERT_EQ(result.status().code(), StatusCode::kFailedPrecondition);
    }
    for (const auto& result : cluster.Run(good, run + 1, {{"x", Value(1.0)}})) {
      ASSERT_TRUE(result.ok()) << result.status().ToString();
    }
  }
}

TEST(DistributedRuntimeTest, CancelOnOneRankEndsTheRunOnAll) {
  Cluster cluster(2);
  cluster.kernels.Set("wait", [&](const ops::KernelCall& call) -> Result<Value> {
    cluster.runtime(0).Cancel(Unavailable("worker 7 has gone"));
    while (!call.context.cancelled->load()) {
    }
    return Cancelled("seen");
  });
  for (const auto& result : cluster.Run(Ring(2, 2, "wait"), 1, {{"x", Value(1.0)}})) {
    EXPECT_EQ(result.status().message(), "worker 7 has gone");
  }
}

TEST(DistributedRuntimeTest, AnErrorBeforeTheOtherRankBeginsFailsItsRun) {
  Cluster cluster(2);
  cluster.runtime(1).OnError(0, 1, 3, FailedPrecondition("no good"));
  EXPECT_EQ(cluster.runtime(1).Run(Ring(2, 1), 1, {{"x", Value(1.0)}}).status().message(), "no good");
}

TEST(DistributedRuntimeTest, ARankThatLeavesEndsTheNextRunOfTheOthers) {
  Cluster cluster(3);
  const auto plan = Ring(3, 2);
  for (const auto& result : cluster.Run(plan, 1, {{"x", Value(1.0)}})) ASSERT_TRUE(result.ok());
  // Rank 0 waits in the run already, rank 2 comes later.
  Result<RunResult> of_rank_0 = RunResult();
  std::thread waiting([&] { of_rank_0 = cluster.runtime(0).Run(plan, 2, {{"x", Value(1.0)}}); });
  cluster.runtime(1).Leave(2, 3, NotFound("a file has gone"));
  EXPECT_EQ(cluster.runtime(2).Run(plan, 2, {{"x", Value(1.0)}}).status().message(), "a file has gone");
  waiting.join();
  EXPECT_EQ(of_rank_0.status().message(), "a file has gone");
  EXPECT_EQ(of_rank_0.status().code(), StatusCode::kNotFound);
}

// A peer that sends without end for a run that this rank has not begun: the run fails, on both.
TEST(DistributedRuntimeTest, MessagesThatComeEarlyAreBounded) {
  constexpr int64_t kRoom = 50;
  Cluster cluster(2, /*stall_ms=*/10'000, kRoom);
  const auto plan = Ring(2, 1);
  for (int64_t i = 0; i < 10 * kRoom; ++i)
    cluster.runtime(1).OnMessage({.destination = TaskId::Make(1, kHost, 0),  // Nobody's.
                                  .source = TaskId::Make(0, kCompute, 0),
                                  .run = static_cast<uint32_t>(1 + i % 3),
                                  .type = MessageType::kReady});
  for (const auto& result : cluster.Run(plan, 1, {{"x", Value(1.0)}})) {
    EXPECT_EQ(result.status().message(),
              "rank 0 sends more than 50 messages for runs that rank 1 has not begun");
    EXPECT_EQ(result.status().code(), StatusCode::kInternal);
  }
}

TEST(DistributedRuntimeTest, ErrorsThatComeEarlyAreThoseOfTheFirstRuns) {
  Cluster cluster(2);
  for (uint32_t run = 500; run > 0; --run)
    cluster.runtime(1).OnError(0, run, 3, FailedPrecondition("{}", run));
  for (const uint32_t run : {1u, 2u, 64u})
    EXPECT_EQ(cluster.runtime(1).Run(Ring(2, 1), run, {{"x", Value(1.0)}}).status().message(),
              fmt::format("{}", run));
}

TEST(DistributedRuntimeTest, AnErrorBeforeARunWithoutTasksFailsIt) {
  Cluster cluster(2);
  PlanWriter writer(2);
  const auto empty = std::make_shared<const Plan>(writer.Finish());
  cluster.runtime(1).OnError(0, 1, 3, FailedPrecondition("no good"));
  EXPECT_EQ(cluster.runtime(1).Run(empty, 1, {}).status().message(), "no good");
  EXPECT_TRUE(cluster.runtime(1).Run(empty, 2, {}).ok());
}

// A peer may send what it likes: only READY, ACK and EOS reach actors, and only those of streams that take
// part.
TEST(DistributedRuntimeTest, NonsenseFromAnotherRankChangesNothing) {
  Cluster cluster(2);
  cluster.kernels.Set("spam", [&](const ops::KernelCall& call) -> Result<Value> {
    for (const MessageType type : {MessageType::kReady, MessageType::kStart, MessageType::kDone,
                                   MessageType::kAbort, MessageType::kWake}) {
      for (const uint16_t port : {kPullDone, kLaunchDone}) {
        const uint32_t stream =
            type == MessageType::kReady ? kHost : kCompute;  // Rank 1 has no task on kHost.
        cluster.runtime(1).OnMessage(
            {.destination = TaskId::Make(1, stream, 0), .run = 1, .type = type, .port = port});
      }
    }
    return Value(call.inputs[0]->scalar().AsDouble() + call.inputs[1]->scalar().AsDouble());
  });
  for (const auto& result : cluster.Run(Ring(2, 3, "spam"), 1, {{"x", Value(1.0)}})) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
  }
  for (const auto& result : cluster.Run(Ring(2, 3), 2, {{"x", Value(1.0)}})) {
    ASSERT_TRUE(result.ok()) << result.status().ToString();
  }
}

TEST(DistributedRuntimeTest, AnErrorAfterTheEndFailsTheNextRunOnce) {
  Cluster cluster(2);
  PlanWriter writer(2);
  const auto empty = std::make_shared<const Plan>(writer.Finish());
  ASSERT_TRUE(cluster.runtime(0).Run(empty, 1, {}).ok());
  cluster.runtime(0).OnError(1, 1, 3, FailedPrecondition("too late"));
  EXPECT_EQ(cluster.runtime(0).Run(empty, 2, {}).status().message(), "too late");
  cluster.runtime(0).OnError(1, 1, 3,
                             FailedPrecondition("too late"));  // Of a run that is known to have failed.
  EXPECT_TRUE(cluster.runtime(0).Run(empty, 3, {}).ok());
}

TEST(DistributedRuntimeTest, AStallAcrossRanksIsFound) {
  Cluster cluster(2, /*stall_ms=*/2);
  // Each rank's piece waits for two pieces of the other one, with one slot to keep the first of them.
  PlanWriter writer(2);
  const NodeId x = AddNode(writer.graph(), "variable", {}, "x");
  const NodeId y = AddNode(writer.graph(), "assign", {x}, "y");
  const size_t source = writer.Add(TaskKind::kSource, 0, kCompute, {}, 1, 4);
  const RegisterId direct = writer.Output(source);
  const RegisterId there = writer.Output(writer.Add(TaskKind::kCopy, 1, kNetwork, {direct}));
  const RegisterId few = writer.Output(writer.Add(TaskKind::kPack, 1, kCompute, {there}, 2));
  const RegisterId many = writer.Output(writer.Add(TaskKind::kRepeat, 1, kCompute, {few}, 2));
  const RegisterId back = writer.Output(writer.Add(TaskKind::kCopy, 0, kNetwork, {many}));
  const size_t sink = writer.Add(TaskKind::kSink, 0, kHost, {back, direct});
  for (size_t i = 0; i < writer.size(); ++i) writer.task(i).node = x;
  writer.task(sink).node = y;
  const auto plan = std::make_shared<const Plan>(writer.Finish());
  auto results = cluster.Run(plan, 1, {{"x", Value(*Matrix::Dense(2, 1))}});
  for (const auto& result : results) {
    EXPECT_NE(result.status().message().find("stalled"), std::string::npos) << result.status().ToString();
  }
}

}  // namespace
}  // namespace heddle::actor

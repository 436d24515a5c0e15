// SPDX-License-Identifier: Apache-2.0
// The protocol on small plans, in many interleavings: back pressure, order, ends, errors, aborts, stale
// messages.
#include <gtest/gtest.h>

#include "actor/simulation.h"
#include "tests/simulation/hash_body.h"
#include "tests/simulation/plan_writer.h"

namespace heddle::actor {
namespace {

std::unique_ptr<Simulation> Simulate(const Plan& plan, HashTrace& trace,
                                     TaskId failing = TaskId{UINT64_MAX}) {
  auto simulation = Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
    return std::make_unique<HashBody>(instance, trace, failing);
  });
  EXPECT_TRUE(simulation.ok()) << simulation.status().ToString();
  return simulation.ok() ? *std::move(simulation) : nullptr;
}

int64_t Outstanding(Simulation& simulation, uint32_t ranks) {
  int64_t sum = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (const Actor& actor : simulation.instance(rank).actors()) {
      for (const RegisterState* produced : actor.produced()) sum += produced->outstanding();
    }
  }
  return sum;
}

// Two ranks: a source and a middle task on each side of the link, joined again on rank 0 by a sink that
// prints in order.
Plan TwoRankPlan() {
  PlanWriter writer(2);
  const size_t source = writer.Add(TaskKind::kSource, 0, 0, {}, 1, 3);
  const RegisterId made = writer.Output(source, 2);
  const RegisterId there = writer.Output(writer.Add(TaskKind::kCopy, 1, 2, {made}), 2);
  const RegisterId half = writer.Output(writer.Add(TaskKind::kCompute, 1, 0, {there}));
  const RegisterId back = writer.Output(writer.Add(TaskKind::kCopy, 0, 2, {half}));
  const size_t first = writer.Add(TaskKind::kSink, 0, 1, {made});
  const RegisterId permission = writer.ControlOutput(first);
  const size_t second = writer.Add(TaskKind::kSink, 0, 1, {back, made});
  writer.Control(permission, second);
  writer.reg(made).slots = 4;
  return writer.Finish();
}

TEST(BackPressureTest, NeverMorePiecesInFlightThanSlots) {
  for (int32_t slots = 1; slots <= 3; ++slots) {
    PlanWriter writer(1);
    const size_t source = writer.Add(TaskKind::kSource, 0, 0, {}, 1, 5);
    const size_t sink = writer.Add(TaskKind::kSink, 0, 1, {writer.Output(source, slots)});
    const TaskId source_id = writer.task(source).id;
    const Plan plan = writer.Finish();
    int64_t most = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed);
      HashTrace trace;
      ASSERT_TRUE(Simulate(plan, trace)->Run(1, {.seed = seed}).ok());
      int64_t in_flight = 0;
      for (TaskId id : trace.acts) {
        in_flight += id == source_id ? 1 : -1;
        most = std::max(most, in_flight);
      }
      ASSERT_EQ(trace.received, EvaluateInSequence(plan));
    }
    EXPECT_EQ(most, slots) << "sink " << sink;
  }
}

TEST(ActorTest, DiamondMeetsEveryPieceOnce) {
  PlanWriter writer(1);
  const RegisterId top = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, 4));
  const RegisterId left = writer.Output(writer.Add(TaskKind::kCompute, 0, 0, {top}));
  const RegisterId right = writer.Output(writer.Add(TaskKind::kCompute, 0, 1, {top, top}));
  writer.Add(TaskKind::kSink, 0, 2, {left, -1, right});
  const Plan plan = writer.Finish();
  for (uint64_t seed = 0; seed < 200; ++seed) {
    HashTrace trace;
    ASSERT_TRUE(Simulate(plan, trace)->Run(1, {.seed = seed}).ok());
    ASSERT_EQ(trace.received, EvaluateInSequence(plan));
    ASSERT_EQ(trace.received.begin()->second.size(), 4u);
  }
}

TEST(ActorTest, OutputsThatNobodyReadsDoNotHoldAnybodyUp) {
  PlanWriter writer(1);
  const RegisterId made = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, 4));
  writer.Output(writer.Add(TaskKind::kRepeat, 0, 0, {made}, 3));
  HashTrace trace;
  EXPECT_TRUE(Simulate(writer.Finish(), trace)->Run(1, {}).ok());
  EXPECT_EQ(trace.acts.size(), 4u + 12u);
}

// A -> acc(k) -> repeat(k) -> B with A -> B directly needs k slots on the direct edge (runtime
// reference 2.11, T3).
Plan Reconvergence(int32_t slots) {
  PlanWriter writer(1);
  const RegisterId direct = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, 4), slots);
  const RegisterId few = writer.Output(writer.Add(TaskKind::kAccumulate, 0, 0, {direct}, 2));
  const RegisterId again = writer.Output(writer.Add(TaskKind::kRepeat, 0, 0, {few}, 2));
  writer.Add(TaskKind::kSink, 0, 0, {again, direct});
  return writer.Finish();
}

TEST(StallTest, TooFewSlotsAreFoundAndNamed) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HashTrace trace;
    const Status status = Simulate(Reconvergence(1), trace)->Run(1, {.seed = seed});
    ASSERT_EQ(status.code(), StatusCode::kInternal);
    ASSERT_NE(status.message().find("stalled"), std::string::npos);
    ASSERT_NE(status.ToString().find("all 1 slots of register 0 are unread"), std::string::npos)
        << status.ToString();
    ASSERT_NE(status.ToString().find("needs register 2 of task 2"), std::string::npos) << status.ToString();
    ASSERT_TRUE(Simulate(Reconvergence(2), trace)->Run(1, {.seed = seed}).ok());
  }
}

TEST(StallTest, RatesThatDoNotFitAreAnErrorNotAHang) {
  PlanWriter writer(1);
  const RegisterId three = writer.Output(writer.Add(TaskKind::kSource, 0, 0, {}, 1, 3), 3);
  const RegisterId two = writer.Output(writer.Add(TaskKind::kSource, 0, 1, {}, 1, 2), 3);
  writer.Add(TaskKind::kSink, 0, 0, {three, two});
  PlanWriter odd(1);
  const RegisterId pieces = odd.Output(odd.Add(TaskKind::kSource, 0, 0, {}, 1, 3));
  odd.Add(TaskKind::kSink, 0, 0, {odd.Output(odd.Add(TaskKind::kAccumulate, 0, 0, {pieces}, 2))});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HashTrace trace;
    for (const Plan& plan : {writer.Finish(), odd.Finish()}) {
      const Status status = Simulate(plan, trace)->Run(1, {.seed = seed});
      ASSERT_NE(status.message().find("rates differ"), std::string::npos) << status.ToString();
    }
  }
}

TEST(AbortTest, AtEveryStepFreesAllSlotsAndTheNextRunDropsWhatIsStale) {
  const Plan plan = TwoRankPlan();
  for (uint64_t seed = 0; seed < 20; ++seed) {
    HashTrace trace;
    auto simulation = Simulate(plan, trace);
    ASSERT_TRUE(simulation->Run(1, {.seed = seed}).ok());
    ASSERT_EQ(trace.received, EvaluateInSequence(plan));
    const int64_t steps = simulation->steps();
    uint32_t run = 1;
    for (int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(testing::Message() << "replay with seed " << seed << ", abort at step " << step);
      const Status aborted = simulation->Run(++run, {.seed = seed, .abort_at_step = step});
      ASSERT_TRUE(aborted.ok() || aborted.code() == StatusCode::kCancelled) << aborted.ToString();
      ASSERT_EQ(Outstanding(*simulation, 2), 0);
      trace = HashTrace();
      const Status whole = simulation->Run(++run, {.seed = seed + 1});
      ASSERT_TRUE(whole.ok()) << whole.ToString();
      ASSERT_EQ(trace.received, EvaluateInSequence(plan));
    }
  }
}

TEST(ErrorTest, ReachesEveryRankThatStillWorks) {
  const Plan plan = TwoRankPlan();
  const auto failing = std::find_if(plan.tasks.begin(), plan.tasks.end(), [](const Task& task) {
    return task.id.rank() == 1 && task.kind == TaskKind::kCompute;
  });
  ASSERT_NE(failing, plan.tasks.end());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    HashTrace trace;
    auto simulation = Simulate(plan, trace, failing->id);
    const Status status = simulation->Run(1, {.seed = seed});
    ASSERT_EQ(status.code(), StatusCode::kAborted);
    ASSERT_EQ(simulation->StatusOf(0).code(), StatusCode::kAborted);
    ASSERT_EQ(simulation->StatusOf(1).code(), StatusCode::kAborted);
    ASSERT_EQ(Outstanding(*simulation, 2), 0);
  }
}

TEST(SimulationTest, ReusesAPlanAThousandTimes) {
  const Plan plan = TwoRankPlan();
  const auto expected = EvaluateInSequence(plan);
  HashTrace trace;
  auto simulation = Simulate(plan, trace);
  for (uint32_t run = 1; run <= 1000; ++run) {
    trace = HashTrace();
    ASSERT_TRUE(simulation->Run(run, {.seed = run}).ok());
    ASSERT_EQ(trace.received, expected);
  }
}

}  // namespace
}  // namespace heddle::actor

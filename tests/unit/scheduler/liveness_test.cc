// SPDX-License-Identifier: Apache-2.0
#include "scheduler/liveness.h"

#include <gtest/gtest.h>

namespace heddle::scheduler {
namespace {

// Plans by hand: tasks on one rank and stream, one register per Connect().
class PlanUnderTest {
 public:
  TaskId Add(TaskKind kind, int64_t rate = 1, int64_t count = 1) {
    Task task;
    task.id = TaskId::Make(0, 0, static_cast<uint32_t>(plan.tasks.size()));
    task.kind = kind;
    task.rate = rate;
    task.count = count;
    plan.tasks.push_back(task);
    return task.id;
  }
  RegisterId Connect(TaskId producer, std::vector<TaskId> consumers, int32_t slots = 1) {
    Register reg;
    reg.id = static_cast<RegisterId>(plan.registers.size());
    reg.producer = producer;
    reg.consumers = consumers;
    reg.slots = slots;
    plan.tasks[producer.index()].produced.push_back(reg.id);
    for (TaskId consumer : consumers) plan.tasks[consumer.index()].consumed.push_back(reg.id);
    plan.registers.push_back(reg);
    return reg.id;
  }
  Plan plan;
};

TEST(LivenessTest, ChainOfOneSlotIsLive) {
  PlanUnderTest p;
  const TaskId source = p.Add(TaskKind::kSource, 1, 5);
  const TaskId middle = p.Add(TaskKind::kCompute);
  const TaskId sink = p.Add(TaskKind::kSink);
  p.Connect(source, {middle});
  p.Connect(middle, {sink});
  EXPECT_TRUE(CheckLive(p.plan).ok());
}

// Runtime reference 2.11, T3: A -> acc(k) -> repeat(k) -> B with A -> B directly needs k slots on the direct
// edge.
TEST(LivenessTest, ReconvergenceAcrossAccumulateAndRepeatNeedsAsManySlotsAsTheRate) {
  for (int64_t rate : {2, 3, 4}) {
    PlanUnderTest p;
    const TaskId a = p.Add(TaskKind::kSource, 1, 2 * rate);
    const TaskId accumulate = p.Add(TaskKind::kAccumulate, rate);
    const TaskId repeat = p.Add(TaskKind::kRepeat, rate);
    const TaskId b = p.Add(TaskKind::kSink);
    const RegisterId direct = p.Connect(a, {accumulate, b});
    p.Connect(accumulate, {repeat});
    p.Connect(repeat, {b});
    EXPECT_FALSE(CheckLive(p.plan).ok());
    ASSERT_TRUE(AssignSlots(&p.plan).ok());
    EXPECT_EQ(p.plan.registers[static_cast<size_t>(direct)].slots, rate);
    EXPECT_TRUE(CheckLive(p.plan).ok());
    --p.plan.registers[static_cast<size_t>(direct)].slots;
    EXPECT_FALSE(CheckLive(p.plan).ok());
  }
}

TEST(LivenessTest, AccumulateBesidePackIsLiveWithOneSlot) {
  PlanUnderTest p;
  const TaskId a = p.Add(TaskKind::kSource, 1, 6);
  const TaskId accumulate = p.Add(TaskKind::kAccumulate, 3);
  const TaskId pack = p.Add(TaskKind::kPack, 3);
  const TaskId b = p.Add(TaskKind::kSink);
  p.Connect(a, {accumulate, pack});
  p.Connect(accumulate, {b});
  p.Connect(pack, {b});
  EXPECT_TRUE(CheckLive(p.plan).ok());
}

TEST(LivenessTest, ContradictingRatesAreRejected) {
  PlanUnderTest p;
  const TaskId a = p.Add(TaskKind::kSource, 1, 4);
  const TaskId accumulate = p.Add(TaskKind::kAccumulate, 2);
  const TaskId b = p.Add(TaskKind::kSink);
  p.Connect(a, {accumulate, b});
  p.Connect(accumulate, {b});
  const Status status = CheckLive(p.plan);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("rates"), std::string::npos) << status.message();
  EXPECT_FALSE(AssignSlots(&p.plan).ok());
}

TEST(LivenessTest, CycleIsRejected) {
  PlanUnderTest p;
  const TaskId a = p.Add(TaskKind::kCompute);
  const TaskId b = p.Add(TaskKind::kCompute);
  p.Connect(a, {b});
  p.Connect(b, {a});
  const Status status = CheckLive(p.plan);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("cycle"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace heddle::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/plan_memory.h"

#include <gtest/gtest.h>

#include "scheduler/liveness.h"

namespace heddle::scheduler {
namespace {

constexpr int64_t kLarge = int64_t{1} << 20;

// Plans of one rank by hand: every task makes one register of `bytes` from some others.
class PlanUnderTest {
 public:
  RegisterId Add(std::vector<RegisterId> consumed, int64_t bytes, TaskKind kind = TaskKind::kCompute,
                 const std::string& op = "exp", uint32_t rank = 0) {
    Node node;
    node.op = op;
    Task task;
    task.id = TaskId::Make(rank, 0, static_cast<uint32_t>(plan.tasks.size()));
    task.kind = kind;
    task.node = plan.graph.Add(node);
    for (RegisterId id : consumed) plan.registers[static_cast<size_t>(id)].consumers.push_back(task.id);
    task.consumed = std::move(consumed);
    if (kind != TaskKind::kSink) {
      Register reg;
      reg.id = static_cast<RegisterId>(plan.registers.size());
      reg.producer = task.id;
      reg.bytes = bytes;
      task.produced.push_back(reg.id);
      plan.registers.push_back(reg);
    }
    plan.tasks.push_back(std::move(task));
    return static_cast<RegisterId>(plan.registers.size()) - 1;
  }
  const Register& reg(RegisterId id) const { return plan.registers[static_cast<size_t>(id)]; }
  size_t Guards() const {
    size_t guards = 0;
    for (const Task& task : plan.tasks) guards += task.control_in.size();
    return guards;
  }
  int64_t Block() {
    PlanMemory(&plan);
    return plan.peak_bytes[0];
  }

  Plan plan;
};

TEST(PlanMemoryTest, AChainNeedsTwoPlacesAndNoGuard) {
  PlanUnderTest p;
  RegisterId last = p.Add({}, kLarge, TaskKind::kSource, "rand");
  for (int i = 0; i < 6; ++i) last = p.Add({last}, kLarge);
  EXPECT_EQ(p.Block(), 2 * kLarge);
  EXPECT_EQ(p.Guards(), 0u);
  EXPECT_NE(p.reg(0).offset, p.reg(1).offset);
  EXPECT_EQ(p.reg(0).offset, p.reg(2).offset);
}

// Nothing orders the two sums but the place that they share.
TEST(PlanMemoryTest, IndependentBranchesShareAPlaceBehindAGuard) {
  PlanUnderTest p;
  p.Add({p.Add({}, kLarge, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  p.Add({p.Add({}, kLarge, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  EXPECT_EQ(p.Block(), kLarge + 128);
  EXPECT_EQ(p.reg(0).offset, p.reg(2).offset);
  ASSERT_EQ(p.plan.tasks[2].control_in.size(), 1u);
  const Register& guard = p.reg(p.plan.tasks[2].control_in[0]);
  EXPECT_TRUE(guard.control);
  EXPECT_EQ(guard.producer, p.plan.tasks[1].id);
  EXPECT_TRUE(CheckLive(p.plan).ok());
}

TEST(PlanMemoryTest, SmallRegistersAreNotWorthAGuard) {
  PlanUnderTest p;
  p.Add({p.Add({}, 1024, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  p.Add({p.Add({}, 1024, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  EXPECT_EQ(p.Block(), 2 * 1024 + 2 * 64);
  EXPECT_EQ(p.Guards(), 0u);
}

TEST(PlanMemoryTest, LiveInsAndLiveOutsKeepTheirPlaces) {
  PlanUnderTest p;
  const RegisterId x = p.Add({}, kLarge, TaskKind::kSource, "variable");
  const RegisterId y = p.Add({x}, kLarge);
  p.Add({y}, 0, TaskKind::kSink, "assign");
  const RegisterId z = p.Add({p.Add({}, kLarge, TaskKind::kSource, "rand")}, kLarge);
  p.Add({z}, 0, TaskKind::kSink, "assign");
  EXPECT_EQ(p.Block(), 4 * kLarge);  // x, y and z stay; the random matrix is there when z is made.
}

TEST(PlanMemoryTest, WhatAnotherRankReadsStaysToTheEnd) {
  PlanUnderTest p;
  const RegisterId made = p.Add({}, kLarge, TaskKind::kSource, "rand");
  RegisterId last = p.Add({}, kLarge, TaskKind::kSource, "rand");
  for (int i = 0; i < 4; ++i) last = p.Add({last}, kLarge);
  p.plan.ranks = 2;
  p.Add({made}, kLarge, TaskKind::kCopy, "exp", 1);
  EXPECT_EQ(p.Block(), 3 * kLarge);
  EXPECT_EQ(p.plan.peak_bytes[1], kLarge);
}

TEST(PlanMemoryTest, SeveralActsATaskShareNothing) {
  PlanUnderTest p;
  RegisterId last = p.Add({}, kLarge, TaskKind::kSource, "rand");
  p.plan.tasks[0].count = 2;
  for (int i = 0; i < 4; ++i) last = p.Add({last}, kLarge);
  EXPECT_EQ(p.Block(), 5 * kLarge);
}

TEST(PlanMemoryTest, SlotsLieBehindEachOther) {
  PlanUnderTest p;
  const RegisterId made = p.Add({}, kLarge, TaskKind::kSource, "rand");
  p.plan.registers[0].slots = 3;
  p.Add({made}, 8, TaskKind::kCompute, "sum");
  EXPECT_EQ(p.Block(), 3 * kLarge + 64);
}

TEST(PlanMemoryTest, SizesBeyondAllCountingAreStillPlaced) {
  PlanUnderTest p;
  const RegisterId first = p.Add({}, INT64_MAX - 63, TaskKind::kSource, "rand");
  p.Add({first}, INT64_MAX - 63);
  EXPECT_GE(p.Block(), INT64_MAX - 63);
}

}  // namespace
}  // namespace heddle::scheduler

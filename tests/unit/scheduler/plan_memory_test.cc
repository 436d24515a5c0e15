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
}

// Nothing orders the two sums but the place that they share.
TEST(PlanMemoryTest, IndependentBranchesShareAPlaceBehindAGuard) {
  PlanUnderTest p;
  p.Add({p.Add({}, kLarge, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  p.Add({p.Add({}, kLarge, TaskKind::kSource, "rand")}, 8, TaskKind::kCompute, "sum");
  EXPECT_EQ(p.Block(), kLarge + 128);
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

// A value whose size only the run tells takes nothing of what the plan says, and at most what it may have.
TEST(PlanMemoryTest, UnknownSizesAreBoundedByTheirOperands) {
  const ValueInfo x = ValueInfo::OfMatrix({100000, 10}), y = ValueInfo::OfMatrix({50000, 10});
  const int64_t of_x = BlockBytesOf(x), of_y = BlockBytesOf(y);
  struct Case {
    std::string op;
    bool reads_y;
    ValueInfo result;
    int64_t most;
  };
  const Case cases[] = {
      {"removeEmpty", false, ValueInfo::OfMatrix({kUnknown, 10}), of_x},
      {"removeEmpty", false, ValueInfo::OfMatrix({100000, kUnknown}), of_x},
      {"unique", false, ValueInfo::OfMatrix({kUnknown, kUnknown}), of_x},
      {"rbind", true, ValueInfo::OfMatrix({kUnknown, 10}), BlockBytesOf(ValueInfo::OfMatrix({150000, 10}))},
      {"table", false, ValueInfo::OfMatrix({kUnknown, kUnknown}), of_x},
      {"transformencode", true, ValueInfo::OfMatrix({100000, kUnknown}), of_x},
      {"quantile", true, ValueInfo::OfMatrix({5, 10}), BlockBytesOf(ValueInfo::OfMatrix({5, 10}))},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.op);
    PlanUnderTest p;
    std::vector<RegisterId> read;
    for (const ValueInfo& info : {x, y}) {
      if (!read.empty() && !one.reads_y) break;
      read.push_back(p.Add({}, KnownBytes(info), TaskKind::kSource, "variable"));
      p.plan.registers.back().info = p.plan.graph.nodes.back().info = info;
    }
    const RegisterId made = p.Add(read, KnownBytes(one.result), TaskKind::kCompute, one.op);
    p.plan.registers.back().info = p.plan.graph.nodes.back().info = one.result;
    for (NodeId input = 0; input < static_cast<NodeId>(read.size()); ++input)
      p.plan.graph.nodes.back().inputs.push_back(input);
    p.Add({made}, 0, TaskKind::kSink, "assign");
    p.Block();
    const int64_t operands = of_x + (one.reads_y ? of_y : 0);
    const bool is_open = !one.result.IsSized();
    EXPECT_EQ(p.plan.pool_bytes[0], operands + (is_open ? 0 : one.most));
    EXPECT_EQ(MostPoolBytes(p.plan)[0], operands + one.most);
  }
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

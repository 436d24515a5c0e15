// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "scheduler/liveness.h"
#include "scheduler/schedule.h"
#include "tests/unit/scheduler/graph_under_test.h"

// Plans for ranks that have a device.
namespace heddle::scheduler {

inline constexpr Device kGpu = {DeviceType::kOpenCl, 0};

struct Counts {
  int on_device = 0, copies_in = 0, copies_out = 0;
  bool operator==(const Counts&) const = default;
};

inline Counts CountTasks(const Plan& plan) {
  Counts counts;
  for (const Task& task : plan.tasks) {
    const StreamKind kind = plan.streams[task.id.stream()].kind;
    if (task.id.device().IsHost()) continue;
    EXPECT_EQ(task.phase == Phase::kTransfer, kind != StreamKind::kCompute);
    counts.on_device += kind == StreamKind::kCompute;
    counts.copies_in += kind == StreamKind::kCopyIn;
    counts.copies_out += kind == StreamKind::kCopyOut;
  }
  return counts;
}

inline Result<Plan> PlanOf(const GraphUnderTest& g, const std::map<std::string, Distribution>& live_in,
                    ScheduleOptions options) {
  if (!options.device) options.device.emplace();
  options.device->device = kGpu;
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, Schedule(g.graph, live_in, options));
  EXPECT_TRUE(CheckLive(plan).ok());
  const Result<Plan> parsed = Plan::Parse(plan.ToText());
  EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
  if (parsed.ok()) {
    EXPECT_EQ(parsed->ToText(), plan.ToText());
  }
  return plan;
}

// exp(X) and rowSums(exp(X)) there; rowcumsum(X) here.
inline GraphUnderTest ExpAndSums() {
  GraphUnderTest g;
  const NodeId x = g.Variable("X", MatrixOf(100'000, 20));
  const NodeId y = g.Op("exp", {x}, MatrixOf(100'000, 20));
  const NodeId s = g.Op("rowSums", {y}, MatrixOf(100'000, 1));
  const NodeId q = g.Op("*", {y, s}, MatrixOf(100'000, 20));
  const NodeId t = g.Op("rowcumsum", {x}, MatrixOf(100'000, 20));
  g.Assign("Q", q);
  g.Assign("T", t);
  return g;
}

}  // namespace heddle::scheduler

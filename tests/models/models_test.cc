// SPDX-License-Identifier: Apache-2.0
// SPIN explores every history of small plans with the code of actors itself (docs/protocol.md): the
// properties p1-p6 of runtime reference 2.13, and that each guard of the protocol is needed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/models/model_checker.h"
#include "tests/models/world.h"

namespace heddle::actor {
namespace {

constexpr int kSecondsOfQuick = 60;
constexpr int kSecondsOfAll = 3600;

bool ChecksAll() { return std::getenv("HEDDLE_MODELS_ALL") != nullptr; }

class ModelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = ModelChecker::WhatIsMissing(); !missing.empty()) GTEST_SKIP() << missing;
  }
  ModelChecker checker_;
};

TEST_F(ModelsTest, EveryHistoryKeepsTheProtocolAndEnds) {
  for (const ModelInstance& instance : ModelInstances()) {
    if (!instance.is_quick && !ChecksAll()) continue;
    if (const char* only = std::getenv("HEDDLE_MODEL"); only != nullptr && instance.name != only) continue;
    SCOPED_TRACE(instance.name);
    const Verdict verdict =
        checker_.Check(instance, Guard::kNone, ChecksAll() ? kSecondsOfAll : kSecondsOfQuick);
    std::printf("%-34s %10.0f states %7.2f s %s\n", instance.name.c_str(), verdict.states, verdict.seconds,
                verdict.why.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(IsAsExpected(instance, verdict)) << verdict.why << "\n"
                                                 << verdict.report << "\n"
                                                 << checker_.Trail(instance, Guard::kNone);
  }
}

// Also those that only tests/models/all explores can be explored.
TEST_F(ModelsTest, EveryInstanceHasABeginning) {
  for (const ModelInstance& instance : ModelInstances()) {
    SCOPED_TRACE(instance.name);
    World world(instance);
    bool can_begin = false;
    for (size_t event = 0; event < world.events().size(); ++event) can_begin |= world.Can(event);
    EXPECT_TRUE(can_begin);
    EXPECT_FALSE(world.IsOver());
  }
}

// p3 as a property of its own, under weak fairness; above it follows from histories that have an end.
TEST_F(ModelsTest, EveryFairHistoryComesToItsEnd) {
  for (const ModelInstance& instance : ModelInstances()) {
    const bool is_small =
        instance.name == "diamond" || instance.name == "two_runs" || instance.name == "lost_rank";
    if (!instance.breaks_by.empty() || !(is_small || (ChecksAll() && instance.is_quick))) continue;
    SCOPED_TRACE(instance.name);
    const Verdict verdict =
        checker_.Check(instance, Guard::kNone, ChecksAll() ? kSecondsOfAll : kSecondsOfQuick,
                       /*with_progress=*/true);
    EXPECT_EQ(verdict.is_ok, !instance.must_stall) << verdict.why;
  }
}

}  // namespace
}  // namespace heddle::actor

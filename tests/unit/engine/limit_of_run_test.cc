// SPDX-License-Identifier: Apache-2.0
#include "engine/session/limit_of_run.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/memory/memory_budget.h"
#include "engine/engine.h"

namespace heddle::engine {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

int64_t Limit() { return MemoryBudget::Process().limit(); }

TEST(LimitOfRunTest, OfSeveralTheSmallestCountsAndNoneIsLeft) {
  const int64_t before = Limit();
  auto first = std::make_unique<LimitOfRun>(400 * kMiB);
  EXPECT_EQ(Limit(), 400 * kMiB);
  const auto none = std::make_unique<LimitOfRun>(0);
  EXPECT_EQ(Limit(), 400 * kMiB);
  auto second = std::make_unique<LimitOfRun>(300 * kMiB);
  auto third = std::make_unique<LimitOfRun>(500 * kMiB);
  EXPECT_EQ(Limit(), 300 * kMiB);
  first.reset();
  EXPECT_EQ(Limit(), 300 * kMiB);
  second.reset();
  EXPECT_EQ(Limit(), 500 * kMiB);
  third.reset();
  EXPECT_EQ(Limit(), before);
}

// What a session with little memory refuses, the next one computes.
TEST(LimitOfRunTest, ASessionHasNoLimitOfAnEarlierOne) {
  const auto engine_with = [](int64_t memory_bytes) {
    EngineOptions options;
    options.session.threads = 1;
    options.session.memory_bytes = memory_bytes;
    return *Engine::Create(options);
  };
  const Script script{.text = "X = rand(rows=900, cols=900, seed=1)\n[U, S, V] = svd(X)\ns = sum(S)"};
  const int64_t before = Limit();
  const auto small = engine_with(8 * kMiB);
  EXPECT_EQ(Limit(), before) << "nothing runs";
  EXPECT_EQ(small->Run(script, {}, {"s"}).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Limit(), before);
  const Result<RunResults> results = engine_with(0)->Run(script, {}, {"s"});
  EXPECT_TRUE(results.ok()) << results.status().ToString();
}

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
// Every guard of the protocol is needed: without it a model or a seed of the simulation fails. The table of
// docs/protocol.md says the same.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "actor/simulation.h"
#include "scheduler/liveness.h"
#include "tests/models/model_checker.h"
#include "tests/simulation/hash_body.h"
#include "tests/simulation/random_plan.h"

namespace heddle::actor {
namespace {

constexpr std::string_view kSeedsOf = "seeds of ";
constexpr uint64_t kMostSeeds = 2000;

struct Finder {
  Guard guard;
  std::string_view instance;  ///< The model that fails without it.
};
constexpr Finder kFinders[] = {
    {Guard::kInputsFilled, "chain"},
    {Guard::kOutputsFree, "chain"},
    {Guard::kOneFlight, "chain_two_slots"},
    {Guard::kInputReturned, "repeat_into_accumulate"},
    {Guard::kCountLeft, "chain_two_slots"},
    {Guard::kPeriodPublishes, "reconvergence"},
    {Guard::kPackComputes, "reconvergence_of_packs"},
    {Guard::kSumIsWhole, "reconvergence"},
    {Guard::kPeriodHolds, "repeat_into_accumulate"},
    {Guard::kInputHeld, "repeat_into_accumulate"},
    {Guard::kAllReturned, "repeat_into_accumulate"},
    {Guard::kFirstFilled, "chain_two_slots"},
    {Guard::kLastTaken, "chain_two_slots"},
    {Guard::kFirstFree, "chain_two_slots"},
    {Guard::kLastFilled, "chain_two_slots"},
    {Guard::kLastReader, "diamond"},
    {Guard::kEndOfEmptyEdge, "chain"},
    {Guard::kTakenAfterEnd, "chain"},
    {Guard::kEdgesExhausted, "chain"},
    {Guard::kCountReached, "chain_two_slots"},
    {Guard::kPeriodComplete, "unequal_period"},
    {Guard::kInputLeft, "unequal_counts"},
    {Guard::kDrained, "chain"},
    {Guard::kKernelReturns, "cancel"},
    {Guard::kDeafWhenOver, "cancel_on_two_threads"},
    {Guard::kSilentWhenOver, "said_twice"},
    {Guard::kReadyInSequence, "said_twice"},
    {Guard::kEosOnce, "said_twice"},
    {Guard::kAckOfReadSlot, "said_twice"},
    {Guard::kPullUnderWay, "said_twice_by_a_rank"},
    {Guard::kDroppedBody, "cancel"},
    {Guard::kLiveRun, "cancel"},
    {Guard::kEarlyKept, "two_runs"},
    {Guard::kEosLeaves, "seeds of exchange_on_two_threads"},
    {Guard::kLastAckLeaves, "exchange"},
};

// One random plan as tests/simulation runs it: to the end, cancelled at some step, and once more.
bool SeedIsRight(uint64_t seed) {
  Plan plan = RandomPlan(seed, {.most_tasks = 24});
  if (!scheduler::AssignSlots(&plan).ok()) return true;
  HashTrace trace;
  auto simulation = Simulation::Create(std::make_shared<const Plan>(plan), [&](const PlanInstance& instance) {
    return std::make_unique<HashBody>(instance, trace, TaskId{UINT64_MAX});
  });
  if (!simulation.ok() || !(*simulation)->Run(1, {.seed = seed}).ok()) return false;
  if (trace.received != EvaluateInSequence(plan)) return false;
  const auto at = static_cast<int64_t>(seed * 7919 % static_cast<uint64_t>((*simulation)->steps() + 1));
  const Status cancelled = (*simulation)->Run(2, {.seed = seed, .abort_at_step = at});
  if (!cancelled.ok() && cancelled.code() != StatusCode::kCancelled) return false;
  trace = HashTrace();
  return (*simulation)->Run(3, {.seed = seed + 1}).ok() && trace.received == EvaluateInSequence(plan);
}

// The plan of an instance whose histories are too many for SPIN.
bool SeedOfPlanIsRight(const std::shared_ptr<const Plan>& plan, uint64_t seed) {
  HashTrace trace;
  auto simulation = Simulation::Create(plan, [&](const PlanInstance& instance) {
    return std::make_unique<HashBody>(instance, trace, TaskId{UINT64_MAX});
  });
  return simulation.ok() && (*simulation)->Run(1, {.seed = seed}).ok();
}

// The first seed that fails without a guard; kMostSeeds: none does. What stops the process fails, too.
// Without a plan: random ones.
uint64_t FirstSeedWithout(Guard guard, const std::shared_ptr<const Plan>& plan = nullptr) {
  int ends[2];
  HEDDLE_CHECK(pipe(ends) == 0, "there are descriptors");
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    alarm(120);
    removed_guard = guard;
    for (uint64_t seed = 0; seed < kMostSeeds; ++seed) {
      (void)!write(ends[1], &seed, sizeof(seed));
      if (!(plan == nullptr ? SeedIsRight(seed) : SeedOfPlanIsRight(plan, seed))) _exit(0);
    }
    const uint64_t none = kMostSeeds;
    (void)!write(ends[1], &none, sizeof(none));
    _exit(0);
  }
  close(ends[1]);
  uint64_t last = kMostSeeds;
  for (uint64_t seed; read(ends[0], &seed, sizeof(seed)) == sizeof(seed);) last = seed;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return last;
}

const ModelInstance* FindInstance(const std::vector<ModelInstance>& instances, std::string_view name) {
  for (const ModelInstance& instance : instances)
    if (instance.name == name) return &instance;
  return nullptr;
}

TEST(GuardsTest, EachHasAFinder) {
  for (int guard = 0; guard < kGuards; ++guard) {
    EXPECT_EQ(std::count_if(std::begin(kFinders), std::end(kFinders),
                            [&](const Finder& finder) { return finder.guard == static_cast<Guard>(guard); }),
              1)
        << NameOf(static_cast<Guard>(guard));
  }
}

TEST(GuardsTest, TheManualSaysTheSame) {
  std::ifstream in(HEDDLE_SOURCE_DIR "/docs/protocol.md");
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  for (const Finder& finder : kFinders) {
    const std::string row =
        fmt::format("| `{}` | {} | {} |", NameOf(finder.guard), WhatHoldsBy(finder.guard), finder.instance);
    EXPECT_NE(text.find(row), std::string::npos) << row;
  }
}

TEST(GuardsTest, WithoutAnyOneAModelFails) {
  if (const std::string missing = ModelChecker::WhatIsMissing(); !missing.empty()) GTEST_SKIP() << missing;
  ModelChecker checker;
  const std::vector<ModelInstance> instances = ModelInstances();
  for (const Finder& finder : kFinders) {
    if (const char* only = std::getenv("HEDDLE_GUARD"); only != nullptr && NameOf(finder.guard) != only)
      continue;
    const bool by_seeds = finder.instance.starts_with(kSeedsOf);
    const ModelInstance* const instance =
        FindInstance(instances, finder.instance.substr(by_seeds ? kSeedsOf.size() : 0));
    ASSERT_NE(instance, nullptr) << finder.instance;
    if (by_seeds) {
      EXPECT_EQ(FirstSeedWithout(Guard::kNone, instance->plans[0]), kMostSeeds);
      EXPECT_LT(FirstSeedWithout(finder.guard, instance->plans[0]), kMostSeeds) << NameOf(finder.guard);
      continue;
    }
    const Verdict verdict = checker.Check(*instance, finder.guard);
    EXPECT_FALSE(IsAsExpected(*instance, verdict))
        << NameOf(finder.guard) << ": " << finder.instance << " does not need it";
    EXPECT_NE(verdict.why, "not through in time") << NameOf(finder.guard);
  }
}

// By hand (tests/models/all): for each guard everything that fails without it.
TEST(GuardsTest, WhatFailsWithoutEach) {
  if (std::getenv("HEDDLE_MODELS_ALL") == nullptr) GTEST_SKIP() << "tests/models/all runs it";
  ModelChecker checker;
  for (int number = 0; number < kGuards; ++number) {
    const auto guard = static_cast<Guard>(number);
    std::printf("%s:", std::string(NameOf(guard)).c_str());
    int failing = 0;
    for (const ModelInstance& instance : ModelInstances()) {
      if (!instance.is_quick || instance.must_stall) continue;
      const Verdict verdict = checker.Check(instance, guard);
      if (IsAsExpected(instance, verdict)) continue;
      ++failing;
      std::printf(" %s (%s);", instance.name.c_str(), verdict.why.c_str());
    }
    const uint64_t seed = FirstSeedWithout(guard);
    if (seed < kMostSeeds) std::printf(" seed %llu", static_cast<unsigned long long>(seed));
    std::printf("\n");
    std::fflush(stdout);
    EXPECT_TRUE(failing > 0 || seed < kMostSeeds) << NameOf(guard);
  }
}

}  // namespace
}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
// Random programs with random memory, on one rank and on several: the bytes of the run that has all memory
// that it wants, or a refusal that says why; never more of the pool than the limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/environment/random.h"
#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "tests/support/seeds.h"
#include "tests/unit/engine/random_programs.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

// The limit of the process while it lives: `bytes` beside what is in use before.
class LimitOfProcess {
 public:
  explicit LimitOfProcess(int64_t bytes) : before_(budget_.limit()) {
    BlockPool::Process().Trim();
    budget_.SetLimit(budget_.used() + bytes);
  }
  ~LimitOfProcess() { budget_.SetLimit(before_); }
  LimitOfProcess(const LimitOfProcess&) = delete;

 private:
  MemoryBudget& budget_ = MemoryBudget::Process();
  const int64_t before_;
};

// Any size from 2^first to 2^last bytes, each power of two as often as the others.
struct RandomMemory {
  double first, last;
  int64_t Draw(SeededRandom& random) const {
    return static_cast<int64_t>(
        std::exp2(first + (last - first) * static_cast<double>(random.Below(1000)) / 1000));
  }
};

// What was wanted, in numbers, and what the user can do.
void ExpectReason(const Status& status) {
  const std::string& message = status.message();
  EXPECT_TRUE(message.starts_with("out of memory: ") || message.starts_with("spill: ")) << status.ToString();
  EXPECT_NE(message.find_first_of("0123456789"), std::string::npos) << status.ToString();
  ASSERT_FALSE(status.notes().empty()) << status.ToString();
  EXPECT_NE(status.notes().back().find("memory"), std::string::npos) << status.ToString();
}

struct Counts {
  int right = 0;
  int spilled = 0;  // Of them: with panels in spill files.
  int refused = 0;
};

void TryBudget(const std::string& script, uint64_t seed, const RandomMemory& memory, Counts* counts) {
  SeededRandom random(seed ^ 0x62756467);
  const ScriptOutcome whole = RunScript(script);
  const int ranks = 1 + static_cast<int>(random.Below(3));
  SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks, 1 + static_cast<int>(seed % 2));
  options.memory_bytes = memory.Draw(random);
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << ranks << " ranks with "
                                  << options.memory_bytes << " bytes each\n"
                                  << script);
  const int64_t held_before = BlockPool::Process().Statistics().in_use_bytes;
  ScriptOutcome outcome;
  {
    const LimitOfProcess limit(ranks * options.memory_bytes);
    outcome = RunScript(script, options);
  }
  EXPECT_EQ(BlockPool::Process().Statistics().in_use_bytes, held_before);
  if (outcome.status.code() == StatusCode::kResourceExhausted) {
    ExpectReason(outcome.status);
    EXPECT_EQ(whole.output.substr(0, outcome.output.size()), outcome.output);
    ++counts->refused;
    return;
  }
  ASSERT_EQ(outcome.status.ToString(), whole.status.ToString());
  ASSERT_EQ(outcome.output, whole.output);
  ++counts->right;
  counts->spilled += std::any_of(outcome.statistics.begin(), outcome.statistics.end(),
                                 [](const SessionStatistics& rank) { return rank.spilled_bytes > 0; });
}

Counts TryBudgets(const testing_support::Seeds& seeds, const RandomMemory& memory,
                  std::string (*program)(uint64_t seed)) {
  Counts counts;
  for (uint64_t seed = seeds.begin; seed < seeds.end && !testing::Test::HasFatalFailure(); ++seed)
    TryBudget(program(seed), seed, memory, &counts);
  std::printf("%d right, %d of them with panels in spill files, %d refused\n", counts.right, counts.spilled,
              counts.refused);
  EXPECT_GT(counts.right, 0);
  EXPECT_GT(counts.refused, 0);
  return counts;
}

TEST(BudgetedProgramsTest, MatricesByRowsAreRightOrRefusedWithTheReason) {
  const Counts counts = TryBudgets(testing_support::SeedsOf(16), {17, 24}, [](uint64_t seed) {
    return RandomMatrixProgram(seed, {.times_rows = 20, .may_be_wide = false, .by_rows = true});
  });
  EXPECT_GT(counts.spilled, 0);
}
TEST(BudgetedProgramsTest, MatricesOfAnyShapeAreRightOrRefusedWithTheReason) {
  TryBudgets(testing_support::SeedsOf(12), {12, 22}, [](uint64_t seed) { return RandomMatrixProgram(seed); });
}
TEST(BudgetedProgramsTest, FramesAreRightOrRefusedWithTheReason) {
  TryBudgets(testing_support::SeedsOf(12), {12, 22}, RandomFrameProgram);
}

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
// Random programs that stop at a random step, and go on from its checkpoint on another number of ranks, whole
// or in panels, print the bytes of a program that nobody has stopped.
#include <gtest/gtest.h>

#include "tests/support/seeds.h"
#include "tests/unit/engine/random_programs.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::engine {
namespace {

using testing_support::Seeds;
using testing_support::SeedsOf;

SessionOptions OptionsOf(int ranks, int64_t panel_bytes) {
  SessionOptions options = ranks == 1 ? SessionOptions() : SplitOver(ranks);
  options.panel_bytes = panel_bytes;
  return options;
}

// `in_panels`: both run in panels of a height that differs from seed to seed.
void ExpectTheSameResumed(const std::function<std::string(uint64_t seed)>& program_of, bool in_panels) {
  const Seeds seeds = SeedsOf(16);
  uint64_t resumed = 0;
  for (uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const std::string script = program_of(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << script);
    const Program program = CompileOrDie(script);
    const int before = 1 + static_cast<int>(seed % 4), after = 1 + static_cast<int>(seed / 4 % 4);
    const int64_t panel_bytes = in_panels ? int64_t{1} << (seed % 15) : 0;
    Stretch whole;
    const ScriptOutcome expected = RunProgram(program, OptionsOf(before, panel_bytes), &whole);
    if (!expected.status.ok()) continue;
    Stretch first{.end = static_cast<int64_t>(seed * 7919 % static_cast<uint64_t>(whole.blocks))};
    const ScriptOutcome begun = RunProgram(program, OptionsOf(before, panel_bytes), &first);
    ASSERT_EQ(begun.status.message(), "it stands still");
    Stretch second{.begin = first.states, .begin_ranks = before};
    const ScriptOutcome ended = RunProgram(program, OptionsOf(after, panel_bytes), &second);
    ASSERT_TRUE(ended.status.ok()) << ended.status.ToString();
    ASSERT_EQ(begun.output + ended.output, expected.output) << before << " to " << after;
    ++resumed;
  }
  EXPECT_GT(resumed, seeds.count() / 2);
}

TEST(ResumedProgramsTest, OnAnyNumberOfRanks) {
  ExpectTheSameResumed([](uint64_t seed) { return RandomMatrixProgram(seed, {.by_rows = true}); }, false);
}

// So that the rows of one value are in memory twice, and not those of all.
TEST(ResumedProgramsTest, EachValueIsSharedOutByAPlanOfItsOwn) {
  const Program program = CompileOrDie(
      "A = rand(rows=5000, cols=2, seed=1) + 1\nB = A * 2\nC = A + 3\nD = B + C\n"
      "for (i in 1:2) { print(i) }\nprint(sum(A) + \" \" + sum(B) + \" \" + sum(C) + \" \" + sum(D))");
  Stretch first{.end = 3};
  const ScriptOutcome begun = RunProgram(program, SplitOver(2), &first);
  ASSERT_EQ(begun.status.message(), "it stands still");
  Stretch second{.begin = first.states, .begin_ranks = 2};
  const ScriptOutcome ended = RunProgram(program, SplitOver(3), &second);
  ASSERT_TRUE(ended.status.ok()) << ended.status.ToString();
  EXPECT_GE(ended.statistics[0].plans_compiled, 4);
}

TEST(ResumedProgramsTest, WithFrames) { ExpectTheSameResumed(RandomFrameProgram, false); }
TEST(ResumedProgramsTest, InPanels) {
  ExpectTheSameResumed([](uint64_t seed) { return RandomMatrixProgram(seed, {.by_rows = true}); }, true);
}

}  // namespace
}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#include "cluster/progress/progress_line.h"

#include <gtest/gtest.h>

namespace heddle::cluster {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

class FakeOutput : public ProgressOutput {
 public:
  FakeOutput(bool is_terminal, int columns) : is_terminal_(is_terminal), columns_(columns) {}
  bool is_terminal() const override { return is_terminal_; }
  int columns() const override { return columns_; }
  void Write(std::string_view text) override { written += text; }
  std::string Take() { return std::exchange(written, ""); }
  std::string written;

 private:
  bool is_terminal_;
  int columns_;
};

class ProgressLineTest : public testing::Test {
 protected:
  ProgressLine Make(FakeOutput& output) {
    return ProgressLine(clock_, output, [this] { return progress_; });
  }
  void InLoop(uint64_t round, uint64_t rounds) {
    progress_.state.loops = {{.line = 5, .number = 1, .round = round, .rounds = rounds}};
  }
  VirtualClock clock_;
  Progress progress_{.state = {.file = "a.dml", .line = 7, .main_line = 7},
                     .used_bytes = 1'100'000'000,
                     .limit_bytes = 4'000'000'000};
};

TEST_F(ProgressLineTest, OnATerminalItIsSilentForTwoSecondsAndGoesBeforeOutput) {
  FakeOutput output(true, 100);
  {
    ProgressLine line = Make(output);
    clock_.Advance(kSecond);
    line.Tick();
    EXPECT_EQ(output.Take(), "");
    line.Aside([&] { output.Write("output of the script\n"); });
    EXPECT_EQ(output.Take(), "output of the script\n") << "nothing is there to be erased";
    clock_.Advance(kSecond);
    line.Tick();
    EXPECT_EQ(output.Take(), "\r2 s  line 7  1.1 of 4.0 GB\x1b[K");
    line.Aside([&] { output.Write("output of the script\n"); });
    EXPECT_EQ(output.Take(), "\r\x1b[Koutput of the script\n");
    line.Tick();
    EXPECT_NE(output.Take(), "");
  }
  EXPECT_EQ(output.Take(), "\r\x1b[K") << "it goes at the end";
}

TEST_F(ProgressLineTest, ElsewhereItIsALineEveryThirtySeconds) {
  FakeOutput output(false, 0);
  ProgressLine line = Make(output);
  int lines = 0;
  for (int second = 0; second < 95; ++second) {
    clock_.Advance(kSecond);
    line.Tick();
    lines += output.Take().empty() ? 0 : 1;
  }
  EXPECT_EQ(lines, 3);
  clock_.Advance(30 * kSecond);
  line.Tick();
  EXPECT_EQ(output.Take(), "heddle: 2 min 5 s  line 7  1.1 of 4.0 GB\n");
}

TEST_F(ProgressLineTest, RoundsTellHowMuchIsLeft) {
  FakeOutput output(true, 120);
  ProgressLine line = Make(output);
  InLoop(0, 100);
  line.Tick();
  clock_.Advance(10 * kSecond);
  InLoop(20, 100);
  progress_.state.function = "kmeans";
  progress_.state.main_line = 3;
  progress_.state.rows = 450'000'000;
  line.Tick();
  EXPECT_EQ(
      output.Take(),
      "\r10 s  line 3 in kmeans line 7  round 21 of 100  [####................]  20 %  1.1 of 4.0 GB  about 40 s left\x1b[K")
      << "what does not fit is left out";
  clock_.Advance(10 * kSecond);
  InLoop(50, 100);
  progress_.state.function = "";
  line.Tick();
  EXPECT_EQ(output.Take(),
            "\r20 s  line 3  round 51 of 100  [##########..........]  50 %  450 M rows  1.1 of 4.0 GB  "
            "about 20 s left\x1b[K");
}

TEST_F(ProgressLineTest, ANarrowTerminalShowsWhatMattersMost) {
  FakeOutput output(true, 30);
  ProgressLine line = Make(output);
  InLoop(0, 10);
  clock_.Advance(3 * kSecond);
  line.Tick();
  EXPECT_EQ(output.Take(), "\r3 s  line 7  round 1 of 10\x1b[K");
  FakeOutput tiny(true, 5);
  ProgressLine in_tiny = Make(tiny);
  clock_.Advance(3 * kSecond);
  in_tiny.Tick();
  EXPECT_LE(tiny.written.size(), 4 + std::string("\r\x1b[K").size());
}

TEST_F(ProgressLineTest, NamesOfScriptsBringNoControlCharacters) {
  FakeOutput output(true, 100);
  ProgressLine line = Make(output);
  progress_.state.function = "f\x1b[2J";
  clock_.Advance(3 * kSecond);
  line.Tick();
  EXPECT_EQ(output.Take().find("\x1b[2J"), std::string::npos);
}

TEST_F(ProgressLineTest, NothingIsShownOfWhatHasNotBegun) {
  FakeOutput output(true, 100);
  ProgressLine line = Make(output);
  progress_.state = {};
  clock_.Advance(60 * kSecond);
  line.Tick();
  EXPECT_EQ(output.Take(), "");
}

TEST(RemainingTimeTest, InnerRoundsCountWithinOuterOnes) {
  RemainingTime remaining;
  ProgressState state{.line = 1};
  state.loops = {{.number = 1, .round = 0, .rounds = 4}, {.number = 2, .round = 0, .rounds = 10}};
  EXPECT_EQ(remaining.Look(state, 0).left_ns, std::nullopt);
  state.loops[1].round = 5;
  const RemainingTime::Estimate half_a_round = remaining.Look(state, 10 * kSecond);
  EXPECT_DOUBLE_EQ(*half_a_round.done, 0.125);
  EXPECT_EQ(half_a_round.left_ns, 70 * kSecond);
  // Another loop begins anew.
  state.loops = {{.number = 3, .round = 0, .rounds = 2}};
  EXPECT_EQ(remaining.Look(state, 20 * kSecond).left_ns, std::nullopt);
  state.loops[0].round = 1;
  EXPECT_EQ(remaining.Look(state, 25 * kSecond).left_ns, 5 * kSecond);
  // Of how many rounds there are nobody knows.
  state.loops = {{.number = 4, .round = 7, .rounds = 0}};
  EXPECT_EQ(remaining.Look(state, 30 * kSecond).done, std::nullopt);
  // Nor how often the loop inside of it will run, or the plan in it.
  state.loops.push_back({.number = 5, .round = 1, .rounds = 4});
  EXPECT_EQ(remaining.Look(state, 31 * kSecond).done, std::nullopt);
  state.loops[1].round = 2;
  state.plan = 1;
  state.plan_cost_ns = 20 * kSecond;
  EXPECT_EQ(remaining.Look(state, 35 * kSecond).done, std::nullopt);
  EXPECT_EQ(remaining.Look(state, 35 * kSecond).left_ns, std::nullopt);
}

TEST(RemainingTimeTest, OfAPlanTheCostModelTells) {
  RemainingTime remaining;
  ProgressState state{.line = 1, .plan = 1, .plan_cost_ns = 20 * kSecond};
  EXPECT_EQ(remaining.Look(state, 0).left_ns, 20 * kSecond);
  EXPECT_EQ(remaining.Look(state, 5 * kSecond).left_ns, 15 * kSecond);
  state.plan_done_ns = 10 * kSecond;
  EXPECT_EQ(remaining.Look(state, 6 * kSecond).left_ns, 6 * kSecond) << "it is faster than was thought";
  state.plan_done_ns = 20 * kSecond;
  EXPECT_EQ(remaining.Look(state, 12 * kSecond).left_ns, std::nullopt);
  EXPECT_EQ(remaining.Look({.line = 1}, 13 * kSecond).left_ns, std::nullopt);
}

// Rounds of 10 ms, of which the condition in line 4 takes two and the body in line 5 the rest.
TEST(MostSeenStatementTest, OfShortRoundsItIsTheOneThatTakesTheTime) {
  MostSeenStatement statement;
  for (uint64_t look = 0; look < 50; ++look) {
    ProgressState state{.line = look % 5 == 0 ? 4 : 5, .main_line = look % 5 == 0 ? 4 : 5};
    state.loops = {{.line = 4, .number = 1, .round = 20 * look}};
    const ProgressState shown = statement.Look(state);
    EXPECT_EQ(shown.loops, state.loops);
    if (look < 2) continue;
    EXPECT_EQ(shown.line, 5) << look;
    EXPECT_EQ(shown.main_line, 5) << look;
  }
}

TEST(MostSeenStatementTest, OfLongOnesItIsTheOneThatRuns) {
  MostSeenStatement statement;
  ProgressState state;
  state.loops = {{.line = 4, .number = 1, .round = 7}};
  for (const int32_t line : {5, 5, 5, 5, 6, 7}) {
    state.line = line;
    EXPECT_EQ(statement.Look(state).line, line);
  }
  // Another loop, and behind it.
  state.loops = {{.line = 8, .number = 2, .round = 0}};
  state.line = 9;
  EXPECT_EQ(statement.Look(state).line, 9);
  state.loops = {};
  state.line = 10;
  EXPECT_EQ(statement.Look(state).line, 10);
}

TEST(ProgressTest, GoesThroughJson) {
  Progress progress{.state = {.file = "a.dml",
                              .line = 7,
                              .function = "f",
                              .main_line = 2,
                              .rows = 9,
                              .plan = 3,
                              .plan_cost_ns = 10,
                              .plan_done_ns = 5},
                    .used_bytes = 1,
                    .limit_bytes = 2};
  progress.state.loops = {{.line = 4, .number = 1, .round = 2, .rounds = 3}};
  const std::optional<Progress> parsed = ParseProgress(ToJson(progress));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->state, progress.state);
  EXPECT_EQ(parsed->used_bytes, 1);
  EXPECT_EQ(parsed->limit_bytes, 2);
  EXPECT_FALSE(ParseProgress("[").has_value());
  EXPECT_TRUE(ParseProgress(R"({"loops": [1, [1, 2], ["a", 1, 2, 3]], "line": "x"})")->state.loops.empty());
}

}  // namespace
}  // namespace heddle::cluster

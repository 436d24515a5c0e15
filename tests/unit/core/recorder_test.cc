// SPDX-License-Identifier: Apache-2.0
#include "core/environment/recorder.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/environment/progress_board.h"

namespace heddle {
namespace {

TEST(RecorderTest, SitesThatAreEqualHaveOneNumber) {
  VirtualClock clock;
  Recorder recorder(clock, 10);
  const RecordedSite site{.name = "sum", .file = "a.dml", .line = 3};
  EXPECT_EQ(recorder.SiteOf(site), 0u);
  EXPECT_EQ(recorder.SiteOf({.name = "sum", .file = "a.dml", .line = 4}), 1u);
  EXPECT_EQ(recorder.SiteOf(site), 0u);
  EXPECT_EQ(recorder.Sites().size(), 2u);
}

TEST(RecorderTest, EventsComeByTheirBeginningAndThoseAroundOthersFirst) {
  VirtualClock clock;
  Recorder recorder(clock, 10);
  recorder.Add("main", 0, 20, 30);
  recorder.Add("main", 1, 10, 15);
  recorder.Add("main", 2, 10, 40, /*rows=*/7, /*bytes=*/8);
  const std::vector<RecordedThread> threads = recorder.Threads();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].name, "main");
  EXPECT_EQ(threads[0].dropped, 0);
  ASSERT_EQ(threads[0].events.size(), 3u);
  EXPECT_EQ(threads[0].events[0].site, 2u);
  EXPECT_EQ(threads[0].events[0].duration_ns, 30);
  EXPECT_EQ(threads[0].events[0].rows, 7);
  EXPECT_EQ(threads[0].events[0].bytes, 8);
  EXPECT_EQ(threads[0].events[1].site, 1u);
  EXPECT_EQ(threads[0].events[2].site, 0u);
}

// Memory is bounded, what took long is left of the whole run, and nothing goes uncounted.
TEST(RecorderTest, OfTooManyEventsTheShorterOnesGo) {
  VirtualClock clock;
  Recorder recorder(clock, 1000);
  constexpr int64_t kEvents = 100'000;
  for (int64_t i = 0; i < kEvents; ++i)
    recorder.Add("main", 0, i * 10, i * 10 + (i % 500 == 0 ? 1000 + i : 1));
  const std::vector<RecordedThread> threads = recorder.Threads();
  EXPECT_LE(threads[0].events.size(), 1000u);
  EXPECT_EQ(static_cast<int64_t>(threads[0].events.size()) + threads[0].dropped, kEvents);
  int64_t long_ones = 0;
  for (const RecordedEvent& event : threads[0].events) long_ones += event.duration_ns >= 1000;
  EXPECT_EQ(long_ones, kEvents / 500);
}

// Short-lived threads, as those of a parfor, take over what the ones before them have left.
TEST(RecorderTest, ThreadsOfANameThatFollowEachOtherAreOne) {
  VirtualClock clock;
  Recorder recorder(clock, 100);
  for (int i = 0; i < 20; ++i) std::thread([&] { recorder.Add("lane 1", 0, i, i + 1); }).join();
  std::thread first([&] {
    recorder.Add("lane 2", 0, 0, 1);
    std::thread([&] { recorder.Add("lane 2", 0, 5, 6); }).join();
  });
  first.join();
  const std::vector<RecordedThread> threads = recorder.Threads();
  ASSERT_EQ(threads.size(), 3u);
  EXPECT_EQ(threads[0].events.size(), 20u);
  EXPECT_EQ(threads[1].name, "lane 2");
  EXPECT_EQ(threads[2].name, "lane 2 2");
}

// As what a device does beside the thread that hears of it.
TEST(RecorderTest, AThreadMayNoteUnderSeveralNames) {
  VirtualClock clock;
  Recorder recorder(clock, 100);
  for (int i = 0; i < 20; ++i) recorder.Add(i % 2 == 0 ? "main" : "opencl:0 compute", 0, i, i + 1);
  const std::vector<RecordedThread> threads = recorder.Threads();
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].name, "main");
  EXPECT_EQ(threads[0].events.size(), 10u);
  EXPECT_EQ(threads[1].name, "opencl:0 compute");
  EXPECT_EQ(threads[1].events.size(), 10u);
}

TEST(RecorderTest, AThreadMayNoteInOneRecorderAfterTheOther) {
  VirtualClock clock;
  auto first = std::make_unique<Recorder>(clock, 10);
  Recorder second(clock, 10);
  first->Add("main", 0, 0, 1);
  second.Add("main", 0, 0, 1);
  first->Add("main", 0, 2, 3);
  EXPECT_EQ(first->Threads()[0].events.size(), 2u);
  first = nullptr;
  second.Add("main", 0, 2, 3);
  EXPECT_EQ(second.Threads()[0].events.size(), 2u);
}

TEST(ProgressBoardTest, TellsStatementLoopsAndPlan) {
  ProgressBoard board;
  EXPECT_EQ(board.Read(), ProgressState());
  const SourcePosition at{.file = "a.dml", .line = 7, .column = 1};
  const std::string function = "kmeans";
  board.Enter(at);
  board.EnterFunction(&function, /*main_line=*/3);
  board.EnterLoop(at, 10);
  board.NextRound();
  board.NextRound();
  board.EnterLoop(at, 0);
  board.BeginPlan(1000);
  board.BeginAct(8);
  board.AddAct(/*rows=*/50, /*cost_ns=*/400);
  const ProgressState state = board.Read();
  EXPECT_EQ(state.file, "a.dml");
  EXPECT_EQ(state.line, 8) << "that of the operator";
  EXPECT_EQ(state.main_line, 3);
  EXPECT_EQ(state.function, "kmeans");
  ASSERT_EQ(state.loops.size(), 2u);
  EXPECT_EQ(state.loops[0].round, 2u);
  EXPECT_EQ(state.loops[0].rounds, 10u);
  EXPECT_EQ(state.loops[1].rounds, 0u);
  EXPECT_NE(state.loops[0].number, state.loops[1].number);
  EXPECT_EQ(state.rows, 50);
  EXPECT_EQ(state.plan_cost_ns, 1000);
  EXPECT_EQ(state.plan_done_ns, 400);
  board.LeaveLoop();
  board.EndPlan();
  EXPECT_EQ(board.Read().loops.size(), 1u);
  EXPECT_EQ(board.Read().plan, 0u);
  board.Close();
  EXPECT_EQ(board.Read(), ProgressState());
}

TEST(ProgressBoardTest, LoopsBeyondTheFirstFourAreNotTold) {
  ProgressBoard board;
  const SourcePosition at{.file = "a.dml", .line = 1, .column = 1};
  board.Enter(at);
  for (int i = 0; i < 6; ++i) board.EnterLoop(at, 3);
  board.NextRound();
  board.EndRound();
  EXPECT_EQ(board.Read().loops.size(), ProgressBoard::kMostLoops);
  EXPECT_EQ(board.Read().loops.back().round, 0u) << "the round is one of the sixth loop";
  for (int i = 0; i < 3; ++i) board.LeaveLoop();
  board.NextRound();
  EXPECT_EQ(board.Read().loops.size(), 3u);
  EXPECT_EQ(board.Read().loops.back().round, 1u);
}

}  // namespace
}  // namespace heddle

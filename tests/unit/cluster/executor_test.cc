// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "cluster/executor/executor_process.h"
#include "cluster/executor/launch.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::cluster {
namespace {

engine::RunOutcome Launch(const std::string& script, int ranks, std::string* output,
                          engine::Cancellation* cancellation = nullptr) {
  engine::SessionOptions options = engine::SplitOver(ranks);
  options.seed = 42;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.print = [output](std::string_view text) { *output += text; };
  surroundings.cancellation = cancellation;
  return RunOnLocalProcesses(engine::CompileOrDie(script), options, surroundings);
}

// Processes that this one started and that have not been waited for.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    for (pid_t pid = 0; file >> pid;) children.push_back(pid);
  }
  return children;
}

constexpr char kSum[] =
    "X = rand(rows=2000, cols=5, seed=1)\nprint(\"sum \" + sum(X * X))\nprint(toString(colSums(X), "
    "decimal=16))";

TEST(ExecutorTest, ProcessesGiveTheBytesOfOneSession) {
  const engine::ScriptOutcome expected = engine::RunScript(kSum);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  for (const int ranks : {1, 3}) {
    std::string output;
    const engine::RunOutcome outcome = Launch(kSum, ranks, &output);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(output, expected.output);
    ASSERT_EQ(outcome.statistics.size(), static_cast<size_t>(ranks));
    for (const engine::SessionStatistics& rank : outcome.statistics) {
      if (ranks == 1) continue;
      EXPECT_GT(rank.rows_held, 0);
      EXPECT_GT(rank.bytes_sent + rank.bytes_received, 0);
    }
  }
  EXPECT_TRUE(Children().empty());
}

TEST(ExecutorTest, AFaultOfTheScriptArrivesWithItsPlace) {
  std::string output;
  const engine::RunOutcome outcome = Launch(
      "print(\"first\")\nX = rand(rows=1000, cols=2, seed=1)\nif (sum(X) > 0) {\n  stop(\"no more\")\n}", 2,
      &output);
  EXPECT_EQ(outcome.status.code(), StatusCode::kAborted) << outcome.status.ToString();
  EXPECT_EQ(outcome.status.position().line, 4);
  EXPECT_EQ(output, "first\n");
}

TEST(ExecutorTest, AKilledExecutorIsNamedAndTheOthersGo) {
  std::string output;
  std::future<engine::RunOutcome> running;
  std::promise<void> started;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  bool told = false;
  surroundings.print = [&](std::string_view) {
    if (!std::exchange(told, true)) started.set_value();
  };
  const Program program = engine::CompileOrDie(
      "print(\"started\")\nX = rand(rows=1000, cols=5, seed=1)\nwhile (sum(X) > 0) { X = X + 1 }");
  running = std::async(std::launch::async,
                       [&] { return RunOnLocalProcesses(program, engine::SplitOver(3), surroundings); });
  started.get_future().wait();
  const std::vector<pid_t> children = Children();
  ASSERT_EQ(children.size(), 3u);
  kill(children[1], SIGKILL);
  const engine::RunOutcome outcome = running.get();
  EXPECT_EQ(outcome.status.code(), StatusCode::kUnavailable);
  EXPECT_NE(outcome.status.message().find(fmt::format("(pid {}) was killed by signal 9", children[1])),
            std::string::npos)
      << outcome.status.ToString();
  EXPECT_TRUE(Children().empty());
}

TEST(ExecutorTest, AStoppedExecutorIsFoundAndTheOthersGo) {
  std::promise<void> started;
  bool told = false;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.silence_ms = 1'000;
  surroundings.print = [&](std::string_view) {
    if (!std::exchange(told, true)) started.set_value();
  };
  const Program program = engine::CompileOrDie(
      "print(\"started\")\nX = rand(rows=1000, cols=5, seed=1)\nwhile (sum(X) > 0) { X = X + 1 }");
  std::future<engine::RunOutcome> running = std::async(
      std::launch::async, [&] { return RunOnLocalProcesses(program, engine::SplitOver(2), surroundings); });
  started.get_future().wait();
  const std::vector<pid_t> children = Children();
  ASSERT_EQ(children.size(), 2u);
  kill(children[1], SIGSTOP);
  const engine::RunOutcome outcome = running.get();
  EXPECT_EQ(outcome.status.code(), StatusCode::kUnavailable);
  EXPECT_NE(outcome.status.message().find(
                fmt::format("(pid {}) gave no sign of life for 1 s and was killed", children[1])),
            std::string::npos)
      << outcome.status.ToString();
  EXPECT_TRUE(Children().empty());
}

TEST(ExecutorTest, AnExecutorThatComputesForLongIsNotStuck) {
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.silence_ms = 500;
  surroundings.print = [](std::string_view) {};
  const Program program = engine::CompileOrDie(
      "A = rand(rows=1200, cols=1200, seed=1)\nfor (i in 1:4) { A = A %*% A / 1200 }\nprint(sum(A))");
  EXPECT_TRUE(RunOnLocalProcesses(program, engine::SplitOver(1), surroundings).status.ok());
}

TEST(ExecutorTest, ACancelledRunEndsAllExecutors) {
  engine::Cancellation cancellation;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.print = [&](std::string_view) { cancellation.Request(Cancelled("enough")); };
  surroundings.cancellation = &cancellation;
  const Program program = engine::CompileOrDie(
      "print(\"started\")\nX = rand(rows=1000, cols=5, seed=1)\nwhile (sum(X) > 0) { X = X + 1 }");
  const engine::RunOutcome outcome = RunOnLocalProcesses(program, engine::SplitOver(2), surroundings);
  EXPECT_EQ(outcome.status.code(), StatusCode::kCancelled);
  EXPECT_EQ(outcome.status.message(), "enough");
  EXPECT_TRUE(Children().empty());
}

TEST(ExecutorTest, AnUnreadableProgramIsAnOutcomeNotACrash) {
  ExecutorStart start;
  start.job = "j";
  start.token = MakeToken();
  start.program = "this is no program";
  start.directory = testing::TempDir();
  std::promise<Status> done;
  std::promise<ExecutorExit> exited;
  ExecutorEvents events;
  events.done = [&](const Status& status, bool, std::optional<engine::SessionStatistics>) {
    done.set_value(status);
  };
  events.exited = [&](const ExecutorExit& exit) { exited.set_value(exit); };
  Result<std::unique_ptr<ExecutorProcess>> process = ExecutorProcess::Start(start, events);
  ASSERT_TRUE(process.ok()) << process.status().ToString();
  EXPECT_FALSE(done.get_future().get().ok());
  const ExecutorExit exit = exited.get_future().get();
  EXPECT_FALSE(exit.signalled);
  EXPECT_EQ(exit.value, 0);
}

TEST(ExecutorTest, AMissingBinaryIsAnError) {
  EXPECT_EQ(ExecutorProcess::Start({}, {}, "/nonexistent/heddle").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace heddle::cluster

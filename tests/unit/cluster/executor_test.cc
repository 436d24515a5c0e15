// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "cluster/executor/executor_process.h"
#include "cluster/executor/launch.h"
#include "cluster/security/token.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::cluster {
namespace {

engine::RunOutcome Launch(const std::string& script, int ranks, std::string* output,
                          engine::Cancellation* cancellation = nullptr, bool shares_memory = true) {
  engine::SessionOptions options = engine::SplitOver(ranks);
  options.seed = 42;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.print = [output](std::string_view text) { *output += text; };
  surroundings.cancellation = cancellation;
  return RunOnLocalProcesses(engine::CompileOrDie(script), options, surroundings,
                             {.shares_memory = shares_memory});
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

// What would be left of memory or sockets that executors share.
std::vector<std::string> SharedThings() {
  std::vector<std::string> things;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) things.push_back(file.path());
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(file.path(), error);
    if (target.find("heddle-inbox") != std::string::npos) things.push_back(target);
  }
  std::ranges::sort(things);
  return things;
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

TEST(ExecutorTest, SharedMemoryChangesNoByte) {
  const char* const script =
      "X = rand(rows=5000, cols=60, seed=1)\nS = rand(rows=5000, cols=40, sparsity=0.1, seed=2)\n"
      "Y = order(target=X, by=1)[1:4000, ]\n"
      "print(sum(Y * Y) + sum(rbind(S, S))); print(toString(t(X) %*% X, decimal=17, rows=60, cols=60))";
  const engine::ScriptOutcome expected = engine::RunScript(script);
  ASSERT_TRUE(expected.status.ok()) << expected.status.ToString();
  for (const bool shares_memory : {true, false}) {
    std::string output;
    const engine::RunOutcome outcome = Launch(script, 3, &output, nullptr, shares_memory);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(output, expected.output);
    int64_t shared = 0;
    for (const engine::SessionStatistics& rank : outcome.statistics) shared += rank.bytes_shared;
    EXPECT_EQ(shared > 0, shares_memory);
  }
}

TEST(ExecutorTest, NothingIsLeftOfSharedMemoryOfAKilledExecutor) {
  const std::vector<std::string> before = SharedThings();
  const Program program = engine::CompileOrDie(
      "X = rand(rows=200000, cols=5, seed=1)\nprint(\"started\")\n"
      "while (sum(X) > 0) { X = rbind(X[2:nrow(X), ], X[1, ]) }");
  for (const size_t killed : {0, 1}) {
    engine::RunSurroundings surroundings;
    surroundings.directory = testing::TempDir();
    std::promise<void> started;
    surroundings.print = [&](std::string_view) { started.set_value(); };
    std::future<engine::RunOutcome> running = std::async(
        std::launch::async, [&] { return RunOnLocalProcesses(program, engine::SplitOver(2), surroundings); });
    started.get_future().wait();
    const std::vector<pid_t> children = Children();
    ASSERT_EQ(children.size(), 2u);
    kill(children[killed], SIGKILL);
    const engine::RunOutcome outcome = running.get();
    EXPECT_EQ(outcome.status.code(), StatusCode::kUnavailable) << outcome.status.ToString();
    EXPECT_NE(outcome.status.message().find("was killed by signal 9"), std::string::npos)
        << outcome.status.ToString();
    EXPECT_EQ(SharedThings(), before);
    for (const pid_t child : children)
      EXPECT_FALSE(std::filesystem::exists(fmt::format("/proc/{}", child))) << child;
  }
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
  EXPECT_NE(
      outcome.status.message().find(fmt::format(
          "(pid {}) gave no sign of life for 1 s and was killed: signal 19 had stopped it", children[1])),
      std::string::npos)
      << outcome.status.ToString();
  EXPECT_TRUE(Children().empty());
}

// On a machine with too much to do nobody is stuck: here an executor that gets hardly any of a processor.
TEST(ExecutorTest, WhoWaitsForAProcessorIsNotStuck) {
  cpu_set_t processors, first;
  ASSERT_EQ(sched_getaffinity(0, sizeof(processors), &processors), 0);
  CPU_ZERO(&first);
  for (size_t i = 0; CPU_COUNT(&first) == 0; ++i)
    if (CPU_ISSET(i, &processors)) CPU_SET(i, &first);
  std::promise<pid_t> started;
  bool told = false;
  std::string last;
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.silence_ms = 500;
  surroundings.print = [&](std::string_view text) {
    if (!std::exchange(told, true)) started.set_value(Children()[0]);
    last = text;
  };
  const Program program = engine::CompileOrDie(
      "print(\"started\")\nbegin = time()\nwhile (time() - begin < 5000000000) { x = 1 }\nprint(\"ended\")");
  std::future<engine::RunOutcome> running = std::async(
      std::launch::async, [&] { return RunOnLocalProcesses(program, engine::SplitOver(1), surroundings); });
  const pid_t child = started.get_future().get();
  const auto schedule = [&](int policy, const cpu_set_t& where) {
    const sched_param none{};
    std::error_code error;  // It may be gone.
    const std::string threads = fmt::format("/proc/{}/task", child);
    for (const auto& thread : std::filesystem::directory_iterator(threads, error)) {
      const pid_t id = std::stoi(thread.path().filename());
      sched_setaffinity(id, sizeof(where), &where);
      sched_setscheduler(id, policy, &none);
    }
  };
  std::atomic<bool> spins{true};
  std::vector<std::thread> spinning;
  for (int i = 0; i < 4; ++i)
    spinning.emplace_back([&] {
      sched_setaffinity(0, sizeof(first), &first);
      while (spins.load(std::memory_order_relaxed)) {
      }
    });
  schedule(SCHED_IDLE, first);
  const auto status = running.wait_for(std::chrono::seconds(3));
  spins = false;
  for (std::thread& thread : spinning) thread.join();
  EXPECT_EQ(status, std::future_status::timeout) << "it was killed";
  if (status == std::future_status::timeout) schedule(SCHED_OTHER, processors);
  const engine::RunOutcome outcome = running.get();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(last, "ended\n");
}

// Worker 1 stops before worker 0 fails, so that it does not end by itself and is killed some seconds later.
TEST(ExecutorTest, WhoIsKilledBehindAFaultIsNotItsCause) {
  engine::RunSurroundings surroundings;
  surroundings.directory = testing::TempDir();
  surroundings.print = [&](std::string_view) { kill(Children()[1], SIGSTOP); };
  const Program program = engine::CompileOrDie(
      "print(\"started\")\nX = rand(rows=1000, cols=5, seed=1)\ns = 0\n"
      "for (i in 1:3000000) { s = s + i }\nif (s > 1) { stop(\"a fault\") }\nprint(sum(X))");
  const engine::RunOutcome outcome = RunOnLocalProcesses(program, engine::SplitOver(2), surroundings);
  EXPECT_EQ(outcome.status.code(), StatusCode::kAborted) << outcome.status.ToString();
  EXPECT_EQ(outcome.status.message(), "a fault");
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
  events.done = [&](const ExecutorDone& told) { done.set_value(told.status); };
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

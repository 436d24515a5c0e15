// SPDX-License-Identifier: Apache-2.0
// The master compiles what strangers wrote: whatever becomes of that, it answers everybody else.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/memory/counted_heap.h"
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

// A script that takes the compiler many seconds.
std::string LongScript() {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "x" + std::to_string(i) + " = " + std::to_string(i) + " + 1\n";
  return text + "print(1)\n";
}

class Compiling : public ClusterOfProcesses {
 public:
  explicit Compiling(std::vector<std::string> options = {})
      : ClusterOfProcesses(10'000, "", std::move(options)) {
    WriteText(folder() + "/long.dml", LongScript());
  }
  /// Submits the long script, in the background, `times` times; returns when that many are being compiled.
  std::vector<std::unique_ptr<BackgroundProcess>> SubmitLong(size_t times = 1) {
    std::vector<std::unique_ptr<BackgroundProcess>> submits;
    // Scripts that differ: the same one is compiled once.
    for (size_t i = 0; i < times; ++i)
      submits.push_back(
          Start({"job", "submit", "--detach", "long.dml", "-nvargs", "i=" + std::to_string(i)}));
    EXPECT_TRUE(AwaitCompilers(times)) << submits[0]->output();
    return submits;
  }
  std::vector<pid_t> Compilers() { return ChildrenOf(master().pid()); }
  bool AwaitCompilers(size_t number) {
    const auto end = Clock::now() + seconds(20 * kPatience);
    while (Compilers().size() != number && Clock::now() < end) usleep(5'000);  // Between two looks.
    return Compilers().size() == number;
  }
  /// Stops a compiler. Before it has become a program of its own the master stands still until it has.
  static void Stop(pid_t compiler) {
    const std::string command_line = "/proc/" + std::to_string(compiler) + "/cmdline";
    const auto end = Clock::now() + seconds(20 * kPatience);
    while (ReadText(command_line).find("compiler") == std::string::npos && Clock::now() < end)
      usleep(5'000);  // Between two looks.
    kill(compiler, SIGSTOP);
  }
  void ExpectAnswers() {
    const Finished submit = Run({"job", "submit", "--detach", "-e", "print(1)"});
    EXPECT_EQ(submit.code, 0) << submit.errors;
  }
};

TEST(CompilingTest, ACrashOfTheCompilerEndsOneSubmit) {
  Compiling cluster;
  const auto submits = cluster.SubmitLong();
  const std::vector<pid_t> compilers = cluster.Compilers();
  ASSERT_EQ(compilers.size(), 1u);
  kill(compilers[0], SIGSEGV);
  EXPECT_EQ(submits[0]->Wait(), 70);
  EXPECT_NE(
      submits[0]->output().find(
          "the compiler was ended by signal 11 (Segmentation fault) while it compiled the script 'long.dml'"),
      std::string::npos)
      << submits[0]->output();
  cluster.ExpectAnswers();
  EXPECT_EQ(cluster.Run({"job", "list"}).output.find("long.dml"), std::string::npos) << "no job came of it";
  cluster.EndAndExpectNothingLeft();
}

TEST(CompilingTest, AScriptThatTakesTooLongOrTooMuchIsRefused) {
  {
    Compiling cluster({"--compile-seconds", "1"});
    const Finished submit = cluster.Run({"job", "submit", "--detach", "long.dml"});
    EXPECT_EQ(submit.code, 3);
    EXPECT_EQ(
        submit.errors.substr(0, submit.errors.find('\n')),
        "heddle: error: the script 'long.dml' was not compiled within 1 s, which is as long as this master "
        "compiles one");
    cluster.ExpectAnswers();
    cluster.EndAndExpectNothingLeft();
  }
  if (!HeapIsCounted()) return;
  Compiling cluster({"--compile-memory", "48M"});
  const Finished submit = cluster.Run({"job", "submit", "--detach", "long.dml"});
  EXPECT_EQ(submit.code, 5) << submit.errors;
  EXPECT_NE(submit.errors.find("out of memory"), std::string::npos) << submit.errors;
  EXPECT_NE(submit.errors.find("the master compiles each script within 50331648 bytes; 'heddle master "
                               "--compile-memory SIZE' allows more"),
            std::string::npos)
      << submit.errors;
  cluster.ExpectAnswers();
  cluster.EndAndExpectNothingLeft();
}

TEST(CompilingTest, TheKernelKeepsTheCompilerIn) {
  for (const bool is_kept : {true, false}) {
    Compiling cluster(is_kept ? std::vector<std::string>() : std::vector<std::string>{"--no-isolation"});
    const auto submits = cluster.SubmitLong();
    const std::string expected = std::string("NoNewPrivs:\t") + (is_kept ? "1\n" : "0\n");
    std::string status;
    for (int look = 0; look < 400 && status.find(expected) == std::string::npos; ++look) {
      for (const pid_t compiler : cluster.Compilers())
        status = ReadText("/proc/" + std::to_string(compiler) + "/status");
      usleep(5'000);  // Between two looks.
    }
    EXPECT_NE(status.find(expected), std::string::npos) << status;
  }
}

TEST(CompilingTest, CheckAndRunStayInTheirLimitAsWell) {
  TemporaryFolder folder;
  WriteText(folder.path() + "/long.dml", LongScript());
  for (const char* verb : {"check", "run"}) {
    const Finished finished = RunProcess({Binary(), verb, "--memory", "48M", "long.dml"}, folder.path());
    if (!HeapIsCounted()) break;
    EXPECT_EQ(finished.code, 5) << finished.errors;
    EXPECT_NE(finished.errors.find("out of memory"), std::string::npos) << finished.errors;
  }
  const Finished device =
      RunProcess({"/bin/sh", "-c", Binary() + " check --no-warnings - </dev/zero"}, folder.path());
  EXPECT_EQ(device.code, 3);
  EXPECT_NE(device.errors.find("a script has at most 67108864 bytes, this has more"), std::string::npos)
      << device.errors;
}

TEST(CompilingTest, WhoGivesUpIsNotCompiledFor) {
  Compiling cluster;
  for (const int signal : {SIGINT, SIGKILL}) {
    const auto submits = cluster.SubmitLong();
    submits[0]->Signal(signal);
    EXPECT_EQ(submits[0]->Wait(), signal == SIGINT ? 8 : 128 + SIGKILL);
    if (signal == SIGINT) {
      EXPECT_NE(submits[0]->output().find(
                    "the master may have taken the job all the same: 'heddle job list' tells"),
                std::string::npos)
          << submits[0]->output();
    }
    EXPECT_TRUE(cluster.AwaitCompilers(0)) << signal;
  }
  cluster.EndAndExpectNothingLeft();
}

TEST(CompilingTest, AMasterThatDoesNotAnswerIsNamed) {
  Compiling cluster;
  const auto submits = cluster.SubmitLong();
  cluster.master().Signal(SIGSTOP);
  EXPECT_TRUE(submits[0]->WaitFor("heddle: the master at " + cluster.address() + " has not answered for "))
      << submits[0]->output();
  cluster.master().Signal(SIGCONT);
}

TEST(CompilingTest, TheEndOfAMasterWaitsForNoCompiler) {
  Compiling cluster;
  const auto submits = cluster.SubmitLong();
  const auto begin = Clock::now();
  cluster.master().Signal(SIGTERM);
  EXPECT_EQ(cluster.master().Wait(), 0);
  EXPECT_LT(Clock::now() - begin, seconds(5 * kPatience));
  EXPECT_EQ(submits[0]->Wait(), 6) << submits[0]->output();
  cluster.ExpectNoProcess();
}

TEST(CompilingTest, AKilledMasterLeavesNoCompiler) {
  Compiling cluster;
  const auto submits = cluster.SubmitLong();
  const std::vector<pid_t> compilers = cluster.Compilers();
  cluster.master().Signal(SIGKILL);
  cluster.master().Wait();
  EXPECT_EQ(submits[0]->Wait(), 6);
  const auto end = Clock::now() + seconds(5 * kPatience);
  while (kill(compilers[0], 0) == 0 && Clock::now() < end) usleep(5'000);  // Between two looks.
  EXPECT_NE(kill(compilers[0], 0), 0);
}

TEST(CompilingTest, WhoWaitsIsToldAndComesNext) {
  Compiling cluster;
  const size_t at_a_time = std::max(2u, std::thread::hardware_concurrency());
  if (at_a_time > 8) GTEST_SKIP() << "this test would keep all processors busy";
  const auto submits = cluster.SubmitLong(at_a_time);
  // However fast this machine compiles, these take as long as the test.
  for (const pid_t compiler : cluster.Compilers()) cluster.Stop(compiler);
  const auto waiting = cluster.Start({"job", "submit", "--detach", "-e", "print(1)"});
  EXPECT_TRUE(waiting->WaitFor("this one has waited for")) << waiting->output();
  EXPECT_NE(
      waiting->output().find("heddle: the master compiles " + std::to_string(at_a_time) + " other scripts"),
      std::string::npos)
      << waiting->output();
  EXPECT_TRUE(submits[0]->WaitFor("the master has been compiling this script for")) << submits[0]->output();
  submits[0]->Signal(SIGINT);
  EXPECT_EQ(waiting->Wait(), 0) << waiting->output();
  for (const auto& submit : submits) submit->Signal(SIGINT);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

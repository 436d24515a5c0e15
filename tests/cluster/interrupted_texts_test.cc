// SPDX-License-Identifier: Apache-2.0
// The first Ctrl-C ends work on texts, as a search of a regular expression that would last for many seconds.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using namespace testing_support;

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Processor time of all children that have ended.
double SecondsOfEnded() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime);
}

// Processor time so far of a process that runs.
double SecondsOfRunning(pid_t pid) {
  const std::string text = ReadText("/proc/" + std::to_string(pid) + "/stat");
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct Work {
  const char* name;
  const char* statement;
};

class InterruptedTextsTest : public testing::TestWithParam<Work> {};

TEST_P(InterruptedTextsTest, EndsWithinASecondOfProcessorTime) {
  const TemporaryFolder folder;
  WriteText(folder.path() + "/s.dml", std::string("T = map(as.frame(\"a\"), \"x -> x.repeat(120000)\")\n"
                                                  "F = as.frame(seq(1, 3000000))\nprint(\"begun\")\n") +
                                          GetParam().statement + "\nprint(nrow(G))\n");
  const double ended_before = SecondsOfEnded();
  BackgroundProcess run({Binary(), "run", "s.dml"}, folder.path());
  ASSERT_TRUE(run.WaitFor("begun", 60)) << run.output();
  // It is in the middle of the work when it has computed for a while.
  const double begun = SecondsOfRunning(run.pid());
  while (SecondsOfRunning(run.pid()) < begun + 0.5) {
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(run.pid()), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    ASSERT_EQ(ended.si_pid, 0) << "the work is too short: " << run.output();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const double at_signal = SecondsOfRunning(run.pid());
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(60), 8) << run.output();
  EXPECT_LT(SecondsOfEnded() - ended_before - at_signal, 1.0 * kPatience);
}

INSTANTIATE_TEST_SUITE_P(
    Cluster, InterruptedTextsTest,
    testing::Values(
        Work{"replace", "G = map(T, \"x -> x.replaceAll(\\\"(a{1,90}){1,90}b\\\", \\\"c\\\")\")"},
        Work{
            "many_cells",
            "G = map(F, \"x -> x.chars().map(c -> c * 31 % 7).sum() + x.replaceAll(\\\"1+\\\", \\\"2\\\")\")"},
        Work{"tokenize",
             "G = tokenize(target=T, spec=\"{algo: split, algo_params: {regex: "
             "'(a{1,90}){1,90}b'}, out: count, tokenize_col: 1, id_cols: []}\")"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace heddle

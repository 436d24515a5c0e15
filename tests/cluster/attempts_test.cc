// SPDX-License-Identifier: Apache-2.0
// What a job survives: machines and processes that are taken away, as often as it happens; what ends it: its
// time, and memory that there is not.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/cluster/cluster_of_processes.h"
#include "tests/cluster/control_group.h"

namespace heddle {
namespace {

using testing_support::ClusterOfProcesses;
using testing_support::ControlGroup;
using testing_support::Finished;
using testing_support::WriteText;

constexpr int64_t kMiB = int64_t{1} << 20;

// The executor of the attempt once the job runs; 0 when that never is.
pid_t ExecutorOf(ClusterOfProcesses& cluster, const std::string& job, int attempt) {
  for (int tries = 0; tries < 3000; ++tries) {
    const Finished status = cluster.Run({"job", "status", "--json", job});
    const bool runs =
        status.output.find("\"attempt\":" + std::to_string(attempt) + ",") != std::string::npos &&
        status.output.find("\"state\":\"RUNNING\"") != std::string::npos;
    const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster.worker(0).pid());
    if (runs && executors.size() == 1) return executors[0];
  }
  return 0;
}

constexpr const char* kCountsToRounds =
    "n = as.scalar(read(\"rounds.csv\"))\ni = 0\nX = matrix(0, rows=3, cols=3)\n"
    "while (i < n) { X = X + 1; i = i + 1 }\nprint(sum(X))\n";

TEST(AttemptsTest, AJobSurvivesAnyNumberOfLosses) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/count.dml", kCountsToRounds);
  WriteText(cluster.folder() + "/rounds.csv", "1e12\n");
  const auto submit = cluster.Start({"job", "submit", "count.dml"});
  constexpr int kLosses = 4;  // more than crashes may be
  for (int attempt = 1; attempt <= kLosses; ++attempt) {
    const pid_t executor = ExecutorOf(cluster, "j1", attempt);
    ASSERT_NE(executor, 0) << submit->output();
    if (attempt == kLosses) WriteText(cluster.folder() + "/rounds.csv", "10\n");
    kill(executor, SIGKILL);
  }
  EXPECT_EQ(submit->Wait(), 0) << submit->output();
  EXPECT_NE(submit->output().find("90.0\n"), std::string::npos) << submit->output();
  EXPECT_NE(cluster.Run({"job", "status", "--json", "j1"}).output.find("\"attempt\":5,"), std::string::npos);
  cluster.EndAndExpectNothingLeft();
}

TEST(AttemptsTest, TheSubmitterSaysForHowLongLossesAreBorne) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/count.dml", kCountsToRounds);
  WriteText(cluster.folder() + "/rounds.csv", "1e12\n");
  const auto submit = cluster.Start({"job", "submit", "--retry-for", "0", "count.dml"});
  const pid_t executor = ExecutorOf(cluster, "j1", 1);
  ASSERT_NE(executor, 0) << submit->output();
  kill(executor, SIGKILL);
  EXPECT_EQ(submit->Wait(), 6) << submit->output();
  EXPECT_NE(submit->output().find("was killed by signal 9"), std::string::npos) << submit->output();
  EXPECT_NE(submit->output().find("the job is given up after --retry-for 0"), std::string::npos)
      << submit->output();
  const Finished wrong = cluster.Run({"job", "submit", "--retry-for", "soon", "count.dml"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.errors.find("--retry-for takes a time such as 90s, 10m or 24h, not 'soon'"),
            std::string::npos)
      << wrong.errors;
  cluster.EndAndExpectNothingLeft();
}

bool HasSwap() {
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word;)
    if (int64_t kilobytes = 0; word == "SwapTotal:" && memory >> kilobytes) return kilobytes > 0;
  return false;
}

TEST(AttemptsTest, AnExecutorThatTheKernelKillsForMemoryIsTriedOnce) {
  const ControlGroup group(400 * kMiB);
  if (group.path().empty()) GTEST_SKIP() << "this machine lets us make no control group";
  if (HasSwap()) GTEST_SKIP() << "what is beyond the limit goes to the swap space";
  {
    ClusterOfProcesses cluster;
    const auto worker = cluster.Start({"worker", "--name", "alpha", "--threads", "1", "--memory", "8G"});
    ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
    group.Add(worker->pid());
    const Finished job = cluster.Run(
        {"job", "submit", "-e", "X = rand(rows=12000, cols=10000, seed=1)\nprint(sum(X) + sum(t(X)))"});
    EXPECT_EQ(job.code, 5) << job.errors;
    EXPECT_NE(job.errors.find("was killed by the kernel because memory ran out: it held "), std::string::npos)
        << job.errors;
    EXPECT_NE(job.errors.find(" bytes, of 419430400 that its surroundings allow"), std::string::npos)
        << job.errors;
    EXPECT_NE(cluster.Run({"job", "status", "--json", "j1"}).output.find("\"attempt\":1,"),
              std::string::npos);
  }
}

// Without --memory a worker offers what its surroundings leave it, and a job that asks for more is told at
// once.
TEST(AttemptsTest, AWorkerReportsTheMemoryThatItReallyHas) {
  const ControlGroup group(400 * kMiB);
  if (group.path().empty()) GTEST_SKIP() << "this machine lets us make no control group";
  {
    ClusterOfProcesses cluster;
    const auto worker =
        cluster.Start({"worker", "--name", "alpha", "--threads", "1"}, group.path() + "/cgroup.procs");
    ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
    const Finished large = cluster.Run({"job", "submit", "--memory", "1G", "-e", "print(1)"});
    EXPECT_EQ(large.code, 5) << large.errors;
    EXPECT_NE(large.errors.find(
                  "the job asks for 1073741824 bytes of memory on a worker; the largest worker has 306"),
              std::string::npos)
        << large.errors;
    const Finished small = cluster.Run({"job", "submit", "--memory", "100M", "-e", "print(1)"});
    EXPECT_EQ(small.code, 0) << small.errors;
  }
}

}  // namespace
}  // namespace heddle

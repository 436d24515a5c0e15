// SPDX-License-Identifier: Apache-2.0
// Attempts that are cut off from the master, masters and workers that stop for a while: no file is written by
// an attempt that was given up, and no attempt is given up because the master was away.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/cluster/cluster_of_processes.h"
#include "tests/support/fault_proxy.h"

namespace heddle::testing_support {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kLeaseMs = 1'500;
// Computes for a while and writes.
constexpr const char* kFirst =
    "X = rand(rows=2000, cols=2, seed=1)\nt = time()\nwhile (time() - t < 4e9) { s = sum(X) }\n"
    "write(matrix(1, rows=3, cols=1), \"out.csv\", format=\"csv\")\n";
constexpr const char* kOther = "write(matrix(7, rows=2, cols=1), \"out.csv\", format=\"csv\")";

// Asks until the answer is yes.
testing::AssertionResult Becomes(const std::function<bool()>& question, const char* what) {
  for (const auto end = steady_clock::now() + seconds(60 * kPatience); steady_clock::now() < end;) {
    if (question()) return testing::AssertionSuccess();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // Between two looks; other processes work.
  }
  return testing::AssertionFailure() << "not after a minute: " << what;
}

class FencingTest : public testing::Test {
 protected:
  FencingTest() : cluster_(kLeaseMs, "127.0.0.1:0") { WriteText(cluster_.folder() + "/first.dml", kFirst); }

  bool HoldsFileWithoutName(pid_t process) const {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", error)) {
      const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
      // With a name, in the way of a temporary file, where the file system has none without.
      if (target.starts_with(cluster_.folder() + "/") &&
          (target.ends_with("(deleted)") || target.ends_with(".heddle")))
        return true;
    }
    return false;
  }
  bool JobIs(const std::string& job, const std::string& text) {
    return cluster_.Run({"job", "status", "--json", job}).output.find(text) != std::string::npos;
  }
  std::string Written() const { return ReadText(cluster_.folder() + "/out.csv"); }
  static bool IsGone(pid_t process) { return kill(process, 0) != 0; }

  ClusterOfProcesses cluster_;
};

// The network between the worker and the master freezes; the attempt is given up and starts elsewhere; the
// job is cancelled; another job writes the same file; the network thaws.
TEST_F(FencingTest, AnAttemptThatWasCutOffNeverWrites) {
  FaultProxy proxy(cluster_.address());
  BackgroundProcess& alpha = cluster_.StartWorker("alpha", proxy.endpoint());
  ASSERT_EQ(cluster_.Run({"job", "submit", "-e", "print(1)"}).output, "1\n") << "through the proxy";
  EXPECT_EQ(cluster_.Run({"job", "submit", "--detach", "--workers", "1", "first.dml"}).output, "j2\n");
  ASSERT_TRUE(Becomes([&] { return JobIs("j2", "\"state\":\"RUNNING\""); }, "j2 runs"));
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(alpha.pid());
  ASSERT_EQ(executors.size(), 1u);
  proxy.Cut();
  ASSERT_TRUE(
      Becomes([&] { return HoldsFileWithoutName(executors[0]); }, "the first attempt wants to write"));
  EXPECT_EQ(Written(), "");

  cluster_.StartWorker("beta");
  ASSERT_TRUE(Becomes([&] { return JobIs("j2", "\"attempt\":2,"); }, "the second attempt"));
  EXPECT_EQ(Written(), "");
  EXPECT_EQ(cluster_.Run({"job", "cancel", "j2"}).code, 0);
  ASSERT_TRUE(Becomes([&] { return JobIs("j2", "\"state\":\"CANCELLED\""); }, "j2 is cancelled"));
  const Finished other = cluster_.Run({"job", "submit", "--workers", "1", "-e", kOther});
  EXPECT_EQ(other.code, 0) << other.errors;
  EXPECT_EQ(Written(), "7.0\n7.0\n");

  proxy.Mend();
  ASSERT_TRUE(Becomes([&] { return IsGone(executors[0]); }, "the executor of the first attempt ends"));
  EXPECT_EQ(Written(), "7.0\n7.0\n");
  // The worker that was cut off works again.
  EXPECT_TRUE(Becomes(
      [&] {
        return cluster_.Run({"job", "submit", "--workers", "2", "-e", "print(2)"}).output == "2\n";
      },
      "both workers take a job"));
  cluster_.EndAndExpectNothingLeft();
}

// A worker that is stopped takes no question of its executor to the master; when it goes on, it is too late.
TEST_F(FencingTest, AWorkerThatWasStoppedAndGoesOnDoesNotWrite) {
  BackgroundProcess& alpha = cluster_.StartWorker("alpha");
  EXPECT_EQ(cluster_.Run({"job", "submit", "--detach", "--workers", "1", "first.dml"}).output, "j1\n");
  ASSERT_TRUE(Becomes([&] { return JobIs("j1", "\"state\":\"RUNNING\""); }, "j1 runs"));
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(alpha.pid());
  ASSERT_EQ(executors.size(), 1u);
  alpha.Signal(SIGSTOP);
  ASSERT_TRUE(Becomes([&] { return HoldsFileWithoutName(executors[0]); }, "the attempt wants to write"));
  kill(executors[0], SIGSTOP);
  cluster_.StartWorker("beta");
  ASSERT_TRUE(Becomes([&] { return JobIs("j1", "\"state\":\"SUCCEEDED\""); }, "the second attempt succeeds"));
  EXPECT_EQ(Written(), "1.0\n1.0\n1.0\n");
  EXPECT_EQ(cluster_.Run({"job", "submit", "--workers", "1", "-e", kOther}).code, 0);
  kill(executors[0], SIGCONT);
  alpha.Signal(SIGCONT);
  ASSERT_TRUE(Becomes([&] { return IsGone(executors[0]); }, "the executor of the first attempt ends"));
  EXPECT_EQ(Written(), "7.0\n7.0\n");
  cluster_.EndAndExpectNothingLeft();
}

// The job goes on without a master up to its first write and ends when there is one again.
TEST_F(FencingTest, AWriteWaitsForAMasterThatIsAway) {
  BackgroundProcess& alpha = cluster_.StartWorker("alpha");
  EXPECT_EQ(cluster_.Run({"job", "submit", "--detach", "first.dml"}).output, "j1\n");
  ASSERT_TRUE(Becomes([&] { return JobIs("j1", "\"state\":\"RUNNING\""); }, "j1 runs"));
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(alpha.pid());
  ASSERT_EQ(executors.size(), 1u);
  cluster_.master().Signal(SIGKILL);
  EXPECT_EQ(cluster_.master().Wait(), 128 + SIGKILL);
  ASSERT_TRUE(Becomes([&] { return HoldsFileWithoutName(executors[0]); }, "the attempt wants to write"));
  // That nothing is written while leases run out can only be seen by letting them.
  std::this_thread::sleep_for(std::chrono::milliseconds(2 * kLeaseMs * kLeasePatience));
  EXPECT_EQ(Written(), "");
  cluster_.StartMaster();
  EXPECT_EQ(cluster_.Run({"job", "wait", "j1"}).code, 0);
  EXPECT_EQ(Written(), "1.0\n1.0\n1.0\n");
  EXPECT_TRUE(JobIs("j1", "\"attempt\":1,"));
  cluster_.EndAndExpectNothingLeft();
}

// Several leases long, so that by the clock every worker would be lost.
TEST_F(FencingTest, AMasterThatWasStoppedGivesNothingUp) {
  cluster_.StartWorker("alpha");
  cluster_.StartWorker("beta");
  EXPECT_EQ(cluster_.Run({"job", "submit", "--detach", "--min-distributed-bytes", "0", "first.dml"}).output,
            "j1\n");
  ASSERT_TRUE(Becomes([&] { return JobIs("j1", "\"state\":\"RUNNING\""); }, "j1 runs"));
  cluster_.master().Signal(SIGSTOP);
  // The pause itself is what is tested: it has to last longer than leases do.
  std::this_thread::sleep_for(std::chrono::milliseconds(4 * kLeaseMs * kLeasePatience));
  EXPECT_EQ(Written(), "");
  cluster_.master().Signal(SIGCONT);
  const Finished wait = cluster_.Run({"job", "wait", "j1"});
  EXPECT_EQ(wait.code, 0) << wait.errors;
  EXPECT_EQ(Written(), "1.0\n1.0\n1.0\n");
  EXPECT_TRUE(JobIs("j1", "\"attempt\":1,"));
  const Finished nodes = cluster_.Run({"admin", "nodes"});
  EXPECT_EQ(nodes.output.find("LOST"), std::string::npos) << nodes.output;
  cluster_.EndAndExpectNothingLeft();
}

// A job for all workers does not start on the first that comes back.
TEST(AwaitedWorkersTest, ARestartedMasterWaitsForTheWorkersThatItKnew) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  BackgroundProcess& beta = cluster.StartWorker("beta");
  beta.Signal(SIGSTOP);
  cluster.master().Signal(SIGKILL);
  EXPECT_EQ(cluster.master().Wait(), 128 + SIGKILL);
  cluster.StartMaster();
  EXPECT_EQ(cluster.Run({"job", "submit", "--detach", "-e", "print(1)"}).output, "j1\n");
  const auto status = [&] { return cluster.Run({"job", "status", "--json", "j1"}).output; };
  ASSERT_TRUE(Becomes(
      [&] {
        return status().find("waits for worker beta, which was here before the master was away") !=
               std::string::npos;
      },
      "alpha is back and beta is waited for"));
  beta.Signal(SIGCONT);
  EXPECT_EQ(cluster.Run({"job", "wait", "j1"}).code, 0);
  EXPECT_NE(status().find("\"workers\":[\"alpha\",\"beta\"]"), std::string::npos) << status();
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

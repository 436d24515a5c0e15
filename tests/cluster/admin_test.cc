// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

// What a command prints; it must succeed.
std::string OutputOf(ClusterOfProcesses& cluster, const std::vector<std::string>& words) {
  const Finished finished = cluster.Run(words);
  EXPECT_EQ(finished.code, 0) << words[0] << " " << words[1] << ": " << finished.errors;
  return finished.output;
}

// The line of `heddle job status` that names a job's workers.
std::string WorkersOf(ClusterOfProcesses& cluster, const std::string& job) {
  const std::string status = OutputOf(cluster, {"job", "status", job});
  const size_t begin = status.find("workers  ");
  return begin == std::string::npos ? status : status.substr(begin, status.find('\n', begin) - begin);
}

TEST(AdminTest, ADrainedWorkerGetsNoJobUntilItIsUndrained) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  EXPECT_EQ(OutputOf(cluster, {"admin", "drain", "beta"}), "beta gets no new job\n");
  EXPECT_EQ(OutputOf(cluster, {"job", "submit", "-e", "print(1)"}), "1\n");
  EXPECT_EQ(WorkersOf(cluster, "j1"), "workers  alpha");

  // Neither a new master nor a new worker process changes that.
  cluster.master().Signal(SIGKILL);
  EXPECT_EQ(cluster.master().Wait(), 128 + SIGKILL);
  cluster.StartMaster();
  EXPECT_EQ(OutputOf(cluster, {"job", "submit", "-e", "print(1)"}), "1\n");
  EXPECT_EQ(WorkersOf(cluster, "j2"), "workers  alpha");
  cluster.worker(1).Signal(SIGTERM);
  EXPECT_EQ(cluster.worker(1).Wait(), 0) << cluster.worker(1).output();
  cluster.StartWorker("beta");
  const std::string nodes = OutputOf(cluster, {"admin", "nodes"});
  EXPECT_NE(nodes.find("DRAINED"), std::string::npos) << nodes;
  const std::string json = OutputOf(cluster, {"admin", "nodes", "--json"});
  EXPECT_NE(json.find("\"state\":\"ALIVE\",\"drained\":true"), std::string::npos) << json;

  EXPECT_EQ(OutputOf(cluster, {"admin", "undrain", "beta"}), "beta gets jobs again\n");
  EXPECT_EQ(OutputOf(cluster, {"job", "submit", "--workers", "2", "-e", "print(1)"}), "1\n");
  EXPECT_EQ(WorkersOf(cluster, "j3"), "workers  alpha, beta");
  const Finished unknown = cluster.Run({"admin", "drain", "gamma"});
  EXPECT_EQ(unknown.code, 4);
  EXPECT_EQ(unknown.errors,
            "heddle: error: there is no worker 'gamma'\n'heddle admin nodes' lists the workers\n");
  cluster.EndAndExpectNothingLeft();
}

TEST(AdminTest, ExplainAndCpuOfASubmittedJob) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string code = "X = rand(rows=9000, cols=20, seed=1)\nprint(sum(X))";
  const Finished run = cluster.Run({"run", "-explain", "--precision", "single", "-e", code});
  const Finished job = cluster.Run(
      {"job", "submit", "-explain", "--cpu", "avx2", "--threads", "1", "--precision", "single", "-e", code});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, run.output);
  ASSERT_NE(run.errors.find("program \"-e\""), std::string::npos) << run.errors;
  const std::string program = run.errors.substr(0, run.errors.find("plan "));
  EXPECT_EQ(job.errors.substr(0, program.size()), program);
  EXPECT_NE(job.errors.find("plan "), std::string::npos) << job.errors;
  EXPECT_NE(job.errors.find(" dense f32"), std::string::npos) << job.errors;
  const Finished plain = cluster.Run({"job", "submit", "-e", code});
  EXPECT_EQ(plain.errors, "");
  const Finished unknown = cluster.Run({"job", "submit", "--cpu", "sse", "-e", code});
  EXPECT_EQ(unknown.code, 2);
  cluster.EndAndExpectNothingLeft();
}

// As when one script starts everything.
TEST(AdminTest, AWorkerWaitsForAMasterThatIsBeingStarted) {
  ClusterOfProcesses cluster;
  cluster.master().Signal(SIGTERM);
  EXPECT_EQ(cluster.master().Wait(), 0);
  const auto worker = cluster.Start({"worker", "--name", "alpha", "--threads", "1"});
  EXPECT_TRUE(worker->WaitFor("no master yet")) << worker->output();
  cluster.StartMaster();
  EXPECT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(1)"}).output, "1\n");
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// The first process ignores SIGHUP, as nohup makes it, and whoever it starts inherits that.
TEST(AdminTest, AMasterStartedWithNohupOutlivesTheTerminal) {
  signal(SIGHUP, SIG_IGN);
  ClusterOfProcesses cluster;
  signal(SIGHUP, SIG_DFL);
  cluster.master().Signal(SIGHUP);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cluster.Run({"job", "list"}).code, 0);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

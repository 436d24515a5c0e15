// SPDX-License-Identifier: Apache-2.0
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

constexpr const char* kScript =
    "X = rand(rows=1000, cols=10, seed=1)\nprint(\"sum \" + sum(X * 2))\nwrite(X %*% t(X[1:3,]), $out, format=\"csv\")\n";

// Runs for about a second on two workers and prints on its way.
constexpr const char* kLongScript =
    "X = rand(rows=2000, cols=10, seed=1)\ns = 0\nfor (i in 1:3000) {\n  s = s + sum(X * i)\n"
    "  if (i %% 100 == 0) { print(\"round \" + i + \" \" + s) }\n}\nwrite(X * s, \"out.csv\", format=\"csv\")\nprint(\"end\")\n";

TEST(JobsTest, SubmitGivesTheBytesOfRun) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  WriteText(cluster.folder() + "/part.dml",
            "f = function(matrix[double] X) return (double s) { s = sum(X) }\n");
  WriteText(cluster.folder() + "/a.dml",
            std::string("source(\"part.dml\") as part\n") + kScript + "print(part::f(X))\n");
  const Finished run = cluster.Run({"run", "a.dml", "-nvargs", "out=run.csv"});
  ASSERT_EQ(run.code, 0) << run.errors;
  const Finished job = cluster.Run({"job", "submit", "--workers", "2", "--min-distributed-bytes", "0",
                                    "-stats", "--json", "a.dml", "-nvargs", "out=job.csv"});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, run.output);
  EXPECT_EQ(ReadText(cluster.folder() + "/job.csv"), ReadText(cluster.folder() + "/run.csv"));
  EXPECT_NE(job.errors.find("\"rank\":1"), std::string::npos) << job.errors;
  EXPECT_EQ(job.errors.find("\"rows_held\":0"), std::string::npos) << job.errors;

  // Failures keep their text and code.
  for (const char* code : {"print(x)", "stop(\"enough\")", "X = read(\"missing.csv\")\nprint(sum(X))"}) {
    const Finished here = cluster.Run({"run", "-e", code});
    const Finished there = cluster.Run({"job", "submit", "--workers", "1", "-e", code});
    EXPECT_NE(there.code, 0);
    EXPECT_EQ(there.code, here.code);
    EXPECT_EQ(there.errors.substr(0, here.errors.size()), here.errors);
  }

  // The same request twice is one job.
  const Finished once = cluster.Run({"job", "submit", "--detach", "--request-id", "mine", "-e", "print(1)"});
  const Finished twice = cluster.Run({"job", "submit", "--detach", "--request-id", "mine", "-e", "print(1)"});
  EXPECT_EQ(once.output, twice.output);
  EXPECT_EQ(once.code, 0) << once.errors;
  const std::string id = once.output.substr(0, once.output.size() - 1);
  EXPECT_EQ(cluster.Run({"job", "wait", id}).code, 0);
  EXPECT_EQ(cluster.Run({"job", "logs", id}).output, "1\n");

  const Finished nodes = cluster.Run({"admin", "nodes"});
  EXPECT_NE(nodes.output.find("alpha"), std::string::npos) << nodes.output;
  EXPECT_NE(nodes.output.find("ALIVE"), std::string::npos) << nodes.output;
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, OptionsOfStreamingReachTheExecutors) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string script = "X = rand(rows=4000, cols=10, seed=1)\n[U, S, V] = svd(X)\nprint(sum(S))\n";
  WriteText(cluster.folder() + "/whole.dml", script);
  const std::vector<std::string> options = {"--panel-bytes", "20k", "--require-streaming", "whole.dml"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), options.begin(), options.end());
    return words;
  };
  const Finished here = cluster.Run(with({"run"}));
  EXPECT_EQ(here.code, 5) << here.errors;
  EXPECT_NE(here.errors.find("--require-streaming: 'svd' needs a value of 320000 bytes whole"),
            std::string::npos)
      << here.errors;
  const Finished there = cluster.Run(with({"job", "submit", "--workers", "1"}));
  EXPECT_EQ(there.code, here.code);
  EXPECT_EQ(there.errors.substr(0, here.errors.size()), here.errors);
  EXPECT_EQ(cluster.Run({"job", "submit", "--workers", "1", "whole.dml"}).code, 0);
  cluster.EndAndExpectNothingLeft();
}

class LongJob {
 public:
  explicit LongJob(ClusterOfProcesses& cluster) : cluster_(cluster) {
    WriteText(cluster.folder() + "/long.dml", kLongScript);
    const Finished run = cluster.Run({"run", "--threads", "1", "long.dml"});
    EXPECT_EQ(run.code, 0) << run.errors;
    expected_ = run.output;
    expected_file_ = ReadText(cluster.folder() + "/out.csv");
    std::filesystem::remove(cluster.folder() + "/out.csv");
    std::filesystem::remove(cluster.folder() + "/out.csv.mtd");
    submit_ = cluster.Start({"job", "submit", "--workers", "2", "--min-distributed-bytes", "0", "long.dml"});
    EXPECT_TRUE(submit_->WaitFor("round 100 ")) << submit_->output();
    EXPECT_EQ(submit_->output().find("end"), std::string::npos) << "the script is too short for this test";
  }

  void ExpectSuccess(const std::string& attempt) {
    EXPECT_EQ(submit_->Wait(), 0) << submit_->output();
    ExpectResults(attempt);
  }
  void ExpectResults(const std::string& attempt) {
    EXPECT_EQ(cluster_.Run({"job", "logs", "j1"}).output, expected_);
    EXPECT_EQ(ReadText(cluster_.folder() + "/out.csv"), expected_file_);
    const Finished status = cluster_.Run({"job", "status", "--json", "j1"});
    EXPECT_NE(status.output.find("\"state\":\"SUCCEEDED\""), std::string::npos) << status.output;
    EXPECT_NE(status.output.find("\"attempt\":" + attempt + ","), std::string::npos) << status.output;
  }
  BackgroundProcess& submit() { return *submit_; }

 private:
  ClusterOfProcesses& cluster_;
  std::unique_ptr<BackgroundProcess> submit_;
  std::string expected_;
  std::string expected_file_;
};

TEST(JobsTest, KilledExecutorMeansAnotherAttempt) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster.worker(1).pid());
  ASSERT_EQ(executors.size(), 1u);
  kill(executors[0], SIGKILL);
  job.ExpectSuccess("2");
  const Finished status = cluster.Run({"job", "status", "j1"});
  EXPECT_NE(status.output.find("beta, pid " + std::to_string(executors[0]) + ") was killed by signal 9"),
            std::string::npos)
      << status.output;
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, StoppedExecutorMeansAnotherAttempt) {
  ClusterOfProcesses cluster(/*lease_ms=*/3'000);
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster.worker(1).pid());
  ASSERT_EQ(executors.size(), 1u);
  kill(executors[0], SIGSTOP);
  job.ExpectSuccess("2");
  const Finished status = cluster.Run({"job", "status", "j1"});
  EXPECT_NE(status.output.find("beta, pid " + std::to_string(executors[0]) + ") gave no sign of life for " +
                               std::to_string(3 * testing_support::kLeasePatience) +
                               " s and was killed: signal 19 had stopped it"),
            std::string::npos)
      << status.output;
  cluster.EndAndExpectNothingLeft();
}

// What the last executor said is where its job's error points.
TEST(JobsTest, ADeadExecutorLeavesALog) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/endless.dml",
            "print(\"begun\")\nX = rand(rows=10, cols=10, seed=1)\nwhile (sum(X) > 0) { X = X + 1 }\n");
  const auto submit = cluster.Start({"job", "submit", "endless.dml"});
  for (int attempt = 1; attempt <= 3; ++attempt) {
    pid_t executor = 0;
    for (int tries = 0; tries < 2000 && executor == 0; ++tries) {
      const Finished status = cluster.Run({"job", "status", "--json", "j1"});
      const bool runs =
          status.output.find("\"attempt\":" + std::to_string(attempt) + ",") != std::string::npos &&
          status.output.find("\"state\":\"RUNNING\"") != std::string::npos;
      const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster.worker(0).pid());
      if (runs && executors.size() == 1) executor = executors[0];
    }
    ASSERT_NE(executor, 0);
    kill(executor, SIGSEGV);
  }
  EXPECT_EQ(submit->Wait(), 70) << submit->output();
  const size_t at = submit->output().find("its log is ");
  ASSERT_NE(at, std::string::npos) << submit->output();
  const std::string rest = submit->output().substr(at + std::string("its log is ").size());
  const std::string path = rest.substr(0, rest.find(' '));
  EXPECT_NE(rest.find(" on that worker's machine"), std::string::npos) << rest;
  EXPECT_NE(path.find("/workers/alpha/logs/j1-3-0.log"), std::string::npos) << path;
  EXPECT_NE(ReadText(path).find("was killed by signal 11"), std::string::npos) << path;
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, MetadataOfScalarsTravelWithTheJob) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  WriteText(cluster.folder() + "/x", "5\n");
  WriteText(cluster.folder() + "/x.mtd", "{\"data_type\": \"scalar\", \"value_type\": \"int\"}");
  const Finished job =
      cluster.Run({"job", "submit", "-e", "x = read($x)\nif (x > 2) print(x %/% 2)", "-nvargs", "x=x"});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, "2\n");
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, PlansTravelWithTheJob) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  std::string cells;
  for (int row = 0; row < 500; ++row) cells += std::to_string(row) + ",1,2\n";
  WriteText(cluster.folder() + "/X.csv", cells);
  WriteText(
      cluster.folder() + "/p.dml",
      "X = read(\"X.csv\", format=\"csv\")\nif (nrow(X) > 10) { Y = t(X) %*% X } else { Y = X }\nprint(sum(Y))\n");
  const std::vector<std::string> words = {"job",    "submit", "--min-distributed-bytes", "0", "-stats",
                                          "--json", "p.dml"};
  const Finished job = cluster.Run(words);
  ASSERT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, cluster.Run({"run", "p.dml"}).output);
  // Both ranks took every plan from the job's header but that of the look at the file, in shares, which is
  // made when the file is there.
  const size_t first = job.errors.find("\"plans_compiled\":1,");
  ASSERT_NE(first, std::string::npos) << job.errors;
  EXPECT_NE(job.errors.find("\"plans_compiled\":1,", first + 1), std::string::npos) << job.errors;
  EXPECT_EQ(job.errors.find("\"plans_ahead\":0"), std::string::npos) << job.errors;
  cluster.EndAndExpectNothingLeft();
}

// The sizes of the files that are there when the job is submitted are not those that it reads.
TEST(JobsTest, ReadsSeeTheWritesBeforeThem) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  const std::string script =
      "A = matrix(3, rows=400, cols=4)\nwrite(A, \"X.csv\", format=\"csv\")\nX = read(\"X.csv\")\n"
      "print(nrow(X) + \" \" + sum(X))\nfor (i in 1:3) {\n  write(matrix(i, rows=100 * i, cols=i), \"X.csv\", "
      "format=\"csv\")\n  Y = read(\"X.csv\")\n  print(nrow(Y) + \" \" + ncol(Y) + \" \" + sum(Y))\n}\n";
  WriteText(cluster.folder() + "/X.csv", "1,2\n3,4\n");
  WriteText(cluster.folder() + "/r.dml", script);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Finished job = cluster.Run({"job", "submit", "--min-distributed-bytes", "0", "r.dml"});
    ASSERT_EQ(job.code, 0) << job.errors;
    EXPECT_EQ(job.output, "400 4800.0\n100 1 100.0\n200 2 800.0\n300 3 2700.0\n");
  }
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, KilledWorkerMeansAnotherAttemptElsewhere) {
  ClusterOfProcesses cluster(/*lease_ms=*/800);
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  cluster.StartWorker("gamma");
  LongJob job(cluster);
  cluster.worker(1).Signal(SIGKILL);
  EXPECT_EQ(cluster.worker(1).Wait(), 128 + SIGKILL);
  job.ExpectSuccess("2");
  const Finished nodes = cluster.Run({"admin", "nodes"});
  EXPECT_NE(nodes.output.find("LOST"), std::string::npos) << nodes.output;
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, JobsOutliveTheMaster) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  const Finished queued = cluster.Run({"job", "submit", "--detach", "-e", "print(\"second\")"});
  EXPECT_EQ(queued.output, "j2\n");
  cluster.master().Signal(SIGKILL);
  EXPECT_EQ(cluster.master().Wait(), 128 + SIGKILL);
  cluster.StartMaster();
  job.ExpectSuccess("1");  // the executors went on
  EXPECT_EQ(cluster.Run({"job", "wait", "j2"}).code, 0);
  EXPECT_EQ(cluster.Run({"job", "logs", "j2"}).output, "second\n");
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, JobsOutliveTheWholeCluster) {
  ClusterOfProcesses cluster(/*lease_ms=*/500);
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  cluster.master().Signal(SIGKILL);
  EXPECT_EQ(cluster.master().Wait(), 128 + SIGKILL);
  for (size_t i = 0; i < 2; ++i) {
    cluster.worker(i).Signal(SIGKILL);
    EXPECT_EQ(cluster.worker(i).Wait(), 128 + SIGKILL);
  }
  cluster.StartMaster();
  EXPECT_NE(cluster.Run({"job", "list"}).output.find("RECOVERING"), std::string::npos);
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  job.ExpectSuccess("2");
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, CancelStopsTheExecutors) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  EXPECT_EQ(cluster.Run({"job", "cancel", "j1"}).code, 0);
  EXPECT_EQ(job.submit().Wait(), 8) << job.submit().output();
  const Finished status = cluster.Run({"job", "status", "--json", "j1"});
  EXPECT_NE(status.output.find("\"state\":\"CANCELLED\""), std::string::npos) << status.output;
  EXPECT_TRUE(ClusterOfProcesses::ChildrenOf(cluster.worker(0).pid()).empty());
  EXPECT_TRUE(ClusterOfProcesses::ChildrenOf(cluster.worker(1).pid()).empty());
  EXPECT_FALSE(std::filesystem::exists(cluster.folder() + "/out.csv"));
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, InterruptDetaches) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  LongJob job(cluster);
  job.submit().Signal(SIGINT);
  EXPECT_EQ(job.submit().Wait(), 8) << job.submit().output();
  EXPECT_NE(job.submit().output().find("heddle job logs -f j1"), std::string::npos) << job.submit().output();
  EXPECT_EQ(cluster.Run({"job", "logs", "-f", "j1"}).code, 0);
  job.ExpectResults("1");
  cluster.EndAndExpectNothingLeft();
}

TEST(JobsTest, StrangersAreRefused) {
  ClusterOfProcesses cluster;
  WriteText(cluster.folder() + "/token", "0123456789abcdef0123456789abcdef\n");
  const Finished list = cluster.Run({"job", "list", "--token-file", "token"});
  EXPECT_EQ(list.code, 6);
  EXPECT_NE(list.errors.find(
                "does not accept the token: it is none of its tokens\n"
                "give one that an administrator has made ('heddle admin token create'): --token-file FILE\n"),
            std::string::npos)
      << list.errors;
  const Finished logs = cluster.Run({"job", "logs", "j1", "--token-file", "token"});
  EXPECT_EQ(logs.code, 6);
  EXPECT_NE(logs.errors.find("does not accept the token"), std::string::npos) << logs.errors;
  const Finished worker = cluster.Run({"worker", "--token-file", "token"});
  EXPECT_EQ(worker.code, 6);
  EXPECT_NE(worker.errors.find("does not accept the token"), std::string::npos) << worker.errors;
  const Finished second = cluster.Run({"master", "--dev"});
  EXPECT_EQ(second.code, 6);
  EXPECT_NE(second.errors.find("another master"), std::string::npos) << second.errors;
  const Finished open = cluster.Run({"master", "--listen", "0.0.0.0:0", "--state", "other"});
  EXPECT_EQ(open.code, 2);
  EXPECT_NE(open.errors.find("TLS"), std::string::npos) << open.errors;
  const Finished unknown = cluster.Run({"job", "status", "j77"});
  EXPECT_EQ(unknown.code, 4);
  cluster.EndAndExpectNothingLeft();
  const Finished unreachable = cluster.Run({"job", "list"});
  EXPECT_EQ(unreachable.code, 6);
  EXPECT_NE(unreachable.errors.find("heddle master --dev"), std::string::npos) << unreachable.errors;
  const Finished nobody = cluster.Run({"job", "submit", "--master", "127.0.0.1:1", "-e", "print(1)"});
  EXPECT_EQ(nobody.code, 6);
  EXPECT_NE(nobody.errors.find("no master at 127.0.0.1:1"), std::string::npos) << nobody.errors;
}

}  // namespace
}  // namespace heddle::testing_support

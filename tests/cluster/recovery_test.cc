// SPDX-License-Identifier: Apache-2.0
// Jobs that lose executors, workers and the master go on from their checkpoints, with the bytes of a quiet
// run.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <regex>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using testing_support::ClusterOfProcesses;
using testing_support::Finished;
using testing_support::ReadText;
using testing_support::WriteText;

// Loops in loops, a source, rows that are split, lists, unseeded numbers, prints and a file.
constexpr const char* kScript =
    "X = rand(rows=4000, cols=20, seed=7)\nw = matrix(0, rows=20, cols=1)\nL = list()\n"
    "for (i in 1:$n) {\n"
    "  g = t(X) %*% (X %*% w - rowSums(X))\n  w = w - 0.00001 * g\n  X[i, 1] = i + sum(rand(rows=5, cols=1))\n"
    "  j = 0\n  while (j < 25) { j = j + 1; w = w + 1e-9 * j }\n"
    "  L = append(L, sum(w))\n  print(i + \" \" + sum(w) + \" \" + sum(X))\n}\n"
    "print(length(L))\nwrite(w, \"w.csv\", format=\"csv\")\n";

int64_t Number(const std::string& json, const std::string& name) {
  std::smatch match;
  const std::regex field("\"" + name + "\":\"?([0-9]+)");
  return std::regex_search(json, match, field) ? std::stoll(match[1]) : -1;
}

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest() : cluster_(3'000, "", {"--checkpoints", place_.path()}) {}
  void Prepare(int rounds) {
    rounds_ = "n=" + std::to_string(rounds);
    WriteText(cluster_.folder() + "/script.dml", kScript);
    const Finished quiet = cluster_.Run({"run", "--seed", "5", "script.dml", "-nvargs", rounds_});
    EXPECT_EQ(quiet.code, 0) << quiet.errors;
    expected_ = quiet.output;
    expected_file_ = ReadText(cluster_.folder() + "/w.csv");
    std::filesystem::remove(cluster_.folder() + "/w.csv");
  }

  std::string Submit(const std::string& workers) {
    const Finished job =
        cluster_.Run({"job", "submit", "--detach", "--seed", "5", "--workers", workers, "--checkpoint",
                      "100ms", "--min-distributed-bytes", "0", "script.dml", "-nvargs", rounds_});
    EXPECT_EQ(job.code, 0) << job.errors;
    return job.output.substr(0, job.output.find('\n'));
  }
  std::string Status(const std::string& job) { return cluster_.Run({"job", "status", "--json", job}).output; }
  // Until a checkpoint of the job is complete, or it has ended.
  bool WaitForCheckpoint(const std::string& job, int64_t since_ms = 0) {
    for (int tries = 0; tries < 2000 && !job.empty(); ++tries) {
      const std::string status = Status(job);
      if (Number(status, "checkpoint_ms") > since_ms) return true;
      if (status.find("\"finished_ms\":\"0\"") == std::string::npos && Number(status, "finished_ms") > 0)
        return false;
    }
    return false;
  }
  void ExpectOutcome(const std::string& job) {
    const Finished outcome = cluster_.Run({"job", "wait", job});
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(cluster_.Run({"job", "logs", job}).output, expected_);
    EXPECT_EQ(ReadText(cluster_.folder() + "/w.csv"), expected_file_);
  }

  // They go behind the end of the job.
  void ExpectNoCheckpoint() {
    for (int look = 0; look < 600 && !std::filesystem::is_empty(place_.path()); ++look) usleep(100'000);
    EXPECT_TRUE(std::filesystem::is_empty(place_.path()));
  }

  const testing_support::TemporaryFolder place_;
  ClusterOfProcesses cluster_;
  std::string rounds_, expected_, expected_file_;
};

TEST_F(RecoveryTest, AKilledExecutorCostsWhatCameBehindTheLastCheckpoint) {
  Prepare(300);
  cluster_.StartWorker("alpha");
  cluster_.StartWorker("beta");
  const std::string job = Submit("2");
  std::mt19937 random(1);
  for (int kills = 0; kills < 4 && WaitForCheckpoint(job, Number(Status(job), "checkpoint_ms")); ++kills)
    for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster_.worker(random() % 2).pid()))
      kill(executor, SIGKILL);
  ExpectOutcome(job);
  EXPECT_GT(Number(Status(job), "resumed"), 0);
  ExpectNoCheckpoint();
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(RecoveryTest, AJobGoesOnWithFewerWorkersAndWithMoreAgain) {
  Prepare(300);
  cluster_.StartWorker("alpha");
  cluster_.StartWorker("beta");
  cluster_.StartWorker("gamma");
  const std::string job = Submit("3");
  ASSERT_TRUE(WaitForCheckpoint(job));
  cluster_.worker(1).Signal(SIGKILL);
  ASSERT_TRUE(WaitForCheckpoint(job, Number(Status(job), "checkpoint_ms")));
  cluster_.StartWorker("delta");
  ExpectOutcome(job);
  const std::string status = Status(job);
  EXPECT_GE(Number(status, "resumed"), 2) << status;
  EXPECT_NE(status.find("\"workers\":[\"alpha\",\"delta\",\"gamma\"]"), std::string::npos) << status;
  cluster_.EndAndExpectNothingLeft();
}

// Nobody runs it, and the master that ends it is another one than the one that removes what it has left.
TEST_F(RecoveryTest, CheckpointsOfAJobThatIsCancelledWithoutWorkersGoWhenOneComes) {
  Prepare(3000);
  cluster_.StartWorker("alpha");
  const std::string job = Submit("1");
  ASSERT_TRUE(WaitForCheckpoint(job));
  cluster_.worker(0).Signal(SIGKILL);
  cluster_.worker(0).Wait();
  std::string status;
  for (int look = 0; look < 600 && status.find("RECOVERING") == std::string::npos; ++look)
    status = Status(job);
  EXPECT_EQ(cluster_.Run({"job", "cancel", job}).code, 0);
  EXPECT_FALSE(std::filesystem::is_empty(place_.path()));
  cluster_.master().Signal(SIGKILL);
  cluster_.master().Wait();
  cluster_.StartMaster();
  cluster_.StartWorker("beta");
  ExpectNoCheckpoint();
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(RecoveryTest, ALostMasterCostsNothing) {
  Prepare(1500);
  cluster_.StartWorker("alpha");
  cluster_.StartWorker("beta");
  const std::string job = Submit("2");
  ASSERT_TRUE(WaitForCheckpoint(job));
  cluster_.master().Signal(SIGKILL);
  cluster_.master().Wait();
  cluster_.StartMaster();
  for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid()))
    kill(executor, SIGKILL);
  ExpectOutcome(job);
  EXPECT_GT(Number(Status(job), "resumed"), 0);
  cluster_.EndAndExpectNothingLeft();
}

// What stands in the place of its object cannot be read, as when a server is away.
TEST_F(RecoveryTest, ACheckpointThatCannotBeReadForAMomentIsKept) {
  Prepare(3000);
  cluster_.StartWorker("alpha");
  const std::string job = Submit("1");
  ASSERT_TRUE(WaitForCheckpoint(job));
  const auto executors = [&] { return ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid()); };
  for (const pid_t executor : executors()) kill(executor, SIGSTOP);
  const std::string away = cluster_.folder() + "/away";
  std::filesystem::rename(place_.path(), away);
  WriteText(place_.path(), "no folder");
  for (const pid_t executor : executors()) kill(executor, SIGKILL);
  std::string status;
  for (int look = 0; look < 600 && status.find("Not a directory") == std::string::npos; ++look)
    status = cluster_.Run({"job", "status", "--json", job}).output;
  EXPECT_NE(status.find("Not a directory"), std::string::npos) << status;
  std::filesystem::remove(place_.path());
  std::filesystem::rename(away, place_.path());
  ExpectOutcome(job);
  EXPECT_GT(Number(Status(job), "resumed"), 0);
  EXPECT_EQ(Status(job).find("it is damaged"), std::string::npos);
  cluster_.EndAndExpectNothingLeft();
}

// What a lost attempt has written is put back: the next one would read it, and add to it.
TEST_F(RecoveryTest, AFileThatIsReadAndReplacedIsReplacedOnce) {
  WriteText(cluster_.folder() + "/replace.dml",
            "w = 0\nfor (i in 1:$n) {\n  X = read(\"x.csv\", format=\"csv\")\n  w = w + sum(X)\n"
            "  write(X * 1.001 + i / 100, \"x.csv\", format=\"csv\")\n"
            "  t = time()\n  while (time() - t < 1e7) { t = t }\n"
            "  if (i %% 50 == 7) write(i, \"last\")\n"
            "  if (i %% 50 == 8) w = w + read(\"last\", data_type=\"scalar\", value_type=\"double\")\n"
            "  print(i + \" \" + w)\n}\n");
  const auto begin = [&] {
    WriteText(cluster_.folder() + "/x.csv", "1,2\n3,4\n");
    for (const char* name : {"/x.csv.mtd", "/last", "/last.mtd"})
      std::filesystem::remove(cluster_.folder() + name);
  };
  begin();
  const Finished quiet = cluster_.Run({"run", "replace.dml", "-nvargs", "n=100"});
  EXPECT_EQ(quiet.code, 0) << quiet.errors;
  const std::string file = ReadText(cluster_.folder() + "/x.csv");
  cluster_.StartWorker("alpha");
  cluster_.StartWorker("beta");
  for (const char* interval : {"100ms", "1h", "off"}) {  // From checkpoints, and from the beginning.
    SCOPED_TRACE(interval);
    begin();
    const Finished submitted =
        cluster_.Run({"job", "submit", "--detach", "--workers", "2", "--checkpoint", interval,
                      "--min-distributed-bytes", "0", "replace.dml", "-nvargs", "n=100"});
    ASSERT_EQ(submitted.code, 0) << submitted.errors;
    const std::string job = submitted.output.substr(0, submitted.output.find('\n'));
    std::mt19937 random(3);
    for (int kills = 0; kills < 2; ++kills) {
      const int64_t printed = Number(Status(job), "output_bytes");
      while (Number(Status(job), "output_bytes") < printed + 150 && Number(Status(job), "finished_ms") <= 0) {
      }
      for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster_.worker(random() % 2).pid()))
        kill(executor, SIGKILL);
    }
    const Finished outcome = cluster_.Run({"job", "wait", job});
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(cluster_.Run({"job", "logs", job}).output, quiet.output);
    EXPECT_EQ(ReadText(cluster_.folder() + "/x.csv"), file);
    EXPECT_GT(Number(Status(job), "attempt"), 1);
  }
  ExpectNoCheckpoint();
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(RecoveryTest, ADamagedCheckpointIsNotUsed) {
  Prepare(3000);
  cluster_.StartWorker("alpha");
  const std::string job = Submit("1");
  ASSERT_TRUE(WaitForCheckpoint(job));
  for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid()))
    kill(executor, SIGSTOP);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place_.path()))
    if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid()))
    kill(executor, SIGKILL);
  ExpectOutcome(job);
  // An attempt found that it is damaged, and the next one did without it.
  const std::string status = Status(job);
  EXPECT_NE(status.find("is no checkpoint, or is cut off"), std::string::npos) << status;
  cluster_.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle

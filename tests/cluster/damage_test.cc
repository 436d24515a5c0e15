// SPDX-License-Identifier: Apache-2.0
// Disks that are full, stores and checkpoints that are damaged, inputs that change under a job: each ends in
// the right bytes or in an error that names what is wrong.
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <regex>

#include "tests/cluster/cluster_of_processes.h"
#include "tests/cluster/small_disk.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMebibyte = 1 << 20;

constexpr const char* kLoop =
    "X = rand(rows=20000, cols=20, seed=7)\n"
    "for (i in 1:600) { X = X + i / 1000\n  print(i + \" \" + sum(X)) }\n"
    "write(colSums(X), \"sums.csv\", format=\"csv\")\n";

int64_t Number(const std::string& json, const std::string& name) {
  std::smatch match;
  const std::regex field("\"" + name + "\":\"?([0-9]+)");
  return std::regex_search(json, match, field) ? std::stoll(match[1]) : -1;
}

std::string Submit(ClusterOfProcesses& cluster, std::vector<std::string> words) {
  words.insert(words.begin(), {"job", "submit", "--detach", "--min-distributed-bytes", "0"});
  const Finished job = cluster.Run(words);
  EXPECT_EQ(job.code, 0) << job.errors;
  return job.output.substr(0, job.output.find('\n'));
}

// Until a checkpoint of the job is complete. False when it has ended before.
bool WaitForCheckpoint(ClusterOfProcesses& cluster, const std::string& job) {
  for (int tries = 0; tries < 2000; ++tries) {
    const std::string status = cluster.Run({"job", "status", "--json", job}).output;
    if (Number(status, "checkpoint_ms") > 0) return true;
    if (Number(status, "finished_ms") > 0) return false;
  }
  return false;
}

void KillExecutors(ClusterOfProcesses& cluster, size_t worker, int number) {
  for (const pid_t executor : ClusterOfProcesses::ChildrenOf(cluster.worker(worker).pid()))
    kill(executor, number);
}

TEST(FullDiskTest, OfCheckpointsCostsTheCheckpointsAlone) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder.path() + "/disk", kMebibyte);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  ClusterOfProcesses cluster(10'000, "", {"--checkpoints", disk.folder() + "/place"});
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  const Finished quiet = cluster.Run({"run", "-e", kLoop});
  const std::string expected_file = ReadText(cluster.folder() + "/sums.csv");
  const std::string job = Submit(cluster, {"--workers", "2", "--checkpoint", "100ms", "-e", kLoop});
  EXPECT_EQ(cluster.Run({"job", "wait", job}).code, 0);
  EXPECT_EQ(cluster.Run({"job", "logs", job}).output, quiet.output);
  EXPECT_EQ(ReadText(cluster.folder() + "/sums.csv"), expected_file);
  EXPECT_EQ(Number(cluster.Run({"job", "status", "--json", job}).output, "attempt"), 1);
  const std::string log = cluster.Run({"job", "logs", "--rank", "0", job}).output;
  EXPECT_NE(log.find("warning no checkpoint number="), std::string::npos) << log;
  EXPECT_NE(log.find("No space left on device"), std::string::npos) << log;
  EXPECT_LE(disk.used(), 64 << 10) << "parts of checkpoints are left";
  cluster.EndAndExpectNothingLeft();
}

TEST(FullDiskTest, OfAnOutputEndsTheJobAndLeavesWhatWasThere) {
  ClusterOfProcesses cluster;
  const SmallDisk disk(cluster.folder() + "/disk", 2 * kMebibyte);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  WriteText(disk.folder() + "/out.csv", "before\n");
  const int64_t used = disk.used();
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  for (const std::string options : {"format=\"csv\"", "format=\"binary\"", "format=\"csv\", parts=2"}) {
    const Finished full =
        cluster.Run({"job", "submit", "--workers", "2", "--min-distributed-bytes", "0", "-e",
                     "write(rand(rows=200000, cols=5, seed=1), \"disk/out.csv\", " + options + ")"});
    EXPECT_EQ(full.code, 5) << full.errors;
    EXPECT_NE(full.errors.find("cannot write 'disk/out.csv': No space left on device"), std::string::npos)
        << full.errors;
    EXPECT_EQ(ReadText(disk.folder() + "/out.csv"), "before\n");
    EXPECT_EQ(disk.used(), used) << options;
  }
  const Finished small = cluster.Run({"job", "submit", "-e", "write(1, \"disk/out.csv\")"});
  EXPECT_EQ(small.code, 0) << small.errors;
  cluster.EndAndExpectNothingLeft();
}

TEST(FullDiskTest, OfAMasterRefusesJobsUntilThereIsRoom) {
  ClusterOfProcesses cluster;
  SmallDisk disk(cluster.folder() + "/full", kMebibyte);
  if (!disk.why_not().empty()) GTEST_SKIP() << disk.why_not();
  const std::string state = disk.folder() + "/state";
  const auto master = cluster.Start({"master", "--listen", "127.0.0.1:0", "--state", state});
  ASSERT_TRUE(master->WaitFor("listens on ")) << master->output();
  const std::string line = ReadText(state + "/address");
  const std::string address = line.substr(0, line.find('\n'));
  const auto worker = cluster.Start({"worker", "--name", "alpha", "--threads", "1", "--master", address,
                                     "--token-file", state + "/worker.token"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const auto client = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 2, {"--master", address, "--token-file", state + "/client.token"});
    return cluster.Run(words);
  };
  // Runs while the disk becomes full and has room again.
  const Finished running =
      client({"job", "submit", "--detach", "-e", "t = time()\nwhile (time() - t < 2e9) { t = t }\nprint(7)"});
  ASSERT_EQ(running.code, 0) << running.errors;
  std::ofstream filler(disk.folder() + "/filler", std::ios::binary);
  const std::string block(4096, 'x');
  while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
  filler.close();
  const Finished refused =
      client({"job", "submit", "--detach", "-e", std::string(20'000, '\n') + "print(1)"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_EQ(refused.errors, "heddle: error: job store: the disk is full\n");
  EXPECT_EQ(client({"job", "list"}).code, 0);
  // The one that runs cannot end, and whoever asks is told why.
  const std::string why = "reason   waits: job store: the disk is full\n";
  Finished status;
  for (int look = 0; look < 200 && status.output.find(why) == std::string::npos; ++look) {
    usleep(100'000);
    status = client({"job", "status", "j1"});
  }
  EXPECT_NE(status.output.find(why), std::string::npos) << status.output;
  ASSERT_TRUE(disk.Resize(16 * kMebibyte));
  const Finished outcome = client({"job", "wait", "j1"});
  const Finished logs = client({"job", "logs", "j1"});
  if (outcome.code == 0)
    EXPECT_EQ(logs.output, "7\n");
  else
    EXPECT_NE(outcome.errors.find("job store: the disk is full"), std::string::npos) << outcome.errors;
  EXPECT_EQ(client({"job", "submit", "-e", "print(2)"}).output, "2\n");
  // A log of changes that begins anew has room for a job, which would not find any for its end.
  ASSERT_EQ(RunProcess({"/usr/bin/python3", "-c",
                        "import sqlite3\n"
                        "sqlite3.connect('" +
                            state + "/jobs.sqlite').execute('PRAGMA wal_checkpoint(RESTART)')"},
                       cluster.folder())
                .code,
            0);
  const std::uintmax_t used = disk.used();
  ASSERT_TRUE(disk.Resize(static_cast<int64_t>(used) + 4096));
  const auto begin = std::chrono::steady_clock::now();
  const Finished full = client({"job", "submit", "-e", "print(3)"});
  EXPECT_EQ(full.code, 5) << full.output;
  EXPECT_EQ(full.errors, "heddle: error: job store: the disk is full\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10 * kPatience));
  ASSERT_TRUE(disk.Resize(16 * kMebibyte));
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// What was written last is lost, nothing else: a master goes on with the jobs of an earlier moment.
TEST(TornStoreTest, AMasterGoesOnWithTheJobsOfAnEarlierMoment) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(" + std::to_string(i) + ")"}).code, 0);
  cluster.master().Signal(SIGKILL);
  cluster.master().Wait();
  const std::string log = cluster.master_folder() + "/jobs.sqlite-wal";
  fs::resize_file(log, fs::file_size(log) * 2 / 3);
  cluster.StartMaster();
  const std::string jobs = cluster.Run({"job", "list", "--json"}).output;
  const auto count = static_cast<int>(std::count(jobs.begin(), jobs.end(), '\n'));
  EXPECT_GT(count, 0);
  EXPECT_LT(count, 6);
  for (int i = 1; i <= count; ++i) {
    const std::string id = "j" + std::to_string(i);
    EXPECT_NE(jobs.find("\"job\":\"" + id + "\""), std::string::npos) << jobs;
    // The last one may have been on its way: it runs again.
    EXPECT_EQ(cluster.Run({"job", "wait", id}).code, 0);
    EXPECT_EQ(cluster.Run({"job", "logs", id}).output, std::to_string(i) + "\n");
  }
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(8)"}).output, "8\n");
  cluster.EndAndExpectNothingLeft();
}

TEST(TornStoreTest, AStoreThatIsCutOffIsNamed) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(1)"}).output, "1\n");
  cluster.master().Signal(SIGTERM);
  EXPECT_EQ(cluster.master().Wait(), 0);
  const std::string path = cluster.master_folder() + "/jobs.sqlite";
  const std::string whole = ReadText(path);
  fs::resize_file(path, whole.size() / 2);
  const Finished refused = cluster.Run({"master", "--dev"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_EQ(
      refused.errors,
      "heddle: error: job store: '" + path +
          "' is damaged: database disk image is malformed\n"
          "'heddle admin restore' makes a folder of a backup; without one, a master begins with no jobs when "
          "the file is moved away\n");
  WriteText(path, whole);
  cluster.StartMaster();
  EXPECT_EQ(cluster.Run({"job", "logs", "j1"}).output, "1\n");
  cluster.EndAndExpectNothingLeft();
}

// A flipped bit in every object of the last two checkpoints: the job begins anew, with the right bytes.
TEST(DamagedCheckpointTest, AFlippedBitIsNotedAndNeverUsed) {
  const TemporaryFolder place;
  ClusterOfProcesses cluster(10'000, "", {"--checkpoints", place.path()});
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  const Finished quiet = cluster.Run({"run", "-e", kLoop});
  const std::string job = Submit(cluster, {"--workers", "2", "--checkpoint", "50ms", "-e", kLoop});
  ASSERT_TRUE(WaitForCheckpoint(cluster, job));
  for (const size_t worker : {0, 1}) KillExecutors(cluster, worker, SIGSTOP);
  int flipped = 0;
  for (const auto& entry : fs::recursive_directory_iterator(place.path())) {
    if (!entry.is_regular_file()) continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(entry.file_size() / 2);
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(middle);
    file.put(byte);
    ++flipped;
  }
  EXPECT_GE(flipped, 2);
  for (const size_t worker : {0, 1}) KillExecutors(cluster, worker, SIGKILL);
  const Finished outcome = cluster.Run({"job", "wait", job});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(cluster.Run({"job", "logs", job}).output, quiet.output);
  const std::string status = cluster.Run({"job", "status", job}).output;
  EXPECT_NE(status.find("is damaged"), std::string::npos) << status;
  cluster.EndAndExpectNothingLeft();
}

// Rows that a job has read, and cannot read again as they were.
TEST(ChangedInputTest, AJobThatGoesOnWithAnotherInputFails) {
  const TemporaryFolder place;
  ClusterOfProcesses cluster(10'000, "", {"--checkpoints", place.path()});
  const std::string input = cluster.folder() + "/in.csv";
  std::string rows;
  for (int i = 0; i < 2'000; ++i) rows += std::to_string(i) + "," + std::to_string(i % 7) + "\n";
  WriteText(input, rows);
  cluster.StartWorker("alpha");
  const std::string job =
      Submit(cluster, {"--workers", "1", "--checkpoint", "50ms", "-e",
                       "X = read(\"in.csv\", format=\"csv\")\nfor (i in 1:2000) {\n  t = time()\n"
                       "  while (time() - t < 5e6) { t = t }\n  print(i + \" \" + sum(X)) }"});
  ASSERT_TRUE(WaitForCheckpoint(cluster, job));
  fs::resize_file(input, rows.size() / 2);
  KillExecutors(cluster, 0, SIGKILL);
  const Finished outcome = cluster.Run({"job", "wait", job});
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_NE(outcome.errors.find("'in.csv' has changed since it was read: it was "), std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.errors.find("what goes on from a checkpoint would mix results of both"),
            std::string::npos)
      << outcome.errors;
  cluster.EndAndExpectNothingLeft();
}

// It shrinks while rows are read from it, again and again, as it does not fit in memory.
TEST(ChangedInputTest, AnInputThatShrinksUnderAJobIsNamedOrNotMissed) {
  ClusterOfProcesses cluster;
  const std::string input = cluster.folder() + "/in.csv";
  std::string rows;
  for (int i = 0; i < 200'000; ++i) rows += "1,2,3,4,5,6,7,8,9,10\n";
  WriteText(input, rows);
  cluster.StartWorker("alpha");
  const std::string job = Submit(
      cluster, {"--workers", "1", "--memory", "8m", "-e",
                "X = read(\"in.csv\", format=\"csv\")\nfor (i in 1:1000) print(i + \" \" + sum(X * i))"});
  for (int tries = 0; tries < 2000 && cluster.Run({"job", "logs", job}).output.empty(); ++tries) {
  }
  fs::resize_file(input, rows.size() / 2);
  const Finished outcome = cluster.Run({"job", "wait", job});
  // Rows that it has read before are in a spill file, or it reads them again.
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 4) << outcome.errors;
  EXPECT_EQ(outcome.errors.find("in.csv") != std::string::npos, outcome.code == 4) << outcome.errors;
  const std::string logs = cluster.Run({"job", "logs", job}).output;
  std::istringstream lines(logs);
  int64_t round = 0;
  double sum = 0;
  while (lines >> round >> sum) EXPECT_EQ(sum, 11e6 * static_cast<double>(round));
  EXPECT_TRUE(outcome.code == 0 ? round == 1000 : round >= 1) << round;
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

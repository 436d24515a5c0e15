// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

// Prints on its way and goes on for as long as it may take.
constexpr const char* kWaitingScript =
    "X = rand(rows=2000, cols=10, seed=1)\ni = 0\nwhile (i < 100000000) {\n  i = i + 1\n  X = X * 0.5\n"
    "  if (i == 50) { print(\"begun\") }\n}\n";

std::string OutputOf(ClusterOfProcesses& cluster, const std::vector<std::string>& words) {
  const Finished finished = cluster.Run(words);
  EXPECT_EQ(finished.code, 0) << words[0] << " " << words[1] << ": " << finished.errors;
  return finished.output;
}

// The first words of the lines of a table, without its head.
std::vector<std::string> IdsOf(const std::string& table) {
  std::vector<std::string> ids;
  for (size_t begin = table.find('\n') + 1; begin < table.size(); begin = table.find('\n', begin) + 1)
    ids.push_back(table.substr(begin, table.find(' ', begin) - begin));
  return ids;
}
using Ids = std::vector<std::string>;

TEST(JobCommandsTest, ListsHaveFiltersAndPages) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/train.dml", "print(1)\n");
  WriteText(cluster.folder() + "/wrong.dml", "stop(\"a peculiar fault\")\n");
  for (const char* script : {"train.dml", "wrong.dml", "train.dml"}) cluster.Run({"job", "submit", script});
  OutputOf(cluster, {"job", "submit", "--detach", "--workers", "2", "train.dml"});  // waits
  const auto list = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"job", "list"});
    return IdsOf(OutputOf(cluster, options));
  };
  EXPECT_EQ(list({}), (Ids{"j4", "j3", "j2", "j1"}));
  EXPECT_EQ(list({"--state", "failed"}), (Ids{"j2"}));
  EXPECT_EQ(list({"--state", "waiting"}), (Ids{"j4"}));
  EXPECT_EQ(list({"--state", "waiting", "--state", "SUCCEEDED"}), (Ids{"j4", "j3", "j1"}));
  EXPECT_EQ(list({"--name", "train"}), (Ids{"j4", "j3", "j1"}));
  EXPECT_EQ(list({"--text", "peculiar"}), (Ids{"j2"}));
  EXPECT_EQ(list({"--since", "1h"}), (Ids{"j4", "j3", "j2", "j1"}));
  EXPECT_EQ(list({"--until", "1h"}), Ids{});
  EXPECT_EQ(list({"--since", "2100-01-01T10:00"}), Ids{});
  EXPECT_EQ(list({"--after", "j3"}), (Ids{"j2", "j1"}));
  const Finished after = cluster.Run({"job", "list", "--after", "foo"});
  EXPECT_EQ(after.code, 2);
  EXPECT_EQ(after.errors, "heddle: error: --after takes the id of a job such as j17, not 'foo'\n");
  EXPECT_EQ(list({"--limit", "0", "--state", "finished"}), (Ids{"j3", "j2", "j1"}));
  const Finished page = cluster.Run({"job", "list", "--limit", "2", "--name", "train"});
  EXPECT_EQ(IdsOf(page.output), (Ids{"j4", "j3"}));
  EXPECT_EQ(page.errors, "heddle: there are older ones: --after j3, or --limit 0 for all\n");
  EXPECT_EQ(cluster.Run({"job", "list", "--limit", "2", "--name", "train", "--after", "j3"}).errors, "");
  EXPECT_NE(OutputOf(cluster, {"job", "list", "--json", "--state", "waiting"}).find("waits for 2 workers"),
            std::string::npos);

  const Finished state = cluster.Run({"job", "list", "--state", "sleeping"});
  EXPECT_EQ(state.code, 2);
  EXPECT_NE(state.errors.find("--state: 'sleeping' is no state of a job"), std::string::npos) << state.errors;
  const Finished since = cluster.Run({"job", "list", "--since", "yesterday"});
  EXPECT_EQ(since.code, 2);
  EXPECT_NE(since.errors.find("--since takes a time ago such as 90s, 2h or 7d, or a date"), std::string::npos)
      << since.errors;
  OutputOf(cluster, {"job", "cancel", "j4"});
  cluster.EndAndExpectNothingLeft();
}

TEST(JobCommandsTest, WhatAnExecutorSaidOutlivesItsWorker) {
  ClusterOfProcesses cluster;
  BackgroundProcess& worker = cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/long.dml", kWaitingScript);
  const auto submit = cluster.Start({"job", "submit", "--retry-for", "0", "long.dml"});
  ASSERT_TRUE(submit->WaitFor("begun")) << submit->output();
  const auto follow = cluster.Start({"job", "logs", "-f", "--rank", "0", "--attempt", "1", "j1"});
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(worker.pid());
  ASSERT_EQ(executors.size(), 1u);
  kill(executors[0], SIGABRT);
  const std::string words = "executor " + std::to_string(executors[0]) + " was killed by signal 6";
  EXPECT_TRUE(follow->WaitFor(words)) << follow->output();
  worker.Signal(SIGKILL);
  worker.Wait();
  // Nobody is left who has its file.
  EXPECT_NE(OutputOf(cluster, {"job", "logs", "--rank", "0", "--attempt", "1", "j1"}).find(words),
            std::string::npos);
  const std::string status = OutputOf(cluster, {"job", "status", "j1"});
  EXPECT_NE(status.find("of rank 0 in attempt 1: heddle job logs --rank 0 --attempt 1 j1"), std::string::npos)
      << status;
  EXPECT_EQ(OutputOf(cluster, {"job", "logs", "j1"}), "begun\n");
  OutputOf(cluster, {"job", "cancel", "j1"});
  submit->Wait();
  follow->Wait();
  const Finished attempt = cluster.Run({"job", "logs", "--attempt", "1", "j1"});
  EXPECT_EQ(attempt.code, 2);
  EXPECT_NE(attempt.errors.find("--attempt goes with --rank"), std::string::npos) << attempt.errors;
  const Finished rank = cluster.Run({"job", "logs", "--rank", "0", "--attempt", "9", "j1"});
  EXPECT_EQ(rank.code, 2);
  EXPECT_NE(rank.errors.find("job j1 has no attempt 9"), std::string::npos) << rank.errors;
  cluster.EndAndExpectNothingLeft();
}

TEST(JobCommandsTest, AFinishedJobIsRunOnceMoreAndDeleted) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/noise.dml", "print(sum(rand(rows=100, cols=100)) + \" \" + $a)\n");
  const std::string first = OutputOf(cluster, {"job", "submit", "noise.dml", "-nvargs", "a=b"});
  std::filesystem::remove(cluster.folder() + "/noise.dml");
  EXPECT_EQ(OutputOf(cluster, {"job", "retry", "j1"}), first) << "the seed that was drawn, the arguments";
  EXPECT_EQ(OutputOf(cluster, {"job", "retry", "--detach", "j1"}), "j3\n");
  OutputOf(cluster, {"job", "wait", "j3"});
  EXPECT_EQ(OutputOf(cluster, {"job", "logs", "j3"}), first);

  EXPECT_EQ(OutputOf(cluster, {"job", "delete", "j1", "j2"}), "j1 deleted\nj2 deleted\n");
  EXPECT_EQ(cluster.Run({"job", "status", "j1"}).code, 4);
  EXPECT_EQ(IdsOf(OutputOf(cluster, {"job", "list"})), Ids{"j3"});
  OutputOf(cluster, {"job", "submit", "--detach", "--workers", "2", "-e", "print(1)"});
  for (const char* verb : {"delete", "retry"}) {
    const Finished refused = cluster.Run({"job", verb, "j4"});
    EXPECT_EQ(refused.code, 1) << verb;
    EXPECT_EQ(
        refused.errors,
        "heddle: error: job j4 is not finished: QUEUED\nwait for it with 'heddle job wait j4', or stop it with "
        "'heddle job cancel j4'\n");
  }
  OutputOf(cluster, {"job", "cancel", "j4"});
  cluster.EndAndExpectNothingLeft();
}

// A script that takes its time tells how far it is; one line where there is no terminal is seen after half a
// minute only, so that JSON is looked at.
TEST(JobCommandsTest, ARunningJobSaysWhatItIsAt) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  WriteText(cluster.folder() + "/long.dml", kWaitingScript);
  const auto submit = cluster.Start({"job", "submit", "long.dml"});
  ASSERT_TRUE(submit->WaitFor("begun")) << submit->output();
  std::string status;
  for (int i = 0; i < 600 && status.find("\"progress\":{") == std::string::npos; ++i)
    status = OutputOf(cluster, {"job", "status", "--json", "j1"});
  EXPECT_NE(status.find("\"loops\":[[3,"), std::string::npos) << status;
  const std::string top = OutputOf(cluster, {"admin", "top"});
  EXPECT_NE(top.find("alpha"), std::string::npos) << top;
  EXPECT_NE(top.find("line "), std::string::npos) << top;
  EXPECT_NE(OutputOf(cluster, {"admin", "top", "--json"}).find("\"nodes\":[{\"name\":\"alpha\""),
            std::string::npos);
  OutputOf(cluster, {"job", "cancel", "j1"});
  submit->Wait();
  cluster.EndAndExpectNothingLeft();
}

TEST(JobCommandsTest, AJobHasAReportAndATrace) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  cluster.StartWorker("beta");
  WriteText(cluster.folder() + "/part.dml",
            "f = function(matrix[double] X) return (double s) { s = sum(t(X) %*% X) }\n");
  WriteText(cluster.folder() + "/a.dml",
            "source(\"part.dml\") as part\nX = rand(rows=20000, cols=50, seed=1)\ns = 0\n"
            "for (i in 1:20) {\n  s = s + part::f(X * i)\n}\nprint(s)\n");
  const Finished plain = cluster.Run({"run", "a.dml"});
  const Finished job = cluster.Run({"job", "submit", "--workers", "2", "--min-distributed-bytes", "0",
                                    "--report", "job.html", "--trace", "job.json", "a.dml"});
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, plain.output);
  const std::string page = ReadText(cluster.folder() + "/job.html");
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* part :
       {"2 workers with", "X = rand(rows=20000, cols=50, seed=1)", "id=\"skew\"", "s = sum(t(X) %*% X)"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_NE(ReadText(cluster.folder() + "/job.json").find("\"ph\":\"b\""), std::string::npos)
      << "copies between workers";
  // Later, by whoever may see the job, with the scripts gone.
  std::filesystem::remove(cluster.folder() + "/part.dml");
  EXPECT_EQ(OutputOf(cluster, {"job", "report", "--trace", "later.json", "j1", "later.html"}), "");
  EXPECT_EQ(ReadText(cluster.folder() + "/later.html"), page);
  EXPECT_EQ(ReadText(cluster.folder() + "/later.json"), ReadText(cluster.folder() + "/job.json"));
  // One that is run once more is recorded as well.
  OutputOf(cluster, {"job", "retry", "j1"});
  EXPECT_EQ(cluster.Run({"job", "report", "j2", "again.html"}).code, 0);

  OutputOf(cluster, {"job", "submit", "-e", "print(1)"});
  const Finished refused = cluster.Run({"job", "report", "j3", "none.html"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.errors.find("job j3 was not recorded"), std::string::npos) << refused.errors;
  EXPECT_NE(refused.errors.find("submit it with --record"), std::string::npos) << refused.errors;
  OutputOf(cluster, {"job", "submit", "--detach", "--record", "--workers", "3", "-e", "print(1)"});
  EXPECT_EQ(cluster.Run({"job", "report", "j4", "none.html"}).errors,
            "heddle: error: job j4 has no report yet: it is QUEUED\nwait for it with 'heddle job wait j4'\n");
  const Finished detached =
      cluster.Run({"job", "submit", "--detach", "--report", "x.html", "-e", "print(1)"});
  EXPECT_EQ(detached.code, 2);
  EXPECT_NE(detached.errors.find("which --detach does not wait for"), std::string::npos) << detached.errors;
  EXPECT_EQ(cluster.Run({"job", "report", "j1"}).code, 2);
  const Finished nowhere = cluster.Run({"job", "report", "j1", "job.html/x.html"});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_TRUE(nowhere.errors.starts_with("heddle: error: the report: ")) << nowhere.errors;
  EXPECT_EQ(nowhere.errors.find("nothing was run"), std::string::npos) << nowhere.errors;
  OutputOf(cluster, {"job", "cancel", "j4"});
  // It never began, so that there is nothing to show.
  EXPECT_EQ(
      cluster.Run({"job", "report", "j4", "none.html"}).errors,
      "heddle: error: nothing is left of what job j4 has recorded\nan executor that is killed leaves no record; "
      "those of the oldest jobs go when they take too much room\n");
  // A job that failed says that its report is missing, too; its own error is the last.
  const auto failed =
      cluster.Start({"job", "submit", "--report", "failed.html", "--workers", "3", "-e", "print(1)"});
  ASSERT_TRUE(failed->WaitFor("waits for 3 workers")) << failed->output();
  OutputOf(cluster, {"job", "cancel", "j5"});
  EXPECT_EQ(failed->Wait(), 8) << failed->output();
  EXPECT_NE(
      failed->output().find("heddle: warning: nothing is left of what job j5 has recorded\nheddle: error: "),
      std::string::npos)
      << failed->output();
  cluster.EndAndExpectNothingLeft();
}

// Whoever waits hears what for, in the words of the status; a moment is no wait.
TEST(JobCommandsTest, AFollowerIsToldWhatTheJobWaitsFor) {
  ClusterOfProcesses cluster;
  OutputOf(cluster, {"job", "submit", "--detach", "-e", "print(1)"});
  const auto second = cluster.Start({"job", "submit", "-e", "print(2)"});
  ASSERT_TRUE(second->WaitFor("\n")) << second->output();
  EXPECT_EQ(second->output(),
            "heddle: job j2: waits: no worker is alive; 'heddle worker' starts one; 1 job comes before it\n");
  EXPECT_NE(
      OutputOf(cluster, {"job", "status", "j2"})
          .find("reason   waits: no worker is alive; 'heddle worker' starts one; 1 job comes before it\n"),
      std::string::npos);
  cluster.StartWorker("alpha");
  EXPECT_EQ(second->Wait(), 0) << second->output();
  const Finished quick = cluster.Run({"job", "submit", "-e", "print(3)"});
  EXPECT_EQ(quick.output, "3\n");
  EXPECT_EQ(quick.errors, "");
  cluster.EndAndExpectNothingLeft();
}

// The attempt that a lost worker has ended is told of.
TEST(JobCommandsTest, TheReportSaysWhyAJobWasStartedAgain) {
  ClusterOfProcesses cluster;
  BackgroundProcess& worker = cluster.StartWorker("alpha");
  WriteText(
      cluster.folder() + "/long.dml",
      "X = rand(rows=2000, cols=10, seed=1)\nprint(\"begun\")\ns = 0\nfor (i in 1:50000) { s = s + sum(X * i) }\n"
      "print(s)\n");
  const auto submit = cluster.Start({"job", "submit", "--report", "job.html", "long.dml"});
  ASSERT_TRUE(submit->WaitFor("begun")) << submit->output();
  worker.Signal(SIGKILL);
  worker.Wait();
  cluster.StartWorker("alpha");
  EXPECT_EQ(submit->Wait(), 0) << submit->output();
  const std::string page = ReadText(cluster.folder() + "/job.html");
  EXPECT_NE(OutputOf(cluster, {"job", "status", "j1"}).find("attempt  2\n"), std::string::npos)
      << "the script is too short for this test";
  EXPECT_NE(page.find("<h2>Earlier attempts</h2>"), std::string::npos);
  EXPECT_NE(page.find("attempt 1 ended: "), std::string::npos);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

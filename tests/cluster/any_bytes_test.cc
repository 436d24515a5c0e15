// SPDX-License-Identifier: Apache-2.0
// Texts and names that are no UTF-8, or that a terminal would obey.
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

TEST(AnyBytesTest, AnErrorTextWithAnyBytesHidesNoJob) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string half(39, 'x');
  WriteText(cluster.folder() + "/bad.csv", "1,2\n3,\xff\xfe\n");
  WriteText(cluster.folder() + "/cut.csv", "1,2\n3," + half + "\xe2\x82\xac\n");
  WriteText(cluster.folder() + "/escape.csv", "1,2\n3,\x1b]0;owned\x07\n");
  const std::pair<std::string, std::string> cases[] = {
      {"bad.csv", "cannot read 'bad.csv': line 2, field 2: '\\xff\\xfe' is not a number"},
      {"cut.csv", "cannot read 'cut.csv': line 2, field 2: '" + half + "' is not a number"},
      {"escape.csv", "cannot read 'escape.csv': line 2, field 2: '\\x1b]0;owned\\x07' is not a number"}};
  int number = 0;
  for (const auto& [file, message] : cases) {
    const std::string job = "j" + std::to_string(++number);
    const std::string script = "X = read(\"" + file + "\")\nprint(sum(X))";
    const Finished run = cluster.Run({"run", "-e", script});
    EXPECT_NE(run.errors.find(message), std::string::npos) << run.errors;
    const Finished submit = cluster.Run({"job", "submit", "-e", script});
    EXPECT_EQ(submit.code, 4);
    EXPECT_EQ(submit.errors, run.errors);
    const Finished list = cluster.Run({"job", "list"});
    EXPECT_EQ(list.code, 0) << list.errors;
    EXPECT_NE(list.output.find(message), std::string::npos) << list.output;
    const Finished status = cluster.Run({"job", "status", job});
    EXPECT_EQ(status.code, 0) << status.errors;
    EXPECT_NE(status.output.find("reason   " + message), std::string::npos) << status.output;
    EXPECT_EQ(cluster.Run({"job", "status", "--json", job}).code, 0);
    EXPECT_EQ(cluster.Run({"job", "wait", job}).errors, run.errors);
    EXPECT_EQ(cluster.Run({"job", "logs", job}).code, 0);
  }
  // The texts are in the store; a master that reads it tells them, too.
  cluster.master().Signal(SIGKILL);
  EXPECT_EQ(cluster.master().Wait(), 128 + SIGKILL);
  cluster.StartMaster();
  const Finished list = cluster.Run({"job", "list"});
  EXPECT_EQ(list.code, 0) << list.errors;
  EXPECT_NE(list.output.find(cases[0].second), std::string::npos) << list.output;
  cluster.EndAndExpectNothingLeft();
}

TEST(AnyBytesTest, FoldersScriptsAndSourcesMayHaveAnyName) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string folder = cluster.folder() + "/f\xff\xe9";
  WriteText(
      folder + "/s\xfe.dml",
      "source(\"l\xfd.dml\") as l\nX = read($in)\nwrite(X * 2, \"out.csv\")\nprint(l::f(sum(X)) + \"\xfc\")\n");
  WriteText(folder + "/l\xfd.dml", "f = function(double a) return (double b) { b = a + 1 }\n");
  WriteText(folder + "/i\xfb.csv", "1,2\n");
  const Finished job =
      RunProcess({Binary(), "job", "submit", "s\xfe.dml", "-nvargs", "in=i\xfb.csv"}, folder, 60);
  EXPECT_EQ(job.code, 0) << job.errors;
  EXPECT_EQ(job.output, "4.0\xfc\n");
  EXPECT_EQ(ReadText(folder + "/out.csv"), "1 1 2.0\n1 2 4.0\n");
  const Finished list = cluster.Run({"job", "list"});
  EXPECT_NE(list.output.find("s\\xfe.dml"), std::string::npos) << list.output;
  EXPECT_EQ(cluster.Run({"job", "status", "j\xff"}).errors,
            "heddle: error: there is no job 'j\\xff'\n'heddle job list' lists the jobs\n");
  EXPECT_EQ(cluster.Run({"admin", "drain", "\xff"}).code, 4);
  cluster.EndAndExpectNothingLeft();
}

// Files of 252 bytes and more cannot have metadata beside them.
TEST(AnyBytesTest, NamesOfEveryLengthAreWritten) {
  const TemporaryFolder folder;
  for (const size_t size : {240, 251, 252, 255}) {
    const std::string name = std::string(size - 4, 'n') + ".csv";
    const Finished run = RunProcess(
        {Binary(), "run", "-e",
         "write(matrix(3, rows=1, cols=2), $out, format=\"csv\")\nX = read($out, format=\"csv\")\nprint(sum(X))",
         "-nvargs", "out=" + name},
        folder.path());
    EXPECT_EQ(run.code, 0) << run.errors;
    EXPECT_EQ(run.output, "6.0\n");
    EXPECT_EQ(ReadText(folder.path() + "/" + name), "3.0,3.0\n");
    std::error_code too_long;
    EXPECT_EQ(std::filesystem::exists(folder.path() + "/" + name + ".mtd", too_long), size <= 251);
    EXPECT_EQ(run.errors.find("no metadata") == std::string::npos, size <= 251) << run.errors;
  }
}

TEST(AnyBytesTest, ARequestIdIsBoundToItsScript) {
  ClusterOfProcesses cluster;
  const std::vector<std::string> words = {"job", "submit", "--detach", "--request-id", "mine", "-e"};
  const auto submit = [&](const std::string& script, const std::vector<std::string>& rest = {}) {
    std::vector<std::string> all = words;
    all.push_back(script);
    all.insert(all.end(), rest.begin(), rest.end());
    return cluster.Run(all);
  };
  EXPECT_EQ(submit("print($a)", {"-nvargs", "a=1"}).output, "j1\n");
  EXPECT_EQ(submit("print($a)", {"-nvargs", "a=1"}).output, "j1\n");
  for (const Finished& other :
       {submit("print($a+1)", {"-nvargs", "a=1"}), submit("print($a)", {"-nvargs", "a=2"}),
        submit("print($a)", {"--seed", "7", "-nvargs", "a=1"})}) {
    EXPECT_EQ(other.code, 2);
    EXPECT_EQ(
        other.errors,
        "heddle: error: the request id 'mine' is that of job j1, which has another script, other arguments or "
        "options\ngive every job its own: --request-id ID\n");
  }
  cluster.EndAndExpectNothingLeft();
}

TEST(AnyBytesTest, AListOfJobsTellsTheBeginningOfALongText) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string script = "s = \"\xc3\xa9\"\nfor (i in 1:20) { s = s + s }\nstop(s)";
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", script}).code, 1);
  const Finished list = cluster.Run({"job", "list", "--json"});
  EXPECT_EQ(list.code, 0);
  EXPECT_LT(list.output.size(), 4'000u);
  EXPECT_EQ(list.output.find("\\\\x"), std::string::npos) << "no character is cut: " << list.output;
  EXPECT_GT(cluster.Run({"job", "status", "j1"}).output.size(), 2'000'000u);
  cluster.EndAndExpectNothingLeft();
}

// A client is answered while the master compiles for another.
TEST(AnyBytesTest, ALongScriptHoldsNobodyUp) {
  ClusterOfProcesses cluster;
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "x" + std::to_string(i) + " = " + std::to_string(i) + " + 1\n";
  WriteText(cluster.folder() + "/long.dml", text + "print(1)\n");
  const auto submit = cluster.Start({"job", "submit", "--detach", "long.dml"});
  int answers = 0;
  for (bool queued = false; !queued && answers < 10'000; ++answers) {
    const Finished list = cluster.Run({"job", "list"});
    ASSERT_EQ(list.code, 0) << list.errors;
    queued = list.output.find("j1") != std::string::npos;
  }
  EXPECT_TRUE(submit->WaitFor("j1", 120)) << submit->output();
  EXPECT_GT(answers, 3) << "the script is too short for this test";
  WriteText(cluster.folder() + "/huge.dml", "# " + std::string(17 << 20, 'x') + "\nprint(1)\n");
  const Finished huge = cluster.Run({"job", "submit", "--detach", "huge.dml"});
  EXPECT_EQ(huge.code, 3);
  EXPECT_EQ(huge.errors,
            "heddle: error: the script has 17825804 bytes with what it sources; it has 16777216 at most\n");
  cluster.EndAndExpectNothingLeft();
}

TEST(AnyBytesTest, ExecutorsOfAWorkerLeaveNoCoreDumps) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const auto submit =
      cluster.Start({"job", "submit", "-e",
                     "X = rand(rows=9, cols=9, seed=1)\nprint(\"begun\")\nwhile (sum(X) > 0) { X = X + 1 }"});
  ASSERT_TRUE(submit->WaitFor("begun")) << submit->output();
  const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(cluster.worker(0).pid());
  ASSERT_EQ(executors.size(), 1u);
  for (const pid_t pid : {cluster.master().pid(), cluster.worker(0).pid(), executors[0]}) {
    const std::string limits = ReadText("/proc/" + std::to_string(pid) + "/limits");
    const std::string name = "Max core file size";
    const size_t at = limits.find(name);
    ASSERT_NE(at, std::string::npos);
    EXPECT_EQ(limits[limits.find_first_not_of(' ', at + name.size())], '0') << limits;
  }
  EXPECT_EQ(cluster.Run({"job", "cancel", "j1"}).code, 0);
  EXPECT_EQ(submit->Wait(), 8);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

// SPDX-License-Identifier: Apache-2.0
// --report and --trace of the built binary: what the files say, and that they appear whole or not at all.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::RunProcess;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

constexpr const char* kScript =
    "X = rand(rows=20000, cols=50, seed=1)\n"
    "s = 0\n"
    "for (i in 1:20) {\n"
    "  Y = t(X) %*% (X * i)\n"
    "  s = s + sum(Y)\n"
    "}\n"
    "print(s)\n";

// A Python that is there, not one that a version manager would have to look for.
std::string Python() {
  const char* const named = std::getenv("HEDDLE_PYTHON");
  return named != nullptr ? named : "/usr/bin/python3";
}

bool IsThere(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

class RunReportTest : public testing::Test {
 protected:
  RunReportTest() { WriteText(folder_.path() + "/script.dml", kScript); }
  Finished Run(std::vector<std::string> words, const std::string& script = "script.dml") {
    words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
    words.push_back(script);
    return RunProcess(words, folder_.path());
  }
  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }
  void CheckTrace(const std::string& name, int ranks) {
    if (!IsThere(Python())) GTEST_SKIP() << "there is no " << Python();
    const Finished checked = RunProcess(
        {Python(), HEDDLE_SOURCE_DIR "/tests/report/check_trace.py", At(name), std::to_string(ranks)},
        folder_.path());
    EXPECT_EQ(checked.code, 0) << checked.output << checked.errors;
  }
  TemporaryFolder folder_;
};

TEST_F(RunReportTest, TheReportSaysWhatTookTheTime) {
  const Finished plain = Run({"run", "--threads", "2"});
  const Finished done = Run({"run", "--threads", "2", "--report", "run.html"});
  EXPECT_EQ(done.code, 0) << done.errors;
  EXPECT_EQ(done.output, plain.output);
  EXPECT_EQ(done.errors, "");
  const std::string page = ReadText(At("run.html"));
  EXPECT_NE(page.find("went into <code>"), std::string::npos) << page.substr(page.find("<main>"), 400);
  EXPECT_NE(page.find("Y = t(X) %*% (X * i)"), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST_F(RunReportTest, TracesOfRunAndSimAreWhatPerfettoReads) {
  const Finished run = Run({"run", "--trace", "run.json"});
  EXPECT_EQ(run.code, 0) << run.errors;
  const Finished sim = Run({"sim", "--workers", "3", "--min-distributed-bytes", "0", "--trace", "sim.json",
                            "--report", "sim.html"});
  EXPECT_EQ(sim.code, 0) << sim.errors;
  EXPECT_EQ(sim.output, run.output);
  const std::string page = ReadText(At("sim.html"));
  EXPECT_NE(page.find("3 workers with"), std::string::npos);
  for (const char* worker : {"worker 0", "worker 1", "worker 2"})
    EXPECT_NE(page.find(std::string("<td class=\"name\">") + worker), std::string::npos) << worker;
  EXPECT_NE(ReadText(At("sim.json")).find("\"ph\":\"b\""), std::string::npos) << "copies between workers";
  CheckTrace("run.json", 1);
  CheckTrace("sim.json", 3);
}

TEST_F(RunReportTest, IterationsOfAParforHaveTheirThreads) {
  WriteText(At("script.dml"),
            "s = matrix(0, rows=40, cols=1)\nparfor (i in 1:40) {\n  A = rand(rows=300, cols=300, seed=i)\n"
            "  s[i, 1] = sum(A %*% A)\n}\nprint(sum(s))\n");
  const Finished done = Run({"run", "--threads", "4", "--trace", "run.json", "--report", "run.html"});
  EXPECT_EQ(done.code, 0) << done.errors;
  EXPECT_NE(ReadText(At("run.json")).find("\"lane 2\""), std::string::npos);
  EXPECT_NE(ReadText(At("run.html")).find("sum(A %*% A)"), std::string::npos);
  CheckTrace("run.json", 1);
}

TEST_F(RunReportTest, ARunThatFailsHasAReportThatSaysWhy) {
  WriteText(
      At("script.dml"),
      std::string(kScript) + "for (i in 1:3) {\n  print(i)\n  if (i > 1) { stop(\"a <b>reason</b>\") }\n}\n");
  const Finished done = Run({"run", "--report", "run.html", "--trace", "run.json"});
  EXPECT_EQ(done.code, 1);
  const std::string page = ReadText(At("run.html"));
  EXPECT_NE(page.find("<p class=\"error\">"), std::string::npos);
  EXPECT_NE(page.find("a &lt;b&gt;reason&lt;/b&gt;"), std::string::npos);
  // The loop that the failure has ended is there as well.
  const std::string trace = ReadText(At("run.json"));
  EXPECT_NE(trace.find("\"place\":\"script.dml:3\""), std::string::npos);
  EXPECT_NE(trace.find("\"place\":\"script.dml:8\",\"rounds\":2"), std::string::npos) << trace;
  CheckTrace("run.json", 1);
}

// What the executors have recorded until the signal is waited for.
TEST_F(RunReportTest, ARunThatASignalEndsHasAReportOfAllRanks) {
  WriteText(At("long.dml"),
            "X = rand(rows=20000, cols=50, seed=1)\n"
            "write(sum(X), \"begun\", format=\"text\")\n"
            "i = 0\n"
            "while (i < 1000000) { X = X * 0.5; i = i + 1 }\n"
            "print(sum(X))\n");
  for (const std::string verb : {"run", "sim --workers 3"}) {
    const std::string command =
        "rm -f begun; " HEDDLE_BINARY_DIR "/heddle " + verb +
        " --min-distributed-bytes 0 --report ended.html --trace ended.json long.dml & "
        "until [ -e begun ]; do sleep 0.05; done; kill $!; wait $!";
    const Finished ended = RunProcess({"/bin/sh", "-c", command}, folder_.path());
    EXPECT_EQ(ended.code, 8) << verb << ended.errors;
    const std::string page = ReadText(At("ended.html"));
    EXPECT_NE(page.find("cancelled by a signal"), std::string::npos) << verb;
    CheckTrace("ended.json", verb == "run" ? 1 : 3);
  }
}

TEST_F(RunReportTest, AnOlderReportStaysWhenNothingRuns) {
  WriteText(At("run.html"), "old");
  WriteText(At("script.dml"), "print(undefined)\n");
  EXPECT_EQ(Run({"run", "--report", "run.html"}).code, 3);
  EXPECT_EQ(ReadText(At("run.html")), "old");
}

TEST_F(RunReportTest, ChromiumShowsThePage) {
  if (!IsThere(Python())) GTEST_SKIP() << "there is no " << Python();
  // Of one process and of several, whose page has more to say.
  const std::vector<std::string> verbs[] = {
      {"run", "--threads", "2"}, {"sim", "--workers", "3", "--threads", "2", "--min-distributed-bytes", "0"}};
  for (std::vector<std::string> words : verbs) {
    SCOPED_TRACE(words[0]);
    words.insert(words.end(), {"--report", "run.html"});
    const Finished run = Run(words);
    ASSERT_EQ(run.code, 0) << run.errors;
    const Finished looked =
        RunProcess({Python(), HEDDLE_SOURCE_DIR "/tests/report/browse", At("run.html"), At("pictures")},
                   folder_.path(), 120);
    if (looked.code == 77) GTEST_SKIP() << looked.output;
    EXPECT_EQ(looked.code, 0) << looked.output << looked.errors;
    for (const char* name : {"light.png", "dark.png", "narrow.png", "plain.png", "print.pdf"})
      EXPECT_GT(ReadText(At("pictures/") + name).size(), 1000u) << name;
  }
}

}  // namespace
}  // namespace heddle

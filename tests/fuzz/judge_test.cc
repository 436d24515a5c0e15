// SPDX-License-Identifier: Apache-2.0
// The judge of the fuzzer can fail: programs that do each of the things that it looks for.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fuzz/campaign.h"
#include "tests/fuzz/minimize.h"
#include "tests/support/process.h"

namespace heddle::fuzz {
namespace {

// Programs named heddle that are shell scripts.
class JudgeTest : public testing::Test {
 protected:
  std::string Program(const std::string& text) {
    const std::string path = folder_.path() + "/program";
    testing_support::WriteText(path, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  static FuzzCase SmallCase() {
    FuzzCase c;
    c.files[kScriptName] = "print(1)\n";
    return c;
  }

  // What is found at a program. Its time is short where a test waits for its end, and long elsewhere: a
  // loaded or slow machine must not make a fault of a program that works.
  static constexpr double kShort = 0.3;
  std::string Find(const std::string& text, const FuzzCase& c = SmallCase(), double cpu_s = 60) {
    Limits limits;
    limits.cpu_s = cpu_s;
    limits.still_s = 3 * testing_support::kPatience;
    limits.grace_s = 1.5 * testing_support::kPatience;
    const Judgement judgement = RunAndJudge(c, Program(text), limits);
    return judgement.fault ? judgement.fault->kind : "";
  }

  const testing_support::TemporaryFolder folder_;
};

TEST_F(JudgeTest, AcceptsResultsAndErrorsThatAreTold) {
  EXPECT_EQ(Find("echo 1"), "");
  EXPECT_EQ(Find("echo 'case.dml:1:7: error: no such thing' >&2; exit 3"), "");
  EXPECT_EQ(
      Find(
          "echo 'case.dml:1:7: warning: odd\n    1 | print(1)' >&2; echo 'case.dml:1:7: error: no' >&2; exit 1"),
      "");
}

TEST_F(JudgeTest, FindsSignals) {
  EXPECT_EQ(Find("kill -SEGV $$"), "signal 11");
  EXPECT_EQ(Find("kill -ABRT $$"), "signal 6");
  EXPECT_EQ(Find("kill -KILL $$"), "signal 9");
}

TEST_F(JudgeTest, FindsExitCodesThatMeanAFault) {
  EXPECT_EQ(Find("echo 'case.dml:1:1: error: internal' >&2; exit 70"), "exit 70");
  EXPECT_EQ(Find("echo 'case.dml:1:1: error: lost' >&2; exit 6"), "exit 6");
  EXPECT_EQ(Find("echo 'case.dml:1:1: error: unheard of' >&2; exit 42"), "exit 42");
}

TEST_F(JudgeTest, FindsWhatDoesNotEnd) {
  EXPECT_EQ(Find("trap '' INT; while :; do :; done", SmallCase(), kShort), "does not end at Ctrl-C");
  EXPECT_EQ(Find("while :; do :; done", SmallCase(), kShort), "compiles for ever");
  EXPECT_EQ(Find("exec sleep 1000"), "stands still");
}

TEST_F(JudgeTest, AcceptsLongWorkThatEndsWhenAsked) {
  EXPECT_EQ(Find("trap 'exit 8' INT; while :; do :; done", SmallCase(), kShort), "");
}

TEST_F(JudgeTest, FindsMemoryBeyondThePromise) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "memory is not judged under a sanitizer";
#endif
  // `tail` keeps what may be the end of its input; 200 MB and a quarter are within the promise.
  EXPECT_EQ(Find("head -c 600000000 /dev/zero | tail -c 500000000 >/dev/null"), "memory");
  EXPECT_EQ(Find("head -c 200000000 /dev/zero | tail -c 150000000 >/dev/null"), "");
}

TEST_F(JudgeTest, FindsErrorsThatSayTooLittleOrTooMuch) {
  EXPECT_EQ(Find("exit 3"), "silent failure");
  EXPECT_EQ(Find("echo 'heddle: error: something' >&2; exit 4"), "error without a place");
  EXPECT_EQ(Find("echo 'case.dml:1:7: error: long' >&2; seq 12 >&2; exit 1"), "long error");
  EXPECT_EQ(Find("echo 'case.dml:1:7: error: long' >&2; seq 11 >&2; exit 1"), "");
  EXPECT_EQ(Find("printf 'case.dml:1:7: error: \\377\\n' >&2; exit 1"), "unprintable error text");
  EXPECT_EQ(Find("printf 'case.dml:1:7: error: \\033[2J\\n' >&2; exit 1"), "unprintable error text");
}

TEST_F(JudgeTest, FindsFilesLeftBehind) {
  EXPECT_EQ(Find("echo 1 > .out.csv.heddle-123"), "file left behind");
}

TEST_F(JudgeTest, FindsRunsThatDiffer) {
  FuzzCase c = SmallCase();
  c.agreement = Agreement::kBytes;
  c.second_run = {"run", "--fusion", "off"};
  const std::string off = "case \"$*\" in *off*) ";
  EXPECT_EQ(Find("echo 1; echo 2 > out.csv", c), "");
  EXPECT_EQ(Find(off + "echo 2;; *) echo 1;; esac", c), "bytes differ");
  EXPECT_EQ(Find(off + "echo 2 > out.csv;; *) echo 1 > out.csv;; esac", c), "files differ");
  EXPECT_EQ(Find(off + ";; *) echo 1 > out.csv;; esac", c), "files differ");
  EXPECT_EQ(Find(off + "echo 'case.dml:1:1: error: no' >&2; exit 1;; esac", c), "exit codes differ");
  EXPECT_EQ(Find(off + "kill -SEGV $$;; esac", c), "signal 11");
  // Plans differ in the memory that they need.
  EXPECT_EQ(Find(off + "echo 'case.dml:1:1: error: out of memory' >&2; exit 5;; esac", c), "");
}

TEST_F(JudgeTest, FindsErrorsThatOnlyCheckSees) {
  FuzzCase c = SmallCase();
  c.agreement = Agreement::kCompile;
  c.second_run = {"check"};
  const std::string error = "echo 'case.dml:1:1: error: no' >&2; exit 3";
  EXPECT_EQ(Find(error, c), "");
  EXPECT_EQ(Find("case $1 in check) " + error + ";; esac", c), "check differs");
}

// The whole way: seeds, faults by signature, the failing input in a folder, and its smallest form.
TEST_F(JudgeTest, ACampaignKeepsAndMinimizesWhatFails) {
  CampaignOptions options;
  options.binary =
      Program("grep -q sum case.dml && { echo 'case.dml:1:1: error: sum 17' >&2; exit 70; }; true");
  options.first_seed = 5;
  options.most_cases = 12;
  options.minimize = true;
  options.failure_folder = folder_.path() + "/failures";
  const CampaignReport report = RunCampaign(options);
  EXPECT_EQ(report.cases, 12);
  ASSERT_EQ(report.findings.size(), 1u) << report.ToText();
  const Finding& finding = report.findings.begin()->second;
  EXPECT_GT(finding.cases, 1);
  EXPECT_EQ(finding.fault.kind, "exit 70");
  const std::string folder = options.failure_folder + "/" + std::to_string(finding.seed);
  EXPECT_EQ(testing_support::ReadText(folder + "/case.dml"),
            MakeCase(finding.seed, LoadCorpus()).files.at(kScriptName));
  EXPECT_TRUE(testing_support::ReadText(folder + "/command").starts_with("heddle 'run'"));
  EXPECT_EQ(testing_support::ReadText(folder + "-minimized/case.dml"), "sum");
}

}  // namespace
}  // namespace heddle::fuzz

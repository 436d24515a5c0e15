// SPDX-License-Identifier: Apache-2.0
// Who is killed (SIGKILL) at any moment leaves no spill file and no half a file behind the next start, on
// file systems that know files without names and on others. What is on a disk changes by calls alone: a
// process is killed before its n-th one, for every n, and from outside while calls are under way.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "core/environment/random.h"
#include "tests/faults/fault_runs.h"

namespace heddle {
namespace {

using testing_support::Fault;
using testing_support::FaultyRun;
using testing_support::FileScript;
using testing_support::PrepareFolder;
using testing_support::RunWithFault;
using testing_support::TemporaryFolder;

constexpr int kKilled = 128 + SIGKILL;

class KillsTest : public testing::TestWithParam<FileScript> {
 protected:
  const std::string& Work() const { return work_; }

  // A start in the folder that a killed process has left: all files are as without it. Executors whose
  // launcher was killed end by themselves; until then what they have made is locked.
  void ExpectCleanAfterNextStart(const FaultyRun& whole, bool no_tmpfile) {
    constexpr int kMostStarts = 20;
    FaultyRun next;
    for (int start = 0; start < kMostStarts; ++start) {
      next = RunWithFault(Work(), GetParam(), {.no_tmpfile = no_tmpfile});
      ASSERT_EQ(next.finished.code, 0) << next.finished.errors;
      if (next.files == whole.files) return;
    }
    for (const auto& [path, contents] : next.files)
      EXPECT_TRUE(whole.files.contains(path)) << "left behind: " << path;
    EXPECT_EQ(next.files, whole.files);
  }

  // What may be there when a process was killed, before the next start.
  static void ExpectOnlyHiddenParts(const FaultyRun& whole, const testing_support::Files& files,
                                    bool no_tmpfile) {
    for (const auto& [path, contents] : files) {
      const auto expected = whole.files.find(path);
      if (expected != whole.files.end()) {
        EXPECT_TRUE(contents == expected->second || contents == "older\n") << "half a file: " << path;
        continue;
      }
      EXPECT_TRUE(path.ends_with(".part.heddle")) << path;
      // A name that is removed at once is the only one that a spill file ever has.
      if (path.starts_with("spill/")) {
        EXPECT_TRUE(no_tmpfile && contents.empty()) << path;
      }
    }
  }

  TemporaryFolder folder_;
  const std::string work_ = folder_.path() + "/work";
};

TEST_P(KillsTest, BeforeTheNthCall) {
  const FileScript& script = GetParam();
  for (const bool no_tmpfile : {false, true}) {
    PrepareFolder(Work(), script, /*has_older=*/true);
    const FaultyRun whole = RunWithFault(Work(), script, {.no_tmpfile = no_tmpfile});
    ASSERT_EQ(whole.finished.code, 0) << whole.finished.errors;
    const int most = whole.MostCalls();
    const int step = testing_support::TriesAllFaults() ? 1 : std::max(1, most / script.most_tried);
    const auto [first, last] = testing_support::PartOf(most);
    int killed = 0;
    // Odd and even, whatever the step: the name of a spill file lives for few calls.
    for (int at = static_cast<int>(first); at <= last; at += step) {
      PrepareFolder(Work(), script, /*has_older=*/true);
      const FaultyRun run = RunWithFault(Work(), script, {.at = at, .error = 0, .no_tmpfile = no_tmpfile});
      SCOPED_TRACE(testing::Message()
                   << script.name << (no_tmpfile ? ", files with names, " : ", ") << run.Failed()
                   << "exit code " << run.finished.code << ": " << run.finished.errors);
      killed += run.finished.code == kKilled;
      ExpectOnlyHiddenParts(whole, run.files, no_tmpfile);
      ExpectCleanAfterNextStart(whole, no_tmpfile);
    }
    std::printf("%s: %d calls, killed %d times\n", script.name.c_str(), most, killed);
    EXPECT_GT(killed, 0);
  }
}

// The moment in which a spill file has its name, which a step may miss.
TEST_P(KillsTest, WhileASpillFileHasItsName) {
  const FileScript& script = GetParam();
  PrepareFolder(Work(), script, /*has_older=*/false);
  const FaultyRun whole = RunWithFault(Work(), script, {.only_spill = true, .no_tmpfile = true});
  const auto removal = std::find_if(whole.calls.begin(), whole.calls.end(), [](const std::string& call) {
    return call.find(" unlinkat ") != std::string::npos && call.ends_with(".part.heddle");
  });
  ASSERT_NE(removal, whole.calls.end()) << "no spill file";
  const int at = std::atoi(removal->substr(5).c_str());
  PrepareFolder(Work(), script, /*has_older=*/false);
  const FaultyRun run =
      RunWithFault(Work(), script, {.at = at, .error = 0, .only_spill = true, .no_tmpfile = true});
  const auto is_spilled = [](const auto& file) { return file.first.starts_with("spill/"); };
  EXPECT_NE(run.Failed().find(" unlinkat "), std::string::npos) << run.Failed();
  // Of two workers the other one may have removed it.
  if (script.words[0] == "run") {
    EXPECT_TRUE(std::any_of(run.files.begin(), run.files.end(), is_spilled)) << run.Failed();
  }
  ExpectCleanAfterNextStart(whole, /*no_tmpfile=*/true);
}

// Counts the lines of a log.
int64_t LinesOf(const std::string& log) {
  const std::string text = testing_support::ReadText(log);
  return std::count(text.begin(), text.end(), '\n');
}

TEST_P(KillsTest, FromOutside) {
  const FileScript& script = GetParam();
  SeededRandom random(59);
  const int times = testing_support::TriesAllFaults() ? 100 : 3;
  for (const bool no_tmpfile : {false, true}) {
    PrepareFolder(Work(), script, /*has_older=*/true);
    const FaultyRun whole = RunWithFault(Work(), script, {.no_tmpfile = no_tmpfile});
    ASSERT_EQ(whole.finished.code, 0) << whole.finished.errors;
    int killed = 0;
    for (int i = 0; i < times; ++i) {
      PrepareFolder(Work(), script, /*has_older=*/true);
      const auto calls = static_cast<int64_t>(random.Below(whole.calls.size()));
      const std::vector<std::string> words =
          testing_support::WordsWithFault(Work(), script, {.no_tmpfile = no_tmpfile});
      const pid_t child = testing_support::StartProcess(words, Work());
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      int status = 0;
      bool has_ended = false;
      while (!has_ended && LinesOf(Work() + ".log") < calls && std::chrono::steady_clock::now() < end)
        has_ended = waitpid(child, &status, WNOHANG) == child;
      if (!has_ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
      }
      SCOPED_TRACE(testing::Message() << script.name << ", killed after " << calls << " calls");
      killed += WIFSIGNALED(status);
      ExpectCleanAfterNextStart(whole, no_tmpfile);
    }
    EXPECT_GT(killed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, KillsTest, testing::ValuesIn(testing_support::SpillingScripts()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle

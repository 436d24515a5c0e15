// SPDX-License-Identifier: Apache-2.0
// The n-th call of the system on a file fails, for every n until a run makes no more: the run ends with the
// right files, or with an error of its kind and the files that were there before; never with half a file, a
// temporary one, a spill file, a signal or a wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "tests/faults/fault_runs.h"

namespace heddle {
namespace {

using testing_support::Fault;
using testing_support::FaultyRun;
using testing_support::FileScript;
using testing_support::PrepareFolder;
using testing_support::RunWithFault;
using testing_support::TemporaryFolder;

class CallsTest : public testing::TestWithParam<FileScript> {
 protected:
  FaultyRun RunOnce(const Fault& fault) {
    const std::string folder = folder_.path() + "/work";
    PrepareFolder(folder, GetParam(), /*has_older=*/fault.at % 2 == 0);
    return RunWithFault(folder, GetParam(), fault);
  }

  // Calls expect(run, n) for each n that is tried.
  template <typename Expect>
  void FailEach(Fault fault, const FaultyRun& whole, const Expect& expect) {
    const FileScript& script = GetParam();
    ASSERT_EQ(whole.finished.code, 0) << whole.finished.errors;
    ASSERT_FALSE(whole.calls.empty());
    const int most = whole.MostCalls();  // Processes count for themselves.
    const int step = testing_support::TriesAllFaults() ? 1 : std::max(1, most / script.most_tried);
    const auto [first, last] = testing_support::PartOf(most + 2);
    int failed = 0, runs = 0;
    for (int at = static_cast<int>(first); at <= last; at += step) {
      fault.at = at;
      const FaultyRun run = RunOnce(fault);
      SCOPED_TRACE(testing::Message() << script.name << ", errno " << fault.error << ", " << run.Failed()
                                      << "exit code " << run.finished.code << ": " << run.finished.errors);
      expect(run, at);
      failed += run.finished.code != 0;
      ++runs;
    }
    std::printf("%s: errno %d: %d calls, %d runs, %d failed\n", script.name.c_str(), fault.error, most, runs,
                failed);
    // For a matrix, free blocks that others have given back may do. Of a part of the calls, none may matter.
    EXPECT_TRUE(failed > 0 || fault.memory || last - first < most + 1);
  }

  void FailEach(const Fault& fault) {
    Fault none = fault;
    none.at = 0;
    const FaultyRun whole = RunOnce(none);
    FailEach(fault, whole,
             [&](const FaultyRun& run, int at) { Expect(whole, run, /*had_older=*/at % 2 == 0); });
  }

  static void Expect(const FaultyRun& whole, const FaultyRun& run, bool had_older) {
    const FileScript& script = GetParam();
    static const std::set<int> kCodes{0, 1, 2, 4, 5};
    ASSERT_TRUE(kCodes.contains(run.finished.code));
    // What could not be removed is there; nobody else's start removes what a living process has made.
    const bool may_stay = run.Failed().find("unlink") != std::string::npos;
    for (const auto& [path, contents] : run.files) {
      const auto expected = whole.files.find(path);
      const bool is_output = std::any_of(script.outputs.begin(), script.outputs.end(),
                                         [&](const std::string& output) { return path.starts_with(output); });
      if (expected == whole.files.end()) {
        EXPECT_TRUE(may_stay && path.ends_with(".part.heddle")) << "left behind: " << path;
      } else if (run.finished.code != 0 && is_output && had_older && contents == "older\n") {
        continue;
      } else {
        EXPECT_EQ(contents, expected->second) << "half a file: " << path;
      }
    }
    if (run.finished.code == 0) {
      EXPECT_EQ(run.finished.output, whole.finished.output);
      for (const auto& [path, contents] : whole.files) EXPECT_TRUE(run.files.contains(path)) << path;
      return;
    }
    EXPECT_NE(run.finished.errors.find("error:"), std::string::npos);
    if (!had_older) return;
    for (const std::string& output : script.outputs)
      EXPECT_TRUE(run.files.contains(output)) << "an older file is gone: " << output;
  }

  TemporaryFolder folder_;
};

TEST_P(CallsTest, ACallThatFails) { FailEach({.error = EIO}); }
TEST_P(CallsTest, ADiskThatIsFull) { FailEach({.error = ENOSPC, .only_writes = true}); }
// A matrix that the machine has no memory for ends the run with exit code 5, unless there is another way.
// (The allocator of gRPC's library stops a process for which the machine has no page.)
TEST_P(CallsTest, AMachineWithoutMemoryForAMatrix) {
  Fault fault{.memory = true};
  const FaultyRun whole = RunOnce(fault);
  fault.error = ENOMEM;
  FailEach(fault, whole, [&](const FaultyRun& run, int at) {
    Expect(whole, run, /*had_older=*/at % 2 == 0);
    EXPECT_TRUE(run.finished.code == 0 || run.finished.code == 5);
  });
}
INSTANTIATE_TEST_SUITE_P(Kinds, CallsTest, testing::ValuesIn(testing_support::FileScripts()),
                         [](const auto& info) { return info.param.name; });

// Calls on spill files alone, on file systems that know files without names and on others.
class SpillCallsTest : public CallsTest {
 protected:
  // Of runs that failed, by the call: the exit code and the words of the message.
  void FailSpills(int error, bool only_writes) {
    for (const bool no_tmpfile : {false, true}) {
      Fault fault{.only_writes = only_writes, .only_spill = true, .no_tmpfile = no_tmpfile};
      const FaultyRun whole = RunOnce(fault);
      fault.error = error;
      FailEach(fault, whole, [&](const FaultyRun& run, int at) {
        Expect(whole, run, /*had_older=*/at % 2 == 0);
        if (run.finished.code == 0) return;
        // A call fails in each process; the run ends with the first of their errors.
        EXPECT_TRUE(std::any_of(run.calls.begin(), run.calls.end(), [&](const std::string& call) {
          return call.starts_with("fails ") && IsEndOf(call, error, run.finished);
        }));
      });
    }
  }

  // What cannot be read is lost, what cannot be written has no room.
  static bool IsEndOf(const std::string& call, int error, const testing_support::Finished& finished) {
    const bool is_read = call.find(" pread") != std::string::npos;
    const bool is_full = error == ENOSPC && call.find(" pwrite") != std::string::npos;
    const char* const message = is_read   ? "spill: cannot read what was written to a file in '"
                                : is_full ? "spill: no room on the disk of '"
                                          : "spill: cannot ";
    return finished.code == (is_read ? 4 : 5) && finished.errors.find(message) != std::string::npos;
  }
};

TEST_P(SpillCallsTest, ADiskThatFails) { FailSpills(EIO, /*only_writes=*/false); }
TEST_P(SpillCallsTest, ADiskThatIsFull) { FailSpills(ENOSPC, /*only_writes=*/true); }

INSTANTIATE_TEST_SUITE_P(Kinds, SpillCallsTest, testing::ValuesIn(testing_support::SpillingScripts()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle

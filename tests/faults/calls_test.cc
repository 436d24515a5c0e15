// SPDX-License-Identifier: Apache-2.0
// The n-th call of the system on a file fails, for every n until a run makes no more: the run ends with the
// right files, or with an error of its kind and the files that were there before; never with half a file, a
// temporary one, a signal or a wait.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "core/status.h"
#include "tests/support/process.h"

namespace heddle {
namespace {

using testing_support::Finished;
using testing_support::ReadText;
using testing_support::RunProcess;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

constexpr char kCsv[] = "1,2,3\n4,5,6\n7,8,9.5\n10,11,12\n";

struct Kind {
  std::string name;
  std::string script;
  std::vector<std::string> words;    ///< Between the binary and the script.
  std::vector<std::string> outputs;  ///< Files and folders that it makes.
  int most_tried = 60;               ///< Without HEDDLE_FAULTS_ALL: so many n, evenly.
};

std::vector<Kind> Kinds() {
  return {
      {"csv",
       "X = read('in.csv', format='csv')\nwrite(X * 2 + 1, 'out.csv', format='csv')\n",
       {"run"},
       {"out.csv"}},
      {"binary",
       "X = read('in.csv', format='csv')\nwrite(t(X) %*% X, 'out.bin', format='binary')\nprint(sum(X))\n",
       {"run"},
       {"out.bin"}},
      {"frame",
       "F = read('names.csv', data_type='frame', format='csv', header=TRUE)\nwrite(F, 'frame.csv', "
       "format='csv', header=TRUE)\nprint(nrow(F))\n",
       {"run"},
       {"frame.csv"}},
      {"folder",
       "X = read('parts', format='csv')\nwrite(X, 'out.mtx', format='mm')\nwrite(sum(X), 'sum.txt')\n",
       {"run"},
       {"out.mtx", "sum.txt"}},
      {"workers",
       "X = read('in.csv', format='csv')\nwrite(X * 2 + 1, 'out.csv', format='csv')\nprint(sum(X))\n",
       {"sim", "--workers", "2", "--min-distributed-bytes", "0"},
       {"out.csv"},
       12},
  };
}

using Files = std::map<std::string, std::string>;  // By path below the folder: contents.

Files FilesBelow(const std::string& folder) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = std::filesystem::relative(entry.path(), folder);
    if (!path.starts_with("cache/")) files[path] = ReadText(entry.path());
  }
  return files;
}

class CallsTest : public testing::TestWithParam<Kind> {
 protected:
  struct Run {
    Finished finished;
    std::string output;
    std::vector<std::string> calls;
    Files files;
  };

  static void Prepare(const std::string& folder, const Kind& kind, bool has_older) {
    std::filesystem::remove_all(folder);
    WriteText(folder + "/script.dml", kind.script);
    WriteText(folder + "/in.csv", kCsv);
    WriteText(folder + "/names.csv", "name,size\nanna,1\nbert,2\ncarl,3\n");
    WriteText(folder + "/parts/part-0", "1,2\n3,4\n");
    WriteText(folder + "/parts/part-1", "5,6\n");
    for (const std::string& output : kind.outputs)
      if (has_older) WriteText(folder + "/" + output, "older\n");
  }

  Run RunOnce(const Kind& kind, int at, int error, bool only_writes) {
    const std::string folder = folder_.path() + "/work", log = folder_.path() + "/log";
    Prepare(folder, kind, /*has_older=*/at % 2 == 0);
    std::filesystem::remove(log);
    std::vector<std::string> words{"/usr/bin/env",
                                   "LD_PRELOAD=" HEDDLE_BINARY_DIR "/libheddle_failing_calls.so",
                                   "XDG_CACHE_HOME=" + folder + "/cache",
                                   "HEDDLE_FAULT_UNDER=" + folder,
                                   fmt::format("HEDDLE_FAULT_AT={}", at),
                                   fmt::format("HEDDLE_FAULT_ERRNO={}", error),
                                   fmt::format("HEDDLE_FAULT_WRITES={}", only_writes ? 1 : 0),
                                   "HEDDLE_FAULT_LOG=" + log,
                                   HEDDLE_BINARY_DIR "/heddle"};
    words.insert(words.end(), kind.words.begin(), kind.words.end());
    words.push_back("script.dml");
    Run run;
    run.finished = RunProcess(words, folder, 120);
    run.files = FilesBelow(folder);
    std::istringstream lines(ReadText(log));
    for (std::string line; std::getline(lines, line);) run.calls.push_back(line);
    return run;
  }

  void FailEach(int error, bool only_writes) {
    const Kind& kind = GetParam();
    const Run whole = RunOnce(kind, 0, 0, only_writes);
    ASSERT_EQ(whole.finished.code, 0) << whole.finished.errors;
    ASSERT_FALSE(whole.calls.empty());
    // Processes count for themselves.
    int most = 0;
    for (const std::string& call : whole.calls) most = std::max(most, std::atoi(call.substr(5).c_str()));
    const bool tries_all = std::getenv("HEDDLE_FAULTS_ALL") != nullptr;
    const int step = tries_all ? 1 : std::max(1, most / kind.most_tried);
    int failed = 0;
    for (int at = 1; at <= most + 2; at += step) {
      const Run run = RunOnce(kind, at, error, only_writes);
      std::string where;
      for (const std::string& call : run.calls)
        if (call.starts_with("fails")) where += call + "; ";
      SCOPED_TRACE(testing::Message() << kind.name << ", errno " << error << ", " << where << "exit code "
                                      << run.finished.code << ": " << run.finished.errors);
      Expect(kind, whole, run, /*had_older=*/at % 2 == 0);
      failed += run.finished.code != 0;
    }
    EXPECT_GT(failed, 0);
    std::printf("%s: errno %d: %d calls, %d runs failed\n", kind.name.c_str(), error, most, failed);
  }

  static void Expect(const Kind& kind, const Run& whole, const Run& run, bool had_older) {
    static const std::set<int> kCodes{0, 1, 2, 4, 5};
    ASSERT_TRUE(kCodes.contains(run.finished.code));
    if (run.finished.code == 0) {
      EXPECT_EQ(run.files, whole.files);
      EXPECT_EQ(run.finished.output, whole.finished.output);
      return;
    }
    EXPECT_NE(run.finished.errors.find("error:"), std::string::npos);
    for (const auto& [path, contents] : run.files) {
      const auto expected = whole.files.find(path);
      const bool is_output = std::any_of(kind.outputs.begin(), kind.outputs.end(),
                                         [&](const std::string& output) { return path.starts_with(output); });
      if (expected == whole.files.end()) {
        ADD_FAILURE() << "left behind: " << path;
      } else if (is_output && had_older && contents == "older\n") {
        continue;
      } else {
        EXPECT_EQ(contents, expected->second) << "half a file: " << path;
      }
    }
    if (!had_older) return;
    for (const std::string& output : kind.outputs)
      EXPECT_TRUE(run.files.contains(output)) << "an older file is gone: " << output;
  }

  TemporaryFolder folder_;
};

TEST_P(CallsTest, ACallThatFails) { FailEach(EIO, false); }
TEST_P(CallsTest, ADiskThatIsFull) { FailEach(ENOSPC, true); }
INSTANTIATE_TEST_SUITE_P(Kinds, CallsTest, testing::ValuesIn(Kinds()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace heddle

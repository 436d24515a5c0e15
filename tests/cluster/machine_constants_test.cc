// SPDX-License-Identifier: Apache-2.0
// Constants of the cost model over processes: kept behind a large run, used by the next ones and by jobs.
#include "engine/machine/machine_constants.h"

#include <gtest/gtest.h>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle {
namespace {

using testing_support::ClusterOfProcesses;
using testing_support::Finished;
using testing_support::TemporaryFolder;

constexpr const char* kSmall = "print(sum(rand(rows=10, cols=10, seed=1)))";
// Reads 16 MB seventy times.
constexpr const char* kLarge =
    "X = rand(rows=2000, cols=1000, seed=1)\ns = 0\nfor (i in 1:70) {\n  s = s + sum(X * i)\n}\nprint(s)";

Finished Heddle(std::vector<std::string> words, const std::string& folder) {
  words.insert(words.begin(), HEDDLE_BINARY_DIR "/heddle");
  return testing_support::RunProcess(words, folder);
}

void UseCache(const std::string& folder) { setenv("XDG_CACHE_HOME", folder.c_str(), 1); }

size_t FilesIn(const std::string& folder) {
  std::error_code error;
  size_t count = 0;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; ++at) ++count;
  return count;
}

class MachineConstantsTest : public testing::Test {
 protected:
  MachineConstantsTest() { UseCache(cache()); }
  ~MachineConstantsTest() override { UseCache(HEDDLE_BINARY_DIR "/cache-of-tests"); }
  std::string cache() const { return folder_.path() + "/cache"; }

  void ExpectConstants(std::vector<std::string> words, const std::string& kind) {
    const Finished finished = Heddle(std::move(words), folder_.path());
    EXPECT_EQ(finished.code, 0) << finished.errors;
    EXPECT_NE((finished.output + finished.errors).find(kind + " constants: read "), std::string::npos)
        << finished.output << finished.errors;
  }
  // As a measurement leaves them. Whether one succeeds is for the machine to say: a busy one stores nothing.
  void KeepMeasured(const std::string& folder) {
    ops::MachineConstants constants = ops::BuiltInConstants(1);
    constants.measured = true;
    constants.read_bytes_per_ns *= 2;
    const engine::ConstantsCache cache(folder + "/heddle/machine");
    cache.Store(engine::MachineKey(/*threads=*/1), constants);
    ASSERT_EQ(FilesIn(folder + "/heddle/machine"), 1u);
  }

  TemporaryFolder folder_;
};

TEST_F(MachineConstantsTest, MeasuredOnesAreUsedByTheNextRuns) {
  const std::vector<std::string> small = {"run", "-stats", "--threads", "1", "-e", kSmall};
  const std::vector<std::string> explain = {"explain", "--level", "cost", "--threads", "1", "-e", kSmall};
  ExpectConstants(small, "built-in");
  ExpectConstants(explain, "built-in");
  EXPECT_EQ(FilesIn(cache() + "/heddle/machine"), 0u) << "too small to measure";
  KeepMeasured(cache());
  ExpectConstants(small, "measured");
  ExpectConstants(explain, "measured");
  ExpectConstants({"sim", "--workers", "2", "-stats", "--threads", "1", "-e", kSmall}, "measured");
  ExpectConstants({"run", "-stats", "--threads", "7", "-e", kSmall}, "built-in");
  for (const auto& file : std::filesystem::directory_iterator(cache() + "/heddle/machine"))
    testing_support::WriteText(file.path(), "no constants");
  ExpectConstants(small, "built-in");
}

// A large run leaves one file where it could measure, none where others held the processors, and never harm.
// One file for the machine, and one for the links between executors.
TEST_F(MachineConstantsTest, ALargeRunLeavesAtMostOneFileOfAKind) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run"}, {"sim", "--workers", "2"}}) {
    std::vector<std::string> large = words;
    large.insert(large.end(), {"-stats", "--threads", "1", "-e", kLarge});
    std::filesystem::remove_all(cache());
    ExpectConstants(large, "built-in");
    const std::string folder = cache() + "/heddle/machine";
    EXPECT_LE(FilesIn(folder), words.size() > 1 ? 2u : 1u);
    const bool are_measured =
        engine::ConstantsCache(folder).Find(engine::MachineKey(/*threads=*/1)).has_value();
    ExpectConstants({"run", "-stats", "--threads", "1", "-e", kSmall},
                    are_measured ? "measured" : "built-in");
  }
}

TEST_F(MachineConstantsTest, NoFolderNoHarm) {
  testing_support::WriteText(cache(), "a file where the folder should be");
  ExpectConstants({"run", "-stats", "-e", kLarge}, "built-in");
  ExpectConstants({"run", "-stats", "-e", kSmall}, "built-in");
}

// Worker and master know nothing of them.
TEST_F(MachineConstantsTest, AJobUsesThoseOfItsSubmitter) {
  const std::vector<std::string> submit = {"job", "submit", "-stats", "--threads", "1", "-e", kSmall};
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const Finished without = cluster.Run(submit);
  EXPECT_NE(without.errors.find("built-in constants: read "), std::string::npos) << without.errors;
  const std::string submitter = folder_.path() + "/submitter";
  UseCache(submitter);
  KeepMeasured(submitter);
  const Finished with = cluster.Run(submit);
  EXPECT_NE(with.errors.find("measured constants: read "), std::string::npos) << with.errors;
  EXPECT_NE(with.errors.find("Plans: 0 made in "), std::string::npos) << "the master's fits: " << with.errors;
  EXPECT_EQ(with.output, without.output);
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle

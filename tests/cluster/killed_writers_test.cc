// SPDX-License-Identifier: Apache-2.0
// Workers that write one file, or one folder, together and are killed in the midst of it.
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// What is being written has a hidden name.
bool WaitForHidden(const std::string& folder, const BackgroundProcess& process) {
  for (int look = 0; look < 60'000; ++look) {
    for (const std::string& name : NamesIn(folder))
      if (name.ends_with(".part.heddle")) return true;
    if (kill(process.pid(), 0) != 0) return false;
    usleep(1000);
  }
  return false;
}

// All bytes below a path, one file after the other in the order of their names.
std::string BytesBelow(const std::string& path) {
  if (!fs::is_directory(path)) return fs::exists(path) ? ReadText(path) : "nothing";
  std::string bytes;
  for (const std::string& name : NamesIn(path)) bytes += name + "\n" + ReadText(path + "/" + name);
  return bytes;
}

TEST(KilledWritersTest, LeaveTheOldFileOrTheNewOneAndNothingElse) {
  for (const std::string parts : {"", ", parts=3"}) {
    const TemporaryFolder folder;
    const auto run = [&](const std::string& rows, const std::string& seed, const std::string& path) {
      return std::vector<std::string>{Binary(),
                                      "sim",
                                      "--workers",
                                      "3",
                                      "--min-distributed-bytes",
                                      "0",
                                      "-e",
                                      "write(rand(rows=" + rows + ", cols=20, seed=" + seed + "), \"" + path +
                                          "\", format=\"csv\"" + parts + ")"};
    };
    ASSERT_EQ(RunProcess(run("300000", "2", "new.csv"), folder.path()).code, 0);
    const std::string whole = BytesBelow(folder.path() + "/new.csv");
    // Anybody, rank 0 among them, and all.
    for (const int victim : {0, 1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << parts << " victim " << victim);
      const Finished old_run = RunProcess(run("5000", "1", "x.csv"), folder.path());
      ASSERT_EQ(old_run.code, 0) << old_run.errors;
      const std::string old = BytesBelow(folder.path() + "/x.csv");
      BackgroundProcess process(run("300000", "2", "x.csv"), folder.path());
      ASSERT_TRUE(WaitForHidden(folder.path(), process)) << process.output();
      const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(process.pid());
      if (victim == 3) process.Signal(SIGKILL);
      for (size_t i = 0; i < executors.size(); ++i)
        if (victim == 3 || static_cast<int>(i) == victim) kill(executors[i], SIGKILL);
      process.Wait();
      const std::string now = BytesBelow(folder.path() + "/x.csv");
      EXPECT_TRUE(now == old || now == whole) << now.size() << " bytes";
      // Where nobody is left who knew of it, the next write clears up.
      if (victim == 3) {
        ASSERT_EQ(RunProcess({Binary(), "run", "-e", "write(1, \"next\")"}, folder.path()).code, 0);
      }
      for (const std::string& name : NamesIn(folder.path()))
        EXPECT_FALSE(name.ends_with(".part.heddle")) << name;
      fs::remove_all(folder.path() + "/x.csv");
    }
  }
}

// Rank 0, which has begun the file, does nothing any more until it is killed.
TEST(KilledWritersTest, WhoKillsAStuckWriterRemovesWhatItLeaves) {
  for (const std::string parts : {"", ", parts=3"}) {
    SCOPED_TRACE(parts);
    const TemporaryFolder folder;
    BackgroundProcess process(
        {Binary(), "sim", "--workers", "3", "--min-distributed-bytes", "0", "-e",
         "write(rand(rows=300000, cols=20, seed=2), \"x.csv\", format=\"csv\"" + parts + ")"},
        folder.path());
    ASSERT_TRUE(WaitForHidden(folder.path(), process)) << process.output();
    const std::vector<pid_t> executors = ClusterOfProcesses::ChildrenOf(process.pid());
    for (const pid_t executor : executors) kill(executor, SIGSTOP);
    kill(executors.at(1), SIGKILL);
    EXPECT_NE(process.Wait(), 0);
    EXPECT_EQ(NamesIn(folder.path()), std::set<std::string>());
  }
}

}  // namespace
}  // namespace heddle::testing_support

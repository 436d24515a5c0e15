// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_sweeper.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <future>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class WorkerSweeperTest : public testing::Test {
 protected:
  WorkerSweeperTest() {
    for (const char* name : {"logs", "spill", "place"}) fs::create_directories(Path(name));
    order_.set_id(7);
    order_.set_last(20);
    for (const int64_t job : {3, 9, 12}) order_.add_known(job);
    order_.add_unfinished(9);
    order_.set_master("aaaa");
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  Swept Sweep() {
    std::promise<void> done;
    WorkerSweeper sweeper(Path("logs"), Path("spill"), [&] { done.set_value(); });
    sweeper.Sweep(order_);
    done.get_future().wait();
    const std::optional<Swept> swept = sweeper.NextSwept();
    EXPECT_FALSE(sweeper.NextSwept().has_value());
    EXPECT_EQ(swept->id(), 7);
    return *swept;
  }
  // "kind name bytes" of each, the names without the folder.
  std::vector<std::string> Names(const Swept& swept) const {
    std::vector<std::string> names;
    for (const GarbageItem& item : swept.items())
      names.push_back(
          fmt::format("{} {} {}", item.kind(), item.name().substr(folder_.path().size() + 1), item.bytes()));
    std::sort(names.begin(), names.end());
    return names;
  }

  const TemporaryFolder folder_;
  heddle::Sweep order_;
};

TEST_F(WorkerSweeperTest, LogsOfJobsThatAreKnownNoMoreGo) {
  for (const char* name :
       {"j2-1-0.log", "j2-1-0.log.old", "j3-1-0.log", "j9-1-0.log", "j21-1-0.log", "notes"})
    WriteText(Path("logs/") + name, "text");
  order_.set_dry_run(true);
  const std::vector<std::string> expected = {"log logs/j2-1-0.log 4", "log logs/j2-1-0.log.old 4"};
  EXPECT_EQ(Names(Sweep()), expected);
  EXPECT_TRUE(fs::exists(Path("logs/j2-1-0.log")));
  order_.set_dry_run(false);
  EXPECT_EQ(Names(Sweep()), expected);
  EXPECT_FALSE(fs::exists(Path("logs/j2-1-0.log")));
  EXPECT_TRUE(fs::exists(Path("logs/j3-1-0.log")));
  EXPECT_TRUE(fs::exists(Path("logs/j21-1-0.log"))) << "it was submitted since";
  EXPECT_TRUE(Names(Sweep()).empty());
}

TEST_F(WorkerSweeperTest, NamesOfSpillFilesGoUnlessTheirProcessLives) {
  for (const char* name : {".0000000000000001.part.heddle", ".0000000000000002.part.heddle",
                           ".0000000000000003.part.heddle", "data.csv"}) {
    WriteText(Path("spill/") + name, "left");
    if (std::string(name) == ".0000000000000003.part.heddle") continue;  // of a moment ago
    fs::last_write_time(Path("spill/") + name, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const int writer = open(Path("spill/.0000000000000002.part.heddle").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(writer, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(Names(Sweep()), std::vector<std::string>{"spill spill/.0000000000000001.part.heddle 4"});
  EXPECT_FALSE(fs::exists(Path("spill/.0000000000000001.part.heddle")));
  EXPECT_TRUE(fs::exists(Path("spill/.0000000000000002.part.heddle")));
  EXPECT_TRUE(fs::exists(Path("spill/.0000000000000003.part.heddle")));
  EXPECT_TRUE(fs::exists(Path("spill/data.csv")));
  close(writer);
}

TEST_F(WorkerSweeperTest, CheckpointsOfJobsThatHaveEndedGo) {
  for (const char* job :
       {"j3-aaaa-1", "j4-aaaa-1", "j9-aaaa-1", "j21-aaaa-1", "j4-bbbb-1", "j4-aaaab-1", "else"}) {
    fs::create_directories(Path("place/") + job + "/5-1");
    WriteText(Path("place/") + job + "/5-1/rank-0", "1234567");
  }
  WriteText(Path("place/j3-aaaa-1/5-1/.half"), "12");
  EXPECT_TRUE(Names(Sweep()).empty()) << "it is not to look there";
  order_.set_checkpoints_place(Path("place"));
  EXPECT_EQ(Names(Sweep()),
            (std::vector<std::string>{"checkpoints place/j3-aaaa-1 9", "checkpoints place/j4-aaaa-1 7"}));
  EXPECT_FALSE(fs::exists(Path("place/j3-aaaa-1")));
  for (const char* job : {"j9-aaaa-1", "j21-aaaa-1", "j4-bbbb-1", "j4-aaaab-1", "else"})
    EXPECT_TRUE(fs::exists(Path("place/") + job)) << job;
  order_.set_checkpoints_place("nowhere");
  EXPECT_NE(Sweep().failure().find("checkpoints go to a folder that all workers see"), std::string::npos);
}

}  // namespace
}  // namespace heddle::cluster

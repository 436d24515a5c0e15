// SPDX-License-Identifier: Apache-2.0
// Which checkpoints the master believes, from which a job goes on, and with whom.
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

class MasterCheckpointsTest : public MasterCoreTest {
 protected:
  MasterCheckpointsTest() {
    options_.checkpoints = "/shared/checkpoints";
    Restart();
  }

  void Write(const std::string& id, int rank, int64_t number, int64_t printed = 0,
             const Status& status = {}) {
    ExecutorNews news = News(Get(id), rank);
    news.checkpoints = {{.number = number, .status = status, .bytes = 10, .printed = printed}};
    core_->News(Get(id).workers[static_cast<size_t>(rank)], news);
  }
  // All members of the attempt are lost.
  void LoseAll(const std::string& id) {
    const size_t members = Get(id).workers.size();
    const Job before = Get(id);
    for (size_t rank = 0; rank < members; ++rank) {
      ExecutorNews news = News(before, static_cast<int>(rank));
      news.exit = ExecutorExit{100, true, SIGKILL};
      core_->News(before.workers[rank], news);
    }
  }
  // Every executor ends as the master has asked it to.
  void StopAll(const std::string& id) {
    const Job before = Get(id);
    for (size_t rank = 0; rank < before.workers.size(); ++rank) {
      ExecutorNews news = News(before, static_cast<int>(rank));
      news.done = ExecutorDone{.status = Cancelled("stopped")};
      news.exit = ExecutorExit{};
      core_->News(before.workers[rank], news);
    }
  }
  // "WORKER: FOLDER" of each order to remove checkpoints.
  std::vector<std::string> Removals() {
    std::vector<std::string> removals;
    for (const WorkerOrder& order : Take(Kind::kForget)) {
      if (order.checkpoints.empty()) continue;
      EXPECT_EQ(order.checkpoints_place, "/shared/checkpoints");
      removals.push_back(order.worker + ": " + order.checkpoints);
    }
    return removals;
  }
  ExecutorCheckpoints StartOf(const std::string& id) {
    for (const WorkerOrder& order : Take(Kind::kStart))
      if (order.job == id && order.attempt == Get(id).attempt) return order.message.start->checkpoints;
    ADD_FAILURE() << "no start";
    return {};
  }
};

TEST_F(MasterCheckpointsTest, CountWhenAllPartsAreDurable) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  const ExecutorCheckpoints first = StartOf(id);
  EXPECT_EQ(first.location, "/shared/checkpoints");
  EXPECT_EQ(first.resume, "");
  RunUntilRunning(id);
  Write(id, 0, 1);
  EXPECT_TRUE(Get(id).checkpoints.empty());
  Write(id, 1, 1);
  ASSERT_EQ(Get(id).checkpoints.size(), 1u);
  EXPECT_EQ(Get(id).checkpoints[0].name, first.folder + "-1");
  // A part that could not be written makes the whole of no use; later ones may be of use.
  Write(id, 0, 2);
  Write(id, 1, 2, 0, ResourceExhausted("the disk is full"));
  EXPECT_EQ(Get(id).checkpoints.size(), 1u);
  Write(id, 0, 3);
  Write(id, 1, 3);
  ASSERT_EQ(Get(id).checkpoints.size(), 2u);
  EXPECT_EQ(Get(id).checkpoints[1].name, first.folder + "-3");
  EXPECT_EQ(Count(Kind::kCheckpoint), 0u);
  // Two are kept; the executor of rank 0 removes the others.
  Write(id, 1, 4);
  Write(id, 0, 4);
  const std::vector<WorkerOrder> orders = Take(Kind::kCheckpoint);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].message.checkpoint->unneeded, std::vector<std::string>{first.folder + "-1"});
  EXPECT_EQ(Get(id).checkpoints.size(), 2u);
}

TEST_F(MasterCheckpointsTest, WaitForWhatWasPrintedBeforeThem) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Write(id, 0, 1, 5);
  EXPECT_TRUE(Get(id).checkpoints.empty());
  Output(id, 0, "12345");
  Write(id, 0, 1, 5);
  ASSERT_EQ(Get(id).checkpoints.size(), 1u);
  Output(id, 5, "678");
  LoseAll(id);
  EXPECT_EQ(StartOf(id).printed, 5);
  RunUntilRunning(id);
  Output(id, 5, "678");  // again
  Output(id, 8, "9");
  EXPECT_EQ(*store_->Output(id, 0, 100), "123456789");
}

TEST_F(MasterCheckpointsTest, AJobGoesOnWithThoseThatAreThere) {
  Connect("a");
  Connect("b");
  Connect("c");
  const std::string id = Submit(3);
  RunUntilRunning(id);
  for (int rank = 0; rank < 3; ++rank) Write(id, rank, 1);
  const std::string name = Get(id).checkpoints[0].name;
  core_->TakeOrders();
  const Job before = Get(id);
  core_->WorkerLeft(before.workers[1]);
  for (const int rank : {0, 2}) {
    ExecutorNews news = News(before, rank);
    news.done = ExecutorDone{.status = Unavailable("a link broke")};
    news.exit = ExecutorExit{};
    core_->News(before.workers[static_cast<size_t>(rank)], news);
  }
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_EQ(Get(id).workers.size(), 2u);
  EXPECT_EQ(Get(id).resumed, 1);
  const ExecutorCheckpoints start = StartOf(id);
  EXPECT_EQ(start.resume, name);
  EXPECT_EQ(start.resume_ranks, 3);
  // A worker that comes makes it ask for a checkpoint, and move when that is there.
  RunUntilRunning(id);
  core_->TakeOrders();
  Connect("d");
  const std::vector<WorkerOrder> asked = Take(Kind::kCheckpoint);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_TRUE(asked[0].message.checkpoint->now);
  Write(id, 0, 1);
  Write(id, 1, 1);
  const std::vector<WorkerOrder> cancelled = Take(Kind::kCancel);
  ASSERT_EQ(cancelled.size(), 2u);
  EXPECT_EQ(cancelled[0].message.cancel->message(), "the job goes on elsewhere: 1 more worker is there");
  StopAll(id);
  EXPECT_EQ(Get(id).attempt, 3);
  EXPECT_EQ(Get(id).workers.size(), 3u);
  EXPECT_EQ(Get(id).losses, 0);
  EXPECT_EQ(StartOf(id).resume_ranks, 2);
}

TEST_F(MasterCheckpointsTest, FewerWorkersThatHaveTooLittleMemoryAreNotTriedAgain) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  for (const int rank : {0, 1}) Write(id, rank, 1);
  core_->WorkerLeft(Get(id).workers[1]);
  End(id, 0, Unavailable("a link broke"));
  ASSERT_EQ(Get(id).attempt, 2);
  ASSERT_EQ(Get(id).workers.size(), 1u);
  RunUntilRunning(id);
  End(id, 0, ResourceExhausted("memory: 5 bytes needed, 4 there"), true);
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  EXPECT_NE(Get(id).reason.find("waits for 2 workers"), std::string::npos) << Get(id).reason;
  Connect("c");
  EXPECT_EQ(Get(id).attempt, 3);
  EXPECT_EQ(Get(id).workers.size(), 2u);
  // With all that it wants it has failed.
  RunUntilRunning(id);
  End(id, 0, ResourceExhausted("memory: 5 bytes needed, 4 there"), true);
  End(id, 1, Cancelled("another failed"));
  EXPECT_EQ(Get(id).state, JobState::kFailed);
}

TEST_F(MasterCheckpointsTest, ACheckpointOfNoUseIsDropped) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Write(id, 0, 1);
  Write(id, 0, 2);
  const std::string earlier = Get(id).checkpoints[0].name;
  const auto cannot_resume = [&] {
    ExecutorNews news = News(Get(id), 0);
    news.done =
        ExecutorDone{.status = DataLoss("it is damaged"), .own_cause = true, .could_not_resume = true};
    news.exit = ExecutorExit{};
    core_->News(Get(id).workers[0], news);
  };
  LoseAll(id);
  EXPECT_NE(StartOf(id).resume, earlier);
  RunUntilRunning(id);
  cannot_resume();
  EXPECT_EQ(StartOf(id).resume, earlier);
  RunUntilRunning(id);
  cannot_resume();
  EXPECT_EQ(StartOf(id).resume, "") << "from the beginning";
  RunUntilRunning(id);
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
}

TEST_F(MasterCheckpointsTest, ADrainedWorkerIsLeftAtACheckpoint) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  const std::string worker = Get(id).workers[0];
  core_->TakeOrders();
  ASSERT_TRUE(core_->Drain(worker, true).ok());
  EXPECT_EQ(Count(Kind::kCheckpoint), 1u);
  Write(id, 0, 1);
  StopAll(id);
  EXPECT_EQ(Get(id).attempt, 2);
  EXPECT_NE(Get(id).workers[0], worker);
  EXPECT_NE(StartOf(id).resume, "");
}

TEST_F(MasterCheckpointsTest, ADrainedWorkerWithoutAnotherEndsItsJob) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  core_->TakeOrders();
  ASSERT_TRUE(core_->Drain("a", true).ok());
  EXPECT_EQ(Count(Kind::kCheckpoint), 0u);
  Write(id, 0, 1);
  EXPECT_EQ(Count(Kind::kCancel), 0u);
}

TEST_F(MasterCheckpointsTest, SurviveTheMaster) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Write(id, 0, 7);
  const Job before = Get(id);
  Restart();
  ASSERT_EQ(Get(id).checkpoints.size(), 1u);
  EXPECT_EQ(Get(id).checkpoints[0].name, before.checkpoints[0].name);
  ExecutorNews here = News(before, 0);
  here.endpoint = "endpoint0";
  Connect("a", "1", {here});
  Write(id, 0, 7);  // told again
  EXPECT_EQ(Get(id).checkpoints.size(), 1u);
  core_->TakeOrders();
  LoseAll(id);
  EXPECT_EQ(StartOf(id).resume, before.checkpoints[0].name);
}

TEST_F(MasterCheckpointsTest, AFullDiskOfTheMasterCostsACheckpoint) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  disk_.full = true;
  Write(id, 0, 1);
  EXPECT_TRUE(Get(id).checkpoints.empty());
  disk_.full = false;
  Write(id, 0, 2);
  EXPECT_EQ(Get(id).checkpoints.size(), 1u);
}

// There is no other worker than the one on which the job fails.
TEST_F(MasterCheckpointsTest, AJobOfAnyNumberOfWorkersStartsAgainWhereItHasFailed) {
  Connect("a");
  const std::string id = Submit(0);
  RunUntilRunning(id);
  Write(id, 0, 1);
  for (const int attempt : {2, 3, 4}) {
    LoseAll(id);
    Pass(10 * kNsPerSecond, {"a"});
    EXPECT_EQ(Get(id).attempt, attempt);
    ASSERT_EQ(Get(id).workers, std::vector<std::string>{"a"});
    RunUntilRunning(id);
  }
  End(id, 0, OkStatus());
  EXPECT_EQ(Get(id).state, JobState::kSucceeded);
}

TEST_F(MasterCheckpointsTest, AreRemovedWithTheJob) {
  Connect("a");
  const std::string id = Submit(1);
  const std::string folder = StartOf(id).folder;
  RunUntilRunning(id);
  Write(id, 0, 1);
  LoseAll(id);
  EXPECT_EQ(Removals(), std::vector<std::string>{});
  RunUntilRunning(id);
  End(id, 0, OkStatus());
  EXPECT_EQ(Removals(), std::vector<std::string>{"a: " + folder.substr(0, folder.find('/'))});
}

// Until a worker says that they are gone, whoever comes is asked to remove them.
TEST_F(MasterCheckpointsTest, AreRemovedHoweverTheJobEnds) {
  for (const bool is_written : {true, false}) {
    SCOPED_TRACE(is_written);
    Connect("a", is_written ? "1" : "2");
    const std::string id = Submit(1);
    const std::string path = StartOf(id).folder;
    const std::string folder = path.substr(0, path.find('/'));
    RunUntilRunning(id);
    if (is_written) Write(id, 0, 1);  // else a part may be there all the same
    core_->WorkerLeft("a");
    ASSERT_EQ(Get(id).state, JobState::kRecovering);
    ASSERT_TRUE(core_->Cancel(id).ok());
    EXPECT_EQ(Get(id).state, JobState::kCancelled);
    EXPECT_EQ(Removals(), std::vector<std::string>{}) << "nobody is there";
    Connect("b", is_written ? "1" : "3");
    EXPECT_EQ(Removals(), std::vector<std::string>{"b: " + folder});
    Connect("c", is_written ? "1" : "3");
    EXPECT_EQ(Removals(), std::vector<std::string>{}) << "b is at it";
    Pass(61 * kNsPerSecond, {"b", "c"});
    EXPECT_EQ(Removals(), std::vector<std::string>{"c: " + folder});
    Restart();
    Connect("b", is_written ? "2" : "4");
    EXPECT_EQ(Removals(), std::vector<std::string>{"b: " + folder});
    core_->CheckpointsRemoved(folder);
    Pass(7200 * kNsPerSecond, {"b"});
    EXPECT_EQ(Removals(), std::vector<std::string>{});
    Restart();
    Connect("b", is_written ? "3" : "5");
    EXPECT_EQ(Removals(), std::vector<std::string>{});
    core_->WorkerLeft("b");
    core_->WorkerLeft("c");
  }
}

// A worker that was cut off may have written after the others had removed everything.
TEST_F(MasterCheckpointsTest, AreRemovedBehindAnExecutorThatComesBackLate) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  Write(id, 0, 1);
  const Job before = Get(id);
  core_->WorkerLeft("a");
  ASSERT_TRUE(core_->Cancel(id).ok());
  Connect("b");
  const std::vector<std::string> asked = Removals();
  ASSERT_EQ(asked.size(), 1u);
  const std::string folder = asked[0].substr(3);
  core_->CheckpointsRemoved(folder);
  Connect("a", "2", {News(before, 0)});
  EXPECT_EQ(Removals(), std::vector<std::string>{"a: " + folder});
}

// What a job replaces is kept for its next attempts, and goes with it.
TEST_F(MasterCheckpointsTest, FilesAreKeptAlsoWhereAJobWantsNoCheckpoints) {
  Connect("a");
  JobSpecification specification;
  specification.request_id = "none";
  specification.workers_wanted = 1;
  specification.checkpoint_ms = ExecutorCheckpoints::kNever;
  const std::string id = (*core_->Submit(specification))->id;
  const ExecutorCheckpoints start = StartOf(id);
  EXPECT_FALSE(start.are_taken());
  EXPECT_TRUE(start.keeps_files);
  RunUntilRunning(id);
  End(id, 0, OkStatus());
  EXPECT_EQ(Removals(), std::vector<std::string>{"a: " + start.folder.substr(0, start.folder.find('/'))});
}

TEST_F(MasterCheckpointsTest, NoneWhereTheMasterHasNoPlaceOrTheJobWantsNone) {
  options_.checkpoints.clear();
  Restart();
  Connect("a");
  const std::string id = Submit(1);
  const ExecutorCheckpoints start = StartOf(id);
  EXPECT_FALSE(start.are_taken());
  EXPECT_FALSE(start.keeps_files);
  EXPECT_TRUE((ExecutorCheckpoints{.location = "/x"}).are_taken());
  EXPECT_FALSE(
      (ExecutorCheckpoints{.location = "/x", .interval_ms = ExecutorCheckpoints::kNever}).are_taken());
}

}  // namespace
}  // namespace heddle::cluster

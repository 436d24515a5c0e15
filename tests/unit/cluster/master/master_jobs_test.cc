// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_hub.h"
#include "cluster/master/master_list.h"
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

class MasterJobsTest : public MasterCoreTest {
 protected:
  void Say(const std::string& id, int rank, int64_t offset, const std::string& text) {
    ExecutorNews news = News(Get(id), rank);
    news.log = text;
    news.log_offset = offset;
    core_->News(Get(id).workers[static_cast<size_t>(rank)], news);
  }
  std::string Log(const std::string& id, int attempt, int rank, int64_t offset = 0) {
    const auto part = core_->Log(id, attempt, rank, offset);
    return part.ok() ? part->text : part.status().message();
  }
  std::string Reason(const std::string& id) {
    MasterCore::MissingWorkers missing;
    return core_->ReasonOf(Get(id), &missing);
  }
};

TEST_F(MasterJobsTest, LogsOutliveTheirWorkersAndTheMaster) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  RunUntilRunning(id);
  core_->TakeChanged();
  Say(id, 1, 0, "one\n");
  EXPECT_EQ(core_->TakeChanged(), std::vector<std::string>{id}) << "who watches is told";
  Say(id, 1, 0, "one\ntwo\n");
  EXPECT_EQ(Log(id, 0, 1), "one\ntwo\n");
  EXPECT_EQ(Log(id, 1, 1, 4), "two\n");
  EXPECT_EQ(Log(id, 0, 0), "");
  ASSERT_EQ(core_->Logs(id)->size(), 1u);
  EXPECT_EQ((*core_->Logs(id))[0].rank, 1);

  // The worker is gone, and with it its executor and that one's file.
  core_->WorkerLeft("b");
  End(id, 0, Cancelled("another executor failed"));
  EXPECT_EQ(Get(id).state, JobState::kRecovering);
  EXPECT_EQ(Log(id, 1, 1), "one\ntwo\n");
  Restart();
  EXPECT_EQ(Log(id, 1, 1), "one\ntwo\n");
  EXPECT_EQ((*core_->Logs(id))[0].bytes, 8);
  EXPECT_EQ(Log(id, 2, 0), "job j1 has no attempt 2: it was started 1 times");
}

TEST_F(MasterJobsTest, ALogOfARankThatIsNotThere) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  EXPECT_EQ(Log(id, 0, 1), "job j1 has no rank 1: its 1 workers are counted from 0");
  EXPECT_EQ(core_->Log("j9", 0, 0, 0).status().code(), StatusCode::kNotFound);
}

TEST_F(MasterJobsTest, ProgressIsToldWhileTheJobRuns) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  ExecutorNews news = News(Get(id), 0);
  news.progress = "{\"line\":7}";
  core_->News("a", news);
  EXPECT_EQ(core_->ProgressOf(id), "{\"line\":7}");
  End(id, 0, OkStatus());
  EXPECT_EQ(core_->ProgressOf(id), "");
}

TEST_F(MasterJobsTest, AFinishedJobIsRunOnceMoreAsAnother) {
  Connect("a");
  JobSpecification specification;
  specification.request_id = "mine";
  specification.program = "the program";
  specification.directory = "/home";
  specification.options.seed = 17;
  const std::string id = (*core_->Submit(specification, "sources"))->id;
  EXPECT_EQ(core_->Retry(id, "again").status().message(), "job j1 is not finished: STARTING");
  RunUntilRunning(id);
  End(id, 0, InvalidArgument("a fault of the script"), /*own_cause=*/true);
  ASSERT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_EQ(Get(id).specification.program, "") << "the master does not hold it in memory";

  const Result<const Job*> again = core_->Retry(id, "again");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ((*again)->id, "j2");
  EXPECT_EQ(store_->Specification((*again)->id)->program, "the program");
  EXPECT_EQ((*again)->specification.directory, "/home");
  EXPECT_EQ((*again)->specification.options.seed, 17) << "it prints the same bytes";
  EXPECT_EQ(store_->files().Read("j2", JobFileKind::kSources)->front().bytes, "sources");
  EXPECT_EQ((*core_->Retry(id, "again"))->id, "j2") << "the same request is the same job";
  EXPECT_FALSE(core_->Retry("j9", "x").ok());
}

// Whoever asks for it; also a job of the time before there were owners, which the store tells no owner of.
TEST_F(MasterJobsTest, ARetriedJobStaysOneOfItsOwner) {
  Connect("a");
  for (const std::string owner : {"anna", ""}) {
    JobSpecification specification;
    specification.request_id = "mine";
    specification.owner = owner;
    const std::string id = (*core_->Submit(specification, ""))->id;
    RunUntilRunning(id);
    End(id, 0, OkStatus());
  }
  options_.first_owner = "first";
  Restart();
  EXPECT_EQ(Get("j2").specification.owner, "first");
  EXPECT_EQ((*core_->Retry("j1", "again"))->specification.owner, "anna");
  EXPECT_EQ((*core_->Retry("j2", "again"))->specification.owner, "first");
  EXPECT_EQ(store_->Load()->back().specification.owner, "first");
  EXPECT_EQ((*core_->Retry("j1", "again"))->id, "j3") << "a request id is that of an owner";
}

TEST_F(MasterJobsTest, ADeletedJobLeavesNothing) {
  Connect("a");
  const std::string id = Submit(1);
  EXPECT_EQ(core_->Delete(id).message(), "job j1 is not finished: STARTING");
  RunUntilRunning(id);
  Output(id, 0, "text");
  Say(id, 0, 0, "log");
  End(id, 0, OkStatus());
  disk_.full = true;
  EXPECT_FALSE(core_->Delete(id).ok());
  EXPECT_TRUE(core_->Find(id).ok());
  disk_.full = false;
  EXPECT_TRUE(core_->Delete(id).ok());
  EXPECT_EQ(core_->Find(id).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(store_->Load()->empty());
  EXPECT_TRUE(store_->files().BytesOfJobs()->empty());
  EXPECT_EQ(Submit(1), "j2") << "ids are not given twice";
}

// Each of those that wait, not only the first of its kind.
TEST_F(MasterJobsTest, TellsWhatAJobWaitsForNow) {
  const std::string first = Submit(1), second = Submit(1);
  const std::string nobody = "waits: no worker is alive; 'heddle worker' starts one";
  for (const std::string& id : {first, second}) EXPECT_EQ(Reason(id), nobody);
  Restart();
  for (const std::string& id : {first, second}) EXPECT_EQ(Reason(id), nobody);
  Connect("a");
  EXPECT_EQ(Reason(first), "executors are being started");
  EXPECT_EQ(Reason(second), "waits: workers are busy with job j1");
  EXPECT_EQ(Reason(Submit(1)), "waits for its turn");
}

// What the workers lack is found out once for all jobs that ask for the same.
TEST_F(MasterJobsTest, TheTimeThatAListTakesIsNoProductOfJobsAndWorkers) {
  constexpr int kJobs = 2'000;
  options_.most_workers = 10'000;
  MasterHub hub(disk_, clock_, options_);
  ASSERT_TRUE(hub.Start().ok());
  hub.Call([&](MasterCore& core) {
    for (int i = 0; i < kJobs; ++i) {
      JobSpecification specification;
      specification.request_id = "r" + std::to_string(i);
      specification.workers_wanted = 10'000 - i % 3;
      EXPECT_TRUE(core.Submit(specification).ok());
    }
    return true;
  });
  Caller caller;
  caller.roles.Add(Role::kOperator);
  const auto list_ms = [&](int workers) {
    ListReply reply;
    const int64_t begin_ns = SystemClock().MonotonicNs();
    ServeList(&hub, caller, ListRequest(), &reply);
    const int64_t took_ns = SystemClock().MonotonicNs() - begin_ns;
    EXPECT_EQ(reply.jobs_size(), kJobs);
    EXPECT_EQ(reply.jobs(0).reason(), fmt::format("waits for {} workers; {} alive", 10'000 - (kJobs - 1) % 3,
                                                  workers == 1 ? "1 is" : fmt::format("{} are", workers)));
    return static_cast<double>(took_ns) / 1e6;
  };
  const auto connect = [&](int from, int until) {
    hub.Call([&](MasterCore& core) {
      for (int i = from; i < until; ++i) {
        WorkerDescription description;
        description.uuid = "w" + std::to_string(i);
        description.instance = "1";
        core.WorkerConnected(description, {});
      }
      return true;
    });
  };
  connect(0, 1);
  const double of_one = list_ms(1);
  connect(1, 2'000);
  EXPECT_LE(list_ms(2'000), 4 * of_one + 10);
}

// Workers are told up to which job there may be something left over: also when none of them is known any
// more.
TEST_F(MasterJobsTest, ASweepBehindARestartIsOfAllJobsThatThereHaveBeen) {
  Connect("a");
  const std::string id = Submit(1);
  RunUntilRunning(id);
  End(id, 0, OkStatus());
  EXPECT_TRUE(core_->Delete(id).ok());
  Restart();
  Connect("a");
  EXPECT_EQ(core_->OrderSweep(1, /*dry_run=*/false).size(), 1u);
  const std::vector<WorkerOrder> orders = Take(Kind::kSweep);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].sweep->last, 1);
  EXPECT_TRUE(orders[0].sweep->known.empty());
}

// As many as are kept, also while nobody submits.
TEST_F(MasterJobsTest, FinishedJobsAreForgottenWhenOthersFinish) {
  store_ = *JobStore::Open(":memory:", {.most_finished_jobs = 10}, clock_);
  core_ = std::make_unique<MasterCore>(*store_, clock_, options_);
  ASSERT_TRUE(core_->Start().ok());
  std::vector<std::string> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(Submit(1));
  Connect("a");
  for (const std::string& id : ids) {
    RunUntilRunning(id);
    End(id, 0, OkStatus());
  }
  EXPECT_LT(core_->Jobs().size(), 10u + 64u);
  EXPECT_EQ(core_->Jobs().size(), store_->Load()->size());
  EXPECT_EQ(Get(ids.back()).state, JobState::kSucceeded) << "what ended last is remembered";
}

TEST_F(MasterJobsTest, CountsWhatHappens) {
  Connect("a");
  Connect("b");
  const std::string id = Submit(2);
  clock_.Advance(kNsPerSecond);
  RunUntilRunning(id);
  Output(id, 0, "text");
  Crash(id, 1, SIGSEGV);
  End(id, 0, Cancelled("another executor failed"));
  const MasterCounts& counts = core_->counts();
  EXPECT_EQ(counts.submitted, 1);
  EXPECT_EQ(counts.attempts, 2) << "it was started again";
  EXPECT_EQ(counts.crashes, 1);
  EXPECT_EQ(counts.losses, 0);
  EXPECT_EQ(counts.output_bytes, 4);
  EXPECT_EQ(counts.executors_ended.at("signal 11"), 1);
  EXPECT_EQ(counts.executors_ended.at("done"), 1);
  EXPECT_EQ(counts.waits[0], 1) << "of the first attempt alone";
  core_->WorkerLeft("b");
  EXPECT_EQ(core_->counts().workers_lost, 1);
}

}  // namespace
}  // namespace heddle::cluster

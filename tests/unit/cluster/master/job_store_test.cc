// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/job_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/support/process.h"
#include "tests/unit/cluster/master/master_core_fixture.h"

namespace heddle::cluster {
namespace {

JobSpecification Specification(const std::string& request_id) {
  JobSpecification specification;
  specification.request_id = request_id;
  specification.script = "a.dml";
  specification.program = "program \xff text";
  specification.directory = "/home/someone";
  specification.data_roots = {"/data"};
  specification.named_paths = {"/tmp/model \xff.csv"};
  specification.workers_wanted = 2;
  specification.retry_for_ms = 60'000;
  specification.options.seed = 7;
  specification.options.min_distributed_bytes = 0;
  return specification;
}

TEST(JobStoreTest, ARequestIdBelongsToWhatWasAskedFor) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  JobSpecification specification = Specification("mine");
  specification.digest = "digest \xff";
  bool existed = true;
  {
    auto store = JobStore::Open(path, {}, clock);
    ASSERT_TRUE(store.ok());
    EXPECT_EQ((*store)->Add(specification, &existed)->id, "j1");
    EXPECT_FALSE(existed);
  }
  auto store = JobStore::Open(path, {}, clock);
  ASSERT_TRUE(store.ok());
  EXPECT_EQ((*store)->Add(specification, &existed)->id, "j1");
  EXPECT_TRUE(existed);
  specification.digest = "another";
  const Status refused = (*store)->Add(specification, &existed).status();
  EXPECT_EQ(refused.message(),
            "the request id 'mine' is that of job j1, which has another script, other arguments or options");
  EXPECT_EQ(ExitCode(refused), 2);
  EXPECT_EQ((*store)->Load()->size(), 1u);
}

TEST(JobStoreTest, KeepsJobsOverARestart) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  clock.Advance(5'000'000'000);
  {
    auto store = JobStore::Open(path, {}, clock);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    bool existed = true;
    Result<Job> job = (*store)->Add(Specification("r1"), &existed);
    ASSERT_TRUE(job.ok());
    EXPECT_FALSE(existed);
    EXPECT_EQ(job->id, "j1");
    job->attempt = 1;
    job->workers = {"u1", "u2"};
    job->worker_names = {"alpha", "beta"};
    job->crashes = 1;
    job->losses = 2;
    job->first_loss_ms = 4321;
    ASSERT_TRUE((*store)->Move(&*job, JobState::kAdmitted, "has its workers").ok());
    ASSERT_TRUE((*store)->AppendOutput(&*job, "hello ").ok());
    ASSERT_TRUE((*store)->AppendOutput(&*job, "world\n").ok());
    job->outcome = Aborted("enough").At({"a.dml", 3, 4});
    ASSERT_TRUE((*store)->Move(&*job, JobState::kFailed, "enough").ok());
    ASSERT_TRUE((*store)->Add(Specification("r2"), &existed).ok());
  }
  auto store = JobStore::Open(path, {}, clock);
  ASSERT_TRUE(store.ok());
  const Result<std::vector<Job>> jobs = (*store)->Load();
  ASSERT_TRUE(jobs.ok());
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->back().id, "j2");
  EXPECT_EQ(jobs->back().specification.program, "") << "read when the job starts";
  EXPECT_EQ((*store)->Specification("j2")->program, "program \xff text");
  EXPECT_EQ((*store)->Specification("j3").status().code(), StatusCode::kNotFound);
  const Job& job = jobs->front();
  EXPECT_EQ(job.id, "j1");
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(job.crashes, 1);
  EXPECT_EQ(job.losses, 2);
  EXPECT_EQ(job.first_loss_ms, 4321);
  EXPECT_EQ(job.specification.retry_for_ms, 60'000);
  EXPECT_EQ(job.workers, (std::vector<std::string>{"u1", "u2"}));
  EXPECT_EQ(job.worker_names, (std::vector<std::string>{"alpha", "beta"}));
  EXPECT_EQ(job.outcome.ToString(), "a.dml:3:4: enough");
  EXPECT_EQ(job.outcome.code(), StatusCode::kAborted);
  EXPECT_EQ(job.submitted_ms, 5000);
  EXPECT_EQ(job.output_bytes, 12);
  EXPECT_EQ(job.specification.program, "") << "nobody runs it again";
  EXPECT_EQ(job.specification.directory, "/home/someone");
  EXPECT_EQ(job.specification.data_roots, std::vector<std::string>{"/data"});
  EXPECT_EQ(job.specification.named_paths, std::vector<std::string>{"/tmp/model \xff.csv"});
  EXPECT_EQ(job.specification.options.seed, 7);
  EXPECT_EQ(job.specification.options.min_distributed_bytes, 0);
  const auto transitions = (*store)->Transitions("j1");
  ASSERT_TRUE(transitions.ok());
  ASSERT_EQ(transitions->size(), 3u);
  EXPECT_EQ((*transitions)[0].state, JobState::kQueued);
  EXPECT_EQ((*transitions)[1].reason, "has its workers");
  EXPECT_EQ((*transitions)[2].state, JobState::kFailed);

  // From any offset, in pieces.
  for (int64_t offset = 0; offset <= 12; ++offset) {
    std::string text;
    while (offset + static_cast<int64_t>(text.size()) < 12) {
      const auto piece = (*store)->Output("j1", offset + static_cast<int64_t>(text.size()), 3);
      ASSERT_TRUE(piece.ok());
      ASSERT_FALSE(piece->empty());
      text += *piece;
    }
    EXPECT_EQ(text, std::string("hello world\n").substr(static_cast<size_t>(offset)));
  }
}

TEST(JobStoreTest, ARequestIdIsThatOfAnOwner) {
  VirtualClock clock;
  const auto store = JobStore::Open(":memory:", {}, clock);
  ASSERT_TRUE(store.ok());
  JobSpecification specification = Specification("r1");
  bool existed = false;
  for (const char* owner : {"anna", "bob"}) {
    specification.owner = owner;
    EXPECT_EQ((*store)->Add(specification, &existed)->id, std::string(owner) == "anna" ? "j1" : "j2");
    EXPECT_FALSE(existed);
    const Result<Job> again = (*store)->Add(specification, &existed);
    EXPECT_TRUE(existed);
    EXPECT_EQ(again->specification.owner, owner);
    EXPECT_EQ(again->specification.request_id, "r1");
  }
}

TEST(JobStoreTest, TakesOverAStoreOfTheFirstVersion) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  bool existed = false;
  ASSERT_TRUE((*JobStore::Open(path, {}, clock))->Add(Specification("r1"), &existed).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_exec(
          database,
          "DROP TABLE job_files; DROP TABLE usage; DROP INDEX finished_jobs; DROP TABLE drained_workers;"
          "DROP TABLE identity;"
          "DROP TABLE workers_here; DROP TABLE epochs;"
          "ALTER TABLE jobs DROP COLUMN epoch; ALTER TABLE jobs DROP COLUMN digest;"
          "ALTER TABLE jobs DROP COLUMN retry_for_ms; ALTER TABLE jobs DROP COLUMN crashes;"
          "ALTER TABLE jobs DROP COLUMN losses; ALTER TABLE jobs DROP COLUMN first_loss_ms;"
          "ALTER TABLE jobs DROP COLUMN checkpoints; ALTER TABLE jobs DROP COLUMN resumed;"
          "ALTER TABLE jobs DROP COLUMN owner; ALTER TABLE jobs DROP COLUMN priority;"
          "ALTER TABLE jobs DROP COLUMN deadline_ms; ALTER TABLE jobs DROP COLUMN shares;"
          "ALTER TABLE jobs DROP COLUMN plan_bytes; ALTER TABLE jobs DROP COLUMN finish;"
          "PRAGMA user_version=1;",
          nullptr, nullptr, nullptr),
      SQLITE_OK);
  sqlite3_close(database);
  {
    const auto store = JobStore::Open(path, {}, clock);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    EXPECT_EQ((*store)->Load()->size(), 1u);
    EXPECT_TRUE((*store)->SetDrained({"u1", "alpha"}, true).ok());
    // A request of before there were owners is nobody's.
    EXPECT_EQ((*store)->Load()->at(0).specification.request_id, "r1");
    JobSpecification again = Specification("r1");
    again.owner = "anna";
    EXPECT_EQ((*store)->Add(again, &existed)->id, "j2");
    EXPECT_FALSE(existed);
  }
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "PRAGMA user_version=99;", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const Status newer = JobStore::Open(path, {}, clock).status();
  EXPECT_EQ(newer.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(newer.message().starts_with(
      fmt::format("job store '{}': written by a newer version of Heddle (format 99, this one knows ", path)))
      << newer.message();
}

TEST(JobStoreTest, AStoreThatIsNoneIsNamed) {
  const testing_support::TemporaryFolder folder;
  VirtualClock clock;
  const Status refused = JobStore::Open(folder.path(), {}, clock).status();
  EXPECT_EQ(ExitCode(refused), 5);
  EXPECT_EQ(refused.message(),
            fmt::format("job store: cannot open '{}': unable to open database file", folder.path()));
  const std::string path = folder.path() + "/jobs.sqlite";
  const auto store = JobStore::Open(path, {}, clock);
  bool existed = false;
  ASSERT_TRUE((*store)->Add(Specification("r1"), &existed).ok());
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "UPDATE transitions SET state='ASLEEP'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ((*store)->Transitions("j1").status().message(), "job store: job j1 has an unknown state");
  ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "UPDATE jobs SET state='ASLEEP'", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  EXPECT_EQ((*store)->Load().status().message(), "job store: the record of job j1 is malformed");
}

// As after a loss of power, whatever of the log of changes has reached the disk: what was there at an earlier
// moment, whole.
TEST(JobStoreTest, ATornLogOfChangesIsAnEarlierMoment) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite", torn = folder.path() + "/torn.sqlite";
  VirtualClock clock;
  std::string log;
  {
    const auto store = *JobStore::Open(path, {}, clock);
    for (int i = 1; i <= 12; ++i) {
      bool existed = false;
      Job job = *store->Add(Specification("r" + std::to_string(i)), &existed);
      ASSERT_TRUE(store->Move(&job, JobState::kAdmitted, "").ok());
      ASSERT_TRUE(store->AppendOutput(&job, "output of " + job.id).ok());
    }
    log = testing_support::ReadText(path + "-wal");
    testing_support::WriteText(torn, testing_support::ReadText(path));
  }
  ASSERT_GT(log.size(), 50'000u);
  const std::string database = testing_support::ReadText(torn);
  size_t before = 0;
  for (size_t size = 0; size <= log.size(); size += 1 + size % 977 + log.size() / 60) {
    testing_support::WriteText(torn, database);
    testing_support::WriteText(torn + "-wal", log.substr(0, size));
    std::filesystem::remove(torn + "-shm");
    const auto store = JobStore::Open(torn, {}, clock);
    ASSERT_TRUE(store.ok()) << size << store.status().ToString();
    const Result<std::vector<Job>> jobs = (*store)->Load();
    ASSERT_TRUE(jobs.ok()) << size << jobs.status().ToString();
    EXPECT_GE(jobs->size(), before) << size;
    before = jobs->size();
    for (size_t i = 0; i < jobs->size(); ++i) {
      const Job& job = (*jobs)[i];
      EXPECT_EQ(job.id, "j" + std::to_string(i + 1));
      const std::string whole = "output of " + job.id;
      const bool is_last = i + 1 == jobs->size();
      EXPECT_TRUE((is_last && job.output_bytes == 0) || *(*store)->Output(job.id, 0, 100) == whole) << size;
    }
    bool existed = true;
    EXPECT_EQ((*store)->Add(Specification("new"), &existed)->id, "j" + std::to_string(jobs->size() + 1));
  }
  EXPECT_EQ(before, 12u);
}

// Wherever it is cut, it is whole or named, and never another store.
TEST(JobStoreTest, ACutStoreIsNamed) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  {
    const auto store = *JobStore::Open(path, {}, clock);
    for (int i = 1; i <= 12; ++i) {
      bool existed = false;
      ASSERT_TRUE(store->Add(Specification("r" + std::to_string(i)), &existed).ok());
    }
  }
  const std::string whole = testing_support::ReadText(path);
  int named = 0;
  for (size_t size = 100; size < whole.size(); size += whole.size() / 23) {
    testing_support::WriteText(path, whole.substr(0, size));
    const auto store = JobStore::Open(path, {}, clock);
    const Result<std::vector<Job>> jobs = store.ok() ? (*store)->Load() : store.status();
    if (jobs.ok()) {
      EXPECT_EQ(jobs->size(), 12u) << size;
      continue;
    }
    ++named;
    EXPECT_EQ(jobs.status().code(), StatusCode::kDataLoss) << jobs.status().ToString();
    const std::string& message = jobs.status().message();
    EXPECT_TRUE(message ==
                    fmt::format("job store: '{}' is damaged: database disk image is malformed", path) ||
                (message.starts_with("job store: the record of job j") && message.ends_with(" is malformed")))
        << message;
  }
  EXPECT_GT(named, 10);
  std::string other = whole;
  other[3] = 'x';
  testing_support::WriteText(path, other);
  EXPECT_EQ(JobStore::Open(path, {}, clock).status().message(),
            fmt::format("job store: '{}' is damaged: file is not a database", path));
}

TEST(JobStoreTest, KeepsWhichWorkersAreDrained) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  {
    const auto store = JobStore::Open(path, {}, clock);
    ASSERT_TRUE((*store)->SetDrained({"u1", "alpha"}, true).ok());
    ASSERT_TRUE((*store)->SetDrained({"u2", "beta"}, true).ok());
    ASSERT_TRUE((*store)->SetDrained({"u2", "beta"}, true).ok()) << "twice is once";
    ASSERT_TRUE((*store)->SetDrained({"u1", "alpha"}, false).ok());
  }
  const auto store = JobStore::Open(path, {}, clock);
  const Result<std::vector<KnownWorker>> drained = (*store)->Drained();
  ASSERT_TRUE(drained.ok());
  ASSERT_EQ(drained->size(), 1u);
  EXPECT_EQ((*drained)[0].uuid, "u2");
  EXPECT_EQ((*drained)[0].name, "beta");
}

TEST(JobStoreTest, KeepsEpochsAndWhoIsHere) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() + "/jobs.sqlite";
  VirtualClock clock;
  {
    const auto store = JobStore::Open(path, {}, clock);
    EXPECT_EQ(*(*store)->LastEpoch(), 0);
    bool existed = false;
    Job job = *(*store)->Add(Specification("a"), &existed);
    job.epoch = 7;
    ASSERT_TRUE((*store)->Move(&job, JobState::kAdmitted, "").ok());
    ASSERT_TRUE((*store)->SetHere({"u1", "alpha"}, true).ok());
    ASSERT_TRUE((*store)->SetHere({"u2", "beta"}, true).ok());
    ASSERT_TRUE((*store)->SetHere({"u1", "alpha"}, false).ok());
  }
  const auto store = JobStore::Open(path, {}, clock);
  EXPECT_EQ((*(*store)->Load())[0].epoch, 7);
  EXPECT_EQ(*(*store)->LastEpoch(), 7);
  ASSERT_EQ((*store)->Here()->size(), 1u);
  EXPECT_EQ((*(*store)->Here())[0].name, "beta");
}

TEST(JobStoreTest, TheSameRequestIsTheSameJob) {
  VirtualClock clock;
  auto store = JobStore::Open(":memory:", {}, clock);
  ASSERT_TRUE(store.ok());
  bool existed = false;
  EXPECT_EQ((*store)->Add(Specification("a"), &existed)->id, "j1");
  EXPECT_EQ((*store)->Add(Specification("b"), &existed)->id, "j2");
  EXPECT_FALSE(existed);
  EXPECT_EQ((*store)->Add(Specification("a"), &existed)->id, "j1");
  EXPECT_TRUE(existed);
}

TEST(JobStoreTest, RefusesIllegalTransitions) {
  VirtualClock clock;
  auto store = JobStore::Open(":memory:", {}, clock);
  bool existed = false;
  Job job = *(*store)->Add(Specification("a"), &existed);
  EXPECT_EQ((*store)->Move(&job, JobState::kSucceeded, "").code(), StatusCode::kInternal);
  EXPECT_EQ(job.state, JobState::kQueued);
  EXPECT_EQ((*store)->Transitions("j1")->size(), 1u);
  ASSERT_TRUE((*store)->Move(&job, JobState::kCancelled, "").ok());
  for (const JobState state :
       {JobState::kQueued, JobState::kRunning, JobState::kFailed, JobState::kCancelled})
    EXPECT_FALSE((*store)->Move(&job, state, "").ok());
}

TEST(JobStoreTest, BoundsOutputAndForgetsOldJobs) {
  VirtualClock clock;
  JobStoreOptions options;
  options.most_output_bytes = 10;
  options.most_finished_jobs = 1;
  auto store = JobStore::Open(":memory:", options, clock);
  bool existed = false;
  Job first = *(*store)->Add(Specification("a"), &existed);
  EXPECT_TRUE((*store)->AppendOutput(&first, "0123456789").ok());
  const Status full = (*store)->AppendOutput(&first, "x");
  EXPECT_EQ(ExitCode(full), 5);
  EXPECT_EQ(full.ToString(),
            "the script printed more than the 10 bytes that the master keeps\n"
            "write results to a file with write(), or raise --most-output of heddle master");
  EXPECT_EQ(first.output_bytes, 10);
  Job second = *(*store)->Add(Specification("b"), &existed);
  Job third = *(*store)->Add(Specification("c"), &existed);
  ASSERT_TRUE((*store)->Move(&first, JobState::kCancelled, "").ok());
  ASSERT_TRUE((*store)->Move(&second, JobState::kCancelled, "").ok());
  EXPECT_EQ(*(*store)->Prune(), std::vector<std::string>{"j1"});
  EXPECT_EQ((*store)->Load()->size(), 2u);
  EXPECT_EQ(*(*store)->Output("j1", 0, 100), "");
  EXPECT_EQ((*store)->Add(Specification("d"), &existed)->id, "j4");
}

TEST(JobStoreTest, ForgetsFirstWhatEndedFirst) {
  SetClock clock;
  JobStoreOptions options;
  options.most_finished_jobs = 2;
  auto store = JobStore::Open(":memory:", options, clock);
  bool existed = false;
  std::vector<Job> jobs;
  for (const char* id : {"a", "b", "c", "d"}) jobs.push_back(*(*store)->Add(Specification(id), &existed));
  // The one that was submitted first ends last, when somebody has set the clock back.
  for (const size_t i : {2, 1, 3}) ASSERT_TRUE((*store)->Move(&jobs[i], JobState::kCancelled, "").ok());
  clock.moved_ms = -1'000'000'000;
  ASSERT_TRUE((*store)->Move(&jobs[0], JobState::kCancelled, "").ok());
  EXPECT_EQ(*(*store)->Prune(), (std::vector<std::string>{"j2", "j3"}));
}

}  // namespace
}  // namespace heddle::cluster

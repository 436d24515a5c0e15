// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/job_files.h"

#include <gtest/gtest.h>

#include "cluster/executor/log_tail.h"
#include "cluster/master/job_store.h"
#include "cluster/store/packed_text.h"

namespace heddle::cluster {
namespace {

class JobFilesTest : public testing::Test {
 protected:
  std::unique_ptr<JobStore> Open(int64_t most_bytes) {
    JobStoreOptions options;
    options.most_file_bytes = most_bytes;
    auto store = JobStore::Open(":memory:", options, clock_);
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return *std::move(store);
  }
  static Job Add(JobStore& store, const std::string& request_id) {
    JobSpecification specification;
    specification.request_id = request_id;
    specification.program = "program";
    bool existed = false;
    return *store.Add(specification, &existed);
  }
  static size_t Count(JobStore& store, const std::string& job, JobFileKind kind) {
    return store.files().Read(job, kind)->size();
  }
  VirtualClock clock_;
};

TEST_F(JobFilesTest, AFileTakesThePlaceOfTheOneOfItsRankAndGoesWithItsJob) {
  const auto store = Open(1 << 20);
  const Job job = Add(*store, "1");
  ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kLog, 1, 0, 0, "first"}).ok());
  ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kLog, 1, 1, 7, std::string("a\0\xff", 3)}).ok());
  ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kLog, 1, 0, 3, "second"}).ok());
  const std::vector<JobFile> logs = *store->files().Read(job.id, JobFileKind::kLog);
  ASSERT_EQ(logs.size(), 2u);
  EXPECT_EQ(logs[0].bytes, "second");
  EXPECT_EQ(logs[0].first, 3);
  EXPECT_EQ(logs[1].bytes, std::string("a\0\xff", 3));
  EXPECT_EQ((*store->files().Read(job.id, JobFileKind::kLog, 1, 1))->first, 7);
  EXPECT_EQ((*store->files().Read(job.id, JobFileKind::kLog, 1, 0))->bytes, "second");
  EXPECT_FALSE(store->files().Read(job.id, JobFileKind::kLog, 2, 0)->has_value());
  const std::vector<JobFiles::Size> sizes = *store->files().Sizes(job.id, JobFileKind::kLog);
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[1].bytes, 3);
  EXPECT_EQ((*store->files().BytesOfJobs())[job.id], 9);
  ASSERT_TRUE(store->Delete(job.id).ok());
  EXPECT_EQ(Count(*store, job.id, JobFileKind::kLog), 0u);
  EXPECT_TRUE(store->files().BytesOfJobs()->empty());
}

TEST_F(JobFilesTest, LogsOfTheLastAttemptsAndRecordsOfTheLastOneStay) {
  const auto store = Open(1 << 20);
  const Job job = Add(*store, "1");
  ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kSources, 0, 0, 0, "print(1)"}).ok());
  for (int attempt = 1; attempt <= 5; ++attempt)
    for (const JobFileKind kind : {JobFileKind::kLog, JobFileKind::kRecord})
      ASSERT_TRUE(store->files().Put(job.id, {kind, attempt, 0, 0, "text"}).ok());
  const std::vector<JobFile> logs = *store->files().Read(job.id, JobFileKind::kLog);
  ASSERT_EQ(logs.size(), size_t{JobFiles::kAttemptsWithLogs});
  EXPECT_EQ(logs.front().attempt, 3);
  const std::vector<JobFile> records = *store->files().Read(job.id, JobFileKind::kRecord);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].attempt, 5);
  EXPECT_EQ(Count(*store, job.id, JobFileKind::kSources), 1u);
}

TEST_F(JobFilesTest, RecordsOfAJobAreBounded) {
  const auto store = Open(int64_t{1} << 30);
  const Job job = Add(*store, "1");
  const std::string half(static_cast<size_t>(JobFiles::kMostBytesOfJob / 2), 'x');
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kRecord, 1, rank, 0, half}).ok());
  EXPECT_TRUE(store->files().Put(job.id, {JobFileKind::kRecord, 1, 1, 0, half}).ok()) << "the same again";
  const Status refused = store->files().Put(job.id, {JobFileKind::kRecord, 1, 2, 0, "x"});
  EXPECT_EQ(refused.message(), "the records of job j1 take more than 16777216 bytes");
  EXPECT_EQ(Count(*store, job.id, JobFileKind::kRecord), 2u);
}

TEST_F(JobFilesTest, TheOldestFinishedJobsMakeRoom) {
  const auto store = Open(1000);
  std::vector<Job> jobs;
  for (const char* request : {"1", "2", "3", "4"}) jobs.push_back(Add(*store, request));
  for (const size_t finished : {0u, 2u})
    ASSERT_TRUE(store->Move(&jobs[finished], JobState::kCancelled, "").ok());
  const std::string text(300, 'x');
  for (const Job& job : jobs)
    ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kLog, 1, 0, 0, text}).ok());
  EXPECT_EQ(Count(*store, "j1", JobFileKind::kLog), 0u);
  EXPECT_EQ(Count(*store, "j2", JobFileKind::kLog), 1u) << "it is not finished";
  EXPECT_EQ(Count(*store, "j3", JobFileKind::kLog), 0u);
  EXPECT_EQ(Count(*store, "j4", JobFileKind::kLog), 1u);
}

TEST(LogTailTest, KeepsTheLastOfATextAndItsPlace) {
  LogTail tail;
  tail.Append("abc");
  EXPECT_FALSE(tail.Merge(0, "abc")) << "it is here";
  EXPECT_TRUE(tail.Merge(1, "bcde"));
  EXPECT_EQ(tail.text(), "abcde");
  EXPECT_EQ(tail.From(3), "de");
  EXPECT_EQ(tail.From(9), "");
  EXPECT_TRUE(tail.Merge(7, "h")) << "a gap";
  EXPECT_EQ(tail.text(), "h");
  EXPECT_EQ(tail.first(), 7);
  tail.Append(std::string(2 * LogTail::kMostBytes, 'x'));
  EXPECT_EQ(tail.text().size(), LogTail::kMostBytes);
  EXPECT_EQ(tail.end(), 8 + static_cast<int64_t>(2 * LogTail::kMostBytes));
  EXPECT_EQ(tail.From(0).size(), LogTail::kMostBytes);
}

TEST(PackedTextTest, WhatIsPackedComesBackAndIsBounded) {
  const std::string text(100'000, 'x');
  const std::string packed = *Pack(text);
  EXPECT_LT(packed.size(), text.size() / 10);
  EXPECT_EQ(*Unpack(packed, "a text", 1 << 20), text);
  EXPECT_FALSE(Unpack(packed, "a text", 1000).ok());
  EXPECT_FALSE(Unpack(packed.substr(0, packed.size() / 2), "a text", 1 << 20).ok());
  EXPECT_FALSE(Unpack("no zstd", "a text", 1 << 20).ok());
}

TEST(NumberOfJobTest, IsThatOfItsId) {
  EXPECT_EQ(NumberOfJob("j17"), 17);
  for (const char* id : {"", "j", "17", "j17x", "jx", "j99999999999999999999", "J1"})
    EXPECT_EQ(NumberOfJob(id), -1) << id;
}

}  // namespace
}  // namespace heddle::cluster

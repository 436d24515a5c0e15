// SPDX-License-Identifier: Apache-2.0
// What executors and those who launch them tell each other, line by line.
#include <gtest/gtest.h>

#include "cluster/executor/executor_messages.h"
#include "cluster/security/token.h"
#include "engine/session/statistics.h"

namespace heddle::cluster {
namespace {

TEST(ExecutorMessagesTest, AStartKeepsEveryByteAndOption) {
  LauncherMessage message;
  message.start.emplace();
  message.start->job = "job 1";
  message.start->attempt = 2;
  message.start->token = MakeToken();
  message.start->program = std::string("line\n\"\xc3\xa4\xff\x01", 10);
  message.start->directory = "/tmp/\xe9";
  message.start->roots.own_folders = ops::FileRoots::OwnFolders::kClosed;
  message.start->roots.is_job = true;
  message.start->roots.named = {"/data/\xe9", "/more"};
  message.start->roots.arguments = {"/X.csv"};
  message.start->roots.of_master = {"/of/master"};
  message.start->roots.of_worker = {"/of/worker"};
  message.start->roots.closed = {"/etc/heddle/token"};
  message.start->options.rank = 1;
  message.start->options.ranks = 3;
  message.start->options.min_distributed_bytes = 0;
  message.start->options.seed = (int64_t{1} << 53) - 1;
  message.start->options.disabled_passes = {"share"};
  message.start->options.plans = {"plan"};
  message.start->options.times_operators = true;
  const std::string line = ToLine(message);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<LauncherMessage> parsed = ParseLauncherMessage(line);
  ASSERT_TRUE(parsed.ok() && parsed->start.has_value());
  EXPECT_EQ(parsed->start->program, message.start->program);
  EXPECT_EQ(parsed->start->directory, message.start->directory);
  EXPECT_EQ(parsed->start->roots.own_folders, ops::FileRoots::OwnFolders::kClosed);
  EXPECT_TRUE(parsed->start->roots.is_job);
  EXPECT_EQ(parsed->start->roots.named, message.start->roots.named);
  EXPECT_EQ(parsed->start->roots.arguments, message.start->roots.arguments);
  EXPECT_EQ(parsed->start->roots.of_master, message.start->roots.of_master);
  EXPECT_EQ(parsed->start->roots.of_worker, message.start->roots.of_worker);
  EXPECT_EQ(parsed->start->roots.closed, message.start->roots.closed);
  EXPECT_EQ(parsed->start->token, message.start->token);
  EXPECT_EQ(parsed->start->attempt, 2);
  EXPECT_EQ(parsed->start->options.rank, 1);
  EXPECT_EQ(parsed->start->options.ranks, 3);
  EXPECT_EQ(parsed->start->options.min_distributed_bytes, 0);
  EXPECT_EQ(parsed->start->options.seed, message.start->options.seed);
  EXPECT_EQ(parsed->start->options.disabled_passes, message.start->options.disabled_passes);
  EXPECT_EQ(parsed->start->options.plans, message.start->options.plans);
  EXPECT_TRUE(parsed->start->options.times_operators);
}

TEST(ExecutorMessagesTest, AnOutcomeKeepsItsStatusAndStatistics) {
  ExecutorMessage message;
  message.done.emplace();
  message.done->status = Aborted("stop: \xff").At({"x.dml", 1, 2}).WithNote("n");
  message.done->own_cause = true;
  message.done->statistics.emplace();
  message.done->statistics->bytes_sent = 123;
  message.done->statistics->bytes_shared = 45;
  message.done->statistics->operators["sum.partial"].acts = 4;
  const Result<ExecutorMessage> parsed = ParseExecutorMessage(ToLine(message));
  ASSERT_TRUE(parsed.ok() && parsed->done.has_value());
  EXPECT_EQ(parsed->done->status.ToString(), message.done->status.ToString());
  EXPECT_TRUE(parsed->done->own_cause);
  EXPECT_EQ(parsed->done->statistics->bytes_sent, 123);
  EXPECT_EQ(parsed->done->statistics->bytes_shared, 45);
  EXPECT_EQ(parsed->done->statistics->operators.at("sum.partial").acts, 4);
  EXPECT_FALSE(ParseExecutorMessage("[1]").ok());
}

TEST(ExecutorMessagesTest, HiddenPathsKeepEveryByte) {
  ExecutorMessage message;
  message.hidden = "/a\xff/.x";
  message.gone = "/b\n/.y";
  const Result<ExecutorMessage> parsed = ParseExecutorMessage(ToLine(message));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->hidden, message.hidden);
  EXPECT_EQ(parsed->gone, message.gone);
}

TEST(ExecutorMessagesTest, LinesThatAreNoObjectsAreDataLoss) {
  for (const char* line : {"", "[]", "{", "3"}) {
    const Status fault = ParseLauncherMessage(line).status();
    EXPECT_EQ(fault.code(), StatusCode::kDataLoss) << line;
    EXPECT_EQ(fault.message(), "a line between launcher and executor is not a JSON object");
    EXPECT_EQ(engine::ParseStatistics(line).status().message(), "statistics are not a JSON object");
  }
}

TEST(ExecutorMessagesTest, AnOutcomeWhoseCodeIsNoneIsAFault) {
  ExecutorMessage message;
  message.done.emplace();
  message.done->status = Aborted("why");
  std::string line = ToLine(message);
  const std::string code = "\"code\":10";
  const size_t at = line.find(code);
  ASSERT_NE(at, std::string::npos) << line;
  for (const char* other : {"256", "266", "-1", "2"}) {
    std::string changed = line;
    changed.replace(at + code.size() - 2, 2, other);
    const Result<ExecutorMessage> parsed = ParseExecutorMessage(changed);
    ASSERT_TRUE(parsed.ok() && parsed->done.has_value()) << changed;
    EXPECT_EQ(parsed->done->status.code(), StatusCode::kInternal) << other;
  }
}

}  // namespace
}  // namespace heddle::cluster

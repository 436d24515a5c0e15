// SPDX-License-Identifier: Apache-2.0
// Checkpoints as objects, against a server that computes every signature itself
// (tests/support/object_server.py).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "cluster/checkpoints/checkpoint_stores.h"

namespace heddle::cluster {
namespace {

class ObjectServer {
 public:
  explicit ObjectServer(const char* fail_every = "0") {
    int pipes[2];
    if (pipe(pipes) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      dup2(pipes[1], 1);
      const std::string script = std::string(HEDDLE_SOURCE_DIR) + "/tests/support/object_server.py";
      execlp("python3", "python3", script.c_str(), fail_every, nullptr);
      _exit(127);
    }
    close(pipes[1]);
    for (char c = 0; read(pipes[0], &c, 1) == 1 && c != '\n';) port_.push_back(c);
    close(pipes[0]);
    setenv("AWS_ENDPOINT_URL", ("http://127.0.0.1:" + port_).c_str(), 1);
    setenv("AWS_REGION", "eu-test-1", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
  }
  ~ObjectServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
      unsetenv(name);
  }
  bool runs() const { return !port_.empty(); }

 private:
  pid_t pid_ = -1;
  std::string port_;
};

std::string Read(engine::CheckpointStore& store, const std::string& name, int64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  const Status status = store.Read(name, offset, text);
  return status.ok() ? text : status.message();
}

void Put(engine::CheckpointStore& store, const std::string& name, const std::string& bytes) {
  auto writer = store.Create(name);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(bytes).ok());
  const Status finished = (*writer)->Finish();
  ASSERT_TRUE(finished.ok()) << finished.ToString();
}

TEST(ObjectCheckpointsTest, AreWrittenReadAndRemoved) {
  const ObjectServer server;
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "python3 is not there";
  ASSERT_TRUE(server.runs());
  const auto store = *OpenCheckpoints("s3://bucket/heddle jobs/ä+b/");
  Put(*store, "j1-0/5-1/rank-0", "hello world");
  EXPECT_EQ(*store->SizeOf("j1-0/5-1/rank-0"), 11);
  EXPECT_EQ(Read(*store, "j1-0/5-1/rank-0", 6, 5), "world");
  std::string part(8, '\0');
  EXPECT_EQ(store->Read("j1-0/5-1/rank-0", 6, part).message(),
            "checkpoints: 'j1-0/5-1/rank-0' is shorter than it was");
  EXPECT_EQ(store->Read("j1-0/5-1/rank-0", 60, part).code(), StatusCode::kDataLoss);
  EXPECT_EQ(store->Read("j1-0/5-1/rank-1", 0, part).code(), StatusCode::kNotFound);
  EXPECT_EQ(store->SizeOf("j1-0/5-1/rank-1").status().code(), StatusCode::kNotFound);
  Put(*store, "j1-0/5-1/whole", "hello");
  EXPECT_EQ(
      Read(*store, "j1-0/5-1/whole", 1, 4),
      "checkpoints: the server sends 'heddle jobs/ä+b/j1-0/5-1/whole' from its beginning, not bytes 1-4");
  for (int rank = 1; rank < 9; ++rank) Put(*store, "j1-0/5-1/rank-" + std::to_string(rank), "x");
  Put(*store, "j1-0/5-10/rank-0", "other");
  std::vector<std::string> names = *ListCheckpoints("s3://bucket/heddle jobs/ä+b/", "j1-0/5-1");
  EXPECT_EQ(names.size(), 10u) << "in several answers";
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names[1], "j1-0/5-1/rank-1");
  Put(*store, "j2-0/7-1/rank-0", "1234567");
  EXPECT_EQ(*CheckpointFolders("s3://bucket/heddle jobs/ä+b/"),
            (std::map<std::string, int64_t>{{"j1-0", 11 + 5 + 8 + 5}, {"j2-0", 7}}));
  EXPECT_TRUE(store->RemoveAll("j2-0").ok());
  EXPECT_TRUE(store->RemoveAll("j1-0/5-1").ok());
  for (int rank = 0; rank < 9; ++rank)
    EXPECT_FALSE(store->SizeOf("j1-0/5-1/rank-" + std::to_string(rank)).ok()) << rank;
  EXPECT_EQ(*store->SizeOf("j1-0/5-10/rank-0"), 5);
  EXPECT_TRUE(store->RemoveAll("j1-0").ok());
  EXPECT_FALSE(store->SizeOf("j1-0/5-10/rank-0").ok());
}

TEST(ObjectCheckpointsTest, LargeOnesAreSentInParts) {
  const ObjectServer server;
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "python3 is not there";
  ASSERT_TRUE(server.runs());
  const auto store = *OpenCheckpoints("s3://bucket");
  std::string bytes;
  for (int i = 0; bytes.size() < (size_t{37} << 20); ++i) bytes += std::to_string(i * 7919);
  Put(*store, "j1/1-1/rank-0", bytes);
  EXPECT_EQ(*store->SizeOf("j1/1-1/rank-0"), static_cast<int64_t>(bytes.size()));
  EXPECT_EQ(Read(*store, "j1/1-1/rank-0", 0, bytes.size()), bytes);
  EXPECT_EQ(Read(*store, "j1/1-1/rank-0", (16 << 20) - 3, 9), bytes.substr((16 << 20) - 3, 9));
  auto mute = *store->Create("j1/1-3/mute");
  EXPECT_EQ(mute->Append(bytes).message(),
            "checkpoints: the server's reply about 'j1/1-3/mute' is not understood");
  {
    auto given_up = *store->Create("j1/1-2/rank-0");
    EXPECT_TRUE(given_up->Append(bytes).ok());
  }
  EXPECT_FALSE(store->SizeOf("j1/1-2/rank-0").ok());
}

TEST(ObjectCheckpointsTest, AServerThatFailsNowAndThenIsAskedAgain) {
  const ObjectServer server("3");
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "python3 is not there";
  ASSERT_TRUE(server.runs());
  const auto store = *OpenCheckpoints("s3://bucket/x");
  for (int i = 0; i < 4; ++i) {
    const std::string name = "j1/1-1/rank-" + std::to_string(i);
    Put(*store, name, "bytes");
    EXPECT_EQ(Read(*store, name, 0, 5), "bytes");
  }
}

TEST(ObjectCheckpointsTest, ErrorsSayWhatTheServerSays) {
  const ObjectServer server;
  if (std::system("command -v python3 >/dev/null") != 0) GTEST_SKIP() << "python3 is not there";
  ASSERT_TRUE(server.runs());
  const auto no_bucket = *OpenCheckpoints("s3://other/x");
  auto writer = *no_bucket->Create("j1/1-1/rank-0");
  EXPECT_EQ(writer->Finish().message(),
            "checkpoints: PUT s3://other/x/j1/1-1/rank-0: HTTP 404 NoSuchBucket: there is no such bucket");
  setenv("AWS_SECRET_ACCESS_KEY", "wrong", 1);
  const auto wrong = *OpenCheckpoints("s3://bucket/x");
  auto refused = *wrong->Create("j1/1-1/rank-0");
  const Status status = refused->Finish();
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("SignatureDoesNotMatch"), std::string::npos) << status.ToString();
  unsetenv("AWS_SECRET_ACCESS_KEY");
  const Status none = OpenCheckpoints("s3://bucket/x").status();
  EXPECT_EQ(none.code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(none.message(), "checkpoints: 's3://bucket/x' needs credentials");
  EXPECT_EQ(none.notes()[0],
            "start the worker with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in its environment");
}

TEST(ObjectCheckpointsTest, AServerThatIsNotThereIsToldInBoundedTime) {
  setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
  setenv("AWS_ACCESS_KEY_ID", "a", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "b", 1);
  const auto store = *OpenCheckpoints("s3://bucket/x");
  const Status status = store->SizeOf("j1").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("checkpoints: cannot reach 'http://127.0.0.1:1'"), std::string::npos);
  store->GiveUp();
  EXPECT_EQ(store->SizeOf("j1").status().message(), "the checkpoint is not needed any more");
  for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) unsetenv(name);
}

TEST(ObjectCheckpointsTest, WhatIsNoPlaceIsRefused) {
  for (const char* wrong : {"s3://", "s3:///x", "s3://bucket/x?y", "gs://bucket", "x"})
    EXPECT_EQ(CheckCheckpointLocation(wrong).code(), StatusCode::kUsage) << wrong;
  EXPECT_TRUE(CheckCheckpointLocation("s3://bucket").ok());
}

}  // namespace
}  // namespace heddle::cluster

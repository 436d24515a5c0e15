// SPDX-License-Identifier: Apache-2.0
#include "cluster/checkpoints/checkpoint_remover.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "cluster/network/loopback.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

bool Becomes(const std::function<bool()>& question) {
  const auto end = steady_clock::now() + std::chrono::seconds(30 * testing_support::kPatience);
  while (!question() && steady_clock::now() < end)
    std::this_thread::sleep_for(milliseconds(2));  // Another thread works.
  return question();
}

// An object store that takes connections and never answers: what the environment says is at its address.
class SilentStore {
 public:
  SilentStore() : listener_(ListenOnLoopback(&port_)) {
    setenv("AWS_ENDPOINT_URL", ("http://127.0.0.1:" + std::to_string(port_)).c_str(), 1);
    setenv("AWS_REGION", "eu-test-1", 1);
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  }
  ~SilentStore() {
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"})
      unsetenv(name);
  }
  /// Somebody has sent a request. The connection stays open.
  bool IsAsked() {
    if (!connection_.ok()) connection_ = Descriptor(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char byte;
    return recv(connection_.get(), &byte, 1, MSG_PEEK) == 1;
  }

 private:
  int port_ = 0;
  Descriptor listener_, connection_;
};

class CheckpointRemoverTest : public testing::Test {
 protected:
  void Put(const std::string& name) {
    auto writer = *store_->Create(name);
    EXPECT_TRUE(writer->Append("x").ok());
    EXPECT_TRUE(writer->Finish().ok());
  }
  bool Has(const std::string& name) { return store_->SizeOf(name).ok(); }
  std::function<void(const std::string&)> Listener() {
    return [this](const std::string& folder) {
      const std::lock_guard lock(mutex_);
      removed_.insert(folder);
    };
  }
  std::set<std::string> Removed() {
    const std::lock_guard lock(mutex_);
    return removed_;
  }

  testing_support::TemporaryFolder folder_;
  const std::string place_ = folder_.path() + "/checkpoints";
  std::unique_ptr<engine::CheckpointStore> store_ = *OpenCheckpoints(place_);

 private:
  std::mutex mutex_;
  std::set<std::string> removed_;
};

TEST_F(CheckpointRemoverTest, RemovesAllOfAFolderAndNothingElse) {
  for (const char* name : {"j1/2-3/rank-0", "j1/2-4/rank-1", "j2/1-1/rank-0", "j12/2-3/rank-0"}) Put(name);
  CheckpointRemover remover(Listener());
  remover.Remove(place_, "j1");
  remover.Remove(place_, "j1");  // What is not there is no error.
  remover.Remove(place_, "j2");
  EXPECT_TRUE(Becomes([&] { return Removed() == std::set<std::string>{"j1", "j2"}; }));
  for (const char* name : {"j1/2-3/rank-0", "j1/2-4/rank-1", "j2/1-1/rank-0"})
    EXPECT_FALSE(Has(name)) << name;
  EXPECT_TRUE(Has("j12/2-3/rank-0"));
}

TEST_F(CheckpointRemoverTest, WhatCannotBeRemovedHoldsUpNothing) {
  testing_support::WriteText(folder_.path() + "/file", "x");
  Put("j1/2-3/rank-0");
  CheckpointRemover remover(Listener());
  remover.Remove("no place", "j1");
  remover.Remove(folder_.path() + "/file", "j1");
  remover.Remove(place_, "j1");
  EXPECT_TRUE(Becomes([&] { return Removed() == std::set<std::string>{"j1"}; }))
      << "of what stays nobody is told";
  EXPECT_FALSE(Has("j1/2-3/rank-0"));
}

// A store that does not answer delays neither who asks nor the end of the worker.
TEST_F(CheckpointRemoverTest, NobodyWaitsForAStoreThatDoesNotAnswer) {
  SilentStore silent;
  Put("j1/2-3/rank-0");
  std::optional<CheckpointRemover> remover(std::in_place, Listener());
  const auto begin = steady_clock::now();
  remover->Remove("s3://bucket/jobs", "j1");
  remover->Remove(place_, "j1");
  EXPECT_LT(steady_clock::now() - begin, milliseconds(1'000 * testing_support::kPatience));
  ASSERT_TRUE(silent.IsAsked());
  const auto asked = steady_clock::now();
  remover.reset();
  EXPECT_LT(steady_clock::now() - asked, milliseconds(5'000 * testing_support::kPatience));
  EXPECT_TRUE(Has("j1/2-3/rank-0")) << "what has not been removed by then stays";
}

TEST_F(CheckpointRemoverTest, OneThatIsNeverAskedEndsAtOnce) { const CheckpointRemover remover(Listener()); }

}  // namespace
}  // namespace heddle::cluster

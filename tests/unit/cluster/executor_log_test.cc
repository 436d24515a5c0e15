// SPDX-License-Identifier: Apache-2.0
#include "cluster/executor/executor_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ExecutorLogTest : public testing::Test {
 protected:
  ExecutorLogTest() { fs::remove_all(folder_); }
  ~ExecutorLogTest() override { fs::remove_all(folder_); }
  std::unique_ptr<ExecutorLog> Open(const std::string& name, const ExecutorLogLimits& limits = {}) {
    return *ExecutorLog::Open(folder_, name, /*said=*/{}, limits);
  }
  static void Say(const ExecutorLog& log, const std::string& text) {
    ASSERT_EQ(write(log.write_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  const std::string folder_ = testing::TempDir() + "/executor_log_test";
};

ExecutorExit Killed() {
  ExecutorExit exit;
  exit.pid = 77;
  exit.signalled = true;
  exit.value = 9;
  return exit;
}

TEST_F(ExecutorLogTest, KeepsWhatWasSaidAndHowItEnded) {
  const auto log = Open("j1-1-0");
  Say(*log, "first\nlast words");
  log->End(Killed());
  EXPECT_EQ(log->path(), folder_ + "/j1-1-0.log");
  EXPECT_EQ(log->last_line(), "last words");
  EXPECT_EQ(ReadAll(log->path()), "first\nlast words\nexecutor 77 was killed by signal 9\n");
}

TEST_F(ExecutorLogTest, OneThatSaidNothingAndEndedWellLeavesNothing) {
  const auto log = Open("j1-1-0");
  log->End({});
  EXPECT_EQ(log->path(), "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ExecutorLogTest, IsBounded) {
  ExecutorLogLimits limits;
  limits.most_file_bytes = 10'000;
  const auto log = Open("j1-1-0", limits);
  for (int i = 0; i < 5'000; ++i) Say(*log, "line " + std::to_string(i) + "\n");
  log->End(Killed());
  EXPECT_EQ(log->last_line(), "line 4999");
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) bytes += static_cast<int64_t>(entry.file_size());
  EXPECT_LE(bytes, 60'000);  // two files, each at most a pipe's content past its limit
  EXPECT_NE(ReadAll(log->path()).find("killed by signal 9"), std::string::npos);
}

TEST_F(ExecutorLogTest, OldLogsGo) {
  ExecutorLogLimits limits;
  limits.most_logs = 3;
  for (int i = 0; i < 6; ++i) Open("j" + std::to_string(i) + "-1-0", limits)->End(Killed());
  size_t logs = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++logs;
  EXPECT_EQ(logs, 3u);
  EXPECT_TRUE(fs::exists(folder_ + "/j5-1-0.log"));
}

TEST_F(ExecutorLogTest, AFolderThatCannotBeMadeIsAnError) {
  EXPECT_EQ(ExecutorLog::Open("/proc/nowhere", "j1").status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/audit_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

int64_t LinesIn(const std::string& path) {
  const std::string text = testing_support::ReadText(path);
  return std::count(text.begin(), text.end(), '\n');
}

TEST(AuditLogTest, OneLineForEachRecordBehindTheOthers) {
  const testing_support::TemporaryFolder folder;
  VirtualClock clock;
  clock.Advance(1'500'000'000);
  for (int i = 0; i < 2; ++i) {
    const auto log = AuditLog::Open(folder.path(), {}, clock);
    ASSERT_TRUE(log.ok());
    (*log)->Write({.token = "ci",
                   .owner = "anna",
                   .peer = "127.0.0.1:1",
                   .rpc = "Jobs.Cancel",
                   .object = "j1\n\xff",
                   .outcome = "OK",
                   .why = ""});
  }
  const std::string line =
      R"({"time":"1970-01-01T00:00:01.500Z","token":"ci","owner":"anna","peer":"127.0.0.1:1","rpc":"Jobs.Cancel",)"
      "\"object\":\"j1\\n\xef\xbf\xbd\",\"outcome\":\"OK\"}\n";
  EXPECT_EQ(testing_support::ReadText(folder.path() + "/audit.log"), line + line);
  EXPECT_EQ(std::filesystem::status(folder.path() + "/audit.log").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST(AuditLogTest, IsRotatedBySize) {
  const testing_support::TemporaryFolder folder;
  VirtualClock clock;
  const auto log = AuditLog::Open(folder.path(), {.most_bytes = 1000, .kept_files = 2}, clock);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 100; ++i)
    (*log)->Write({.token = "ci", .rpc = "Jobs.Cancel", .object = std::to_string(i), .outcome = "OK"});
  for (const char* name : {"audit.log", "audit.log.1", "audit.log.2"}) {
    EXPECT_LE(std::filesystem::file_size(folder.path() + "/" + name), 1000u);
    EXPECT_GT(LinesIn(folder.path() + "/" + name), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/audit.log.3"));
  EXPECT_NE(testing_support::ReadText(folder.path() + "/audit.log").find("\"99\""), std::string::npos);
}

TEST(AuditLogTest, StrangersPushNobodyOut) {
  const testing_support::TemporaryFolder folder;
  VirtualClock clock;
  const auto log = AuditLog::Open(folder.path(), {}, clock);
  ASSERT_TRUE(log.ok());
  for (int i = 0; i < 1000; ++i) (*log)->WriteStranger({.rpc = "Jobs.List", .outcome = "UNAUTHENTICATED"});
  EXPECT_EQ(LinesIn(folder.path() + "/audit.log"), 10);
  clock.Advance(1'000'000'000);
  (*log)->WriteStranger({.rpc = "Jobs.List", .outcome = "UNAUTHENTICATED"});
  EXPECT_EQ(LinesIn(folder.path() + "/audit.log"), 11);
  EXPECT_NE(testing_support::ReadText(folder.path() + "/audit.log").find("\"strangers_before\":990"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "core/environment/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace heddle {
namespace {

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LogTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("heddle_log_" + std::to_string(getpid()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    ASSERT_TRUE(ConfigureLog({}).ok());
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ / "heddle.log"; }

  std::filesystem::path folder_;
};

TEST_F(LogTest, ALineHoldsNothingThatATerminalObeys) {
  ASSERT_TRUE(ConfigureLog({.level = LogLevel::kInfo, .standard_error = false, .file = path()}).ok());
  HEDDLE_LOG(kInfo, "job failed", {"file", "a\xff\x1b[31m\xc2\x9bmb\nc"});
  const std::string text = ReadFile(path());
  EXPECT_NE(text.find("job failed file=\"a\\xff\\x1b[31m\\u009bmb\\nc\"\n"), std::string::npos) << text;
}

TEST_F(LogTest, AnEventHasItsFields) {
  ASSERT_TRUE(ConfigureLog({.level = LogLevel::kInfo, .standard_error = false, .file = path()}).ok());
  HEDDLE_LOG(kInfo, "worker joined", {"worker", 3}, {"memory_bytes", int64_t{1} << 40}, {"name", "host.a"},
             {"path", "/tmp/a \"b\""}, {"ready", true}, {"load", 0.5}, {"why", Cancelled("no {}", "time")});
  const std::string text = ReadFile(path());
  EXPECT_NE(
      text.find(
          " info worker joined worker=3 memory_bytes=1099511627776 name=host.a path=\"/tmp/a \\\"b\\\"\" "
          "ready=true load=0.5 why=\"no time\"\n"),
      std::string::npos)
      << text;
}

TEST_F(LogTest, BelowTheLevelNothingIsEvaluated) {
  ASSERT_TRUE(ConfigureLog({.level = LogLevel::kWarning, .standard_error = false, .file = path()}).ok());
  int evaluated = 0;
  HEDDLE_LOG(kInfo, "quiet", {"n", ++evaluated});
  EXPECT_EQ(evaluated, 0);
  HEDDLE_LOG(kError, "loud", {"n", ++evaluated});
  HEDDLE_LOG(kWarning, "no fields");
  EXPECT_EQ(evaluated, 1);
  SetLogLevel(LogLevel::kDebug);
  HEDDLE_LOG(kDebug, "detail");
  const std::string text = ReadFile(path());
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("error loud n=1\n"), std::string::npos);
  EXPECT_NE(text.find("warning no fields\n"), std::string::npos);
}

TEST_F(LogTest, AFileThatIsFullIsRenamed) {
  ASSERT_TRUE(ConfigureLog({.level = LogLevel::kInfo,
                            .standard_error = false,
                            .file = path(),
                            .file_bytes = 2000,
                            .old_files = 2})
                  .ok());
  for (int i = 0; i < 200; ++i) HEDDLE_LOG(kInfo, "event", {"number", i});
  int64_t bytes = 0;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    ++files;
    bytes += static_cast<int64_t>(entry.file_size());
  }
  EXPECT_EQ(files, 3);
  EXPECT_LE(bytes, 6000);
  EXPECT_NE(ReadFile(path()).find("number=199\n"), std::string::npos);
}

TEST_F(LogTest, AFileThatCannotBeOpenedIsAnError) {
  std::ofstream(folder_ / "plain") << "x";
  const Status status = ConfigureLog({.standard_error = false, .file = folder_ / "plain" / "heddle.log"});
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(status.message().starts_with("log file cannot be opened: ")) << status.message();
}

TEST(LogLevelTest, NamesReadBack) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff})
    EXPECT_EQ(ParseLogLevel(Name(level)), level);
  EXPECT_FALSE(ParseLogLevel("loud").has_value());
}

}  // namespace
}  // namespace heddle

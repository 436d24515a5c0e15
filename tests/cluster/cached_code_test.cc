// SPDX-License-Identifier: Apache-2.0
// Machine code on disk that somebody has changed is not run.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>

#include "tests/support/process.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

const std::string kBinary = std::string(HEDDLE_BINARY_DIR) + "/heddle";
constexpr const char* kScript =
    "X = rand(rows=20000, cols=300, seed=1)\nfor (i in 1:2) print(sum(exp(X * 2) + X * X - log(X + i)))\n";

class CachedCodeTest : public testing::Test {
 protected:
  CachedCodeTest() {
    setenv("XDG_CACHE_HOME", (folder_.path() + "/cache").c_str(), 1);
    setenv("XDG_STATE_HOME", (folder_.path() + "/state").c_str(), 1);
  }
  ~CachedCodeTest() override {
    setenv("XDG_CACHE_HOME", HEDDLE_BINARY_DIR "/cache-of-tests", 1);
    unsetenv("XDG_STATE_HOME");
  }
  Finished Run() {
    return RunProcess({kBinary, "run", "-stats", "--threads", "1", "-e", kScript}, folder_.path());
  }
  std::map<std::string, std::string> Code() const {
    std::map<std::string, std::string> code;
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/cache/heddle/code"))
      if (entry.path().extension() == ".code") code[entry.path()] = ReadText(entry.path());
    return code;
  }
  static void ExpectSource(const Finished& run, size_t compiled, size_t from_disk) {
    const std::string text = "Fused operators: " + std::to_string(compiled) + " regions compiled, " +
                             std::to_string(from_disk) + " from disk";
    EXPECT_NE(run.errors.find(text), std::string::npos) << text << "\n" << run.errors;
  }

  TemporaryFolder folder_;
};

TEST_F(CachedCodeTest, WhatWasChangedIsMadeAgain) {
  const Finished first = Run();
  ASSERT_EQ(first.code, 0) << first.errors;
  const std::map<std::string, std::string> good = Code();
  ASSERT_FALSE(good.empty()) << first.errors;
  ExpectSource(first, good.size(), 0);
  ExpectSource(Run(), 0, good.size());

  const auto expect_made_again = [&](const char* why) {
    const Finished run = Run();
    EXPECT_EQ(run.code, 0) << why << run.errors;
    EXPECT_EQ(run.output, first.output) << why;
    ExpectSource(run, good.size(), 0);
    EXPECT_EQ(Code(), good) << why;
    ExpectSource(Run(), 0, good.size());
  };
  for (const auto& [path, text] : good) {
    std::string changed = text;
    changed[changed.size() / 2] = static_cast<char>(changed[changed.size() / 2] ^ 1);
    WriteText(path, changed);
  }
  expect_made_again("a bit of each");
  for (const auto& [path, text] : good) ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  expect_made_again("open to others");
  for (const auto& [path, text] : good) {
    fs::rename(path, path + ".kept");
    fs::create_symlink(path + ".kept", path);
  }
  expect_made_again("links");
  for (const auto& [path, text] : good) {
    struct stat status = {};
    ASSERT_EQ(lstat(path.c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode) && (status.st_mode & 07777) == 0600) << path;
  }
}

}  // namespace
}  // namespace heddle::testing_support

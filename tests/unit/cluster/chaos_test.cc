// SPDX-License-Identifier: Apache-2.0
// The parts of `heddle sim --chaos`: what files were, and messages in the bytes of a connection.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cluster/chaos/fault_injector.h"
#include "cluster/chaos/grpc_message_count.h"
#include "cluster/chaos/saved_files.h"
#include "cluster/executor/fresh_output.h"
#include "engine/control/local_run.h"
#include "ops/io/files/hidden_names.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;
using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

size_t EntriesIn(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// As Heddle writes: another file takes the name.
void Replace(const std::string& path, const std::string& text) {
  WriteText(path + ".new", text);
  fs::rename(path + ".new", path);
}

class SavedFilesTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  TemporaryFolder folder_;
  SavedFiles files_{folder_.path(), engine::RootsOfRun()};
};

TEST_F(SavedFilesTest, PutsBackWhatWasThereAtFirst) {
  WriteText(Path("a"), "old");
  ASSERT_TRUE(files_.Save("a").ok());
  ASSERT_TRUE(files_.Save("new").ok());
  Replace(Path("a"), "one");
  ASSERT_TRUE(files_.Save("./a").ok());
  Replace(Path("a"), "two");
  WriteText(Path("new"), "x");
  const Result<int64_t> restored = files_.Restore();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(*restored, 2);
  EXPECT_EQ(ReadText(Path("a")), "old");
  EXPECT_FALSE(fs::exists(Path("new")));
  EXPECT_EQ(EntriesIn(folder_.path()), 1u);
}

TEST_F(SavedFilesTest, LeavesAloneWhatWasNotChanged) {
  WriteText(Path("a"), "old");
  struct stat before {
  }, after{};
  ASSERT_EQ(stat(Path("a").c_str(), &before), 0);
  ASSERT_TRUE(files_.Save("a").ok());
  const Result<int64_t> restored = files_.Restore();
  ASSERT_TRUE(restored.ok()) << restored.status().ToString();
  EXPECT_EQ(*restored, 0);
  ASSERT_EQ(stat(Path("a").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(EntriesIn(folder_.path()), 1u);
}

TEST_F(SavedFilesTest, PutsBackFoldersOfPartsAndRemovedFiles) {
  WriteText(Path("x/part-0"), "0");
  WriteText(Path("x/part-1"), "1");
  WriteText(Path("gone"), "here");
  ASSERT_TRUE(files_.Save("x").ok());
  ASSERT_TRUE(files_.Save("gone").ok());
  fs::remove_all(Path("x"));
  WriteText(Path("x"), "a file now");
  fs::remove(Path("gone"));
  ASSERT_TRUE(files_.Restore().ok());
  EXPECT_EQ(ReadText(Path("x/part-0")) + ReadText(Path("x/part-1")), "01");
  EXPECT_EQ(ReadText(Path("gone")), "here");
  EXPECT_EQ(EntriesIn(folder_.path()), 2u);
}

TEST_F(SavedFilesTest, PutsBackAFileWhereAFolderIsNow) {
  WriteText(Path("x"), "file");
  ASSERT_TRUE(files_.Save("x").ok());
  fs::remove(Path("x"));
  WriteText(Path("x/part-0"), "0");
  ASSERT_TRUE(files_.Restore().ok());
  EXPECT_EQ(ReadText(Path("x")), "file");
}

TEST_F(SavedFilesTest, ALinkIsPutBackAndWhatItLeadsTo) {
  WriteText(Path("data"), "old");
  fs::create_symlink("data", Path("link"));
  ASSERT_TRUE(files_.Save("link").ok());
  Replace(Path("data"), "new");
  fs::remove(Path("link"));
  ASSERT_TRUE(files_.Restore().ok());
  EXPECT_EQ(ReadText(Path("link")), "old");
  EXPECT_TRUE(fs::is_symlink(Path("link")));
  EXPECT_EQ(EntriesIn(folder_.path()), 2u);
}

TEST_F(SavedFilesTest, WhatCannotBeKeptOrPutBackIsAnError) {
  fs::create_directories(Path("deep/inner"));
  const Status kept = files_.Save("deep");
  EXPECT_NE(kept.message().find("cannot keep what 'deep' was before this attempt changes it: Is a directory"),
            std::string::npos)
      << kept.ToString();
  EXPECT_EQ(EntriesIn(folder_.path()), 1u);
  WriteText(Path("x"), "file");
  WriteText(Path("y"), "other");
  ASSERT_TRUE(files_.Save("x").ok());
  ASSERT_TRUE(files_.Save("y").ok());
  fs::remove(Path("x"));
  Replace(Path("y"), "changed");
  fs::create_directories(Path("x/inner/more"));
  const Result<int64_t> restored = files_.Restore();
  EXPECT_NE(restored.status().message().find("cannot put back what 'x' was before an attempt changed it: "),
            std::string::npos)
      << restored.status().ToString();
  // It is there, under a name that nobody removes, and the files behind it are put back.
  ASSERT_EQ(restored.status().notes().size(), 1u);
  const std::string note = restored.status().notes()[0];
  const std::string begin = "what 'x' was is now '";
  ASSERT_TRUE(note.starts_with(begin)) << note;
  const std::string path = note.substr(begin.size(), note.size() - begin.size() - 1);
  EXPECT_EQ(ReadText(path), "file");
  EXPECT_FALSE(ops::IsHiddenName(path.substr(path.rfind('/') + 1)));
  EXPECT_EQ(ReadText(Path("y")), "other");
  EXPECT_EQ(EntriesIn(folder_.path()), 4u);
}

// A frame of HTTP/2 on stream 1.
std::string Frame(char type, const std::string& payload) {
  const size_t size = payload.size();
  std::string frame;
  for (const int shift : {16, 8, 0}) frame += static_cast<char>(size >> shift);
  frame += type;
  return frame + std::string("\0\0\0\0\1", 5) + payload;
}

std::string Message(size_t size) {
  std::string message(1, '\0');
  for (const int shift : {24, 16, 8, 0}) message += static_cast<char>(size >> shift);
  return message + std::string(size, 'x');
}

TEST(GrpcMessageCountTest, FindsMessagesHoweverTheBytesAreCut) {
  const std::string large = Message(100'000);
  std::string bytes =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, "settings") + Frame(1, std::string(300, 'h'));
  bytes += Frame(0, Message(5) + Message(0) + large.substr(0, 3)) + Frame(8, "1234");
  for (size_t at = 3; at < large.size(); at += 16'384) bytes += Frame(0, large.substr(at, 16'384));
  bytes += Frame(0, "") + Frame(0, Message(7));
  for (const size_t step : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    GrpcMessageCount count(/*from_client=*/true);
    std::vector<size_t> sizes;
    for (size_t at = 0; at < bytes.size(); at += step)
      count.Feed(std::string_view(bytes).substr(at, step), [&](size_t size) { sizes.push_back(size); });
    EXPECT_EQ(sizes, (std::vector<size_t>{5, 0, 100'000, 7})) << step;
  }
}

TEST(FreshOutputTest, IsWhatNoAttemptHasPrintedYet) {
  EXPECT_EQ(FreshOutput(0, 0, "abc"), "abc");
  EXPECT_EQ(FreshOutput(2, 0, "abc"), "c");
  EXPECT_EQ(FreshOutput(3, 0, "abc"), "");
  EXPECT_EQ(FreshOutput(5, 3, "abc"), "c");
  EXPECT_EQ(FreshOutput(5, 6, "abc"), "");  // Bytes are missing.
}

TEST(FaultInjectorTest, WaitsAreExponentiallyDistributed) {
  SeededRandom random(1);
  double sum = 0;
  int longer = 0;
  constexpr int kWaits = 100'000;
  for (int i = 0; i < kWaits; ++i) {
    const double wait = WaitOfMean(random, 3);
    sum += wait;
    longer += wait > 3 ? 1 : 0;
  }
  EXPECT_NEAR(sum / kWaits, 3, 0.05);
  EXPECT_NEAR(static_cast<double>(longer) / kWaits, 0.3679, 0.01);
}

}  // namespace
}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/replacement.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "ops/io/files/files.h"
#include "ops/io/files/hidden_names.h"
#include "tests/support/process.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;
using testing_support::ReadText;
using testing_support::WriteText;

class ReplacementTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& name) const { return folder_.path() + "/" + name; }
  Status Replace(const std::string& name, const std::string& text) { return files_->Replace(name, text); }
  mode_t ModeOf(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(stat(PathOf(name).c_str(), &status), 0) << name;
    return status.st_mode & 07777;
  }
  size_t Entries() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

  testing_support::TemporaryFolder folder_;
  std::unique_ptr<Files> files_ = MakeFiles(folder_.path());
};

TEST_F(ReplacementTest, AnOlderFileHandsOnItsModeAndANewOneGoesByTheUmask) {
  for (const mode_t mode : {0600, 0640, 0444, 0664, 0777}) {
    WriteText(PathOf("old"), "old");
    ASSERT_EQ(chmod(PathOf("old").c_str(), mode), 0);
    ASSERT_TRUE(Replace("old", "new").ok());
    EXPECT_EQ(ModeOf("old"), mode);
    EXPECT_EQ(ReadText(PathOf("old")), "new");
    fs::remove(PathOf("old"));
  }
  const mode_t before = umask(027);
  EXPECT_TRUE(Replace("fresh", "new").ok());
  umask(before);
  EXPECT_EQ(ModeOf("fresh"), 0640u);
}

TEST_F(ReplacementTest, OwnerAndGroupAreKeptWhereThatIsAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  WriteText(PathOf("theirs"), "old");
  ASSERT_EQ(chown(PathOf("theirs").c_str(), 1234, 4321), 0);
  ASSERT_EQ(chmod(PathOf("theirs").c_str(), 0640), 0);
  ASSERT_TRUE(Replace("theirs", "new").ok());
  struct stat status {};
  ASSERT_EQ(stat(PathOf("theirs").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 1234u);
  EXPECT_EQ(status.st_gid, 4321u);
  EXPECT_EQ(status.st_mode & 07777, 0640u);
}

TEST_F(ReplacementTest, LinksStayAndWhatTheyPointToIsReplaced) {
  fs::create_directory(PathOf("sub"));
  WriteText(PathOf("sub/target"), "old");
  fs::create_symlink("sub/target", PathOf("link"));
  fs::create_symlink(PathOf("link"), PathOf("second"));
  ASSERT_TRUE(Replace("second", "new").ok());
  EXPECT_TRUE(fs::is_symlink(PathOf("link")));
  EXPECT_TRUE(fs::is_symlink(PathOf("second")));
  EXPECT_EQ(ReadText(PathOf("sub/target")), "new");

  fs::create_symlink("sub/later", PathOf("dangling"));
  ASSERT_TRUE(Replace("dangling", "first").ok());
  EXPECT_TRUE(fs::is_symlink(PathOf("dangling")));
  EXPECT_EQ(ReadText(PathOf("sub/later")), "first");

  fs::create_symlink("round", PathOf("circle"));
  fs::create_symlink("circle", PathOf("round"));
  EXPECT_EQ(Replace("circle", "x").message(),
            "cannot write 'circle': it is a link that leads round in a circle");
  fs::create_symlink("/dev/null", PathOf("device"));
  EXPECT_EQ(Replace("device", "x").message(), "cannot write 'device': it is no ordinary file");
  fs::create_symlink("sub", PathOf("folder"));
  EXPECT_EQ(Replace("folder", "x").message(), "cannot write 'folder': a directory of that name is there");
}

TEST_F(ReplacementTest, EveryNameThatTheFileSystemTakesCanBeWritten) {
  for (const size_t size : {1, 240, 254, 255}) {
    const std::string name(size, 'n');
    ASSERT_TRUE(Replace(name, "old").ok()) << size;
    ASSERT_TRUE(Replace(name, "new").ok()) << size;
    EXPECT_EQ(ReadText(PathOf(name)), "new");
  }
  EXPECT_EQ(Entries(), 4u) << "nothing else is left";
  const Status status = Replace(std::string(256, 'n'), "new");
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "cannot write '" + std::string(256, 'n') + "': File name too long");
}

TEST_F(ReplacementTest, WithoutCommitNothingHasHappened) {
  WriteText(PathOf("old"), "old");
  {
    const ScriptPaths paths(folder_.path(), {});
    Result<FilePlace> place = paths.Find("old", ScriptPaths::Use::kWrite);
    ASSERT_TRUE(place.ok());
    Result<Replacement> replacement = Replacement::Begin(*std::move(place), "old");
    ASSERT_TRUE(replacement.ok());
    ASSERT_EQ(write(replacement->fd(), "new", 3), 3);
  }
  EXPECT_EQ(ReadText(PathOf("old")), "old");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ReplacementTest, TellsHiddenNamesBeforeTheyAreThereAndWhenTheyAreGone) {
  std::vector<std::pair<std::string, bool>> told;
  HiddenNames::OfProcess().Tell([&](const std::string& path, bool is_gone) {
    EXPECT_FALSE(fs::exists(path)) << path;
    told.emplace_back(path, is_gone);
  });
  EXPECT_TRUE(Replace("x", "new").ok());
  HiddenNames::OfProcess().Tell(nullptr);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[1], std::pair(told[0].first, true));
  EXPECT_FALSE(told[0].second);
  // As of a process that was killed in between.
  WriteText(told[0].first, "new");
  RemoveHiddenPath(told[0].first);
  RemoveHiddenPath(PathOf("x"));  // which is no hidden name
  EXPECT_EQ(ReadText(PathOf("x")), "new");
  EXPECT_EQ(Entries(), 1u);
}

// In a process of its own, which ends as one that was interrupted does.
TEST_F(ReplacementTest, AProcessThatEndsInTheMidstLetsNoFileTakeItsPlace) {
  WriteText(PathOf("old"), "old");
  EXPECT_EXIT(
      {
        Result<FilePlace> place = ScriptPaths(folder_.path(), {}).Find("old", ScriptPaths::Use::kWrite);
        if (!place.ok()) _exit(1);
        Result<Replacement> replacement = Replacement::Begin(*std::move(place), "old");
        if (!replacement.ok() || write(replacement->fd(), "new", 3) != 3) _exit(1);
        AbandonReplacements();
        std::thread commits([&] {
          (void)replacement->Commit();
          _exit(2);
        });
        usleep(100'000);  // It would be done by then.
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(ReadText(PathOf("old")), "old");
  EXPECT_EQ(Entries(), 1u);
}

}  // namespace
}  // namespace heddle::ops

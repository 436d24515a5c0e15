// SPDX-License-Identifier: Apache-2.0
// Folders that only their user may enter, where somebody else was there first.
#include "ops/io/files/own_folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

// `shared` is a folder like /tmp.
class OwnFoldersTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/heddle-own-folders-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    fs::create_directory(root_ + "/private");
    fs::create_directory(root_ + "/shared");
    ASSERT_EQ(chmod((root_ + "/shared").c_str(), 01777), 0);
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string Fault(const std::string& path, const FolderRules& rules = {}) {
    const Result<Descriptor> folder = OpenFolderForUser(path, rules);
    EXPECT_TRUE(folder.ok() || folder.status().code() == StatusCode::kPermissionDenied);
    if (folder.ok()) return "none";
    const std::vector<std::string> notes = folder.status().notes();
    return folder.status().message() + (notes.empty() ? "" : "; " + notes[0]);
  }
  static std::string OpenToOthers(const std::string& path) {
    return "the folder '" + path + "' is open to others; close it: chmod 700 " + path;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat status = {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  std::string root_;
};

TEST_F(OwnFoldersTest, AreMadeForTheirUserUnderAnyUmask) {
  for (const mode_t mask : {0, 022, 0777}) {
    const std::string above = fmt::format("{}/shared/{:o}", root_, mask);
    const mode_t before = umask(mask);
    EXPECT_EQ(Fault(above + "/one/two/"), "none");
    umask(before);
    for (const char* const name : {"", "/one", "/one/two"}) EXPECT_EQ(ModeOf(above + name), 0700u) << name;
  }
}

TEST_F(OwnFoldersTest, NoLinkInAFolderOfEverybodyIsFollowed) {
  const std::string link = root_ + "/shared/heddle-1";
  fs::create_directory_symlink(root_ + "/private", link);
  const std::string fault =
      "'" + link +
      "' is a link in a folder that everybody may write to; somebody else may have made "
      "it: remove it, or name another folder";
  EXPECT_EQ(Fault(link), fault);
  EXPECT_EQ(Fault(link + "/state/master"), fault);
  EXPECT_TRUE(fs::is_empty(root_ + "/private"));
  EXPECT_EQ(SecretOfUser(link, "key"), std::nullopt);
  EXPECT_TRUE(fs::is_empty(root_ + "/private"));
}

TEST_F(OwnFoldersTest, LinksThatOnlyTheUserCanHaveMadeAreFollowed) {
  fs::create_directory(root_ + "/elsewhere");
  fs::create_directory_symlink(root_ + "/elsewhere", root_ + "/private/cache");
  EXPECT_EQ(Fault(root_ + "/private/cache/code"), "none");
  EXPECT_EQ(ModeOf(root_ + "/elsewhere/code"), 0700u);
  EXPECT_EQ(Fault(root_ + "/private/cache"), OpenToOthers(root_ + "/private/cache"));
}

TEST_F(OwnFoldersTest, AFileInItsPlaceIsNamed) {
  const std::string file = root_ + "/shared/file";
  std::ofstream(file) << "text";
  EXPECT_EQ(Fault(file), "'" + file + "' is not a folder");
  EXPECT_EQ(Fault(file + "/state"), "'" + file + "' is not a folder");
  EXPECT_TRUE(fs::is_regular_file(file));
}

TEST_F(OwnFoldersTest, OneThatOthersMayEnterIsRefusedOrClosed) {
  const std::string folder = root_ + "/shared/state";
  fs::create_directory(folder);
  for (const mode_t mode : {0755, 0710, 0701}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(Fault(folder), OpenToOthers(folder));
    EXPECT_EQ(ModeOf(folder), mode);
    EXPECT_EQ(Fault(folder, {.is_closed = true}), "none");
    EXPECT_EQ(ModeOf(folder), 0700u);
    EXPECT_EQ(Fault(folder), "none");
  }
  // What they have put there stays there.
  for (const mode_t mode : {0777, 01777, 0720, 0702}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_EQ(Fault(folder, {.is_closed = true}), OpenToOthers(folder));
    EXPECT_EQ(ModeOf(folder), mode);
  }
}

TEST_F(OwnFoldersTest, OneOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make one";
  const std::string folder = root_ + "/shared/state";
  fs::create_directory(folder);
  ASSERT_EQ(chown(folder.c_str(), 1234, 1234), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(Fault(folder), "the folder '" + folder + "' belongs to another user");
  EXPECT_EQ(Fault(folder + "/master"), "the folder '" + folder + "' belongs to another user");
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(OwnFoldersTest, LookingMakesNone) {
  EXPECT_EQ(Fault(root_ + "/private/a/b", {.is_made = false}),
            "cannot find the folder '" + root_ + "/private/a': No such file or directory");
  EXPECT_TRUE(fs::is_empty(root_ + "/private"));
}

}  // namespace
}  // namespace heddle::ops

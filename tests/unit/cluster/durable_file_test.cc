// SPDX-License-Identifier: Apache-2.0
#include "cluster/store/durable_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using Place = DurableFile::Place;
using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class DurableFileTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  int Files() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_.path()),
                                          std::filesystem::directory_iterator()));
  }
  const TemporaryFolder folder_;
};

TEST_F(DurableFileTest, AFileIsThereWholeAndForItsUserAlone) {
  umask(0);
  DurableFile file(Path("a"));
  ASSERT_EQ(file.Open(), 0);
  EXPECT_EQ(file.Append("one"), 0);
  EXPECT_EQ(file.Append("two"), 0);
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
  EXPECT_EQ(file.Finish(Place::kFree), 0);
  umask(022);
  EXPECT_EQ(ReadText(Path("a")), "onetwo");
  EXPECT_EQ(file.bytes(), 6);
  struct stat status {};
  ASSERT_EQ(stat(Path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(Files(), 1);
}

TEST_F(DurableFileTest, OnlyWhoIsAskedToTakesThePlaceOfAnother) {
  for (const Place place : {Place::kFree, Place::kTaken}) {
    WriteText(Path("a"), "old");
    DurableFile file(Path("a"));
    ASSERT_EQ(file.Open(), 0);
    EXPECT_EQ(file.Append("new"), 0);
    EXPECT_EQ(file.Finish(place), place == Place::kFree ? EEXIST : 0);
    EXPECT_EQ(ReadText(Path("a")), place == Place::kFree ? "old" : "new");
  }
  EXPECT_EQ(Files(), 1);
}

TEST_F(DurableFileTest, TwoOfOneNameDoNotMeet) {
  DurableFile first(Path("a")), second(Path("a"));
  ASSERT_EQ(first.Open(), 0);
  ASSERT_EQ(second.Open(), 0);
  EXPECT_EQ(first.Append("first"), 0);
  EXPECT_EQ(second.Append("2"), 0);
  EXPECT_EQ(first.Finish(Place::kFree), 0);
  EXPECT_EQ(second.Finish(Place::kFree), EEXIST);
  EXPECT_EQ(ReadText(Path("a")), "first");
}

TEST_F(DurableFileTest, NothingIsLeftOfOneThatIsGivenUp) {
  {
    DurableFile file(Path("a"));
    ASSERT_EQ(file.Open(), 0);
    EXPECT_EQ(file.Append("half"), 0);
  }
  EXPECT_EQ(Files(), 0);
  EXPECT_EQ(DurableFile(Path("none/a")).Open(), ENOENT);
  EXPECT_EQ(SyncFolder(Path("none")), ENOENT);
}

}  // namespace
}  // namespace heddle::cluster

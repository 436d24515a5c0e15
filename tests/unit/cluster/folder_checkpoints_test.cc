// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

using testing_support::TemporaryFolder;

class FolderCheckpointsTest : public testing::Test {
 protected:
  std::string Read(const std::string& name) {
    const Result<int64_t> size = store_->SizeOf(name);
    if (!size.ok()) return size.status().message();
    std::string bytes(static_cast<size_t>(*size), '\0');
    EXPECT_TRUE(store_->Read(name, 0, bytes).ok());
    return bytes;
  }
  size_t Files() const {
    size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      files += entry.is_regular_file() ? 1 : 0;
    return files;
  }

  TemporaryFolder folder_;
  const std::string place_ = folder_.path() + "/a/b";
  std::unique_ptr<engine::CheckpointStore> store_ = *OpenCheckpoints(place_);
};

TEST_F(FolderCheckpointsTest, AnObjectIsThereWhenItIsFinished) {
  auto writer = *store_->Create("j1/2-3/rank-0");
  EXPECT_TRUE(writer->Append("one").ok());
  EXPECT_EQ(store_->SizeOf("j1/2-3/rank-0").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(writer->Append("two").ok());
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Read("j1/2-3/rank-0"), "onetwo");
  std::string part(3, '\0');
  EXPECT_TRUE(store_->Read("j1/2-3/rank-0", 2, part).ok());
  EXPECT_EQ(part, "etw");
  const std::string path = folder_.path() + "/a/b/j1/2-3/rank-0";
  EXPECT_EQ(store_->Read("j1/2-3/rank-0", 4, part).message(),
            fmt::format("checkpoints: '{}' is shorter than it was", path));
  EXPECT_EQ(store_->Read("j1/other", 0, part).code(), StatusCode::kNotFound);
}

TEST_F(FolderCheckpointsTest, NothingIsLeftOfOneThatIsGivenUp) {
  {
    auto writer = *store_->Create("j1/2-3/rank-0");
    EXPECT_TRUE(writer->Append("one").ok());
  }
  EXPECT_EQ(Files(), 0u);
}

TEST_F(FolderCheckpointsTest, FoldersAreRemovedWithAllThatIsInThem) {
  for (const char* name : {"j1/2-3/rank-0", "j1/2-3/rank-1", "j1/2-4/rank-0", "j12/2-3/rank-0"})
    EXPECT_TRUE((*store_->Create(name))->Finish().ok());
  std::vector<std::string> names = *ListCheckpoints(place_, "j1");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"j1/2-3/rank-0", "j1/2-3/rank-1", "j1/2-4/rank-0"}));
  EXPECT_TRUE(ListCheckpoints(place_, "j2")->empty());
  EXPECT_TRUE(store_->RemoveAll("j1/2-3").ok());
  EXPECT_EQ(Files(), 2u);
  EXPECT_TRUE(store_->RemoveAll("j1").ok());
  EXPECT_TRUE(store_->RemoveAll("j1").ok()) << "again";
  EXPECT_EQ(Files(), 1u);
}

TEST_F(FolderCheckpointsTest, OthersMayNotReadThem) {
  EXPECT_TRUE((*store_->Create("j1/2-3/rank-0"))->Finish().ok());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(folder_.path() + "/a/b/j1").permissions(), perms::owner_all);
  EXPECT_EQ(std::filesystem::status(folder_.path() + "/a/b/j1/2-3/rank-0").permissions(),
            perms::owner_read | perms::owner_write);
}

TEST_F(FolderCheckpointsTest, APlaceIsAnAbsolutePath) {
  EXPECT_EQ(OpenCheckpoints("checkpoints").status().code(), StatusCode::kUsage);
  EXPECT_EQ(OpenCheckpoints("").status().code(), StatusCode::kUsage);
}

TEST_F(FolderCheckpointsTest, AFileInThePlaceOfAFolderIsAnError) {
  testing_support::WriteText(folder_.path() + "/file", "x");
  const auto store = *OpenCheckpoints(folder_.path() + "/file");
  const Status status = store->Create("j1/2-3/rank-0").status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("checkpoints: cannot make"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace heddle::cluster

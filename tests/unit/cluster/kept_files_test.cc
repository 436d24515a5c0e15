// SPDX-License-Identifier: Apache-2.0
#include "cluster/checkpoints/kept_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "engine/control/local_run.h"
#include "tests/support/process.h"
#include "tests/unit/engine/script_runner.h"

namespace heddle::cluster {
namespace {

using testing_support::ReadText;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

constexpr const char* kScript =
    "X = read(\"x.csv\", format=\"csv\")\nwrite(X * 2, \"x.csv\", format=\"csv\")\n"
    "if (sum(X) > 5) { X = read(\"new\", format=\"csv\") }\nwrite(X, \"only-written\", format=\"csv\")\n";

class KeptFilesTest : public testing::Test {
 protected:
  static constexpr auto kOurs = [] { return true; };

  // Of the attempt with this epoch.
  std::unique_ptr<KeptFiles> Attempt(int epoch) {
    return std::make_unique<KeptFiles>(program_, folder_.path(), engine::RootsOfRun(), *files_, store_place_,
                                       "j1-a/" + std::to_string(epoch), *store_);
  }
  // As the job changes a file behind checkpoint `number`.
  void Change(KeptFiles& kept, int64_t number, const std::string& path, const std::string& text) {
    const Result<bool> is_kept = kept.Keep(path, number, kOurs);
    ASSERT_TRUE(is_kept.ok() && *is_kept) << is_kept.status().ToString();
    ASSERT_TRUE(files_->Replace(path, text).ok());
  }
  std::string Text(const std::string& name) const { return ReadText(folder_.path() + "/" + name); }
  size_t Objects() { return ListCheckpoints(store_place_, "j1-a")->size(); }

  TemporaryFolder folder_, place_;
  const std::string store_place_ = place_.path() + "/c";
  const std::unique_ptr<engine::CheckpointStore> store_ = FolderCheckpoints(store_place_);
  const std::unique_ptr<ops::Files> files_ = ops::MakeFiles(folder_.path(), nullptr, engine::RootsOfRun());
  const Program program_ = engine::CompileOrDie(kScript);
};

TEST_F(KeptFilesTest, AnAttemptFindsWhatWasThereAtItsCheckpoint) {
  WriteText(folder_.path() + "/x.csv", "begin");
  const auto first = Attempt(5);
  Change(*first, 0, "x.csv", "0a");
  Change(*first, 0, "./x.csv", "0b");
  Change(*first, 1, "x.csv", "1a");
  Change(*first, 1, "x.csv", "1b");
  Change(*first, 2, "x.csv", "2a");
  ASSERT_TRUE(Attempt(6)->PutBack("j1-a/5-2").ok());
  EXPECT_EQ(Text("x.csv"), "1b");
  const auto second = Attempt(16);
  Change(*second, 0, "x.csv", "16a");
  Change(*second, 1, "x.csv", "16b");
  ASSERT_TRUE(Attempt(17)->PutBack("j1-a/16-1").ok());
  EXPECT_EQ(Text("x.csv"), "16a");
  ASSERT_TRUE(Attempt(17)->PutBack("j1-a/5-1").ok());
  EXPECT_EQ(Text("x.csv"), "0b");
  // Those of checkpoints that nobody needs have gone.
  ASSERT_TRUE(store_->RemoveAll("j1-a/5-0").ok());
  ASSERT_TRUE(Attempt(17)->PutBack("").ok());
  EXPECT_EQ(Text("x.csv"), "begin");
}

TEST_F(KeptFilesTest, AFileThatWasNotThereIsRemoved) {
  const auto first = Attempt(1);
  Change(*first, 3, "new", "text");
  ASSERT_TRUE(Attempt(2)->PutBack("j1-a/1-4").ok());
  EXPECT_EQ(Text("new"), "text");
  ASSERT_TRUE(Attempt(2)->PutBack("j1-a/1-3").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/new"));
}

TEST_F(KeptFilesTest, WhatIsOnlyWrittenAndFoldersStay) {
  const auto first = Attempt(1);
  Change(*first, 0, "only-written", "text");
  EXPECT_EQ(Objects(), 0u);
  WriteText(folder_.path() + "/x.csv/part-0", "1,2\n");
  EXPECT_TRUE(*first->Keep("x.csv", 0, kOurs));
  ASSERT_TRUE(Attempt(2)->PutBack("").ok());
  EXPECT_EQ(Text("x.csv/part-0"), "1,2\n");
  EXPECT_EQ(Text("only-written"), "text");
}

TEST_F(KeptFilesTest, NothingIsKeptByWhoMayNotChangeItAnyMore) {
  WriteText(folder_.path() + "/x.csv", "of a later attempt");
  const Result<bool> kept = Attempt(1)->Keep("x.csv", 0, [] { return false; });
  ASSERT_TRUE(kept.ok());
  EXPECT_FALSE(*kept);
  EXPECT_EQ(Objects(), 0u);
}

TEST_F(KeptFilesTest, WhatCannotBeKeptOrPutBackIsAnError) {
  WriteText(folder_.path() + "/x.csv", "text");
  WriteText(place_.path() + "/c/j1-a/1-0", "a file in the place of a folder");
  const Status refused = Attempt(1)->Keep("x.csv", 0, kOurs).status();
  EXPECT_NE(refused.message().find("cannot keep what 'x.csv' was before the job changes it: checkpoints: "),
            std::string::npos)
      << refused.ToString();
  WriteText(place_.path() + "/c/j1-a/2-0/kept/0123456789abcdef", "x");
  const Status damaged = Attempt(3)->PutBack("j1-a/2-0");
  EXPECT_EQ(damaged.code(), StatusCode::kDataLoss);
  EXPECT_EQ(damaged.message(), "'j1-a/2-0/kept/0123456789abcdef' is no file that was kept, or is cut off");
}

}  // namespace
}  // namespace heddle::cluster

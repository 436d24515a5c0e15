// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/planning_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace heddle::engine {
namespace {

class PlanningFilesTest : public testing::Test {
 protected:
  PlanningFilesTest() { EXPECT_TRUE(real_->Replace("ahead.csv", "1,2\n3,4\n").ok()); }
  ~PlanningFilesTest() override {
    for (const char* name : {"ahead.csv", "ahead.csv.gz", "ahead.pipe"})
      EXPECT_TRUE(real_->Remove(name).ok());
  }
  static std::string Bytes(ops::Files* files, const std::string& path) {
    const Result<std::unique_ptr<ops::InputFile>> file = files->Open(path);
    if (!file.ok()) return file.status().ToString();
    ops::CountedBytes buffer;
    return std::string(*(*file)->Read(0, (*file)->size(), &buffer));
  }

  const std::string folder_ = testing::TempDir();
  const std::unique_ptr<ops::Files> real_ = ops::MakeFiles(folder_);
};

TEST_F(PlanningFilesTest, OrdinaryFilesAreRead) {
  const auto files = MakePlanningFiles(folder_);
  EXPECT_EQ(Bytes(files.get(), "ahead.csv"), "1,2\n3,4\n");
  EXPECT_EQ(Bytes(files.get(), folder_ + "/ahead.csv"), "1,2\n3,4\n");
  EXPECT_EQ(*files->Fingerprint("ahead.csv"), *real_->Fingerprint("ahead.csv"));
}

TEST_F(PlanningFilesTest, LargeFilesAndOthersAreNot) {
  PlanningFileLimits limits;
  limits.most_file_bytes = 7;
  EXPECT_FALSE(MakePlanningFiles(folder_, {}, limits)->Open("ahead.csv").ok());
  const auto files = MakePlanningFiles(folder_);
  ASSERT_EQ(mkfifo((folder_ + "/ahead.pipe").c_str(), 0600), 0);
  EXPECT_FALSE(files->Open("ahead.pipe").ok());  // and it does not wait for a writer
  EXPECT_FALSE(files->Open("/dev/zero").ok());
  EXPECT_FALSE(files->Open(folder_).ok());
  EXPECT_FALSE(files->Open("missing.csv").ok());
  EXPECT_FALSE(MakeNoFiles()->Open("ahead.csv").ok());
}

TEST_F(PlanningFilesTest, NothingIsWritten) {
  const auto files = MakePlanningFiles(folder_);
  EXPECT_FALSE(files->Replace("ahead.csv", "9\n").ok());
  EXPECT_FALSE(files->Remove("ahead.csv").ok());
  EXPECT_TRUE(real_->Exists("ahead.csv"));
}

TEST_F(PlanningFilesTest, CompressedFilesAreUnpackedUpToALimit) {
  const std::string text(100'000, '1');
  const std::string path = folder_ + "/ahead.csv.gz";
  gzFile out = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(out, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(out);
  EXPECT_EQ(Bytes(MakePlanningFiles(folder_).get(), "ahead.csv.gz"), text);
  PlanningFileLimits limits;
  limits.most_unpacked_bytes = 99'999;
  EXPECT_FALSE(MakePlanningFiles(folder_, {}, limits)->Open("ahead.csv.gz").ok());
  ASSERT_EQ(truncate(path.c_str(), 50), 0);
  EXPECT_FALSE(MakePlanningFiles(folder_)->Open("ahead.csv.gz").ok());
}

}  // namespace
}  // namespace heddle::engine

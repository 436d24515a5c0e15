// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/file_versions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ops/io/formats/file_format.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;

class FileVersionsTest : public testing::Test {
 protected:
  FileVersionsTest() {
    std::string pattern = (fs::temp_directory_path() / "heddle-versions-XXXXXX").string();
    directory_ = fs::canonical(mkdtemp(pattern.data())).string();
    files_ = MakeFiles(directory_);
    versions_ = files_->versions();
  }
  ~FileVersionsTest() override { fs::remove_all(directory_); }

  // A file that was written so many nanoseconds behind a second in 2020.
  void Put(const std::string& name, const std::string& text, long nanoseconds = 0) {
    const std::string path = directory_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    const struct timespec times[2] = {{1'600'000'000, nanoseconds}, {1'600'000'000, nanoseconds}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Expect(const std::string& name, int worker) {
    versions_->Expect({{name, versions_->Find(name)}}, worker);
  }
  bool MayMeet(const std::string& written, const std::string& read) {
    return FileVersions::MayMeet(versions_->Identity(written), versions_->Identity(read));
  }

  std::string directory_;
  std::unique_ptr<Files> files_;
  FileVersions* versions_ = nullptr;
};

TEST_F(FileVersionsTest, OneFileHasOneIdentityHoweverItIsSpelled) {
  Put("data/X.csv", "1\n");
  fs::create_symlink("data", directory_ + "/link");
  fs::create_symlink(directory_ + "/link/X.csv", directory_ + "/short.csv");
  fs::create_symlink("missing.csv", directory_ + "/ahead.csv");
  const std::string file = directory_ + "/data/X.csv";
  for (const std::string& path :
       {std::string("data/X.csv"), std::string("./data//X.csv"), std::string("link/X.csv"),
        std::string("short.csv"), std::string("data/../link/./X.csv"), file})
    EXPECT_EQ(versions_->Identity(path), file) << path;
  EXPECT_EQ(versions_->Identity("ahead.csv"), directory_ + "/missing.csv");
  EXPECT_EQ(versions_->Identity("new/folder/../file"), directory_ + "/new/file");
  EXPECT_EQ(versions_->Identity("/.."), "/");
  fs::create_symlink("round", directory_ + "/round");  // and this ends
  EXPECT_FALSE(versions_->Identity("round").empty());
}

TEST_F(FileVersionsTest, FilesMeetFoldersThatHoldThemAndTheirOtherNames) {
  Put("folder/part", "1\n");
  Put("one.csv", "1\n");
  fs::create_hard_link(directory_ + "/one.csv", directory_ + "/two.csv");
  EXPECT_TRUE(MayMeet("folder/part", "folder"));
  EXPECT_TRUE(MayMeet("folder/new", "folder"));
  EXPECT_TRUE(MayMeet("folder", "folder/part"));
  EXPECT_TRUE(MayMeet("one.csv", "two.csv"));
  EXPECT_TRUE(MayMeet("one.csv", "./one.csv"));
  EXPECT_FALSE(MayMeet("one.csv", "one"));
  EXPECT_FALSE(MayMeet("one.csv", "folder"));
  EXPECT_FALSE(MayMeet("folder2", "folder"));
  EXPECT_FALSE(MayMeet("new/one.csv", "one.csv"));
}

TEST_F(FileVersionsTest, AFileThatAnotherChangedSinceItWasSeenIsAnError) {
  Put("X.csv", "1,2\n", 5);
  Expect("X.csv", 0);
  EXPECT_TRUE(files_->Open("X.csv").ok());
  EXPECT_TRUE(versions_->CheckUnchanged("X.csv").ok());
  Put("X.csv", "3,4\n", 6);
  const Status status = files_->Open("X.csv").status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(status.ToString(),
            "cannot read 'X.csv': it changed while the script ran\n"
            "expected 4 bytes of 2020-09-13 12:26:40.000000005 UTC, "
            "found 4 bytes of 2020-09-13 12:26:40.000000006 UTC");
  EXPECT_EQ(versions_->CheckUnchanged("X.csv").ToString(), status.ToString());
  EXPECT_TRUE(files_->Open("./X.csv").ok()) << "nothing is expected of another spelling";
  versions_->Expect({}, 0);
  EXPECT_TRUE(files_->Open("X.csv").ok());
}

TEST_F(FileVersionsTest, WhoeverOpenedAFileThatIsReplacedHasTheOldOneWhole) {
  Put("X.csv", "1,2\n");
  Expect("X.csv", 0);
  const Result<std::unique_ptr<InputFile>> file = files_->Open("X.csv");
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(files_->Replace("X.csv", "3,4,5\n").ok());
  EXPECT_TRUE(versions_->CheckUnchanged("X.csv").ok());
  EXPECT_FALSE(files_->Open("X.csv").ok());
}

TEST_F(FileVersionsTest, WorkersThatSeeAnotherFileSaySo) {
  Put("X.csv", "1,2\n");
  Expect("X.csv", 2);
  Put("X.csv", "1,2,3\n");
  EXPECT_EQ(
      files_->Open("X.csv").status().ToString(),
      "cannot read 'X.csv': worker 2 sees another file than worker 0, or it changed while the script ran\n"
      "expected 4 bytes of 2020-09-13 12:26:40.000000000 UTC, "
      "found 6 bytes of 2020-09-13 12:26:40.000000000 UTC\n"
      "every worker must see the same files of a job");
  fs::remove(directory_ + "/X.csv");
  EXPECT_TRUE(files_->Exists("X.csv"));
  EXPECT_EQ(
      files_->Open("X.csv").status().ToString(),
      "cannot read 'X.csv': worker 2 sees another file than worker 0, or it changed while the script ran\n"
      "expected 4 bytes of 2020-09-13 12:26:40.000000000 UTC, found no file\n"
      "every worker must see the same files of a job");
}

// Machines that mount one file system number its files alike or not.
TEST_F(FileVersionsTest, InodesCountWhereOneMachineNumbersThem) {
  Put("X.csv", "1,2\n");
  FileVersion seen = versions_->Find("X.csv");
  fs::rename(directory_ + "/X.csv", directory_ + "/old.csv");
  Put("X.csv", "3,4\n");
  versions_->Expect({{"X.csv", seen}}, 1);
  EXPECT_FALSE(files_->Open("X.csv").ok());
  seen.machine += 1;
  versions_->Expect({{"X.csv", seen}}, 1);
  EXPECT_TRUE(files_->Open("X.csv").ok());
}

TEST_F(FileVersionsTest, WhatDidNotExistDoesNotAppearMeanwhile) {
  versions_->Expect({{"X.csv", versions_->Find("X.csv")}, {"X.csv.mtd", versions_->Find("X.csv.mtd")}}, 1);
  Put("X.csv", "1\n");
  Put("X.csv.mtd", "{}\n");
  EXPECT_FALSE(files_->Exists("X.csv.mtd"));
  EXPECT_EQ(files_->Open("X.csv").status().ToString(), "cannot read 'X.csv': no such file");
}

TEST_F(FileVersionsTest, AFolderChangesWithItsParts) {
  Put("folder/a", "1\n");
  Put("folder/b", "2\n");
  Expect("folder", 0);
  EXPECT_TRUE(files_->Open("folder").ok());
  Put("folder/_ignored", "x\n");
  Put("folder/.ignored", "x\n");
  Put("folder/below/c", "x\n");
  EXPECT_TRUE(files_->Open("folder").ok());
  Put("folder/b", "3\n", 1);
  EXPECT_EQ(files_->Open("folder").status().ToString(),
            "cannot read 'folder': it changed while the script ran\n"
            "expected a folder with 4 bytes of 2020-09-13 12:26:40.000000000 UTC, "
            "found a folder with 4 bytes of 2020-09-13 12:26:40.000000001 UTC");
  Put("folder/b", "2\n");
  EXPECT_TRUE(files_->Open("folder").ok());
  Put("folder/c", "");
  EXPECT_FALSE(files_->Open("folder").ok());
}

// Two versions in one tick of the clock, of one size, with an inode that is used again.
TEST_F(FileVersionsTest, TheScriptsOwnWritesTellVersionsApart) {
  Put("X.csv", "1,2,3,4\n");
  const std::string before = *files_->Fingerprint("X.csv");
  EXPECT_EQ(*files_->Fingerprint("X.csv"), before);
  versions_->CountWrite("./X.csv");
  EXPECT_NE(*files_->Fingerprint("X.csv"), before);
  const std::string other = *files_->Fingerprint(".");
  versions_->CountWrite("Y.csv");
  EXPECT_NE(*files_->Fingerprint("."), other);

  // Another worker counts no writes: it is told.
  const std::unique_ptr<Files> elsewhere = MakeFiles(directory_);
  EXPECT_NE(*elsewhere->Fingerprint("X.csv"), *files_->Fingerprint("X.csv"));
  elsewhere->versions()->Expect({{"X.csv", versions_->Find("X.csv")}}, 1);
  EXPECT_EQ(*elsewhere->Fingerprint("X.csv"), *files_->Fingerprint("X.csv"));
}

TEST_F(FileVersionsTest, VersionsTravelAsText) {
  Put("folder/X.csv", "1,2\n", 7);
  versions_->CountWrite("folder/X.csv");
  for (const char* path : {"folder/X.csv", "folder", "missing", "/dev/null"}) {
    const FileVersion version = versions_->Find(path);
    const Result<FileVersion> parsed = FileVersion::Parse(version.ToText());
    ASSERT_TRUE(parsed.ok()) << version.ToText();
    EXPECT_EQ(parsed->ToText(), version.ToText());
    EXPECT_TRUE(parsed->IsSame(version));
  }
  EXPECT_FALSE(FileVersion::Parse("1 2 3").ok());
  EXPECT_FALSE(FileVersion::Parse("9 0 0.000000000 0 0 0 0 0").ok());
  EXPECT_EQ(versions_->Find("missing").Describe(), "no file");
  EXPECT_EQ(versions_->Find("/dev/null").Describe(), "no ordinary file");
}

}  // namespace
}  // namespace heddle::ops

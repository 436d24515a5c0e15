// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/spill_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "ops/io/files/hidden_names.h"
#include "tests/unit/ops/panels/panels_fixture.h"

namespace heddle::ops::testing {
namespace {

namespace fs = std::filesystem;

class SpillFilesTest : public ::testing::TestWithParam<SpillNames> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "heddle-spill-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }
  // Open files of this process that were in the folder and have no name: whose blocks the disk still holds.
  int OpenFiles() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = fs::read_symlink(entry.path(), error);
      count += target.starts_with(folder_ + "/") ? 1 : 0;
    }
    return count;
  }
  std::unique_ptr<SpillFiles> Files() const { return MakeSpillFiles(folder_, GetParam()); }

  std::string folder_;
};

INSTANTIATE_TEST_SUITE_P(All, SpillFilesTest,
                         ::testing::Values(SpillNames::kNever, SpillNames::kRemovedSoon));

TEST_P(SpillFilesTest, HoldBytesWithoutAName) {
  const auto files = Files();
  {
    const auto file = files->Create();
    ASSERT_TRUE(file.ok()) << file.status().ToString();
    const std::string text(10 << 20, 'x');
    ASSERT_TRUE((*file)->WriteAt(5000, text.data(), static_cast<int64_t>(text.size())).ok());
    ASSERT_TRUE((*file)->WriteAt(6000, "abc", 3).ok());
    std::string read(text.size(), ' ');
    ASSERT_TRUE((*file)->ReadAt(5000, read.data(), static_cast<int64_t>(read.size())).ok());
    EXPECT_EQ(read.substr(998, 7), "xxabcxx");
    EXPECT_EQ(read.substr(1003), text.substr(1003));
    (*file)->Announce(0, 1 << 20);
    EXPECT_EQ(Names(), std::vector<std::string>());
    EXPECT_EQ(OpenFiles(), 1);
    const Status behind = (*file)->ReadAt(10 << 20, read.data(), 10000);
    EXPECT_EQ(behind.code(), StatusCode::kDataLoss);
    EXPECT_EQ(behind.message(), "spill: cannot read what was written to a file in '" + folder_ +
                                    "': the file has become shorter");
  }
  EXPECT_EQ(OpenFiles(), 0);
}

TEST_P(SpillFilesTest, AreGoneWithTheValuesOfAStore) {
  const auto files = Files();
  const auto store = MakePanelStore(*files, 1);
  ASSERT_TRUE(store->SetRoom(0).ok());
  {
    const auto a = *Collected(*store, Kind::kFrame, 100, {30});
    const auto b = *Collected(*store, Kind::kSparseDoubles, 100, {30});
    EXPECT_EQ(OpenFiles(), 2);
    EXPECT_TRUE(AreSameRows(*a->Rows(13, 71), RowsOf(Kind::kFrame, 13, 71)));
    EXPECT_TRUE(AreSameRows(*b->Rows(13, 71), RowsOf(Kind::kSparseDoubles, 13, 71)));
    EXPECT_EQ(Names(), std::vector<std::string>());
  }
  EXPECT_EQ(OpenFiles(), 0);
}

// Runs `work` in a process of its own, which tells by a byte that it is where it is to be killed.
void KilledWithin(const std::function<void(const std::function<void()>& ready)>& work) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    work([&] {
      const char byte = 1;
      if (write(ends[1], &byte, 1) != 1) _exit(1);
    });
    while (true) pause();
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_P(SpillFilesTest, AreGoneWhenTheProcessIsKilled) {
  KilledWithin([&](const auto& ready) {
    const auto files = Files();
    const auto store = MakePanelStore(*files, 1);
    const auto value = Collected(*store, Kind::kDoubles, 1000, {100});
    if (store->SetRoom(0).ok() && value.ok()) ready();
    while (true) pause();
  });
  EXPECT_EQ(Names(), std::vector<std::string>());
}

TEST_P(SpillFilesTest, WhatAProcessLeftThatWasKilledInBetweenIsRemovedAtTheNextStart) {
  // What is there for a moment when the file system has no files without names.
  KilledWithin([&](const auto& ready) {
    const int file =
        open((folder_ + "/" + NewHiddenName()).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (LockHidden(file)) ready();
    while (true) pause();
  });
  const int own =
      open((folder_ + "/" + NewHiddenName()).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_TRUE(LockHidden(own));
  {
    const std::string unrelated = folder_ + "/.unrelated";
    close(open(unrelated.c_str(), O_CREAT | O_RDWR, 0600));
  }
  EXPECT_EQ(Names().size(), 3u);
  ASSERT_TRUE(Files()->Create().ok());
  EXPECT_EQ(Names().size(), 2u);  // That of a process that lives, and what is none of ours.
  close(own);
  ASSERT_TRUE(Files()->Create().ok());
  EXPECT_EQ(Names(), std::vector<std::string>{".unrelated"});
}

TEST_P(SpillFilesTest, KilledAtAnyMomentNothingStaysBehindTheNextStart) {
  for (int creates = 0; creates < 20; ++creates)
    KilledWithin([&](const auto& ready) {
      const auto files = Files();
      for (int i = 0;; ++i) {
        if (i == creates) ready();
        if (!files->Create().ok()) _exit(1);
      }
    });
  ASSERT_TRUE(Files()->Create().ok());
  EXPECT_EQ(Names(), std::vector<std::string>());
}

TEST_P(SpillFilesTest, AFolderThatIsNoneIsNamed) {
  const Result<std::unique_ptr<SpillFile>> file = MakeSpillFiles(folder_ + "/none", GetParam())->Create();
  EXPECT_EQ(file.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      file.status().ToString(),
      "spill: cannot make a file in '" + folder_ +
          "/none': No such file or directory\n"
          "what does not fit in memory is written there: name another folder (--spill-folder FOLDER), or "
          "give more memory (--memory SIZE)");
}

TEST_P(SpillFilesTest, MoreThanTheProcessMayWriteIsAnError) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit little { 100'000, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto file = *Files()->Create();
  const std::string text(100'000, 'x');
  EXPECT_TRUE(file->WriteAt(0, text.data(), 100'000).ok());
  const Status status = file->WriteAt(1, text.data(), 100'000);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.ToString(),
            "spill: a file in '" + folder_ +
                "' may not have more than 100000 bytes (ulimit -f)\n"
                "name a folder on a disk with more room (--spill-folder FOLDER), or give more "
                "memory (--memory SIZE)");
}

// A file system of 1 MiB in memory, which only a child sees.
TEST_P(SpillFilesTest, AFullDiskIsAnErrorWithTheNumbers) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "cannot mount";
    if ((unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        mount("spill", folder_.c_str(), "tmpfs", 0, "size=1m") == 0) {
      const auto file = *Files()->Create();
      const std::string text(3 << 20, 'x');
      const Status status = file->WriteAt(0, text.data(), static_cast<int64_t>(text.size()));
      said = std::string(StatusCodeName(status.code())) + ": " + status.ToString();
    }
    const ssize_t written = write(ends[1], said.data(), said.size());
    _exit(written > 0 ? 0 : 1);
  }
  close(ends[1]);
  char said[2000] = {};
  EXPECT_GT(read(ends[0], said, sizeof(said) - 1), 0);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (std::string(said) == "cannot mount") GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(std::string(said),
            std::string(StatusCodeName(StatusCode::kResourceExhausted)) +
                ": spill: no room on the disk of '" + folder_ +
                "': 2097152 bytes needed, 0 free\n"
                "name a folder on a disk with more room (--spill-folder FOLDER), or give more "
                "memory (--memory SIZE)");
}

TEST(SpillFolderTest, IsThatOfTheUserOrOneOnADisk) {
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before == nullptr ? "" : before;
  setenv("TMPDIR", "/somewhere/else", 1);
  EXPECT_EQ(SpillFolder(), "/somewhere/else");
  unsetenv("TMPDIR");
  const std::string folder = SpillFolder();
  EXPECT_TRUE(folder == "/tmp" || folder == "/var/tmp") << folder;
  if (before != nullptr) setenv("TMPDIR", old.c_str(), 1);
}

}  // namespace
}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/script_paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>

#include "ops/io/files/files.h"
#include "ops/io/files/folders.h"
#include "ops/io/files/own_folders.h"
#include "tests/support/process.h"

namespace heddle::ops {
namespace {

namespace fs = std::filesystem;
using testing_support::ReadText;
using testing_support::WriteText;

// Folders job/, data/ and outside/ with a file each.
class ScriptPathsTest : public testing::Test {
 protected:
  ScriptPathsTest() : root_(fs::canonical(folder_.path())) {
    for (const char* name : {"job", "data", "outside"}) WriteText(PathOf(std::string(name) + "/X.csv"), name);
  }
  std::string PathOf(const std::string& name) const { return root_ + "/" + name; }

  FileRoots RootsOfJob(std::vector<std::string> named = {}) const {
    FileRoots roots;
    roots.is_job = true;
    roots.own_folders = FileRoots::OwnFolders::kClosed;
    roots.named = std::move(named);
    roots.named.push_back(PathOf("job"));
    return roots;
  }
  std::unique_ptr<Files> FilesOf(FileRoots roots) const {
    return MakeFiles(PathOf("job"), nullptr, std::move(roots));
  }
  static std::string TextOf(Files& files, const std::string& path) {
    const auto file = files.Open(path);
    if (!file.ok()) return file.status().ToString();
    CountedBytes buffer;
    const auto text = (*file)->Read(0, (*file)->size(), &buffer);
    return text.ok() ? std::string(*text) : text.status().ToString();
  }
  void ExpectRefused(Files& files, const std::string& path) {
    const std::string read = TextOf(files, path);
    EXPECT_EQ(read.find("cannot read '" + path + "': "), 0u) << read;
    EXPECT_NE(read.find("in none of the folders"), std::string::npos) << read;
    EXPECT_FALSE(files.Exists(path)) << path;
    EXPECT_FALSE(files.IsDirectory(path)) << path;
    EXPECT_FALSE(files.List(path).ok()) << path;
    EXPECT_FALSE(files.Fingerprint(path).ok()) << path;
    const Status written = files.Replace(path, "changed");
    EXPECT_EQ(written.code(), StatusCode::kDataLoss) << path;
    const Status removed = files.Remove(path);
    EXPECT_EQ(removed.code(), StatusCode::kDataLoss) << path;
    EXPECT_EQ(ReadText(PathOf("outside/X.csv")), "outside") << path;
  }

  const testing_support::TemporaryFolder folder_;
  const std::string root_;
};

TEST_F(ScriptPathsTest, AJobUsesItsFolderAndWhatIsNamed) {
  const auto files = FilesOf(RootsOfJob({PathOf("data")}));
  EXPECT_EQ(TextOf(*files, "X.csv"), "job");
  EXPECT_EQ(TextOf(*files, "./../job//X.csv"), "job");
  EXPECT_EQ(TextOf(*files, PathOf("data/X.csv")), "data");
  EXPECT_EQ(TextOf(*files, "../data/X.csv"), "data");
  EXPECT_EQ(TextOf(*files, PathOf("data")), "data\n") << "a folder of parts";
  EXPECT_TRUE(files->Replace("new/folder/Y.csv", "written").ok());
  EXPECT_EQ(TextOf(*files, "new/folder/Y.csv"), "written");
  EXPECT_TRUE(files->Remove("new/folder/Y.csv").ok());
  EXPECT_FALSE(files->Exists("new/folder/Y.csv"));
  EXPECT_TRUE(files->Remove("new/folder/Y.csv").ok());
  EXPECT_TRUE(files->Remove("nowhere/Y.csv").ok());
  EXPECT_EQ(TextOf(*files, "missing.csv"), "cannot read 'missing.csv': no such file");
  EXPECT_EQ(TextOf(*files, "missing/Y.csv"), "cannot read 'missing/Y.csv': no such file");

  EXPECT_EQ(files->Replace("folder/", "x").message(),
            "cannot write 'folder/': it ends with a slash, so that it names a folder");
  EXPECT_FALSE(fs::exists(PathOf("job/folder")));

  for (const std::string& path :
       {PathOf("outside/X.csv"), std::string("../outside/X.csv"), std::string("new/../../outside/X.csv"),
        PathOf("data/../outside/X.csv"), PathOf("outside"), std::string("/"), PathOf("database/X.csv")})
    ExpectRefused(*files, path);
  EXPECT_EQ(TextOf(*files, "../outside/X.csv"),
            "cannot read '../outside/X.csv': it is in none of the folders that this job may use\n"
            "it is '" +
                PathOf("outside/X.csv") + "'\nthese are '" + PathOf("data") + "', '" + PathOf("job") +
                "'\nto name another one: heddle job submit --data-root " + PathOf("outside"));
}

TEST_F(ScriptPathsTest, LinksAreFollowedBeforeAnythingElse) {
  fs::create_symlink(PathOf("outside"), PathOf("job/out"));
  fs::create_symlink(PathOf("outside/X.csv"), PathOf("job/out.csv"));
  fs::create_symlink(PathOf("outside/new.csv"), PathOf("job/new.csv"));
  fs::create_symlink("../data", PathOf("job/in"));
  fs::create_symlink("round", PathOf("job/round"));
  const auto files = FilesOf(RootsOfJob({PathOf("data")}));
  for (const char* path : {"out/X.csv", "out/../outside/X.csv"}) ExpectRefused(*files, path);
  EXPECT_FALSE(files->Open("out").ok());
  EXPECT_FALSE(files->List("out").ok());
  EXPECT_NE(TextOf(*files, "out.csv").find("it is '" + PathOf("outside/X.csv") + "'"), std::string::npos);
  EXPECT_FALSE(files->Replace("out.csv", "changed").ok());
  EXPECT_FALSE(files->Replace("new.csv", "changed").ok());
  EXPECT_FALSE(files->Replace("out/new.csv", "changed").ok());
  EXPECT_FALSE(fs::exists(PathOf("outside/new.csv")));
  EXPECT_EQ(ReadText(PathOf("outside/X.csv")), "outside");
  EXPECT_EQ(TextOf(*files, "in/X.csv"), "data");
  EXPECT_TRUE(files->Replace("in/Y.csv", "written").ok());
  EXPECT_EQ(ReadText(PathOf("data/Y.csv")), "written");
  EXPECT_NE(TextOf(*files, "round").find("a link that leads round in a circle"), std::string::npos);
  // The link itself lies in the folder of the job.
  EXPECT_TRUE(files->Remove("out.csv").ok());
  EXPECT_FALSE(fs::is_symlink(PathOf("job/out.csv")));
  EXPECT_TRUE(fs::exists(PathOf("outside/X.csv")));

  // Parts of a folder may be links.
  fs::create_directory(PathOf("job/parts"));
  fs::create_symlink(PathOf("data/X.csv"), PathOf("job/parts/1"));
  EXPECT_EQ(TextOf(*files, "parts"), "data\n");
  fs::create_symlink(PathOf("outside/X.csv"), PathOf("job/parts/2"));
  EXPECT_NE(TextOf(*files, "parts").find("cannot read 'parts/2': it is in none of the folders"),
            std::string::npos);
}

// A path among the arguments names what stands beside it, too; a link that the user names leads where it
// does.
TEST_F(ScriptPathsTest, ArgumentsNameWhatStandsBesideThem) {
  FileRoots roots = RootsOfJob();
  roots.arguments = {PathOf("data/model.csv")};
  const auto files = FilesOf(roots);
  EXPECT_TRUE(files->Replace(PathOf("data/model.csv"), "m").ok());
  EXPECT_TRUE(files->Replace(PathOf("data/model.csv.mtd"), "{}").ok());
  EXPECT_EQ(TextOf(*files, PathOf("data/X.csv")), "data");
  ExpectRefused(*files, PathOf("outside/X.csv"));

  fs::create_symlink(PathOf("outside/X.csv"), PathOf("job/named.csv"));
  roots.arguments = {PathOf("job/named.csv"), PathOf("data"), PathOf("new/results"), "/", "/heddle-out.csv"};
  const auto more = FilesOf(roots);
  EXPECT_EQ(TextOf(*more, "named.csv"), "outside");
  EXPECT_EQ(TextOf(*more, PathOf("data/X.csv")), "data");
  EXPECT_TRUE(more->Replace(PathOf("new/results/1.csv"), "r").ok());
  EXPECT_NE(TextOf(*more, "/etc/hostname").find("in none of the folders"), std::string::npos)
      << "neither a slash nor a file beside the root names everything";
  EXPECT_EQ(TextOf(*more, "/heddle-out.csv"), "cannot read '/heddle-out.csv': no such file");
  EXPECT_EQ(TextOf(*more, "/heddle-out.csv.mtd"), "cannot read '/heddle-out.csv.mtd': no such file");
}

TEST_F(ScriptPathsTest, WhatMasterAndWorkerAllowBoundsWhatIsNamed) {
  FileRoots roots = RootsOfJob({PathOf("outside")});
  roots.of_worker = {PathOf("data"), PathOf("job")};
  const auto files = FilesOf(roots);
  EXPECT_EQ(TextOf(*files, PathOf("data/X.csv")), "data") << "without being named";
  EXPECT_EQ(TextOf(*files, "X.csv"), "job");
  ExpectRefused(*files, PathOf("outside/X.csv"));
  roots.of_master = {PathOf("data")};
  const auto less = FilesOf(roots);
  EXPECT_EQ(TextOf(*less, PathOf("data/X.csv")), "data");
  EXPECT_EQ(TextOf(*less, "X.csv"),
            "cannot read 'X.csv': it is in none of the folders that the master lets jobs use\nit is '" +
                PathOf("job/X.csv") + "'\nthese are '" + PathOf("data") +
                "'\nwho runs the master can let them use more: heddle master --data-root " + PathOf("job"));
}

// The folder that was found stays the folder, whatever takes its name.
TEST_F(ScriptPathsTest, APlaceDoesNotMove) {
  fs::create_directory(PathOf("job/sub"));
  WriteText(PathOf("job/sub/X.csv"), "inside");
  const ScriptPaths paths(PathOf("job"), RootsOfJob());
  const auto place = paths.Find("sub/X.csv", ScriptPaths::Use::kRead);
  ASSERT_TRUE(place.ok());
  fs::rename(PathOf("job/sub"), PathOf("job/before"));
  fs::create_symlink(PathOf("outside"), PathOf("job/sub"));
  const Descriptor file(place->Open(O_RDONLY));
  ASSERT_TRUE(file.ok());
  char text[16] = {};
  EXPECT_EQ(read(file.get(), text, sizeof text), 6);
  EXPECT_STREQ(text, "inside");
  // Nor does a link that takes the file's own name lead away.
  fs::remove(PathOf("job/before/X.csv"));
  fs::create_symlink(PathOf("outside/X.csv"), PathOf("job/before/X.csv"));
  EXPECT_FALSE(Descriptor(place->Open(O_RDONLY)).ok());
  EXPECT_EQ(errno, ELOOP);
}

// While another thread puts a link that leads out in the place of a folder, and the folder back.
TEST_F(ScriptPathsTest, NoSwapBetweenLookAndOpeningLeadsOut) {
  constexpr int kRounds = 3000;
  fs::create_directory(PathOf("job/sub"));
  WriteText(PathOf("job/sub/X.csv"), "inside");
  fs::create_symlink(PathOf("outside"), PathOf("job/link"));
  std::atomic<bool> ended = false;
  std::thread swapping([&] {
    while (!ended)
      renameat2(AT_FDCWD, PathOf("job/sub").c_str(), AT_FDCWD, PathOf("job/link").c_str(), RENAME_EXCHANGE);
  });
  const auto files = FilesOf(RootsOfJob());
  int inside = 0, refused = 0;
  for (int i = 0; i < kRounds; ++i) {
    const std::string text = TextOf(*files, "sub/X.csv");
    EXPECT_EQ(text.find("outside\n"), std::string::npos) << text;
    ++(text == "inside" ? inside : refused);
    EXPECT_NE(text, "outside");
    (void)files->Replace("sub/Y.csv", "written");
    (void)files->Replace("sub/new/Z.csv", "written");
    (void)files->Remove("sub/X.txt");
  }
  ended = true;
  swapping.join();
  EXPECT_GT(inside, 0);
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(fs::exists(PathOf("outside/Y.csv")));
  EXPECT_FALSE(fs::exists(PathOf("outside/new")));
  EXPECT_EQ(ReadText(PathOf("outside/X.csv")), "outside");
}

// The kernel's own look and ours, for kernels that have none.
TEST_F(ScriptPathsTest, FoldersAreOpenedWithoutLinksInBothWays) {
  fs::create_symlink(PathOf("outside"), PathOf("job/link"));
  struct stat expected {
  }, found{};
  ASSERT_EQ(stat(PathOf("outside").c_str(), &expected), 0);
  for (const auto& open : {std::function(&OpenFolder), std::function([](const std::string& path) {
                             return WalkToFolder(path, /*make=*/false);
                           })}) {
    const Descriptor folder = open(PathOf("outside"));
    ASSERT_TRUE(folder.ok());
    ASSERT_EQ(fstat(folder.get(), &found), 0);
    EXPECT_EQ(found.st_ino, expected.st_ino);
    EXPECT_TRUE(open("/").ok());
    EXPECT_FALSE(open(PathOf("job/link")).ok());
    EXPECT_TRUE(errno == ELOOP || errno == ENOTDIR) << errno;
    EXPECT_FALSE(open(PathOf("job/link/more")).ok());
    EXPECT_TRUE(errno == ELOOP || errno == ENOTDIR) << errno;
    EXPECT_FALSE(open(PathOf("missing")).ok());
    EXPECT_EQ(errno, ENOENT);
    EXPECT_FALSE(open(PathOf("job/X.csv")).ok());
    EXPECT_EQ(errno, ENOTDIR);
  }
  EXPECT_TRUE(WalkToFolder(PathOf("job/a/b/c"), /*make=*/true).ok());
  EXPECT_TRUE(fs::is_directory(PathOf("job/a/b/c")));
  EXPECT_FALSE(WalkToFolder(PathOf("job/link/made"), /*make=*/true).ok());
  EXPECT_FALSE(fs::exists(PathOf("outside/made")));
}

TEST_F(ScriptPathsTest, WhatHeddleKeepsIsClosedToJobsAndReadOnlyToItsUser) {
  setenv("XDG_STATE_HOME", PathOf("job/state").c_str(), 1);
  setenv("XDG_CACHE_HOME", PathOf("job/cache").c_str(), 1);
  WriteText(PathOf("job/state/heddle/master/admin.token"), "secret");
  WriteText(PathOf("job/cache/heddle/code/0.code"), "secret");
  WriteText(PathOf("job/elsewhere/deep/down/admin.token"), "secret");
  WriteText(PathOf("job/keys/token"), "secret");
  MarkOwnFolder(PathOf("job/elsewhere"));
  fs::create_symlink("elsewhere/deep/down/admin.token", PathOf("job/harmless.csv"));
  FileRoots roots = RootsOfJob();
  roots.closed = {PathOf("job/keys/token")};
  const auto job = FilesOf(roots);
  FileRoots of_run;
  of_run.own_folders = FileRoots::OwnFolders::kClosedToOther;
  const auto run = FilesOf(of_run);
  unsetenv("XDG_STATE_HOME");
  unsetenv("XDG_CACHE_HOME");
  const std::vector<std::string> secrets = {"state/heddle/master/admin.token", "cache/heddle/code/0.code",
                                            "elsewhere/deep/down/admin.token", "harmless.csv"};
  for (const std::string& path : secrets) {
    const std::string why = TextOf(*job, path);
    EXPECT_EQ(why.find("cannot read '" + path + "': Heddle keeps files of its own there"), 0u) << why;
    EXPECT_FALSE(job->Exists(path));
    EXPECT_FALSE(job->Replace(path, "changed").ok());
    EXPECT_EQ(TextOf(*run, path), "secret");
    EXPECT_EQ(run->Replace(path, "changed").message(),
              "cannot write '" + path + "': Heddle keeps files of its own there");
    EXPECT_EQ(TextOf(*run, path), "secret");
  }
  for (const char* path :
       {"state/heddle", "state/heddle/master", "cache/heddle", "elsewhere", "elsewhere/deep"}) {
    EXPECT_FALSE(job->List(path).ok()) << path;
    EXPECT_FALSE(job->Open(path).ok()) << path;
    EXPECT_FALSE(job->Replace(std::string(path) + "/new", "x").ok()) << path;
    EXPECT_FALSE(run->Replace(std::string(path) + "/new", "x").ok()) << path;
    EXPECT_FALSE(run->Remove(std::string(path) + "/admin.token").ok()) << path;
  }
  EXPECT_FALSE(job->Open("keys/token").ok());
  EXPECT_FALSE(job->Replace("keys/token", "x").ok());
  EXPECT_FALSE(job->Open("keys").ok()) << "as a part of a folder";
  EXPECT_EQ(ReadText(PathOf("job/keys/token")), "secret");

  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chown((PathOf("job/elsewhere/") + kOwnFolderMark).c_str(), 1234, 1234), 0);
  EXPECT_EQ(TextOf(*FilesOf(of_run), "elsewhere/deep/down/admin.token"), "secret")
      << "a mark of somebody who does not own the folder says nothing";
  ASSERT_EQ(chown(PathOf("job/elsewhere").c_str(), 1234, 1234), 0);
  EXPECT_FALSE(run->Open("elsewhere/deep/down/admin.token").ok()) << "another user's";
  EXPECT_FALSE(run->Open("harmless.csv").ok());
  EXPECT_FALSE(run->List("elsewhere").ok());
}

// It would close the folder to everybody.
TEST_F(ScriptPathsTest, NoScriptMarksAFolder) {
  const std::string mark = kOwnFolderMark;
  const auto job = FilesOf(RootsOfJob());
  const Status refused = job->Replace(mark, "x");
  EXPECT_EQ(refused.message(), "cannot write '" + mark + "': Heddle keeps files of its own there");
  EXPECT_EQ(refused.notes().back(),
            "tokens, keys, jobs, logs and machine code are closed to scripts (docs/daemons.md)");
  EXPECT_FALSE(fs::exists(PathOf("job/" + mark)));
}

TEST_F(ScriptPathsTest, WithoutAWorkingFolderRelativePathsAreErrors) {
  const auto files = MakeFiles("");
  EXPECT_EQ(TextOf(*files, "X.csv"),
            "cannot read 'X.csv': the folder that it begins at was deleted\n"
            "go to a folder that is there, or give a path that begins with '/'");
  EXPECT_EQ(files->Replace("X.csv", "x").message(),
            "cannot write 'X.csv': the folder that it begins at was deleted");
  EXPECT_FALSE(fs::exists("/X.csv"));
  EXPECT_EQ(TextOf(*files, PathOf("data/X.csv")), "data");

  // Deleted while it runs: it is not made once more.
  for (const FileRoots& roots : {FileRoots(), RootsOfJob()}) {
    fs::create_directory(PathOf("job"));
    const auto begun = FilesOf(roots);
    fs::remove_all(PathOf("job"));
    EXPECT_EQ(
        begun->Replace("Y.csv", "x").ToString(),
        "cannot write 'Y.csv': the folder that it begins at was deleted\nit was '" + PathOf("job") + "'");
    EXPECT_FALSE(fs::exists(PathOf("job")));
  }
  // A worker on another machine may lack it from the beginning.
  const auto other = FilesOf(RootsOfJob());
  EXPECT_TRUE(other->Replace("Y.csv", "x").ok());
  EXPECT_EQ(ReadText(PathOf("job/Y.csv")), "x");
}

}  // namespace
}  // namespace heddle::ops

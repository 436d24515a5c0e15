// SPDX-License-Identifier: Apache-2.0
// Which files a job may use: what its user names, within what master and worker allow, and nothing that
// Heddle keeps.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRead = "X = read($in, data_type=\"frame\", format=\"csv\")\nprint(toString(X))\n";
constexpr const char* kWrite = "write(matrix(7, rows=1, cols=1), $out, format=\"csv\")\n";

class RootsTest : public testing::Test {
 protected:
  RootsTest() {
    WriteText(cluster_.folder() + "/read.dml", kRead);
    WriteText(cluster_.folder() + "/write.dml", kWrite);
    WriteText(cluster_.folder() + "/X.csv", "1,2\n");
    WriteText(outside_.path() + "/secret.csv", "do not tell\n");
  }

  // A script of a text that names no argument: what it uses, it finds by itself.
  Finished Submit(const std::string& script, std::vector<std::string> options = {}) {
    WriteText(cluster_.folder() + "/s.dml", script);
    std::vector<std::string> words = {"job", "submit", "--workers", "1"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("s.dml");
    return cluster_.Run(words);
  }
  static std::string ReadOf(const std::string& path) {
    return "X = read(\"" + path + "\", data_type=\"frame\", format=\"csv\")\nprint(toString(X))\n";
  }
  static std::string WriteTo(const std::string& path) {
    return "write(matrix(7, rows=1, cols=1), \"" + path + "\", format=\"csv\")\n";
  }
  // As written, and as only the run knows it.
  static std::vector<std::string> WaysOf(const std::string& path, std::string (*script)(const std::string&)) {
    std::string computed = script("PATH");
    const size_t at = computed.find("\"PATH\"");
    computed.replace(at, 6, "\"" + path.substr(0, 1) + "\" + \"" + path.substr(1) + "\"");
    return {script(path), computed};
  }
  void ExpectRefused(const std::string& path, const std::string& why) {
    for (const std::string& script : WaysOf(path, ReadOf)) {
      const Finished job = Submit(script);
      EXPECT_EQ(job.code, 4) << script << job.errors;
      EXPECT_NE(job.errors.find("cannot read '" + path), std::string::npos) << job.errors;
      EXPECT_NE(job.errors.find(why), std::string::npos) << job.errors;
      EXPECT_EQ(job.output, "") << script;
    }
    for (const std::string& script : WaysOf(path, WriteTo)) {
      const Finished job = Submit(script);
      EXPECT_EQ(job.code, 4) << script << job.errors;
      EXPECT_NE(job.errors.find("cannot write '" + path), std::string::npos) << job.errors;
      EXPECT_NE(job.errors.find(why), std::string::npos) << job.errors;
    }
  }

  TemporaryFolder outside_;  // before the cluster has temporary folders of its own
  ClusterOfProcesses cluster_;
};

constexpr const char* kNotNamed = "it is in none of the folders that this job may use";
constexpr const char* kKept = "Heddle keeps files of its own there";

TEST_F(RootsTest, AJobUsesWhatItsUserNamesAndNothingElse) {
  cluster_.StartWorker("alpha");
  const std::string outside = outside_.path() + "/secret.csv";
  ExpectRefused(outside, kNotNamed);
  ExpectRefused("../" + fs::path(outside_.path()).filename().string() + "/secret.csv", kNotNamed);
  fs::create_symlink(outside_.path(), cluster_.folder() + "/link");
  ExpectRefused("link/secret.csv", kNotNamed);
  fs::create_symlink(outside, cluster_.folder() + "/link.csv");
  ExpectRefused("link.csv", kNotNamed);
  EXPECT_EQ(ReadText(outside), "do not tell\n");

  // What is below the folder of the job; what is named, in each way.
  EXPECT_EQ(Submit(ReadOf("X.csv")).code, 0);
  EXPECT_EQ(Submit(WriteTo("new/Y.csv")).code, 0);
  EXPECT_EQ(ReadText(cluster_.folder() + "/new/Y.csv"), "7.0\n");
  const Finished by_root = Submit(ReadOf(outside), {"--data-root", outside_.path()});
  EXPECT_EQ(by_root.code, 0) << by_root.errors;
  const Finished by_argument = cluster_.Run({"job", "submit", "read.dml", "-nvargs", "in=" + outside});
  EXPECT_EQ(by_argument.code, 0) << by_argument.errors;
  const Finished by_link = cluster_.Run({"job", "submit", "read.dml", "-nvargs", "in=link.csv"});
  EXPECT_EQ(by_link.code, 0) << by_link.errors;
  const Finished by_code = cluster_.Run({"job", "submit", "-e", ReadOf(outside)});
  EXPECT_EQ(by_code.code, 0) << by_code.errors;
  const Finished written =
      cluster_.Run({"job", "submit", "write.dml", "-nvargs", "out=" + outside_.path() + "/new/Y.csv"});
  EXPECT_EQ(written.code, 0) << written.errors;
  EXPECT_EQ(ReadText(outside_.path() + "/new/Y.csv"), "7.0\n");
  // The same script runs for who is here anyway.
  EXPECT_EQ(cluster_.Run({"run", "-e", ReadOf(outside)}).code, 0);
  EXPECT_EQ(cluster_.Run({"sim", "--workers", "2", "-e", ReadOf("link/secret.csv")}).code, 0);
  cluster_.EndAndExpectNothingLeft();
}

// Whoever submits is no administrator: not by naming the files either.
TEST_F(RootsTest, NoJobReachesWhatHeddleKeeps) {
  cluster_.StartWorker("alpha");
  const std::string state = cluster_.folder() + "/state/heddle";
  // All of it lies below the folder of the job.
  const std::string token = ReadText(state + "/master/admin.token");
  ASSERT_GE(token.size(), 33u);
  for (const char* path : {"state/heddle/master/admin.token", "state/heddle/master/jobs.sqlite",
                           "state/heddle/workers/alpha/identity", "state/heddle/new.csv",
                           "state/heddle/workers/alpha/logs/new.log"})
    ExpectRefused(path, kKept);
  ExpectRefused(state + "/master/worker.token", kKept);
  fs::create_symlink("state/heddle/master/admin.token", cluster_.folder() + "/harmless.csv");
  ExpectRefused("harmless.csv", kKept);
  for (const std::string& in : {state + "/master/admin.token", std::string("harmless.csv")}) {
    const Finished named =
        cluster_.Run({"job", "submit", "--data-root", state, "read.dml", "-nvargs", "in=" + in});
    EXPECT_EQ(named.code, 4) << named.errors;
    EXPECT_NE(named.errors.find(kKept), std::string::npos) << named.errors;
    EXPECT_EQ((named.output + named.errors).find(token.substr(0, token.size() - 1)), std::string::npos);
  }
  // Nor does what a script sources, and what its metadata are, travel to a master.
  const Finished sourced = Submit("source(\"state/heddle/master/admin.token\") as a\nprint(1)\n");
  EXPECT_EQ(sourced.code, 3) << sourced.errors;
  EXPECT_EQ((sourced.output + sourced.errors).find(token.substr(0, token.size() - 1)), std::string::npos);
  // A folder of parts, and a list of elements.
  ExpectRefused("state/heddle/master", kKept);
  const Finished list = Submit("l = list(a=matrix(1, rows=1, cols=1))\nwrite(l, \"state/heddle/master\")\n");
  EXPECT_EQ(list.code, 4) << list.errors;

  EXPECT_EQ(ReadText(state + "/master/admin.token"), token);
  for (const char* verb : {"run", "sim"}) {
    std::vector<std::string> words = {verb, "-e", WriteTo("state/heddle/master/admin.token")};
    if (std::string(verb) == "sim") words.insert(words.begin() + 1, {"--workers", "2"});
    const Finished own = cluster_.Run(words);
    EXPECT_EQ(own.code, 4) << own.errors;
    EXPECT_NE(own.errors.find(kKept), std::string::npos) << own.errors;
  }
  EXPECT_EQ(ReadText(state + "/master/admin.token"), token);
  EXPECT_EQ(cluster_.Run({"admin", "nodes"}).code, 0);
  cluster_.EndAndExpectNothingLeft();
}

// Machine code that a job could write would run in the next one.
TEST_F(RootsTest, NoJobWritesMachineCode) {
  cluster_.StartWorker("alpha");
  const char* const cache = getenv("XDG_CACHE_HOME");
  ASSERT_NE(cache, nullptr);
  const std::string code = std::string(cache) + "/heddle/code";
  EXPECT_EQ(
      cluster_.Run({"job", "submit", "-e", "X = rand(rows=100, cols=10, seed=1)\nprint(sum(X * 2 + X))"})
          .code,
      0);
  const Finished job = Submit(WriteTo(code + "/0123456789abcdef.code"), {"--data-root", cache});
  EXPECT_EQ(job.code, 4) << job.errors;
  EXPECT_NE(job.errors.find(kKept), std::string::npos) << job.errors;
  EXPECT_FALSE(fs::exists(code + "/0123456789abcdef.code"));
  cluster_.EndAndExpectNothingLeft();
}

// Token and key files that are kept elsewhere have no mark.
TEST_F(RootsTest, TokensElsewhereAndFoldersOfOtherMastersAreClosed) {
  WriteText(cluster_.folder() + "/shared", "0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(chmod((cluster_.folder() + "/shared").c_str(), 0600), 0);
  const auto master =
      cluster_.Start({"master", "--listen", "127.0.0.1:0", "--state", "other", "--token-file", "shared"});
  ASSERT_TRUE(master->WaitFor("listens on")) << master->output();
  std::string address = ReadText(cluster_.folder() + "/other/address");
  address.pop_back();
  // The worker knows nothing of where the master keeps what, and has a token file of another name.
  fs::copy_file(cluster_.folder() + "/shared", cluster_.folder() + "/copy");
  ASSERT_EQ(chmod((cluster_.folder() + "/copy").c_str(), 0600), 0);
  const auto worker = cluster_.Start(
      {"worker", "--name", "alpha", "--threads", "1", "--master", address, "--token-file", "copy"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  for (const char* path : {"shared", "copy", "other/jobs.sqlite", "other/address"}) {
    const Finished job = Submit(ReadOf(path), {"--master", address, "--token-file", "shared"});
    EXPECT_EQ(job.code, 4) << path << job.errors;
    EXPECT_NE(job.errors.find(kKept), std::string::npos) << job.errors;
  }
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);
  cluster_.EndAndExpectNothingLeft();
}

// A link is put in the place of a folder, and the folder back, while jobs read and write there.
TEST_F(RootsTest, AFolderThatIsSwappedForALinkLeadsNowhere) {
  cluster_.StartWorker("alpha");
  WriteText(cluster_.folder() + "/sub/secret.csv", "harmless\n");
  fs::create_symlink(outside_.path(), cluster_.folder() + "/link");
  std::atomic<bool> ended = false;
  std::thread swapping([&] {
    while (!ended)
      renameat2(AT_FDCWD, (cluster_.folder() + "/sub").c_str(), AT_FDCWD,
                (cluster_.folder() + "/link").c_str(), RENAME_EXCHANGE);
  });
  for (int i = 0; i < 10; ++i) {
    const Finished read = Submit(ReadOf("sub/secret.csv"));
    EXPECT_TRUE(read.code == 0 || read.code == 4) << read.errors;
    EXPECT_EQ(read.output.find("do not tell"), std::string::npos) << read.output;
    const Finished write = Submit(WriteTo("sub/Y.csv"));
    EXPECT_TRUE(write.code == 0 || write.code == 4) << write.errors;
  }
  ended = true;
  swapping.join();
  for (const auto& entry : fs::directory_iterator(outside_.path()))
    EXPECT_EQ(entry.path().filename(), "secret.csv");
  EXPECT_EQ(ReadText(outside_.path() + "/secret.csv"), "do not tell\n");
  cluster_.EndAndExpectNothingLeft();
}

TEST(AllowedRootsTest, WhatTheWorkerAllowsBoundsWhatAJobNames) {
  ClusterOfProcesses cluster;
  const std::string folder = cluster.folder();
  WriteText(folder + "/allowed/X.csv", "1,2\n");
  WriteText(folder + "/X.csv", "3,4\n");
  WriteText(folder + "/read.dml", kRead);
  const auto worker =
      cluster.Start({"worker", "--name", "alpha", "--threads", "1", "--data-root", folder + "/allowed"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const auto submit = [&](const std::string& in) {
    return cluster.Run({"job", "submit", "--data-root", folder, "read.dml", "-nvargs", "in=" + in});
  };
  EXPECT_EQ(submit("allowed/X.csv").code, 0);
  EXPECT_EQ(submit(folder + "/allowed/X.csv").code, 0);
  const Finished job = submit("X.csv");
  EXPECT_EQ(job.code, 4);
  EXPECT_NE(
      job.errors.find("cannot read 'X.csv': it is in none of the folders that the worker lets jobs use"),
      std::string::npos)
      << job.errors;
  EXPECT_NE(job.errors.find("heddle worker --data-root " + fs::canonical(folder).string()), std::string::npos)
      << job.errors;
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

TEST(AllowedRootsTest, WhatTheMasterAllowsBoundsWhatAJobNames) {
  ClusterOfProcesses cluster;
  const std::string folder = cluster.folder();
  WriteText(folder + "/allowed/X.csv", "1,2\n");
  WriteText(folder + "/X.csv", "3,4\n");
  WriteText(folder + "/read.dml", kRead);
  const auto master = cluster.Start(
      {"master", "--listen", "127.0.0.1:0", "--state", "state/other", "--data-root", folder + "/allowed"});
  ASSERT_TRUE(master->WaitFor("listens on")) << master->output();
  std::string address = ReadText(folder + "/state/other/address");
  address.pop_back();
  const std::string tokens = folder + "/state/other/";
  const auto worker = cluster.Start({"worker", "--name", "alpha", "--threads", "1", "--master", address,
                                     "--token-file", tokens + "worker.token"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const auto submit = [&](const std::string& in, std::vector<std::string> options = {}) {
    std::vector<std::string> words = {"job",   "submit",       "--master",
                                      address, "--token-file", tokens + "client.token"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"read.dml", "-nvargs", "in=" + in});
    return cluster.Run(words);
  };
  EXPECT_EQ(submit("allowed/X.csv").code, 0);
  const Finished job = submit("X.csv");
  EXPECT_EQ(job.code, 4);
  EXPECT_NE(job.errors.find("it is in none of the folders that the master lets jobs use"), std::string::npos)
      << job.errors;
  const Finished named = submit("X.csv", {"--data-root", folder});
  EXPECT_EQ(named.code, 2);
  EXPECT_NE(named.errors.find("--data-root: '" + folder +
                              "' is in none of the folders that the master lets jobs use"),
            std::string::npos)
      << named.errors;
  EXPECT_EQ(cluster.Run({"master", "--dev", "--data-root", "nowhere"}).errors,
            "heddle: error: --data-root: there is no folder 'nowhere'\n");
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// In a working folder that was deleted, a relative path names nothing; it named a file beside the root once.
TEST(DeletedFolderTest, RelativePathsAreErrors) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string folder = cluster.folder();
  WriteText(folder + "/X.csv", "1,2\n");
  const std::string name = "heddle-test-of-deleted-folders.csv";
  const auto in_deleted = [&](const std::string& words) {
    return RunProcess(
        {"/bin/sh", "-c", "mkdir gone && cd gone && rmdir ../gone && exec '" + Binary() + "' " + words},
        folder);
  };
  const std::string write = "-e 'write(matrix(1, rows=1, cols=1), \"" + name + "\", format=\"csv\")'";
  for (const std::string& words : {"run " + write, "sim --workers 2 " + write}) {
    const Finished finished = in_deleted(words);
    EXPECT_EQ(finished.code, 4) << words << finished.errors;
    EXPECT_NE(finished.errors.find("cannot write '" + name +
                                   "': the folder that it begins at was deleted\n"
                                   "go to a folder that is there, or give a path that begins with '/'"),
              std::string::npos)
        << finished.errors;
  }
  for (const std::string& words :
       {"run -e 'print(sum(read(\"" + name + "\")))'",
        "sim --workers 2 -e 'print(sum(read(\"" + name + "\")))'", "inspect " + name,
        "convert " + name + " out.npy", "convert " + folder + "/X.csv " + name, "run " + name,
        "check " + name, "job submit " + name, std::string("job submit -e 'print(1)'")}) {
    const Finished finished = in_deleted(words);
    EXPECT_EQ(finished.code, 4) << words << finished.errors;
    EXPECT_EQ(finished.output, "") << words;
  }
  EXPECT_FALSE(fs::exists("/" + name));
  EXPECT_FALSE(fs::exists(folder + "/gone"));
  // Absolute ones, and scripts without paths, are as good as anywhere.
  EXPECT_EQ(in_deleted("run -e 'print(sum(read(\"" + folder + "/X.csv\")))'").output, "3.0\n");
  EXPECT_EQ(in_deleted("sim --workers 2 -e 'print(sum(read(\"" + folder + "/X.csv\")))'").output, "3.0\n");
  EXPECT_EQ(in_deleted("job logs j1").code, 4) << "there is no job";
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

// SPDX-License-Identifier: Apache-2.0
// Who may be what: each role has its own token, each worker its own identity.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cluster/access/token_store.h"
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

TEST(RolesTest, ATokenIsForOneRole) {
  ClusterOfProcesses cluster;
  cluster.StartWorker("alpha");
  const std::string folder = cluster.master_folder();
  for (const char* role : {"client", "admin", "worker"}) {
    struct stat status = {};
    ASSERT_EQ(stat((folder + "/" + role + ".token").c_str(), &status), 0) << role;
    EXPECT_EQ(status.st_mode & 07777, 0600u) << role;
  }
  EXPECT_NE(ReadText(folder + "/client.token"), ReadText(folder + "/worker.token"));
  EXPECT_NE(ReadText(folder + "/client.token"), ReadText(folder + "/admin.token"));
  const auto run = [&](const char* role, std::vector<std::string> words) {
    words.insert(words.end(), {"--token-file", folder + "/" + role + ".token"});
    return cluster.Run(words);
  };

  const Finished worker = run("client", {"worker", "--name", "beta"});
  EXPECT_EQ(worker.code, 6);
  EXPECT_EQ(worker.errors,
            "heddle: error: the token 'client' of " + cluster::OwnUserName() +
                " has the role submitter; Workers.Connect takes worker\n"
                "an administrator makes tokens of other roles: heddle admin token create NAME --role ROLE\n");
  EXPECT_EQ(run("admin", {"worker", "--name", "beta"}).code, 6);
  for (const char* verb : {"list", "status", "logs", "cancel", "wait"}) {
    std::vector<std::string> words = {"job", verb};
    if (std::string(verb) != "list") words.push_back("j1");
    const Finished job = run("worker", words);
    EXPECT_EQ(job.code, 6) << verb;
    EXPECT_NE(job.errors.find(" has the role worker; Jobs."), std::string::npos) << verb << job.errors;
  }
  EXPECT_EQ(run("worker", {"job", "submit", "-e", "print(1)"}).code, 6);
  EXPECT_EQ(run("worker", {"admin", "nodes"}).code, 6);
  const Finished drain = run("client", {"admin", "drain", "alpha"});
  EXPECT_EQ(drain.code, 6);
  EXPECT_NE(drain.errors.find(" has the role submitter; Admin.Drain takes operator or admin"),
            std::string::npos)
      << drain.errors;

  EXPECT_EQ(run("client", {"admin", "nodes"}).code, 0);
  EXPECT_EQ(run("client", {"job", "submit", "-e", "print(1)"}).output, "1\n");
  EXPECT_EQ(run("admin", {"job", "list"}).code, 0);
  EXPECT_EQ(run("admin", {"admin", "drain", "alpha"}).code, 0);
  cluster.EndAndExpectNothingLeft();
}

// A simple setup: whoever has the one file may be anything.
TEST(RolesTest, OneTokenForAllRolesWhenTheMasterIsToldSo) {
  ClusterOfProcesses cluster;
  WriteText(cluster.folder() + "/shared", "0123456789abcdef0123456789abcdef\n");
  ASSERT_EQ(chmod((cluster.folder() + "/shared").c_str(), 0600), 0);
  const auto master = cluster.Start(
      {"master", "--listen", "127.0.0.1:0", "--state", "state/other", "--token-file", "shared"});
  ASSERT_TRUE(master->WaitFor("listens on")) << master->output();
  std::string address = ReadText(cluster.folder() + "/state/other/address");
  address.pop_back();
  const auto worker = cluster.Start(
      {"worker", "--name", "alpha", "--threads", "1", "--master", address, "--token-file", "shared"});
  ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
  const std::vector<std::string> there = {"--master", address, "--token-file", "shared"};
  std::vector<std::string> submit = {"job", "submit", "-e", "print(1)"};
  submit.insert(submit.end(), there.begin(), there.end());
  EXPECT_EQ(cluster.Run(submit).output, "1\n");
  std::vector<std::string> drain = {"admin", "drain", "alpha"};
  drain.insert(drain.end(), there.begin(), there.end());
  EXPECT_EQ(cluster.Run(drain).code, 0);
  worker->Signal(SIGTERM);
  EXPECT_EQ(worker->Wait(), 0);
  master->Signal(SIGTERM);
  EXPECT_EQ(master->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// As when a machine is made from the image of another.
TEST(RolesTest, ACopyOfAWorkersFolderIsRefusedWhileTheFirstIsAlive) {
  ClusterOfProcesses cluster;
  BackgroundProcess& first = cluster.StartWorker("alpha");
  const std::string state = cluster.folder() + "/state";
  const std::string copy = cluster.folder() + "/copy";
  std::filesystem::create_directories(copy + "/heddle");
  std::filesystem::copy(state + "/heddle/workers", copy + "/heddle/workers",
                        std::filesystem::copy_options::recursive);
  const std::string master = "unix:" + cluster.master_folder() + "/master.sock";
  const std::string token = cluster.master_folder() + "/worker.token";
  setenv("XDG_STATE_HOME", copy.c_str(), 1);
  const Finished second =
      cluster.Run({"worker", "--name", "alpha", "--master", master, "--token-file", token});
  setenv("XDG_STATE_HOME", state.c_str(), 1);
  EXPECT_EQ(second.code, 6);
  EXPECT_NE(second.errors.find("heddle: error: worker alpha is here already, on "), std::string::npos)
      << second.errors;
  EXPECT_NE(second.errors.find("(pid " + std::to_string(first.pid()) +
                               "): this one has a copy of its identity\n" + "without the file " + copy +
                               "/heddle/workers/alpha/identity this worker gets an identity of its own\n"),
            std::string::npos)
      << second.errors;
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(1)"}).output, "1\n") << "the first one works on";

  // With an identity of its own it is another worker.
  std::filesystem::remove(copy + "/heddle/workers/alpha/identity");
  setenv("XDG_STATE_HOME", copy.c_str(), 1);
  const auto other = cluster.Start({"worker", "--name", "alpha", "--master", master, "--token-file", token});
  setenv("XDG_STATE_HOME", state.c_str(), 1);
  EXPECT_TRUE(other->WaitFor("works for the master")) << other->output();
  EXPECT_EQ(cluster.Run({"job", "submit", "--workers", "2", "-e", "print(2)"}).output, "2\n");
  other->Signal(SIGTERM);
  EXPECT_EQ(other->Wait(), 0);
  cluster.EndAndExpectNothingLeft();
}

// kill -9 and a new start in the same folder: at once, as nobody else can hold the folder.
TEST(RolesTest, AWorkerThatIsStartedAgainIsTakenAtOnce) {
  ClusterOfProcesses cluster(/*lease_ms=*/60'000);
  cluster.StartWorker("alpha").Signal(SIGKILL);
  EXPECT_EQ(cluster.worker(0).Wait(), 128 + SIGKILL);
  cluster.StartWorker("alpha");
  EXPECT_EQ(cluster.Run({"job", "submit", "-e", "print(1)"}).output, "1\n");
  cluster.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

// SPDX-License-Identifier: Apache-2.0
// Tokens of users, programs and workers, as an administrator handles them; whose jobs are whose; what
// executors are kept from.
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cluster/executor/isolation.h"
#include "tests/cluster/cluster_of_processes.h"

namespace heddle::testing_support {
namespace {

class TokensTest : public testing::Test {
 protected:
  // Makes a token in FOLDER/NAME and returns that path.
  std::string Make(const std::string& name, std::vector<std::string> options) {
    const std::string file = cluster_.folder() + "/" + name;
    std::vector<std::string> words = {"admin", "token", "create", name, "--out", file};
    words.insert(words.end(), options.begin(), options.end());
    const Finished made = cluster_.Run(words);
    EXPECT_EQ(made.code, 0) << made.errors;
    EXPECT_EQ(made.output, "");
    return file;
  }
  Finished As(const std::string& file, std::vector<std::string> words) {
    words.insert(words.begin() + 2, {"--token-file", file});
    return cluster_.Run(words);
  }

  ClusterOfProcesses cluster_;
};

TEST_F(TokensTest, AreMadeListedRotatedAndRevokedWithoutARestart) {
  const std::string file = Make("ci", {"--role", "submitter", "--owner", "anna", "--expires", "2h"});
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(cluster_.Run({"admin", "token", "create", "x", "--role", "viewer", "--out", file}).errors,
            "heddle: error: --out: '" + file + "' is there already\n");
  EXPECT_EQ(As(file, {"job", "list"}).code, 0);

  const Finished list = cluster_.Run({"admin", "token", "list", "--json"});
  EXPECT_EQ(list.code, 0) << list.errors;
  EXPECT_NE(
      list.output.find("{\"name\":\"ci\",\"owner\":\"anna\",\"roles\":[\"submitter\"],\"state\":\"valid\","),
      std::string::npos)
      << list.output;
  EXPECT_NE(cluster_.Run({"admin", "token", "list"}).output.find("worker (reusable)"), std::string::npos);

  const Finished rotated = cluster_.Run({"admin", "token", "rotate", "ci"});
  EXPECT_EQ(rotated.code, 0) << rotated.errors;
  EXPECT_EQ(rotated.output.substr(0, 7), "heddle_");
  const Finished old = As(file, {"job", "list"});
  EXPECT_EQ(old.code, 6);
  EXPECT_NE(old.errors.find("does not accept the token: 'ci' of anna has another secret since "),
            std::string::npos)
      << old.errors;
  WriteText(file, rotated.output);
  EXPECT_EQ(As(file, {"job", "list"}).code, 0);

  EXPECT_EQ(cluster_.Run({"admin", "token", "revoke", "ci"}).output,
            "the token 'ci' of anna lets nobody in any more\n");
  const Finished revoked = As(file, {"job", "list"});
  EXPECT_EQ(revoked.code, 6);
  EXPECT_NE(revoked.errors.find("does not accept the token: 'ci' of anna was revoked on "), std::string::npos)
      << revoked.errors;
  EXPECT_EQ(cluster_.Run({"admin", "token", "revoke", "admin"}).code, 2) << "nobody could make another";
  EXPECT_EQ(As(file, {"admin", "nodes"}).code, 6);
  // The secret is in no file of the master's.
  for (const auto& entry : std::filesystem::directory_iterator(cluster_.master_folder()))
    if (entry.is_regular_file()) {
      EXPECT_EQ(ReadText(entry.path().string()).find(rotated.output.substr(0, rotated.output.size() - 1)),
                std::string::npos)
          << entry.path();
    }
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(TokensTest, AUserSeesAndCancelsOwnJobsOnly) {
  const std::string anna = Make("anna", {"--role", "submitter", "--owner", "anna"});
  const std::string bob = Make("bob", {"--role", "submitter", "--owner", "bob"});
  const std::string viewer = Make("eye", {"--role", "viewer"});
  const std::string boss = Make("boss", {"--role", "operator"});
  const auto submit = [&](const std::string& file) {
    return As(file, {"job", "submit", "--request-id", "same", "--detach", "-e", "stop(\"secret \" + 7)"});
  };
  EXPECT_EQ(submit(anna).output, "j1\n");
  EXPECT_EQ(submit(bob).output, "j2\n") << "a request id is its owner's";
  EXPECT_EQ(submit(anna).output, "j1\n");
  const auto ids = [&](const std::string& file) {
    std::string all;
    std::istringstream lines(As(file, {"job", "list", "--json"}).output);
    for (std::string line; std::getline(lines, line);)
      all += nlohmann::json::parse(line)["job"].get<std::string>() + " ";
    return all;
  };
  EXPECT_EQ(ids(anna), "j1 ");
  EXPECT_EQ(ids(bob), "j2 ");
  EXPECT_EQ(ids(viewer), "j2 j1 ");
  EXPECT_EQ(ids(boss), "j2 j1 ");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"status"},
                                                                                     {"logs"},
                                                                                     {"logs", "--rank", "0"},
                                                                                     {"cancel"},
                                                                                     {"wait"},
                                                                                     {"retry"},
                                                                                     {"delete"},
                                                                                     {"report"}}) {
    const std::string& verb = words[0];
    const auto ask = [&](const std::string& job) {
      std::vector<std::string> all = words;
      all.insert(all.begin(), "job");
      all.push_back(job);
      if (verb == "report") all.push_back("report.html");
      return As(bob, all);
    };
    Finished other = ask("j1");
    const Finished unknown = ask("j9");
    EXPECT_EQ(other.code, 4) << verb << other.errors;
    EXPECT_NE(other.errors.find("there is no job 'j1'"), std::string::npos) << other.errors;
    other.errors.replace(other.errors.find("j1"), 2, "j9");
    EXPECT_EQ(other.errors, unknown.errors) << verb;
  }
  for (const char* verb : {"cancel", "logs", "retry", "delete"})
    EXPECT_EQ(As(viewer, {"job", verb, "j1"}).code, 6) << verb;
  EXPECT_EQ(As(viewer, {"job", "report", "j1", "report.html"}).code, 6);
  EXPECT_NE(As(anna, {"job", "status", "j1"}).output.find("owner    anna"), std::string::npos);
  EXPECT_EQ(As(boss, {"job", "cancel", "j2"}).output, "j2 CANCELLED\n");

  // Why a job has failed is its owner's business.
  cluster_.StartWorker("alpha");
  EXPECT_EQ(As(anna, {"job", "wait", "j1"}).code, 1);
  EXPECT_NE(As(anna, {"job", "status", "j1"}).output.find("secret 7"), std::string::npos);
  for (std::vector<std::string> words : {std::vector<std::string>{"job", "status", "j1"},
                                         {"job", "status", "j1", "--json"},
                                         {"job", "list"},
                                         {"job", "list", "--json"}}) {
    const Finished seen = As(viewer, words);
    EXPECT_NE(seen.output.find("FAILED"), std::string::npos) << seen.output;
    EXPECT_EQ(seen.output.find("secret"), std::string::npos) << seen.output;
  }
  // Nor do guesses tell it.
  EXPECT_EQ(As(viewer, {"job", "list", "--json", "--text", "secret"}).output, "");
  EXPECT_NE(As(anna, {"job", "list", "--json", "--text", "secret"}).output, "");

  // What an operator retries is the owner's; who deletes it is its owner or an operator.
  EXPECT_EQ(As(boss, {"job", "retry", "--detach", "j1"}).output, "j3\n");
  EXPECT_EQ(As(anna, {"job", "wait", "j3"}).code, 1);
  EXPECT_EQ(As(anna, {"job", "delete", "j1"}).output, "j1 deleted\n");
  EXPECT_EQ(As(boss, {"job", "delete", "j3"}).output, "j3 deleted\n");
  EXPECT_EQ(ids(viewer), "j2 ");
  // A priority above that of others is for operators.
  const auto hurry = [&](const std::string& file) {
    return As(file, {"job", "submit", "--detach", "--priority", "5", "-e", "print(1)"});
  };
  EXPECT_EQ(hurry(anna).code, 6);
  EXPECT_EQ(hurry(boss).code, 0);
  cluster_.EndAndExpectNothingLeft();
}

// By verbs; the table of all methods is AccessTableTest.
TEST_F(TokensTest, AnOperatorLooksAfterWorkersAndAnAdministratorAfterTheMaster) {
  cluster_.StartWorker("alpha");
  const std::string boss = Make("boss", {"--role", "operator"});
  const std::string anna = Make("anna", {"--role", "submitter"});
  const std::string viewer = Make("eye", {"--role", "viewer"});
  const std::vector<std::vector<std::string>> of_operators = {
      {"admin", "drain", "alpha"}, {"admin", "undrain", "alpha"}, {"admin", "config"}};
  const std::vector<std::vector<std::string>> of_admins = {
      {"admin", "backup", "copy"}, {"admin", "gc", "--dry-run"}, {"admin", "token", "list"}};
  const auto as = [&](const std::string& file, std::vector<std::string> words) {
    words.insert(words.end(), {"--token-file", file});
    return cluster_.Run(words).code;
  };
  for (const std::vector<std::string>& words : of_operators) {
    EXPECT_EQ(as(boss, words), 0) << words[1];
    for (const std::string& file : {anna, viewer}) EXPECT_EQ(as(file, words), 6) << words[1];
  }
  for (const std::vector<std::string>& words : of_admins) {
    for (const std::string& file : {boss, anna, viewer}) EXPECT_EQ(as(file, words), 6) << words[1];
    EXPECT_EQ(as(cluster_.master_folder() + "/admin.token", words), 0) << words[1];
  }
  for (const std::string& file : {boss, anna, viewer}) EXPECT_EQ(as(file, {"admin", "top", "--once"}), 0);
  const std::string log = ReadText(cluster_.master_folder() + "/audit.log");
  EXPECT_NE(log.find("\"rpc\":\"Admin.Backup\",\"object\":\"\",\"outcome\":\"OK\""), std::string::npos);
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(TokensTest, AWorkerJoinsOnceAndHasAnIdentityOfItsOwn) {
  const std::string invitation = Make("invitation", {"--role", "worker"});
  // Not the token that the master makes for workers of its own user.
  ASSERT_EQ(cluster_.Run({"admin", "token", "revoke", "worker"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(cluster_.master_folder() + "/worker.token"));
  const auto start = [&](const std::string& name, const std::string& file) {
    return cluster_.Start({"worker", "--name", name, "--threads", "1", "--token-file", file});
  };
  auto alpha = start("alpha", invitation);
  ASSERT_TRUE(alpha->WaitFor("works for the master")) << alpha->output();
  const Finished second = cluster_.Run({"worker", "--name", "beta", "--token-file", invitation});
  EXPECT_EQ(second.code, 6);
  EXPECT_NE(second.errors.find("the token 'invitation' has let worker alpha join, and lets one join\n"
                               "make one for this worker: heddle admin token create NAME --role worker\n"),
            std::string::npos)
      << second.errors;
  const Finished none = cluster_.Run({"worker", "--name", "gamma"});
  EXPECT_EQ(none.code, 6);
  EXPECT_NE(none.errors.find("does not know worker gamma, and there is no token by which it could join\n"
                             "where the master is: heddle admin token create NAME --role worker\n"
                             "here: heddle worker --token-file FILE, with the token in the file\n"),
            std::string::npos)
      << none.errors;
  EXPECT_NE(cluster_.Run({"admin", "token", "list"}).output.find("worker (of alpha)"), std::string::npos);

  // It comes back without the token, also to a master that was started again.
  alpha->Signal(SIGTERM);
  EXPECT_EQ(alpha->Wait(), 0) << alpha->output();
  ASSERT_EQ(cluster_.Run({"admin", "token", "revoke", "invitation"}).code, 0);
  std::filesystem::remove(invitation);
  cluster_.master().Signal(SIGTERM);
  EXPECT_EQ(cluster_.master().Wait(), 0);
  cluster_.StartMaster();
  alpha = start("alpha", invitation);
  ASSERT_TRUE(alpha->WaitFor("works for the master")) << alpha->output();
  EXPECT_EQ(cluster_.Run({"job", "submit", "-e", "print(1)"}).output, "1\n");

  // Until it is removed.
  EXPECT_EQ(cluster_.Run({"admin", "remove", "alpha"}).output, "alpha is let in no more\n");
  EXPECT_EQ(alpha->Wait(), 6) << alpha->output();
  EXPECT_NE(alpha->output().find("does not know worker alpha"), std::string::npos) << alpha->output();
  EXPECT_EQ(cluster_.Run({"admin", "remove", "alpha"}).code, 4);
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(TokensTest, AReusableTokenIsNamedWhenAWorkerIsRemoved) {
  const std::string pool = Make("pool", {"--role", "worker", "--reusable"});
  for (const char* name : {"alpha", "beta"}) {
    const auto worker = cluster_.Start({"worker", "--name", name, "--threads", "1", "--token-file", pool});
    ASSERT_TRUE(worker->WaitFor("works for the master")) << worker->output();
    worker->Signal(SIGTERM);
    EXPECT_EQ(worker->Wait(), 0);
  }
  const Finished removed = cluster_.Run({"admin", "remove", "alpha"});
  EXPECT_NE(removed.errors.find(
                "the token 'pool' lets further workers join, also one on that machine: heddle admin "
                "token revoke pool"),
            std::string::npos)
      << removed.errors;
  const Finished again = cluster_.Run({"worker", "--name", "alpha", "--token-file", pool});
  EXPECT_EQ(again.code, 6);
  EXPECT_NE(again.errors.find(": this identity does not join again\nwithout the file "), std::string::npos)
      << again.errors;
  const Finished lost =
      cluster_.Run({"admin", "token", "create", "x", "--role", "viewer", "--out", "none/x"});
  EXPECT_NE(lost.errors.find("the token is made: 'heddle admin token rotate x' makes its secret anew"),
            std::string::npos)
      << lost.errors;
  cluster_.EndAndExpectNothingLeft();
}

TEST_F(TokensTest, WhatWasDoneIsInTheLogAndNoSecret) {
  const std::string anna = Make("anna", {"--role", "submitter", "--owner", "anna"});
  EXPECT_EQ(As(anna, {"job", "submit", "--detach", "-e", "print(1)"}).code, 0);
  EXPECT_EQ(As(anna, {"job", "cancel", "j1"}).code, 0);
  EXPECT_EQ(As(anna, {"admin", "drain", "alpha"}).code, 6);
  WriteText(cluster_.folder() + "/wrong", "0123456789abcdef0123456789abcdef\n");
  EXPECT_EQ(As(cluster_.folder() + "/wrong", {"job", "list"}).code, 6);
  cluster_.StartWorker("alpha");
  const std::string log = ReadText(cluster_.master_folder() + "/audit.log");
  std::vector<std::string> told;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
    told.push_back(text("token") + " " + text("rpc") + " " + text("object") + " " + text("outcome"));
    EXPECT_EQ(text("peer").find("user " + std::to_string(geteuid()) + ", process "), 0u) << line;
  }
  EXPECT_EQ(told,
            (std::vector<std::string>{"admin Tokens.Create anna OK", "anna Jobs.Submit j1 OK",
                                      "anna Jobs.Cancel j1 OK", "anna Admin.Drain  PERMISSION_DENIED",
                                      " Jobs.List  UNAUTHENTICATED", "worker Workers.Connect alpha OK"}));
  for (const std::string& file :
       {anna, cluster_.folder() + "/wrong", cluster_.master_folder() + "/admin.token"}) {
    const std::string secret = ReadText(file);
    EXPECT_EQ(log.find(secret.substr(0, secret.size() - 1)), std::string::npos);
  }
  cluster_.EndAndExpectNothingLeft();
}

// The executor of a job that goes on until it is cancelled.
TEST_F(TokensTest, ExecutorsHaveNoTokenOfTheMasterAndNoNewRights) {
  cluster_.StartWorker("alpha");
  const Finished submitted =
      cluster_.Run({"job", "submit", "--detach", "-e", "x = 0\nwhile (x >= 0) x = x + 1\nprint(x)"});
  ASSERT_EQ(submitted.output, "j1\n") << submitted.errors;
  std::vector<pid_t> executors;
  const auto is_isolated = [&] {
    executors = ClusterOfProcesses::ChildrenOf(cluster_.worker(0).pid());
    return executors.size() == 1 &&
           ReadText("/proc/" + std::to_string(executors[0]) + "/status").find("NoNewPrivs:\t1") !=
               std::string::npos;
  };
  for (int tries = 0; tries < 2000 && !is_isolated(); ++tries) usleep(10'000);  // Between two looks.
  ASSERT_TRUE(is_isolated());
  const std::string executor = "/proc/" + std::to_string(executors[0]);
  std::vector<std::string> secrets;
  for (const char* name : {"client", "admin", "worker"})
    secrets.push_back(ReadText(cluster_.master_folder() + "/" + name + ".token"));
  secrets.push_back(ReadText(cluster_.folder() + "/state/heddle/workers/alpha/identity"));
  for (std::string& secret : secrets) {
    secret.pop_back();
    for (const char* file : {"/environ", "/cmdline"})
      EXPECT_EQ(ReadText(executor + file).find(secret), std::string::npos) << file;
  }
  for (const auto& entry : std::filesystem::directory_iterator(executor + "/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    EXPECT_EQ(target.find(cluster_.folder() + "/state"), std::string::npos) << target;
  }
  const Finished nodes = cluster_.Run({"admin", "nodes", "--json"});
  EXPECT_NE(nodes.output.find("\"isolation\":\"" + cluster::DescribeIsolation() + "\""), std::string::npos)
      << nodes.output;
  EXPECT_EQ(cluster_.Run({"job", "cancel", "j1"}).code, 0);
  cluster_.EndAndExpectNothingLeft();
}

}  // namespace
}  // namespace heddle::testing_support

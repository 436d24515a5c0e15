// SPDX-License-Identifier: Apache-2.0
#include "cluster/access/token_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/access/master_folder.h"
#include "cluster/security/token.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;
constexpr int64_t kHourMs = 3'600'000;

class TokenStoreTest : public testing::Test {
 protected:
  TokenStoreTest() {
    clock_.Advance(1000 * kHourNs);
    Open();
  }
  void Open(const TokenStore::GivenTokens& given = {}) {
    store_.reset();
    Result<std::unique_ptr<TokenStore>> opened = TokenStore::Open(folder_.path(), given, clock_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = *std::move(opened);
  }
  std::string Create(const std::string& name, Roles roles, int64_t lives_ms = 0, bool reusable = false) {
    Token made;
    const Result<std::string> secret = store_->Create({name, "anna", roles, lives_ms, reusable}, &made);
    EXPECT_TRUE(secret.ok()) << secret.status().ToString();
    return secret.ok() ? *secret : "";
  }
  Status Refusal(const std::string& secret) { return store_->Find("Bearer " + secret).status(); }
  Caller CallerOf(const std::string& secret) {
    const Result<Caller> caller = store_->Find("Bearer " + secret);
    EXPECT_TRUE(caller.ok()) << caller.status().ToString();
    return caller.ok() ? *caller : Caller();
  }
  std::string OfFile(std::string_view name) { return *ReadFirstLine(TokenFile(folder_.path(), name)); }
  Status Revoke(const std::string& name) {
    Token revoked;
    return store_->Revoke(name, &revoked);
  }

  testing_support::TemporaryFolder folder_;
  VirtualClock clock_;
  std::unique_ptr<TokenStore> store_;
};

TEST_F(TokenStoreTest, AMasterMakesTokensForItsOwnUser) {
  EXPECT_TRUE(CallerOf(OfFile(kClientToken)).roles.Has(Role::kSubmitter));
  EXPECT_TRUE(CallerOf(OfFile(kAdminToken)).roles.Has(Role::kAdmin));
  EXPECT_TRUE(CallerOf(OfFile(kWorkerToken)).roles.Has(Role::kWorker));
  EXPECT_EQ(CallerOf(OfFile(kClientToken)).owner, OwnUserName());
  EXPECT_FALSE(CallerOf(OfFile(kClientToken)).roles.Has(Role::kAdmin));
  const std::string client = OfFile(kClientToken);
  Open();
  EXPECT_EQ(CallerOf(client).token, "client") << "the same after a restart";
}

TEST_F(TokenStoreTest, SecretsAreNotInTheFile) {
  const std::string secret = Create("ci", {Role::kSubmitter});
  EXPECT_EQ(secret.size(), std::string("heddle_").size() + 64);
  const std::string text = testing_support::ReadText(folder_.path() + "/tokens.json");
  EXPECT_NE(text.find("\"ci\""), std::string::npos);
  for (const std::string& known : {secret, OfFile(kClientToken), OfFile(kAdminToken), OfFile(kWorkerToken)})
    EXPECT_EQ(text.find(known), std::string::npos);
  struct stat status {};
  ASSERT_EQ(stat((folder_.path() + "/tokens.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  Open();
  EXPECT_EQ(CallerOf(secret).owner, "anna");
}

TEST_F(TokenStoreTest, WhatIsNoTokenLetsNobodyIn) {
  for (const char* authorization : {"", "Bearer ", "Bearer x", "heddle_", "bearer x"})
    EXPECT_EQ(store_->Find(authorization).status().message(), "it is none of its tokens") << authorization;
  // Not even who knows the hashes.
  for (const Token& token : store_->List()) EXPECT_FALSE(store_->Find("Bearer " + token.hash).ok());
}

TEST_F(TokenStoreTest, ATokenExpires) {
  const std::string secret = Create("ci", {Role::kSubmitter}, 2 * kHourMs);
  clock_.Advance(2 * kHourNs - 1'000'000);
  EXPECT_TRUE(Refusal(secret).ok());
  clock_.Advance(1'000'000);
  EXPECT_EQ(Refusal(secret).message(), "'ci' of anna expired on 1970-02-11 18:00 UTC");
  std::string name;
  EXPECT_FALSE(store_->Find("Bearer " + secret, &name).ok());
  EXPECT_EQ(name, "ci") << "the log can name it";
  EXPECT_TRUE(Refusal(Create("ci", {Role::kViewer})).ok()) << "its name is free again";
}

TEST_F(TokenStoreTest, ARevokedTokenLetsNobodyInAlsoAfterARestart) {
  const std::string secret = Create("ci", {Role::kSubmitter});
  EXPECT_TRUE(Revoke("ci").ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Refusal(secret).message(), "'ci' of anna was revoked on 1970-02-11 16:00 UTC");
    Open();
  }
  EXPECT_EQ(Revoke("none").ToString(),
            "there is no token 'none'\n'heddle admin token list' lists the tokens");
  // The first tokens as well: they are not made again.
  const std::string client = OfFile(kClientToken);
  EXPECT_TRUE(Revoke("client").ok());
  EXPECT_FALSE(std::filesystem::exists(TokenFile(folder_.path(), kClientToken)));
  Open();
  EXPECT_FALSE(Refusal(client).ok());
  EXPECT_FALSE(std::filesystem::exists(TokenFile(folder_.path(), kClientToken)));
}

TEST_F(TokenStoreTest, SomebodyCanAlwaysMakeTokens) {
  EXPECT_EQ(Revoke("admin").message(),
            "'admin' is the last token with the role admin: nobody could make another");
  Create("root", {Role::kAdmin});
  EXPECT_TRUE(Revoke("admin").ok());
  EXPECT_EQ(Revoke("root").notes()[0], "make one first: heddle admin token create NAME --role admin");
}

TEST_F(TokenStoreTest, ANameIsThatOfOneToken) {
  Create("ci", {Role::kSubmitter});
  Token made;
  const Status taken = store_->Create({"ci", "bob", {Role::kViewer}, 0, false}, &made).status();
  EXPECT_EQ(taken.ToString(),
            "there is a token 'ci' of anna already\n"
            "give another name, or make a new secret for this one: heddle admin token rotate NAME");
  EXPECT_EQ(store_->Create({"admin", "bob", {Role::kViewer}, 0, false}, &made).status().code(),
            StatusCode::kUsage);
}

TEST_F(TokenStoreTest, TheNumberOfTokensHasALimit) {
  nlohmann::json json = nlohmann::json::parse(testing_support::ReadText(folder_.path() + "/tokens.json"));
  const nlohmann::json one = json["tokens"][0];
  for (int i = 3; i < 10'000; ++i) {
    json["tokens"].push_back(one);
    json["tokens"].back()["name"] = std::to_string(i);
    json["tokens"].back()["hash"] = std::to_string(i);
  }
  testing_support::WriteText(folder_.path() + "/tokens.json", json.dump());
  Open();
  Token made;
  EXPECT_EQ(store_->Create({"ci", "bob", {Role::kViewer}, 0, false}, &made).status().message(),
            "the master has 10000 tokens, which is the most it keeps");
}

TEST_F(TokenStoreTest, ARotatedTokenHasAnotherSecretAndTheOldOneEnds) {
  const std::string old = Create("ci", {Role::kSubmitter});
  Token rotated;
  const Result<std::string> next = store_->Rotate("ci", kHourMs, &rotated);
  ASSERT_TRUE(next.ok());
  EXPECT_NE(*next, old);
  Open();
  EXPECT_TRUE(Refusal(old).ok());
  EXPECT_TRUE(Refusal(*next).ok());
  clock_.Advance(kHourNs);
  EXPECT_EQ(Refusal(old).message(), "'ci' of anna has another secret since 1970-02-11 17:00 UTC");
  EXPECT_TRUE(Refusal(*next).ok());

  const Result<std::string> client = store_->Rotate("client", 0, &rotated);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(OfFile(kClientToken), *client) << "its file has the new one";
  EXPECT_EQ(store_->Rotate("none", 0, &rotated).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(Revoke("ci").ok());
  EXPECT_EQ(store_->Rotate("ci", 0, &rotated).status().ToString(),
            "'ci' of anna gets no new secret: it is revoked\n'heddle admin token create' makes a token");
}

TEST_F(TokenStoreTest, ATokenLetsOneWorkerJoin) {
  const std::string first(40, 'a');
  const std::string second(40, 'b');
  const Caller invited = CallerOf(Create("invitation", {Role::kWorker}));
  EXPECT_FALSE(Refusal(first).ok());
  ASSERT_TRUE(store_->Join(invited, first, "alpha").ok());
  EXPECT_TRUE(store_->Join(invited, first, "alpha").ok()) << "its answer was lost";
  const Status refused = store_->Join(invited, second, "beta");
  EXPECT_EQ(refused.message(), "the token 'invitation' has let worker alpha join, and lets one join");
  Open();
  const Caller alpha = CallerOf(first);
  EXPECT_EQ(alpha.token, "worker alpha");
  EXPECT_EQ(alpha.uuid, UuidOf(first));
  EXPECT_EQ(alpha.owner, "anna");
  EXPECT_TRUE(alpha.roles.Has(Role::kWorker));
  EXPECT_FALSE(Refusal(second).ok());
  ASSERT_TRUE(Revoke("invitation").ok());
  EXPECT_TRUE(Refusal(first).ok()) << "it has an identity of its own";
  EXPECT_EQ(store_->Join(invited, second, "beta").message(), "the token 'invitation' was revoked");
}

TEST_F(TokenStoreTest, AReusableTokenLetsMoreWorkersJoin) {
  const Caller invited = CallerOf(Create("pool", {Role::kWorker}, 0, /*reusable=*/true));
  EXPECT_TRUE(store_->Join(invited, std::string(40, 'a'), "alpha").ok());
  EXPECT_TRUE(store_->Join(invited, std::string(40, 'b'), "beta").ok());
  EXPECT_TRUE(store_->LetsJoin("pool"));
  ASSERT_TRUE(Revoke("pool").ok());
  EXPECT_FALSE(store_->LetsJoin("pool"));
}

TEST_F(TokenStoreTest, ARemovedWorkerStaysOutside) {
  const std::string secret(40, 'a');
  const Caller invited = CallerOf(Create("pool", {Role::kWorker}, 0, /*reusable=*/true));
  ASSERT_TRUE(store_->Join(invited, secret, "alpha").ok());
  const Result<JoinedWorker> removed = store_->RemoveWorker("alpha");
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->uuid, UuidOf(secret));
  EXPECT_EQ(removed->token, "pool");
  Open();
  EXPECT_EQ(Refusal(secret).message(), "worker alpha was removed on 1970-02-11 16:00 UTC");
  EXPECT_EQ(store_->Join(invited, secret, "alpha").message(),
            "worker alpha was removed on 1970-02-11 16:00 UTC: this identity does not join again");
  EXPECT_EQ(store_->RemoveWorker("alpha").status().message(), "no worker 'alpha' has joined");
}

TEST_F(TokenStoreTest, ASecretIsOfATokenOrOfAWorker) {
  const std::string secret = Create("ci", {Role::kSubmitter});
  EXPECT_EQ(store_->Join(CallerOf(OfFile(kWorkerToken)), secret, "alpha").message(),
            "worker alpha: its secret is that of a token");
}

TEST_F(TokenStoreTest, TheTokenOfAFileIsTheOnlyOneForThisMaster) {
  const std::string client = OfFile(kClientToken);
  const std::string path = folder_.path() + "/shared";
  ASSERT_TRUE(WritePrivateFile(path, "0123456789abcdef0123456789abcdef\n").ok());
  Open({.admin_file = path});
  const Caller caller = CallerOf("0123456789abcdef0123456789abcdef");
  EXPECT_TRUE(caller.roles.Has(Role::kAdmin) && caller.roles.Has(Role::kWorker));
  EXPECT_FALSE(Refusal(client).ok());
  Create("root", {Role::kAdmin});
  EXPECT_EQ(Revoke("token-file").ToString(),
            "'token-file' is a token that the master was started with\n"
            "start it with another one in the file of --token-file, or without, to be rid of it");
  Token rotated;
  EXPECT_EQ(store_->Rotate("token-file", 0, &rotated).status().message(),
            "'token-file' of " + OwnUserName() +
                " gets no new secret: it is in the file that the master was started with");
  Open();
  EXPECT_FALSE(Refusal("0123456789abcdef0123456789abcdef").ok());
  EXPECT_TRUE(Refusal(client).ok());
}

// So that a machine of a worker has nothing by which somebody could administrate.
TEST_F(TokenStoreTest, WorkersMayHaveAGivenTokenOfTheirOwn) {
  const std::string admin = folder_.path() + "/given-admin", worker = folder_.path() + "/given-worker";
  ASSERT_TRUE(WritePrivateFile(admin, "0123456789abcdef0123456789abcdef\n").ok());
  ASSERT_TRUE(WritePrivateFile(worker, "fedcba9876543210fedcba9876543210\n").ok());
  Open({admin, worker});
  const Caller administrator = CallerOf("0123456789abcdef0123456789abcdef");
  EXPECT_TRUE(administrator.roles.Has(Role::kAdmin));
  EXPECT_FALSE(administrator.roles.Has(Role::kWorker));
  const Caller joins = CallerOf("fedcba9876543210fedcba9876543210");
  EXPECT_FALSE(joins.roles.Has(Role::kAdmin));
  EXPECT_TRUE(store_->Join(joins, std::string(64, 'a'), "alpha").ok());
  EXPECT_TRUE(store_->Join(joins, std::string(64, 'b'), "beta").ok()) << "any number of them";
  EXPECT_EQ(Revoke("worker-token-file").message(),
            "'worker-token-file' is a token that the master was started with");
  const Status same = TokenStore::Open(folder_.path(), {admin, admin}, clock_).status();
  EXPECT_EQ(same.ToString(),
            "--token-file and --worker-token-file hold the same token\n"
            "one token is for both without --worker-token-file");
  Open({.admin_file = admin});
  EXPECT_FALSE(Refusal("fedcba9876543210fedcba9876543210").ok());
  EXPECT_TRUE(CallerOf(std::string(64, 'a')).roles.Has(Role::kWorker)) << "who has joined stays";
}

TEST_F(TokenStoreTest, AMalformedFileIsTold) {
  store_.reset();
  for (const char* text : {"", "{}", "[1]", "{\"format\":1,\"tokens\":[{}],\"workers\":[]}"}) {
    testing_support::WriteText(folder_.path() + "/tokens.json", text);
    const Status status = TokenStore::Open(folder_.path(), {}, clock_).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << text;
    EXPECT_NE(status.message().find("tokens.json' is malformed: "), std::string::npos) << status.message();
    EXPECT_EQ(status.notes()[0],
              "without it the master makes its first tokens anew, and no other lets anybody in");
  }
  testing_support::WriteText(folder_.path() + "/tokens.json", "{\"format\":2,\"tokens\":[],\"workers\":[]}");
  EXPECT_NE(TokenStore::Open(folder_.path(), {}, clock_)
                .status()
                .message()
                .find("' was written by a newer version of Heddle"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::cluster

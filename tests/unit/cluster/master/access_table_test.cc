// SPDX-License-Identifier: Apache-2.0
// Who is let in by what: every method against every kind of caller that it is not for.
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "cluster/access/master_folder.h"
#include "cluster/access/token_store.h"
#include "cluster/client/client.h"
#include "cluster/master/master_server.h"
#include "cluster/security/grpc_hello.h"
#include "cluster/security/rpc_rules.h"
#include "cluster/security/rpc_security.h"
#include "core/environment/clock.h"
#include "proto/executor.pb.h"
#include "proto/master.pb.h"
#include "tests/cluster/certificates.h"
#include "tests/support/http_request.h"
#include "tests/support/process.h"
#include "tests/unit/cluster/linked_ranks.h"

namespace heddle::cluster {
namespace {

using grpc::StatusCode;

std::string_view NameOf(StatusCode code) {
  switch (code) {
    case StatusCode::OK: return "OK";
    case StatusCode::UNAUTHENTICATED: return "UNAUTHENTICATED";
    case StatusCode::PERMISSION_DENIED: return "PERMISSION_DENIED";
    case StatusCode::FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case StatusCode::NOT_FOUND: return "NOT_FOUND";
    case StatusCode::UNAVAILABLE: return "UNAVAILABLE";
    default: return "another code";
  }
}

// Calls a method of any kind with one message, as far as the server takes it.
grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, std::string_view path,
                  const std::string& message, const std::function<void(grpc::ClientContext*)>& introduce) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(20 * testing_support::kPatience));
  introduce(&context);
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, std::string(path), &queue);
  const grpc::Slice slice(message);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  queue.Next(&tag, &ok);
  if (ok) {
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    queue.Next(&tag, &ok);
  }
  for (bool more = true; more;) {
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    queue.Next(&tag, &more);
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
  return status;
}

std::vector<const google::protobuf::MethodDescriptor*> AllMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const google::protobuf::FileDescriptor* file :
       {SubmitRequest::descriptor()->file(), ControlFrame::descriptor()->file()})
    for (int i = 0; i < file->service_count(); ++i)
      for (int j = 0; j < file->service(i)->method_count(); ++j)
        methods.push_back(file->service(i)->method(j));
  return methods;
}
std::string PathOf(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

// One line for each method, one column for each kind of caller.
class Table {
 public:
  void Expect(const std::string& method, const std::string& caller, const grpc::Status& status,
              StatusCode code) {
    EXPECT_EQ(status.error_code(), code) << method << " for " << caller << ": " << status.error_message();
    Set(method, caller, std::string(NameOf(status.error_code())));
  }
  void Set(const std::string& method, const std::string& caller, const std::string& cell) {
    if (std::find(callers_.begin(), callers_.end(), caller) == callers_.end()) callers_.push_back(caller);
    rows_[method][caller] = cell;
  }
  ~Table() {
    std::printf("%-21s", "");
    for (const std::string& caller : callers_) std::printf(" | %-19s", caller.c_str());
    std::printf("\n");
    for (const auto& [method, row] : rows_) {
      std::printf("%-21s", method.c_str());
      for (const std::string& caller : callers_)
        std::printf(" | %-19s", row.contains(caller) ? row.at(caller).c_str() : "-");
      std::printf("\n");
    }
  }

 private:
  std::vector<std::string> callers_;
  std::map<std::string, std::map<std::string, std::string>> rows_;
};

class AccessTableTest : public testing::Test {
 protected:
  AccessTableTest()
      : authority_(folder_.path() + "/authority", {.name = "the authority", .authority = true}),
        stranger_(folder_.path() + "/stranger", {.name = "another authority", .authority = true}),
        certificate_(folder_.path() + "/master", {}, &authority_) {
    MasterOptions options;
    options.folder = folder_.path() + "/state";
    options.listen = "localhost:0";
    options.certificate = certificate_.certificate();
    options.key = certificate_.key();
    options.audit.most_strangers = 100'000;
    options.metrics_listen = "0.0.0.0:0";
    Result<std::unique_ptr<MasterServer>> server = MasterServer::Start(options);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    admin_ = *Client::Connect(AddressFor("admin"));
    channel_ = *MakeMasterChannel(server_->address(), {"", "", authority_.certificate()});
  }

  MasterAddress AddressFor(const std::string& name) {
    return {server_->address(), *ReadFirstLine(TokenFile(folder_.path() + "/state", name)),
            authority_.certificate(), "", ""};
  }
  std::string MakeToken(const std::string& name, const std::string& role, const std::string& owner = "anna",
                        int64_t lives_ms = 0) {
    CreateTokenRequest request;
    request.set_name(name);
    request.set_owner(owner);
    request.add_roles(role);
    request.set_lives_ms(lives_ms);
    TokenSecret secret;
    const Status status = admin_->CreateToken(request, &secret);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return secret.secret();
  }
  // An expired and a revoked one.
  std::pair<std::string, std::string> MakeUselessTokens() {
    const std::string expired = MakeToken("old", "admin", "anna", /*lives_ms=*/1);
    const std::string revoked = MakeToken("gone", "admin");
    TokenDescription description;
    EXPECT_TRUE(admin_->RevokeToken("gone", &description).ok());
    const int64_t made_ms = SystemClock().WallMs();
    while (SystemClock().WallMs() <= made_ms) {  // A millisecond at most.
    }
    return {expired, revoked};
  }
  grpc::Status CallAs(const std::string& token, std::string_view path, const std::string& message = "") {
    return Call(channel_, path, message, [&](grpc::ClientContext* context) { AddCaller(token, context); });
  }

  // Lines of the audit log with this method and outcome so far.
  int Audited(const std::string& rpc, StatusCode code) {
    std::istringstream lines(testing_support::ReadText(folder_.path() + "/state/audit.log"));
    int count = 0;
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = nlohmann::json::parse(line);
      count += json.at("rpc") == rpc && json.at("outcome") == std::string(NameOf(code)) ? 1 : 0;
    }
    return count;
  }
  // Makes a call that is to be refused; it is in the table and in the log.
  void ExpectRefused(Table* table, const RpcRule& rule, const std::string& caller, StatusCode code,
                     const std::function<grpc::Status()>& call) {
    const int before = Audited(rule.ShortName(), code);
    table->Expect(rule.ShortName(), caller, call(), code);
    EXPECT_EQ(Audited(rule.ShortName(), code), before + 1) << rule.ShortName() << " for " << caller;
  }

  testing_support::TemporaryFolder folder_;
  testing_support::TestCertificate authority_, stranger_, certificate_;
  std::unique_ptr<MasterServer> server_;
  std::unique_ptr<Client> admin_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(AccessTableTest, EveryMethodHasOneRule) {
  std::set<std::string_view> paths;
  for (const RpcRule& rule : RpcRules()) EXPECT_TRUE(paths.insert(rule.path).second) << rule.path;
  const auto methods = AllMethods();
  EXPECT_EQ(paths.size(), methods.size());
  for (const auto* method : methods) EXPECT_TRUE(paths.contains(PathOf(*method))) << PathOf(*method);
}

TEST_F(AccessTableTest, EveryMethodRefusesWhomItIsNotFor) {
  Table table;
  const std::string wrong = "heddle_" + std::string(64, '0');
  const auto [expired, revoked] = MakeUselessTokens();
  std::map<Role, std::string> tokens;
  for (const Role role : {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin, Role::kWorker})
    tokens[role] = MakeToken(std::string(Name(role)) + "-1", std::string(Name(role)));
  const std::string of_bob = MakeToken("bob", "submitter", "bob");
  JobSubmission submission;
  submission.request_id = "mine";
  submission.script_text = "print(1)";
  submission.directory = "/";
  MasterAddress anna = AddressFor("client");
  anna.token = tokens[Role::kSubmitter];
  const Result<SubmittedJob> job = (*Client::Connect(anna))->Submit(submission, nullptr);
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  const auto plain = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());

  for (const RpcRule& rule : RpcRules()) {
    const std::string name = rule.ShortName();
    // Without any header of ours; with the headers and no token.
    ExpectRefused(&table, rule, "no token", StatusCode::UNAUTHENTICATED,
                  [&] { return Call(channel_, rule.path, "", [](grpc::ClientContext*) {}); });
    for (const auto& [caller, token] : {std::pair<std::string, std::string>{"wrong token", wrong},
                                        {"expired token", expired},
                                        {"revoked token", revoked}})
      ExpectRefused(&table, rule, caller, StatusCode::UNAUTHENTICATED,
                    [&] { return CallAs(token, rule.path); });
    for (const auto& [role, token] : tokens) {
      if (rule.roles.Has(role)) {
        table.Set(name, std::string(Name(role)), "may");
        if (role == Role::kWorker) continue;  // it goes on
        const StatusCode code = CallAs(token, rule.path).error_code();
        EXPECT_NE(code, StatusCode::UNAUTHENTICATED) << name;
        EXPECT_NE(code, StatusCode::PERMISSION_DENIED) << name;
        continue;
      }
      ExpectRefused(&table, rule, std::string(Name(role)), StatusCode::PERMISSION_DENIED,
                    [&, &secret = token] { return CallAs(secret, rule.path); });
    }
    if (rule.object == "job" && name != "Jobs.Submit") {
      const auto ask = [&](const std::string& id) {
        RetryRequest request;  // its first field is that of the other requests
        request.set_job(id);
        if (name == "Jobs.Retry") request.set_request_id("again");
        return CallAs(of_bob, rule.path, request.SerializeAsString());
      };
      ExpectRefused(&table, rule, "other user's job", StatusCode::NOT_FOUND, [&] { return ask(job->id); });
      std::string same = ask("j77").error_message();
      same.replace(same.find("j77"), 3, job->id);
      EXPECT_EQ(ask(job->id).error_message(), same) << name;
    }
    table.Expect(name, "plaintext",
                 Call(plain, rule.path, "", [&](auto* context) { AddCaller(tokens[Role::kAdmin], context); }),
                 StatusCode::UNAVAILABLE);
    const auto distrustful = *MakeMasterChannel(server_->address(), {"", "", stranger_.certificate()});
    table.Expect(
        name, "wrong authority",
        Call(distrustful, rule.path, "", [&](auto* context) { AddCaller(tokens[Role::kAdmin], context); }),
        StatusCode::UNAVAILABLE);
  }
  // What speaks no TLS, or trusts somebody else, never comes to a call; that it was there is in the log.
  for (int tries = 0; tries < 1000 && Audited("connection", StatusCode::UNAVAILABLE) < 2; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(Audited("connection", StatusCode::UNAVAILABLE), 2);
  // No secret, of whatever token, gets into the log.
  const std::string log = testing_support::ReadText(folder_.path() + "/state/audit.log");
  for (const std::string& secret : {wrong, expired, revoked, of_bob, AddressFor("admin").token})
    EXPECT_EQ(log.find(secret), std::string::npos);
  for (const auto& [role, secret] : tokens) EXPECT_EQ(log.find(secret), std::string::npos);
}

// The one URL that says more than whether the master is well.
TEST_F(AccessTableTest, TheUrlOfMetricsRefusesWhomItIsNotFor) {
  Table table;
  const std::string address = server_->metrics_address();
  const int port = std::atoi(address.c_str() + address.rfind(':') + 1);
  const auto answer = [&](const std::string& token) {
    const std::string header = token.empty() ? "" : "Authorization: Bearer " + token + "\r\n";
    return testing_support::GetHttp(port, "/metrics", header).substr(0, 12);
  };
  const auto refused = [&](const std::string& caller, const std::string& token, StatusCode code) {
    const int before = Audited("GET /metrics", code);
    const std::string expected = code == StatusCode::UNAUTHENTICATED ? "HTTP/1.1 401" : "HTTP/1.1 403";
    EXPECT_EQ(answer(token), expected) << caller;
    EXPECT_EQ(Audited("GET /metrics", code), before + 1) << caller;
    table.Set("GET /metrics", caller, std::string(NameOf(code)));
  };
  refused("no token", "", StatusCode::UNAUTHENTICATED);
  refused("wrong token", "heddle_" + std::string(64, '0'), StatusCode::UNAUTHENTICATED);
  const auto [expired, revoked] = MakeUselessTokens();
  refused("expired token", expired, StatusCode::UNAUTHENTICATED);
  refused("revoked token", revoked, StatusCode::UNAUTHENTICATED);
  for (const char* role : {"submitter", "worker"})
    refused(role, MakeToken(std::string(role) + "-1", role), StatusCode::PERMISSION_DENIED);
  for (const char* role : {"viewer", "operator", "admin"}) {
    EXPECT_EQ(answer(MakeToken(std::string(role) + "-1", role)), "HTTP/1.1 200") << role;
    table.Set("GET /metrics", role, "may");
  }
}

TEST_F(AccessTableTest, AMethodThatThereIsNotIsRefused) {
  const std::string admin = AddressFor("admin").token;
  EXPECT_EQ(CallAs(admin, "/heddle.Jobs/Rob").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CallAs(admin, "/grpc.health.v1.Health/Check").error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Audited("/heddle.Jobs/Rob", StatusCode::PERMISSION_DENIED), 1);
}

TEST_F(AccessTableTest, WhatChangesSomethingIsInTheLog) {
  MasterAddress address = AddressFor("admin");
  const auto client = *Client::Connect(address);
  JobSubmission submission;
  submission.request_id = "mine";
  submission.script_text = "print(1)";
  submission.directory = "/";
  const Result<SubmittedJob> job = client->Submit(submission, nullptr);
  ASSERT_TRUE(job.ok());
  submission.request_id = "other";
  submission.script_text = "print(1";
  EXPECT_FALSE(client->Submit(submission, nullptr).ok());
  JobDescription description;
  ASSERT_TRUE(client->Cancel(job->id, &description).ok());
  EXPECT_EQ(description.owner(), OwnUserName());
  MakeToken("ci", "submitter");
  std::istringstream lines(testing_support::ReadText(folder_.path() + "/state/audit.log"));
  std::vector<std::string> told;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
    told.push_back(fmt::format("{} {} {} '{}' {}", text("token"), text("owner"), text("rpc"), text("object"),
                               text("outcome")));
    EXPECT_TRUE(text("peer").starts_with("127.0.0.1:") || text("peer").starts_with("[::1]:")) << line;
  }
  const std::string who = "admin " + OwnUserName();
  EXPECT_EQ(told,
            (std::vector<std::string>{who + " Jobs.Submit 'j1' OK", who + " Jobs.Submit '' INVALID_ARGUMENT",
                                      who + " Jobs.Cancel 'j1' OK", who + " Tokens.Create 'ci' OK"}));
}

TEST(ExecutorAccessTest, PeersOfAnotherAttemptAreRefused) {
  Table table;
  Links links(2);
  const std::string endpoint = links.peer(0).endpoint;
  const auto channel = grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials());
  const Hello right = {"test", 1, 1, 2, "token"};
  for (const RpcRule& rule : RpcRules()) {
    if (!rule.roles.Has(Role::kExecutor)) continue;
    const auto call = [&](const Hello& hello) {
      return Call(channel, rule.path, "", [&](grpc::ClientContext* context) { AddHello(hello, context); });
    };
    table.Expect(rule.ShortName(), "no token", Call(channel, rule.path, "", [](grpc::ClientContext*) {}),
                 StatusCode::PERMISSION_DENIED);
    Hello other = right;
    other.token = "that of another attempt";
    table.Expect(rule.ShortName(), "other attempt's token", call(other), StatusCode::PERMISSION_DENIED);
    table.Expect(
        rule.ShortName(), "token of a master",
        Call(channel, rule.path, "", [](grpc::ClientContext* context) { AddCaller("heddle_0", context); }),
        StatusCode::PERMISSION_DENIED);
  }
}

// The step of the build that writes the table ends it where a method has no rule.
TEST(RulesTest, AMethodWithoutARuleDoesNotBuild) {
  const testing_support::TemporaryFolder folder;
  const auto build = [&](const std::string& option) {
    testing_support::WriteText(
        folder.path() + "/proto/new.proto",
        "syntax = \"proto3\";\npackage heddle;\nimport \"proto/access.proto\";\nmessage M {}\n"
        "service Jobs { rpc Retry(M) returns (M) {" +
            option + "} }\n");
    std::filesystem::copy_file(std::string(HEDDLE_SOURCE_DIR) + "/proto/access.proto",
                               folder.path() + "/proto/access.proto",
                               std::filesystem::copy_options::overwrite_existing);
    return testing_support::RunProcess(
        {"/bin/sh", "-c",
         "protoc --proto_path=. --include_imports --descriptor_set_out=d proto/new.proto 2>/dev/null && '" +
             std::string(HEDDLE_BINARY_DIR) + "/heddle-write-rules' d rules.h"},
        folder.path());
  };
  const testing_support::Finished without = build("");
  EXPECT_EQ(without.code, 1);
  EXPECT_EQ(
      without.errors,
      "proto/new.proto: Jobs.Retry has no rule: who may call it? option (may_call) = {roles: [...]}, see "
      "proto/access.proto\n");
  EXPECT_EQ(build("option (may_call) = {};").errors, "proto/new.proto: Jobs.Retry: its rule names no role\n");
  EXPECT_EQ(build("option (may_call) = {roles: [\"all\"]};").errors,
            "proto/new.proto: Jobs.Retry: 'all' is no role\n");
  const testing_support::Finished with = build("option (may_call) = {roles: [\"viewer\"]};");
  EXPECT_EQ(with.code, 0) << with.errors;
  EXPECT_NE(testing_support::ReadText(folder.path() + "/rules.h").find("\"/heddle.Jobs/Retry\""),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::cluster

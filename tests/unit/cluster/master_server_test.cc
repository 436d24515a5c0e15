// SPDX-License-Identifier: Apache-2.0
#include "cluster/master_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "cluster/client.h"
#include "cluster/master_folder.h"
#include "cluster/rpc_security.h"
#include "cluster/version.h"
#include "proto/master.grpc.pb.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

class MasterServerTest : public testing::Test {
 protected:
  MasterServerTest() {
    options_.folder = folder_.path() + "/master";
    options_.listen = "127.0.0.1:0";
    auto server = MasterServer::Start(options_);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    master_ = {server_->address(), *ReadFirstLine(TokenFile(options_.folder)), "", "", ""};
  }

  grpc::Status List(const std::string& version, int protocol) {
    const auto channel = grpc::CreateChannel(master_.address, grpc::InsecureChannelCredentials());
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + master_.token);
    context.AddMetadata("heddle-version", version);
    context.AddMetadata("heddle-protocol", std::to_string(protocol));
    ListReply reply;
    const grpc::Status status = Jobs::NewStub(channel)->List(&context, ListRequest(), &reply);
    warning_ = VersionWarning(context);
    return status;
  }

  testing_support::TemporaryFolder folder_;
  MasterOptions options_;
  std::unique_ptr<MasterServer> server_;
  MasterAddress master_;
  std::string warning_;
};

TEST_F(MasterServerTest, RefusesAnotherProtocolAndNamesBothVersions) {
  EXPECT_TRUE(List(kVersion, kProtocolVersion).ok());
  EXPECT_EQ(warning_, "");
  const Status refused = FromGrpc(List("9.9.9", kProtocolVersion + 1), master_.address);
  EXPECT_EQ(ExitCode(refused), 6);
  EXPECT_EQ(refused.message(), std::string("the master is Heddle ") + kVersion + ", the caller is Heddle 9.9.9: they cannot talk to each other");
}

TEST_F(MasterServerTest, AcknowledgedJobsAreThereAfterARestart) {
  JobSubmission submission;
  submission.request_id = "mine";
  submission.script_name = "a.dml";
  submission.script_text = "print(1)";
  submission.directory = "/";
  std::string warnings;
  auto client = Client::Connect(master_);
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(*(*client)->Submit(submission, &warnings), "j1");
  submission.script_text = "print(1";
  submission.request_id = "other";
  EXPECT_EQ(ExitCode((*client)->Submit(submission, &warnings).status()), 3);

  EXPECT_FALSE(MasterServer::Start(options_).ok()) << "one master a folder";
  server_.reset();
  auto server = MasterServer::Start(options_);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  master_.address = (*server)->address();
  client = Client::Connect(master_);
  std::vector<JobDescription> jobs;
  ASSERT_TRUE((*client)->List(0, &jobs).ok());
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].job(), "j1");
  EXPECT_EQ(jobs[0].state(), "QUEUED");
  JobDescription job;
  EXPECT_EQ((*client)->Cancel("j1", &job).code(), StatusCode::kOk);
  EXPECT_EQ(job.state(), "CANCELLED");
  EXPECT_EQ((*client)->Get("j2", &job).code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace heddle::cluster

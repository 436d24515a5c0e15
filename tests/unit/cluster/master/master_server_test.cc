// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cluster/access/master_folder.h"
#include "cluster/access/token_store.h"
#include "cluster/client/client.h"
#include "cluster/master/job_store.h"
#include "cluster/master/master_submit.h"
#include "cluster/master/worker_identity.h"
#include "cluster/protocol_version.h"
#include "cluster/security/rpc_security.h"
#include "cluster/security/token.h"
#include "cluster/store/store_backup.h"
#include "core/version.h"
#include "engine/wire/value_wire.h"
#include "proto/master.grpc.pb.h"
#include "tests/support/process.h"

namespace heddle::cluster {
namespace {

// How a worker registers.
WorkerFrame Introduction(const std::string& secret) {
  WorkerFrame frame;
  WorkerIntroduction* introduction = frame.mutable_introduction();
  introduction->set_secret(secret);
  introduction->set_instance("1");
  introduction->set_name("alpha");
  introduction->set_host("here");
  introduction->set_threads(1);
  return frame;
}

class MasterServerTest : public testing::Test {
 protected:
  MasterServerTest() {
    options_.folder = folder_.path() + "/master";
    options_.listen = "127.0.0.1:0";
    auto server = MasterServer::Start(options_);
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    master_ = {server_->address(), *ReadFirstLine(TokenFile(options_.folder, kClientToken)), "", "", ""};
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
  EXPECT_EQ(refused.message(), std::string("the master is Heddle ") + kVersion +
                                   ", the caller is Heddle 9.9.9: they cannot talk to each other");
  EXPECT_EQ(refused.notes()[0], "use the same version on both sides");
}

TEST_F(MasterServerTest, AcknowledgedJobsAreThereAfterARestart) {
  JobSubmission submission;
  submission.request_id = "mine";
  submission.script_name = "a.dml";
  submission.script_text = "print(1)";
  submission.directory = "/";
  submission.explain = true;
  auto client = Client::Connect(master_);
  ASSERT_TRUE(client.ok());
  const Result<SubmittedJob> taken = (*client)->Submit(submission, nullptr);
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  EXPECT_EQ(taken->id, "j1");
  EXPECT_EQ(taken->explanation, "program \"a.dml\"\n  block  # line 1\n    print(1)\n");
  submission.script_text = "print(1";
  submission.request_id = "other";
  EXPECT_EQ(ExitCode((*client)->Submit(submission, nullptr).status()), 3);

  EXPECT_FALSE(MasterServer::Start(options_).ok()) << "one master a folder";
  server_.reset();
  auto server = MasterServer::Start(options_);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  master_.address = (*server)->address();
  client = Client::Connect(master_);
  ListReply list;
  ASSERT_TRUE((*client)->List(ListRequest(), &list).ok());
  ASSERT_EQ(list.jobs_size(), 1);
  EXPECT_EQ(list.jobs(0).job(), "j1");
  EXPECT_EQ(list.jobs(0).state(), "QUEUED");
  JobDescription job;
  EXPECT_EQ((*client)->Cancel("j1", &job).code(), StatusCode::kOk);
  EXPECT_EQ(job.state(), "CANCELLED");
  EXPECT_EQ((*client)->Get("j2", &job).code(), StatusCode::kNotFound);
}

// A client that comes back says of which attempt it has shown a part.
TEST_F(MasterServerTest, ALogThatIsFollowedBeginsAnewWithTheNextAttempt) {
  server_.reset();
  {
    const auto store = *JobStore::Open(JobStoreFile(options_.folder), {}, SystemClock());
    JobSpecification specification;
    specification.request_id = "mine";
    bool existed = false;
    Job job = *store->Add(specification, &existed);
    for (const int attempt : {1, 2}) {
      job.attempt = attempt;
      for (const JobState state : {JobState::kAdmitted, JobState::kStarting, JobState::kRunning,
                                   attempt == 1 ? JobState::kRecovering : JobState::kFailed})
        ASSERT_TRUE(store->Move(&job, state, "").ok());
      const std::string log = attempt == 1 ? "one\n" : "two, longer\n";
      ASSERT_TRUE(store->files().Put(job.id, {JobFileKind::kLog, attempt, 0, 0, log}).ok());
    }
  }
  server_ = *MasterServer::Start(options_);
  const auto channel = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  for (const int shown : {0, 1, 2}) {
    SCOPED_TRACE(shown);
    grpc::ClientContext context;
    AddCaller(master_.token, &context);
    WatchRequest request;
    request.set_job("j1");
    request.set_log_rank(0);
    request.set_output_offset(4);
    request.set_shown_attempt(shown);
    const auto stream = Jobs::NewStub(channel)->Watch(&context, request);
    WatchEvent event;
    ASSERT_TRUE(stream->Read(&event));
    EXPECT_EQ(event.output(), shown == 1 ? "two, longer\n" : " longer\n");
    EXPECT_EQ(event.log_attempt(), 2);
    EXPECT_EQ(event.output_end(), 12);
    while (stream->Read(&event)) {
    }
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(MasterServerTest, ASubmitThatIsCancelledGivesUpWaiting) {
  JobSubmission submission;
  submission.request_id = "mine";
  submission.script_text = "print(1)";
  submission.directory = "/";
  auto client = Client::Connect(master_);
  engine::Cancellation cancellation;
  cancellation.Request(Cancelled("enough"));
  EXPECT_EQ(ExitCode((*client)->Submit(submission, &cancellation).status()), 6);
}

TEST_F(MasterServerTest, SocketsOfOthersAreLeftAlone) {
  const std::string path = folder_.path() + "/socket";
  MasterOptions first = options_;
  first.folder = folder_.path() + "/first";
  first.listen = "unix:" + path;
  testing_support::WriteText(path, "mine");
  EXPECT_EQ(MasterServer::Start(first).status().message(),
            "cannot listen on unix:" + path + ": another file is there");
  EXPECT_EQ(testing_support::ReadText(path), "mine");
  std::filesystem::remove(path);

  auto server = MasterServer::Start(first);
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  MasterOptions second = first;
  second.folder = folder_.path() + "/second";
  EXPECT_EQ(MasterServer::Start(second).status().message(),
            "cannot listen on unix:" + path + ": the address is in use");
  auto client =
      Client::Connect({"unix:" + path, *ReadFirstLine(TokenFile(first.folder, kClientToken)), "", "", ""});
  ListReply list;
  EXPECT_TRUE((*client)->List(ListRequest(), &list).ok());

  // What a killed master leaves is no obstacle.
  server->reset();
  const int stale = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  ASSERT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(MasterServer::Start(second).ok());
}

TEST_F(MasterServerTest, APortInUseIsToldAndTheFirstMasterGoesOn) {
  MasterOptions second = options_;
  second.folder = folder_.path() + "/second";
  second.listen = server_->address();
  const Status status = MasterServer::Start(second).status();
  EXPECT_EQ(status.message(), "cannot listen on " + server_->address() + ": Address already in use");
  EXPECT_EQ(ExitCode(status), 6);
  EXPECT_FALSE(std::filesystem::exists(AddressFile(second.folder)));
  EXPECT_TRUE(List(kVersion, kProtocolVersion).ok());
}

// What a worker says of itself is shown to others: in tables, on terminals.
TEST_F(MasterServerTest, WorkersSayPlainThingsOfThemselves) {
  const std::string token = *ReadFirstLine(TokenFile(options_.folder, kWorkerToken));
  const auto channel = grpc::CreateChannel(master_.address, grpc::InsecureChannelCredentials());
  const auto refusal = [&](const std::function<void(WorkerIntroduction*)>& change) {
    grpc::ClientContext context;
    AddCaller(token, &context);
    const auto stream = Workers::NewStub(channel)->Connect(&context);
    WorkerFrame frame = Introduction("0123456789abcdef0123456789abcdef");
    change(frame.mutable_introduction());
    stream->Write(frame);
    WorkerFrame answer;
    Status refused;
    if (stream->Read(&answer) && !answer.refused().empty()) {
      EXPECT_TRUE(engine::DecodeStatus(answer.refused(), &refused).ok());
    }
    context.TryCancel();
    return refused.message();
  };
  EXPECT_EQ(refusal([](WorkerIntroduction*) {}), "");
  const std::string name =
      "the name of this worker is none: a name has up to 64 letters, digits, '-', '_' and '.', and does not begin "
      "with '.'";
  for (const std::string& bad : {std::string("\x1b[2J"), std::string("a b"), std::string(65, 'a'),
                                 std::string(), std::string("../a"), std::string("\xc3\xa4")})
    EXPECT_EQ(refusal([&](WorkerIntroduction* worker) { worker->set_name(bad); }), name);
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) { worker->set_host("\x1b]0;mine\x07"); }),
            "worker alpha: the name of its machine has up to 253 plain characters");
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) { worker->set_secret("short"); }),
            "worker alpha: the secret of its identity has 32 to 256 plain characters");
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) { worker->set_instance("a\nb"); }),
            "worker alpha: what it says of itself is malformed");
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) { worker->set_threads(1 << 30); }),
            "worker alpha: 1073741824 threads, 0 bytes of memory, pid 0: out of range");
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) { worker->set_confinement("a\nb"); }),
            "worker alpha: what it says of itself is malformed");
  EXPECT_EQ(refusal([](WorkerIntroduction* worker) {
              worker->set_threads(2);
              worker->set_slots(3);
            }),
            "worker alpha: 3 slots of 2 threads: out of range");
}

TEST(PriorityTest, AboveZeroIsForOperators) {
  EXPECT_TRUE(CheckPriority(100, {"boss", "bob", {Role::kOperator}, ""}).ok());
  EXPECT_TRUE(CheckPriority(0, {"ann", "ann", {Role::kSubmitter}, ""}).ok());
  const Status refused = CheckPriority(1, {"ann", "ann", {Role::kSubmitter}, ""});
  EXPECT_EQ(refused.message(), "--priority 1: a priority above 0 is for operators");
  EXPECT_EQ(refused.notes()[0], "submit it without, or with one from -100 to 0");
  EXPECT_EQ(ExitCode(refused), 6);
}

// The uuid that everybody sees is made of a secret that only the worker has.
TEST_F(MasterServerTest, NobodyBecomesAWorkerByItsUuid) {
  const std::string token = *ReadFirstLine(TokenFile(options_.folder, kWorkerToken));
  const auto channel = grpc::CreateChannel(master_.address, grpc::InsecureChannelCredentials());
  struct Connection {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<WorkerFrame, WorkerFrame>> stream;
  };
  const auto connect = [&](Connection* connection, const std::string& secret) {
    AddCaller(token, &connection->context);
    connection->stream = Workers::NewStub(channel)->Connect(&connection->context);
    connection->stream->Write(Introduction(secret));
    WorkerFrame welcome;
    return connection->stream->Read(&welcome) && welcome.has_welcome();
  };
  auto client = Client::Connect(master_);
  ASSERT_TRUE(client.ok());
  Connection first;
  ASSERT_TRUE(connect(&first, "0123456789abcdef0123456789abcdef"));
  NodesReply nodes;
  ASSERT_TRUE((*client)->Nodes(&nodes).ok());
  ASSERT_EQ(nodes.nodes_size(), 1);
  const std::string uuid = nodes.nodes(0).uuid();
  EXPECT_EQ(uuid, UuidOf("0123456789abcdef0123456789abcdef"));

  Connection thief;
  ASSERT_TRUE(connect(&thief, uuid));
  ASSERT_TRUE((*client)->Nodes(&nodes).ok());
  ASSERT_EQ(nodes.nodes_size(), 2) << "it is another worker";
  EXPECT_EQ((nodes.nodes(0).uuid() == uuid) + (nodes.nodes(1).uuid() == uuid), 1);
  EXPECT_EQ(nodes.nodes(0).state() + nodes.nodes(1).state(), "ALIVEALIVE");
  first.context.TryCancel();
  thief.context.TryCancel();
}

// Who has joined shows its own secret, and is that worker alone.
TEST_F(MasterServerTest, AWorkerThatHasJoinedIsNoOther) {
  const auto channel = grpc::CreateChannel(master_.address, grpc::InsecureChannelCredentials());
  const std::string own(40, 'a');
  const auto answer = [&](const std::string& token, const std::string& secret) {
    grpc::ClientContext context;
    AddCaller(token, &context);
    const auto stream = Workers::NewStub(channel)->Connect(&context);
    stream->Write(Introduction(secret));
    WorkerFrame frame;
    Status refused;
    if (!stream->Read(&frame)) return stream->Finish().error_message();
    const bool is_welcome = frame.has_welcome();
    if (!frame.refused().empty()) {
      EXPECT_TRUE(engine::DecodeStatus(frame.refused(), &refused).ok());
    }
    context.TryCancel();
    return is_welcome ? std::string("welcome") : refused.message();
  };
  EXPECT_EQ(answer(own, own), "it is none of its tokens");
  EXPECT_EQ(answer(*ReadFirstLine(TokenFile(options_.folder, kWorkerToken)), own), "welcome");
  EXPECT_EQ(answer(own, own), "welcome");
  EXPECT_EQ(answer(own, std::string(40, 'b')), "worker alpha shows the secret of another worker");
}

}  // namespace
}  // namespace heddle::cluster

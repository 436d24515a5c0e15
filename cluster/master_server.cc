// SPDX-License-Identifier: Apache-2.0
#include "cluster/master_server.h"

#include <unistd.h>

#include <chrono>

#include "cluster/grpc_stream.h"
#include "cluster/master_folder.h"
#include "cluster/master_hub.h"
#include "cluster/master_submit.h"
#include "cluster/master_watch.h"
#include "cluster/master_wire.h"
#include "cluster/master_workers.h"
#include "cluster/rpc_security.h"
#include "core/log.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

constexpr auto kShutdownGrace = std::chrono::milliseconds(500);
constexpr int kMostTokensBytes = 4096;

// A call that is turned away.
template <typename Reactor>
class Refused : public Reactor {
 public:
  explicit Refused(const grpc::Status& status) { this->Finish(status); }

 private:
  void OnDone() override { delete this; }
};

class JobsService : public Jobs::WithCallbackMethod_Watch<Jobs::Service> {
 public:
  JobsService(MasterHub* hub, std::string token) : hub_(hub), token_(std::move(token)) {}

  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request, SubmitReply* reply) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok()) return status;
    ServeSubmit(hub_, *request, reply);
    return grpc::Status::OK;
  }

  grpc::Status List(grpc::ServerContext* context, const ListRequest* request, ListReply* reply) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok()) return status;
    hub_->Call([&](MasterCore& core) {
      const std::vector<const Job*> jobs = core.Jobs();
      for (size_t i = jobs.size(); i > 0; --i) {
        if (request->most() > 0 && reply->jobs_size() >= request->most()) break;
        JobDescription* description = reply->add_jobs();
        ToProto(*jobs[i - 1], description);
        description->clear_statistics();
      }
      return true;
    });
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext* context, const JobRequest* request, JobDescription* reply) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok()) return status;
    return ToGrpc(Describe(request->job(), reply));
  }

  grpc::Status Cancel(grpc::ServerContext* context, const JobRequest* request, JobDescription* reply) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok()) return status;
    const Status status = hub_->Call([&](MasterCore& core) { return core.Cancel(request->job()); });
    return ToGrpc(status.ok() ? Describe(request->job(), reply) : status);
  }

  grpc::ServerWriteReactor<WatchEvent>* Watch(grpc::CallbackServerContext* context, const WatchRequest* request) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok())
      return new Refused<grpc::ServerWriteReactor<WatchEvent>>(status);
    return ServeWatch(hub_, *request);
  }

 private:
  Status Describe(const std::string& id, JobDescription* reply) {
    return hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Find(id));
      ToProto(*job, reply);
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<JobTransition> transitions, hub_->store().Transitions(id));
      for (const JobTransition& transition : transitions) ToProto(transition, reply->add_transitions());
      return OkStatus();
    });
  }

  MasterHub* hub_;
  const std::string token_;
};

class AdminService : public Admin::Service {
 public:
  AdminService(MasterHub* hub, std::string token) : hub_(hub), token_(std::move(token)) {}

  grpc::Status Nodes(grpc::ServerContext* context, const NodesRequest*, NodesReply* reply) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok()) return status;
    hub_->Call([&](MasterCore& core) {
      const int64_t now = hub_->clock().MonotonicNs();
      for (const auto& [uuid, worker] : core.membership().workers()) ToProto(worker, now, reply->add_nodes());
      reply->set_epoch(core.membership().epoch());
      return true;
    });
    return grpc::Status::OK;
  }

 private:
  MasterHub* hub_;
  const std::string token_;
};

class WorkersService : public Workers::WithCallbackMethod_Connect<Workers::Service> {
 public:
  WorkersService(MasterHub* hub, std::string token) : hub_(hub), token_(std::move(token)) {}

  grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* Connect(grpc::CallbackServerContext* context) override {
    if (grpc::Status status = AdmitCaller(token_, context); !status.ok())
      return new Refused<grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>>(status);
    return ServeWorker(hub_, context);
  }

 private:
  MasterHub* hub_;
  const std::string token_;
};

class MasterServerImpl : public MasterServer {
 public:
  explicit MasterServerImpl(MasterOptions options) : options_(std::move(options)) {}

  ~MasterServerImpl() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_.reset();  // waits for the last call
    hub_.reset();
    if (announced_) unlink(AddressFile(options_.folder).c_str());
    if (announced_ && address_.starts_with("unix:")) unlink(address_.substr(5).c_str());
  }

  Status Start() {
    const bool local = IsLocalAddress(options_.listen);
    if (!local && options_.certificate.empty())
      return Usage("--listen {}: other machines reach this address, so that it needs TLS", options_.listen)
          .WithNote("give --tls-certificate FILE and --tls-key FILE, or listen on 127.0.0.1");
    HEDDLE_RETURN_IF_ERROR(MakePrivateFolder(options_.folder));
    HEDDLE_ASSIGN_OR_RETURN(lock_, FolderLock::TryTake(options_.folder + "/lock"));
    if (lock_ == nullptr) return Unavailable("another master works on '{}'", options_.folder);
    HEDDLE_ASSIGN_OR_RETURN(const std::string token, options_.token_file.empty() ? ReadOrMakeSecret(TokenFile(options_.folder))
                                                                                 : ReadFirstLine(options_.token_file));
    if (token.size() < 16 || token.size() > kMostTokensBytes)
      return Usage("the token in '{}' is too short: at least 16 characters", options_.token_file);
    HEDDLE_ASSIGN_OR_RETURN(store_, JobStore::Open(options_.folder + "/jobs.sqlite", options_.store, SystemClock()));
    hub_ = std::make_unique<MasterHub>(*store_, SystemClock(), options_.core);
    HEDDLE_RETURN_IF_ERROR(hub_->Start());
    jobs_ = std::make_unique<JobsService>(hub_.get(), token);
    admin_ = std::make_unique<AdminService>(hub_.get(), token);
    workers_ = std::make_unique<WorkersService>(hub_.get(), token);
    return Listen();
  }

  const std::string& address() const override { return address_; }

 private:
  Status Listen() {
    HEDDLE_ASSIGN_OR_RETURN(const auto credentials,
                            MakeServerCredentials({options_.certificate, options_.key, options_.client_authority}));
    if (options_.listen.starts_with("unix:")) unlink(options_.listen.substr(5).c_str());  // the lock says that it is ours
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(options_.listen, credentials, &port);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.SetMaxSendMessageSize(kMostMessageBytes);
    builder.RegisterService(jobs_.get());
    builder.RegisterService(admin_.get());
    builder.RegisterService(workers_.get());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) return Unavailable("cannot listen on {}", options_.listen);
    address_ = options_.listen;
    if (!address_.starts_with("unix:")) address_ = fmt::format("{}:{}", address_.substr(0, address_.rfind(':')), port);
    announced_ = true;
    HEDDLE_LOG(kInfo, "master listens", {"address", address_});
    return WritePrivateFile(AddressFile(options_.folder), address_ + "\n");
  }

  const MasterOptions options_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<JobStore> store_;
  std::unique_ptr<MasterHub> hub_;
  std::unique_ptr<JobsService> jobs_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<WorkersService> workers_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  bool announced_ = false;
};

}  // namespace

std::string AddressFile(const std::string& folder) { return folder + "/address"; }
std::string TokenFile(const std::string& folder) { return folder + "/token"; }

Result<std::unique_ptr<MasterServer>> MasterServer::Start(const MasterOptions& options) {
  auto server = std::make_unique<MasterServerImpl>(options);
  HEDDLE_RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<MasterServer>(std::move(server));
}

}  // namespace heddle::cluster

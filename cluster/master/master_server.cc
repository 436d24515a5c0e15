// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_server.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <atomic>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include "cluster/access/access_control.h"
#include "cluster/access/master_folder.h"
#include "cluster/access/token_store.h"
#include "cluster/link/grpc_stream.h"
#include "cluster/master/master_hub.h"
#include "cluster/master/master_list.h"
#include "cluster/master/master_metrics.h"
#include "cluster/master/master_submit.h"
#include "cluster/master/master_tokens.h"
#include "cluster/master/master_upkeep.h"
#include "cluster/master/master_watch.h"
#include "cluster/master/master_wire.h"
#include "cluster/master/master_workers.h"
#include "cluster/master/message_limits.h"
#include "cluster/master/own_jobs.h"
#include "cluster/metrics/metrics_server.h"
#include "cluster/metrics/rpc_metrics.h"
#include "cluster/network/grpc_acceptor.h"
#include "cluster/network/grpc_library.h"
#include "cluster/security/rpc_rules.h"
#include "cluster/security/rpc_security.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/memory/memory_budget.h"
#include "core/text/utf8.h"
#include "proto/master.grpc.pb.h"

namespace heddle::cluster {
namespace {

// Its timer does what is due within milliseconds, or a few seconds where the disk is slow.
constexpr int64_t kLateTimerNs = 10'000'000'000;
constexpr auto kShutdownGrace = std::chrono::milliseconds(500);
constexpr int kMostThreads = 128;  // each serves a call of a user; streams take none
constexpr int kMostCallsOfAConnection = 256;
constexpr int64_t kMostCompiledBytes = int64_t{16} << 20;  // of scripts that are submitted again
constexpr std::string_view kUnixScheme = "unix:";

// Takes away the socket of a master that is gone. kUnavailable when somebody listens there, or when it is no
// socket.
Status ClearSocket(const std::string& path) {
  struct stat status = {};
  if (lstat(path.c_str(), &status) != 0) return OkStatus();
  if (!S_ISSOCK(status.st_mode))
    return Unavailable("cannot listen on {}{}: another file is there", kUnixScheme, path);
  asio::error_code error;
  try {
    asio::io_context context;
    asio::local::stream_protocol::socket socket(context);
    if (path.size() < sizeof(sockaddr_un::sun_path))
      socket.connect(asio::local::stream_protocol::endpoint(path), error);
  } catch (const std::system_error& failure) {  // no descriptor is left
    return Unavailable("cannot listen on {}{}: {}", kUnixScheme, path, failure.what());
  }
  if (!error) return Unavailable("cannot listen on {}{}: the address is in use", kUnixScheme, path);
  unlink(path.c_str());
  return OkStatus();
}

// Who calls, and what.
template <typename Message>
grpc::Status Admit(const AccessControl& access, grpc::ServerContextBase* context, const Message& message,
                   Caller* caller) {
  grpc::Status status = access.Admit(context, caller);
  return status.ok() ? ToGrpc(CheckMessage(message)) : status;
}

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
  JobsService(MasterHub* hub, const AccessControl* access, const CompileLimits& limits)
      : hub_(hub),
        access_(access),
        compiler_{{limits.at_a_time, kMostThreads / 2}, limits, {SystemClock(), kMostCompiledBytes}} {}

  grpc::Status Submit(grpc::ServerContext* context, const SubmitRequest* request,
                      SubmitReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    if (const MemoryBudget& budget = MemoryBudget::Process(); budget.IsOver())
      return ToGrpc(Unavailable("the master holds {} bytes, more than the {} of its limit: try again later",
                                budget.used(), budget.limit()));
    ServeSubmit(
        hub_, &compiler_, caller, *request, [context] { return context->IsCancelled(); }, reply);
    return grpc::Status::OK;
  }

  grpc::Status Progress(grpc::ServerContext* context, const ProgressRequest* request,
                        ProgressReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    ServeProgress(compiler_, caller, *request, reply);
    return grpc::Status::OK;
  }

  grpc::Status List(grpc::ServerContext* context, const ListRequest* request, ListReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    ServeList(hub_, caller, *request, reply);
    return grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext* context, const JobRequest* request, JobDescription* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    return ToGrpc(ServeGet(hub_, caller, request->job(), reply));
  }

  grpc::Status Cancel(grpc::ServerContext* context, const JobRequest* request,
                      JobDescription* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    const Status status = hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_RETURN_IF_ERROR(FindToUse(core, caller, request->job()).status());
      return core.Cancel(request->job());
    });
    return ToGrpc(status.ok() ? ServeGet(hub_, caller, request->job(), reply) : status);
  }

  grpc::Status Retry(grpc::ServerContext* context, const RetryRequest* request, SubmitReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    return ToGrpc(hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const Job* first, FindToUse(core, caller, request->job()));
      HEDDLE_RETURN_IF_ERROR(CheckPriority(first->specification.priority, caller));
      HEDDLE_ASSIGN_OR_RETURN(const Job* job, core.Retry(request->job(), request->request_id()));
      ToProto(*job, reply->mutable_job());
      return OkStatus();
    }));
  }

  grpc::Status Delete(grpc::ServerContext* context, const JobRequest* request,
                      JobDescription* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    Status status = ServeGet(hub_, caller, request->job(), reply);
    if (!status.ok()) return ToGrpc(status);
    return ToGrpc(hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_RETURN_IF_ERROR(FindToUse(core, caller, request->job()).status());
      return core.Delete(request->job());
    }));
  }

  grpc::Status Record(grpc::ServerContext* context, const JobRequest* request, JobRecord* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    return ToGrpc(ServeRecord(hub_, caller, request->job(), reply));
  }

  grpc::ServerWriteReactor<WatchEvent>* Watch(grpc::CallbackServerContext* context,
                                              const WatchRequest* request) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok())
      return new Refused<grpc::ServerWriteReactor<WatchEvent>>(status);
    return ServeWatch(hub_, access_, std::string(AuthorizationOf(*context)), *request);
  }

 private:
  MasterHub* hub_;
  const AccessControl* access_;
  ScriptCompiler compiler_;  // Fewer wait for it than there are threads for calls: others are always served.
};

class AdminService : public Admin::Service {
 public:
  // The options outlive it.
  AdminService(MasterHub* hub, const AccessControl* access, const MasterOptions& options)
      : hub_(hub), access_(access), options_(options) {}

  grpc::Status About(grpc::ServerContext* context, const AboutRequest*, AboutReply* reply) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok()) return status;
    ServeAbout(options_, started_ms_, reply);
    reply->set_owner(caller.owner);
    for (size_t i = 0; i < kRoleNames.size(); ++i)
      if (caller.roles.Has(static_cast<Role>(i))) reply->add_roles(std::string(kRoleNames[i]));
    return grpc::Status::OK;
  }

  grpc::Status Config(grpc::ServerContext* context, const ConfigRequest*, ConfigReply* reply) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok()) return status;
    ServeConfig(options_, reply);
    return grpc::Status::OK;
  }

  grpc::Status Backup(grpc::ServerContext* context, const BackupRequest*,
                      grpc::ServerWriter<BackupPart>* writer) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok()) return status;
    return ToGrpc(ServeBackup(options_, [&](const BackupPart& part) { return writer->Write(part); }));
  }

  grpc::Status CollectGarbage(grpc::ServerContext* context, const GarbageRequest* request,
                              GarbageReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    return ToGrpc(ServeGarbage(
        hub_, options_, *request, [context] { return context->IsCancelled(); }, reply));
  }

  grpc::Status Nodes(grpc::ServerContext* context, const NodesRequest*, NodesReply* reply) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok()) return status;
    hub_->Call([&](MasterCore& core) {
      for (const auto& [uuid, worker] : core.membership().workers()) Describe(core, uuid, reply->add_nodes());
      for (const auto& [uuid, name] : core.drained())
        if (!core.membership().workers().contains(uuid)) Describe(core, uuid, reply->add_nodes());
      reply->set_epoch(core.membership().epoch());
      return true;
    });
    return grpc::Status::OK;
  }

  grpc::Status Drain(grpc::ServerContext* context, const DrainRequest* request,
                     NodeDescription* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    return ToGrpc(hub_->Call([&](MasterCore& core) -> Status {
      HEDDLE_ASSIGN_OR_RETURN(const KnownWorker worker, core.Drain(request->node(), request->drained()));
      reply->set_name(
          EscapeInvalidUtf8(worker.name));  // of one that has never been here and is not drained any more
      Describe(core, worker.uuid, reply);
      return OkStatus();
    }));
  }

  grpc::Status Remove(grpc::ServerContext* context, const RemoveRequest* request,
                      RemoveReply* reply) override {
    Caller caller;
    if (grpc::Status status = Admit(*access_, context, *request, &caller); !status.ok()) return status;
    const Result<JoinedWorker> removed = access_->tokens().RemoveWorker(request->node());
    if (!removed.ok()) return ToGrpc(removed.status());
    hub_->Call([&](MasterCore& core) {
      core.WorkerLeft(removed->uuid);
      hub_->Expel(removed->uuid);
      return true;
    });
    HEDDLE_LOG(kInfo, "worker removed", {"worker", removed->name}, {"uuid", removed->uuid});
    reply->set_name(removed->name);
    reply->set_uuid(removed->uuid);
    reply->set_joined_by(removed->token);
    reply->set_reusable(access_->tokens().LetsJoin(removed->token));
    return grpc::Status::OK;
  }

 private:
  // A drained worker that has not been here since the master started is LOST.
  void Describe(const MasterCore& core, const std::string& uuid, NodeDescription* node) {
    const auto here = core.membership().workers().find(uuid);
    if (here != core.membership().workers().end()) return ToProto(here->second, core.now_ns(), node);
    const auto drained = core.drained().find(uuid);
    if (drained != core.drained().end()) node->set_name(EscapeInvalidUtf8(drained->second));
    node->set_uuid(uuid);
    node->set_state(std::string(Name(WorkerState::kLost)));
    node->set_drained(drained != core.drained().end());
  }

  MasterHub* hub_;
  const AccessControl* access_;
  const MasterOptions& options_;
  const int64_t started_ms_ = SystemClock().WallMs();
};

class WorkersService : public Workers::WithCallbackMethod_Connect<Workers::Service> {
 public:
  WorkersService(MasterHub* hub, const AccessControl* access) : hub_(hub), access_(access) {}

  grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>* Connect(grpc::CallbackServerContext* context) override {
    Caller caller;
    if (grpc::Status status = access_->Admit(context, &caller); !status.ok())
      return new Refused<grpc::ServerBidiReactor<WorkerFrame, WorkerFrame>>(status);
    return ServeWorker(hub_, access_, std::move(caller), context);
  }

 private:
  MasterHub* hub_;
  const AccessControl* access_;
};

// "3 workers, 2 jobs run, 1 waits"
std::string StateOf(const MasterCore& core) {
  int64_t alive = 0;
  for (const auto& [uuid, worker] : core.membership().workers())
    alive += worker.state != WorkerState::kLost ? 1 : 0;
  int64_t running = 0;
  int64_t waiting = 0;
  for (const Job* const job : core.Jobs()) {
    const bool waits = job->state == JobState::kQueued || job->state == JobState::kRecovering;
    if (!IsFinal(job->state)) ++(waits ? waiting : running);
  }
  return fmt::format("{} worker{}, {} job{}, {} wait{}", alive, alive == 1 ? "" : "s", running,
                     running == 1 ? " runs" : "s run", waiting, waiting == 1 ? "s" : "");
}

class MasterServerImpl : public MasterServer {
 public:
  explicit MasterServerImpl(MasterOptions options) : options_(std::move(options)) {}

  ~MasterServerImpl() override {
    metrics_.reset();
    acceptor_.reset();
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_.reset();  // waits for the last call
    hub_.reset();
    if (announced_) unlink(AddressFile(options_.folder).c_str());
  }

  Status Start() {
    KeepGrpcLibrary();
    const bool local = IsLocalAddress(options_.listen);
    if (!local && options_.certificate.empty())
      return Usage("--listen {}: other machines reach this address, so that it needs TLS", options_.listen)
          .WithNote("give --tls-certificate FILE and --tls-key FILE, or listen on 127.0.0.1");
    HEDDLE_RETURN_IF_ERROR(MakePrivateFolder(options_.folder));
    HEDDLE_ASSIGN_OR_RETURN(lock_, FolderLock::TryTake(options_.folder + "/lock"));
    if (lock_ == nullptr) return Unavailable("another master works on '{}'", options_.folder);
    HEDDLE_ASSIGN_OR_RETURN(tokens_, TokenStore::Open(options_.folder, options_.tokens, SystemClock()));
    HEDDLE_ASSIGN_OR_RETURN(audit_log_, AuditLog::Open(options_.folder, options_.audit, SystemClock()));
    if (IsUnixAddress(options_.listen)) HEDDLE_RETURN_IF_ERROR(newcomers_->CountUnixSockets());
    // With TLS it may have been somebody who does not speak it, or trusts another authority: gRPC tells
    // nobody.
    if (!options_.certificate.empty())
      newcomers_->TellEnded([log = audit_log_.get()](const std::string& peer) {
        log->WriteStranger({.peer = peer,
                            .rpc = "connection",
                            .outcome = "UNAVAILABLE",
                            .why = "it ended before a call was let in"});
      });
    access_ = std::make_unique<AccessControl>(tokens_.get(), audit_log_.get(), newcomers_.get());
    options_.core.first_owner = OwnUserName();
    HEDDLE_ASSIGN_OR_RETURN(store_,
                            JobStore::Open(options_.folder + "/jobs.sqlite", options_.store, SystemClock()));
    hub_ = std::make_unique<MasterHub>(*store_, SystemClock(), options_.core);
    HEDDLE_RETURN_IF_ERROR(hub_->Start());
    jobs_ = std::make_unique<JobsService>(hub_.get(), access_.get(), options_.compile);
    admin_ = std::make_unique<AdminService>(hub_.get(), access_.get(), options_);
    token_service_ = MakeTokensService(access_.get());
    workers_ = std::make_unique<WorkersService>(hub_.get(), access_.get());
    if (!options_.metrics_listen.empty()) HEDDLE_RETURN_IF_ERROR(ListenForMetrics());
    return Listen();
  }

  const std::string& address() const override { return address_; }
  std::string metrics_address() const override { return metrics_ == nullptr ? "" : metrics_->address(); }

  Result<std::string> Look() override {
    return hub_->Call([this](MasterCore& core) -> Result<std::string> {
      const int64_t late_ns = SystemClock().MonotonicNs() - kLateTimerNs;
      if (core.NextDeadline() < late_ns) return Unavailable("the timer of the master is late");
      return StateOf(core);
    });
  }

 private:
  // A method that there is not has no name among the numbers: strangers may call as many as they like.
  grpc::Status Screen(std::string_view path, std::string_view authorization) const {
    grpc::Status status = access_->Screen(path, authorization);
    if (!status.ok() && rpc_metrics_)
      rpc_metrics_->CountRefused(FindRule(path) == nullptr ? "none" : std::string(path), status.error_code());
    return status;
  }

  // Before users and workers are served, so that a port that is taken is an error of the start.
  Status ListenForMetrics() {
    rpc_metrics_.emplace();
    MetricsServer::Sources sources;
    sources.collectables = {MasterMetrics(hub_.get()), rpc_metrics_->collectable(), ProcessMetrics()};
    sources.ready = [this]() -> Status {
      if (!is_serving_) return Unavailable("the master is being started");
      return hub_->Call([](MasterCore& core) { return core.CheckStore(); });
    };
    if (!IsLocalAddress(options_.metrics_listen))
      sources.admits = [this](std::string_view authorization, const std::string& peer) {
        return access_->ScreenUrl("GET /metrics", authorization, peer);
      };
    HEDDLE_ASSIGN_OR_RETURN(
        metrics_, MetricsServer::Start(options_.metrics_listen, options_.metrics_tls, std::move(sources)));
    return OkStatus();
  }

  Status Listen() {
    HEDDLE_ASSIGN_OR_RETURN(
        const auto credentials,
        MakeServerCredentials(options_.listen,
                              {options_.certificate, options_.key, options_.client_authority},
                              [this](std::string_view path, std::string_view authorization) {
                                return Screen(path, authorization);
                              }));
    if (const std::string path = SocketPath(options_.listen); !path.empty())
      HEDDLE_RETURN_IF_ERROR(ClearSocket(path));
    const ConnectionLimits limits = LimitsForStrangers(newcomers_->descriptors_of_connection());
    HEDDLE_ASSIGN_OR_RETURN(acceptor_, Acceptor::Listen(options_.listen, limits, newcomers_));
    grpc::ServerBuilder builder;
    // Half of what the master may hold is for messages on their way.
    grpc::ResourceQuota quota("master");
    quota.SetMaxThreads(kMostThreads);
    quota.Resize(static_cast<size_t>(MemoryBudget::Process().limit() / 2));
    builder.SetResourceQuota(quota);
    BoundSilence(&builder);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsOfAConnection);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    builder.SetMaxReceiveMessageSize(kMostMessageBytes);
    builder.SetMaxSendMessageSize(kMostMessageBytes);
    builder.RegisterService(jobs_.get());
    builder.RegisterService(admin_.get());
    builder.RegisterService(token_service_.get());
    builder.RegisterService(workers_.get());
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(access_->MakeAuditor());
    if (rpc_metrics_) interceptors.push_back(rpc_metrics_->MakeCounter());
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    Acceptor::Taker taker = TakeConnections(&builder, credentials);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Unavailable("cannot listen on {}", options_.listen);
    acceptor_->Start(std::move(taker));
    address_ = acceptor_->address();
    announced_ = true;
    is_serving_ = true;
    HEDDLE_LOG(kInfo, "master listens", {"address", address_});
    return WritePrivateFile(AddressFile(options_.folder), address_ + "\n");
  }

  MasterOptions options_;
  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<AuditLog> audit_log_;
  const std::shared_ptr<Newcomers> newcomers_ = std::make_shared<Newcomers>();
  std::unique_ptr<AccessControl> access_;  // of the three before it
  std::unique_ptr<JobStore> store_;
  std::unique_ptr<MasterHub> hub_;
  std::unique_ptr<JobsService> jobs_;
  std::unique_ptr<AdminService> admin_;
  std::unique_ptr<grpc::Service> token_service_;
  std::unique_ptr<WorkersService> workers_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Acceptor> acceptor_;  // hands connections to the server
  std::optional<RpcMetrics> rpc_metrics_;
  std::unique_ptr<MetricsServer> metrics_;
  std::string address_;
  bool announced_ = false;
  std::atomic<bool> is_serving_ = false;
};

}  // namespace

std::string AddressFile(const std::string& folder) { return folder + "/address"; }

Result<std::unique_ptr<MasterServer>> MasterServer::Start(const MasterOptions& options) {
  auto server = std::make_unique<MasterServerImpl>(options);
  HEDDLE_RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<MasterServer>(std::move(server));
}

}  // namespace heddle::cluster

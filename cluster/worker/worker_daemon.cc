// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cluster/executor/isolation.h"
#include "cluster/master/worker_identity.h"
#include "cluster/metrics/metrics_server.h"
#include "cluster/network/address.h"
#include "cluster/network/unreachable.h"
#include "cluster/security/rpc_security.h"
#include "cluster/security/token.h"
#include "cluster/worker/master_tokens.h"
#include "cluster/worker/metrics_admission.h"
#include "cluster/worker/worker_connection.h"
#include "cluster/worker/worker_metrics.h"
#include "core/environment/clock.h"
#include "core/environment/log.h"
#include "core/environment/random.h"

namespace heddle::cluster {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kFirstPauseMs = 50;
constexpr int64_t kLongestPauseMs = 5'000;
constexpr int64_t kGoodbyeMs = 2'000;
constexpr int64_t kLongestPingMs = 2'000;    // its loop comes round so often at least
constexpr int64_t kWelcomeMs = 10'000;       // how long a master may take to answer a worker
constexpr int64_t kFirstPatienceMs = 5'000;  // master and workers may be started by the same script

WorkerExecutorsOptions ExecutorsOptions(const WorkerOptions& options, const WorkerIdentity& identity,
                                        const ControlGroups* groups) {
  WorkerExecutorsOptions executors;
  executors.threads = options.threads;
  executors.groups = groups;
  executors.core_dumps = options.core_dumps;
  executors.shares_memory = options.shares_memory;
  executors.isolates = options.isolates;
  executors.device = options.device.device;
  executors.runs_as_owner = options.runs_as_owner;
  executors.spill_folder = options.spill_folder;
  executors.data_roots = options.data_roots;
  executors.closed_paths = options.closed_paths;
  executors.log_folder = identity.folder + "/logs";
  if (!options.peer_host.empty()) executors.listen = options.peer_host + ":0";
  return executors;
}

class Daemon {
 public:
  Daemon(const WorkerOptions& options, const WorkerExecutorsOptions& executors, WorkerIdentity identity,
         const std::string& confinement)
      : options_(options),
        identity_(std::move(identity)),
        tokens_(options.find_master),
        admission_([this](const std::string& token) { return tokens_.MaySeeMetrics(token); },
                   options.metrics_token, SystemClock()),
        executors_(executors, [this] { WakeConnection(); }) {
    description_.secret = identity_.secret;
    description_.place = identity_.place;
    description_.instance = MakeToken();
    description_.name = identity_.name;
    description_.host = HostName();
    description_.pid = getpid();
    description_.threads = options.threads;
    description_.memory_bytes = options.memory_bytes;
    description_.slots = options.slots;
    description_.confinement = confinement;
    description_.isolation = options.isolates ? DescribeIsolation() : "none";
    description_.device = options.device.device;
    description_.device_name = options.device.name;
    if (options.runs_as_owner) description_.isolation += ", run as owner";
    joins_ = identity_.is_new;
  }

  Status Run(engine::Cancellation* cancellation,
             const std::function<void(const std::string&, const std::string&)>& connected) {
    if (!options_.metrics_listen.empty()) HEDDLE_RETURN_IF_ERROR(ListenForMetrics());
    cancellation->Listen([this](const Status& why) {
      const std::lock_guard lock(mutex_);
      stop_ = why;
      changed_.notify_all();
    });
    const Status status = Serve(connected);
    cancellation->Listen(nullptr);
    executors_.KillAll();
    return status;
  }

 private:
  Status ListenForMetrics() {
    MetricsServer::Sources sources;
    sources.collectables = {WorkerMetrics(&executors_, options_.threads, options_.memory_bytes,
                                          [this] { return IsReady().ok(); }),
                            ProcessMetrics()};
    sources.ready = [this] { return IsReady(); };
    if (!options_.metrics_token.empty() || !IsLocalAddress(options_.metrics_listen))
      sources.admits = [this](std::string_view shown, const std::string& peer) {
        return admission_.MaySeeMetrics(shown, peer);
      };
    HEDDLE_ASSIGN_OR_RETURN(
        metrics_, MetricsServer::Start(options_.metrics_listen, options_.metrics_tls, std::move(sources)));
    if (options_.metrics_listening) options_.metrics_listening(metrics_->address());
    return OkStatus();
  }

  // A worker without a master goes on with what it runs, but gets nothing new.
  Status IsReady() {
    std::shared_ptr<WorkerConnection> connection;
    {
      const std::lock_guard lock(connection_mutex_);
      connection = connection_.lock();
    }
    if (connection == nullptr) return Unavailable("there is no connection to the master");
    const WorkerConnection::State state = connection->state();
    return state.lease_ms && !state.closed ? OkStatus() : Unavailable("the master has not answered yet");
  }

  Status Serve(const std::function<void(const std::string&, const std::string&)>& connected) {
    heard_ms_ = NowMs();
    int64_t pause_ms = kFirstPauseMs;
    bool ever_connected = false;
    bool told = false;
    for (;;) {
      Status failure;
      Result<MasterAddress> master = options_.find_master();
      if (master.ok()) {
        failure = ServeConnection(*master, [&] {
          if (!std::exchange(ever_connected, true)) connected(identity_.name, master->address);
          pause_ms = kFirstPauseMs;
        });
      } else {
        failure = master.status();
      }
      if (Stopped()) return OkStatus();
      // Files of a master that is just being replaced may be missing.
      const bool may_come = failure.code() == StatusCode::kUnavailable ||
                            (ever_connected && failure.code() == StatusCode::kNotFound);
      if (!may_come) return failure;
      if (!ever_connected && NowMs() - heard_ms_ > std::min(kFirstPatienceMs, options_.patience_ms))
        return WhyNeverConnected(master, failure);
      if (NowMs() >= PatienceEndsMs())
        return failure.WithNote(fmt::format("no master for {} s: this worker gives up and ends its executors",
                                            options_.patience_ms / 1000));
      if (ever_connected || !std::exchange(told, true))
        HEDDLE_LOG(kWarning, ever_connected ? "master lost" : "no master yet", {"worker", identity_.name},
                   {"again_in_ms", pause_ms}, {"error", failure.message()});
      Pause(pause_ms / 2 + static_cast<int64_t>(SystemRandom().Below(static_cast<uint64_t>(pause_ms))));
      // Well within a lease: a master that was away gives the workers that it knew one to come back.
      pause_ms = std::min({2 * pause_ms, kLongestPauseMs, std::max(lease_ms_ / 4, kFirstPauseMs)});
      Ping(ever_connected ? "lost its master and looks for it" : "looks for a master");
      if (Stopped()) return OkStatus();
    }
  }

  // Looked into only now: it takes a while.
  Status WhyNeverConnected(const Result<MasterAddress>& master, const Status& failure) const {
    if (!master.ok() || !unreachable_) return failure;
    return WhyUnreachable(master->address, {master->tls_certificate, master->tls_key, master->tls_authority});
  }

  // From connecting to the end of the connection, and why it ended.
  Status ServeConnection(const MasterAddress& master, const std::function<void()>& welcomed) {
    // One channel for all connections to the same master: it survives the restarts of its server. After a
    // silence there is another one, as nothing may come through the old one any more.
    if (channel_ == nullptr || channel_address_ != master.address) {
      HEDDLE_ASSIGN_OR_RETURN(
          channel_,
          MakeMasterChannel(master.address, {master.tls_certificate, master.tls_key, master.tls_authority}));
      channel_address_ = master.address;
    }
    ++description_.connection;
    auto connection = std::make_shared<WorkerConnection>(description_, &executors_, [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    {
      const std::lock_guard lock(connection_mutex_);
      connection_ = connection;
    }
    const bool joins = joins_ && !master.token.empty();
    WorkerConnection::Open(connection, channel_, joins ? master.token : identity_.secret);
    const bool silent = !HoldLease(*connection, welcomed);
    {
      const std::lock_guard lock(connection_mutex_);
      connection_.reset();
    }
    const WorkerConnection::State state = connection->state();
    heard_ms_ = std::max(heard_ms_, state.heard_ns / kNsPerMs);
    if (!state.refused.ok()) return Refused(state.refused);
    unreachable_ = IsUnreachable(state.status);
    if (silent) {
      channel_.reset();
      return Unavailable("the master at {} does not answer", master.address);
    }
    if (state.lease_ms) joins_ = false;
    if (state.status.error_code() == grpc::StatusCode::UNAUTHENTICATED && !joins) {
      if (master.token.empty()) return NotKnown(master);
      if (!std::exchange(joins_, true)) return ServeConnection(master, welcomed);
    }
    const Status status = FromGrpc(state.status, master.address);
    return status.ok() ? Unavailable("the master at {} ended the connection", master.address) : status;
  }

  int64_t PatienceEndsMs() const { return heard_ms_ + options_.patience_ms; }
  // Between heartbeats nothing is heard for a quarter of the lease.
  int64_t LongestSilenceMs(int64_t lease_ms) const {
    return std::clamp(options_.patience_ms, lease_ms / 2, lease_ms);
  }

  Status NotKnown(const MasterAddress& master) const {
    return PermissionDenied(
               "the master at {} does not know worker {}, and there is no token by which it could join",
               master.address, identity_.name)
        .WithNote("where the master is: heddle admin token create NAME --role worker")
        .WithNote("here: heddle worker --token-file FILE, with the token in the file");
  }

  Status Refused(const Status& why) {
    // It answers, so that it is worth while to ask again.
    if (why.code() == StatusCode::kUnavailable) heard_ms_ = NowMs();
    if (why.code() != StatusCode::kPermissionDenied || !why.notes().empty()) return why;
    return why.WithNote(fmt::format("without the file {}/identity this worker gets an identity of its own",
                                    identity_.folder));
  }

  // Until the connection ends. False when the master has said nothing for a whole lease, or for as long as
  // this worker is patient.
  bool HoldLease(WorkerConnection& connection, const std::function<void()>& welcomed) {
    const int64_t opened_ms = NowMs();
    int64_t heartbeat_ms = 0;  // when the next one is due; 0: not known yet
    bool greeted = false;
    std::unique_lock lock(mutex_);
    for (;;) {
      lock.unlock();
      Ping(greeted ? "works for " + channel_address_ : "waits for the answer of " + channel_address_);
      lock.lock();
      const WorkerConnection::State state = connection.state();
      if (state.closed) return true;
      if (!stop_.ok() || !state.refused.ok()) break;
      const int64_t left_ms = (state.lease_ms ? state.heard_ns / kNsPerMs + LongestSilenceMs(*state.lease_ms)
                                              : std::min(opened_ms + kWelcomeMs, PatienceEndsMs())) -
                              NowMs();
      if (left_ms <= 0) {
        Break(connection, lock);
        return false;
      }
      if (!state.lease_ms) {
        changed_.wait_for(lock, milliseconds(std::min(left_ms, kLongestPingMs)));
        continue;
      }
      lease_ms_ = *state.lease_ms;
      if (!std::exchange(greeted, true)) {
        lock.unlock();
        welcomed();
        lock.lock();
        continue;
      }
      // A quarter of the lease, with a tenth of jitter so that workers do not speak all at once.
      const int64_t quarter = std::max<int64_t>(*state.lease_ms / 4, 1);
      if (heartbeat_ms == 0)
        heartbeat_ms = NowMs() + quarter -
                       static_cast<int64_t>(SystemRandom().Below(static_cast<uint64_t>(quarter / 10 + 1)));
      const int64_t wait_ms = std::min({heartbeat_ms - NowMs(), left_ms, kLongestPingMs});
      const bool woken = changed_.wait_for(lock, milliseconds(std::max<int64_t>(wait_ms, 0)),
                                           [&] { return connection.state().closed || !stop_.ok(); });
      if (woken || NowMs() < heartbeat_ms) continue;
      heartbeat_ms = 0;
      lock.unlock();
      connection.Heartbeat();
      lock.lock();
    }
    lock.unlock();
    executors_.KillAll();
    connection.Leave();
    lock.lock();
    if (!changed_.wait_for(lock, milliseconds(kGoodbyeMs), [&] { return connection.state().closed; }))
      Break(connection, lock);
    return true;
  }

  void Break(WorkerConnection& connection, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    connection.Abort();
    lock.lock();
    changed_.wait(lock, [&] { return connection.state().closed; });
  }

  void WakeConnection() {
    std::shared_ptr<WorkerConnection> connection;
    {
      const std::lock_guard lock(connection_mutex_);
      connection = connection_.lock();
    }
    if (connection != nullptr) connection->Wake();
  }
  void Ping(const std::string& state) const {
    if (options_.ping) options_.ping(state);
  }
  void Pause(int64_t ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, milliseconds(ms), [&] { return !stop_.ok(); });
  }
  bool Stopped() {
    const std::lock_guard lock(mutex_);
    return !stop_.ok();
  }
  static int64_t NowMs() { return SystemClock().MonotonicNs() / kNsPerMs; }

  const WorkerOptions& options_;
  WorkerIdentity identity_;
  WorkerDescription description_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Status stop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string channel_address_;
  bool unreachable_ = false;  // the last time
  bool joins_ = false;        // by a token: no master has let in the identity yet
  int64_t heard_ms_ = 0;      // when the last frame was sent that a master has answered
  int64_t lease_ms_ = kLongestPauseMs * 4;
  MasterTokens tokens_;
  MetricsAdmission admission_;
  std::mutex connection_mutex_;
  std::weak_ptr<WorkerConnection> connection_;
  WorkerExecutors executors_;  // behind the others: its threads use the rest
  std::unique_ptr<MetricsServer> metrics_;
};

}  // namespace

Status RunWorker(const WorkerOptions& options, engine::Cancellation* cancellation,
                 const std::function<void(const std::string& name, const std::string& address)>& connected) {
  HEDDLE_ASSIGN_OR_RETURN(WorkerIdentity identity, TakeIdentity(options.folder, options.name));
  std::string why_not;
  const std::unique_ptr<ControlGroups> groups = ControlGroups::Prepare(&why_not);
  const WorkerExecutorsOptions executors = ExecutorsOptions(options, identity, groups.get());
  const std::string confinement = groups != nullptr ? "cgroup" : fmt::format("rlimit ({})", why_not);
  return Daemon(options, executors, std::move(identity), confinement).Run(cancellation, connected);
}

}  // namespace heddle::cluster

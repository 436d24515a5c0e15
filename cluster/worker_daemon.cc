// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker_daemon.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "cluster/master_folder.h"
#include "cluster/message_limits.h"
#include "cluster/rpc_security.h"
#include "cluster/unreachable.h"
#include "cluster/worker_connection.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/random.h"

namespace heddle::cluster {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kFirstPauseMs = 50;
constexpr int64_t kLongestPauseMs = 5'000;
constexpr int64_t kGoodbyeMs = 2'000;
constexpr int64_t kFirstPatienceMs = 5'000;  // master and workers may be started by the same script
constexpr int kMostWorkersOfAHost = 64;

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "host";
}

// A name and identity that no other running worker of this user has.
struct Identity {
  std::string name;
  std::string uuid;
  std::unique_ptr<FolderLock> lock;
};

std::string WorkerFolder(const WorkerOptions& options, const std::string& name) {
  return options.folder + "/workers/" + name;
}

Result<bool> TryIdentity(const std::string& path, const std::string& name, Identity* identity) {
  HEDDLE_RETURN_IF_ERROR(MakePrivateFolder(path));
  HEDDLE_ASSIGN_OR_RETURN(identity->lock, FolderLock::TryTake(path + "/lock"));
  if (identity->lock == nullptr) return false;
  HEDDLE_ASSIGN_OR_RETURN(identity->uuid, ReadOrMakeSecret(path + "/uuid"));
  identity->name = name;
  return true;
}

Result<Identity> TakeIdentity(const WorkerOptions& options) {
  Identity identity;
  if (!options.name.empty()) {
    if (!IsWorkerName(options.name))
      return Usage(
          "--name '{}': a name has up to {} letters, digits, '-', '_' and '.', and does not begin with '.'",
          options.name, 64);
    HEDDLE_ASSIGN_OR_RETURN(const bool taken,
                            TryIdentity(WorkerFolder(options, options.name), options.name, &identity));
    if (!taken) return Usage("a worker called '{}' is running already", options.name);
    return identity;
  }
  for (int number = 1; number <= kMostWorkersOfAHost; ++number) {
    const std::string name = fmt::format("{}-{}", HostName(), number);
    HEDDLE_ASSIGN_OR_RETURN(const bool taken, TryIdentity(WorkerFolder(options, name), name, &identity));
    if (taken) return identity;
  }
  return Usage("{} workers run on this machine already", kMostWorkersOfAHost);
}

WorkerExecutorsOptions ExecutorsOptions(const WorkerOptions& options, const Identity& identity) {
  WorkerExecutorsOptions executors;
  executors.threads = options.threads;
  executors.core_dumps = options.core_dumps;
  executors.log_folder = WorkerFolder(options, identity.name) + "/logs";
  if (!options.peer_host.empty()) executors.listen = options.peer_host + ":0";
  return executors;
}

class Daemon {
 public:
  Daemon(const WorkerOptions& options, const WorkerExecutorsOptions& executors, Identity identity)
      : options_(options),
        identity_(std::move(identity)),
        executors_(executors, [this] { WakeConnection(); }) {
    description_.uuid = identity_.uuid;
    description_.instance = MakeToken();
    description_.name = identity_.name;
    description_.host = HostName();
    description_.pid = getpid();
    description_.threads = options.threads;
    description_.memory_bytes = options.memory_bytes;
  }

  Status Run(Cancellation* cancellation,
             const std::function<void(const std::string&, const std::string&)>& connected) {
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
  Status Serve(const std::function<void(const std::string&, const std::string&)>& connected) {
    int64_t away_since_ms = NowMs();
    int64_t pause_ms = kFirstPauseMs;
    bool ever_connected = false;
    bool told = false;
    for (;;) {
      Status failure;
      Result<MasterAddress> master = options_.find_master();
      if (master.ok()) {
        bool welcomed = false;
        failure = ServeConnection(*master, [&] {
          if (!std::exchange(ever_connected, true)) connected(identity_.name, master->address);
          welcomed = true;
        });
        if (welcomed) {
          away_since_ms = NowMs();
          pause_ms = kFirstPauseMs;
        }
      } else {
        failure = master.status();
      }
      if (Stopped()) return OkStatus();
      // Files of a master that is just being replaced may be missing.
      const bool may_come = failure.code() == StatusCode::kUnavailable ||
                            (ever_connected && failure.code() == StatusCode::kNotFound);
      if (!may_come) return failure;
      if (!ever_connected && NowMs() - away_since_ms > std::min(kFirstPatienceMs, options_.patience_ms))
        return WhyNeverConnected(master, failure);
      if (NowMs() - away_since_ms > options_.patience_ms)
        return failure.WithNote(fmt::format("no master for {} s: this worker gives up and ends its executors",
                                            options_.patience_ms / 1000));
      if (ever_connected || !std::exchange(told, true))
        HEDDLE_LOG(kWarning, ever_connected ? "master lost" : "no master yet", {"worker", identity_.name},
                   {"again_in_ms", pause_ms}, {"error", failure.message()});
      Pause(pause_ms / 2 + static_cast<int64_t>(SystemRandom().Below(static_cast<uint64_t>(pause_ms))));
      pause_ms = std::min(2 * pause_ms, kLongestPauseMs);
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
    // One channel for all connections to the same master: it survives the restarts of its server.
    if (channel_ == nullptr || channel_address_ != master.address) {
      HEDDLE_ASSIGN_OR_RETURN(
          channel_,
          MakeMasterChannel(master.address, {master.tls_certificate, master.tls_key, master.tls_authority}));
      channel_address_ = master.address;
    }
    auto connection = std::make_shared<WorkerConnection>(description_, &executors_, [this] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    {
      const std::lock_guard lock(connection_mutex_);
      connection_ = connection;
    }
    WorkerConnection::Open(connection, channel_, master.token);
    HoldLease(*connection, welcomed);
    {
      const std::lock_guard lock(connection_mutex_);
      connection_.reset();
    }
    const WorkerConnection::State state = connection->state();
    if (!state.refused.ok()) return state.refused;
    unreachable_ = IsUnreachable(state.status);
    const Status status = FromGrpc(state.status, master.address);
    return status.ok() ? Unavailable("the master at {} ended the connection", master.address) : status;
  }

  void HoldLease(WorkerConnection& connection, const std::function<void()>& welcomed) {
    bool greeted = false;
    std::unique_lock lock(mutex_);
    for (;;) {
      const WorkerConnection::State state = connection.state();
      if (state.closed) return;
      if (!stop_.ok() || !state.refused.ok()) break;
      if (!state.lease_ms) {
        changed_.wait(lock);
        continue;
      }
      if (!std::exchange(greeted, true)) {
        lock.unlock();
        welcomed();
        lock.lock();
        continue;
      }
      // A quarter of the lease, with a tenth of jitter so that workers do not speak all at once.
      const int64_t quarter = std::max<int64_t>(*state.lease_ms / 4, 1);
      const int64_t wait_ms =
          quarter - static_cast<int64_t>(SystemRandom().Below(static_cast<uint64_t>(quarter / 10 + 1)));
      const bool woken = changed_.wait_for(lock, milliseconds(wait_ms),
                                           [&] { return connection.state().closed || !stop_.ok(); });
      if (woken) continue;
      lock.unlock();
      connection.Heartbeat();
      lock.lock();
    }
    lock.unlock();
    executors_.KillAll();
    connection.Leave();
    lock.lock();
    if (changed_.wait_for(lock, milliseconds(kGoodbyeMs), [&] { return connection.state().closed; })) return;
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
  void Pause(int64_t ms) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, milliseconds(ms), [&] { return !stop_.ok(); });
  }
  bool Stopped() {
    const std::lock_guard lock(mutex_);
    return !stop_.ok();
  }
  static int64_t NowMs() { return SystemClock().MonotonicNs() / 1'000'000; }

  const WorkerOptions& options_;
  Identity identity_;
  WorkerDescription description_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Status stop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::string channel_address_;
  bool unreachable_ = false;  // the last time
  std::mutex connection_mutex_;
  std::weak_ptr<WorkerConnection> connection_;
  WorkerExecutors executors_;  // last: its threads use the rest
};

}  // namespace

Status RunWorker(const WorkerOptions& options, Cancellation* cancellation,
                 const std::function<void(const std::string& name, const std::string& address)>& connected) {
  HEDDLE_ASSIGN_OR_RETURN(Identity identity, TakeIdentity(options));
  const WorkerExecutorsOptions executors = ExecutorsOptions(options, identity);
  return Daemon(options, executors, std::move(identity)).Run(cancellation, connected);
}

}  // namespace heddle::cluster

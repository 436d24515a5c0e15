// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/placement/resources.h"
#include "core/status.h"

namespace heddle::cluster {

/// What a worker says about itself when it registers.
struct WorkerDescription {
  std::string uuid;        ///< Kept over restarts of the worker. Made of its secret by the master.
  std::string secret;      ///< On the way to the master only.
  std::string instance;    ///< Of this process of it.
  std::string place;       ///< Of the folder of its identity: that is locked by one process at a time.
  int64_t connection = 0;  ///< Number among those of this process.
  std::string name;
  std::string host;
  int64_t pid = 0;
  int threads = 1;           ///< That it offers to all its executors together.
  int64_t memory_bytes = 0;  ///< The same; 0: it does not know.
  int slots = 1;             ///< Into how many parts it is divided for jobs that do not say what they need.
  std::string confinement;   ///< What holds its executors to their share; for people.
  std::string version;
  std::string isolation;  ///< What keeps its executors in, for people (cluster/executor/isolation.h).
  std::string device;     ///< That its executors may use: "opencl:0"; "": none.
  std::string device_name;  ///< Of that device, for people.
};

enum class WorkerState : uint8_t {
  kAlive,
  kSuspect,  ///< Silent for more than half its lease: gets no new ranks.
  kLost,     ///< Silent for more than its lease: its ranks are lost.
};
std::string_view Name(WorkerState state);  ///< "ALIVE", ...

struct Worker {
  WorkerDescription description;
  WorkerState state = WorkerState::kAlive;
  int64_t heard_ns = 0;
  int64_t disconnected_ns = -1;         ///< When its connection broke; -1: it has one, or never had.
  int64_t permitted_ns = 0;             ///< Until when it may change files, at most. Kept by the master.
  std::map<std::string, Share> shares;  ///< What is reserved on it, by job. Kept by the master.
  bool drained = false;                 ///< Gets no new job. Kept by the master.
  /// Was here before the master was away (stopped or restarted) and has not been heard of since.
  bool awaited = false;

  Share Reserved() const;  ///< The sum of the shares.
};

/// Who belongs to the cluster: leases by time that the master counts (runtime reference 5.2, BeatClock). Time
/// comes in as an argument. Not thread-safe.
class Membership {
 public:
  explicit Membership(int64_t ttl_ns) : ttl_ns_(ttl_ns) {}

  /// Whether a worker may register. Another process of the same identity may be alive: kPermissionDenied
  /// while that one is heard of, kUnavailable while its lease may not be over.
  Status MayRegister(const WorkerDescription& description) const;
  /// A worker appears or comes back. True when another process of the same worker was here before: what that
  /// one ran is gone.
  bool Register(const WorkerDescription& description, int64_t now_ns);
  /// A worker that was here when another master held the same jobs: has a lease, and need not come.
  void Await(const std::string& uuid, const std::string& name, int64_t now_ns);
  /// The master was away: what workers said meanwhile may still be on its way, so that each has a whole
  /// lease.
  void RenewAll(int64_t now_ns);
  /// Renews the lease. False for a worker that is not here or lost: it must register again.
  bool Heartbeat(const std::string& uuid, int64_t now_ns);
  /// It ended on purpose.
  void Leave(const std::string& uuid);
  /// Its connection broke: it is SUSPECT, and lost when it does not come back within a quarter of a lease, or
  /// kLeastReconnectNs, where the lease does not end before. Not before it may change no file any more.
  void Disconnect(const std::string& uuid, int64_t now_ns);
  static constexpr int64_t kLeastReconnectNs = 2'000'000'000;
  /// Moves states on; the workers that are lost now.
  std::vector<std::string> Tick(int64_t now_ns);
  /// When Tick has something to do next; kNever without members.
  int64_t NextDeadline() const;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  Worker* Find(const std::string& uuid);
  const std::map<std::string, Worker>& workers() const { return workers_; }
  /// Changes with every change of who is here.
  int64_t epoch() const { return epoch_; }
  int64_t ttl_ns() const { return ttl_ns_; }

 private:
  int64_t LostAt(const Worker& worker) const;
  void Forget();

  const int64_t ttl_ns_;
  std::map<std::string, Worker> workers_;  // by uuid
  int64_t epoch_ = 0;
};

}  // namespace heddle::cluster

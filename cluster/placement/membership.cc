// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement/membership.h"

#include <algorithm>

namespace heddle::cluster {
namespace {

constexpr int64_t kClockDriftNs = 500'000'000;
constexpr size_t kMostLostWorkers = 64;

}  // namespace

std::string_view Name(WorkerState state) {
  switch (state) {
    case WorkerState::kAlive: return "ALIVE";
    case WorkerState::kSuspect: return "SUSPECT";
    case WorkerState::kLost: return "LOST";
  }
  return "";
}

Share Worker::Reserved() const {
  Share sum = {0, 0};
  for (const auto& [job, share] : shares) {
    sum.threads += share.threads;
    sum.memory_bytes += share.memory_bytes;
  }
  return sum;
}

Status Membership::MayRegister(const WorkerDescription& description) const {
  const auto found = workers_.find(description.uuid);
  if (found == workers_.end() || found->second.state == WorkerState::kLost) return OkStatus();
  const WorkerDescription& here = found->second.description;
  // The process before is gone when this one holds the lock of the same folder, and nobody knows of one that
  // has not come since the master was started.
  if (here.instance == description.instance || here.instance.empty() ||
      (!here.place.empty() && here.place == description.place))
    return OkStatus();
  if (found->second.state == WorkerState::kAlive)
    return PermissionDenied("worker {} is here already, on {} (pid {}): this one has a copy of its identity",
                            here.name, here.host, here.pid);
  return Unavailable("worker {} was here a moment ago, on {} (pid {}): its lease must run out first",
                     here.name, here.host, here.pid);
}

void Membership::Await(const std::string& uuid, const std::string& name, int64_t now_ns) {
  Worker& worker = workers_[uuid];
  worker.description.uuid = uuid;
  worker.description.name = name;
  worker.state = WorkerState::kSuspect;
  worker.heard_ns = now_ns;
  worker.awaited = true;
}

void Membership::RenewAll(int64_t now_ns) {
  for (auto& [uuid, worker] : workers_) {
    if (worker.state == WorkerState::kLost) continue;
    worker.heard_ns = now_ns;
    worker.awaited = true;
  }
}

bool Membership::Register(const WorkerDescription& description, int64_t now_ns) {
  const auto found = workers_.find(description.uuid);
  const bool replaces = found != workers_.end() &&
                        found->second.description.instance != description.instance &&
                        !found->second.description.instance.empty();
  Worker& worker = workers_[description.uuid];
  if (replaces) worker.shares.clear();
  worker.description = description;
  worker.description.secret.clear();
  worker.awaited = false;
  worker.state = WorkerState::kAlive;
  worker.heard_ns = now_ns;
  worker.disconnected_ns = -1;
  ++epoch_;
  return replaces;
}

bool Membership::Heartbeat(const std::string& uuid, int64_t now_ns) {
  Worker* worker = Find(uuid);
  if (worker == nullptr || worker->state == WorkerState::kLost) return false;
  worker->state = WorkerState::kAlive;
  worker->heard_ns = now_ns;
  worker->awaited = false;
  return true;
}

void Membership::Leave(const std::string& uuid) {
  Worker* worker = Find(uuid);
  if (worker == nullptr || worker->state == WorkerState::kLost) return;
  worker->state = WorkerState::kLost;
  ++epoch_;
  Forget();
}

void Membership::Disconnect(const std::string& uuid, int64_t now_ns) {
  Worker* worker = Find(uuid);
  if (worker == nullptr || worker->state == WorkerState::kLost) return;
  worker->state = WorkerState::kSuspect;
  worker->disconnected_ns = now_ns;
}

std::vector<std::string> Membership::Tick(int64_t now_ns) {
  std::vector<std::string> lost;
  for (auto& [uuid, worker] : workers_) {
    if (worker.state == WorkerState::kLost) continue;
    if (now_ns >= LostAt(worker)) {
      lost.push_back(uuid);
    } else if (now_ns - worker.heard_ns > ttl_ns_ / 2) {
      worker.state = WorkerState::kSuspect;
    }
  }
  for (const std::string& uuid : lost) Leave(uuid);
  return lost;
}

int64_t Membership::NextDeadline() const {
  int64_t next = kNever;
  for (const auto& [uuid, worker] : workers_) {
    if (worker.state == WorkerState::kLost) continue;
    next = std::min(next,
                    worker.state == WorkerState::kAlive ? worker.heard_ns + ttl_ns_ / 2 + 1 : LostAt(worker));
  }
  return next;
}

Worker* Membership::Find(const std::string& uuid) {
  const auto found = workers_.find(uuid);
  return found == workers_.end() ? nullptr : &found->second;
}

// With a margin: the last renewal may have been delayed on the way. A process that has died breaks its
// connection; one that lives makes another at once.
int64_t Membership::LostAt(const Worker& worker) const {
  const int64_t margin_ns = std::min(kClockDriftNs, ttl_ns_ / 4);
  const int64_t silent_ns = worker.heard_ns + ttl_ns_ + margin_ns;
  if (worker.disconnected_ns < 0) return silent_ns;
  const int64_t gone_ns = worker.disconnected_ns + kReconnectNs;
  return std::min(silent_ns, std::max(gone_ns, worker.permitted_ns + margin_ns));
}

// Lost workers stay visible, but not for ever.
void Membership::Forget() {
  std::vector<const Worker*> lost;
  for (const auto& [uuid, worker] : workers_)
    if (worker.state == WorkerState::kLost) lost.push_back(&worker);
  if (lost.size() <= kMostLostWorkers) return;
  const Worker* oldest = *std::min_element(
      lost.begin(), lost.end(), [](const Worker* a, const Worker* b) { return a->heard_ns < b->heard_ns; });
  const std::string uuid = oldest->description.uuid;
  workers_.erase(uuid);
}

}  // namespace heddle::cluster

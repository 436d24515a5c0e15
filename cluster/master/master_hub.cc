// SPDX-License-Identifier: Apache-2.0
#include "cluster/master/master_hub.h"

#include <algorithm>
#include <chrono>

namespace heddle::cluster {

MasterHub::MasterHub(JobStore& store, Clock& clock, const MasterCoreOptions& options)
    : store_(store), clock_(clock), core_(store, clock, options) {}

MasterHub::~MasterHub() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  timer_changed_.notify_all();
  if (timer_.joinable()) timer_.join();
}

Status MasterHub::Start() {
  HEDDLE_RETURN_IF_ERROR(core_.Start());
  Deliveries nobody_listens_yet;
  Collect(&nobody_listens_yet);
  timer_ = std::thread([this] { KeepTime(); });
  return OkStatus();
}

void MasterHub::Collect(Deliveries* deliveries) {
  deliveries->ports = std::exchange(replaced_ports_, {});
  for (const WorkerOrder& order : core_.TakeOrders()) {
    const auto port = ports_.find(order.worker);
    if (port == ports_.end()) continue;  // it is told again when it comes back
    port->second->Take(order);
    if (std::find(deliveries->ports.begin(), deliveries->ports.end(), port->second) ==
        deliveries->ports.end())
      deliveries->ports.push_back(port->second);
  }
  std::vector<std::string> changed = core_.TakeChanged();
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (const std::string& job : changed) {
    const auto found = watchers_.find(job);
    if (found == watchers_.end()) continue;
    for (const auto& [id, watcher] : found->second) deliveries->watchers.push_back(watcher);
  }
  timer_changed_.notify_all();
}

void MasterHub::Deliver(const Deliveries& deliveries) {
  for (const auto& port : deliveries.ports) port->Wake();
  for (const Watcher& watcher : deliveries.watchers) watcher();
}

void MasterHub::KeepTime() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    const int64_t deadline = core_.NextDeadline();
    const int64_t now = clock_.MonotonicNs();
    if (deadline == Membership::kNever) {
      timer_changed_.wait(lock);
    } else if (now < deadline) {
      timer_changed_.wait_for(lock, std::chrono::nanoseconds(deadline - now));
    } else {
      core_.Tick();
      Deliveries deliveries;
      Collect(&deliveries);
      lock.unlock();
      Deliver(deliveries);
      lock.lock();
    }
  }
}

void MasterHub::Connect(const std::string& uuid, const std::shared_ptr<WorkerPort>& port) {
  std::shared_ptr<WorkerPort>& place = ports_[uuid];
  if (place != nullptr) {
    place->End();
    replaced_ports_.push_back(place);
  }
  place = port;
}

bool MasterHub::IsConnected(const std::string& uuid, const WorkerPort* port) const {
  const auto found = ports_.find(uuid);
  return found != ports_.end() && found->second.get() == port;
}

bool MasterHub::Disconnect(const std::string& uuid, const WorkerPort* port) {
  return IsConnected(uuid, port) && ports_.erase(uuid) > 0;
}

void MasterHub::Expel(const std::string& uuid) {
  const auto found = ports_.find(uuid);
  if (found == ports_.end()) return;
  found->second->End();
  replaced_ports_.push_back(std::move(found->second));
  ports_.erase(found);
}

int64_t MasterHub::AddWatcher(const std::string& job, Watcher watcher) {
  const std::lock_guard lock(mutex_);
  watchers_[job][++last_watcher_] = std::move(watcher);
  return last_watcher_;
}

void MasterHub::RemoveWatcher(const std::string& job, int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = watchers_.find(job);
  if (found == watchers_.end()) return;
  found->second.erase(id);
  if (found->second.empty()) watchers_.erase(found);
}

}  // namespace heddle::cluster

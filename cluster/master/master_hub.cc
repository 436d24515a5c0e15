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
  Deliver(Collect());  // nobody listens yet
  timer_ = std::thread([this] { KeepTime(); });
  return OkStatus();
}

MasterHub::Outcome MasterHub::Collect() {
  Delivery delivery;
  delivery.change = store_.LastChange();
  change_ = delivery.change;
  delivery.replaced = std::exchange(replaced_ports_, {});
  for (WorkerOrder& order : core_.TakeOrders()) {
    const auto port = ports_.find(order.worker);
    if (port != ports_.end())  // else it is told again when it comes back
      delivery.orders.emplace_back(port->second, std::move(order));
  }
  std::vector<std::string> changed = core_.TakeChanged();
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (const std::string& job : changed) {
    const auto found = watchers_.find(job);
    if (found == watchers_.end()) continue;
    for (const auto& [id, watcher] : found->second) delivery.watchers.push_back(watcher);
  }
  timer_changed_.notify_all();
  const Outcome outcome = {
      .change = delivery.change,
      .has_delivery = !delivery.orders.empty() || !delivery.replaced.empty() || !delivery.watchers.empty()};
  if (outcome.has_delivery) deliveries_.push_back(std::move(delivery));
  return outcome;
}

// Also what earlier calls want done: of those who have something to deliver, the first one does it for all,
// in the order of the calls. A call that only looks delivers nothing: its caller may hold a lock that a
// watcher takes.
void MasterHub::Deliver(const Outcome& outcome) {
  AwaitDisk(outcome.change);
  if (!outcome.has_delivery) return;
  std::vector<std::shared_ptr<WorkerPort>> ports;
  std::vector<Watcher> watchers;
  {
    const std::lock_guard lock(mutex_);
    for (; !deliveries_.empty() && deliveries_.front().change <= outcome.change; deliveries_.pop_front()) {
      Delivery& delivery = deliveries_.front();
      ports.insert(ports.end(), delivery.replaced.begin(), delivery.replaced.end());
      for (const auto& [port, order] : delivery.orders) {
        port->Take(order);
        ports.push_back(port);
      }
      watchers.insert(watchers.end(), delivery.watchers.begin(), delivery.watchers.end());
    }
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  for (const auto& port : ports) port->Wake();
  for (const Watcher& watcher : watchers) watcher();
}

// One of those who wait has the disk written; it covers all changes that were there when it began.
void MasterHub::AwaitDisk(int64_t change) {
  std::unique_lock lock(disk_mutex_);
  while (durable_ < change) {
    if (syncing_) {
      disk_changed_.wait(lock);
      continue;
    }
    syncing_ = true;
    const int64_t covered = change_;
    lock.unlock();
    store_.Sync();
    lock.lock();
    syncing_ = false;
    durable_ = covered;
    disk_changed_.notify_all();
  }
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
      const Outcome outcome = Collect();
      lock.unlock();
      Deliver(outcome);
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

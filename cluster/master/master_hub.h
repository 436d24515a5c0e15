// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/master/master_core.h"
#include "cluster/master/sweep_replies.h"

namespace heddle::cluster {

/// The master's core made safe for many threads: one call at a time, its timer, and the delivery of what it
/// wants done.
class MasterHub {
 public:
  /// Where orders for one worker go. Called with the hub's lock held: Take() and End() only note, Wake()
  /// (without the lock) sends.
  class WorkerPort {
   public:
    virtual ~WorkerPort() = default;
    virtual void Take(const WorkerOrder& order) = 0;
    virtual void End() = 0;  ///< Another connection of the worker took over.
    virtual void Wake() = 0;
  };
  /// Who waits for changes of a job. Called without the lock, and only by calls that want something done: a
  /// watcher may hold a lock of its own while it looks at the core, and is not called by that look.
  using Watcher = std::function<void()>;

  /// Store and clock outlive it.
  MasterHub(JobStore& store, Clock& clock, const MasterCoreOptions& options);
  ~MasterHub();
  Status Start();

  JobStore& store() { return store_; }  ///< Inside Call only.
  Clock& clock() { return clock_; }
  SweepReplies& sweeps() { return sweeps_; }

  /// Runs `call(core)` alone; then waits until all that the store was told so far is on disk, and delivers
  /// what came of it. Calls that come meanwhile share one wait for the disk: what one of them sees of another
  /// is durable before it is answered.
  template <typename Function>
  auto Call(const Function& function) {
    std::unique_lock lock(mutex_);
    auto result = function(core_);
    const Outcome outcome = Collect();
    lock.unlock();
    Deliver(outcome);
    return result;
  }

  /// `port` is that of the worker from now on; the one before ends. Inside Call only, as the next two.
  void Connect(const std::string& uuid, const std::shared_ptr<WorkerPort>& port);
  /// False when another one took over.
  bool IsConnected(const std::string& uuid, const WorkerPort* port) const;
  bool Disconnect(const std::string& uuid, const WorkerPort* port);

  /// Ends the connection of a worker, if it has one. Inside Call only.
  void Expel(const std::string& uuid);

  int64_t AddWatcher(const std::string& job, Watcher watcher);
  /// No call of the watcher begins after this; one may be in progress.
  void RemoveWatcher(const std::string& job, int64_t id);

 private:
  /// What a call wants done, when the store's change of that number is on disk.
  struct Delivery {
    int64_t change = 0;
    std::vector<std::pair<std::shared_ptr<WorkerPort>, WorkerOrder>> orders;
    std::vector<std::shared_ptr<WorkerPort>> replaced;  // to be woken
    std::vector<Watcher> watchers;
  };
  /// What a call has come to.
  struct Outcome {
    int64_t change = 0;         // the store's last one: on disk before anybody is told
    bool has_delivery = false;  // It wants something done.
  };
  Outcome Collect();
  void Deliver(const Outcome& outcome);
  void AwaitDisk(int64_t change);
  void KeepTime();

  JobStore& store_;
  Clock& clock_;
  std::mutex mutex_;
  MasterCore core_;
  std::map<std::string, std::shared_ptr<WorkerPort>> ports_;
  std::vector<std::shared_ptr<WorkerPort>> replaced_ports_;     // to be woken
  std::map<std::string, std::map<int64_t, Watcher>> watchers_;  // by job
  int64_t last_watcher_ = 0;
  std::deque<Delivery> deliveries_;  // in the order of the calls
  SweepReplies sweeps_;
  std::atomic<int64_t> change_ = 0;  // the store's last one
  std::mutex disk_mutex_;            // never together with mutex_
  std::condition_variable disk_changed_;
  int64_t durable_ = 0;  // the last change that is on disk
  bool syncing_ = false;
  std::condition_variable timer_changed_;
  bool ending_ = false;
  std::thread timer_;
};

}  // namespace heddle::cluster

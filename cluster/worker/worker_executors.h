// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_remover.h"
#include "cluster/executor/executor_process.h"
#include "cluster/executor/log_tail.h"
#include "cluster/master/job_attempt.h"
#include "cluster/process/control_group.h"
#include "cluster/worker/worker_sweeper.h"
#include "proto/master.pb.h"

namespace heddle::cluster {

struct WorkerExecutorsOptions {
  int threads = 1;                     ///< For jobs that do not say.
  std::string listen = "127.0.0.1:0";  ///< Where executors listen for their peers.
  std::string log_folder;  ///< For what executors say on standard error; "": the worker's own standard error.
  bool core_dumps = false;                ///< Of executors.
  bool shares_memory = true;              ///< Executors do, with those of this machine.
  const ControlGroups* groups = nullptr;  ///< For one of each executor; nullptr: they have RLIMIT_DATA.
  bool isolates = true;                   ///< The kernel keeps executors in (cluster/executor/isolation.h).
  std::string device;                     ///< The only one that executors may use: "opencl:0"; "": none.
  bool runs_as_owner = false;             ///< Each as the user who is called as the owner of its job.
  std::string spill_folder;               ///< Of executors; "": that of temporary files.
  std::vector<std::string> data_roots;    ///< The only folders that jobs may use; none: what they name.
  std::vector<std::string> closed_paths;  ///< Files of the worker that no job may use.
  size_t most_buffered_bytes = 64 << 20;  ///< Of output of one executor that the master does not have yet.
};

class ExecutorLog;

/// The executors of a worker and what the master does not know of them yet. News are kept until the master
/// has them, so that a running job needs no master. Thread-safe.
class WorkerExecutors {
 public:
  /// `changed` is called, without a lock held, when there may be a report to send. It outlives this.
  WorkerExecutors(const WorkerExecutorsOptions& options, std::function<void()> changed);
  ~WorkerExecutors();  ///< Kills all.

  /// Does what the master asks. Asking twice does it once.
  void Obey(const ExecutorOrder& order);
  /// For a new connection: all that is known, and everything not acknowledged will be sent again.
  std::vector<ExecutorNews> Introduce();
  /// The next report to send, if there is one.
  std::optional<ExecutorNews> NextReport();
  /// Removes what executors that are gone have left over.
  void Sweep(const heddle::Sweep& order) { sweeper_.Sweep(order); }
  std::optional<Swept> NextSwept() { return sweeper_.NextSwept(); }
  /// A folder of checkpoints that is gone as the master has asked, which it has not been told.
  std::optional<std::string> NextRemoved();
  void KillAll();

  /// What has happened, and what is here now.
  struct Counts {
    int64_t started = 0;
    std::map<std::string, int64_t>
        ended;                 ///< By ExecutorExit::Kind(); "not started" for those that could not be.
    int64_t output_bytes = 0;  ///< Of standard output of scripts.
    int64_t running = 0;
    int64_t buffered_bytes = 0;  ///< Of output that the master does not have yet.
  };
  Counts counts();

 private:
  using Key = std::pair<std::string, int>;  // job, attempt
  struct Record {
    ExecutorNews news;  // all that is known; output and output_offset: what the master does not have
    bool ready_sent = false;
    bool output_sent = false;  // and not acknowledged
    bool end_sent = false;
    bool commit_sent = false;
    bool checkpoints_sent = false;
    bool forgotten = false;
    bool progress_due = false;
    int64_t progress_told_ns = 0;
    LogTail stderr_tail;               // on its standard error
    int64_t stderr_sent = 0;           // where the part of `stderr_tail` ends that the master was told
    std::unique_ptr<ExecutorLog> log;  // nullptr: standard error of the worker
    std::shared_ptr<ExecutorProcess> process;  // of its own thread-safety; ends with the last who uses it
  };

  void Refuse(const ExecutorOrder& order, const Status& why);
  void Start(const Key& key, const LauncherMessage& message);
  std::string WhyNoDevice(const std::string& devices) const;
  std::string Confine(ExecutorStart* start) const;
  ExecutorEvents EventsOf(const std::shared_ptr<Record>& record);
  void OnOutput(Record& record, std::string_view text);
  void OnLog(Record& record, std::string_view text);
  void OnProgress(Record& record, const std::string& json);
  void Forget(const Key& key);
  void OnRemoved(const std::string& folder);
  std::shared_ptr<Record> Find(const Key& key);

  const WorkerExecutorsOptions options_;
  const std::function<void()> changed_;
  std::mutex mutex_;
  std::condition_variable drained_;
  Counts counts_;  // but for what is here now
  std::map<Key, std::shared_ptr<Record>> records_;
  std::vector<std::string> removed_;  // folders of checkpoints
  WorkerSweeper sweeper_{options_.log_folder, options_.spill_folder, [this] { changed_(); }};
  CheckpointRemover remover_{[this](const std::string& folder) { OnRemoved(folder); }};
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/executor/executor_messages.h"
#include "cluster/master/beat_clock.h"
#include "cluster/master/job_attempt.h"
#include "cluster/master/job_store.h"
#include "cluster/master/membership.h"
#include "core/environment/clock.h"

namespace heddle::cluster {

/// What the master wants a worker to do with an executor. Lost when the worker is not connected; the master
/// repeats it when the worker comes back.
struct WorkerOrder {
  enum class Kind : uint8_t { kStart, kPeers, kCancel, kKill, kForget, kOutputUntil, kCommit };
  std::string worker;  ///< uuid
  std::string job;
  int attempt = 0;
  Kind kind = Kind::kKill;
  LauncherMessage message;   ///< kStart, kPeers, kCancel
  int64_t output_until = 0;  ///< kOutputUntil
  CommitQuestion commit;     ///< kCommit: that it may change that file,
  int64_t valid_ns = 0;      ///< for so long since the question was sent.
};

struct MasterCoreOptions {
  int64_t ttl_ns = 10'000'000'000;   ///< Of a worker's lease.
  int64_t grace_ns = 5'000'000'000;  ///< For executors to end on their own.
  int most_crashes = 3;     ///< Attempts of a job that may end by a crash of its own; the last one is final.
  int most_workers = 4096;  ///< Of a job: one that wants more never gets them.
  /// Later jobs may take the workers that are free while a job waits for others to become free; after so long
  /// they are kept for it.
  int64_t overtaking_ns = 60'000'000'000;
  std::string first_owner;  ///< Of jobs in the store that were submitted before there were owners.
  std::vector<std::string> data_roots;    ///< The only folders that jobs may use; none: what they name.
  std::vector<std::string> closed_paths;  ///< Files of the master that no job may use, whatever it names.
};

/// The master's mind: events in, orders out (runtime reference 5.2 to 5.11). A job gets all its workers or
/// none; a worker works on one job at a time. Jobs start in order of submission as far as they can; a job
/// that has to wait is overtaken by those that fit, but not for ever.
///
/// No thread, no network, no timer inside: the owner calls one method at a time, then takes orders() and
/// changed(), and calls Tick() at NextDeadline(). Time in which it did not do so does not count: who was
/// stopped himself cannot tell who was silent.
///
/// Executors ask before they change a file (News with `commit`) and get an answer while theirs is the current
/// attempt of its job, and nothing else (docs/decisions/0004): an attempt that is given up is given up no
/// earlier than its last permission has run out.
class MasterCore {
 public:
  /// `store` and `clock` outlive it.
  MasterCore(JobStore& store, Clock& clock, const MasterCoreOptions& options);

  /// Once, first: takes up the jobs of the store.
  Status Start();

  // From clients.
  /// kResourceExhausted for a job that could never start.
  Result<const Job*> Submit(const JobSpecification& specification);
  /// Those its executors would start with if it got the workers that are here now: ranks, memory budget and
  /// constants filled in.
  engine::SessionOptions ExpectedOptions(const JobSpecification& specification) const;
  /// Which files it may use, as far as the master has a say.
  ops::FileRoots RootsOf(const JobSpecification& specification) const;
  /// kNotFound for a job that is not known: NoJob.
  Result<const Job*> Find(const std::string& job) const;
  static Status NoJob(const std::string& job);
  /// Asks a job to stop. A finished job stays as it is.
  Status Cancel(const std::string& job);
  std::vector<const Job*> Jobs() const;  ///< Oldest first.

  // From administrators.
  /// Gives a worker (by name or uuid; it need not be here) no more jobs, or jobs again; the job that it works
  /// on goes on. kNotFound for an unknown worker, kUsage for a name that several have.
  Result<KnownWorker> Drain(const std::string& node, bool drained);
  /// Names of the drained workers, here or not, by uuid.
  const std::map<std::string, std::string>& drained() const { return drained_; }

  // From workers.
  /// Whether it may register: Membership::MayRegister; kAborted for a connection that came too late.
  Status MayConnect(const WorkerDescription& description) const;
  void WorkerConnected(const WorkerDescription& description, const std::vector<ExecutorNews>& executors);
  /// False: it must register again.
  bool WorkerHeard(const std::string& uuid);
  void WorkerDisconnected(const std::string& uuid);
  void WorkerLeft(const std::string& uuid);
  /// False as above: what a lost worker says of its executors does not count any more.
  bool News(const std::string& uuid, const ExecutorNews& news);

  // Time.
  void Tick();
  int64_t NextDeadline() const;  ///< Membership::kNever for none.

  std::vector<WorkerOrder> TakeOrders() { return std::exchange(orders_, {}); }
  /// Jobs of which something has changed: state, reason or output.
  std::vector<std::string> TakeChanged() { return std::exchange(changed_, {}); }
  const Membership& membership() const { return membership_; }
  /// By which leases are counted.
  int64_t now_ns() const { return beats_.now_ns(); }

 private:
  struct Entry {
    Job job;
    std::unique_ptr<JobAttempt> attempt;          // while executors may run
    std::map<std::string, int> failures;          // by worker
    int64_t not_before_ns = 0;                    // when the next attempt may start, by counted time
    int64_t waits_since_ns = Membership::kNever;  // for workers that are here and busy
  };
  struct InOrder {  // "j9" before "j10"
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };

  int64_t Now();
  int64_t NextEvent() const;
  Status Restore(Entry& entry);
  void SetHere(const KnownWorker& worker, bool here);
  bool IsCurrent(const Entry& entry, const ExecutorNews& news) const;
  void AnswerCommit(const Entry& entry, const ExecutorNews& news);
  Result<KnownWorker> FindWorker(const std::string& node) const;
  bool Move(Entry& entry, JobState state, const std::string& reason);
  void SetReason(Entry& entry, const std::string& reason);
  void Schedule();
  // The workers that take jobs, by name.
  struct Staff {
    std::vector<const Worker*> workers;
    const Worker* awaited = nullptr;  // of before the master was away, and not back
    size_t drained = 0;               // alive, but take none
    int64_t largest_bytes = 0;        // of their memory
  };
  // Workers for one job: those it gets, or those that it waits for, and why.
  struct Choice {
    std::vector<const Worker*> workers;  // of a job that has to wait: those to keep for it
    std::string why_not;                 // "" when it can start
    bool busy = false;                   // it waits for workers that are here
  };
  Status CheckCanStart(const JobSpecification& specification) const;
  bool Admit(Entry& entry, const std::vector<const Worker*>& chosen);
  Staff PresentStaff() const;
  Choice Choose(const Entry& entry, const Staff& staff, const std::set<const Worker*>& kept) const;
  LauncherMessage StartMessage(const Entry& entry, size_t rank) const;
  void Reconcile(Entry& entry, const std::string& uuid, const std::vector<ExecutorNews>& executors,
                 bool replaced);
  void Repeat(Entry& entry, size_t rank);
  void TakeOutput(Entry& entry, const ExecutorNews& news);
  void LoseWorker(const std::string& uuid, const std::string& why);
  void Advance(Entry& entry);
  void Stop(Entry& entry, const Status& why);
  void Kill(Entry& entry);
  void Finish(Entry& entry);
  bool FinishFailed(Entry& entry);
  Status WhyFinal(const Job& job, Blame blame, const Status& cause) const;
  bool GiveUp(Entry& entry);
  int64_t GivesUpAtMs(const Entry& entry) const;
  WorkerOrder& Order(const Entry& entry, size_t rank, WorkerOrder::Kind kind);
  void OrderForget(const std::string& uuid, const ExecutorNews& news);

  JobStore& store_;
  Clock& clock_;
  const MasterCoreOptions options_;
  BeatClock beats_;
  Membership membership_;
  std::map<std::string, Entry, InOrder> entries_;
  int64_t schedule_again_ns_ = Membership::kNever;  // after the store refused
  int64_t last_epoch_ = 0;
  int64_t started_ms_ = 0;      // by the wall clock
  std::set<std::string> here_;  // of whom the store says that they are here
  std::map<std::string, std::string> drained_;
  std::vector<WorkerOrder> orders_;
  std::vector<std::string> changed_;
};

}  // namespace heddle::cluster

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/executor/executor_messages.h"
#include "cluster/master/beat_clock.h"
#include "cluster/master/job_attempt.h"
#include "cluster/master/job_store.h"
#include "cluster/master/master_counts.h"
#include "cluster/placement/fair_share.h"
#include "cluster/placement/job_queue.h"
#include "cluster/placement/membership.h"
#include "cluster/placement/placement.h"
#include "core/environment/clock.h"

namespace heddle::cluster {

/// What the master wants to know of what executors have left over on a worker (the message Sweep).
struct SweepOrder {
  int64_t id = 0;
  bool dry_run = false;
  std::vector<int64_t> known, unfinished;  ///< Numbers of jobs.
  int64_t last = 0;                        ///< Of the job that was submitted last.
  std::string checkpoints_place;
  std::string master;
};

/// What the master wants a worker to do with an executor. Lost when the worker is not connected; the master
/// repeats it when the worker comes back.
struct WorkerOrder {
  enum class Kind : uint8_t {
    kStart,
    kPeers,
    kCancel,
    kKill,
    kForget,
    kOutputUntil,
    kCommit,
    kCheckpoint,
    kSweep
  };
  std::string worker;  ///< uuid
  std::string job;
  int attempt = 0;
  Kind kind = Kind::kKill;
  LauncherMessage message;  ///< kStart, kPeers, kCancel, kCheckpoint
  std::string checkpoints;  ///< kForget: the folder of the job's checkpoints, which go; "": nothing goes.
  std::string checkpoints_place;            ///< Below which it is (OpenCheckpoints).
  int64_t output_until = 0;                 ///< kOutputUntil
  CommitQuestion commit;                    ///< kCommit: that it may change that file,
  int64_t valid_ns = 0;                     ///< for so long since the question was sent.
  std::shared_ptr<const SweepOrder> sweep;  ///< kSweep, which is of no job.
};

struct MasterCoreOptions {
  int64_t ttl_ns = 10'000'000'000;   ///< Of a worker's lease.
  int64_t grace_ns = 5'000'000'000;  ///< For executors to end on their own.
  int most_crashes = 3;     ///< Attempts of a job that may end by a crash of its own; the last one is final.
  int most_workers = 4096;  ///< Of a job: one that wants more never gets them.
  /// Later jobs may take the workers that are free while a job waits for others to become free; after so long
  /// they are kept for it.
  int64_t overtaking_ns = 60'000'000'000;
  int64_t most_queued = 100'000;          ///< Jobs that wait; further ones are refused.
  int64_t most_queued_of_user = 100'000;  ///< The same of one user.
  std::string first_owner;  ///< Of jobs in the store that were submitted before there were owners.
  std::vector<std::string> data_roots;    ///< The only folders that jobs may use; none: what they name.
  std::vector<std::string> closed_paths;  ///< Files of the master that no job may use, whatever it names.
  std::string checkpoints;                ///< Where jobs leave checkpoints (OpenCheckpoints); "": nowhere.
};

/// The master's mind: events in, orders out (runtime reference 5.2 to 5.11). A job gets all its workers or
/// none, and of each worker the threads and the memory that it asks for; no worker is ever promised more than
/// it offers. Jobs start by priority, then by what their users have had (FairShare), then in order of
/// submission, as far as they can; a job that has to wait is overtaken by those that fit for a minute, and
/// then by those only that leave alone what is kept for it (Placement).
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
  /// kResourceExhausted for a job that could never start, kUnavailable when too many wait. `sources`
  /// (JobFileKind::kSources) are kept for its report.
  Result<const Job*> Submit(const JobSpecification& specification, const std::string& sources = "");
  /// A finished job once more, as another one with this request id. kFailedPrecondition for one that is not
  /// finished.
  Result<const Job*> Retry(const std::string& job, const std::string& request_id);
  /// Forgets a finished job with all that is kept of it. kFailedPrecondition as above.
  Status Delete(const std::string& job);
  /// Whether the queue has room for one more job of its owner; of a request that is known already it need
  /// not.
  Status MayQueue(const JobSpecification& specification) const;
  /// How many jobs come before one that waits for workers; 0 for others.
  int64_t Before(const Job& job) const;
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
  /// What the workers that are here lack for a job of a demand; "": they could run it.
  using MissingWorkers = std::map<Demand, std::string>;
  /// Why a job is in its state, for people; of one that waits what it waits for at this moment. Who asks
  /// about many jobs in one call of the hub passes the same `known`: workers are looked at once for each
  /// demand.
  std::string ReasonOf(const Job& job, MissingWorkers* known) const;
  /// What a running job is at, as JSON (cluster/progress/progress_line.h); "" when nobody knows.
  const std::string& ProgressOf(const std::string& job) const;
  /// What the executor of a rank said on its standard error, from `offset` on; of the last attempt when
  /// `attempt` is 0. kUsage for a rank or attempt that the job does not have.
  struct LogPart {
    int attempt = 0;
    std::string text;
    int64_t end = 0;  ///< Where `text` ends.
  };
  Result<LogPart> Log(const std::string& job, int attempt, int rank, int64_t offset) const;
  /// Which logs there are, by attempt and rank.
  Result<std::vector<JobFiles::Size>> Logs(const std::string& job) const;

  // From administrators.
  /// Gives a worker (by name or uuid; it need not be here) no more jobs, or jobs again; the job that it works
  /// on goes on. kNotFound for an unknown worker, kUsage for a name that several have.
  Result<KnownWorker> Drain(const std::string& node, bool drained);
  /// Names of the drained workers, here or not, by uuid.
  const std::map<std::string, std::string>& drained() const { return drained_; }

  /// Asks the workers that are here what executors have left over; their names by uuid.
  std::map<std::string, std::string> OrderSweep(int64_t id, bool dry_run);

  // From workers.
  /// Whether it may register: Membership::MayRegister; kAborted for a connection that came too late.
  Status MayConnect(const WorkerDescription& description) const;
  void WorkerConnected(const WorkerDescription& description, const std::vector<ExecutorNews>& executors);
  /// False: it must register again.
  bool WorkerHeard(const std::string& uuid);
  void WorkerDisconnected(const std::string& uuid);
  void WorkerLeft(const std::string& uuid);
  /// Nothing is left below WorkerOrder::checkpoints.
  void CheckpointsRemoved(const std::string& folder);
  /// False as above: what a lost worker says of its executors does not count any more.
  bool News(const std::string& uuid, const ExecutorNews& news);

  // Time.
  void Tick();
  int64_t NextDeadline() const;  ///< Membership::kNever for none.

  std::vector<WorkerOrder> TakeOrders() { return std::exchange(orders_, {}); }
  /// Jobs of which something has changed: state, reason or output.
  std::vector<std::string> TakeChanged() { return std::exchange(changed_, {}); }
  const Membership& membership() const { return membership_; }
  const MasterCounts& counts() const { return counts_; }
  /// Not Ok while what happens to jobs cannot be stored.
  const Status& CheckStore();
  /// By which leases are counted.
  int64_t now_ns() const { return beats_.now_ns(); }

 private:
  struct Entry {
    Job job;
    std::unique_ptr<JobAttempt> attempt;          // while executors may run
    std::map<std::string, int> failures;          // by worker
    bool needs_all = false;                       // fewer workers than it wants have too little memory
    std::string progress;                         // of the attempt, as JSON
    int64_t not_before_ns = 0;                    // when the next attempt may start, by counted time
    int64_t waits_since_ns = 0;                   // for its turn, by the monotonic clock
    int64_t give_up_not_before_ms = 0;            // the store refused: when to try again, by SteadyMs()
    int64_t submitted_ms = 0, first_loss_ms = 0;  // as of the job, by SteadyMs()
    // Where it stands in the indexes; kept by Index().
    std::optional<JobQueue::Waiting> waiting;
    std::optional<int64_t> pause_ns;
    std::optional<int64_t> due_ms;
    bool is_counted = false;
    int64_t plan_bytes = 0;
  };
  // Checkpoints of a job that has ended, until a worker says that they are gone.
  struct Removal {
    int asked = 0;
    std::string worker;   // that was asked last
    int64_t next_ns = 0;  // when the next worker is asked, by counted time
  };
  struct InOrder {  // "j9" before "j10"
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };

  int64_t Now();
  int64_t NextEvent() const;
  int64_t SteadyMs() const;
  Status Restore(Entry& entry);
  void SetHere(const KnownWorker& worker, bool here);
  bool IsCurrent(const Entry& entry, const ExecutorNews& news) const;
  void AnswerCommit(const Entry& entry, const ExecutorNews& news);
  Result<KnownWorker> FindWorker(const std::string& node) const;
  bool Move(Entry& entry, JobState state, const std::string& reason);
  void SetReason(Entry& entry, const std::string& reason);
  void Index(Entry& entry);
  std::vector<Entry*> Active();
  void Reserve(const Entry& entry, size_t rank);
  void Schedule();
  void VisitQueue();
  JobQueue::Answer TryToStart(int64_t number, JobQueue::Group* group, Placement* placement);
  std::string WhyNotAble(const Demand& demand, size_t able) const;
  void Prune();
  void EndPauses();
  void EndDue();
  double UsageOf(const std::string& user) const { return shares_.Usage(user, clock_.MonotonicNs()); }
  void Charge(const Job& job, bool begins);
  Status CheckCanStart(const JobSpecification& specification) const;
  bool Admit(Entry& entry, const std::vector<const Worker*>& chosen);
  std::vector<const WorkerDescription*> WorkersOf(const Job& job) const;
  LauncherMessage StartMessage(const Entry& entry, size_t rank, const std::string& program) const;
  // Checkpoints (master_checkpoints.cc).
  std::string FolderOf(const Job& job) const;
  bool TakesCheckpoints(const Job& job) const;
  std::string CheckpointFolder(const Job& job) const;
  static bool TakesJobs(const Worker& worker);
  static bool IsFreeFor(const Job& job, const Worker& worker);
  ExecutorCheckpoints CheckpointsOf(const Job& job) const;
  bool MayShrink(const Entry& entry) const;
  void TakeCheckpoint(Entry& entry);
  void DropCheckpoint(Entry& entry);
  void AskCheckpoint(Entry& entry);
  void AskCheckpoints();
  void RemoveCheckpoints(Entry& entry);
  void OrderRemovals();
  void RepeatRemovals(const std::string& uuid);
  std::string WhyMove(const Entry& entry) const;
  void Reconcile(Entry& entry, const std::string& uuid, const std::vector<ExecutorNews>& executors,
                 bool replaced);
  void Repeat(Entry& entry, size_t rank);
  Result<Entry*> FindFinished(const std::string& job);
  void TakeOutput(Entry& entry, const ExecutorNews& news);
  void KeepFile(const std::string& job, const JobFile& file);
  void StoreLogs(const Entry& entry);
  void LoseWorker(const std::string& uuid, const std::string& why);
  std::string WhyLost(const std::string& uuid) const;
  void Advance(Entry& entry);
  void Stop(Entry& entry, const Status& why);
  void Kill(Entry& entry);
  void Finish(Entry& entry);
  bool FinishFailed(Entry& entry);
  Status WhyFinal(const Entry& entry, Blame blame, const Status& cause) const;
  void GiveUp(Entry& entry);
  int64_t GivesUpAtMs(const Entry& entry) const;
  static int64_t EndsByMs(const Entry& entry);
  static Status DeadlineOver(const Job& job);
  WorkerOrder& Order(const Entry& entry, size_t rank, WorkerOrder::Kind kind);
  void OrderForget(const std::string& uuid, const ExecutorNews& news);

  JobStore& store_;
  Clock& clock_;
  const MasterCoreOptions options_;
  BeatClock beats_;
  Membership membership_;
  std::map<std::string, Entry, InOrder> entries_;
  int64_t last_job_ = 0;                              // the highest number of all, deleted ones too
  JobQueue queue_;                                    // jobs that may start at once
  std::map<std::string, int64_t> waiting_of_;         // jobs that wait or pause, by user
  int64_t waiting_ = 0;                               // their sum
  int64_t plan_bytes_ = 0;                            // of the plans of all jobs
  int unpruned_ = 0;                                  // jobs that have finished since the last Prune()
  std::set<std::pair<int64_t, std::string>> pauses_;  // of jobs that start again later, by counted time
  std::set<std::pair<int64_t, std::string>> due_;     // when jobs are given up, by SteadyMs()
  std::set<std::string, InOrder> active_;             // jobs with an attempt
  std::map<std::string, Removal> removals_;           // by their folder
  int64_t removals_due_ns_ = Membership::kNever;
  FairShare shares_;
  int64_t schedule_again_ns_ = Membership::kNever;  // after the store refused
  std::string identity_;                            // of the store
  int64_t last_epoch_ = 0;
  int64_t started_ms_ = 0;      // by the wall clock,
  int64_t started_ns_ = 0;      // and by the monotonic one
  std::set<std::string> here_;  // of whom the store says that they are here
  std::map<std::string, std::string> drained_;
  MasterCounts counts_;
  Status store_status_;
  std::vector<WorkerOrder> orders_;
  std::vector<std::string> changed_;
};

}  // namespace heddle::cluster

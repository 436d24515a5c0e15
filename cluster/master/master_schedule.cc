// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cluster/master/master_core.h"
#include "cluster/placement/device_of_job.h"
#include "cluster/security/token.h"
#include "core/environment/log.h"

// From a waiting job to executors.
namespace heddle::cluster {
namespace {

constexpr int64_t kStoreRetryNs = 1'000'000'000;  // The disk may be full for a while.
constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kLeastSilenceMs = 3'000;  // A busy machine may keep an executor waiting.
constexpr int kAskedWithoutRoom = 16;       // So many jobs are told why they wait, whatever is free.

std::string Count(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

bool MasterCore::TakesJobs(const Worker& worker) {
  return worker.state == WorkerState::kAlive && !worker.drained;
}

bool MasterCore::IsFreeFor(const Job& job, const Worker& worker) {
  const Demand demand = DemandOf(job.specification);
  const WorkerDescription& offered = worker.description;
  if (!TakesJobs(worker) || !IsAble(offered, demand)) return false;
  const Share share = ShareOn(offered, demand), reserved = worker.Reserved();
  return reserved.threads + share.threads <= offered.threads &&
         (offered.memory_bytes == 0 || reserved.memory_bytes + share.memory_bytes <= offered.memory_bytes);
}

// Puts a job where it belongs among those that wait, run and end by time; after every change of it.
void MasterCore::Index(Entry& entry) {
  const Job& job = entry.job;
  const std::string& owner = job.specification.owner;
  const bool waits =
      entry.attempt == nullptr && (job.state == JobState::kQueued || job.state == JobState::kRecovering);
  const bool pauses = waits && entry.not_before_ns > beats_.now_ns();

  if (waits != entry.is_counted) {
    waiting_ += waits ? 1 : -1;
    int64_t& of_user = waiting_of_[owner];
    of_user += waits ? 1 : -1;
    if (of_user == 0) waiting_of_.erase(owner);
    entry.is_counted = waits;
  }

  if (entry.pause_ns) pauses_.erase({*entry.pause_ns, job.id});
  entry.pause_ns.reset();
  if (pauses) pauses_.emplace(*(entry.pause_ns = entry.not_before_ns), job.id);

  std::optional<JobQueue::Waiting> waiting;
  if (waits && !pauses) {
    waiting = {NumberOfJob(job.id), job.specification.priority, owner, DemandOf(job.specification)};
    if (!entry.failures.empty()) waiting->demand.only_job = waiting->number;
    waiting->demand.may_shrink = MayShrink(entry);
  }
  if (waiting != entry.waiting) {
    if (entry.waiting) queue_.Remove(*entry.waiting);
    if (waiting) queue_.Add(*waiting);
    if (!entry.waiting) entry.waits_since_ns = clock_.MonotonicNs();
    entry.waiting = std::move(waiting);
  }

  if (entry.due_ms) due_.erase({*entry.due_ms, job.id});
  entry.due_ms.reset();
  int64_t due_ms = Job::kNever;
  if (waits) due_ms = std::max(std::min(GivesUpAtMs(entry), EndsByMs(entry)), entry.give_up_not_before_ms);
  if (entry.attempt != nullptr && entry.attempt->stop.ok()) due_ms = EndsByMs(entry);
  if (due_ms != Job::kNever) due_.emplace(*(entry.due_ms = due_ms), job.id);

  int64_t plan_bytes = 0;
  for (const std::string& plan : job.specification.options.plans)
    plan_bytes += static_cast<int64_t>(plan.size());
  plan_bytes_ += plan_bytes - std::exchange(entry.plan_bytes, plan_bytes);

  if (entry.attempt != nullptr)
    active_.insert(job.id);
  else
    active_.erase(job.id);
}

void MasterCore::EndPauses() {
  while (!pauses_.empty() && pauses_.begin()->first <= Now())
    Index(entries_.find(pauses_.begin()->second)->second);
}

// Costs little when nothing is free, however many jobs wait: then only the first few are looked at.
void MasterCore::Schedule() {
  schedule_again_ns_ = Membership::kNever;
  EndPauses();
  EndDue();
  if (queue_.size() > 0) VisitQueue();
  AskCheckpoints();
}

void MasterCore::VisitQueue() {
  std::vector<const Worker*> workers;
  for (const auto& [uuid, worker] : membership_.workers())
    if (TakesJobs(worker)) workers.push_back(&worker);
  Placement placement(workers, [this](const std::string& job) {
    const auto found = entries_.find(job);
    return found == entries_.end() ? Job::kNever : EndsByMs(found->second);
  });
  int asked = 0;
  queue_.Visit([this](const std::string& user) { return UsageOf(user); },
               [&](int64_t number, JobQueue::Group& group) {
                 const JobQueue::Answer answer = TryToStart(number, &group, &placement);
                 return placement.IsFull() && ++asked >= kAskedWithoutRoom &&
                                answer != JobQueue::Answer::kStarts
                            ? JobQueue::Answer::kEnd
                            : answer;
               });
}

JobQueue::Answer MasterCore::TryToStart(int64_t number, JobQueue::Group* group, Placement* placement) {
  using Answer = JobQueue::Answer;
  Entry& entry = entries_.find(fmt::format("j{}", number))->second;
  const Demand demand = entry.waiting->demand;
  const Placement::Choice choice = placement->Choose(demand, entry.failures, EndsByMs(entry));
  if (const std::string why = WhyNotAble(demand, choice.able); !why.empty()) {
    group->able_since_ns = JobQueue::kNever;
    SetReason(entry, why);
    return Answer::kWaits;
  }
  if (choice.fits) {
    if (!Admit(entry, choice.workers)) return Answer::kEnd;  // the store: nobody else would fare better
    placement->Take(entry.job.id, demand, choice.workers, EndsByMs(entry));
    entry.waiting.reset();  // out of the queue by the answer
    Index(entry);
    return Answer::kStarts;
  }
  // Only waiting for workers that are here counts: the job could have had them.
  const int64_t now_ns = clock_.MonotonicNs();
  if (group->able_since_ns == JobQueue::kNever) group->able_since_ns = now_ns;
  SetReason(entry, choice.busy_with.empty()
                       ? "waits: workers are kept for a job that has waited longer"
                       : fmt::format("waits: workers are busy with job {}", choice.busy_with));
  const int64_t since_ns = std::max(entry.waits_since_ns, group->able_since_ns);
  if (now_ns - since_ns < options_.overtaking_ns) return Answer::kWaits;
  return placement->Promise(demand, choice.workers) ? Answer::kIsKept : Answer::kWaits;
}

// Why the workers that there are could not run such a job if they were free; "" when they could. `able`: how
// many of them can.
std::string MasterCore::WhyNotAble(const Demand& demand, size_t able) const {
  const auto least = static_cast<size_t>(demand.may_shrink ? 1 : std::max(1, demand.workers));
  size_t alive = 0, drained = 0;
  int most_threads = 0;
  int64_t most_bytes = 0;
  bool lacks_threads = false, lacks_memory = false;
  for (const auto& [uuid, worker] : membership_.workers()) {
    const WorkerDescription& description = worker.description;
    if (demand.workers == 0 && worker.awaited && worker.state != WorkerState::kLost && !worker.drained)
      return fmt::format("waits for worker {}, which was here before the master was away", description.name);
    if (worker.state == WorkerState::kAlive && worker.drained) ++drained;
    if (!TakesJobs(worker)) continue;
    ++alive;
    most_threads = std::max(most_threads, description.threads);
    most_bytes = std::max(most_bytes, description.memory_bytes);
    lacks_threads = lacks_threads || description.threads < demand.threads;
    lacks_memory =
        lacks_memory || (description.memory_bytes > 0 && description.memory_bytes < demand.memory_bytes);
  }
  if (alive == 0)
    return drained == 0 ? "waits: no worker is alive; 'heddle worker' starts one"
                        : "waits: every worker is drained; 'heddle admin undrain' gives one jobs again";
  if (alive < least) {
    std::string why = fmt::format("waits for {} workers; {} alive", least,
                                  alive == 1 ? "1 is" : fmt::format("{} are", alive));
    if (drained > 0) why += fmt::format(" and {} drained", drained);
    return why;
  }
  if (able >= least) return "";
  std::string wanted, most;
  if (lacks_threads) {
    wanted = Count(demand.threads, "thread");
    most = fmt::format("{}", most_threads);
  }
  if (lacks_memory) {
    wanted += fmt::format("{}{} bytes of memory", lacks_threads ? " and " : "", demand.memory_bytes);
    most += fmt::format("{}{}", lacks_threads ? " and " : "", most_bytes);
  }
  return fmt::format("waits for {} with {}; the largest that is alive has {}",
                     Count(static_cast<int64_t>(least), "worker"), wanted, most);
}

// Jobs that could take each other's places share one place in the queue, and the first of them alone is
// looked at again and again.
std::string MasterCore::ReasonOf(const Job& job, MissingWorkers* known) const {
  const auto found = entries_.find(job.id);
  if (found == entries_.end() || !found->second.waiting) return job.reason;
  Demand demand = found->second.waiting->demand;
  demand.digits_of_deadline = 0;  // These two are of no matter to what workers offer.
  demand.only_job = 0;
  const auto [why, is_new] = known->try_emplace(demand);
  if (is_new) {
    const auto able = std::ranges::count_if(membership_.workers(), [&](const auto& worker) {
      return TakesJobs(worker.second) && IsAble(worker.second.description, demand);
    });
    why->second = WhyNotAble(demand, static_cast<size_t>(able));
  }
  if (!why->second.empty()) return why->second;
  return job.reason.empty() ? "waits for its turn" : job.reason;
}

Status MasterCore::CheckCanStart(const JobSpecification& specification) const {
  if (specification.workers_wanted > options_.most_workers)
    return ResourceExhausted("the job wants {} workers; this master gives a job {} at most",
                             specification.workers_wanted, options_.most_workers)
        .WithNote("submit it with fewer: --workers N");
  const Demand demand = DemandOf(specification);
  int most_threads = 0;
  int64_t most_bytes = 0;
  for (const auto& [uuid, worker] : membership_.workers()) {
    const WorkerDescription& description = worker.description;
    if (description.instance.empty() || IsAble(description, demand)) return OkStatus();  // not known yet
    most_threads = std::max(most_threads, description.threads);
    most_bytes = std::max(most_bytes, description.memory_bytes);
  }
  if (most_threads == 0) return OkStatus();  // nobody knows what workers there will be
  if (most_threads < demand.threads)
    return ResourceExhausted("the job asks for {} threads on a worker; the largest worker has {}",
                             demand.threads, most_threads)
        .WithNote("submit it with fewer: --threads N");
  if (most_bytes < demand.memory_bytes)
    return ResourceExhausted("the job asks for {} bytes of memory on a worker; the largest worker has {}",
                             demand.memory_bytes, most_bytes)
        .WithNote("submit it with less: --memory SIZE");
  return ResourceExhausted(
             "the job asks for {} threads and {} bytes of memory on a worker; no worker has both",
             demand.threads, demand.memory_bytes)
      .WithNote("submit it with fewer: --threads N, or with less: --memory SIZE");
}

Status MasterCore::MayQueue(const JobSpecification& specification) const {
  const auto found = waiting_of_.find(specification.owner);
  const int64_t of_user = found == waiting_of_.end() ? 0 : found->second;
  if (waiting_ < options_.most_queued && of_user < options_.most_queued_of_user) return OkStatus();
  // One that is here already is no further one.
  for (const auto& [id, entry] : entries_) {
    const JobSpecification& known = entry.job.specification;
    if (known.request_id == specification.request_id && known.owner == specification.owner) return OkStatus();
  }
  const Status full =
      waiting_ < options_.most_queued
          ? Unavailable("{} jobs of yours wait for workers; the master keeps {} of one user at most", of_user,
                        options_.most_queued_of_user)
          : Unavailable("{} jobs wait for workers; the master keeps {} at most", waiting_,
                        options_.most_queued);
  return full.WithNote("submit it again when some have ended: 'heddle job list' shows them");
}

int64_t MasterCore::Before(const Job& job) const {
  const auto found = entries_.find(job.id);
  if (found == entries_.end() || !found->second.waiting) return 0;
  return queue_.Before(*found->second.waiting, [this](const std::string& user) { return UsageOf(user); });
}

// Counts what the executors of an attempt hold for the user of the job, from their start to their end.
void MasterCore::Charge(const Job& job, bool begins) {
  const std::string& user = job.specification.owner;
  int threads = 0;
  for (const Share& share : job.shares) threads += share.threads;
  const int64_t now_ns = clock_.MonotonicNs();
  shares_.Hold(user, begins ? threads : -threads, now_ns);
  if (begins) return;
  const auto core_ms = static_cast<int64_t>(shares_.CoreSeconds(user, now_ns) * 1e3);
  if (const Status status = store_.SetUsage({user, core_ms, clock_.WallMs()}); !status.ok())
    HEDDLE_LOG(kWarning, "usage not stored", {"user", user}, {"error", status});
}

// What an executor of the current attempt holds of its worker.
void MasterCore::Reserve(const Entry& entry, size_t rank) {
  const Job& job = entry.job;
  Worker* worker = membership_.Find(job.workers[rank]);
  worker->shares[job.id] =
      rank < job.shares.size() ? job.shares[rank] : ShareOn(worker->description, DemandOf(job.specification));
}

bool MasterCore::Admit(Entry& entry, const std::vector<const Worker*>& chosen) {
  HEDDLE_CHECK(!chosen.empty(), "an attempt has a member");
  Job& job = entry.job;
  const Job before = job;
  ++job.attempt;
  // Also above those of a store that was lost: a worker may still run an attempt of that one.
  job.epoch = std::max(last_epoch_ + 1, clock_.WallMs());
  job.workers.clear();
  job.worker_names.clear();
  job.shares.clear();
  // Plans depend on the memory, so that it is the same on every rank: the smallest share.
  const Demand demand = DemandOf(job.specification);
  int64_t memory_bytes = 0;
  for (const Worker* worker : chosen) {
    job.workers.push_back(worker->description.uuid);
    job.worker_names.push_back(worker->description.name);
    job.shares.push_back(ShareOn(worker->description, demand));
    const int64_t bytes = job.shares.back().memory_bytes;
    if (bytes > 0 && (memory_bytes == 0 || bytes < memory_bytes)) memory_bytes = bytes;
  }
  for (Share& share : job.shares) share.memory_bytes = memory_bytes;
  job.note = NoteOnDevices(WorkersOf(job), job.specification.options.devices);
  const Result<JobSpecification> stored = store_.Specification(job.id);
  const bool is_readable = stored.ok();
  if (!is_readable || !Move(entry, JobState::kAdmitted, "has its workers")) {
    job = before;
    SetReason(entry,
              fmt::format("waits: the master cannot {} its job store", is_readable ? "write to" : "read"));
    schedule_again_ns_ = Now() + kStoreRetryNs;
    return false;
  }
  last_epoch_ = job.epoch;
  if (!CheckpointsOf(job).resume.empty()) {
    ++job.resumed;
    if (const Status stored = store_.SetCheckpoints(job); !stored.ok())
      HEDDLE_LOG(kWarning, "resumption not noted", {"job", job.id}, {"error", stored});
  }
  ++counts_.attempts;
  if (job.attempt == 1)
    counts_.AddWait(static_cast<double>(std::max<int64_t>(clock_.WallMs() - job.submitted_ms, 0)) / 1e3);
  Move(entry, JobState::kStarting, "executors are being started");
  entry.attempt = std::make_unique<JobAttempt>(job, MakeToken(), /*restored=*/false);
  Charge(job, /*begins=*/true);
  for (size_t rank = 0; rank < job.workers.size(); ++rank) {
    Reserve(entry, rank);
    Order(entry, rank, WorkerOrder::Kind::kStart).message = StartMessage(entry, rank, stored->program);
  }
  return true;
}

std::vector<const WorkerDescription*> MasterCore::WorkersOf(const Job& job) const {
  std::vector<const WorkerDescription*> workers;
  for (const std::string& uuid : job.workers)
    if (const auto found = membership_.workers().find(uuid); found != membership_.workers().end())
      workers.push_back(&found->second.description);
  return workers;
}

LauncherMessage MasterCore::StartMessage(const Entry& entry, size_t rank, const std::string& program) const {
  const Job& job = entry.job;
  LauncherMessage message;
  message.start.emplace();
  ExecutorStart& start = *message.start;
  start.job = job.id;
  start.attempt = job.attempt;
  start.epoch = job.epoch;
  start.token = entry.attempt->token();
  start.silence_ms = std::max(options_.ttl_ns / kNsPerMs, kLeastSilenceMs);
  start.owner = job.specification.owner;
  start.program = program;
  start.directory = job.specification.directory;
  start.roots = RootsOf(job.specification);
  start.checkpoints = CheckpointsOf(job);
  start.options = job.specification.options;
  start.options.rank = static_cast<int>(rank);
  start.shows_progress = rank == 0;  // the others are at the same statement
  start.most_record_bytes = JobFiles::kMostBytesOfJob / static_cast<int64_t>(job.workers.size());
  start.options.ranks = static_cast<int>(job.workers.size());
  if (start.options.ranks != job.specification.options.ranks)
    start.options.plans.clear();  // made for other ranks
  start.options.devices = DevicesOn(WorkersOf(job), start.options.devices);
  if (rank < job.shares.size()) {
    start.options.threads = job.shares[rank].threads;
    start.options.memory_bytes = job.shares[rank].memory_bytes;
    // Made for more memory than there is now.
    if (job.shares[rank].memory_bytes < job.specification.planned_bytes) start.options.plans.clear();
  }
  return message;
}

ops::FileRoots MasterCore::RootsOf(const JobSpecification& specification) const {
  ops::FileRoots roots;
  roots.own_folders = ops::FileRoots::OwnFolders::kClosed;
  roots.is_job = true;
  roots.named = specification.data_roots;
  roots.arguments = specification.named_paths;
  roots.of_master = options_.data_roots;
  roots.closed = options_.closed_paths;
  if (options_.checkpoints.starts_with("/")) roots.closed.push_back(options_.checkpoints);
  return roots;
}

engine::SessionOptions MasterCore::ExpectedOptions(const JobSpecification& specification) const {
  engine::SessionOptions options = specification.options;
  std::vector<const WorkerDescription*> able;
  int threads = options.threads;
  const Demand demand = DemandOf(specification);
  for (const auto& [uuid, worker] : membership_.workers()) {
    if (!TakesJobs(worker) || !IsAble(worker.description, demand)) continue;
    able.push_back(&worker.description);
    const Share share = ShareOn(worker.description, demand);
    if (options.threads <= 0) threads = threads <= 0 ? share.threads : std::min(threads, share.threads);
    if (share.memory_bytes > 0 && (options.memory_bytes == 0 || share.memory_bytes < options.memory_bytes))
      options.memory_bytes = share.memory_bytes;
  }
  const int most_ranks = std::max(1, static_cast<int>(able.size()));
  options.ranks = specification.workers_wanted > 0 ? specification.workers_wanted : most_ranks;
  options.constants = ops::OrBuiltIn(options.constants, threads);
  // Which workers it gets is not known; where none offers a device, plans can be made ahead.
  if (DevicesOn(able, options.devices) == "cpu") options.devices = "cpu";
  return options;
}

// The caller adds what belongs to an order of its kind.
WorkerOrder& MasterCore::Order(const Entry& entry, size_t rank, WorkerOrder::Kind kind) {
  WorkerOrder& order = orders_.emplace_back();
  order.worker = entry.attempt->members()[rank].worker;
  order.job = entry.job.id;
  order.attempt = entry.job.attempt;
  order.kind = kind;
  return order;
}

// An executor of which the master knows nothing (any more).
void MasterCore::OrderForget(const std::string& uuid, const ExecutorNews& news) {
  WorkerOrder& order = orders_.emplace_back();
  order.worker = uuid;
  order.job = news.job;
  order.attempt = news.attempt;
  order.kind = WorkerOrder::Kind::kForget;
  const auto found = entries_.find(news.job);
  if (found == entries_.end() || !IsFinal(found->second.job.state)) return;
  order.checkpoints = CheckpointFolder(found->second.job);  // it may have left some since
  order.checkpoints_place = options_.checkpoints;
}

// Does what the news of an attempt call for.
void MasterCore::Advance(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  if (attempt.restored && attempt.AllReported()) {
    attempt.restored = false;
    attempt.deadline_ns = Membership::kNever;
    if (!attempt.stop.ok()) {
      const Status why = std::exchange(attempt.stop, OkStatus());
      Stop(entry, why);
    } else if (!attempt.HasFailed() && !attempt.AllReady() && !attempt.AllEnded()) {
      Move(entry, JobState::kStarting, "its executors are still there");
    }
  }
  if (attempt.HasFailed() && attempt.stop.ok())
    Stop(entry, Cancelled("another executor failed: {}", attempt.Cause().message()));
  if (!attempt.restored && attempt.stop.ok() && !attempt.peers_sent && attempt.AllReady()) {
    attempt.peers_sent = true;
    for (size_t rank = 0; rank < attempt.members().size(); ++rank)
      Order(entry, rank, WorkerOrder::Kind::kPeers).message.peers = attempt.Peers();
    if (entry.job.state == JobState::kAdmitted) Move(entry, JobState::kStarting, "executors are ready");
    const size_t ranks = attempt.members().size();
    if (entry.job.state != JobState::kAdmitted)
      Move(entry, JobState::kRunning, fmt::format("on {} worker{}", ranks, ranks == 1 ? "" : "s"));
  }
  if (attempt.AllDone() && attempt.stop.ok() && !attempt.AllEnded() &&
      attempt.deadline_ns == Membership::kNever)
    attempt.deadline_ns = Now() + options_.grace_ns;
  if (attempt.AllEnded()) Finish(entry);
}

void MasterCore::Stop(Entry& entry, const Status& why) {
  JobAttempt& attempt = *entry.attempt;
  attempt.stop = why;
  if (!attempt.restored) attempt.deadline_ns = Now() + options_.grace_ns;
  for (size_t rank = 0; rank < attempt.members().size(); ++rank)
    if (!attempt.members()[rank].ended) Order(entry, rank, WorkerOrder::Kind::kCancel).message.cancel = why;
}

void MasterCore::Kill(Entry& entry) {
  JobAttempt& attempt = *entry.attempt;
  attempt.killed = true;
  for (size_t rank = 0; rank < attempt.members().size(); ++rank)
    if (!attempt.members()[rank].ended) Order(entry, rank, WorkerOrder::Kind::kKill);
}

}  // namespace heddle::cluster

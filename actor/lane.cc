// SPDX-License-Identifier: Apache-2.0
#include "actor/lane.h"

#include <algorithm>
#include <utility>

#include "actor/protocol.h"
#include "actor/recorded_sites.h"
#include "core/environment/clock.h"
#include "core/environment/progress_board.h"

namespace heddle::actor {
namespace {

constexpr size_t kWaitLines = 6;
// Runs whose errors are kept before they begin. The first of them that begins ends what the lane is for.
constexpr size_t kMostEarlyErrors = 64;
constexpr uint16_t kDescribeWaits = 1;  // Port of a kAbort that ends a stalled run.
constexpr uint16_t kRunDone = 1;        // Port of a kIdle from a rank that is through with the run.

int64_t StatedBytes(const Plan& plan, uint32_t rank) {
  return rank < plan.peak_bytes.size() ? plan.peak_bytes[rank] : 0;
}

}  // namespace

Lane::Lane(uint32_t number, const LaneSurroundings& surroundings)
    : number_(number),
      surroundings_(surroundings),
      caller_(surroundings.options.rank, surroundings.control, surroundings.link),
      early_messages_(surroundings.early_room) {
  active_.caller = &caller_;
  caller_.set_thread_name(number == 0 ? "main" : fmt::format("lane {}", number));
}

void Lane::Open(int threads, ops::KernelContext& context) {
  if (arena_ == nullptr || arena_->threads() != threads) {
    device_ = std::make_unique<DeviceWorker>(threads, surroundings_.options.set_denormals);
    caller_.set_device(device_.get());
    disk_ = std::make_unique<DeviceWorker>(threads, surroundings_.options.set_denormals);
    caller_.set_disk(disk_.get());
    // What it prints and compiles is no loop.
    queueing_ = std::make_unique<DeviceWorker>(1, surroundings_.options.set_denormals);
    caller_.SetQueueing(queueing_.get(), &device_streams_);
    arena_ = std::make_unique<ops::Arena>(threads);
  }
  context_ = &context;
  context_->cancelled = &stop_kernels_;
  const std::lock_guard<std::mutex> lock(mutex_);
  cancelled_ = Status();
  is_cancelled_.store(false);
}

void Lane::OpenWithCopy(int threads, const ops::KernelContext& context) {
  own_context_ = context;
  own_context_.threads = threads;
  Open(threads, own_context_);
}

Result<RunResult> Lane::Run(std::shared_ptr<const Plan> plan, uint32_t run,
                            std::map<std::string, Value> live_in) {
  if (context_ == nullptr) return Internal("lane {} is not open", number_);
  has_failed_elsewhere_ = false;
  const Result<ReadyPlan*> ready = Prepare(plan);
  if (!ready.ok()) return FailBeforeStart(run, static_cast<uint32_t>(plan->ranks), ready.status());
  // A run that other ranks wait for must not wait for one of another lane: they may wait the other way
  // around.
  if ((*ready)->instance->HasRemoteEdges()) return RunAdmitted(**ready, run, std::move(live_in));
  const int64_t bytes = StatedBytes(*plan, surroundings_.options.rank);
  const bool may_begin = surroundings_.admission.Enter(bytes, is_cancelled_);
  Result<RunResult> result = RunAdmitted(**ready, run, std::move(live_in));
  if (may_begin) surroundings_.admission.Leave(bytes);
  return result;
}

Result<RunResult> Lane::RunAdmitted(ReadyPlan& ready, uint32_t run, std::map<std::string, Value> live_in) {
  Status start = ready.body->Begin(std::move(live_in));
  if (start.ok()) start = Begin(ready, run);
  if (!start.ok()) {
    RunResult dropped;
    ready.body->TakeResults(&dropped.live_out, &dropped.sizes);
    return FailBeforeStart(run, static_cast<uint32_t>(ready.instance->plan().ranks), std::move(start));
  }
  if (active_.dispatchers_left.load(std::memory_order_relaxed) > 0) {
    if (surroundings_.options.set_denormals) ops::SetFloatingPointMode();
    arena_->Execute([this] { ServeUntilDone(); });
  }
  if (inbox_ != nullptr) inbox_->End();
  return End(ready);
}

void Lane::Cancel(const Status& why) {
  Announcement announcement;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!cancelled_.ok()) return;
    cancelled_ = why.ok() ? Cancelled("cancelled") : why;
    is_cancelled_.store(true);
    stop_kernels_.store(true);  // Kernels that run beside the plans ask for it, too.
    if (is_running_) announcement = FailLocked(kNoNode, surroundings_.options.rank, cancelled_, true);
  }
  surroundings_.admission.Wake();
  Announce(announcement);
}

void Lane::OnMessage(const Message& message) {
  if (message.type == MessageType::kIdle) return OnIdle(message);
  Status refused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    switch (FateOf(is_running_, message.run == active_.run, IsNew(message.run))) {
      case Fate::kDeliver:
        if (Dispatcher* dispatcher = ServerOf(message)) dispatcher->Post(message);
        break;
      case Fate::kKeep: KeepEarly(message, &refused); break;
      case Fate::kDrop: break;
    }
  }
  if (!refused.ok() && surroundings_.link != nullptr)
    surroundings_.link->SendError(message.source.rank(), message.run, kNoNode, refused);
}

// Where there is no room the run that the message is for fails, here when it begins, and where it came from
// at once, by `refused`.
void Lane::KeepEarly(const Message& message, Status* refused) {
  if (early_messages_.Add(message)) return;
  const uint32_t from = message.source.rank();
  const Status status = Internal("rank {} sends more than {} messages for runs that rank {} has not begun",
                                 from, surroundings_.options.most_early_messages, surroundings_.options.rank);
  if (AddEarlyError(message.run, kNoNode, surroundings_.options.rank, status)) *refused = status;
}

// Whether it is the first of its run. Of many runs the first ones matter.
bool Lane::AddEarlyError(uint32_t run, NodeId node, uint32_t rank, const Status& status) {
  const auto [found, is_first] = early_errors_.try_emplace(run);
  found->second.Add(node, rank, status);
  if (early_errors_.size() > kMostEarlyErrors) {
    const auto last =
        std::max_element(early_errors_.begin(), early_errors_.end(),
                         [](const auto& a, const auto& b) { return ComesAfter(b.first, a.first); });
    early_errors_.erase(last);
  }
  return is_first;
}

void Lane::OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) {
  Announcement announcement;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // That run has failed here too; its error has been reported.
    if (failed_run_ && !ComesAfter(run, *failed_run_)) return;
    if (is_running_ && !ComesAfter(run, active_.run)) {
      // An older run ended well here before it failed there: everybody else learns of it through this one.
      announcement = FailLocked(node, rank, status, run != active_.run);
    } else if (!IsNew(run)) {
      late_errors_.Add(node, rank, status);
    } else {
      AddEarlyError(run, node, rank, status);
    }
  }
  Announce(announcement);
}

ActiveRun* Lane::Active(uint32_t run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return is_running_ && active_.run == run ? &active_ : nullptr;
}

void Lane::ActorFailed(uint32_t run, NodeId node, Status status) {
  Announcement announcement;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!is_running_ || active_.run != run) return;
    // What a kernel says because the run is over anyway is no news.
    if (active_.aborting.load() && status.code() == StatusCode::kCancelled) return;
    announcement = FailLocked(node, surroundings_.options.rank, std::move(status), true);
  }
  Announce(announcement);
}

void Lane::AddWaits(std::vector<std::string> lines) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_.insert(waits_.end(), lines.begin(), lines.end());
}

Result<ReadyPlan*> Lane::Prepare(const std::shared_ptr<const Plan>& plan) {
  if (ReadyPlan* ready = plans_.Find(*plan)) return ready;
  ReadyPlan fresh;
  HEDDLE_ASSIGN_OR_RETURN(fresh.instance, PlanInstance::Create(plan, surroundings_.options.rank));
  fresh.body = std::make_unique<KernelBody>(*fresh.instance, surroundings_.kernels, *context_);
  for (const Actor& actor : fresh.instance->actors()) {
    TaskStatistics statistics;
    statistics.node = actor.task().node;
    statistics.phase = actor.task().phase;
    statistics.kind = actor.task().kind;
    fresh.statistics.push_back(std::move(statistics));
    fresh.estimates.emplace_back(actor.task().cost_ns);
    fresh.cost_ns += std::max<int64_t>(actor.task().cost_ns, 0);
  }
  if (surroundings_.options.recorder != nullptr)
    fresh.sites = SitesOf(*fresh.instance, *surroundings_.options.recorder);
  if (surroundings_.options.progress != nullptr) fresh.lines = LinesOf(*fresh.instance);
  if (fresh.instance->HasRemoteEdges() && surroundings_.link == nullptr)
    return Internal("a plan of {} ranks needs a link", plan->ranks);
  return plans_.Add(std::move(fresh));
}

Status Lane::Begin(ReadyPlan& ready, uint32_t run) {
  PlanInstance& instance = *ready.instance;
  instance.Begin(run);
  StartWorkers(ready);
  statistics_ = ready.statistics;
  exposed_.Begin(run);
  const bool is_short = instance.HasRemoteEdges() && ready.IsShort();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!cancelled_.ok()) return cancelled_;
  if (!IsNew(run)) return Internal("run {} follows run {}", run, *last_run_);
  if (!late_errors_.empty()) {
    Status late = late_errors_.First();
    late_errors_.Clear();
    has_failed_elsewhere_ = true;
    return late;
  }
  HEDDLE_RETURN_IF_ERROR(ChooseDispatchers(instance, is_short));
  active_.run = run;
  active_.instance = &instance;
  active_.body = ready.body.get();
  active_.statistics = &statistics_;
  active_.estimates = &ready.estimates;
  active_.times_acts = surroundings_.options.times_acts;
  active_.recorder = surroundings_.options.recorder;
  active_.sites = &ready.sites;
  active_.lines = &ready.lines;
  active_.progress = surroundings_.options.progress;
  // Of runs in other lanes one cannot tell which is the present one.
  if (active_.progress != nullptr && number_ == 0) active_.progress->BeginPlan(ready.cost_ns);
  active_.aborting.store(false);
  active_.dispatchers_left.store(static_cast<int>(participants_.size()));
  stop_kernels_.store(false);
  errors_.Clear();
  waits_.clear();
  detector_.Begin(surroundings_.options.rank, static_cast<uint32_t>(instance.plan().ranks),
                  instance.HasRemoteEdges());
  ranks_.store(instance.plan().ranks);
  last_run_ = run;
  is_running_ = true;
  for (Dispatcher* dispatcher : participants_) {
    Message message;
    message.type = MessageType::kStart;
    message.run = run;
    dispatcher->Post(message);
  }
  if (!early_messages_.empty()) DeliverEarly(run);
  if (!early_errors_.empty()) FailEarly(run);
  return OkStatus();
}

// Threads beside the caller's for what the plan has.
void Lane::StartWorkers(const ReadyPlan& ready) {
  const PlanInstance& instance = *ready.instance;
  const auto is_long = [](const LaunchEstimate& estimate) { return estimate.IsLong(); };
  bool has_long = std::any_of(ready.estimates.begin(), ready.estimates.end(), is_long);
  const std::vector<StreamDescription>& streams = instance.plan().streams;
  for (uint32_t stream = 0; stream < streams.size(); ++stream) {
    if (instance.OnStream(stream).empty()) continue;
    if (streams[stream].kind == StreamKind::kDisk) disk_->Start();
    if (streams[stream].device.IsHost()) continue;
    queueing_->Start();
    has_long = true;  // What the device leaves to the processor.
  }
  if (has_long) device_->Start();
}

Status Lane::ChooseDispatchers(const PlanInstance& instance, bool is_short) {
  const std::vector<StreamDescription>& streams = instance.plan().streams;
  std::vector<Dispatcher*> serving;
  bool has_copies = false;
  for (uint32_t stream = 0; stream < streams.size(); ++stream) {
    serving.push_back(DispatcherOf(streams[stream]));
    if (serving.back() == nullptr)
      return Internal("plan: rank {} has no stream '{}'", surroundings_.options.rank, streams[stream].name);
    has_copies |= streams[stream].kind == StreamKind::kNetwork && !instance.OnStream(stream).empty();
  }
  // Where nothing comes from other ranks there is nothing to wait for beside the kernels: one thread does it
  // all. It also does where all kernels together take less time than another thread needs to wake up.
  if (!has_copies || is_short) serving.assign(streams.size(), &caller_);
  LookAtInbox(/*by_caller=*/is_short);
  caller_.ServeAlone(is_short ? &instance : nullptr, inbox_);
  active_.serving = std::move(serving);
  is_alone_ = !has_copies && !instance.HasRemoteEdges();
  participants_.clear();
  for (uint32_t stream = 0; stream < streams.size(); ++stream) {
    Dispatcher*& dispatcher = active_.serving[stream];
    if (instance.OnStream(stream).empty()) {
      // The end of the run does not wait for this stream's thread: it must not even look at a message of
      // the run.
      dispatcher = nullptr;
      continue;
    }
    if (std::find(participants_.begin(), participants_.end(), dispatcher) == participants_.end())
      participants_.push_back(dispatcher);
  }
  return OkStatus();
}

// From now on the caller takes the messages of other ranks itself, or another thread does.
void Lane::LookAtInbox(bool by_caller) {
  inbox_ = surroundings_.link == nullptr ? nullptr : surroundings_.link->inbox();
  if (inbox_ == nullptr) return;
  if (by_caller && inbox_->Begin()) return;
  if (!by_caller) inbox_->HandBack();
  inbox_ = nullptr;
}

Dispatcher* Lane::DispatcherOf(const StreamDescription& stream) {
  // It launches what waits for files and devices.
  if (stream.kind == StreamKind::kDisk || !stream.device.IsHost()) return &caller_;
  for (size_t i = 0; i < surroundings_.streams.size(); ++i)
    if (surroundings_.streams[i] == stream) return i == 0 ? &caller_ : surroundings_.threads[i - 1].get();
  return nullptr;
}

Dispatcher* Lane::ServerOf(const Message& message) const {
  const uint32_t stream = message.destination.stream();
  return stream < active_.serving.size() ? active_.serving[stream] : nullptr;
}

void Lane::DeliverEarly(uint32_t run) {
  for (const Message& message : early_messages_.Take(run))
    if (Dispatcher* dispatcher = ServerOf(message)) dispatcher->Post(message);
}

// An error that another rank sent before this one was so far.
void Lane::FailEarly(uint32_t run) {
  const auto early = early_errors_.find(run);
  if (early == early_errors_.end()) return;
  FailLocked(early->second.node(), early->second.rank(), early->second.First(), false);
  std::erase_if(early_errors_, [run](const auto& error) { return !ComesAfter(error.first, run); });
}

Status Lane::FailBeforeStart(uint32_t run, uint32_t ranks, Status status) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (IsNew(run)) last_run_ = run;
    if (!failed_run_ || ComesAfter(run, *failed_run_)) failed_run_ = run;
    early_messages_.Take(run);
    early_errors_.erase(run);
  }
  TellOthers(ranks, run, kNoNode, status);
  return status;
}

void Lane::Leave(uint32_t run, uint32_t ranks, const Status& why) { (void)FailBeforeStart(run, ranks, why); }

// The calling thread as dispatcher, until every stream's actors are done.
void Lane::ServeUntilDone() {
  const int64_t period_ns = surroundings_.options.stall_ms * 1'000'000;
  int64_t next_tick_ns = -1;
  while (active_.dispatchers_left.load(std::memory_order_acquire) > 0) {
    if (caller_.Step()) continue;
    if (active_.dispatchers_left.load(std::memory_order_acquire) == 0) break;
    // Nothing is queued and nobody else can send: whatever is not done never will be.
    if (is_alone_ && !caller_.HasLaunches() && !active_.aborting.load()) {
      FailStalled(active_.instance->DescribeWaits(kWaitLines));
      continue;
    }
    const int64_t now_ns = SystemClock().MonotonicNs();
    if (next_tick_ns < 0) next_tick_ns = now_ns + period_ns;
    if (now_ns >= next_tick_ns) {
      Tick();
      next_tick_ns = now_ns + period_ns;
    }
    caller_.Wait(next_tick_ns - now_ns);
  }
}

// Threads that serve other runs as well look busy for all: a stall beside a run that goes on is found when
// that one is over.
void Lane::Tick() {
  uint64_t progress = 0;
  bool busy = false;
  for (const Dispatcher* dispatcher : participants_) {
    progress += dispatcher->progress();
    busy |= dispatcher->is_busy();
  }
  StallDetector::Verdict verdict;
  uint32_t run;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (active_.aborting.load()) return;
    verdict = detector_.Tick(progress, busy);
    run = active_.run;
  }
  if (verdict == StallDetector::Verdict::kStalled) return FailStalled({});
  if (verdict != StallDetector::Verdict::kIdle) return;
  Message idle;
  idle.type = MessageType::kIdle;
  idle.source = TaskId::Make(surroundings_.options.rank, 0, 0);
  idle.run = run;
  idle.sequence = static_cast<uint32_t>(progress);
  for (uint32_t rank = 0; rank < static_cast<uint32_t>(active_.instance->plan().ranks); ++rank) {
    if (rank == surroundings_.options.rank) continue;
    idle.destination = TaskId::Make(rank, 0, 0);
    surroundings_.link->Send(rank, {&idle, 1});
  }
}

void Lane::OnIdle(const Message& message) {
  bool done = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_running_ && message.run == active_.run) {
      detector_.OnPeerIdle(message.source.rank(), message.sequence, message.port == kRunDone);
    } else {
      done = !IsNew(message.run) && message.port != kRunDone;
    }
  }
  if (!done || surroundings_.link == nullptr) return;
  Message answer = message;
  answer.destination = message.source;
  answer.source = TaskId::Make(surroundings_.options.rank, 0, 0);
  answer.port = kRunDone;
  surroundings_.link->Send(message.source.rank(), {&answer, 1});
}

void Lane::FailStalled(std::vector<std::string> waits) {
  Announcement announcement;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_ = std::move(waits);
    announcement = FailLocked(kNoNode, surroundings_.options.rank,
                              Internal("stalled: no task of run {} can act any more", active_.run), true,
                              waits_.empty() ? kDescribeWaits : uint16_t{0});
  }
  Announce(announcement);
}

Lane::Announcement Lane::FailLocked(NodeId node, uint32_t rank, Status status, bool announce,
                                    uint16_t abort_port) {
  errors_.Add(node, rank, status);
  stop_kernels_.store(true);
  if (!active_.aborting.exchange(true)) {
    Message message;
    message.type = MessageType::kAbort;
    message.run = active_.run;
    message.port = abort_port;
    for (Dispatcher* dispatcher : participants_) dispatcher->Post(message);
  }
  return {announce, active_.run, node, std::move(status)};
}

void Lane::Announce(const Announcement& announcement) {
  if (announcement.needed) {
    TellOthers(static_cast<uint32_t>(ranks_.load()), announcement.run, announcement.node,
               announcement.status);
  }
}

void Lane::TellOthers(uint32_t ranks, uint32_t run, NodeId node, const Status& status) {
  if (surroundings_.link == nullptr) return;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (rank != surroundings_.options.rank) surroundings_.link->SendError(rank, run, node, status);
  }
}

Result<RunResult> Lane::End(ReadyPlan& ready) {
  Status error;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_running_ = false;
    if (active_.progress != nullptr && number_ == 0) active_.progress->EndPlan();
    error = errors_.First();
    if (!error.ok()) failed_run_ = active_.run;
    has_failed_elsewhere_ =
        !error.ok() && errors_.node() == kNoNode && errors_.rank() != surroundings_.options.rank;
    for (const std::string& line : waits_) {
      if (!error.ok()) error = error.WithNote(line);
    }
  }
  RunResult result;
  ready.body->TakeResults(&result.live_out, &result.sizes);
  if (!error.ok()) {
    ready.instance->Clear();
    exposed_.Clear();
    return error;
  }
  HEDDLE_DEBUG_CHECK(ready.instance->CheckInvariants(/*quiet=*/true).ok(),
                     "a run that ends well leaves nothing behind (I12)");
  HEDDLE_DEBUG_CHECK(exposed_.empty(), "a run that ends well leaves no body for other ranks (I12)");
  result.statistics = std::move(statistics_);
  return result;
}

}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
#include "actor/runtime.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "actor/active_run.h"
#include "actor/device_worker.h"
#include "actor/dispatcher.h"
#include "actor/plan_cache.h"
#include "actor/run_errors.h"
#include "actor/stall_detector.h"
#include "core/clock.h"
#include "ops/parallel.h"

namespace heddle::actor {
namespace {

constexpr size_t kCachedPlans = 256;
constexpr size_t kWaitLines = 6;
constexpr uint16_t kDescribeWaits = 1;  // Port of a kAbort that ends a stalled run.
constexpr uint16_t kRunDone = 1;        // Port of a kIdle from a rank that is through with the run.

// An error to tell other ranks about, collected under the lock and sent outside of it.
struct Announcement {
  bool needed = false;
  uint32_t run = 0;
  NodeId node = kNoNode;
  Status status;
};

class RuntimeImpl : public Runtime, public RunControl {
 public:
  RuntimeImpl(const RuntimeOptions& options, const ops::KernelSource& kernels, ops::KernelContext& context,
              Link* link)
      : options_(options),
        kernels_(kernels),
        context_(context),
        link_(link),
        arena_(options.threads),
        device_(options.threads, options.set_denormals),
        caller_(options.rank, *this, link, &device_),
        plans_(kCachedPlans) {
    context_.cancelled = &stop_kernels_;
    for (size_t i = 1; i < streams_.size(); ++i) {
      threads_.push_back(std::make_unique<Dispatcher>(options_.rank, *this, link, nullptr));
      if (link_ == nullptr) continue;
      const int threads = streams_[i].kind == StreamKind::kNetwork ? 1 : options_.threads;
      threads_.back()->StartThread(threads, options_.set_denormals);
    }
  }

  ~RuntimeImpl() override {
    for (const std::unique_ptr<Dispatcher>& thread : threads_) thread->StopThread();
  }

  Result<RunResult> Run(std::shared_ptr<const Plan> plan, uint32_t run,
                        std::map<std::string, Value> live_in) override {
    Result<ReadyPlan*> ready = Prepare(plan);
    Status start = ready.status();
    if (start.ok()) start = (*ready)->body->Begin(std::move(live_in));
    if (start.ok()) start = Begin(**ready, run);
    if (!start.ok()) {
      RunResult dropped;
      if (ready.ok()) (*ready)->body->TakeResults(&dropped.live_out, &dropped.infos);
      return FailBeforeStart(run, static_cast<uint32_t>(plan->ranks), std::move(start));
    }
    if (active_.dispatchers_left.load(std::memory_order_relaxed) > 0) {
      if (options_.set_denormals) ops::SetFloatingPointMode();
      arena_.Execute([this] { ServeUntilDone(); });
    }
    return End(**ready);
  }

  void Cancel(Status why) override {
    Announcement announcement;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!cancelled_.ok()) return;
      cancelled_ = why.ok() ? Cancelled("cancelled") : std::move(why);
      if (is_running_) announcement = FailLocked(kNoNode, options_.rank, cancelled_, true);
    }
    Announce(announcement);
  }

  void OnMessage(const Message& message) override {
    if (message.type == MessageType::kIdle) return OnIdle(message);
    if (!CrossesRanks(message.type) || message.destination.rank() != options_.rank) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_running_ && message.run == active_.run) {
      if (Dispatcher* dispatcher = ServerOf(message)) dispatcher->Post(message);
    } else if (int64_t{message.run} > last_run_) {
      early_messages_[message.run].push_back(message);
    }
  }

  void OnError(uint32_t rank, uint32_t run, NodeId node, const Status& status) override {
    Announcement announcement;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (int64_t{run} <= failed_run_) return;  // That run has failed here too; its error has been reported.
      if (is_running_ && run <= active_.run) {
        // An older run ended well here before it failed there: everybody else learns of it through this one.
        announcement = FailLocked(node, rank, status, run < active_.run);
      } else if (int64_t{run} <= last_run_) {
        late_errors_.Add(node, rank, status);
      } else {
        early_errors_[run].Add(node, rank, status);
      }
    }
    Announce(announcement);
  }

  Result<Value> Published(uint32_t run, RegisterId register_id, uint8_t slot) override {
    const std::lock_guard<std::mutex> lock(exposed_mutex_);
    const auto found = exposed_.find(SlotKey(register_id, slot));
    if (run != exposed_run_ || found == exposed_.end()) {
      return Cancelled("register {} slot {} of run {} is not published", register_id, slot, run);
    }
    return found->second;
  }

  ActiveRun* Active(uint32_t run) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return is_running_ && active_.run == run ? &active_ : nullptr;
  }

  void ActorFailed(uint32_t run, NodeId node, Status status) override {
    Announcement announcement;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!is_running_ || active_.run != run) return;
      // What a kernel says because the run is over anyway is no news.
      if (active_.aborting.load() && status.code() == StatusCode::kCancelled) return;
      announcement = FailLocked(node, options_.rank, std::move(status), true);
    }
    Announce(announcement);
  }

  void StreamDone(ActiveRun& active) override {
    if (active.dispatchers_left.fetch_sub(1, std::memory_order_acq_rel) == 1)
      caller_.Post({.type = MessageType::kWake});
  }

  void Expose(RegisterId register_id, uint8_t slot, const Value& value) override {
    const std::lock_guard<std::mutex> lock(exposed_mutex_);
    exposed_.insert_or_assign(SlotKey(register_id, slot), value);
  }

  void Withdraw(RegisterId register_id, uint8_t slot) override {
    const std::lock_guard<std::mutex> lock(exposed_mutex_);
    exposed_.erase(SlotKey(register_id, slot));
  }

  void AddWaits(std::vector<std::string> lines) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    waits_.insert(waits_.end(), lines.begin(), lines.end());
  }

 private:
  static uint64_t SlotKey(RegisterId register_id, uint8_t slot) {
    return uint64_t{static_cast<uint32_t>(register_id)} << 8 | slot;
  }

  bool HasNothingExposed() {
    const std::lock_guard<std::mutex> lock(exposed_mutex_);
    return exposed_.empty();
  }

  Result<ReadyPlan*> Prepare(const std::shared_ptr<const Plan>& plan) {
    if (ReadyPlan* ready = plans_.Find(*plan)) return ready;
    ReadyPlan fresh;
    HEDDLE_ASSIGN_OR_RETURN(fresh.instance, PlanInstance::Create(plan, options_.rank));
    fresh.body = std::make_unique<KernelBody>(*fresh.instance, kernels_, context_);
    for (const Actor& actor : fresh.instance->actors()) {
      TaskStatistics statistics;
      statistics.node = actor.task().node;
      statistics.phase = actor.task().phase;
      fresh.statistics.push_back(std::move(statistics));
      fresh.estimates.emplace_back(actor.task().cost_ns);
    }
    if (fresh.instance->HasRemoteEdges() && link_ == nullptr)
      return Internal("a plan of {} ranks needs a link", plan->ranks);
    return plans_.Insert(std::move(fresh));
  }

  // Makes `ready` the live run. From here to End the other threads may work on it.
  Status Begin(ReadyPlan& ready, uint32_t run) {
    PlanInstance& instance = *ready.instance;
    instance.Begin(run);
    const auto is_long = [](const LaunchEstimate& estimate) { return estimate.IsLong(); };
    if (std::any_of(ready.estimates.begin(), ready.estimates.end(), is_long)) device_.Start();
    statistics_ = ready.statistics;
    {
      const std::lock_guard<std::mutex> lock(exposed_mutex_);
      exposed_run_ = run;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!cancelled_.ok()) return cancelled_;
    if (int64_t{run} <= last_run_) return Internal("run {} follows run {}", run, last_run_);
    if (!late_errors_.empty()) {
      Status late = late_errors_.First();
      late_errors_.Clear();
      return late;
    }
    const std::vector<StreamDescription>& streams = instance.plan().streams;
    std::vector<Dispatcher*> serving;
    bool has_copies = false;
    for (uint32_t stream = 0; stream < streams.size(); ++stream) {
      serving.push_back(DispatcherOf(streams[stream]));
      if (serving.back() == nullptr)
        return Internal("plan: rank {} has no stream '{}'", options_.rank, streams[stream].name);
      has_copies |= streams[stream].kind == StreamKind::kNetwork && !instance.OnStream(stream).empty();
    }
    // Where nothing comes from other ranks there is nothing to wait for beside the kernels: one thread does
    // it all.
    if (!has_copies) serving.assign(streams.size(), &caller_);
    active_.run = run;
    active_.instance = &instance;
    active_.body = ready.body.get();
    active_.statistics = &statistics_;
    active_.estimates = &ready.estimates;
    active_.times_acts = options_.times_acts;
    active_.aborting.store(false);
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
    active_.dispatchers_left.store(static_cast<int>(participants_.size()));
    stop_kernels_.store(false);
    errors_.Clear();
    waits_.clear();
    detector_.Begin(options_.rank, static_cast<uint32_t>(instance.plan().ranks), instance.HasRemoteEdges());
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

  // Who runs the actor that a message of the live run is for; nullptr where nobody does.
  Dispatcher* ServerOf(const Message& message) const {
    const uint32_t stream = message.destination.stream();
    return stream < active_.serving.size() ? active_.serving[stream] : nullptr;
  }

  // The dispatcher of a stream of a plan; nullptr where this rank has no such stream.
  Dispatcher* DispatcherOf(const StreamDescription& stream) {
    for (size_t i = 0; i < streams_.size(); ++i)
      if (streams_[i] == stream) return i == 0 ? &caller_ : threads_[i - 1].get();
    return nullptr;
  }

  void DeliverEarly(uint32_t run) {
    for (auto early = early_messages_.begin(); early != early_messages_.end() && early->first <= run;) {
      if (early->first == run) {
        for (const Message& message : early->second)
          if (Dispatcher* dispatcher = ServerOf(message)) dispatcher->Post(message);
      }
      early = early_messages_.erase(early);
    }
  }

  Status FailBeforeStart(uint32_t run, uint32_t ranks, Status status) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      last_run_ = std::max<int64_t>(last_run_, run);
      failed_run_ = std::max<int64_t>(failed_run_, run);
      early_messages_.erase(run);
      early_errors_.erase(run);
    }
    TellOthers(ranks, run, kNoNode, status);
    return status;
  }

  // The calling thread as dispatcher, until every stream's actors are done.
  void ServeUntilDone() {
    const int64_t period_ns = options_.stall_ms * 1'000'000;
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

  // An error that another rank sent before this one was so far.
  void FailEarly(uint32_t run) {
    const auto early = early_errors_.find(run);
    if (early == early_errors_.end()) return;
    FailLocked(early->second.node(), early->second.rank(), early->second.First(), false);
    early_errors_.erase(early_errors_.begin(), std::next(early));
  }

  void Tick() {
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
    idle.source = TaskId::Make(options_.rank, 0, 0);
    idle.run = run;
    idle.sequence = static_cast<uint32_t>(progress);
    for (uint32_t rank = 0; rank < static_cast<uint32_t>(active_.instance->plan().ranks); ++rank) {
      if (rank == options_.rank) continue;
      idle.destination = TaskId::Make(rank, 0, 0);
      link_->Send(rank, idle);
    }
  }

  void OnIdle(const Message& message) {
    bool done = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (is_running_ && message.run == active_.run) {
        detector_.OnPeerIdle(message.source.rank(), message.sequence, message.port == kRunDone);
      } else {
        done = int64_t{message.run} <= last_run_ && message.port != kRunDone;
      }
    }
    if (!done || link_ == nullptr) return;
    Message answer = message;
    answer.destination = message.source;
    answer.source = TaskId::Make(options_.rank, 0, 0);
    answer.port = kRunDone;
    link_->Send(message.source.rank(), answer);
  }

  void FailStalled(std::vector<std::string> waits) {
    Announcement announcement;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waits_ = std::move(waits);
      announcement = FailLocked(kNoNode, options_.rank,
                                Internal("stalled: no task of run {} can act any more", active_.run), true,
                                waits_.empty() ? kDescribeWaits : uint16_t{0});
    }
    Announce(announcement);
  }

  Announcement FailLocked(NodeId node, uint32_t rank, Status status, bool announce, uint16_t abort_port = 0) {
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

  void Announce(const Announcement& announcement) {
    if (announcement.needed) {
      TellOthers(static_cast<uint32_t>(ranks_.load()), announcement.run, announcement.node,
                 announcement.status);
    }
  }

  void TellOthers(uint32_t ranks, uint32_t run, NodeId node, const Status& status) {
    if (link_ == nullptr) return;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (rank != options_.rank) link_->SendError(rank, run, node, status);
    }
  }

  Result<RunResult> End(ReadyPlan& ready) {
    Status error;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_running_ = false;
      error = errors_.First();
      if (!error.ok()) failed_run_ = active_.run;
      for (const std::string& line : waits_) {
        if (!error.ok()) error = error.WithNote(line);
      }
    }
    RunResult result;
    ready.body->TakeResults(&result.live_out, &result.infos);
    if (!error.ok()) {
      ready.instance->Clear();
      const std::lock_guard<std::mutex> lock(exposed_mutex_);
      exposed_.clear();
      return error;
    }
    HEDDLE_DEBUG_CHECK(ready.instance->CheckInvariants(/*quiet=*/true).ok(),
                       "a run that ends well leaves nothing behind (I12)");
    HEDDLE_DEBUG_CHECK(HasNothingExposed(), "a run that ends well leaves no body for other ranks (I12)");
    result.statistics = std::move(statistics_);
    return result;
  }

  const RuntimeOptions options_;
  const ops::KernelSource& kernels_;
  ops::KernelContext& context_;
  Link* const link_;
  ops::Arena arena_;
  DeviceWorker device_;
  const std::vector<StreamDescription> streams_ = StandardStreams();
  Dispatcher caller_;                                 ///< Of the first stream: the thread that calls Run.
  std::vector<std::unique_ptr<Dispatcher>> threads_;  ///< Of the others, in order.
  PlanCache plans_;                                   ///< Caller only, as the next three.
  std::vector<TaskStatistics> statistics_;
  std::vector<Dispatcher*> participants_;  ///< Those with actors in the live run. Changed under mutex_.
  bool is_alone_ = false;                  ///< One thread serves the run, and no other rank takes part.
  std::atomic<bool> stop_kernels_{false};
  std::atomic<int32_t> ranks_{1};  ///< Of the live run.

  std::mutex mutex_;  ///< Guards what follows; never held while the link is called.
  ActiveRun active_;
  bool is_running_ = false;
  int64_t last_run_ = -1;    ///< The live run or the last one.
  int64_t failed_run_ = -1;  ///< The last run that ended in an error here.
  Status cancelled_;
  RunErrors errors_;
  RunErrors late_errors_;                       ///< Of runs that ended well here.
  std::map<uint32_t, RunErrors> early_errors_;  ///< Of runs that this rank has not begun.
  std::map<uint32_t, std::vector<Message>> early_messages_;
  std::vector<std::string> waits_;
  StallDetector detector_;

  std::mutex exposed_mutex_;
  uint32_t exposed_run_ = 0;
  std::unordered_map<uint64_t, Value> exposed_;  ///< Slots of the live run that other ranks may pull.
};

}  // namespace

std::unique_ptr<Runtime> Runtime::Create(const RuntimeOptions& options, const ops::KernelSource& kernels,
                                         ops::KernelContext& context, Link* link) {
  return std::make_unique<RuntimeImpl>(options, kernels, context, link);
}

}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
#include "actor/dispatcher.h"

#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "actor/launch/device_worker.h"
#include "actor/run_number.h"
#include "core/environment/clock.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "ops/base/parallel.h"

namespace heddle::actor {
namespace {

constexpr int kLocalBatch = 256;  // Local messages before the mailbox is looked at again.
constexpr int64_t kForeverNs = int64_t{3600} * 1'000'000'000;
constexpr size_t kWaitLines = 4;
// Short acts for which messages to other ranks may wait.
constexpr int kMostShortActs = 4;

#ifdef NDEBUG
constexpr bool kIsDebugBuild = false;
#else
constexpr bool kIsDebugBuild = true;
#endif

// CPU time of the calling thread, in debug builds.
int64_t ThreadCpuNs() {
  if constexpr (!kIsDebugBuild) return 0;
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A broken invariant is our bug: the process stops and says which one it was.
void StopUnlessOk(const Status& status) {
  if (!status.ok()) CheckFailed(__FILE__, __LINE__, "invariants of the run", status.message().c_str());
}

}  // namespace

void LocalQueue::Grow() {
  std::vector<Message> larger(ring_.size() * 2);
  const size_t size = tail_ - head_;
  for (size_t i = 0; i < size; ++i) larger[i] = ring_[(head_ + i) & (ring_.size() - 1)];
  ring_ = std::move(larger);
  head_ = 0;
  tail_ = size;
}

Dispatcher::Dispatcher(uint32_t rank, RunControl& control, Link* link)
    : rank_(rank), control_(control), link_(link) {}

Dispatcher::~Dispatcher() { StopThread(); }

void Dispatcher::StartThread(int threads, bool set_floating_point_mode) {
  arena_threads_ = threads;
  spin_ns_ = HandOverNs();
  thread_ = std::thread([this, set_floating_point_mode] { ThreadMain(set_floating_point_mode); });
}

void Dispatcher::StopThread() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  Post({.type = MessageType::kWake});
  thread_.join();
}

void Dispatcher::ThreadMain(bool set_floating_point_mode) {
  if (set_floating_point_mode) ops::SetFloatingPointMode();
  while (!stop_.load()) {
    if (!Step()) Wait(kForeverNs);
  }
}

bool Dispatcher::Wait(int64_t timeout_ns) { return mailbox_->Wait(spin_ns_, timeout_ns, messages_inbox_); }

bool Dispatcher::Step() {
  uint64_t handled = 0;
  if (messages_inbox_ != nullptr) messages_inbox_->Deliver();
  busy_.store(true, std::memory_order_relaxed);
  while (handled < kLocalBatch && !local_.empty()) {
    Handle(local_.Pop());
    ++handled;
  }
  inbox_.clear();
  if (mailbox_->Take(&inbox_)) {
    for (const Message& message : inbox_) Handle(message);
    handled += inbox_.size();
  }
  // What is queued here may add to what other ranks are to get.
  if (local_.empty()) SendOutgoing();
  if (handled > 0) progress_.fetch_add(handled, std::memory_order_release);
  busy_.store(false, std::memory_order_release);
  return handled > 0;
}

template <typename Body>
void Dispatcher::ForEachActor(const Body& body) {
  const ActiveRun& active = *now_->active;
  for (uint32_t stream = 0; stream < active.serving.size(); ++stream) {
    if (active.serving[stream] != this) continue;
    for (Actor* actor : active.instance->OnStream(stream)) body(*actor);
  }
}

bool Dispatcher::TurnTo(uint32_t run) {
  for (Entered& entered : entered_) {
    now_ = &entered;
    if (entered.run == run) return true;
  }
  now_ = nullptr;
  const auto finished = finished_.find(LaneOf(run));
  if (finished != finished_.end() && !ComesAfter(run, finished->second)) return false;
  ActiveRun* active = control_.Active(run);
  if (active == nullptr) return false;
  now_ = &entered_.emplace_back(Entered{.run = run, .active = active});
  ForEachActor([&](Actor&) { ++now_->remaining; });
  if (now_->remaining > 0) return true;
  // Nonsense from another rank, for a stream that has no part in the run.
  entered_.pop_back();
  now_ = nullptr;
  return false;
}

void Dispatcher::Leave() {
  ActiveRun& active = *now_->active;
  finished_[LaneOf(now_->run)] = now_->run;
  *now_ = entered_.back();
  entered_.pop_back();
  now_ = nullptr;
  SendOutgoing();  // The link may be gone when the run is over.
  control_.StreamDone(active);
}

void Dispatcher::Handle(const Message& message) {
  if (message.type == MessageType::kWake) return;
  if ((now_ == nullptr || now_->run != message.run) && !TurnTo(message.run)) return;  // Stale (I6).
  switch (message.type) {
    case MessageType::kStart: ForEachActor([&](Actor& actor) { actor.Start(*this); }); break;
    case MessageType::kAbort: Abort(/*describe_waits=*/message.port != 0); break;
    default: HandleForActor(message);
  }
  if (now_->remaining == 0) Leave();
}

void Dispatcher::HandleForActor(const Message& message) {
  Actor* actor = now_->active->instance->Find(message.destination);
  if (actor == nullptr || now_->active->serving[message.destination.stream()] != this) return;
  if (message.type == MessageType::kDone && message.port == kLaunchDone) {
    if (!on_devices_.Continue(actor->number())) return;
    launches_.store(launches_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    beside_launches_ -= IsBeside(*now_->active, message.destination);
  }
  if (message.type == MessageType::kDone && message.port == kPullDone) NoteCopy(*actor);
  if constexpr (!kIsDebugBuild) return actor->Handle(message, *this);
  const int64_t start_ns = ThreadCpuNs();
  kernel_cpu_ns_ = 0;
  actor->Handle(message, *this);
  message_times_.Add(ThreadCpuNs() - start_ns - kernel_cpu_ns_);
  HEDDLE_DEBUG_CHECK(message_times_.WithinBound(), "messages are handled in bounded time (I10)");
  StopUnlessOk(actor->CheckInvariants(/*quiet=*/false));                                              // I1-I3
  if (const MemoryLedger* ledger = now_->active->instance->ledger()) StopUnlessOk(ledger->status());  // I8
}

void Dispatcher::Abort(bool describe_waits) {
  if (describe_waits) {
    std::vector<std::string> lines;
    ForEachActor([&](Actor& actor) {
      std::string line = lines.size() < kWaitLines ? actor.DescribeWait() : "";
      if (!line.empty()) lines.push_back(std::move(line));
    });
    control_.AddWaits(now_->run, std::move(lines));
  }
  ForEachActor([&](Actor& actor) { actor.Abort(*this); });
}

void Dispatcher::Send(const Message& message) {
  if (message.destination.rank() != rank_) {
    outgoing_.Add(message);
    return;
  }
  Dispatcher* dispatcher = now_->active->serving[message.destination.stream()];
  if (dispatcher == this) {
    local_.Push(message);
  } else {
    dispatcher->Post(message);
  }
}

void Dispatcher::SendOutgoing() {
  short_acts_ = 0;
  if (outgoing_.IsDue())
    outgoing_.Flush([&](uint32_t rank, std::span<const Message> messages) { link_->Send(rank, messages); });
}

void Dispatcher::RunKernel(ActiveRun& active, size_t number, std::span<const Value* const> inputs,
                           int64_t act, std::string_view thread, ActResult* result) {
  if (active.aborting.load(std::memory_order_relaxed)) {
    result->status = Cancelled("the run has ended");
    return;
  }
  TaskStatistics& statistics = (*active.statistics)[number];
  LaunchEstimate& estimate = (*active.estimates)[number];
  Recorder* const recorder = active.recorder;
  Clock* const clock = recorder != nullptr                         ? &recorder->clock()
                       : active.times_acts || estimate.WantsTime() ? &SystemClock()
                                                                   : nullptr;
  const int64_t start_ns = clock != nullptr ? clock->MonotonicNs() : 0;
  {
    std::optional<ops::SerialLoops> serial;
    if (estimate.IsShort()) serial.emplace();
    result->status = active.body->Perform(number, inputs, act, result->values);
  }
  if (clock != nullptr) {
    const int64_t end_ns = clock->MonotonicNs();
    const int64_t kernel_ns = end_ns - start_ns;
    if (active.times_acts) statistics.kernel_ns += kernel_ns;
    if (recorder != nullptr)
      recorder->Add(thread, (*active.sites)[number], start_ns, end_ns, result->values[0].shape().rows);
    if (result->status.ok()) estimate.Measured(kernel_ns);
  }
  NoteRows(active, number, *result);
}

bool Dispatcher::IsBeside(const ActiveRun& active, TaskId task) const {
  const StreamDescription& stream = active.instance->plan().streams[task.stream()];
  return !stream.device.IsHost() || (stream.kind == StreamKind::kDisk && disk_ != nullptr);
}

Launch Dispatcher::Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act,
                           ActResult* result) {
  ActiveRun& active = *now_->active;
  const size_t number = actor.number();
  if (!(*active.estimates)[number].IsShort() || ++short_acts_ > kMostShortActs) SendOutgoing();
  const TaskId task = actor.task().id;
  const Message done{.destination = task,
                     .source = task,
                     .run = now_->run,
                     .type = MessageType::kDone,
                     .port = kLaunchDone};
  const bool is_beside = IsBeside(active, task);
  const auto note_launch = [&] {
    launches_.store(launches_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    beside_launches_ += is_beside;
    return Launch::kAsynchronous;
  };
  const bool is_of_device = !task.device().IsHost();
  if (is_of_device && on_devices_.Begin(active, number, inputs, act, result, done)) return note_launch();
  const bool device_is_busy =
      launches_.load(std::memory_order_relaxed) > beside_launches_ - on_devices_.on_processor();
  DeviceWorker* worker = nullptr;
  if (is_beside && !is_of_device) {
    worker = disk_;
  } else if (!is_beside && device_ != nullptr && device_->has_started() &&
             (*active.estimates)[number].NeedsDevice(device_is_busy)) {
    worker = device_;
  }
  if (worker != nullptr) {
    worker->Launch([&active, number, inputs, act, result, mailbox = mailbox_, done, is_beside] {
      if (active.progress != nullptr && !is_beside) active.progress->BeginAct((*active.lines)[number]);
      RunKernel(active, number, inputs, act, is_beside ? "disk" : "device", result);
      mailbox->Post(done);  // The run may be over before this returns.
    });
    return note_launch();
  }
  // Beside a kernel on the device, which takes the time, a short one is not what the run is at.
  if (active.progress != nullptr && !device_is_busy) active.progress->BeginAct((*active.lines)[number]);
  const int64_t start_cpu_ns = ThreadCpuNs();
  if (arena_threads_ == 0) {
    RunKernel(active, number, inputs, act, thread_name_, result);
  } else {
    if (arena_ == nullptr) arena_ = std::make_unique<ops::Arena>(arena_threads_);
    arena_->Execute([&] { RunKernel(active, number, inputs, act, thread_name_, result); });
  }
  kernel_cpu_ns_ += ThreadCpuNs() - start_cpu_ns;
  return Launch::kInline;
}

void Dispatcher::Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
                      std::shared_ptr<PulledBody> body) {
  const TaskId task = actor.task().id;
  const Message done{.destination = task,
                     .source = task,
                     .run = now_->run,
                     .register_id = register_id,
                     .slot = slot,
                     .type = MessageType::kDone,
                     .port = kPullDone};
  if (const Recorder* const recorder = now_->active->recorder)
    body->asked_ns = recorder->clock().MonotonicNs();
  if (std::optional<Value> arrived = link_->TakeArrived(producer.rank(), now_->run, register_id, slot)) {
    body->value = *std::move(arrived);
    return local_.Push(done);
  }
  pulls_->fetch_add(1, std::memory_order_release);
  // The link may answer when the run, its record and this dispatcher are gone: the answer touches nothing but
  // what it shares.
  link_->Pull(producer.rank(), now_->run, register_id, slot,
              [body = std::move(body), mailbox = mailbox_, pulls = pulls_, done](Result<Value> value) {
                body->value = std::move(value);
                mailbox->Post(done);
                pulls->fetch_sub(1,
                                 std::memory_order_release);  // Busy until the message is there to be seen.
              });
}

void Dispatcher::NoteCopy(const Actor& actor) {
  const ActiveRun& active = *now_->active;
  const PulledBody* const body = actor.pulled();
  if (active.recorder == nullptr || body == nullptr || !body->value.ok()) return;
  active.recorder->Add(thread_name_, (*active.sites)[actor.number()], body->asked_ns,
                       active.recorder->clock().MonotonicNs(), body->value->shape().rows,
                       body->value->bytes());
}

void Dispatcher::Expose(RegisterId register_id, uint8_t slot, const Value& value) {
  control_.Expose(now_->run, register_id, slot, value);
}

void Dispatcher::Withdraw(RegisterId register_id, uint8_t slot) {
  control_.Withdraw(now_->run, register_id, slot);
}

void Dispatcher::Failed(Actor& actor, Status status) {
  control_.ActorFailed(now_->run, actor.task().node, std::move(status));
}

void Dispatcher::Finished(Actor& actor) {
  (*now_->active->statistics)[actor.number()].acts = actor.acts();
  (*now_->active->statistics)[actor.number()].bytes_in = actor.pulled_bytes();
  --now_->remaining;
}

}  // namespace heddle::actor

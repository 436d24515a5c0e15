// SPDX-License-Identifier: Apache-2.0
#include "actor/dispatcher.h"

#include <optional>
#include <utility>

#include "core/clock.h"
#include "ops/parallel.h"

namespace heddle::actor {
namespace {

constexpr int kLocalBatch = 256;  // Local messages before the mailbox is looked at again.
constexpr int64_t kForeverNs = int64_t{3600} * 1'000'000'000;
constexpr size_t kWaitLines = 4;

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
  Post(Message());  // Of no live run: wakes the thread, changes nothing.
  thread_.join();
}

void Dispatcher::ThreadMain(bool set_floating_point_mode) {
  if (set_floating_point_mode) ops::SetFloatingPointMode();
  while (!stop_.load()) {
    if (!Step()) Wait(kForeverNs);
  }
}

bool Dispatcher::Wait(int64_t timeout_ns) { return mailbox_->Wait(spin_ns_, timeout_ns); }

bool Dispatcher::Step() {
  uint64_t handled = 0;
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
  if (handled > 0) progress_.fetch_add(handled, std::memory_order_release);
  busy_.store(false, std::memory_order_release);
  return handled > 0;
}

template <typename Body>
void Dispatcher::ForEachActor(const Body& body) {
  PlanInstance* instance = active_->instance;
  for (uint32_t stream = 0; stream < kStreams; ++stream) {
    if (active_->serving[stream] != this) continue;
    for (Actor* actor : instance->OnStream(stream)) body(*actor);
  }
}

bool Dispatcher::Enter(uint32_t run) {
  if (int64_t{run} <= finished_run_) return false;
  ActiveRun* active = control_.Active(run);
  if (active == nullptr) return false;
  active_ = active;
  run_ = run;
  remaining_ = 0;
  ForEachActor([&](Actor&) { ++remaining_; });
  HEDDLE_DEBUG_CHECK(remaining_ > 0, "a dispatcher without actors is not part of a run");
  return true;
}

void Dispatcher::Handle(const Message& message) {
  if (active_ == nullptr || message.run != run_) {
    if (active_ != nullptr || !Enter(message.run)) return;  // Stale.
  }
  switch (message.type) {
    case MessageType::kStart: ForEachActor([&](Actor& actor) { actor.Start(*this); }); break;
    case MessageType::kAbort: {
      if (message.port != 0) {
        std::vector<std::string> lines;
        ForEachActor([&](Actor& actor) {
          std::string line = lines.size() < kWaitLines ? actor.DescribeWait() : "";
          if (!line.empty()) lines.push_back(std::move(line));
        });
        control_.AddWaits(std::move(lines));
      }
      ForEachActor([&](Actor& actor) { actor.Abort(*this); });
      break;
    }
    default: {
      Actor* actor = active_->instance->Find(message.destination);
      if (actor != nullptr && active_->serving[message.destination.stream()] == this)
        actor->Handle(message, *this);
    }
  }
  if (remaining_ > 0) return;
  finished_run_ = run_;
  ActiveRun& active = *active_;
  active_ = nullptr;
  control_.StreamDone(active);
}

void Dispatcher::Send(const Message& message) {
  if (message.destination.rank() != rank_) {
    link_->Send(message.destination.rank(), message);
    return;
  }
  Dispatcher* dispatcher = active_->serving[message.destination.stream()];
  if (dispatcher == this) {
    local_.Push(message);
  } else {
    dispatcher->Post(message);
  }
}

Result<Value> Dispatcher::Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act) {
  if (active_->aborting.load(std::memory_order_relaxed)) return Cancelled("the run has ended");
  TaskStatistics& statistics = (*active_->statistics)[actor.number()];
  const int64_t start = SystemClock().MonotonicNs();
  Result<Value> result = [&] {
    if (arena_threads_ == 0) return active_->body->Perform(actor.number(), inputs, act);
    if (arena_ == nullptr) arena_ = std::make_unique<ops::Arena>(arena_threads_);
    std::optional<Result<Value>> in_arena;
    arena_->Execute([&] { in_arena.emplace(active_->body->Perform(actor.number(), inputs, act)); });
    return *std::move(in_arena);
  }();
  statistics.kernel_ns += SystemClock().MonotonicNs() - start;
  if (result.ok() && result->IsMatrix()) statistics.rows += result->matrix().rows();
  return result;
}

void Dispatcher::Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
                      std::shared_ptr<PulledBody> body) {
  const TaskId task = actor.task().id;
  const Message done{.destination = task,
                     .source = task,
                     .run = run_,
                     .register_id = register_id,
                     .slot = slot,
                     .type = MessageType::kDone};
  pulls_->fetch_add(1, std::memory_order_relaxed);
  link_->Pull(producer.rank(), run_, register_id, slot,
              [body = std::move(body), mailbox = mailbox_, pulls = pulls_, done](Result<Value> value) {
                body->value = std::move(value);
                pulls->fetch_sub(1, std::memory_order_relaxed);
                mailbox->Post(done);
              });
}

void Dispatcher::Expose(RegisterId register_id, uint8_t slot, const Value& value) {
  control_.Expose(run_, register_id, slot, value);
}

void Dispatcher::Withdraw(RegisterId register_id, uint8_t slot) { control_.Withdraw(register_id, slot); }

void Dispatcher::Failed(Actor& actor, Status status) {
  control_.ActorFailed(run_, actor.task().node, std::move(status));
}

void Dispatcher::Finished(Actor& actor) {
  (*active_->statistics)[actor.number()].acts = actor.acts();
  (*active_->statistics)[actor.number()].bytes_in = actor.pulled_bytes();
  --remaining_;
}

}  // namespace heddle::actor

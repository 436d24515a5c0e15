// SPDX-License-Identifier: Apache-2.0
#include "actor/actor.h"

#include <algorithm>
#include <utility>

namespace heddle::actor {
namespace {

TaskRules RulesOf(const Task& task, size_t edges) {
  TaskRules rules;
  rules.counted = task.kind == TaskKind::kSource || edges == 0;
  rules.collects = task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kPack;
  rules.spreads = task.kind == TaskKind::kRepeat || task.kind == TaskKind::kUnpack;
  rules.rate = rules.collects || rules.spreads ? std::max<int64_t>(task.rate, 1) : 1;
  rules.count = task.count;
  rules.edges = static_cast<int>(edges);
  return rules;
}

}  // namespace

Actor::Actor(const Task& task, size_t number, std::vector<InputEdge> edges,
             std::vector<RegisterState*> produced, std::vector<int> data_edges)
    : task_(&task),
      number_(number),
      edges_(std::move(edges)),
      produced_(std::move(produced)),
      data_edges_(std::move(data_edges)),
      rules_(RulesOf(task, edges_.size())) {
  const auto data_registers = static_cast<size_t>(
      std::count_if(produced_.begin(), produced_.end(),
                    [](const RegisterState* produced) { return !produced->description().control; }));
  result_.values.resize(std::max<size_t>(data_registers, 1));
}

void Actor::Begin(uint32_t run) {
  run_ = run;
  if (now_.aborted) {  // Of a launch that nobody waited for any more.
    result_.status = Status();
    std::fill(result_.values.begin(), result_.values.end(), Value());
  }
  for (InputEdge& edge : edges_) {
    edge.queue.Clear();
    edge.ended = false;
    edge.received = 0;
  }
  for (RegisterState* produced : produced_) produced->Reset();
  now_ = AtBegin(rules_);
  pulled_bytes_ = 0;
  held_.clear();
  pulled_.reset();
}

void Actor::Clear() {
  Begin(run_);
  now_.state = State::kDone;
}

void Actor::Start(ActorHost& host) {
  if (now_.state == State::kRunning && rules_.counted) TryAct(host);
}

void Actor::Handle(const Message& message, ActorHost& host) {
  HEDDLE_DEBUG_CHECK(message.run == run_, "a message of a stale run changes no counter (I6)");
  HEDDLE_DEBUG_CHECK(now_.state != State::kDone || now_.aborted, "a task that is done receives nothing (I7)");
  const bool is_launch_done = message.type == MessageType::kDone && message.port == kLaunchDone;
  if (!Listens(now_)) {
    // Nothing matters any more to a task that has failed or been aborted, but that its kernel comes back.
    if (is_launch_done) OnLaunchDone(host);
    return;
  }
  switch (message.type) {
    case MessageType::kReady: return OnReady(message, host);
    case MessageType::kAck: return OnAck(message, host);
    case MessageType::kEos: return OnEos(message, host);
    case MessageType::kDone: return is_launch_done ? OnLaunchDone(host) : OnPullDone(host);
    default: HEDDLE_CHECK(false, "only kReady, kAck, kEos and kDone are for actors");
  }
}

// EOS is the last message of an edge (I7), READYs come in sequence (I5).
void Actor::OnReady(const Message& message, ActorHost& host) {
  if (message.port >= edges_.size() || edges_[message.port].register_id != message.register_id ||
      !IsExpectedReady(edges_[message.port].ended, edges_[message.port].received, message.sequence)) {
    return Fail(Internal("task {} got READY of register {} out of order (number {}; I5, I7)",
                         task_->id.index(), message.register_id, message.sequence),
                host);
  }
  InputEdge& edge = edges_[message.port];
  NoteFilled(&now_, edge.queue.empty());
  edge.queue.Push(message.slot);
  ++edge.received;
  TryAct(host);
}

void Actor::OnEos(const Message& message, ActorHost& host) {
  if (message.port >= edges_.size() || !IsExpectedEos(edges_[message.port].ended)) {
    return Fail(Internal("task {} got EOS twice or on no edge (I7)", task_->id.index()), host);
  }
  InputEdge& edge = edges_[message.port];
  edge.ended = true;
  NoteEnd(&now_, edge.queue.empty());
  TryFinish(host);
}

void Actor::OnAck(const Message& message, ActorHost& host) {
  if (message.port >= produced_.size() || produced_[message.port]->description().id != message.register_id ||
      !IsExpectedAck(produced_[message.port]->IsRead(message.slot))) {
    return Fail(Internal("task {} got ACK of register {}, slot {}, which nobody reads (I1)",
                         task_->id.index(), message.register_id, message.slot),
                host);
  }
  RegisterState& produced = *produced_[message.port];
  const bool was_free = produced.HasFreeSlot();
  NoteReturned(&now_);
  if (!produced.Release(message.slot)) return;
  if (produced.has_remote_readers()) host.Withdraw(message.register_id, message.slot);
  NoteFree(&now_, !was_free);
  if (ReturnsHeldInput(now_)) ReleaseInputs(host);
  TryAct(host);
}

void Actor::OnPullDone(ActorHost& host) {
  if (!IsExpectedPull(now_))
    return Fail(Internal("task {} got DONE without a launch", task_->id.index()), host);
  if (!pulled_->value.ok()) {
    // The other rank has dropped the body because its run failed; its error is on the way and says why.
    if (IsDroppedBody(pulled_->value.status().code() == StatusCode::kCancelled)) return;
    return Fail(pulled_->value.status(), host);
  }
  Value value = *std::move(pulled_->value);
  pulled_.reset();
  now_.flight = Flight::kNone;
  ++now_.acts;
  pulled_bytes_ += value.bytes();
  Publish({&value, 1}, host);
  TryAct(host);
}

void Actor::OnLaunchDone(ActorHost& host) {
  HEDDLE_CHECK(now_.flight == Flight::kKernel, "only the device says that a launch has ended, once");
  now_.flight = Flight::kNone;
  if (now_.state == State::kAborting) {
    if (!result_.status.ok()) host.Failed(*this, result_.status);
    return End(host);
  }
  // A task that has failed meanwhile (a broken protocol) waits for its abort.
  if (UsesKernelResult(now_) && CompleteAct(host)) TryAct(host);
}

void Actor::TryAct(ActorHost& host) {
  while (MayAct(rules_, now_))
    if (!Act(host)) return;
  TryFinish(host);
}

bool Actor::Act(ActorHost& host) {
  HEDDLE_DEBUG_CHECK(now_.state == State::kRunning, "only a running task acts");
  for (RegisterState* produced : produced_) produced->BeginWrite();
  if (task_->kind == TaskKind::kCopy && !data_edges_.empty() && data_edges_[0] >= 0) {
    const InputEdge& edge = edges_[static_cast<size_t>(data_edges_[0])];
    if (edge.source == nullptr) return StartPull(edge, host);
  }
  BindInputs();
  if (task_->kind == TaskKind::kPack) {
    held_.push_back(*inputs_[0]);
    if (!PackComputes(rules_, now_)) {
      ++now_.acts;
      Publish({}, host);
      return true;
    }
    inputs_.clear();
    for (const Value& piece : held_) inputs_.push_back(&piece);
  }
  if (host.Perform(*this, inputs_, now_.acts, &result_) == Launch::kInline) return CompleteAct(host);
  now_.flight = Flight::kKernel;
  return false;
}

bool Actor::StartPull(const InputEdge& edge, ActorHost& host) {
  now_.flight = Flight::kPull;
  pulled_ = std::make_shared<PulledBody>();
  host.Pull(*this, edge.producer, edge.register_id, edge.queue.front(), pulled_);
  return false;
}

void Actor::BindInputs() {
  inputs_.clear();
  if (task_->kind == TaskKind::kAccumulate) inputs_.push_back(held_.empty() ? nullptr : &held_[0]);
  for (int position : data_edges_) {
    const InputEdge* edge = position < 0 ? nullptr : &edges_[static_cast<size_t>(position)];
    inputs_.push_back(edge == nullptr ? nullptr : &edge->source->value(edge->queue.front()));
  }
}

bool Actor::CompleteAct(ActorHost& host) {
  if (!result_.status.ok()) {
    Fail(result_.status, host);
    return false;
  }
  ++now_.acts;
  if (rules_.collects) held_.clear();
  if (task_->kind == TaskKind::kAccumulate && !SumIsWhole(rules_, now_)) {
    held_.push_back(std::exchange(result_.values[0], Value()));
    Publish({}, host);
  } else {
    Publish(result_.values, host);
  }
  return true;
}

void Actor::ReleaseInputs(ActorHost& host) {
  now_.holds_input = false;
  for (InputEdge& edge : edges_) {
    const uint8_t slot = edge.queue.Pop();
    if (edge.source != nullptr) edge.source->EndRead(slot);
    NoteTaken(&now_, edge.queue.empty(), edge.ended);
    host.Send({.destination = edge.producer,
               .source = task_->id,
               .run = run_,
               .register_id = edge.register_id,
               .slot = slot,
               .type = MessageType::kAck,
               .port = edge.producer_port});
  }
}

// Acks go first: a producer on the same thread may then act again before our readers do.
void Actor::Publish(std::span<Value> values, ActorHost& host) {
  if (ReturnsInputs(rules_)) ReleaseInputs(host);
  if (!Publishes(rules_, now_)) return;
  size_t next = 0;
  for (RegisterState* produced : produced_) {
    const Register& description = produced->description();
    const uint32_t sequence = produced->published();
    const uint8_t slot =
        produced->Publish(description.control ? Value() : std::exchange(values[next++], Value()));
    NotePublished(&now_, static_cast<int64_t>(produced->readers().size()), !produced->HasFreeSlot());
    if (produced->has_remote_readers() && !description.control)
      host.Expose(description.id, slot, produced->value(slot));
    for (const Reader& reader : produced->readers()) {
      host.Send({.destination = reader.task,
                 .source = task_->id,
                 .run = run_,
                 .register_id = description.id,
                 .sequence = sequence,
                 .slot = slot,
                 .type = MessageType::kReady,
                 .port = reader.port});
    }
  }
  if (BeginsToHold(rules_, now_)) {
    now_.holds_input = true;
    if (ReturnsHeldInput(now_)) ReleaseInputs(host);  // Nobody reads what it makes.
  }
}

void Actor::TryFinish(ActorHost& host) {
  switch (EndingOf(rules_, now_)) {
    case Ending::kNotYet: break;
    case Ending::kEnds:
      SendEos(host);
      now_.state = State::kDraining;
      break;
    case Ending::kPeriodIncomplete:
      return Fail(Internal("rates differ: task {} ended after {} acts, rate {}", task_->id.index(), now_.acts,
                           rules_.rate),
                  host);
    case Ending::kInputLeft:
      return Fail(
          Internal("rates differ: task {} has input left on some edges and none on others after {} acts",
                   task_->id.index(), now_.acts),
          host);
  }
  if (IsDone(now_)) End(host);
}

void Actor::SendEos(ActorHost& host) {
  for (RegisterState* produced : produced_) {
    for (const Reader& reader : produced->readers()) {
      host.Send({.destination = reader.task,
                 .source = task_->id,
                 .run = run_,
                 .register_id = produced->description().id,
                 .type = MessageType::kEos,
                 .port = reader.port});
    }
  }
}

// A kernel on the device stays in flight: its inputs and its result must outlive it.
void Actor::Fail(Status status, ActorHost& host) {
  now_.state = State::kFailed;
  if (now_.flight == Flight::kPull) now_.flight = Flight::kNone;
  pulled_.reset();
  host.Failed(*this, std::move(status));
}

void Actor::Abort(ActorHost& host) {
  if (now_.state == State::kDone || now_.state == State::kIdle || now_.state == State::kAborting) return;
  now_.aborted = true;
  pulled_.reset();
  if (MustWaitForKernel(now_)) {
    now_.state = State::kAborting;
    return;
  }
  now_.flight = Flight::kNone;
  End(host);
}

void Actor::End(ActorHost& host) {
  now_.state = State::kDone;
  host.Finished(*this);
}

}  // namespace heddle::actor

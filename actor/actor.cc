// SPDX-License-Identifier: Apache-2.0
#include "actor/actor.h"

#include <algorithm>
#include <utility>

namespace heddle::actor {
namespace {

int64_t BytesOf(const Value& value) {
  if (value.IsMatrix()) return value.matrix().bytes();
  return value.scalar().IsString() ? static_cast<int64_t>(value.scalar().AsString().size()) : 8;
}

}  // namespace

Actor::Actor(const Task& task, size_t number, std::vector<InputEdge> edges,
             std::vector<RegisterState*> produced, std::vector<int> data_edges)
    : task_(&task),
      number_(number),
      edges_(std::move(edges)),
      produced_(std::move(produced)),
      data_edges_(std::move(data_edges)),
      counted_(task.kind == TaskKind::kSource || edges_.empty()),
      collects_(task.kind == TaskKind::kAccumulate || task.kind == TaskKind::kPack),
      spreads_(task.kind == TaskKind::kRepeat || task.kind == TaskKind::kUnpack),
      rate_(collects_ || spreads_ ? std::max<int64_t>(task.rate, 1) : 1) {}

void Actor::Begin(uint32_t run) {
  run_ = run;
  state_ = State::kRunning;
  in_flight_ = false;
  holds_input_ = false;
  for (InputEdge& edge : edges_) {
    edge.queue.Clear();
    edge.ended = false;
    edge.received = 0;
  }
  for (RegisterState* produced : produced_) produced->Reset();
  unready_inputs_ = static_cast<int>(edges_.size());
  unready_outputs_ = 0;
  ended_edges_ = 0;
  exhausted_edges_ = 0;
  outstanding_ = 0;
  acts_ = 0;
  pulled_bytes_ = 0;
  held_.clear();
  pulled_.reset();
}

void Actor::Clear() {
  Begin(run_);
  state_ = State::kDone;
}

void Actor::Start(ActorHost& host) {
  if (edges_.empty() || counted_) TryAct(host);
}

void Actor::Handle(const Message& message, ActorHost& host) {
  HEDDLE_DEBUG_CHECK(message.run == run_, "a message of a stale run changes no counter (I6)");
  if (state_ == State::kFailed || state_ == State::kDone || state_ == State::kIdle) return;
  switch (message.type) {
    case MessageType::kReady: return OnReady(message, host);
    case MessageType::kAck: return OnAck(message, host);
    case MessageType::kDone: return OnDone(host);
    case MessageType::kEos: {
      if (message.port >= edges_.size() || edges_[message.port].ended) {
        return Fail(Internal("task {} got EOS twice or on no edge", task_->id.index()), host);
      }
      InputEdge& edge = edges_[message.port];
      edge.ended = true;
      ++ended_edges_;
      if (edge.queue.empty()) ++exhausted_edges_;
      return TryFinish(host);
    }
    default: HEDDLE_CHECK(false, "only kReady, kAck, kEos and kDone are for actors");
  }
}

void Actor::OnReady(const Message& message, ActorHost& host) {
  if (message.port >= edges_.size() || edges_[message.port].register_id != message.register_id ||
      edges_[message.port].ended || edges_[message.port].received != message.sequence) {
    return Fail(Internal("task {} got READY of register {} out of order (number {})", task_->id.index(),
                         message.register_id, message.sequence),
                host);
  }
  InputEdge& edge = edges_[message.port];
  if (edge.queue.empty()) --unready_inputs_;
  edge.queue.Push(message.slot);
  ++edge.received;
  TryAct(host);
}

void Actor::OnAck(const Message& message, ActorHost& host) {
  if (message.port >= produced_.size() || produced_[message.port]->description().id != message.register_id) {
    return Fail(Internal("task {} got ACK of register {}, which it does not produce", task_->id.index(),
                         message.register_id),
                host);
  }
  RegisterState& produced = *produced_[message.port];
  const bool was_free = produced.HasFreeSlot();
  --outstanding_;
  if (!produced.Release(message.slot)) return;
  if (produced.has_remote_readers()) host.Withdraw(message.register_id, message.slot);
  if (!was_free) --unready_outputs_;
  if (holds_input_ && outstanding_ == 0) ReleaseInputs(host);
  TryAct(host);
}

void Actor::OnDone(ActorHost& host) {
  if (!in_flight_ || pulled_ == nullptr)
    return Fail(Internal("task {} got DONE without a launch", task_->id.index()), host);
  if (!pulled_->value.ok()) {
    // The other rank has dropped the body because its run failed; its error is on the way and says why.
    if (pulled_->value.status().code() == StatusCode::kCancelled) return;
    return Fail(pulled_->value.status(), host);
  }
  Value value = *std::move(pulled_->value);
  pulled_.reset();
  in_flight_ = false;
  ++acts_;
  pulled_bytes_ += BytesOf(value);
  Publish(std::move(value), host);
  TryAct(host);
}

void Actor::TryAct(ActorHost& host) {
  while (IsReady()) {
    if (counted_ && acts_ == task_->count) break;
    if (Act(host)) return;
  }
  TryFinish(host);
}

bool Actor::Act(ActorHost& host) {
  if (task_->kind == TaskKind::kCopy) {
    const int position = data_edges_.empty() ? -1 : data_edges_[0];
    if (position >= 0 && edges_[static_cast<size_t>(position)].source == nullptr) {
      const InputEdge& edge = edges_[static_cast<size_t>(position)];
      in_flight_ = true;
      pulled_ = std::make_shared<PulledBody>();
      host.Pull(*this, edge.producer, edge.register_id, edge.queue.front(), pulled_);
      return true;
    }
  }
  inputs_.clear();
  if (task_->kind == TaskKind::kAccumulate) inputs_.push_back(held_.empty() ? nullptr : &held_[0]);
  for (int position : data_edges_) {
    const InputEdge* edge = position < 0 ? nullptr : &edges_[static_cast<size_t>(position)];
    inputs_.push_back(edge == nullptr ? nullptr : &edge->source->value(edge->queue.front()));
  }
  const bool is_last = (acts_ + 1) % rate_ == 0;
  if (task_->kind == TaskKind::kPack) {
    held_.push_back(*inputs_[0]);
    if (!is_last) {
      ++acts_;
      Publish(Value(), host);
      return false;
    }
    inputs_.clear();
    for (const Value& piece : held_) inputs_.push_back(&piece);
  }
  Result<Value> result = host.Perform(*this, inputs_, acts_);
  if (!result.ok()) {
    Fail(result.status(), host);
    return true;
  }
  ++acts_;
  if (task_->kind == TaskKind::kPack) held_.clear();
  if (task_->kind == TaskKind::kAccumulate) {
    held_.clear();
    if (!is_last) held_.push_back(*std::move(result));
  }
  Publish(is_last || !collects_ ? *std::move(result) : Value(), host);
  return false;
}

void Actor::ReleaseInputs(ActorHost& host) {
  holds_input_ = false;
  for (InputEdge& edge : edges_) {
    const uint8_t slot = edge.queue.Pop();
    if (edge.queue.empty()) {
      ++unready_inputs_;
      if (edge.ended) ++exhausted_edges_;
    }
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
void Actor::Publish(Value value, ActorHost& host) {
  const bool at_period = acts_ % rate_ == 0;
  if (!spreads_) ReleaseInputs(host);
  if (collects_ && !at_period) return;
  for (RegisterState* produced : produced_) {
    const Register& description = produced->description();
    const uint32_t sequence = produced->published();
    const uint8_t slot = produced->Publish(description.control ? Value() : value);
    outstanding_ += static_cast<int64_t>(produced->readers().size());
    if (!produced->HasFreeSlot()) ++unready_outputs_;
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
  if (spreads_ && at_period) {
    holds_input_ = true;
    if (outstanding_ == 0) ReleaseInputs(host);  // Nobody reads what it makes.
  }
}

void Actor::TryFinish(ActorHost& host) {
  if (state_ == State::kRunning && !in_flight_) {
    const int edges = static_cast<int>(edges_.size());
    const bool input_left = unready_inputs_ < edges;
    if (exhausted_edges_ == edges && (!counted_ || acts_ == task_->count)) {
      if (acts_ % rate_ != 0) {
        return Fail(
            Internal("rates differ: task {} ended after {} acts, rate {}", task_->id.index(), acts_, rate_),
            host);
      }
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
      state_ = State::kDraining;
    } else if (edges > 0 && (exhausted_edges_ == edges || (exhausted_edges_ > 0 && input_left) ||
                             (counted_ && acts_ == task_->count && input_left))) {
      // One edge has ended for good while another still brings data: nothing can ever consume it.
      return Fail(
          Internal("rates differ: task {} has input left on some edges and none on others after {} acts",
                   task_->id.index(), acts_),
          host);
    }
  }
  if (state_ == State::kDraining && outstanding_ == 0) {
    state_ = State::kDone;
    host.Finished(*this);
  }
}

void Actor::Fail(Status status, ActorHost& host) {
  state_ = State::kFailed;
  in_flight_ = false;
  pulled_.reset();
  host.Failed(*this, std::move(status));
}

void Actor::Abort(ActorHost& host) {
  if (state_ == State::kDone || state_ == State::kIdle) return;
  state_ = State::kDone;
  in_flight_ = false;
  pulled_.reset();
  host.Finished(*this);
}

Status Actor::CheckInvariants(bool quiet) const {
  int64_t outstanding = 0;
  int unready_outputs = 0;
  for (const RegisterState* produced : produced_) {
    HEDDLE_RETURN_IF_ERROR(produced->CheckInvariants());
    outstanding += produced->outstanding();
    unready_outputs += !produced->HasFreeSlot();
  }
  if (outstanding != outstanding_)
    return Internal("I3: task {}: outstanding {} != {}", task_->id.index(), outstanding_, outstanding);
  if (unready_outputs != unready_outputs_)
    return Internal("task {}: counter of outputs is wrong", task_->id.index());
  int unready_inputs = 0;
  for (const InputEdge& edge : edges_) {
    unready_inputs += edge.queue.empty();
    if (edge.source != nullptr && edge.queue.size() > edge.source->outstanding()) {
      return Internal("I2: task {}: edge of register {} holds more than was sent", task_->id.index(),
                      edge.register_id);
    }
  }
  if (unready_inputs != unready_inputs_)
    return Internal("task {}: counter of inputs is wrong", task_->id.index());
  if (quiet &&
      (state_ != State::kDone || outstanding != 0 || unready_inputs != static_cast<int>(edges_.size()) ||
       ended_edges_ != static_cast<int>(edges_.size()) || in_flight_ || holds_input_ || !held_.empty())) {
    return Internal("I12: task {} left something behind", task_->id.index());
  }
  return OkStatus();
}

std::string Actor::DescribeWait() const {
  if (state_ == State::kDone || state_ == State::kIdle) return "";
  std::string text = fmt::format("task {} ({}, node {}, rank {}) after {} acts", task_->id.index(),
                                 Name(task_->kind), task_->node, task_->id.rank(), acts_);
  if (in_flight_) return text + " waits for a pull";
  for (const InputEdge& edge : edges_) {
    if (edge.queue.empty() && !edge.ended) {
      text += fmt::format(", needs register {} of task {} on rank {}", edge.register_id,
                          edge.producer.index(), edge.producer.rank());
    }
  }
  for (const RegisterState* produced : produced_) {
    if (produced->HasFreeSlot() && state_ != State::kDraining) continue;
    if (produced->outstanding() > 0) {
      text += fmt::format(", all {} slots of register {} are unread", produced->description().slots,
                          produced->description().id);
    }
  }
  return text;
}

bool Actor::WaitsForOtherRank() const {
  if (state_ == State::kDone || state_ == State::kIdle) return false;
  for (const InputEdge& edge : edges_) {
    if (edge.source == nullptr && (!edge.ended || in_flight_)) return true;
  }
  for (const RegisterState* produced : produced_) {
    if (produced->has_remote_readers() && produced->outstanding() > 0) return true;
  }
  return false;
}

}  // namespace heddle::actor

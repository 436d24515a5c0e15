// SPDX-License-Identifier: Apache-2.0
// What an actor tells about itself: invariants, and what it waits for.
#include "actor/actor.h"

namespace heddle::actor {

Status Actor::CheckInvariants(bool quiet) const {
  int64_t outstanding = 0;
  int unready_outputs = 0;
  for (const RegisterState* produced : produced_) {
    HEDDLE_RETURN_IF_ERROR(produced->CheckInvariants());
    outstanding += produced->outstanding();
    unready_outputs += !produced->HasFreeSlot();
  }
  if (outstanding != now_.outstanding)
    return Internal("I3: task {}: outstanding {} != {}", task_->id.index(), now_.outstanding, outstanding);
  if (unready_outputs != now_.unready_outputs)
    return Internal("task {}: counter of outputs is wrong", task_->id.index());
  int unready_inputs = 0;
  for (const InputEdge& edge : edges_) unready_inputs += edge.queue.empty();
  if (unready_inputs != now_.unready_inputs)
    return Internal("task {}: counter of inputs is wrong", task_->id.index());
  if (quiet &&
      (now_.state != State::kDone || outstanding != 0 || unready_inputs != static_cast<int>(edges_.size()) ||
       now_.ended_edges != static_cast<int>(edges_.size()) || now_.flight != Flight::kNone ||
       now_.holds_input || !held_.empty())) {
    return Internal("I12: task {} left something behind", task_->id.index());
  }
  return OkStatus();
}

Status Actor::CheckEdges() const {
  for (const InputEdge& edge : edges_) {
    if (edge.source != nullptr && edge.queue.size() > edge.source->outstanding()) {
      return Internal("I2: task {}: edge of register {} holds more than was sent", task_->id.index(),
                      edge.register_id);
    }
  }
  return OkStatus();
}

std::string Actor::DescribeWait() const {
  if (now_.state == State::kDone || now_.state == State::kIdle) return "";
  std::string text = fmt::format("task {} ({}, node {}, rank {}) after {} acts", task_->id.index(),
                                 Name(task_->kind), task_->node, task_->id.rank(), now_.acts);
  if (now_.flight == Flight::kPull) return text + " waits for a pull";
  if (now_.flight == Flight::kKernel) return text + " waits for its kernel";
  for (const InputEdge& edge : edges_) {
    if (edge.queue.empty() && !edge.ended) {
      text += fmt::format(", needs register {} of task {} on rank {}", edge.register_id,
                          edge.producer.index(), edge.producer.rank());
    }
  }
  for (const RegisterState* produced : produced_) {
    if (produced->HasFreeSlot() && now_.state != State::kDraining) continue;
    if (produced->outstanding() > 0) {
      text += fmt::format(", all {} slots of register {} are unread", produced->description().slots,
                          produced->description().id);
    }
  }
  return text;
}

bool Actor::WaitsForOtherRank() const {
  if (now_.state == State::kDone || now_.state == State::kIdle) return false;
  for (const InputEdge& edge : edges_) {
    if (edge.source == nullptr && (!edge.ended || now_.flight == Flight::kPull)) return true;
  }
  for (const RegisterState* produced : produced_) {
    if (produced->has_remote_readers() && produced->outstanding() > 0) return true;
  }
  return false;
}

}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
#include "tests/models/actor_snapshot.h"

#include "actor/run_number.h"

namespace heddle::actor {
namespace {

constexpr int kNoNumber = 255;

int NumberOf(const Value& value) { return static_cast<int>(value.scalar().AsInteger()); }
Value ValueOf(int number) { return Value(static_cast<int64_t>(number)); }

void SaveQueue(const SlotQueue& queue, ByteWriter* out) {
  out->Add(queue.size());
  for (int i = 0; i < queue.size(); ++i) out->Add(queue.At(i));
}
void LoadQueue(ByteReader* in, SlotQueue* queue) {
  queue->Clear();
  for (int left = in->Next(); left > 0; --left) queue->Push(static_cast<uint8_t>(in->Next()));
}

}  // namespace

void ActorSnapshot::Save(const Actor& actor, ByteWriter* out) {
  const Counters& now = actor.now_;
  out->Add(static_cast<int>(now.state) | static_cast<int>(now.flight) << 3 | now.aborted << 5 |
           now.holds_input << 6);
  // A guard that was taken away may drive these below zero.
  for (const int counter : {now.unready_inputs, now.unready_outputs, now.ended_edges, now.exhausted_edges})
    out->Add(counter & 0xff);
  out->Add(now.outstanding & 0xff);
  out->Add(now.acts);
  out->Add(actor.run_ & 0xff);
  for (const InputEdge& edge : actor.edges_) {
    out->Add(edge.ended);
    out->Add(edge.received);
    SaveQueue(edge.queue, out);
  }
  for (const RegisterState* made : actor.produced_) {
    SaveQueue(made->free_, out);
    out->Add(made->published_);
    for (const RegisterState::Slot& slot : made->slots_) {
      out->Add(slot.references & 0xff);
      out->Add(slot.references > 0 && !made->description_->control ? NumberOf(slot.value) : kNoNumber);
    }
  }
  out->Add(static_cast<int64_t>(actor.held_.size()));
  for (const Value& held : actor.held_) out->Add(NumberOf(held));
}

void ActorSnapshot::Load(ByteReader* in, uint32_t lane, Actor* actor) {
  const auto counter = [in] { return static_cast<int8_t>(in->Next()); };
  Counters& now = actor->now_;
  const int flags = in->Next();
  now.state = static_cast<ActorState>(flags & 7);
  now.flight = static_cast<Flight>(flags >> 3 & 3);
  now.aborted = (flags >> 5 & 1) != 0;
  now.holds_input = (flags >> 6 & 1) != 0;
  now.unready_inputs = counter();
  now.unready_outputs = counter();
  now.ended_edges = counter();
  now.exhausted_edges = counter();
  now.outstanding = counter();
  now.acts = in->Next();
  actor->run_ = MakeRun(lane, static_cast<uint32_t>(in->Next()));
  for (InputEdge& edge : actor->edges_) {
    edge.ended = in->Next() != 0;
    edge.received = static_cast<uint32_t>(in->Next());
    LoadQueue(in, &edge.queue);
  }
  for (RegisterState* made : actor->produced_) {
    LoadQueue(in, &made->free_);
    made->published_ = static_cast<uint32_t>(in->Next());
    made->outstanding_ = 0;
    for (RegisterState::Slot& slot : made->slots_) {
      slot.references = counter();
      const int number = in->Next();
      slot.value = number == kNoNumber ? Value() : ValueOf(number);
      made->outstanding_ += slot.references;
    }
  }
  actor->held_.clear();
  for (int left = in->Next(); left > 0; --left) actor->held_.push_back(ValueOf(in->Next()));
  actor->pulled_ = now.flight == Flight::kPull ? std::make_shared<PulledBody>() : nullptr;
  actor->result_.status = Status();
}

void ActorSnapshot::Save(const OutgoingMessages& messages, ByteWriter* out) {
  out->Add(messages.may_wait_);
  if (!messages.may_wait_) return;
  out->Add(static_cast<int64_t>(messages.peers_.size()));
  for (const OutgoingMessages::Peer& peer : messages.peers_) {
    out->Add(peer.open_edges & 0xff);
    out->Add(static_cast<int64_t>(peer.messages.size()));
    for (const Message& message : peer.messages) SaveMessage(message, out);
  }
}

// Only what waits is there between two steps: what is urgent has been sent.
void ActorSnapshot::Load(ByteReader* in, const PlanInstance& instance, uint32_t lane,
                         OutgoingMessages* messages) {
  if (in->Next() == 0) return messages->Begin(nullptr);
  messages->Begin(&instance);
  messages->peers_.resize(static_cast<size_t>(in->Next()));
  for (size_t rank = 0; rank < messages->peers_.size(); ++rank) {
    OutgoingMessages::Peer& peer = messages->peers_[rank];
    peer.open_edges = static_cast<int8_t>(in->Next());
    for (int left = in->Next(); left > 0; --left) peer.messages.push_back(LoadMessage(in, lane));
    if (!peer.messages.empty()) messages->waiting_.push_back(static_cast<uint32_t>(rank));
  }
}

void SaveMessage(const Message& message, ByteWriter* out) {
  out->Add(static_cast<int>(message.type) << 5 | static_cast<int>(message.run & 31));
  out->Add(message.destination.rank() << 4 | message.destination.stream());
  out->Add(message.destination.index());
  out->Add(message.source.rank() << 4 | message.source.stream());
  out->Add(message.register_id);
  out->Add(message.sequence);
  out->Add(message.slot);
  out->Add(message.port);
}

Message LoadMessage(ByteReader* in, uint32_t lane) {
  Message message;
  const int type_and_run = in->Next();
  message.type = static_cast<MessageType>(type_and_run >> 5);
  message.run = MakeRun(lane, static_cast<uint32_t>(type_and_run & 31));
  const auto destination = static_cast<uint32_t>(in->Next());
  const auto index = static_cast<uint32_t>(in->Next());
  message.destination = TaskId::Make(destination >> 4, destination & 15, index);
  const auto source = static_cast<uint32_t>(in->Next());
  message.source = TaskId::Make(source >> 4, source & 15, 0);
  message.register_id = in->Next();
  message.sequence = static_cast<uint32_t>(in->Next());
  message.slot = static_cast<uint8_t>(in->Next());
  message.port = static_cast<uint16_t>(in->Next());
  return message;
}

}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "actor/actor.h"
#include "actor/outgoing_messages.h"

namespace heddle::actor {

/// What a model stores of a state: numbers below 256, one behind the other.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<uint8_t>* bytes) : bytes_(*bytes) {}
  void Add(int64_t number) {
    HEDDLE_CHECK(number >= 0 && number < 256, "instances of models are small");
    bytes_.push_back(static_cast<uint8_t>(number));
  }

 private:
  std::vector<uint8_t>& bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(const uint8_t* bytes) : next_(bytes) {}
  int Next() { return *next_++; }

 private:
  const uint8_t* next_;
};

/// Stores and restores everything that decides what an actor will do: its counters, the queues of its edges,
/// the slots of its registers with the numbers in them.
class ActorSnapshot {
 public:
  static void Save(const Actor& actor, ByteWriter* out);
  static void Load(ByteReader* in, uint32_t lane, Actor* actor);
  static void Save(const OutgoingMessages& messages, ByteWriter* out);
  static void Load(ByteReader* in, const PlanInstance& instance, uint32_t lane, OutgoingMessages* messages);

  static const Counters& CountersOf(const Actor& actor) { return actor.now_; }
  static const TaskRules& RulesOf(const Actor& actor) { return actor.rules_; }
  static ActResult& ResultOf(Actor& actor) { return actor.result_; }
  static PulledBody* BodyOf(Actor& actor) { return actor.pulled_.get(); }
  /// The position of the first data edge; -1: there is none.
  static int FirstDataEdge(const Actor& actor) {
    return actor.data_edges_.empty() ? -1 : actor.data_edges_[0];
  }
  /// The slot that is written next.
  static uint8_t NextSlot(const RegisterState& made) { return made.free_.front(); }
  static bool HasNextSlot(const RegisterState& made) { return !made.free_.empty(); }
};

/// A message as a model stores it: without the lane, which the reader knows.
void SaveMessage(const Message& message, ByteWriter* out);
Message LoadMessage(ByteReader* in, uint32_t lane);

}  // namespace heddle::actor

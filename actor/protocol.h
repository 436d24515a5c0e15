// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle::actor {

// The protocol of actors as data and small functions: what an actor counts, which conditions (guards) decide
// what it does, and what each event changes. actor.cc, register_state.h, outgoing_messages.h, lane.cc and the
// simulation do what is said here; SPIN explores the same code (tests/models). docs/protocol.md has the table
// of guards with the model or the seed that fails without each.

/// Every guard: its name, and what holds because of it.
#define HEDDLE_PROTOCOL_GUARDS(GUARD)                                                                       \
  GUARD(kInputsFilled, "an act needs a filled slot on every consumed edge")                                 \
  GUARD(kOutputsFree, "an act needs a free slot of every produced register")                                \
  GUARD(kOneFlight, "an act begins when no pull and no kernel of the task is under way")                    \
  GUARD(kInputReturned, "a repeat takes its next input when all outputs of the last one have come back")    \
  GUARD(kCountLeft, "a source acts as often as its count says")                                             \
  GUARD(kPeriodPublishes, "an accumulate publishes at the end of its period only")                          \
  GUARD(kPackComputes, "a pack computes at the end of its period only")                                     \
  GUARD(kSumIsWhole, "an accumulate hands its sum on at the end of its period only")                        \
  GUARD(kPeriodHolds, "a repeat waits for its outputs at the end of its period only")                       \
  GUARD(kInputHeld, "a repeat does not give its input back at every act")                                   \
  GUARD(kAllReturned, "a repeat gives its input back when the last output has come back")                   \
  GUARD(kFirstFilled, "an edge counts as filled from its first filled slot")                                \
  GUARD(kLastTaken, "an edge counts as empty from its last taken slot")                                     \
  GUARD(kFirstFree, "a register counts as free from its first free slot")                                   \
  GUARD(kLastFilled, "a register counts as full from its last filled slot")                                 \
  GUARD(kLastReader, "a slot is free when its last reader is through")                                      \
  GUARD(kEndOfEmptyEdge, "EOS ends an edge at once only if nothing of it is left to read")                  \
  GUARD(kTakenAfterEnd, "an edge ends with its last slot only if EOS has come")                             \
  GUARD(kEdgesExhausted, "a task ends when all its edges have")                                             \
  GUARD(kCountReached, "a source ends when it has acted as often as its count says")                        \
  GUARD(kPeriodComplete, "a task that ends within a period is an error of rates")                           \
  GUARD(kInputLeft, "an edge that has ended beside one with input left is an error of rates")               \
  GUARD(kDrained, "a task is done when all its readers are through")                                        \
  GUARD(kKernelReturns, "a task that is aborted is done when its kernel has come back")                     \
  GUARD(kDeafWhenOver, "READY, ACK, EOS and pulls change nothing in a task that has failed or was aborted") \
  GUARD(kSilentWhenOver, "a kernel that comes back to a task that has failed publishes nothing")            \
  GUARD(kReadyInSequence, "READYs of an edge come in sequence and before its EOS")                          \
  GUARD(kEosOnce, "an edge ends once")                                                                      \
  GUARD(kAckOfReadSlot, "an ACK is for a slot that somebody reads")                                         \
  GUARD(kPullUnderWay, "an answer to a pull comes while there is one")                                      \
  GUARD(kDroppedBody, "a body that was dropped with its run is no error of its own")                        \
  GUARD(kLiveRun, "only messages of the run in flight reach actors")                                        \
  GUARD(kEarlyKept, "messages of a run to come wait for it")                                                \
  GUARD(kEosLeaves, "an EOS for another rank leaves at once")                                               \
  GUARD(kLastAckLeaves, "ACKs wait for other messages only while an edge to that rank is open")

enum class Guard : uint8_t {
#define HEDDLE_GUARD(name, holds) name,
  HEDDLE_PROTOCOL_GUARDS(HEDDLE_GUARD)
#undef HEDDLE_GUARD
      kNone
};
constexpr int kGuards = static_cast<int>(Guard::kNone);

constexpr std::string_view NameOf(Guard guard) {
  constexpr std::string_view kNames[] = {
#define HEDDLE_GUARD(name, holds) std::string_view(#name).substr(1),
      HEDDLE_PROTOCOL_GUARDS(HEDDLE_GUARD)
#undef HEDDLE_GUARD
          "None"};
  return kNames[static_cast<int>(guard)];
}

constexpr std::string_view WhatHoldsBy(Guard guard) {
  constexpr std::string_view kTexts[] = {
#define HEDDLE_GUARD(name, holds) holds,
      HEDDLE_PROTOCOL_GUARDS(HEDDLE_GUARD)
#undef HEDDLE_GUARD
          ""};
  return kTexts[static_cast<int>(guard)];
}

/// `condition`, which `guard` names. In test_models, which is compiled with HEDDLE_REMOVABLE_GUARDS, true
/// while the guard is taken away.
#ifdef HEDDLE_REMOVABLE_GUARDS
extern Guard removed_guard;
inline bool Holds(Guard guard, bool condition) { return condition || guard == removed_guard; }
#else
inline bool Holds(Guard, bool condition) { return condition; }
#endif

enum class ActorState : uint8_t {
  kIdle,
  kRunning,
  kDraining,  ///< All acts are done, not all readers.
  kFailed,    ///< Waits to be aborted.
  kAborting,  ///< Aborted; a kernel of it still runs on the device.
  kDone
};

/// An asynchronous act that has begun.
enum class Flight : uint8_t { kNone, kPull, kKernel };

/// What the protocol knows of a task before it runs.
struct TaskRules {
  bool counted = false;   ///< A source: acts `count` times.
  bool collects = false;  ///< kAccumulate, kPack
  bool spreads = false;   ///< kRepeat, kUnpack
  int64_t rate = 1;       ///< Acts of a period.
  int64_t count = 1;
  int edges = 0;  ///< Consumed registers, data and control.
};

/// What an actor counts while its task runs.
struct Counters {
  ActorState state = ActorState::kIdle;
  Flight flight = Flight::kNone;
  bool aborted = false;
  bool holds_input = false;  ///< kRepeat, kUnpack: all outputs are made, not all have come back.
  int unready_inputs = 0;    ///< Consumed edges with an empty queue.
  int unready_outputs = 0;   ///< Produced registers without a free slot.
  int ended_edges = 0;       ///< Edges with EOS.
  int exhausted_edges = 0;   ///< Edges with EOS and an empty queue.
  int64_t outstanding = 0;   ///< Slots that readers have not given back, once for each reader.
  int64_t acts = 0;
};

/// Before the first message of a run.
inline Counters AtBegin(const TaskRules& task) {
  return {.state = ActorState::kRunning, .unready_inputs = task.edges};
}

// --- what decides ---

inline bool IsAtPeriod(const TaskRules& task, const Counters& now) {
  return task.rate == 1 || now.acts % task.rate == 0;
}
inline bool HasActedOut(const TaskRules& task, const Counters& now) {
  return task.counted && now.acts >= task.count;
}
/// Of a task that runs or drains. One that drains has no input left, or has acted out.
inline bool MayAct(const TaskRules& task, const Counters& now) {
  return Holds(Guard::kInputsFilled, now.unready_inputs == 0) &&
         Holds(Guard::kOutputsFree, now.unready_outputs == 0) &&
         Holds(Guard::kOneFlight, now.flight == Flight::kNone) &&
         Holds(Guard::kInputReturned, !now.holds_input) && Holds(Guard::kCountLeft, !HasActedOut(task, now));
}
/// Of a pack whose act begins: does it compute, or only keep its input?
inline bool PackComputes(const TaskRules& task, const Counters& now) {
  return Holds(Guard::kPackComputes, (now.acts + 1) % task.rate == 0);
}
/// Of an accumulate whose act is over: does its sum go out, or is it kept for the next act?
inline bool SumIsWhole(const TaskRules& task, const Counters& now) {
  return Holds(Guard::kSumIsWhole, IsAtPeriod(task, now));
}
/// Of an act that is over: do its results go out, and do its inputs go back?
inline bool Publishes(const TaskRules& task, const Counters& now) {
  return !task.collects || Holds(Guard::kPeriodPublishes, IsAtPeriod(task, now));
}
inline bool ReturnsInputs(const TaskRules& task) { return Holds(Guard::kInputHeld, !task.spreads); }
inline bool BeginsToHold(const TaskRules& task, const Counters& now) {
  return task.spreads && Holds(Guard::kPeriodHolds, IsAtPeriod(task, now));
}
inline bool ReturnsHeldInput(const Counters& now) {
  return now.holds_input && Holds(Guard::kAllReturned, now.outstanding == 0);
}
inline bool IsLastReader(int32_t references) { return Holds(Guard::kLastReader, references == 0); }
/// READY, ACK, EOS and pulls matter to it.
inline bool Listens(const Counters& now) {
  return Holds(Guard::kDeafWhenOver, now.state == ActorState::kRunning || now.state == ActorState::kDraining);
}
inline bool UsesKernelResult(const Counters& now) {
  return Holds(Guard::kSilentWhenOver, now.state == ActorState::kRunning);
}
inline bool MustWaitForKernel(const Counters& now) {
  return !Holds(Guard::kKernelReturns, now.flight != Flight::kKernel);
}

/// Whether a running task is through with its acts.
enum class Ending : uint8_t {
  kNotYet,
  kEnds,
  kPeriodIncomplete,  ///< An error of rates: it acted a number of times that is no multiple of its rate.
  kInputLeft          ///< An error of rates: nothing can ever consume what is left.
};
/// None with a pull or a kernel under way: its inputs are still in their queues, its act is not counted.
inline Ending EndingOf(const TaskRules& task, const Counters& now) {
  if (now.state != ActorState::kRunning) return Ending::kNotYet;
  const bool has_acted_out = HasActedOut(task, now);
  const bool is_exhausted = now.exhausted_edges == task.edges;
  if (Holds(Guard::kEdgesExhausted, is_exhausted) &&
      (!task.counted || Holds(Guard::kCountReached, has_acted_out)))
    return Holds(Guard::kPeriodComplete, IsAtPeriod(task, now)) ? Ending::kEnds : Ending::kPeriodIncomplete;
  const bool has_input = now.unready_inputs < task.edges;
  const bool lacks_input_for_good =
      is_exhausted || ((now.exhausted_edges > 0 || (task.counted && has_acted_out)) && has_input);
  return task.edges == 0 || Holds(Guard::kInputLeft, !lacks_input_for_good) ? Ending::kNotYet
                                                                            : Ending::kInputLeft;
}
inline bool IsDone(const Counters& now) {
  return now.state == ActorState::kDraining && Holds(Guard::kDrained, now.outstanding == 0);
}

// --- what events change ---

/// READY: a slot of an edge is filled.
inline void NoteFilled(Counters* now, bool edge_was_empty) {
  if (Holds(Guard::kFirstFilled, edge_was_empty)) --now->unready_inputs;
}
/// A slot of an edge goes back to its producer.
inline void NoteTaken(Counters* now, bool edge_is_empty, bool edge_has_ended) {
  if (!Holds(Guard::kLastTaken, edge_is_empty)) return;
  ++now->unready_inputs;
  if (Holds(Guard::kTakenAfterEnd, edge_has_ended)) ++now->exhausted_edges;
}
/// EOS.
inline void NoteEnd(Counters* now, bool edge_is_empty) {
  ++now->ended_edges;
  if (Holds(Guard::kEndOfEmptyEdge, edge_is_empty)) ++now->exhausted_edges;
}
/// A slot of a register is published.
inline void NotePublished(Counters* now, int64_t readers, bool register_is_full) {
  now->outstanding += readers;
  if (Holds(Guard::kLastFilled, register_is_full)) ++now->unready_outputs;
}
/// ACK; and if that was the last one of its slot:
inline void NoteReturned(Counters* now) { --now->outstanding; }
inline void NoteFree(Counters* now, bool register_was_full) {
  if (Holds(Guard::kFirstFree, register_was_full)) --now->unready_outputs;
}

// --- what is a breach of the protocol ---

inline bool IsExpectedReady(bool edge_has_ended, uint32_t received, uint32_t sequence) {
  return Holds(Guard::kReadyInSequence, !edge_has_ended && received == sequence);
}
inline bool IsExpectedEos(bool edge_has_ended) { return Holds(Guard::kEosOnce, !edge_has_ended); }
inline bool IsExpectedAck(bool slot_is_read) { return Holds(Guard::kAckOfReadSlot, slot_is_read); }
inline bool IsExpectedPull(const Counters& now) {
  return Holds(Guard::kPullUnderWay, now.flight == Flight::kPull);
}
inline bool IsDroppedBody(bool is_cancelled) { return !Holds(Guard::kDroppedBody, !is_cancelled); }

// --- between runs and ranks ---

/// What becomes of a message that comes to a rank.
enum class Fate : uint8_t { kDeliver, kKeep, kDrop };
/// `is_live`: it is of the run in flight; `is_of_later_run`: of one that this rank has not begun.
inline Fate FateOf(bool a_run_is_in_flight, bool is_live, bool is_of_later_run) {
  if (is_of_later_run) return Holds(Guard::kEarlyKept, false) ? Fate::kDrop : Fate::kKeep;
  return a_run_is_in_flight && Holds(Guard::kLiveRun, is_live) ? Fate::kDeliver : Fate::kDrop;
}
/// Whether a message for another rank may wait for what else that rank is to get (outgoing_messages.h). A
/// READY would come in time with the EOS behind it; it leaves at once because the other rank can work then.
inline bool MayWait(bool is_ready, bool is_eos) { return !is_ready && Holds(Guard::kEosLeaves, !is_eos); }
inline bool MoreIsToCome(int64_t open_edges) { return Holds(Guard::kLastAckLeaves, open_edges > 0); }

}  // namespace heddle::actor

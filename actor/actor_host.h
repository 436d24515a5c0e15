// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actor/message.h"
#include "core/values/value.h"

namespace heddle::actor {

class Actor;

/// Where the link leaves the body of an asynchronous pull before it posts kDone to the actor. Shared, because
/// a run that fails abandons its pulls and the link may answer much later.
struct PulledBody {
  Result<Value> value{Value()};
  int64_t asked_ns = 0;  ///< Of a run that is recorded, by the clock of its record: when the pull began.
};

/// What an act leaves: why it failed, or a value for each data register (at least one; a sink's is ignored).
struct ActResult {
  Status status;
  std::vector<Value> values;
};

/// How an act of a task was launched (runtime reference 6.2).
enum class Launch : uint8_t {
  kInline,        ///< It is over, the result is there.
  kAsynchronous,  ///< It runs on the device; kDone (port kLaunchDone) follows when the result is there.
};

/// What an actor needs of the world around it: a dispatcher's thread in production, the simulation in tests
/// (runtime reference 2.14). An actor is only ever touched by one host at a time, and no call waits for
/// anything but CPU work.
class ActorHost {
 public:
  virtual ~ActorHost() = default;

  /// Delivers to an actor of any rank, in order per (sender, destination).
  virtual void Send(const Message& message) = 0;

  /// One act of the actor's task. `inputs` as in the task's `consumed` (nullptr: left out); for kPack the
  /// pieces, for kAccumulate {what was accumulated so far or nullptr, the next piece}. `act` counts from 0.
  /// After kAsynchronous `inputs` and `*result` belong to the host until it posts kDone, which it does even
  /// when the run is aborted: the actor leaves both where they are.
  virtual Launch Perform(Actor& actor, std::span<const Value* const> inputs, int64_t act,
                         ActResult* result) = 0;

  /// Starts to fetch a slot of another rank; kDone follows when `body` is filled.
  virtual void Pull(Actor& actor, TaskId producer, RegisterId register_id, uint8_t slot,
                    std::shared_ptr<PulledBody> body) = 0;

  /// A slot that other ranks may pull has been filled / is free again.
  virtual void Expose(RegisterId register_id, uint8_t slot, const Value& value) = 0;
  virtual void Withdraw(RegisterId register_id, uint8_t slot) = 0;

  /// The actor cannot go on: the run has to end. The actor does nothing more until it is aborted. After the
  /// abort once more if a launch that was under way then has failed.
  virtual void Failed(Actor& actor, Status status) = 0;
  /// The actor is kDone. Called exactly once a run.
  virtual void Finished(Actor& actor) = 0;
};

}  // namespace heddle::actor

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/programs/plan.h"

namespace heddle::actor {

enum class MessageType : uint8_t {
  kReady,  ///< producer -> consumer: slot filled, you may read
  kAck,    ///< consumer -> producer: I no longer read the slot
  kEos,    ///< producer -> consumer: no kReady will follow on this edge
  kStart,  ///< runtime -> stream: begin the run
  kDone,   ///< link or device -> actor: a pull (port kPullDone) or an asynchronous launch (kLaunchDone) ended
  kAbort,  ///< runtime -> stream: end the run, whatever its actors are at
  kIdle,   ///< runtime -> runtime: nothing has happened here for a while (stall detection)
  kWake,   ///< runtime -> stream: look around; changes nothing
};
/// True for what actors of one rank send to actors of another. Failures cross ranks as Link::SendError,
/// because they carry text.
constexpr bool CrossesRanks(MessageType type) {
  return type == MessageType::kReady || type == MessageType::kAck || type == MessageType::kEos;
}
constexpr uint16_t kPullDone = 0;  ///< Ports of kDone.
constexpr uint16_t kLaunchDone = 1;

/// 32 bytes, trivially copyable (runtime reference 2.3). `run` tells the plan instance: stale messages are
/// dropped.
struct Message {
  TaskId destination;
  TaskId source;
  uint32_t run = 0;
  RegisterId register_id = 0;
  uint32_t sequence = 0;
  uint8_t slot = 0;
  MessageType type = MessageType::kReady;
  uint16_t port = 0;  ///< Position among the destination's edges (kReady, kEos) or produced registers (kAck).
};
static_assert(sizeof(Message) == 32 && std::is_trivially_copyable_v<Message>);

}  // namespace heddle::actor

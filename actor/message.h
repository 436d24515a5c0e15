// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/plan.h"

namespace heddle::actor {

enum class MessageType : uint8_t {
  kReady,  ///< producer -> consumer: slot filled, you may read
  kAck,    ///< consumer -> producer: I no longer read the slot
  kEos,    ///< producer -> consumer: no kReady will follow on this edge
  kError,  ///< reserved: failures cross ranks as Link::SendError, because they carry text
  kStart,  ///< runtime -> stream: begin the run
  kDone,   ///< link -> actor: an asynchronous launch ended; stream -> runtime: all its actors are done
  kAbort,  ///< runtime -> stream: end the run, whatever its actors are at
  kIdle,   ///< runtime -> runtime: nothing has happened here for a while (stall detection)
};

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

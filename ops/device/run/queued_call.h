// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/device/device.h"

namespace heddle::ops {

/// A call of an operator whose commands are in the queue of a device. It holds what they read and write of
/// the host's memory, and so it outlives them; the inputs of the call do, too.
class QueuedCall {
 public:
  virtual ~QueuedCall() = default;
  /// Whether it has more commands to queue when those that are queued are done: a product of many launches.
  virtual bool HasMore() const { return false; }
  /// Queues some of them, on the thread that uses the queue. kCancelled when the job is; else as
  /// DeviceOperators::Queue. After an error, too, commands may be in the queue (HoldUntilDone).
  virtual Status QueueMore() { return OkStatus(); }
  /// Whether the host has work left when all commands are done. If not, the results are there: whoever reads
  /// them in the same queue need not wait, and the call can fail only with the device.
  virtual bool HasRest() const = 0;
  /// Whether that work may take longer than a message (docs/devices.md): joining payloads of many leaves.
  virtual bool IsLong() const { return false; }
  /// That work, once, when all commands are done and went well: fills the results that are not in the memory
  /// of the device. kUnimplemented, with the reason, for a call that is left to the host after all.
  virtual Status Finish(std::span<Value> results) = 0;
};

/// Keeps what commands read and write of the host's memory until those that are in the queue are done: of a
/// call that ends before them.
template <typename Held>
void HoldUntilDone(DeviceQueue& queue, Held held) {
  if (!queue.WhenDone([held = std::move(held)](const Status&) {}).ok()) static_cast<void>(queue.Finish());
}

}  // namespace heddle::ops

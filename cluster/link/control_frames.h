// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "core/status.h"
#include "proto/executor.pb.h"

namespace heddle::cluster {

/// The control frames of one pair of ranks, both ways, over streams that may break: every frame arrives once
/// and in order. Frames are numbered by their order; those that the other side has not acknowledged are kept
/// and sent again on the next stream, which begins with both sides saying how many they have got. Knows no
/// network; not thread-safe.
class ControlFrames {
 public:
  void Push(ControlFrame frame) { kept_.push_back(std::move(frame)); }
  /// Messages that no stream has been given and that may be more: of those on a stream that broke the other
  /// side may have got some.
  MessageBatch& OpenBatch();

  /// A new stream stands in for the one before.
  void Begin();
  /// The next frame for the stream; false when there is none now.
  bool Next(ControlFrame* frame);
  bool HasNext() const {
    return hello_due_ || (established_ && (sent_ < kept_.size() || acknowledgement_due_));
  }
  /// Takes in a frame of the stream: true when it is for the rank itself. kDataLoss when the other side
  /// cannot be right.
  Result<bool> Accept(const ControlFrame& frame);

  /// Both sides have said where they are.
  bool established() const { return established_; }
  bool AllAcknowledged() const { return kept_.empty(); }

 private:
  Status Acknowledge(uint64_t count);

  std::deque<ControlFrame> kept_;  // not acknowledged
  uint64_t first_ = 0;             // frames before kept_
  size_t sent_ = 0;                // of kept_, on the present stream
  size_t ever_sent_ = 0;           // of kept_, on any stream
  uint64_t received_ = 0;
  uint64_t told_ = 0;  // the last received_ that the other side was told
  bool hello_due_ = false;
  bool established_ = false;
  bool acknowledgement_due_ = false;
};

}  // namespace heddle::cluster

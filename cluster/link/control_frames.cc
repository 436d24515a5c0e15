// SPDX-License-Identifier: Apache-2.0
#include "cluster/link/control_frames.h"

#include <algorithm>

namespace heddle::cluster {
namespace {

constexpr size_t kMostBatchBytes = 64 << 10;
// Acknowledgements travel with other frames; so many in one direction alone get one of their own.
constexpr uint64_t kMostSilentlyReceived = 32;

}  // namespace

MessageBatch& ControlFrames::OpenBatch() {
  const bool is_open =
      ever_sent_ < kept_.size() && kept_.back().has_batch() && kept_.back().ByteSizeLong() < kMostBatchBytes;
  if (!is_open) kept_.emplace_back();
  return *kept_.back().mutable_batch();
}

void ControlFrames::Begin() {
  hello_due_ = true;
  established_ = false;
  sent_ = 0;
}

bool ControlFrames::Next(ControlFrame* frame) {
  if (!HasNext()) return false;
  if (hello_due_) {
    hello_due_ = false;
    frame->mutable_linked()->set_received(received_);
  } else {
    if (sent_ < kept_.size()) *frame = kept_[sent_++];
    ever_sent_ = std::max(ever_sent_, sent_);
    frame->set_acknowledged(received_);
  }
  told_ = received_;
  acknowledgement_due_ = false;
  return true;
}

Result<bool> ControlFrames::Accept(const ControlFrame& frame) {
  if (frame.has_linked()) {
    if (established_) return DataLoss("a peer began twice");
    HEDDLE_RETURN_IF_ERROR(Acknowledge(frame.linked().received()));
    established_ = true;
    return false;
  }
  if (!established_) return DataLoss("a peer did not begin at the beginning");
  HEDDLE_RETURN_IF_ERROR(Acknowledge(frame.acknowledged()));
  if (frame.body_case() == ControlFrame::BODY_NOT_SET) return false;
  ++received_;
  // Whoever says its last word waits for the answer.
  acknowledgement_due_ = acknowledgement_due_ || frame.has_end() || frame.has_failure() ||
                         received_ - told_ >= kMostSilentlyReceived;
  return true;
}

Status ControlFrames::Acknowledge(uint64_t count) {
  if (count < first_ || count > first_ + kept_.size())
    return DataLoss("a peer acknowledged what it cannot have got");
  const auto done = static_cast<size_t>(count - first_);
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(done));
  first_ = count;
  sent_ -= std::min(sent_, done);
  ever_sent_ -= std::min(ever_sent_, done);
  return OkStatus();
}

}  // namespace heddle::cluster

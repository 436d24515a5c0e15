// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/recursion_cache.h"

#include <algorithm>
#include <utility>

namespace heddle::ops {
namespace {

constexpr size_t kMostKept = 16;
constexpr size_t kMostPrograms = 1024;

}  // namespace

RecursionCache::RecursionCache() : workspaces_(std::make_unique<ThreadSlots<BodyWorkspace>>()) {}
RecursionCache::~RecursionCache() = default;

std::shared_ptr<const PackedWeights> RecursionCache::Of(const Matrix& b) {
  std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) { return kept->IsOf(b); });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    kept_.push_front(std::make_shared<const PackedWeights>(b));
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  return kept_.front();
}

std::unique_ptr<BodyWorkspace> RecursionCache::TakeWorkspace() {
  std::unique_ptr<BodyWorkspace> workspace = workspaces_->Take();
  return workspace != nullptr ? std::move(workspace) : std::make_unique<BodyWorkspace>();
}
void RecursionCache::GiveBack(std::unique_ptr<BodyWorkspace> workspace) {
  workspaces_->GiveBack(std::move(workspace));
}

std::shared_ptr<const BodyProgram> RecursionCache::ProgramOf(
    const std::shared_ptr<const RecursiveBody>& body) {
  std::lock_guard lock(mutex_);
  if (programs_.size() >= kMostPrograms && !programs_.contains(body.get())) programs_.clear();
  Lowered& lowered = programs_[body.get()];
  if (lowered.program == nullptr) lowered = {body, std::make_shared<const BodyProgram>(body)};
  return lowered.program;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/run/recursion_cache.h"

#include <utility>

namespace heddle::ops {

RecursionCache::RecursionCache() : workspaces_(std::make_unique<ThreadSlots<BodyWorkspace>>()) {}
RecursionCache::~RecursionCache() = default;

std::shared_ptr<const PackedWeights> RecursionCache::PackedOf(const Matrix& b) {
  std::lock_guard lock(mutex_);
  if (const auto* const found = packed_.FindIf([&](const auto& packed) { return packed->IsOf(b); }))
    return *found;
  return packed_.Add(std::make_shared<const PackedWeights>(b));
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
  if (const Lowered* const found = programs_.Find(body.get())) return found->program;
  return programs_.Add(body.get(), {body, std::make_shared<const BodyProgram>(body)}).program;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/values/matrix.h"
#include "ops/base/thread_slots.h"
#include "ops/recursion/body/body_program.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::ops {

/// The last of them, and how the last bodies are computed. Thread-safe, where threads run in arenas of their
/// own: who packs must not take up another evaluation meanwhile.
class RecursionCache {
 public:
  RecursionCache();
  ~RecursionCache();
  std::shared_ptr<const PackedWeights> Of(const Matrix& b);
  std::shared_ptr<const BodyProgram> ProgramOf(const std::shared_ptr<const RecursiveBody>& body);
  std::unique_ptr<BodyWorkspace> TakeWorkspace();
  void GiveBack(std::unique_ptr<BodyWorkspace> workspace);

 private:
  struct Lowered {
    std::shared_ptr<const RecursiveBody> body;  // Kept: no other body takes its place in memory.
    std::shared_ptr<const BodyProgram> program;
  };
  std::mutex mutex_;
  std::list<std::shared_ptr<const PackedWeights>> kept_;  // The last used first.
  std::unordered_map<const RecursiveBody*, Lowered> programs_;
  const std::unique_ptr<ThreadSlots<BodyWorkspace>> workspaces_;
};

}  // namespace heddle::ops

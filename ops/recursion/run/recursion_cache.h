// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "core/recently_used.h"
#include "core/values/matrix.h"
#include "ops/base/thread_slots.h"
#include "ops/recursion/body/body_program.h"
#include "ops/recursion/body/packed_weights.h"

namespace heddle::ops {

/// What evaluations of recursions share: the last matrices that were packed, the programs of the last bodies,
/// and workspaces. Thread-safe, where threads run in arenas of their own: a thread that packs a matrix must
/// not begin another evaluation meanwhile, as it holds the lock.
class RecursionCache {
 public:
  RecursionCache();
  ~RecursionCache();
  std::shared_ptr<const PackedWeights> PackedOf(const Matrix& b);
  std::shared_ptr<const BodyProgram> ProgramOf(const std::shared_ptr<const RecursiveBody>& body);
  std::unique_ptr<BodyWorkspace> TakeWorkspace();
  void GiveBack(std::unique_ptr<BodyWorkspace> workspace);

 private:
  static constexpr size_t kMostPacked = 16;
  static constexpr size_t kMostPrograms = 1024;

  struct Lowered {
    std::shared_ptr<const RecursiveBody> body;  // Held, so that no other body takes its place in memory.
    std::shared_ptr<const BodyProgram> program;
  };
  std::mutex mutex_;
  RecentlyUsedList<std::shared_ptr<const PackedWeights>> packed_{kMostPacked};
  RecentlyUsedMap<const RecursiveBody*, Lowered> programs_{kMostPrograms};
  const std::unique_ptr<ThreadSlots<BodyWorkspace>> workspaces_;
};

}  // namespace heddle::ops

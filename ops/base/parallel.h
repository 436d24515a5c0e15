// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

// The only way kernels run in parallel. Hides oneTBB, so that kernel files compile fast.
namespace heddle::ops {

/// Calls body(begin, end) for disjoint ranges that cover [0, count), each a multiple of `grain` long except
/// the last, on the threads of the calling arena; serially when count <= grain or the arena has one thread.
/// The body must give results that do not depend on how the range was cut.
void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

/// Threads that ParallelFor would use here.
int ParallelThreads();

/// While one lives, loops of its thread run serially: for what is itself one part of a loop of small parts.
class SerialLoops {
 public:
  SerialLoops();
  ~SerialLoops();
  SerialLoops(const SerialLoops&) = delete;
  SerialLoops& operator=(const SerialLoops&) = delete;

 private:
  bool before_;
};

/// A set of worker threads of fixed size in which kernels run (one per executor). Every thread has MXCSR set
/// to round to nearest without flush to zero.
class Arena {
 public:
  explicit Arena(int threads);
  ~Arena();
  int threads() const { return threads_; }
  /// Runs work() on the calling thread as a member of the arena; returns when it is done.
  void Execute(const std::function<void()>& work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int threads_;
};

/// Round to nearest, no flush to zero, no denormals-are-zero (docs/numerics.md R1). Each thread we own calls
/// it once.
void SetFloatingPointMode();

}  // namespace heddle::ops

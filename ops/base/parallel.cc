// SPDX-License-Identifier: Apache-2.0
#include "ops/base/parallel.h"

#include <immintrin.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/memory/counted_heap.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace heddle::ops {
namespace {

// About: enough to balance, also where another program holds up one of the threads for milliseconds; few
// enough to start fast.
constexpr int64_t kRangesOfThread = 16;

constinit thread_local bool loops_are_serial = false;

// What oneTBB orders, for ThreadSanitizer, which does not see into that library: all that happens before a
// loop comes before its parts, and they come before what follows the loop.
class LoopOrder {
 public:
#if defined(__SANITIZE_THREAD__)
  LoopOrder() { __tsan_release(&begin_); }
  ~LoopOrder() { __tsan_acquire(&end_); }
  void BeginPart() { __tsan_acquire(&begin_); }
  void EndPart() { __tsan_release(&end_); }

 private:
  char begin_ = 0, end_ = 0;
#else
  LoopOrder() {}
  void BeginPart() {}
  void EndPart() {}
#endif
};

}  // namespace

void SetFloatingPointMode() { _mm_setcsr((_mm_getcsr() & ~(0x6000u | 0x8040u)) | 0x1f80u); }

int ParallelThreads() { return loops_are_serial ? 1 : tbb::this_task_arena::max_concurrency(); }

SerialLoops::SerialLoops() : before_(std::exchange(loops_are_serial, true)) {}
SerialLoops::~SerialLoops() { loops_are_serial = before_; }

void ParallelFor(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const int threads = ParallelThreads();
  if (count <= grain || threads == 1) {
    body(0, count);
    return;
  }
  // Each range is a whole number of grains.
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t chunk = std::max<int64_t>(1, grains / (int64_t{threads} * kRangesOfThread)) * grain;
  const int64_t chunks = (count + chunk - 1) / chunk;
  LoopOrder order;
  const HeapMode mode = CurrentHeapMode();
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, chunks, 1),
      [&](const tbb::blocked_range<int64_t>& range) {
        const HeapModeScope same(mode);  // What is refused here reaches the caller.
        order.BeginPart();
        for (int64_t i = range.begin(); i < range.end(); ++i)
          body(i * chunk, std::min(count, (i + 1) * chunk));
        order.EndPart();
      },
      tbb::simple_partitioner());
}

struct Arena::Impl {
  explicit Impl(int threads) : arena(threads, 1) {
    // Else oneTBB warns that it has fewer workers, on the standard error of the program.
    if (threads > tbb::info::default_concurrency())
      more_than_cores.emplace(tbb::global_control::max_allowed_parallelism, static_cast<size_t>(threads));
    arena.initialize();
    // The observer belongs to the arena, so threads of other arenas are left alone.
    observer = std::make_unique<Observer>(arena);
  }
  struct Observer : tbb::task_scheduler_observer {
    explicit Observer(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) { observe(true); }
    ~Observer() override { observe(false); }
    void on_scheduler_entry(bool) override { SetFloatingPointMode(); }
  };
  std::optional<tbb::global_control> more_than_cores;
  tbb::task_arena arena;
  std::unique_ptr<Observer> observer;
};

Arena::Arena(int threads)
    : impl_(std::make_unique<Impl>(std::max(threads, 1))), threads_(std::max(threads, 1)) {}
Arena::~Arena() = default;
void Arena::Execute(const std::function<void()>& work) { impl_->arena.execute(work); }

}  // namespace heddle::ops

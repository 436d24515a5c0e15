// SPDX-License-Identifier: Apache-2.0
// The heap of Heddle's own executables: malloc and its relatives, which count (core/memory/counted_heap.h). A
// program that embeds the engine keeps the heap that it has, so no library holds this file.
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <utility>

#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "core/memory/heap_counters.h"
#include "core/memory/heap_of_process.h"
#include "core/memory/memory_bounds.h"
#include "core/memory/memory_budget.h"

namespace heddle {
namespace {

constexpr int kExitOutOfMemory = 5;
// Whoever asks for more does not expect to get it (a size of a script, a test).
constexpr size_t kMostPlausibleBytes = size_t{1} << 40;

constexpr int kArenasInLittleSpace = 2;
// Larger blocks are mappings of their own, which go back to the machine when they are freed; otherwise glibc
// keeps blocks of up to 32 MiB, that nobody counts, between others that are in use.
constexpr int kMappedFromBytes = 4 << 20;
constexpr int kKeptAtTheTopBytes = 8 << 20;

// No allocation on the way: there is no memory.
[[noreturn]] void ExitOutOfMemory(size_t bytes) {
  const MemoryBudget& budget = MemoryBudget::Process();
  char text[512];
  const int size = std::snprintf(
      text, sizeof(text),
      "heddle: error: out of memory: %zu bytes are not to be had: %lld of %lld bytes in use\n"
      "  note: the machine, a control group or ulimit gives less than the limit; state a smaller --memory BYTES, "
      "use smaller or sparser matrices, or more workers\n",
      bytes, static_cast<long long>(budget.used()), static_cast<long long>(budget.limit()));
  if (size > 0) (void)!write(STDERR_FILENO, text, static_cast<size_t>(size));
  _exit(kExitOutOfMemory);
}

size_t StackBytes() {
  rlimit limit{};
  return getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kMostPlausibleBytes ? limit.rlim_cur : 0;
}

}  // namespace

void PrepareHeap() {
  mallopt(M_MMAP_THRESHOLD, kMappedFromBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptAtTheTopBytes);
  if (ReadMemoryBounds().address_space != MemoryBounds::kNoBound) mallopt(M_ARENA_MAX, kArenasInLittleSpace);
  static std::terminate_handler before = std::get_terminate();
  std::set_terminate([] {
    if (const std::exception_ptr failure = std::current_exception()) {
      try {
        std::rethrow_exception(failure);
      } catch (const std::bad_alloc&) {
        ExitOutOfMemory(heap::refused_bytes.load());
      } catch (const std::system_error& error) {  // No room for the stack of a thread.
        if (error.code() == std::errc::resource_unavailable_try_again) ExitOutOfMemory(StackBytes());
      } catch (...) {
      }
    }
    before();
  });
}

}  // namespace heddle

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// glibc's own heap under the names that a heap in the program leaves to it.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
}

namespace heddle {
namespace {

constexpr int64_t kFlushBytes = int64_t{64} << 10;  // What a thread counts on its own.
constinit thread_local bool is_making_room = false;
[[maybe_unused]] const bool kIsCounted = (heap::is_counted = true);

// Adds what a thread has counted when it ends.
struct LastCount {
  ~LastCount() { heap::bytes.fetch_add(std::exchange(heap::own_bytes, 0), std::memory_order_relaxed); }
};

// Bytes of the chunk that holds a block: what glibc keeps before it, less the flags in its low bits. The
// public malloc_usable_size() also looks behind the block, which costs as much as the allocation itself
// (CountedHeapTest.ChunksAreAsLargeAsTheHeapSays compares them).
inline int64_t ChunkBytes(const void* block) {
  constexpr size_t kFlags = 7;
  return static_cast<int64_t>(static_cast<const size_t*>(block)[-1] & ~kFlags);
}

[[gnu::noinline]] void ShareCount() {
  heap::bytes.fetch_add(std::exchange(heap::own_bytes, 0), std::memory_order_relaxed);
  thread_local LastCount last_count;
  (void)&last_count;
}

inline bool IsSmall(int64_t bytes) { return bytes < kFlushBytes && bytes > -kFlushBytes; }

inline void Count(int64_t bytes) {
  heap::own_bytes += bytes;
  if (!IsSmall(heap::own_bytes)) ShareCount();
}

// True when the budget holds all that is counted, perhaps after free blocks were returned to the machine.
bool HasRoom(int64_t bytes) {
  if (heap::bound_of_process != heap::kNoBound) return RoomInBoundOfProcess() >= 0;
  MemoryBudget& budget = MemoryBudget::Process();
  if (!budget.IsOver()) return true;
  is_making_room = true;
  while (budget.IsOver() && BlockPool::Process().Trim(std::max<int64_t>(bytes, kFlushBytes)) > 0) {
  }
  is_making_room = false;
  return !budget.IsOver();
}

// Free blocks of the pool and of the heap go back to the machine.
bool Reclaim() {
  if (heap::bound_of_process != heap::kNoBound) return malloc_trim(0) != 0;
  if (heap::mode == HeapMode::kInPool || is_making_room) return malloc_trim(0) != 0;
  is_making_room = true;
  const bool any = BlockPool::Process().Trim() > 0;
  is_making_room = false;
  return malloc_trim(0) != 0 || any;
}

void* Refuse(size_t bytes, bool by_budget) {
  // Counts of threads are shared late. What the budget refuses is more than the limit with what is in use.
  const MemoryBudget& budget = MemoryBudget::Process();
  const auto asked = static_cast<int64_t>(std::min(bytes, kMostPlausibleBytes));
  const int64_t least = by_budget ? budget.limit() - asked + 1 : 0;
  heap::refused_bytes.store(bytes, std::memory_order_relaxed);
  heap::used_when_refused.store(std::max(budget.used(), least), std::memory_order_relaxed);
  errno = ENOMEM;
  return nullptr;
}

bool MayRefuse() { return heap::mode == HeapMode::kRefuses && !is_making_room; }

// Of `bytes` that are many, or that the heap had none for at first.
template <typename Get>
[[gnu::noinline]] void* AllocateLarge(size_t bytes, int64_t before, const Get& get) {
  const int64_t more = static_cast<int64_t>(std::min(bytes, kMostPlausibleBytes)) - before;
  // Counted first, so that of two threads one at least sees the other.
  const int64_t reserved = MayRefuse() && more >= kFlushBytes ? more : 0;
  heap::bytes.fetch_add(reserved, std::memory_order_relaxed);
  void* block = reserved > 0 && !HasRoom(more) ? nullptr : get();
  const bool is_refused = block == nullptr && reserved > 0 && !HasRoom(0);
  if (block == nullptr && !is_refused && bytes < kMostPlausibleBytes) {
    if (Reclaim()) block = get();
    if (block == nullptr && !MayRefuse()) ExitOutOfMemory(bytes);
  }
  Count(block == nullptr ? -reserved : ChunkBytes(block) - before - reserved);
  return block == nullptr ? Refuse(bytes, is_refused) : block;
}

// The count of this thread has grown enough to be shared: is all still inside?
[[gnu::noinline]] void* KeepOrRefuse(void* block, size_t bytes, int64_t before) {
  ShareCount();
  if (before > 0 || !MayRefuse() || HasRoom(0)) return block;
  Count(-ChunkBytes(block));
  __libc_free(block);
  return Refuse(bytes, /*by_budget=*/true);
}

// `get` allocates `bytes` in place of a chunk of `before` bytes.
template <typename Get>
inline void* Allocate(size_t bytes, int64_t before, const Get& get) {
  ++heap::own_allocations;
#ifdef HEDDLE_FAILING_HEAP
  if (MayRefuse() && heap::refused_at.load(std::memory_order_relaxed) != 0 &&
      heap::refusable_asked.fetch_add(1) + 1 == heap::refused_at.load())
    return Refuse(bytes, /*by_budget=*/false);
#endif
  if (bytes >= static_cast<size_t>(kFlushBytes)) return AllocateLarge(bytes, before, get);
  void* const block = get();
  if (block == nullptr) return AllocateLarge(bytes, before, get);
  heap::own_bytes += ChunkBytes(block) - before;
  return IsSmall(heap::own_bytes) ? block : KeepOrRefuse(block, bytes, before);
}

void* AllocateAligned(size_t alignment, size_t bytes) {
  return Allocate(bytes, 0, [&] { return __libc_memalign(alignment, bytes); });
}

}  // namespace
}  // namespace heddle

// All libraries of the process allocate here.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(size_t bytes) noexcept {
  return heddle::Allocate(bytes, 0, [&] { return __libc_malloc(bytes); });
}

void* calloc(size_t count, size_t bytes) noexcept {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return heddle::Refuse(SIZE_MAX, /*by_budget=*/false);
  return heddle::Allocate(total, 0, [&] { return __libc_calloc(count, bytes); });
}

void* realloc(void* block, size_t bytes) noexcept {
  const int64_t before = block == nullptr ? 0 : heddle::ChunkBytes(block);
  if (block != nullptr && bytes == 0) {
    heddle::Count(-before);
    __libc_free(block);
    return nullptr;
  }
  return heddle::Allocate(bytes, before, [&] { return __libc_realloc(block, bytes); });
}

void free(void* block) noexcept {
  if (block == nullptr) return;
  heddle::Count(-heddle::ChunkBytes(block));
  __libc_free(block);
}

void* memalign(size_t alignment, size_t bytes) noexcept { return heddle::AllocateAligned(alignment, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return heddle::AllocateAligned(alignment, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* const got = heddle::AllocateAligned(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *block = got;
  return 0;
}

// The first use of a thread_local object notes that the thread has to destroy it, and glibc ends the process
// where it has no memory for the note.
int __cxa_thread_atexit_impl(void (*destroy)(void*), void* object, void* library) {
  using Next = int (*)(void (*)(void*), void*, void*);
  static const auto next = reinterpret_cast<Next>(dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl"));
  const heddle::HeapModeScope given(heddle::HeapMode::kCounts);
  return next(destroy, object, library);
}

}  // extern "C"
#pragma GCC visibility pop

#endif  // no sanitizer

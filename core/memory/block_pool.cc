// SPDX-License-Identifier: Apache-2.0
#include "core/memory/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "core/memory/counted_heap.h"
#include "core/memory/ways_out_of_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace heddle {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSmallest = 64;
constexpr int kPlainClasses = 7;                // 64 ... 4096
constexpr int64_t kLargest = int64_t{1} << 47;  // More than any address space we run in.

// Under smaller limits, chunks are not made of huge pages: the first block that is cut from one would take a
// huge page of memory, which is as much as 34 MiB for one block of each class, and the budget is charged for
// blocks.
constexpr int64_t kLeastLimitForHugeChunks = int64_t{512} << 20;

// A fresh mapping; aligned to a huge page when it is as large as one, and then made of huge pages or of none.
// nullptr on failure.
void* Map(int64_t bytes, bool of_huge_pages) {
  const bool huge = bytes >= kHugePage;
  const auto length = static_cast<size_t>(huge ? bytes + kHugePage : bytes);
  void* const mapped =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (!huge) return mapped;
  const auto begin = reinterpret_cast<uintptr_t>(mapped);
  const uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const size_t before = aligned - begin;
  const size_t after = static_cast<size_t>(kHugePage) - before;
  if (before > 0) munmap(mapped, before);
  if (after > 0) munmap(reinterpret_cast<void*>(aligned + static_cast<size_t>(bytes)), after);
  void* const block = reinterpret_cast<void*>(aligned);
  // Only a wish: without huge pages all is slower, not wrong.
  madvise(block, static_cast<size_t>(bytes), of_huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return block;
}

void Unmap(void* block, int64_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<size_t>(bytes));
  munmap(block, static_cast<size_t>(bytes));
}

void RaiseTo(std::atomic<int64_t>* peak, int64_t value) {
  int64_t seen = peak->load(std::memory_order_relaxed);
  while (value > seen && !peak->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

}  // namespace

Status DoesNotFit(const std::string& what, const MemoryBudget& budget) {
  return DoesNotFit(what, budget.used(), budget);
}

Status DoesNotFit(const std::string& what, int64_t used_bytes, const MemoryBudget& budget) {
  return ResourceExhausted("out of memory: {} does not fit: {} of {} bytes in use", what, used_bytes,
                           budget.limit())
      .WithNote(std::string(kWaysOutOfMemory));
}

int BlockPool::ClassOf(int64_t bytes) {
  bytes = std::max(bytes, kSmallest);
  const auto size = static_cast<uint64_t>(bytes);
  if (bytes <= 4096) return std::bit_width(size - 1) - 6;
  if (bytes <= kHugePage / 4 * 3) {
    const int power = std::bit_width(size - 1) - 1;  // 2^power < bytes <= 2^(power + 1)
    const bool half = bytes <= int64_t{3} << (power - 1);
    return kPlainClasses + 2 * (power - 12) + (half ? 0 : 1);
  }
  const int64_t pages = (bytes + kHugePage - 1) / kHugePage;
  if (pages <= 8) return kSmallClasses + static_cast<int>(pages) - 1;
  const int power = std::bit_width(static_cast<uint64_t>(pages - 1)) - 1;  // 2^power < pages <= 2^(power + 1)
  const int64_t step = int64_t{1} << (power - 3);
  const int64_t eighths = (pages + step - 1) / step;  // 9 ... 16
  return kSmallClasses + 8 * (power - 2) + static_cast<int>(eighths) - 9;
}

int64_t BlockPool::BytesOfClass(int index) {
  if (index < kPlainClasses) return kSmallest << index;
  if (index < kSmallClasses) {
    const int step = index - kPlainClasses;
    return step % 2 == 0 ? int64_t{6144} << (step / 2) : int64_t{8192} << (step / 2);
  }
  const int large = index - kSmallClasses;
  if (large < 8) return (large + 1) * kHugePage;
  return int64_t{9 + large % 8} * (int64_t{1} << (large / 8 - 1)) * kHugePage;
}

int64_t BlockPool::ClassBytes(int64_t bytes) { return BytesOfClass(ClassOf(bytes)); }

// Divided by its blocks almost evenly; small classes take little, so that a short script touches few pages.
int64_t BlockPool::ChunkBytes(int index) {
  const int64_t bytes = BytesOfClass(index);
  if (bytes <= 4096) return int64_t{256} << 10;
  return bytes <= kHugePage / 8 ? kHugePage : 3 * kHugePage;
}

BlockPool& BlockPool::Process() {
  static BlockPool* pool = new BlockPool(&MemoryBudget::Process());
  return *pool;
}

BlockPool::~BlockPool() {
  HEDDLE_CHECK(in_use_bytes_ == 0, "a block outlives its pool");
  Trim();
}

BlockPool::Chunk& BlockPool::ChunkOf(SizeClass* size_class, const void* block) {
  const auto behind = std::upper_bound(
      size_class->chunks.begin(), size_class->chunks.end(), block,
      [](const void* at, const Chunk& chunk) { return at < static_cast<void*>(chunk.begin); });
  return *std::prev(behind);
}

void* BlockPool::TakeFree(int index) {
  SizeClass& size_class = classes_[static_cast<size_t>(index)];
  const int64_t bytes = BytesOfClass(index);
  const std::lock_guard lock(size_class.mutex);
  if (size_class.free.empty()) return nullptr;
  void* const block = size_class.free.back();
  size_class.free.pop_back();
  free_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  if (index >= kSmallClasses) {
    trimmable_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return block;
  }
  Chunk& chunk = ChunkOf(&size_class, block);
  if (chunk.free_bytes == chunk.cut_bytes)
    trimmable_bytes_.fetch_sub(chunk.cut_bytes, std::memory_order_relaxed);
  chunk.free_bytes -= bytes;
  return block;
}

void* BlockPool::TakeFresh(int index) {
  const int64_t bytes = BytesOfClass(index);
  if (index >= kSmallClasses) return Map(bytes, /*of_huge_pages=*/true);
  SizeClass& size_class = classes_[static_cast<size_t>(index)];
  const std::lock_guard lock(size_class.mutex);
  const int64_t chunk_bytes = ChunkBytes(index);
  if (size_class.cut == nullptr || ChunkOf(&size_class, size_class.cut).cut_bytes + bytes > chunk_bytes) {
    size_class.cut = static_cast<char*>(Map(chunk_bytes, budget_->limit() >= kLeastLimitForHugeChunks));
    if (size_class.cut == nullptr) return nullptr;
    const auto behind = std::upper_bound(size_class.chunks.begin(), size_class.chunks.end(), size_class.cut,
                                         [](char* begin, const Chunk& chunk) { return begin < chunk.begin; });
    size_class.chunks.insert(behind, {.begin = size_class.cut, .cut_bytes = 0, .free_bytes = 0});
  }
  Chunk& chunk = ChunkOf(&size_class, size_class.cut);
  void* const block = chunk.begin + chunk.cut_bytes;
  // Another thread may have freed all that was cut before.
  if (chunk.free_bytes == chunk.cut_bytes)
    trimmable_bytes_.fetch_sub(chunk.cut_bytes, std::memory_order_relaxed);
  chunk.cut_bytes += bytes;
  return block;
}

Result<void*> BlockPool::Allocate(int64_t bytes) {
  // Tells the bytes of the block, so that they and those in use are more than the limit.
  const auto does_not_fit = [&] {
    const int64_t needed = bytes > kLargest ? bytes : BytesOfClass(ClassOf(bytes));
    return DoesNotFit(fmt::format("a matrix of {} bytes", needed), *budget_);
  };
  HEDDLE_CHECK(bytes >= 0, "callers check sizes");
  const HeapModeScope in_pool(HeapMode::kInPool);
  if (bytes > kLargest) return does_not_fit();
  const int index = ClassOf(bytes);
  const int64_t class_bytes = BytesOfClass(index);
  void* block = TakeFree(index);
  if (block != nullptr) {
    reused_bytes_.fetch_add(class_bytes, std::memory_order_relaxed);
  } else {
    while (!budget_->TryCharge(class_bytes))
      if (class_bytes > budget_->limit() || Trim(class_bytes) == 0) return does_not_fit();
    block = TakeFresh(index);
    if (block == nullptr && Trim() > 0) block = TakeFresh(index);
    if (block == nullptr) {
      budget_->Release(class_bytes);
      return does_not_fit();
    }
    fresh_bytes_.fetch_add(class_bytes, std::memory_order_relaxed);
  }
  RaiseTo(&peak_in_use_bytes_, in_use_bytes_.fetch_add(class_bytes, std::memory_order_relaxed) + class_bytes);
  ASAN_POISON_MEMORY_REGION(block, static_cast<size_t>(class_bytes));
  ASAN_UNPOISON_MEMORY_REGION(block, static_cast<size_t>(bytes));
  return block;
}

void BlockPool::Free(void* block, int64_t bytes) {
  const HeapModeScope in_pool(HeapMode::kInPool);
  const int index = ClassOf(bytes);
  const int64_t class_bytes = BytesOfClass(index);
  ASAN_POISON_MEMORY_REGION(block, static_cast<size_t>(class_bytes));
  in_use_bytes_.fetch_sub(class_bytes, std::memory_order_relaxed);
  SizeClass& size_class = classes_[static_cast<size_t>(index)];
  const std::lock_guard lock(size_class.mutex);
  size_class.free.push_back(block);
  free_bytes_.fetch_add(class_bytes, std::memory_order_relaxed);
  if (index >= kSmallClasses) {
    trimmable_bytes_.fetch_add(class_bytes, std::memory_order_relaxed);
    return;
  }
  Chunk& chunk = ChunkOf(&size_class, block);
  chunk.free_bytes += class_bytes;
  if (chunk.free_bytes == chunk.cut_bytes)
    trimmable_bytes_.fetch_add(chunk.cut_bytes, std::memory_order_relaxed);
}

int64_t BlockPool::TrimLarge(int index, int64_t enough_bytes) {
  const int64_t bytes = BytesOfClass(index);
  std::vector<void*> returned;
  {
    SizeClass& size_class = classes_[static_cast<size_t>(index)];
    const std::lock_guard lock(size_class.mutex);
    while (!size_class.free.empty() && static_cast<int64_t>(returned.size()) * bytes < enough_bytes) {
      returned.push_back(size_class.free.back());
      size_class.free.pop_back();
    }
  }
  for (void* const block : returned) Unmap(block, bytes);
  return static_cast<int64_t>(returned.size()) * bytes;
}

// A chunk goes back when all blocks cut from it are free.
int64_t BlockPool::TrimSmall(int index) {
  SizeClass& size_class = classes_[static_cast<size_t>(index)];
  const std::lock_guard lock(size_class.mutex);
  if (size_class.free.empty()) return 0;
  const auto is_free = [](const Chunk& chunk) { return chunk.free_bytes == chunk.cut_bytes; };
  if (std::none_of(size_class.chunks.begin(), size_class.chunks.end(), is_free)) return 0;
  std::erase_if(size_class.free, [&](const void* block) { return is_free(ChunkOf(&size_class, block)); });
  int64_t returned = 0;
  for (const Chunk& chunk : size_class.chunks) {
    if (!is_free(chunk)) continue;
    Unmap(chunk.begin, ChunkBytes(index));
    returned += chunk.cut_bytes;
    if (chunk.begin == size_class.cut) size_class.cut = nullptr;
  }
  std::erase_if(size_class.chunks, is_free);
  return returned;
}

int64_t BlockPool::Trim(int64_t enough_bytes) {
  const HeapModeScope in_pool(HeapMode::kInPool);
  int64_t returned = 0;
  for (int index = kSmallClasses + kLargeClasses - 1; index >= 0 && returned < enough_bytes; --index) {
    const int64_t freed =
        index < kSmallClasses ? TrimSmall(index) : TrimLarge(index, enough_bytes - returned);
    free_bytes_.fetch_sub(freed, std::memory_order_relaxed);
    trimmable_bytes_.fetch_sub(freed, std::memory_order_relaxed);
    budget_->Release(freed);
    returned += freed;
  }
  return returned;
}

BlockPoolStatistics BlockPool::Statistics() const {
  return {fresh_bytes_.load(std::memory_order_relaxed),  reused_bytes_.load(std::memory_order_relaxed),
          in_use_bytes_.load(std::memory_order_relaxed), peak_in_use_bytes_.load(std::memory_order_relaxed),
          free_bytes_.load(std::memory_order_relaxed),   trimmable_bytes_.load(std::memory_order_relaxed)};
}

}  // namespace heddle

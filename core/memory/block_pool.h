// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/status.h"

namespace heddle {

/// What the pool did so far, for -stats.
struct BlockPoolStatistics {
  int64_t fresh_bytes =
      0;  ///< Taken from the operating system (and touched for the first time by the caller).
  int64_t reused_bytes = 0;  ///< Served by blocks that had been given back.
  int64_t in_use_bytes = 0;  ///< In blocks that somebody holds now.
  int64_t peak_in_use_bytes = 0;
  int64_t free_bytes = 0;       ///< Kept for reuse by blocks of the same class.
  int64_t trimmable_bytes = 0;  ///< Of these, what Trim() would return: room for blocks of any size.
};

/// The one allocator of matrix memory. Touching fresh pages costs more than computing with them, so blocks
/// are reused by size class before new memory is asked for, and large ones are made of huge pages.
///
/// Size classes: 64 bytes to 4 KiB in powers of two; then each power of two and 1.5 times it below 2 MiB;
/// from there multiples of 2 MiB, at most an eighth larger than asked for. Blocks below 2 MiB are cut from
/// chunks; larger ones are mappings of their own, aligned to 2 MiB. Free blocks go back to the operating
/// system only by Trim() or when the budget has no room for a new block. Thread-safe: one mutex per class.
class BlockPool {
 public:
  explicit BlockPool(MemoryBudget* budget) : budget_(budget) {}
  ~BlockPool();  ///< All blocks must have been given back.
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// The pool of the process, on MemoryBudget::Process(). Never destroyed.
  static BlockPool& Process();

  /// `bytes` uninitialised bytes, 64-byte aligned. kResourceExhausted when the budget or the machine has no
  /// room.
  Result<void*> Allocate(int64_t bytes);
  /// Takes back a block that Allocate(bytes) gave.
  void Free(void* block, int64_t bytes);
  /// Returns free blocks to the operating system, largest first, until `enough_bytes` are returned. How many
  /// were.
  int64_t Trim(int64_t enough_bytes = INT64_MAX);

  BlockPoolStatistics Statistics() const;
  MemoryBudget& budget() const { return *budget_; }

  /// Bytes of the block that holds `bytes`; what the budget is charged.
  static int64_t ClassBytes(int64_t bytes);

 private:
  static constexpr int kSmallClasses = 24;   // 64 bytes ... 1.5 MiB
  static constexpr int kLargeClasses = 240;  // 2 MiB ... 2^52 bytes

  // A mapping that blocks of one small class are cut from, front to back. It can be returned when all that
  // was cut is free.
  struct Chunk {
    char* begin;
    int64_t cut_bytes;
    int64_t free_bytes;
  };
  struct SizeClass {
    std::mutex mutex;
    std::vector<void*> free;
    std::vector<Chunk> chunks;  // By address; empty for large classes.
    char* cut = nullptr;        // The chunk that blocks are cut from now; nullptr: none.
  };

  static int ClassOf(int64_t bytes);
  static int64_t BytesOfClass(int index);
  static int64_t ChunkBytes(int index);
  static Chunk& ChunkOf(SizeClass* size_class, const void* block);
  void* TakeFree(int index);
  void* TakeFresh(
      int index);  // nullptr when the operating system has none; the budget was charged by the caller.
  int64_t TrimSmall(int index);
  int64_t TrimLarge(int index, int64_t enough_bytes);

  MemoryBudget* budget_;
  std::array<SizeClass, kSmallClasses + kLargeClasses> classes_;
  std::atomic<int64_t> fresh_bytes_{0};
  std::atomic<int64_t> reused_bytes_{0};
  std::atomic<int64_t> in_use_bytes_{0};
  std::atomic<int64_t> peak_in_use_bytes_{0};
  std::atomic<int64_t> free_bytes_{0};
  std::atomic<int64_t> trimmable_bytes_{0};
};

/// The error of an allocation that cannot be: "out of memory: <what> does not fit: ...", with a note saying
/// what to do.
Status DoesNotFit(const std::string& what, const MemoryBudget& budget);
/// The same where `used_bytes` were in use when it was refused; some may have been given back since.
Status DoesNotFit(const std::string& what, int64_t used_bytes, const MemoryBudget& budget);

}  // namespace heddle

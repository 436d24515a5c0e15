// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "core/status.h"

namespace heddle {

// The heap of Heddle's executables counts: malloc and its relatives, and with them operator new, the standard
// library and every library of the process, add up what they gave (core/memory/main/counted_malloc.cc). So a
// string, a vector of a kernel or a buffer of zlib is part of what MemoryBudget::Process() holds, without a
// word in the code that uses it. A program that embeds the engine has a heap of its own, which is not
// counted: there the budget holds blocks of matrices and buffers of files, and nothing below refuses.
//
// Where somebody can tell the user, the heap also refuses: while a HeapLimit lives on a thread, an allocation
// for which the budget has no room fails as one for which the machine has none, and WithinMemory() makes an
// error of it. Elsewhere (gRPC, LLVM, logs) allocations are counted and given; should the machine have none
// there, the process says so and ends with the exit code of memory, 5.

/// Whether the heap of this program is the one that counts: false where the engine is embedded, and under
/// sanitizers, which have a heap of their own.
bool HeapIsCounted();

/// Bytes of the heap that are in use, but for up to 64 KiB of each thread.
std::atomic<int64_t>& HeapBytes();

/// Blocks that the calling thread has asked the heap for so far; always 0 where the heap is not counted.
int64_t HeapAllocations();

/// How the heap treats the calling thread.
enum class HeapMode : uint8_t {
  kCounts,   ///< It gives all that the machine has.
  kRefuses,  ///< An allocation fails when the budget has no room for it.
  kInPool    ///< Called by the pool of matrices: it gives, and does not ask the pool for memory.
};
HeapMode CurrentHeapMode();

/// While it lives the calling thread's heap has this mode.
class HeapModeScope {
 public:
  explicit HeapModeScope(HeapMode mode);
  ~HeapModeScope();
  HeapModeScope(const HeapModeScope&) = delete;
  HeapModeScope& operator=(const HeapModeScope&) = delete;

 private:
  const HeapMode before_;
};

/// "out of memory: working memory of <bytes> bytes for '<user>' does not fit: ...", about the last allocation
/// that was refused; `is_absurd`: it was more than any container holds.
Status HeapRefused(std::string_view user, bool is_absurd);

/// "'<user>' was left by an exception: <its text>", kInternal.
Status LeftByException(std::string_view user, const std::exception& error);

/// For memory that comes from elsewhere than the heap, before std::bad_alloc is thrown for it: HeapRefused()
/// then tells its size.
void NoteRefused(int64_t bytes);

/// work(), whose allocations may be refused; then HeapRefused(user). `work` returns a Status or a Result. It
/// must not call what cannot bear a failing allocation, as LLVM and gRPC (HeapModeScope with kCounts).
///
/// Exceptions of libraries are caught where the library is called. One that was forgotten is our bug: it ends
/// what is done for the user here, and not the process: kInternal.
template <typename Work>
auto WithinMemory(std::string_view user, const Work& work) -> decltype(work()) {
  try {
    const HeapModeScope refuses(HeapMode::kRefuses);
    return work();
  } catch (const std::bad_alloc&) {
    return HeapRefused(user, false);
  } catch (const std::length_error&) {
    return HeapRefused(user, true);
  } catch (const std::exception& error) {
    return LeftByException(user, error);
  }
}

/// Called first by main of an executable whose heap counts. What is freed goes back to the machine soon. What
/// ends with std::terminate for want of memory says so, and ends with exit code 5. Where ulimit bounds the
/// address space, threads share few arenas of the heap, each of which maps 64 MiB.
void PrepareHeap();

}  // namespace heddle

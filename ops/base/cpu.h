// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"

namespace heddle::ops {

/// Which copy of the hot kernels runs. Both give the same bits (docs/numerics.md R4); AVX2 and FMA are the
/// baseline.
enum class Cpu : uint8_t { kAvx2, kAvx512 };

std::string_view Name(Cpu cpu);  ///< "avx2", "avx512"

/// True if this machine and its operating system can run that copy.
bool IsSupported(Cpu cpu);

/// The copy to use: the widest the machine supports, or what ForceCpu said. Decided at first use;
/// thread-safe, one load.
Cpu SelectedCpu();

/// Uses that copy from now on (--cpu, tests). kInvalidArgument if the machine cannot run it.
Status ForceCpu(Cpu cpu);
/// "avx2", "avx512" or "auto" (the widest); kInvalidArgument for other names too.
Status ForceCpu(std::string_view name);

/// How many memory pages a streaming loop should read in turns. Intel's prefetcher follows a stream in each
/// page, a few lines ahead, and those of one page do not cover the latency of memory, so 8; elsewhere 1.
int MemoryStreams();

/// Of one core; 1 MiB where the system does not say.
int64_t SecondLevelCacheBytes();
/// What loops and tiles are chosen by. A value, so that a test has any machine run what another one would.
struct Processor {
  int memory_streams = MemoryStreams();
  int64_t second_level_bytes = SecondLevelCacheBytes();
};

/// Arrays of so many bytes and more are read from memory; smaller ones may be in a cache.
inline constexpr int64_t kFetchedBytes = 4 << 20;

/// What --cpu says for a worker: the workers take the names of "NAME[,NAME...]" in turn.
std::string_view CpuOfRank(std::string_view names, int rank);

}  // namespace heddle::ops

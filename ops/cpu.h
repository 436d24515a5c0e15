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

/// So many pages are best read side by side, 1 where one page after the other is as fast. Intel's prefetcher
/// follows a stream in each page, a few lines ahead; those of one page do not cover the latency of memory.
int MemoryStreams();

/// True if loops fetch what they read next into the first-level cache: a load that misses it waits behind
/// what is fetched. Zen 4 can await 24 lines there, too few for its share of memory; into the second level it
/// fetches as fast as memory gives.
bool FetchesToFirstLevel();
/// True if operations of 512 bits take two turns of 256 bits (Zen 4).
bool SplitsWideVectors();
/// From now on the two above say what they say on Zen 4 (`as_zen4`), or on this machine: for tests, as the
/// loops of both run anywhere. Not while others ask.
void PretendZen4(bool as_zen4);

/// Of one core; 1 MiB where the system does not say.
int64_t SecondLevelCacheBytes();
/// Arrays of so many bytes and more are read from memory; smaller ones may be in a cache.
inline constexpr int64_t kFetchedBytes = 4 << 20;

/// What --cpu says for a worker: the workers take the names of "NAME[,NAME...]" in turn.
std::string_view CpuOfRank(std::string_view names, int rank);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/base/cpu.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace heddle::ops {
namespace {

Cpu WidestCpu() { return IsSupported(Cpu::kAvx512) ? Cpu::kAvx512 : Cpu::kAvx2; }

std::atomic<Cpu>& Selection() {
  static std::atomic<Cpu> selection = WidestCpu();
  return selection;
}

}  // namespace

std::string_view Name(Cpu cpu) { return cpu == Cpu::kAvx512 ? "avx512" : "avx2"; }

bool IsSupported(Cpu cpu) {
  // The builtin also asks the operating system (XGETBV) whether it saves the registers.
  if (cpu == Cpu::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

Cpu SelectedCpu() { return Selection().load(std::memory_order_relaxed); }

Status ForceCpu(Cpu cpu) {
  if (!IsSupported(cpu)) return InvalidArgument("this machine cannot run {} code", Name(cpu));
  Selection().store(cpu, std::memory_order_relaxed);
  return OkStatus();
}

Status ForceCpu(std::string_view name) {
  if (name == "auto") return ForceCpu(WidestCpu());
  for (Cpu cpu : {Cpu::kAvx2, Cpu::kAvx512})
    if (name == Name(cpu)) return ForceCpu(cpu);
  return InvalidArgument("unknown cpu, use auto, avx2 or avx512: {}", name);
}

int MemoryStreams() {
  static const int streams = __builtin_cpu_is("intel") ? 8 : 1;
  return streams;
}

int64_t SecondLevelCacheBytes() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 1 << 20;
}

std::string_view CpuOfRank(std::string_view names, int rank) {
  const auto count = 1 + std::count(names.begin(), names.end(), ',');
  for (auto skip = rank % count; skip > 0; --skip) names.remove_prefix(names.find(',') + 1);
  return names.substr(0, names.find(','));
}

}  // namespace heddle::ops

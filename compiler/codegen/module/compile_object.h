// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compiler/codegen/module_abi.h"
#include "core/status.h"
#include "ops/region/region.h"

namespace heddle::codegen {

/// Level 0 is x86-64-v3 (AVX2 and FMA), 1 is x86-64-v4 (AVX-512): nothing beyond it is used, whatever machine
/// this is.
struct CpuLevel {
  const char* name;
  int register_lanes;
};
inline constexpr CpuLevel kCpuLevels[] = {{"x86-64-v3", 4}, {"x86-64-v4", 8}};

/// A relocatable object, the optimised IR, or assembly of a region. Thread-safe.
Result<std::string> CompileRegion(const ops::Region& region, int cpu, HeddleProduct product);

}  // namespace heddle::codegen

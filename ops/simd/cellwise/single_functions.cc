// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/single_functions.h"

#include "ops/base/cpu.h"

namespace heddle::ops {

const SingleFunctions& SelectedSingleFunctions() {
  return SelectedCpu() == Cpu::kAvx512 ? kSingleFunctionsAvx512 : kSingleFunctionsAvx2;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/elementwise.h"

#include "ops/base/cpu.h"

namespace heddle::ops {

const ElementwiseKernels& SelectedElementwiseKernels() {
  return SelectedCpu() == Cpu::kAvx512 ? kElementwiseKernelsAvx512 : kElementwiseKernelsAvx2;
}

}  // namespace heddle::ops

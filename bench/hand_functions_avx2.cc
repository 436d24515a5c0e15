// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_HAND_FUNCTIONS kHandFunctionsAvx2
#include "bench/hand_functions.inc"

namespace heddle::bench {

const HandFunctions& SelectedHandFunctions() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  return wide ? kHandFunctionsAvx512 : kHandFunctionsAvx2;
}

}  // namespace heddle::bench

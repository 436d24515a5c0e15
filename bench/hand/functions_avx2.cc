// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_HAND_FUNCTIONS kHandFunctionsAvx2
#include "bench/hand/functions.inc"

namespace heddle::bench {

bool RunsAvx512() {
  static const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  return wide;
}

const HandFunctions& SelectedHandFunctions() {
  return RunsAvx512() ? kHandFunctionsAvx512 : kHandFunctionsAvx2;
}

}  // namespace heddle::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

namespace heddle::bench {

/// Loops that are bound by arithmetic, compiled for AVX2 and for AVX-512 (functions.inc); one thread
/// each.
struct HandFunctions {
  double (*sum_of_sigmoids)(const double* x, const double* y, int64_t count);
  double (*sum_of_exponentials)(const double* x, const double* y, int64_t count);
  double (*sum_of_logarithms)(const double* x, const double* y, int64_t count);  ///< sum(x * log(y + 1e-15))
};
extern const HandFunctions kHandFunctionsAvx2, kHandFunctionsAvx512;
/// True if this machine runs loops that are compiled for AVX-512.
bool RunsAvx512();
/// The widest that this machine runs.
const HandFunctions& SelectedHandFunctions();

}  // namespace heddle::bench

// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/cellwise/math.h"

namespace heddle::ops {

double Apply(UnaryCode code, double x) {
  double result;
  SelectedElementwiseKernels().Of(code)(&x, &result, 1, false);
  return result;
}

double Apply(BinaryCode code, double x, double y) {
  double result;
  SelectedElementwiseKernels().Of(code, Operands::kCellsCells)(&x, &y, &result, 1, false);
  return result;
}

}  // namespace heddle::ops

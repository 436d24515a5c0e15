// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/fusion_row.h"

namespace heddle::bench {

/// Row-wise chains (softmax, layer norm, ...) of matrices of every shape: short rows, few rows, one row; in
/// doubles and in floats; and of CSR matrices.
void RunShapes(FusionMeter& meter);

}  // namespace heddle::bench

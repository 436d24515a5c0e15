// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/stitch_row.h"

namespace heddle::bench {

/// Softmax, attention and statistics of rows at the entries of a sparse matrix, of several densities.
void MeasureSparse(StitchMeter* meter);

}  // namespace heddle::bench

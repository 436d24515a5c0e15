// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/values/matrix.h"
#include "ops/base/parallel.h"

// Data to measure with. All stop the process when memory runs out.
namespace heddle::bench {

/// Cells in [0.1, 1.1), the same for the same seed.
Matrix RandomDense(int64_t rows, int64_t columns, uint64_t seed, ops::Arena* arena);
/// CSR; each cell is there with probability `density`, in [0.1, 1.1).
Matrix RandomSparse(int64_t rows, int64_t columns, double density, uint64_t seed, ops::Arena* arena);
/// Dense, its pages touched.
Matrix TouchedDense(int64_t rows, int64_t columns, ops::Arena* arena);

}  // namespace heddle::bench

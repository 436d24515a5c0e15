// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/values/matrix.h"

namespace heddle::ops {

/// Writes row i of a matrix as dense cells.
template <typename T>
void CopyRow(const Matrix& x, int64_t i, T* out) {
  if (!x.IsSparse()) {
    std::copy_n(x.data<T>() + i * x.columns(), x.columns(), out);
    return;
  }
  std::fill_n(out, x.columns(), T{0});
  for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k)
    out[x.column_indexes()[k]] = x.values<T>()[k];
}

/// The parts side by side: at least one, with as many rows, of one element type. Stored as `format` says,
/// whatever the parts are. Cost: reads and writes every cell (or entry) once; parallel.
Result<Matrix> JoinColumns(std::vector<Matrix> parts, Format format);

}  // namespace heddle::ops

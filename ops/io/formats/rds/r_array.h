// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/values/matrix.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/rds/r_vector.h"

// Numbers in R's arrays, the first index of which runs fastest.
namespace heddle::ops {

struct RArray {
  const RObject* vector = nullptr;
  RCells cells = RCells::kNone;
  std::vector<int64_t> sizes;  ///< In R's order.
  bool transposed = false;     ///< To be read with its indexes in the other order.

  /// The first index counts rows, all others together columns.
  Shape shape() const;
};

/// An array, a vector, which is a column, or a dense matrix of the package Matrix. kDataLoss where its cells
/// are no numbers.
Result<RArray> ArrayOf(const RFile& file, const RObject& object, bool transposed);

/// Rows [begin, end); NA is NaN. Of the columns behind the first index the last index runs fastest, as DML
/// has tensors. The cells are taken in the order of the file, which may be packed, several parts at once.
Result<Matrix> ReadArray(const ReadOptions& options, const RFile& file, const RArray& array, int64_t begin,
                         int64_t end);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {

/// What the encoders have made of the cells of a frame.
struct EncodedCells {
  Matrix codes;                       ///< Row j: those of column j; unset of kCounts.
  std::vector<WordCounts> words;      ///< One for each column, of kCounts.
  const Matrix* embedding = nullptr;  ///< Of kVector: its rows are numbered from 1.
  std::vector<ColumnGroup> groups;    ///< In place of `codes`, where the result is made of column groups.
};

/// The encoded matrix. NaN for the code of a dummy or of a vector makes no entry, nor does a code that is
/// none. `rows` are those of the frame that stay; nullopt: all.
///
/// Format:  as asked; CSR is made directly, zeros have no entries.
/// Cost:    reads codes once for a dense result, twice for CSR; parallel by rows.
Result<Matrix> AssembleEncoded(const EncodedCells& cells, const EncodedLayout& layout,
                               const std::optional<std::vector<int64_t>>& rows, Format format);

/// The way back: the codes of each column, as rows. Of dummies, the number of the first that is not zero; NaN
/// where there is none, and of columns of counts and vectors.
Result<Matrix> CodesOfEncoded(const Matrix& encoded, const EncodedLayout& layout);

}  // namespace heddle::ops

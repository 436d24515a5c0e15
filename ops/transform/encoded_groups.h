// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/transform/assemble.h"

// The encoded matrix in column groups (docs/compression.md), without its cells ever being there: the codes of
// a column of the frame are those of a group, whose tuples are numbers, rows of dummies or of an embedding.
namespace heddle::ops {

/// The codes that an encoder has made of a column, n x 1, as a group of one column. `format`: of the encoded
/// matrix; a sparse one has no -0.0. kResourceExhausted, Cancelled().
Result<ColumnGroup> GroupOfCodes(Matrix codes, Format format, const KernelContext& context);

/// The encoded matrix, of EncodedCells::groups. Columns of words, and those of dummies with far more places
/// than there are rows, are stored by their entries.
Result<Matrix> AssembleGroups(const EncodedCells& cells, const EncodedLayout& layout, int64_t frame_rows,
                              const std::optional<std::vector<int64_t>>& rows, const KernelContext& context);

/// Why an encoded matrix of that shape (rows of all ranks together; columns may be unknown) and format is
/// made of cells at once; "" where groups are made, of which WhyByCells() then tells.
std::string WhyNoGroups(const Shape& whole, Format format, const Scalar* reads);
/// Why a matrix of that format, of which these are some of `whole_rows`, is better stored by its cells; ""
/// where it is not. `reads`: how often it will be read, if somebody knows. `plain_bytes` becomes what its
/// cells would take.
std::string WhyByCells(const Matrix& encoded, int64_t whole_rows, Format format, const Scalar* reads,
                       int64_t* plain_bytes);

}  // namespace heddle::ops

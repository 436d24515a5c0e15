// SPDX-License-Identifier: Apache-2.0
#include "engine/recursion/rows.h"

#include <cstring>

#include "ops/recursion/recursive_operator.h"

namespace heddle::engine {

using Attributes = ops::RecursiveAttributes;

Result<Matrix> RowsOfRoots(const ops::KernelCall& call, int64_t first, int64_t count,
                           const Result<RecursionParts>& parts) {
  const bool may_fail = call.node.FindAttribute(Attributes::kMayFail)->AsBoolean();
  if (!parts.ok() && (!may_fail || parts.status().code() == StatusCode::kCancelled)) return parts.status();
  const int64_t width = call.node.FindAttribute(Attributes::kWidth)->AsInteger();
  const int64_t numbers = call.phase == Phase::kPartial ? 1 : 0;
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(count, numbers + width));
  std::memset(rows.mutable_data(), 0, static_cast<size_t>(rows.bytes()));
  double* row = rows.mutable_data();
  auto begin_row = [&, number = first]() mutable {
    if (numbers == 1) row[0] = static_cast<double>(number++);
  };
  if (!parts.ok() || !*parts) {
    for (int64_t i = 0; i < rows.rows(); ++i, row += rows.columns()) {
      begin_row();
      row[numbers] = ops::kInterpreted;
    }
    return rows;
  }
  for (const RecursionPart& part : **parts)
    for (const int32_t place : part.structure->roots) {
      begin_row();
      int64_t at = numbers + 1;
      for (const Matrix& cells : part.results.rows) {
        if (at + cells.columns() > rows.columns())
          return Internal("a recursion has more cells than its plan says");
        for (int64_t j = 0; j < cells.columns(); ++j) row[at++] = cells.At(place, j);
      }
      row += rows.columns();
    }
  return rows;
}

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/column_pieces.h"

#include <utility>
#include <vector>

#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"

namespace heddle::ops {
Result<Value> ColumnsOfValue(const Value& whole, int64_t begin, int64_t end) {
  if (!whole.IsMatrix() || begin < 0 || begin > end || end > whole.matrix().columns())
    return Internal("slice: columns {} to {} are not in the value", begin, end);
  HEDDLE_ASSIGN_OR_RETURN(const Value cells, Decoded(whole));
  HEDDLE_ASSIGN_OR_RETURN(Matrix columns, SliceColumns(cells.matrix(), begin, end));
  return Value(std::move(columns));
}

Result<Value> JoinColumns(std::span<const Value* const> inputs) {
  std::vector<Matrix> pieces;
  for (const Value* input : inputs) {
    if (input == nullptr || !input->IsMatrix()) return Internal("join: a piece of columns that is no matrix");
    const Matrix& piece = input->matrix();
    if (piece.rows() != inputs[0]->matrix().rows() ||
        piece.element_type() != inputs[0]->matrix().element_type())
      return Internal("join: pieces have {} and {} rows", inputs[0]->matrix().rows(), piece.rows());
    if (piece.columns() == 0) continue;
    HEDDLE_ASSIGN_OR_RETURN(pieces.emplace_back(), piece.IsCompressed() ? AsDense(piece) : piece);
  }
  if (inputs.empty()) return Internal("join: no pieces");
  if (pieces.empty()) return *inputs[0];
  if (pieces.size() == 1) return Value(std::move(pieces[0]));
  const Format format = FormatOf(pieces[0].storage());
  HEDDLE_ASSIGN_OR_RETURN(Matrix whole, JoinColumns(std::move(pieces), format));
  return Value(std::move(whole));
}

Result<Value> JoinColumnsAs(std::span<const Value* const> inputs, const ValueInfo& info) {
  HEDDLE_ASSIGN_OR_RETURN(const Value joined, JoinColumns(inputs));
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix stored, info.format == Format::kSparse ? AsSparse(joined.matrix()) : AsDense(joined.matrix()));
  return Value(std::move(stored));
}

}  // namespace heddle::ops

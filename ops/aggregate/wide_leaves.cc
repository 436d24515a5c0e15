// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate/wide_leaves.h"

#include <cstddef>

#include "ops/elementwise/widened_rows.h"

namespace heddle::ops {

LeafCells LeafCellReader::Read(const Matrix& x, int64_t begin, int64_t end, int64_t column_begin,
                               int64_t column_end, bool all) {
  const int64_t width = column_end - column_begin, cells = (end - begin) * width;
  const int64_t first = begin * x.columns() + column_begin;
  if (!x.IsSparse() && !HoldsSingles(x)) return {x.data() + first, cells, end - begin};
  values_.clear();
  places_.clear();
  if (!x.IsSparse() || all) values_.resize(static_cast<size_t>(cells), 0.0);
  if (!x.IsSparse()) {
    SelectedElementwiseKernels().widen(x.data<float>() + first, values_.data(), cells);
    return {values_.data(), cells, end - begin};
  }
  for (int64_t i = begin; i < end; ++i) {
    const EntryRange range = EntriesOf(x, i, column_begin, column_end);
    for (int64_t e = range.begin; e < range.end; ++e) {
      const int64_t place = (i - begin) * width + x.column_indexes()[e] - column_begin;
      if (all) {
        values_[static_cast<size_t>(place)] = x.values()[e];
      } else {
        values_.push_back(x.values()[e]);
        places_.push_back(place);
      }
    }
  }
  if (all) return {values_.data(), cells, end - begin};
  return {values_.data(), static_cast<int64_t>(values_.size()), end - begin, true, places_.data()};
}

namespace {

int64_t HeightOf(const SumsOfMatrix& sums) {
  const int64_t columns = sums.whole_columns < 0 ? sums.columns : sums.whole_columns;
  if (sums.scope == AggregateScope::kFull) return FullPanelHeight(sums.rows, columns);
  return IsSpread(sums.kind) ? MomentsPanelHeight(sums.rows, columns) : ColumnPanelHeight(sums.rows, columns);
}

}  // namespace

LeavesOfMatrix::LeavesOfMatrix(const SumsOfMatrix& sums)
    : full_(sums.scope == AggregateScope::kFull),
      rows_(sums.rows),
      columns_(sums.columns),
      first_column_(sums.first_column),
      height_(HeightOf(sums)),
      chunks_(full_ ? CeilDivide(sums.columns, kColumnChunk) : 1),
      needs_all_(IsSpread(sums.kind)) {}

Result<LeafCells> LeavesOfMatrix::Reader::Read(int64_t leaf) {
  const int64_t begin = leaf / leaves_.chunks_ * leaves_.height_;
  const int64_t end = std::min(leaves_.rows_, begin + leaves_.height_);
  const int64_t column = leaf % leaves_.chunks_ * kColumnChunk;
  const int64_t column_end =
      leaves_.chunks_ == 1 ? leaves_.columns_ : std::min(leaves_.columns_, column + kColumnChunk);
  if (begin != begin_) {
    HEDDLE_ASSIGN_OR_RETURN(piece_, rows_of_(begin, end));
    begin_ = begin;
  }
  const int64_t before = leaves_.first_column_;
  LeafCells cells =
      cells_.Read(piece_, 0, end - begin, column - before, column_end - before, leaves_.needs_all_);
  // All cells are dealt to the lanes of one result.
  if (leaves_.full_) cells.rows = (end - begin) * (column_end - column);
  return cells;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/io/formats/read_chunks.h"
#include "ops/io/formats/readers.h"
#include "ops/io/formats/text/cell_set.h"

// The matrix of cells that come in any order.
namespace heddle::ops {

/// Places the cells that `Source` gives:
///
///   Status source.ForCells(order, take)
///
/// calls take(row, column, value), counted from 0, for each cell that is not zero, and fails when take says
/// that the cell does not fit. It is asked several times and gives the same cells each time.
///
/// A cell that comes twice is added up in the order of the file, as MatrixMarket readers do: where there are
/// such cells, all are asked for once more in that order.
template <typename Source>
class CellPlacer {
 public:
  CellPlacer(const Source& source, const Shape& shape, const ReadOptions& options)
      : source_(source), shape_(shape), options_(options) {}

  Result<Matrix> Dense() const;
  Result<Matrix> Sparse() const;

 private:
  Result<Matrix> Unsorted() const;
  Status AddUp(std::vector<int64_t> rows, Matrix* sparse) const;

  const Source& source_;
  const Shape shape_;
  const ReadOptions& options_;
};

template <typename Source>
Result<Matrix> PlaceCells(const Source& source, const Shape& shape, Format format,
                          const ReadOptions& options) {
  const CellPlacer<Source> placer(source, shape, options);
  return format == Format::kSparse ? placer.Sparse() : placer.Dense();
}

template <typename Source>
Result<Matrix> CellPlacer<Source>::Dense() const {
  HEDDLE_ASSIGN_OR_RETURN(Matrix dense, FilledMatrix(shape_.rows, shape_.columns, 0));
  double* const cells = dense.mutable_data();
  HEDDLE_ASSIGN_OR_RETURN(CellSet met, CellSet::Make(shape_.rows, shape_.columns, options_.path));
  std::atomic<bool> any_twice = false;
  HEDDLE_RETURN_IF_ERROR(source_.ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t column, double value) {
    if (met.Add(row, column))
      cells[row * shape_.columns + column] = value;
    else
      any_twice = true;
    return true;
  }));
  if (!any_twice) return dense;
  std::fill_n(cells, shape_.rows * shape_.columns, 0.0);
  HEDDLE_ASSIGN_OR_RETURN(met, CellSet::Make(shape_.rows, shape_.columns, options_.path));
  HEDDLE_RETURN_IF_ERROR(
      source_.ForCells(ChunkOrder::kOfFile, [&](int64_t row, int64_t column, double value) {
        double& cell = cells[row * shape_.columns + column];
        cell = met.Add(row, column) ? value : cell + value;
        return true;
      }));
  return dense;
}

// The cells of each row in any order: they are counted, then placed.
template <typename Source>
Result<Matrix> CellPlacer<Source>::Unsorted() const {
  // A small file may name a huge row: what grows with the rows comes from the budget.
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(shape_.rows, shape_.columns, 0));
  int64_t* const counts = counted.mutable_row_offsets();
  HEDDLE_RETURN_IF_ERROR(source_.ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t, double) {
    std::atomic_ref(counts[row + 1]).fetch_add(1, std::memory_order_relaxed);
    return true;
  }));
  for (int64_t i = 0; i < shape_.rows; ++i) counts[i + 1] += counts[i];
  const int64_t stored = counts[shape_.rows];
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Matrix::Sparse(shape_.rows, shape_.columns, stored));
  int64_t* const offsets = sparse.mutable_row_offsets();
  std::copy_n(counts, shape_.rows + 1, offsets);
  counted = Matrix();
  // While cells are placed offsets[i] is where the next of row i goes; in the end that is where row i + 1
  // begins. The sum tells whether it is.
  const auto weighted_sum = [&](const int64_t* ends) {
    uint64_t sum = 0;
    for (int64_t i = 0; i < shape_.rows; ++i)
      sum += static_cast<uint64_t>(ends[i]) * (2 * static_cast<uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ULL;
    return sum;
  };
  const uint64_t expected = weighted_sum(offsets + 1);
  int32_t* const columns = sparse.mutable_column_indexes();
  double* const values = sparse.mutable_values();
  HEDDLE_RETURN_IF_ERROR(source_.ForCells(ChunkOrder::kAny, [&](int64_t row, int64_t column, double value) {
    const int64_t place = std::atomic_ref(offsets[row]).fetch_add(1, std::memory_order_relaxed);
    if (place >= stored) return false;
    columns[place] = static_cast<int32_t>(column);
    values[place] = value;
    return true;
  }));
  if (weighted_sum(offsets) != expected) return ItChanged(options_);
  std::copy_backward(offsets, offsets + shape_.rows, offsets + shape_.rows + 1);
  offsets[0] = 0;
  return sparse;
}

/// Orders the entries of a row by column. False if two are in the same one.
inline bool SortRow(int64_t entries, int32_t* columns, double* values) {
  if (std::adjacent_find(columns, columns + entries, std::greater_equal<>()) == columns + entries)
    return true;
  std::vector<std::pair<int32_t, double>> sorted;
  for (int64_t k = 0; k < entries; ++k) sorted.emplace_back(columns[k], values[k]);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (int64_t k = 0; k < entries; ++k) std::tie(columns[k], values[k]) = sorted[static_cast<size_t>(k)];
  return std::adjacent_find(columns, columns + entries) == columns + entries;
}

template <typename Source>
Result<Matrix> CellPlacer<Source>::Sparse() const {
  constexpr int64_t kRowsAtOnce = 1 << 12;
  HEDDLE_ASSIGN_OR_RETURN(Matrix sparse, Unsorted());
  std::mutex mutex;
  std::vector<int64_t> rows_to_add;
  ParallelFor(shape_.rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = sparse.row_offsets()[i];
      if (SortRow(sparse.row_offsets()[i + 1] - first, sparse.mutable_column_indexes() + first,
                  sparse.mutable_values() + first))
        continue;
      const std::lock_guard lock(mutex);
      rows_to_add.push_back(i);
    }
  });
  if (!rows_to_add.empty()) HEDDLE_RETURN_IF_ERROR(AddUp(std::move(rows_to_add), &sparse));
  return sparse;
}

// Makes one entry of those of these rows that are in one column, and adds their cells up anew.
template <typename Source>
Status CellPlacer<Source>::AddUp(std::vector<int64_t> rows, Matrix* sparse) const {
  std::sort(rows.begin(), rows.end());
  const auto is_added = [&](int64_t row) { return std::binary_search(rows.begin(), rows.end(), row); };
  int64_t* const offsets = sparse->mutable_row_offsets();
  int32_t* const columns = sparse->mutable_column_indexes();
  double* const values = sparse->mutable_values();
  int64_t at = 0, begin = 0;
  for (int64_t i = 0; i < shape_.rows; ++i) {
    const int64_t end = offsets[i + 1];
    const bool adds = is_added(i);
    for (int64_t k = begin; k < end; ++k) {
      if (adds && k > begin && columns[k] == columns[k - 1]) continue;
      columns[at] = columns[k];
      values[at++] = adds ? -0.0 : values[k];  // What it is added to stays as it is, also -0.0.
    }
    begin = end;
    offsets[i + 1] = at;
  }
  return source_.ForCells(ChunkOrder::kOfFile, [&](int64_t row, int64_t column, double value) {
    if (!is_added(row)) return true;
    int32_t* const end = columns + offsets[row + 1];
    const int32_t* const found = std::lower_bound(columns + offsets[row], end, column);
    if (found == end || *found != column) return false;
    values[found - columns] += value;
    return true;
  });
}

}  // namespace heddle::ops

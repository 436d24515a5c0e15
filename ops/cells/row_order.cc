// SPDX-License-Identifier: Apache-2.0
#include "ops/cells/row_order.h"

#include <algorithm>
#include <span>

#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/merge_runs.h"
#include "ops/cells/move_cells.h"

namespace heddle::ops {
namespace {

// Rows [begin, end). Sorts by the last column first: a stable sort keeps its order within ties of the more
// important ones.
std::vector<KeyedRow> SortRun(const Matrix& x, const RowOrder& order, int64_t begin, int64_t end,
                              const std::atomic<bool>* cancelled) {
  std::vector<KeyedRow> rows(static_cast<size_t>(end - begin)), scratch;
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = {0, begin + static_cast<int64_t>(i)};
  std::vector<double> cells(order.columns.size() > 1 ? rows.size() : 0);
  for (size_t c = order.columns.size(); c-- > 0 && !IsCancelled(cancelled);) {
    const int64_t column = order.columns[c];
    if (c + 1 == order.columns.size()) {
      for (KeyedRow& row : rows) row.key = order.keys.KeyOf(CellAt(x, row.row, column));
    } else {
      // The column behind each other: the rows are read in any order then.
      for (int64_t i = begin; i < end; ++i) cells[static_cast<size_t>(i - begin)] = CellAt(x, i, column);
      for (KeyedRow& row : rows) row.key = order.keys.KeyOf(cells[static_cast<size_t>(row.row - begin)]);
    }
    SortByKeys(&rows, &scratch, [](const KeyedRow& row) { return row.key; });
  }
  return rows;
}

// Whether a comes before b, which have the same key in the first column.
bool IsBeforeByFurtherColumns(const RowOrder& order, const Matrix& x, int64_t a, const Matrix& y, int64_t b) {
  for (size_t c = 1; c < order.columns.size(); ++c) {
    const uint64_t left = order.keys.KeyOf(CellAt(x, a, order.columns[c]));
    const uint64_t right = order.keys.KeyOf(CellAt(y, b, order.columns[c]));
    if (left != right) return left < right;
  }
  return false;
}

// A row of one of several matrices.
struct PartRow {
  uint64_t key;
  uint64_t part : 16;
  uint64_t row : 48;
};

Result<Matrix> CopyDenseRows(const std::vector<Matrix>& parts, std::span<const PartRow> rows) {
  const int64_t n = parts[0].columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(static_cast<int64_t>(rows.size()), n));
  double* const out = result.mutable_data();
  std::vector<const double*> cells;
  for (const Matrix& part : parts) cells.push_back(part.data());
  ParallelFor(n == 0 ? 0 : result.rows(), RowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PartRow& from = rows[static_cast<size_t>(i)];
      std::copy_n(cells[from.part] + static_cast<int64_t>(from.row) * n, n, out + i * n);
    }
  });
  return result;
}

Result<Matrix> CopySparseRows(const std::vector<Matrix>& parts, std::span<const PartRow> rows) {
  std::vector<int64_t> counts(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t* const offsets = parts[rows[i].part].row_offsets() + rows[i].row;
    counts[i] = offsets[1] - offsets[0];
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(parts[0].columns(), counts));
  int32_t* const indexes = result.mutable_column_indexes();
  double* const values = result.mutable_values();
  ParallelFor(result.rows(), 1024, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const PartRow& from = rows[static_cast<size_t>(i)];
      const Matrix& part = parts[from.part];
      const int64_t first = part.row_offsets()[from.row], count = counts[static_cast<size_t>(i)];
      std::copy_n(part.column_indexes() + first, count, indexes + result.row_offsets()[i]);
      std::copy_n(part.values() + first, count, values + result.row_offsets()[i]);
    }
  });
  return result;
}

}  // namespace

Result<std::vector<KeyedRow>> SortedRows(const Matrix& x, const RowOrder& order,
                                         const std::atomic<bool>* cancelled) {
  constexpr int64_t kRowsOfRun = 65536;  // So many are worth a thread of their own.
  const auto count = static_cast<size_t>(std::clamp<int64_t>(x.rows() / kRowsOfRun, 1, ParallelThreads()));
  std::vector<std::vector<KeyedRow>> runs(count);
  ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t first, int64_t last) {
    for (int64_t run = first; run < last; ++run)
      runs[static_cast<size_t>(run)] = SortRun(x, order, x.rows() * run / static_cast<int64_t>(count),
                                               x.rows() * (run + 1) / static_cast<int64_t>(count), cancelled);
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  if (count == 1) return std::move(runs[0]);
  std::vector<KeyedRow> merged(static_cast<size_t>(x.rows()));
  MergeRuns(
      std::vector<std::span<const KeyedRow>>(runs.begin(), runs.end()),
      [&](const KeyedRow& a, const KeyedRow& b) {
        return a.key != b.key ? a.key < b.key : IsBeforeByFurtherColumns(order, x, a.row, x, b.row);
      },
      merged.data());
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return merged;
}

std::vector<int64_t> NumbersOf(const std::vector<KeyedRow>& rows) {
  std::vector<int64_t> numbers(rows.size());
  ParallelFor(static_cast<int64_t>(rows.size()), 65536, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) numbers[i] = rows[i].row;
  });
  return numbers;
}

Result<Matrix> MergeSortedRows(const std::vector<Matrix>& parts, const RowOrder& order,
                               const std::atomic<bool>* cancelled) {
  std::vector<int64_t> begins = {0};
  const Matrix* only = &parts[0];
  for (const Matrix& part : parts) {
    if (part.rows() > 0 && only->rows() == 0) only = &part;
    begins.push_back(begins.back() + part.rows());
  }
  if (only->rows() == begins.back()) return *only;
  HEDDLE_CHECK(parts.size() <= size_t{1} << 16, "a job has fewer ranks");
  std::vector<PartRow> rows(static_cast<size_t>(begins.back()));
  std::vector<std::span<const PartRow>> runs;
  for (size_t part = 0; part < parts.size(); ++part) {
    PartRow* const of_part = rows.data() + begins[part];
    ParallelFor(parts[part].rows(), 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const uint64_t key =
            order.columns.empty() ? 0 : order.keys.KeyOf(CellAt(parts[part], i, order.columns[0]));
        of_part[i] = {key, part, static_cast<uint64_t>(i)};
      }
    });
    runs.emplace_back(of_part, static_cast<size_t>(parts[part].rows()));
  }
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  std::vector<PartRow> merged(rows.size());
  MergeRuns(
      runs,
      [&](const PartRow& a, const PartRow& b) {
        if (a.key != b.key) return a.key < b.key;
        return IsBeforeByFurtherColumns(order, parts[a.part], static_cast<int64_t>(a.row), parts[b.part],
                                        static_cast<int64_t>(b.row));
      },
      merged.data());
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return parts[0].IsSparse() ? CopySparseRows(parts, merged) : CopyDenseRows(parts, merged);
}

}  // namespace heddle::ops

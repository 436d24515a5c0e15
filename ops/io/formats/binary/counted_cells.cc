// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/binary/counted_cells.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "core/values/column_groups.h"
#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/tuple_tables.h"

namespace heddle::ops {
namespace {

using Column = CountedCells::Column;

// The order of cells in a Column.
bool IsBefore(double a, double b) {
  if (a < b || b < a) return a < b;
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return std::signbit(a) && !std::signbit(b);
}

// Counts the cells of one column in the order of its rows.
class Counter {
 public:
  explicit Counter(int64_t most) : most_(most), table_(1) {}

  // The next `count` rows have this cell.
  void Add(double cell, int64_t count) {
    if (are_many_ || count == 0) return;
    cell = Canonical(cell);
    const int64_t number = table_.Add(&cell);
    if (number < 0 || number >= most_) {
      are_many_ = true;
      table_ = TupleTable<double>(1);
      return;
    }
    if (number == static_cast<int64_t>(rows_.size())) rows_.push_back(0);
    rows_[static_cast<size_t>(number)] += count;
    if (runs_ == 0) first_ = cell;
    runs_ += runs_ == 0 || !IsSameCell(last_, cell);
    last_ = cell;
  }

  Column Finish() const {
    Column column;
    column.are_many = are_many_;
    if (are_many_) return column;
    column.runs = runs_;
    column.first = first_;
    column.last = last_;
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const std::vector<double>& cells = table_.cells();
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return IsBefore(cells[a], cells[b]); });
    for (const size_t i : order) {
      column.cells.push_back(cells[i]);
      column.rows.push_back(rows_[i]);
    }
    return column;
  }

 private:
  const int64_t most_;
  TupleTable<double> table_;
  std::vector<int64_t> rows_;
  int64_t runs_ = 0;
  double first_ = 0, last_ = 0;
  bool are_many_ = false;
};

// Columns [first, last) of a dense matrix.
template <typename T>
void CountDense(const Matrix& rows, int64_t first, int64_t last, Column* columns) {
  std::vector<Counter> counters(static_cast<size_t>(last - first),
                                Counter(CountedCells::MostOf(rows.columns())));
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const T* const cells = rows.data<T>() + i * rows.columns() + first;
    for (size_t k = 0; k < counters.size(); ++k) counters[k].Add(static_cast<double>(cells[k]), 1);
  }
  for (size_t k = 0; k < counters.size(); ++k)
    columns[first + static_cast<int64_t>(k)] = counters[k].Finish();
}

// The same of a CSR matrix: cells that are not stored are zeros between those that are.
template <typename T>
void CountSparse(const Matrix& rows, int64_t first, int64_t last, Column* columns) {
  std::vector<Counter> counters(static_cast<size_t>(last - first),
                                Counter(CountedCells::MostOf(rows.columns())));
  std::vector<int64_t> counted(counters.size(), 0);  // Rows of each column.
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const int32_t* const begin = rows.column_indexes() + rows.row_offsets()[i];
    const int32_t* const end = rows.column_indexes() + rows.row_offsets()[i + 1];
    for (const int32_t* at = std::lower_bound(begin, end, first); at < end && *at < last; ++at) {
      const auto k = static_cast<size_t>(*at - first);
      counters[k].Add(0, i - counted[k]);
      counters[k].Add(static_cast<double>(rows.values<T>()[at - rows.column_indexes()]), 1);
      counted[k] = i + 1;
    }
  }
  for (size_t k = 0; k < counters.size(); ++k) {
    counters[k].Add(0, rows.rows() - counted[k]);
    columns[first + static_cast<int64_t>(k)] = counters[k].Finish();
  }
}

void Count(const Matrix& rows, int64_t first, int64_t last, Column* columns) {
  const bool are_doubles = rows.element_type() == ElementType::kFloat64;
  if (rows.IsSparse())
    are_doubles ? CountSparse<double>(rows, first, last, columns)
                : CountSparse<float>(rows, first, last, columns);
  else
    are_doubles ? CountDense<double>(rows, first, last, columns)
                : CountDense<float>(rows, first, last, columns);
}

// `next` has cells of rows behind those of `column`.
void Append(const Column& next, int64_t most, Column* column) {
  if (column->are_many || next.are_many) {
    *column = Column{.are_many = true};
    return;
  }
  if (next.cells.empty()) return;
  if (column->cells.empty()) {
    *column = next;
    return;
  }
  Column sum = {.runs = column->runs + next.runs - (IsSameCell(column->last, next.first) ? 1 : 0),
                .first = column->first,
                .last = next.last};
  size_t a = 0, b = 0;
  while (a < column->cells.size() || b < next.cells.size()) {
    const bool takes_a =
        b == next.cells.size() || (a < column->cells.size() && !IsBefore(next.cells[b], column->cells[a]));
    const bool takes_b =
        a == column->cells.size() || (b < next.cells.size() && !IsBefore(column->cells[a], next.cells[b]));
    sum.cells.push_back(takes_a ? column->cells[a] : next.cells[b]);
    sum.rows.push_back((takes_a ? column->rows[a] : 0) + (takes_b ? next.rows[b] : 0));
    a += takes_a;
    b += takes_b;
  }
  sum.are_many = static_cast<int64_t>(sum.cells.size()) > most;
  *column = sum.are_many ? Column{.are_many = true} : std::move(sum);
}

}  // namespace

int64_t CountedCells::MostOf(int64_t columns) {
  constexpr int64_t kOfAllColumns = int64_t{1} << 20;
  return std::clamp<int64_t>(kOfAllColumns / std::max<int64_t>(1, columns), 16, kMostTuples);
}

CountedCells CountedCells::Of(const Matrix& rows) {
  constexpr int64_t kLineOfDoubles = 8;
  constexpr int64_t kMostShares = 64;
  constexpr int64_t kLeastRows = 1 << 12;
  CountedCells all;
  all.rows_ = rows.rows();
  if (rows.columns() > kMostColumns || rows.columns() == 0) return all;
  all.columns_.resize(static_cast<size_t>(rows.columns()));
  // Threads share the columns; where these are few, also the rows.
  const int64_t width = std::max(kLineOfDoubles, CeilDivide(rows.columns(), kMostShares));
  const int64_t shares = CeilDivide(rows.columns(), width);
  const int64_t parts =
      std::clamp<int64_t>(2 * ParallelThreads() / shares, 1, std::max<int64_t>(1, rows.rows() / kLeastRows));
  std::vector<CountedCells> of_parts(static_cast<size_t>(parts), all);
  ParallelFor(shares * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / shares, first = i % shares * width;
      Count(rows.Rows(rows.rows() * part / parts, rows.rows() * (part + 1) / parts), first,
            std::min(first + width, rows.columns()), of_parts[static_cast<size_t>(part)].columns_.data());
    }
  });
  all = std::move(of_parts[0]);
  for (size_t part = 1; part < of_parts.size(); ++part)
    for (size_t j = 0; j < all.columns_.size(); ++j)
      Append(of_parts[part].columns_[j], MostOf(rows.columns()), &all.columns_[j]);
  return all;
}

void CountedCells::Add(const CountedCells& next) {
  if (rows_ == 0) {
    *this = next;
    return;
  }
  if (next.rows_ == 0) return;
  rows_ += next.rows_;
  for (size_t j = 0; j < columns_.size() && j < next.columns_.size(); ++j)
    Append(next.columns_[j], MostOf(static_cast<int64_t>(columns_.size())), &columns_[j]);
}

}  // namespace heddle::ops

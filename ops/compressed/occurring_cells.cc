// SPDX-License-Identifier: Apache-2.0
#include "ops/compressed/occurring_cells.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "ops/base/parallel.h"
#include "ops/compressed/arrange_groups.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 17;
template <typename T>
std::vector<char> TuplesWithNonzeros(const Matrix& dictionary) {
  std::vector<char> found;
  const T* cells = dictionary.data<T>();
  for (int64_t t = 0; t < dictionary.rows(); ++t, cells += dictionary.columns())
    found.push_back(std::any_of(cells, cells + dictionary.columns(), [](T cell) { return cell != 0; }) ? 1
                                                                                                       : 0);
  return found;
}

std::vector<char> TuplesWithNonzeros(const ColumnGroup& group) {
  return group.dictionary.element_type() == ElementType::kFloat64
             ? TuplesWithNonzeros<double>(group.dictionary)
             : TuplesWithNonzeros<float>(group.dictionary);
}

// The cells of columns of an uncompressed group, row by row: visit(row, k) for those that are not zero.
template <typename T, typename Visit>
void ForNonzeros(const Matrix& matrix, const Visit& visit) {
  for (int64_t i = 0; i < matrix.rows(); ++i) {
    if (matrix.IsSparse()) {
      for (int64_t at = matrix.row_offsets()[i]; at < matrix.row_offsets()[i + 1]; ++at)
        if (matrix.values<T>()[at] != 0) visit(i, matrix.column_indexes()[at]);
    } else {
      for (int64_t k = 0; k < matrix.columns(); ++k)
        if (matrix.data<T>()[i * matrix.columns() + k] != 0) visit(i, k);
    }
  }
}
template <typename Visit>
void ForNonzeros(const ColumnGroup& group, const Matrix& x, const Visit& visit) {
  const Matrix rows = group.dictionary.Rows(x.first_row(), x.first_row() + x.rows());
  if (rows.element_type() == ElementType::kFloat64)
    ForNonzeros<double>(rows, visit);
  else
    ForNonzeros<float>(rows, visit);
}

template <typename T>
void AppendCells(const Matrix& dictionary, const std::vector<int64_t>& rows, std::vector<T>* cells) {
  for (size_t tuple = 0; tuple < rows.size(); ++tuple)
    if (const T* const from = dictionary.data<T>() + static_cast<int64_t>(tuple) * dictionary.columns();
        rows[tuple] > 0)
      cells->insert(cells->end(), from, from + dictionary.columns());
}

// A column of the cells of all tuples that rows have.
template <typename T>
Result<Matrix> OccurringCells(const Matrix& x) {
  std::vector<T> cells;
  for (const ColumnGroup& group : x.groups().groups) {
    if (group.encoding == Encoding::kEmpty)
      cells.push_back(0);
    else
      AppendCells(group.dictionary, CountRowsOfTuples(group, x.first_row(), x.first_row() + x.rows()),
                  &cells);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix column,
                          Matrix::Dense(static_cast<int64_t>(cells.size()), 1, x.element_type()));
  std::copy(cells.begin(), cells.end(), column.mutable_data<T>());
  return column;
}

}  // namespace

std::vector<int64_t> CountRowsOfTuples(const ColumnGroup& group, int64_t begin, int64_t end) {
  if (group.tuples() == 0 || group.encoding == Encoding::kConstant || group.encoding == Encoding::kRuns)
    return CountTuples(group, begin, end);
  const bool holds_all = HoldsAllCodes(group, begin, end);
  if (holds_all && group.codes.counts() != nullptr) return CountTuples(group, begin, end);
  std::vector<int64_t> counts(static_cast<size_t>(group.tuples()), 0);
  std::mutex mutex;
  ParallelFor(end - begin, kGrainRows, [&](int64_t first, int64_t last) {
    const std::vector<int64_t> own = CountTuples(group, begin + first, begin + last);
    const std::lock_guard lock(mutex);
    for (size_t tuple = 0; tuple < counts.size(); ++tuple) counts[tuple] += own[tuple];
  });
  if (holds_all) {
    std::vector<int64_t> of_codes = counts;
    if (group.encoding == Encoding::kDefault) of_codes[0] -= (end - begin) - group.codes.count();
    group.codes.KeepCounts(std::move(of_codes));
  }
  return counts;
}

bool KnowsCounts(const Matrix& compressed) {
  const int64_t end = compressed.first_row() + compressed.rows();
  const auto& groups = compressed.groups().groups;
  return std::all_of(groups.begin(), groups.end(), [&](const ColumnGroup& group) {
    switch (group.encoding) {
      case Encoding::kEmpty:
      case Encoding::kConstant: return true;
      case Encoding::kUncompressed: return false;
      case Encoding::kRuns: return HoldsAllCodes(group, compressed.first_row(), end);
      case Encoding::kDefault:
      case Encoding::kDenseCodes: break;
    }
    return group.codes.counts() != nullptr && HoldsAllCodes(group, compressed.first_row(), end);
  });
}

std::vector<char> RowsWithNonzeros(const Matrix& compressed) {
  constexpr int64_t kRowsAtOnce = 1024;
  std::vector<char> found(static_cast<size_t>(compressed.rows()), 0);
  for (const ColumnGroup& group : compressed.groups().groups) {
    if (group.encoding == Encoding::kEmpty) continue;
    if (group.encoding == Encoding::kUncompressed) {
      ForNonzeros(group, compressed, [&](int64_t i, int64_t) { found[static_cast<size_t>(i)] = 1; });
      continue;
    }
    const std::vector<char> tuples = TuplesWithNonzeros(group);
    ParallelFor(compressed.rows(), 16 * kRowsAtOnce, [&](int64_t begin, int64_t end) {
      std::array<uint16_t, kRowsAtOnce> codes;
      for (int64_t row = begin; row < end; row += kRowsAtOnce) {
        const int64_t last = std::min(end, row + kRowsAtOnce);
        DecodeCodes(group, compressed.first_row() + row, compressed.first_row() + last, codes.data());
        for (int64_t i = row; i < last; ++i)
          found[static_cast<size_t>(i)] |= tuples[codes[static_cast<size_t>(i - row)]];
      }
    });
  }
  return found;
}

std::vector<char> ColumnsWithNonzeros(const Matrix& compressed) {
  std::vector<char> found(static_cast<size_t>(compressed.columns()), 0);
  for (const ColumnGroup& group : compressed.groups().groups) {
    const auto mark = [&](int64_t, int64_t k) {
      found[static_cast<size_t>(group.columns[static_cast<size_t>(k)])] = 1;
    };
    if (group.encoding == Encoding::kEmpty) continue;
    if (group.encoding == Encoding::kUncompressed) {
      ForNonzeros(group, compressed, mark);
      continue;
    }
    const std::vector<int64_t> rows =
        CountRowsOfTuples(group, compressed.first_row(), compressed.first_row() + compressed.rows());
    for (int64_t tuple = 0; tuple < group.tuples(); ++tuple) {
      if (rows[static_cast<size_t>(tuple)] == 0) continue;
      for (int64_t k = 0; k < group.width(); ++k)
        if (group.dictionary.At(tuple, k) != 0) mark(tuple, k);
    }
  }
  return found;
}

Result<std::optional<Value>> RunOnOccurringCells(const KernelCall& call) {
  const std::optional<Value> nothing;
  const Matrix& x = call.inputs[0]->matrix();
  if (!x.IsCompressed() || x.cells() == 0 || !DictionariesPay(x)) return nothing;
  for (const ColumnGroup& group : x.groups().groups)
    if (group.encoding == Encoding::kUncompressed) return nothing;
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, x.element_type() == ElementType::kFloat64 ? OccurringCells<double>(x)
                                                                                  : OccurringCells<float>(x));
  const Value column(std::move(cells));
  std::vector<const Value*> inputs(call.inputs.begin(), call.inputs.end());
  inputs[0] = &column;
  KernelCall of_cells = call;
  of_cells.inputs = inputs;
  of_cells.last_read = nullptr;
  Value result;
  HEDDLE_RETURN_IF_ERROR(CatalogKernels().Run(of_cells, {&result, 1}));
  return std::optional<Value>(std::move(result));
}

}  // namespace heddle::ops

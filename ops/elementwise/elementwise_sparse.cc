// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_sparse.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/parallel.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/cellwise/elementwise_codes.h"
#include "ops/simd/cellwise/math.h"
#include "ops/sparse/gather_cells.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainEntries = 16384;
constexpr int64_t kBatch = 1024;  // entries handed to a kernel at once

int64_t RowGrain(const Matrix& x) {
  return std::max<int64_t>(
      1, kGrainEntries * std::max<int64_t>(x.rows(), 1) / std::max<int64_t>(x.stored() + x.rows(), 1));
}

int64_t CountNonzeros(const double* values, int64_t count) {
  const __m256d zero = _mm256_setzero_pd();
  __m256i found = _mm256_setzero_si256();  // Minus so many.
  int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    found = _mm256_add_epi64(
        found, _mm256_castpd_si256(_mm256_cmp_pd(_mm256_loadu_pd(values + i), zero, _CMP_NEQ_UQ)));
  int64_t lanes[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), found);
  return std::count_if(values + i, values + count, [](double value) { return value != 0.0; }) -
         ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]));
}

}  // namespace

Result<Matrix> DropZeros(const Matrix& x) {
  const int64_t* const from = x.row_offsets();
  const int64_t rows = x.rows(), grain = RowGrain(x);
  std::vector<int64_t> kept(static_cast<size_t>(CeilDivide(rows, grain)) + 1);  // Of blocks of rows.
  const auto end_of = [&](size_t block) { return std::min(rows, (static_cast<int64_t>(block) + 1) * grain); };
  const auto each_block = [&](const auto& body) {
    ParallelFor(static_cast<int64_t>(kept.size()) - 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        body(static_cast<size_t>(block), block * grain, end_of(static_cast<size_t>(block)));
    });
  };
  each_block([&](size_t block, int64_t begin, int64_t end) {
    kept[block + 1] = CountNonzeros(x.values() + from[begin], from[end] - from[begin]);
  });
  std::partial_sum(kept.begin(), kept.end(), kept.begin());
  if (kept.back() == x.stored()) return x;
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(rows, x.columns(), kept.back()));
  int64_t* const to = result.mutable_row_offsets();
  int32_t* const columns = result.mutable_column_indexes();
  double* const values = result.mutable_values();
  each_block([&](size_t block, int64_t begin, int64_t end) {
    // Whether an entry stays is not foreseen: each is written where the next one that stays belongs.
    int64_t at = kept[block], p = from[begin];
    for (int64_t i = begin; i < end; ++i) {
      for (const int64_t last = from[i + 1]; p < last && at < kept[block + 1]; ++p) {
        columns[at] = x.column_indexes()[p];
        values[at] = x.values()[p];
        at += x.values()[p] != 0.0 ? 1 : 0;
      }
      to[i + 1] = at;
    }
  });
  return result;
}

Result<Matrix> DropZerosOfOwn(Matrix x) {
  Result<Matrix> copy = DropZeros(x);
  if (copy.ok() || copy.status().code() != StatusCode::kResourceExhausted) return copy;
  int64_t* const offsets = x.mutable_row_offsets();
  int64_t at = 0, p = offsets[0];
  for (int64_t i = 0; i < x.rows(); ++i) {
    const int64_t last = offsets[i + 1];
    offsets[i] = at;
    for (; p < last; ++p) {
      if (x.values()[p] == 0.0) continue;
      x.mutable_column_indexes()[at] = x.column_indexes()[p];
      x.mutable_values()[at++] = x.values()[p];
    }
  }
  offsets[x.rows()] = at;
  return x;
}

Result<Matrix> SamePattern(const Matrix& x, ElementType type) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(x.rows(), x.columns(), x.stored(), type));
  if (x.rows() == 0) return result;
  const int64_t first = x.row_offsets()[0];
  for (int64_t i = 0; i <= x.rows(); ++i) result.mutable_row_offsets()[i] = x.row_offsets()[i] - first;
  ParallelFor(x.stored(), kGrainEntries, [&](int64_t begin, int64_t end) {
    std::copy(x.column_indexes() + first + begin, x.column_indexes() + first + end,
              result.mutable_column_indexes() + begin);
  });
  return result;
}

namespace {

const double* FirstEntry(const Matrix& x) {
  return x.rows() == 0 ? x.values() : x.values() + x.row_offsets()[0];
}

// op(entry, scalar) for each entry.
Result<Matrix> WithScalar(BinaryCode code, const Matrix& x, double scalar, bool scalar_on_left) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(x));
  const BinaryKernel kernel =
      SelectedElementwiseKernels().Of(code, scalar_on_left ? Operands::kScalarCells : Operands::kCellsScalar);
  const double* values = FirstEntry(x);
  double* out = result.mutable_values();
  ParallelFor(x.stored(), kGrainEntries, [&](int64_t begin, int64_t end) {
    if (scalar_on_left)
      kernel(&scalar, values + begin, out + begin, end - begin, false);
    else
      kernel(values + begin, &scalar, out + begin, end - begin, false);
  });
  return DropZerosOfOwn(std::move(result));
}

// op(entry, the dense operand's cell there) for each entry.
Result<Matrix> WithDense(BinaryCode code, const Matrix& x, const Operand& dense, bool dense_on_left) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(x));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix other, AsDense(dense.matrix));
  const BinaryKernel kernel = SelectedElementwiseKernels().Of(code, Operands::kCellsCells);
  const double* values = FirstEntry(x);
  double* out = result.mutable_values();
  const int64_t* offsets = result.row_offsets();
  ParallelFor(x.rows(), RowGrain(x), [&](int64_t first_row, int64_t last_row) {
    SpreadRow spread;
    std::vector<double> cells;
    for (int64_t begin = first_row, end; begin < last_row; begin = end) {
      // As many rows as have about so many entries.
      end = std::upper_bound(offsets + begin + 1, offsets + last_row, offsets[begin] + kBatch) - offsets;
      const int64_t first = offsets[begin], count = offsets[end] - first;
      cells.resize(std::max(cells.size(), static_cast<size_t>(count + kGatherOverrun)));
      if (dense.pattern == Pattern::kCells) {
        GatherCells({offsets + begin, result.column_indexes(), result.stored()}, other, begin, end, spread,
                    cells.data());
      } else if (dense.pattern == Pattern::kColumn) {
        for (int64_t i = begin; i < end; ++i)
          std::fill_n(cells.data() + (offsets[i] - first), offsets[i + 1] - offsets[i], other.data()[i]);
      } else {
        for (int64_t e = 0; e < count; ++e)
          cells[static_cast<size_t>(e)] = other.data()[result.column_indexes()[first + e]];
      }
      if (dense_on_left)
        kernel(cells.data(), values + first, out + first, count, false);
      else
        kernel(values + first, cells.data(), out + first, count, false);
    }
  });
  return DropZerosOfOwn(std::move(result));
}

double OrZero(double x, bool is_given) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & -uint64_t{is_given});
}

// Walks the entries of row i of a and b by column: visit(column, x, y). Which one is next nobody can foresee:
// no branch depends on it.
template <typename Visit>
[[gnu::always_inline]] inline void MergeRow(const Matrix& a, const Matrix& b, int64_t i, Visit visit) {
  int64_t p = a.row_offsets()[i], q = b.row_offsets()[i];
  const int64_t p_end = a.row_offsets()[i + 1], q_end = b.row_offsets()[i + 1];
  while (p < p_end && q < q_end) {
    const int32_t of_a = a.column_indexes()[p], of_b = b.column_indexes()[q];
    const bool left = of_a <= of_b, right = of_b <= of_a;
    const int32_t column =
        of_b ^ ((of_a ^ of_b) & -int32_t{left});  // The compiler would branch for a minimum.
    visit(column, OrZero(a.values()[p], left), OrZero(b.values()[q], right));
    p += left;
    q += right;
  }
  for (; p < p_end; ++p) visit(a.column_indexes()[p], a.values()[p], 0.0);
  for (; q < q_end; ++q) visit(b.column_indexes()[q], 0.0, b.values()[q]);
}

// op(x, y) where one of them has an entry.
Result<Matrix> Merge(BinaryCode code, const Matrix& a, const Matrix& b) {
  const int64_t grain = std::min(RowGrain(a), RowGrain(b));
  std::vector<int64_t> counts(static_cast<size_t>(a.rows()), 0);
  ParallelFor(a.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      MergeRow(a, b, i, [&](int32_t, double, double) { ++counts[static_cast<size_t>(i)]; });
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(a.columns(), counts));
  const BinaryKernel kernel = SelectedElementwiseKernels().Of(code, Operands::kCellsCells);
  ParallelFor(a.rows(), grain, [&](int64_t begin, int64_t end) {
    double left[kBatch] = {}, right[kBatch] = {};
    int32_t at[kBatch];
    int64_t done = result.row_offsets()[begin], filled = 0;
    auto flush = [&] {
      std::copy_n(at, filled, result.mutable_column_indexes() + done);
      kernel(left, right, result.mutable_values() + done, filled, false);
      done += filled;
      filled = 0;
    };
    for (int64_t i = begin; i < end; ++i) {
      MergeRow(a, b, i, [&](int32_t column, double x, double y) {
        left[filled] = x;
        right[filled] = y;
        at[filled++] = column;
        if (filled == kBatch) flush();
      });
    }
    flush();
  });
  return DropZerosOfOwn(std::move(result));
}

// What one task keeps of its rows.
struct KeptEntries {
  std::vector<int32_t> columns;
  std::vector<double> values;
};

// op(x, y) where both have an entry that is not zero.
Result<Matrix> Intersect(BinaryCode code, const Matrix& a, const Matrix& b) {
  const Matrix &fewer = a.stored() <= b.stored() ? a : b, &more = a.stored() <= b.stored() ? b : a;
  const BinaryKernel kernel = SelectedElementwiseKernels().Of(code, Operands::kCellsCells);
  const int64_t rows = a.rows(), grain = std::min(RowGrain(a), RowGrain(b));
  std::vector<int64_t> counts(static_cast<size_t>(rows), 0);
  std::vector<KeptEntries> kept(static_cast<size_t>(CeilDivide(rows, grain)));
  ParallelFor(static_cast<int64_t>(kept.size()), 1, [&](int64_t first_task, int64_t last_task) {
    SpreadRow spread;
    std::vector<int64_t> ends;
    std::vector<double> x, y, out;
    for (int64_t task = first_task; task < last_task; ++task) {
      const int64_t begin = task * grain, end = std::min(rows, begin + grain);
      const auto room =
          static_cast<size_t>(fewer.row_offsets()[end] - fewer.row_offsets()[begin] + kGatherOverrun);
      KeptEntries& entries = kept[static_cast<size_t>(task)];
      entries.columns.resize(room);
      for (std::vector<double>* values : {&x, &y, &out}) values->resize(std::max(values->size(), room));
      ends.resize(static_cast<size_t>(end - begin) + 1);
      const Matrix* const others[] = {&more};
      SpreadRow* const spreads[] = {&spread};
      double* const values[] = {x.data(), y.data()};
      IntersectRows(fewer, others, begin, end, spreads, {ends.data(), entries.columns.data(), values});
      const double *left = &fewer == &a ? x.data() : y.data(), *right = &fewer == &a ? y.data() : x.data();
      kernel(left, right, out.data(), ends.back(), false);
      size_t count = 0, e = 0;
      for (int64_t i = begin; i < end; ++i) {
        const size_t first = count;
        for (const auto last = static_cast<size_t>(ends[static_cast<size_t>(i - begin) + 1]); e < last; ++e) {
          // An explicit zero is an absent cell: 0 * Infinity gives no entry.
          entries.columns[count] = entries.columns[e];
          out[count] = out[e];
          count += left[e] != 0 && right[e] != 0 && out[e] != 0;
        }
        counts[static_cast<size_t>(i)] = static_cast<int64_t>(count - first);
      }
      entries.columns.resize(count);
      entries.values.assign(out.begin(), out.begin() + static_cast<ptrdiff_t>(count));
    }
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(a.columns(), counts));
  ParallelFor(static_cast<int64_t>(kept.size()), 1, [&](int64_t first_task, int64_t last_task) {
    for (int64_t task = first_task; task < last_task; ++task) {
      const KeptEntries& entries = kept[static_cast<size_t>(task)];
      const int64_t at = result.row_offsets()[task * grain];
      std::copy(entries.columns.begin(), entries.columns.end(), result.mutable_column_indexes() + at);
      std::copy(entries.values.begin(), entries.values.end(), result.mutable_values() + at);
    }
  });
  return result;
}

// Whether 0 / y is zero for every cell of y.
bool HasNoZeroOrNaN(const Matrix& y) {
  std::atomic<bool> found = false;
  ParallelFor(y.cells(), kGrainEntries * 4, [&](int64_t begin, int64_t end) {
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) bad |= !(y.data()[i] > 0 || y.data()[i] < 0);
    if (bad) found = true;
  });
  return !found;
}

}  // namespace

Result<Matrix> SparseUnary(UnaryCode code, const Matrix& x) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SamePattern(x));
  const UnaryKernel kernel = SelectedElementwiseKernels().Of(code);
  const double* values = FirstEntry(x);
  ParallelFor(x.stored(), kGrainEntries, [&](int64_t begin, int64_t end) {
    kernel(values + begin, result.mutable_values() + begin, end - begin, false);
  });
  return DropZerosOfOwn(std::move(result));
}

Result<Matrix> SparseBinary(BinaryCode code, const Operand& a, const Operand& b, int64_t rows,
                            int64_t columns, const std::atomic<bool>* cancelled) {
  const bool left = a.pattern == Pattern::kCells && a.matrix.IsSparse();
  const bool right = b.pattern == Pattern::kCells && b.matrix.IsSparse();
  if (left && right)
    return SkipsAbsentCells(code) ? Intersect(code, a.matrix, b.matrix) : Merge(code, a.matrix, b.matrix);
  const Operand& driver = left ? a : b;
  const Operand& other = left ? b : a;
  bool absent_stay_absent = SkipsAbsentCells(code);
  if (other.pattern == Pattern::kScalar) {
    if (!absent_stay_absent)
      absent_stay_absent = (left ? Apply(code, 0.0, other.scalar) : Apply(code, other.scalar, 0.0)) == 0;
    if (absent_stay_absent) {
      // An explicit zero may meet Infinity here; it is an absent cell like the others.
      HEDDLE_ASSIGN_OR_RETURN(const Matrix entries, DropZeros(driver.matrix));
      return WithScalar(code, entries, other.scalar, !left);
    }
  } else {
    if (!absent_stay_absent) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix divisor, AsDense(other.matrix));
      absent_stay_absent = HasNoZeroOrNaN(divisor);
    }
    if (absent_stay_absent) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix entries, DropZeros(driver.matrix));
      return WithDense(code, entries, other, !left);
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix every, DenseBinary(code, a, b, rows, columns, cancelled));
  return AsSparse(every);
}

namespace {

bool IsCsr(const Operand& operand) { return operand.pattern == Pattern::kCells && operand.matrix.IsSparse(); }

// The cells of one row, asked for from left to right.
class RowCells {
 public:
  RowCells(const Operand& operand, int64_t row) : operand_(operand), row_(row) {
    if (!IsCsr(operand)) return;
    next_ = operand.matrix.row_offsets()[row];
    end_ = operand.matrix.row_offsets()[row + 1];
  }
  /// The column of the next entry of a CSR operand, INT32_MAX behind the last.
  int32_t NextColumn() const { return next_ < end_ ? operand_.matrix.column_indexes()[next_] : INT32_MAX; }
  double At(int32_t column) {
    if (operand_.pattern == Pattern::kScalar) return operand_.scalar;
    if (!operand_.matrix.IsSparse()) return operand_.matrix.data()[row_ * operand_.matrix.columns() + column];
    while (NextColumn() < column) ++next_;
    return NextColumn() == column ? operand_.matrix.values()[next_++] : 0.0;
  }

 private:
  const Operand& operand_;
  int64_t row_, next_ = 0, end_ = 0;
};

}  // namespace

Result<Matrix> SparseSelect(const Operand& condition, const Operand& a, const Operand& b) {
  // Without an entry here, and in b, a cell is b's zero.
  const Operand& first = IsCsr(condition) ? condition : a;
  const Matrix& shape = IsCsr(first) ? first.matrix : b.matrix;
  const int64_t rows = shape.rows(), grain = RowGrain(shape);
  const auto visit_row = [&](int64_t i, auto visit) {
    RowCells of_first(first, i), of_b(b, i);
    for (int32_t column; (column = std::min(of_first.NextColumn(), of_b.NextColumn())) != INT32_MAX;)
      visit(column, of_first.At(column), of_b.At(column));
  };
  std::vector<int64_t> counts(static_cast<size_t>(rows), 0);
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      visit_row(i, [&](int32_t, double, double) { ++counts[static_cast<size_t>(i)]; });
  });
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(shape.columns(), counts));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    int64_t at = result.row_offsets()[begin];
    for (int64_t i = begin; i < end; ++i) {
      RowCells of_condition(condition, i), of_a(a, i);
      visit_row(i, [&](int32_t column, double x, double y) {
        const double chosen_by = &first == &condition ? x : of_condition.At(column);
        const double chosen = &first == &a ? x : of_a.At(column);
        result.mutable_column_indexes()[at] = column;
        result.mutable_values()[at++] = chosen_by != 0 ? chosen : y;
      });
    }
  });
  return DropZerosOfOwn(std::move(result));
}

}  // namespace heddle::ops

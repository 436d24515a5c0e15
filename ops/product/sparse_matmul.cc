// SPDX-License-Identifier: Apache-2.0
// Products with a CSR operand: the chains of the dense product, absent cells skipped (docs/numerics.md,
// section 3).
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "ops/parallel.h"
#include "ops/product/matmul.h"
#include "ops/simd/sparse_rows.h"

namespace heddle::ops {
namespace {

// out[columns of b's row] = fma(x, b, .).
inline void MultiplyEntry(double x, const Matrix& b, int64_t row, double* out) {
  const int32_t* columns = b.column_indexes();
  const double* values = b.values();
  for (int64_t e = b.row_offsets()[row], end = b.row_offsets()[row + 1]; e < end; ++e)
    out[columns[e]] = std::fma(x, values[e], out[columns[e]]);
}

// Entries of a CSR row in columns [begin, end).
std::pair<int64_t, int64_t> Entries(const Matrix& a, int64_t row, int64_t begin, int64_t end) {
  const int32_t* columns = a.column_indexes();
  const int64_t first = a.row_offsets()[row], last = a.row_offsets()[row + 1];
  if (begin == 0 && end == a.columns()) return {first, last};
  return {std::lower_bound(columns + first, columns + last, begin) - columns,
          std::lower_bound(columns + first, columns + last, end) - columns};
}

// A dense row of the result and which of its cells were touched, 64 to a word.
struct ScratchRow {
  std::vector<double> cells;
  std::vector<uint64_t> touched;
  std::vector<size_t> words;  // Of `touched`, those that are not zero.
  explicit ScratchRow(int64_t n) : cells(static_cast<size_t>(n)), touched(static_cast<size_t>(n + 63) / 64) {}
};

// Row i of A %*% B into the scratch row.
void MultiplyRow(const Matrix& a, const Matrix& b, int64_t i, ScratchRow& row) {
  const int32_t* columns = b.column_indexes();
  for (int64_t e = a.row_offsets()[i]; e < a.row_offsets()[i + 1]; ++e) {
    const int64_t k = a.column_indexes()[e];
    const double x = a.values()[e];
    for (int64_t f = b.row_offsets()[k]; f < b.row_offsets()[k + 1]; ++f) {
      const auto j = static_cast<size_t>(columns[f]);
      row.cells[j] = std::fma(x, b.values()[f], row.cells[j]);
      if (row.touched[j / 64] == 0) row.words.push_back(j / 64);
      row.touched[j / 64] |= uint64_t{1} << (j % 64);
    }
  }
}

// Calls body(column, value) for the non-zeros of the scratch row, ascending, and clears it.
template <typename Body>
void DrainRow(ScratchRow& row, const Body& body) {
  std::sort(row.words.begin(), row.words.end());
  for (const size_t word : row.words) {
    for (uint64_t bits = row.touched[word]; bits != 0; bits &= bits - 1) {
      const size_t j = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (row.cells[j] != 0.0) body(static_cast<int32_t>(j), row.cells[j]);
      row.cells[j] = 0.0;
    }
    row.touched[word] = 0;
  }
  row.words.clear();
}

}  // namespace

void MultiplySparseRows(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                        int64_t end, double* out) {
  const int64_t n = b.columns();
  for (int64_t i = row_begin; i < row_end; ++i, out += n) {
    const auto [first, last] = a.IsSparse() ? Entries(a, i, begin, end) : std::pair(begin, end);
    if (!b.IsSparse()) {
      simd::MultiplySparseRow(a.values() + first, a.column_indexes() + first, last - first, b.data(), n, n,
                              out);
      continue;
    }
    std::fill_n(out, n, 0.0);
    for (int64_t e = first; e < last; ++e) {
      if (a.IsSparse())
        MultiplyEntry(a.values()[e], b, a.column_indexes()[e], out);
      else
        MultiplyEntry(a.data()[i * a.columns() + e], b, e, out);
    }
    for (int64_t c = 0; c < n; ++c) out[c] = out[c] + 0.0;
  }
}

Result<Matrix> MultiplySparse(const Matrix& a, const Matrix& b, const KernelContext& context) {
  const int64_t m = a.rows(), n = b.columns();
  // Pieces of rows are computed once into growing arrays, then copied together.
  struct Piece {
    int64_t begin = 0;
    std::vector<int64_t> row_ends;
    std::vector<int32_t> columns;
    std::vector<double> values;
  };
  const int64_t height = std::max<int64_t>(CeilDivide(m, 64), 16);
  std::vector<Piece> pieces(static_cast<size_t>(CeilDivide(m, height)));
  ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
    ScratchRow row(n);
    for (int64_t p = first; p < last && !IsCancelled(context.cancelled); ++p) {
      Piece& piece = pieces[static_cast<size_t>(p)];
      piece.begin = p * height;
      for (int64_t i = piece.begin; i < std::min(m, piece.begin + height); ++i) {
        MultiplyRow(a, b, i, row);
        DrainRow(row, [&](int32_t column, double value) {
          piece.columns.push_back(column);
          piece.values.push_back(value);
        });
        piece.row_ends.push_back(static_cast<int64_t>(piece.columns.size()));
      }
    }
  });
  if (IsCancelled(context.cancelled)) return Cancelled("cancelled");
  int64_t nonzeros = 0;
  for (const Piece& piece : pieces) nonzeros += static_cast<int64_t>(piece.columns.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(m, n, nonzeros));
  if (m == 0) return result;
  int64_t* offsets = result.mutable_row_offsets();
  offsets[0] = 0;
  int64_t base = 0;
  for (const Piece& piece : pieces) {
    for (size_t i = 0; i < piece.row_ends.size(); ++i)
      offsets[piece.begin + static_cast<int64_t>(i) + 1] = base + piece.row_ends[i];
    std::copy(piece.columns.begin(), piece.columns.end(), result.mutable_column_indexes() + base);
    std::copy(piece.values.begin(), piece.values.end(), result.mutable_values() + base);
    base += static_cast<int64_t>(piece.columns.size());
  }
  return result;
}

}  // namespace heddle::ops

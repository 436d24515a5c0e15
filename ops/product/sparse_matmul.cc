// SPDX-License-Identifier: Apache-2.0
// Products with a CSR operand and more than 8 columns: the chains of the dense product, absent cells skipped
// (docs/numerics.md, sections 3 and 9).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "ops/base/parallel.h"
#include "ops/elementwise/widened_rows.h"
#include "ops/product/matmul.h"
#include "ops/simd/cellwise/elementwise.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/product/single_rows.h"
#include "ops/simd/product/sparse_rows.h"

namespace heddle::ops {
namespace {

constexpr int64_t kTaskTerms = 1 << 17;  // Multiply-adds of a task.

// Entries of a CSR row in columns [begin, end).
std::pair<int64_t, int64_t> Entries(const Matrix& a, int64_t row, int64_t begin, int64_t end) {
  const int32_t* columns = a.column_indexes();
  const int64_t first = a.row_offsets()[row], last = a.row_offsets()[row + 1];
  if (begin == 0 && end == a.columns()) return {first, last};
  return {std::lower_bound(columns + first, columns + last, begin) - columns,
          std::lower_bound(columns + first, columns + last, end) - columns};
}

// The terms of a row of the result that make one block: cells of a row of A beside rows of a CSR B.
class BlockOfTerms {
 public:
  explicit BlockOfTerms(int64_t n)
      : chains_(static_cast<size_t>(n)),
        is_touched_(static_cast<size_t>(n)),
        touched_(static_cast<size_t>(n)) {}

  void Add(float x, int64_t row) {
    x_[count_] = x;
    rows_[count_++] = row;
  }

  // Runs the chains of the terms so far, adds them to `sums`, and forgets the terms. Where the rows have few
  // entries, most chains do not exist.
  void End(const Matrix& b, double* sums) {
    const int64_t* const offsets = b.row_offsets();
    int64_t entries = 0;
    for (int64_t i = 0; i < count_; ++i) entries += offsets[rows_[i] + 1] - offsets[rows_[i]];
    if (entries * kFewChains < static_cast<int64_t>(chains_.size()))
      EndFew(b, sums);
    else
      EndMany(b, sums);
    count_ = 0;
  }

 private:
  // Finding out which chains there are takes so many times as long as adding one to its sum.
  static constexpr int64_t kFewChains = 4;

  template <typename Visit>
  void EachEntry(const Matrix& b, const Visit& visit) {
    const int32_t* const columns = b.column_indexes();
    const float* const values = b.values<float>();
    for (int64_t i = 0; i < count_; ++i)
      for (int64_t e = b.row_offsets()[rows_[i]], end = b.row_offsets()[rows_[i] + 1]; e < end; ++e) {
        float& chain = chains_[static_cast<size_t>(columns[e])];
        chain = std::fma(x_[i], values[e], chain);
        visit(columns[e]);
      }
  }
  void EndFew(const Matrix& b, double* sums) {
    size_t touched = 0;
    EachEntry(b, [&](int32_t column) {
      uint8_t& is_touched = is_touched_[static_cast<size_t>(column)];
      touched_[touched] = column;
      touched += is_touched == 0 ? 1 : 0;
      is_touched = 1;
    });
    for (size_t t = 0; t < touched; ++t) {
      const auto column = static_cast<size_t>(touched_[t]);
      sums[column] += static_cast<double>(chains_[column]);
      chains_[column] = 0;
      is_touched_[column] = 0;
    }
  }
  void EndMany(const Matrix& b, double* sums) {
    EachEntry(b, [](int32_t) {});
    for (size_t c = 0; c < chains_.size(); ++c) sums[c] += static_cast<double>(chains_[c]);
    std::fill(chains_.begin(), chains_.end(), 0.0F);
  }

  std::array<float, kSingleBlock> x_;
  std::array<int64_t, kSingleBlock> rows_;
  int64_t count_ = 0;
  std::vector<float> chains_;  // By column of B: zeros between two blocks.
  std::vector<uint8_t> is_touched_;
  std::vector<int32_t> touched_;
};

// Rows of A %*% B over inner indexes [begin, end), one operand CSR: doubles complete, floats not yet rounded.
template <typename Cell>
class RowSums;

template <>
class RowSums<double> {
 public:
  RowSums(const Matrix& a, const Matrix& b) : a_(a), b_(b) {}

  void Row(int64_t i, int64_t begin, int64_t end, double* out) {
    const int64_t n = b_.columns();
    const auto [first, last] = a_.IsSparse() ? Entries(a_, i, begin, end) : std::pair(begin, end);
    if (!b_.IsSparse())
      return simd::MultiplySparseRow(a_.values() + first, a_.column_indexes() + first, last - first,
                                     b_.data(), n, n, out);
    std::fill_n(out, n, 0.0);
    for (int64_t e = first; e < last; ++e) {
      if (a_.IsSparse())
        Add(a_.values()[e], a_.column_indexes()[e], out);
      else
        Add(a_.data()[i * a_.columns() + e], e, out);
    }
    for (int64_t c = 0; c < n; ++c) out[c] = out[c] + 0.0;
  }

 private:
  void Add(double x, int64_t row_of_b, double* out) {
    const int32_t* const columns = b_.column_indexes();
    for (int64_t e = b_.row_offsets()[row_of_b], end = b_.row_offsets()[row_of_b + 1]; e < end; ++e)
      out[columns[e]] = std::fma(x, b_.values()[e], out[columns[e]]);
  }

  const Matrix &a_, &b_;
};

template <>
class RowSums<float> {
 public:
  RowSums(const Matrix& a, const Matrix& b) : a_(a), b_(b), terms_(b.IsSparse() ? b.columns() : 0) {}

  void Row(int64_t i, int64_t begin, int64_t end, double* out) {
    const int64_t n = b_.columns();
    std::fill_n(out, n, 0.0);
    if (!b_.IsSparse()) {
      const auto [first, last] = Entries(a_, i, begin, end);
      return simd::AddSparseRowOfSingles(a_.values<float>() + first, a_.column_indexes() + first,
                                         last - first, b_.data<float>(), n, n, out);
    }
    if (!a_.IsSparse()) {
      for (int64_t k = begin; k < end; ++k) {
        if (k % kSingleBlock == 0) terms_.End(b_, out);
        terms_.Add(a_.data<float>()[i * a_.columns() + k], k);
      }
      return terms_.End(b_, out);
    }
    const auto [first, last] = Entries(a_, i, begin, end);
    for (int64_t e = first, block = -1; e < last; ++e) {
      const int64_t k = a_.column_indexes()[e];
      if (k / kSingleBlock != block) terms_.End(b_, out);
      block = k / kSingleBlock;
      terms_.Add(a_.values<float>()[e], k);
    }
    terms_.End(b_, out);
  }

 private:
  const Matrix &a_, &b_;
  BlockOfTerms terms_;
};

template <typename Cell>
void MultiplyRows(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                  int64_t end, double* out) {
  RowSums<Cell> sums(a, b);
  for (int64_t i = row_begin; i < row_end; ++i, out += b.columns()) sums.Row(i, begin, end, out);
}

// Rows [begin, end) of the result.
template <typename Cell>
void WriteRows(const Matrix& a, const Matrix& b, int64_t begin, int64_t end, const KernelContext& context,
               Cell* out) {
  const int64_t n = b.columns();
  RowSums<Cell> sums(a, b);
  std::vector<double> row(sizeof(Cell) == sizeof(double) ? 0 : static_cast<size_t>(n));
  for (int64_t i = begin; i < end && !IsCancelled(context.cancelled); ++i) {
    if constexpr (std::is_same_v<Cell, double>) {
      sums.Row(i, 0, a.columns(), out + i * n);
    } else {
      sums.Row(i, 0, a.columns(), row.data());
      SelectedElementwiseKernels().narrow(row.data(), out + i * n, n);
    }
  }
}

// A dense row of chains and which of them were touched, 64 to a word.
template <typename Cell>
struct ScratchRow {
  std::vector<Cell> cells;
  std::vector<uint64_t> touched;
  std::vector<size_t> words;  // Of `touched`, those that are not zero.
  explicit ScratchRow(int64_t n) : cells(static_cast<size_t>(n)), touched(static_cast<size_t>(n + 63) / 64) {}

  Cell& Touch(size_t j) {
    if (touched[j / 64] == 0) words.push_back(j / 64);
    touched[j / 64] |= uint64_t{1} << (j % 64);
    return cells[j];
  }
};

// Calls body(column, value) for the non-zeros of the scratch row, ascending, and clears it.
template <typename Cell, typename Body>
void DrainRow(ScratchRow<Cell>& row, const Body& body) {
  std::sort(row.words.begin(), row.words.end());
  for (const size_t word : row.words) {
    for (uint64_t bits = row.touched[word]; bits != 0; bits &= bits - 1) {
      const size_t j = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      if (row.cells[j] != 0) body(static_cast<int32_t>(j), row.cells[j]);
      row.cells[j] = 0;
    }
    row.touched[word] = 0;
  }
  row.words.clear();
}

// Rows of A %*% B, one after the other.
template <typename Cell>
class RowProduct {
 public:
  RowProduct(const Matrix& a, const Matrix& b)
      : a_(a), b_(b), chains_(b.columns()), sums_(kIsSingle ? b.columns() : 0) {}

  // Calls body(column, value) for the non-zeros of row i, ascending.
  template <typename Body>
  void Row(int64_t i, const Body& body) {
    const int64_t begin = a_.row_offsets()[i], end = a_.row_offsets()[i + 1];
    if constexpr (!kIsSingle) {
      AddEntries(begin, end);
      DrainRow(chains_, body);
    } else {
      // Sums of one block of chains after the other (docs/numerics.md, section 9).
      for (int64_t e = begin, block_end; e < end; e = block_end) {
        const int64_t next = (a_.column_indexes()[e] / kSingleBlock + 1) * kSingleBlock;
        for (block_end = e + 1; block_end < end && a_.column_indexes()[block_end] < next;) ++block_end;
        AddEntries(e, block_end);
        DrainRow(chains_, [&](int32_t column, Cell chain) {
          sums_.Touch(static_cast<size_t>(column)) += static_cast<double>(chain);
        });
      }
      DrainRow(sums_, [&](int32_t column, double sum) {
        if (const auto value = static_cast<Cell>(sum); value != 0) body(column, value);
      });
    }
  }

 private:
  static constexpr bool kIsSingle = std::is_same_v<Cell, float>;

  void AddEntries(int64_t begin, int64_t end) {
    const int32_t* const columns = b_.column_indexes();
    for (int64_t e = begin; e < end; ++e) {
      const int64_t k = a_.column_indexes()[e];
      const Cell x = a_.values<Cell>()[e];
      for (int64_t f = b_.row_offsets()[k]; f < b_.row_offsets()[k + 1]; ++f) {
        Cell& chain = chains_.Touch(static_cast<size_t>(columns[f]));
        chain = std::fma(x, b_.values<Cell>()[f], chain);
      }
    }
  }

  const Matrix &a_, &b_;
  ScratchRow<Cell> chains_;
  ScratchRow<double> sums_;
};

template <typename Cell>
Result<Matrix> MultiplySparseCells(const Matrix& a, const Matrix& b, const KernelContext& context) {
  const int64_t m = a.rows(), n = b.columns();
  // Pieces of rows are computed once into growing arrays, then copied together.
  struct Piece {
    int64_t begin = 0;
    std::vector<int64_t> row_ends;
    std::vector<int32_t> columns;
    std::vector<Cell> values;
  };
  const int64_t height = std::max<int64_t>(CeilDivide(m, 64), 16);
  std::vector<Piece> pieces(static_cast<size_t>(CeilDivide(m, height)));
  ParallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t first, int64_t last) {
    RowProduct<Cell> product(a, b);
    for (int64_t p = first; p < last && !IsCancelled(context.cancelled); ++p) {
      Piece& piece = pieces[static_cast<size_t>(p)];
      piece.begin = p * height;
      for (int64_t i = piece.begin; i < std::min(m, piece.begin + height); ++i) {
        product.Row(i, [&](int32_t column, Cell value) {
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
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(m, n, nonzeros, a.element_type()));
  if (m == 0) return result;
  int64_t* offsets = result.mutable_row_offsets();
  offsets[0] = 0;
  int64_t base = 0;
  for (const Piece& piece : pieces) {
    for (size_t i = 0; i < piece.row_ends.size(); ++i)
      offsets[piece.begin + static_cast<int64_t>(i) + 1] = base + piece.row_ends[i];
    std::copy(piece.columns.begin(), piece.columns.end(), result.mutable_column_indexes() + base);
    std::copy(piece.values.begin(), piece.values.end(), result.mutable_values<Cell>() + base);
    base += static_cast<int64_t>(piece.columns.size());
  }
  return result;
}

}  // namespace

void MultiplySparseRows(const Matrix& a, const Matrix& b, int64_t row_begin, int64_t row_end, int64_t begin,
                        int64_t end, double* out) {
  const auto multiply = HoldsSingles(a) ? MultiplyRows<float> : MultiplyRows<double>;
  multiply(a, b, row_begin, row_end, begin, end, out);
}

Result<Matrix> MultiplyWithSparse(const Matrix& a, const Matrix& b, const KernelContext& context) {
  const int64_t m = a.rows(), n = b.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(m, n, a.element_type()));
  const int64_t row_terms =
      a.IsSparse() ? (a.stored() / std::max<int64_t>(m, 1) + 1) * n : a.columns() + b.stored();
  ParallelFor(m, std::max<int64_t>(1, kTaskTerms / std::max<int64_t>(row_terms, 1)),
              [&](int64_t begin, int64_t end) {
                if (HoldsSingles(a))
                  WriteRows(a, b, begin, end, context, result.mutable_data<float>());
                else
                  WriteRows(a, b, begin, end, context, result.mutable_data());
              });
  return result;
}

Result<Matrix> MultiplySparse(const Matrix& a, const Matrix& b, const KernelContext& context) {
  return a.element_type() == ElementType::kFloat32 ? MultiplySparseCells<float>(a, b, context)
                                                   : MultiplySparseCells<double>(a, b, context);
}

}  // namespace heddle::ops

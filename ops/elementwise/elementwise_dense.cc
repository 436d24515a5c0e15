// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/elementwise_dense.h"

#include <algorithm>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/cells/storage.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainCells = 32768;            // 256 KiB of result: enough work for a task
constexpr int64_t kStreamCells = (32 << 20) / 8;  // larger results do not stay in a cache anyway
constexpr int64_t kNarrowColumns = 256;           // narrower rows are treated several at a time
constexpr int64_t kTileCells = 2048;              // of several narrow rows: buffers stay in L1
constexpr int64_t kChunkColumns = 16384;          // longer rows are cut

// Rows [row_begin, row_end) and columns [column_begin, column_end): whole rows, or a part of one.
struct Tile {
  int64_t row_begin, row_end, column_begin, column_end;
  int64_t rows() const { return row_end - row_begin; }
  int64_t columns() const { return column_end - column_begin; }
  int64_t cells() const { return rows() * columns(); }
};

// Cuts rows x columns into tiles that are contiguous in a dense matrix.
struct Tiling {
  Tiling(int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    if (columns <= kNarrowColumns)
      height = std::max<int64_t>(8, kTileCells / std::max<int64_t>(columns, 1) / 8 * 8);
    chunks = std::max<int64_t>(1, (columns + kChunkColumns - 1) / kChunkColumns);
    count = (rows + height - 1) / height * chunks;
    grain =
        std::max<int64_t>(1, kGrainCells / std::max<int64_t>(1, height * std::min(columns, kChunkColumns)));
  }
  Tile At(int64_t i) const {
    const int64_t row = i / chunks * height;
    const int64_t column = i % chunks * kChunkColumns;
    return {row, std::min(rows, row + height), column,
            chunks == 1 ? columns : std::min(columns, column + kChunkColumns)};
  }
  int64_t rows, columns;
  int64_t height = 1;
  int64_t chunks, count, grain;
};

// Writes the cells of a tile of a CSR matrix.
void Expand(const Matrix& sparse, const Tile& tile, double* out) {
  std::fill_n(out, tile.cells(), 0.0);
  for (int64_t i = tile.row_begin; i < tile.row_end; ++i) {
    const int32_t* begin = sparse.column_indexes() + sparse.row_offsets()[i];
    const int32_t* end = sparse.column_indexes() + sparse.row_offsets()[i + 1];
    const int32_t* first = tile.column_begin == 0 ? begin : std::lower_bound(begin, end, tile.column_begin);
    const double* values = sparse.values() + sparse.row_offsets()[i];
    double* row = out + (i - tile.row_begin) * tile.columns() - tile.column_begin;
    for (const int32_t* p = first; p < end && *p < tile.column_end; ++p) row[*p] = values[p - begin];
  }
}

// Presents an operand of a tile as an array of cells, or as one value.
class OperandReader {
 public:
  OperandReader(const Operand& operand, const Tiling& tiling) : operand_(operand) {
    const bool narrow = tiling.height > 1;
    const bool repeats = narrow && (operand.pattern == Pattern::kRow || operand.pattern == Pattern::kColumn);
    if (repeats || (operand.pattern == Pattern::kCells && operand.matrix.IsSparse()))
      buffer_.resize(static_cast<size_t>(tiling.height * std::min(tiling.columns, kChunkColumns) + 8));
    if (narrow && operand.pattern == Pattern::kRow) {
      for (int64_t i = 0; i < tiling.height; ++i)
        std::copy_n(operand.matrix.data(), tiling.columns, buffer_.data() + i * tiling.columns);
    }
  }

  struct Cells {
    const double* data;
    bool single;
  };
  Cells Read(const Tile& tile) {
    const Matrix& matrix = operand_.matrix;
    switch (operand_.pattern) {
      case Pattern::kScalar: return {&operand_.scalar, true};
      case Pattern::kRow:
        return {buffer_.empty() ? matrix.data() + tile.column_begin : buffer_.data(), false};
      case Pattern::kColumn: {
        if (buffer_.empty()) return {matrix.data() + tile.row_begin, true};
        SelectedElementwiseKernels().repeat(matrix.data() + tile.row_begin, tile.rows(), tile.columns(),
                                            buffer_.data());
        return {buffer_.data(), false};
      }
      case Pattern::kCells: break;
    }
    if (!matrix.IsSparse())
      return {matrix.data() + tile.row_begin * matrix.columns() + tile.column_begin, false};
    Expand(matrix, tile, buffer_.data());
    return {buffer_.data(), false};
  }

 private:
  const Operand& operand_;
  std::vector<double> buffer_;
};

bool IsFlat(const Operand& operand) {
  return operand.pattern == Pattern::kScalar ||
         (operand.pattern == Pattern::kCells && !operand.matrix.IsSparse());
}

// A vector operand in dense form: it is small beside the result.
Result<Operand> WithDenseVector(const Operand& operand) {
  Operand result = operand;
  if (operand.pattern == Pattern::kRow || operand.pattern == Pattern::kColumn) {
    HEDDLE_ASSIGN_OR_RETURN(result.matrix, AsDense(operand.matrix));
  }
  return result;
}

Operands KindOf(bool left_single, bool right_single) {
  if (left_single) return Operands::kScalarCells;
  return right_single ? Operands::kCellsScalar : Operands::kCellsCells;
}

}  // namespace

Result<Matrix> DenseBinary(BinaryCode code, const Operand& a, const Operand& b, int64_t rows, int64_t columns,
                           const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns));
  const int64_t cells = rows * columns;
  if (cells == 0) return result;
  const ElementwiseKernels& kernels = SelectedElementwiseKernels();
  double* out = result.mutable_data();
  if (IsFlat(a) && IsFlat(b)) {
    const bool left_single = a.pattern == Pattern::kScalar, right_single = b.pattern == Pattern::kScalar;
    const BinaryKernel kernel = kernels.Of(code, KindOf(left_single, right_single));
    const double* left = left_single ? &a.scalar : a.matrix.data();
    const double* right = right_single ? &b.scalar : b.matrix.data();
    ParallelFor(cells, kGrainCells, [&](int64_t begin, int64_t end) {
      if (IsCancelled(cancelled)) return;
      kernel(left + (left_single ? 0 : begin), right + (right_single ? 0 : begin), out + begin, end - begin,
             cells > kStreamCells);
    });
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const Operand left, WithDenseVector(a));
    HEDDLE_ASSIGN_OR_RETURN(const Operand right, WithDenseVector(b));
    const Tiling tiling(rows, columns);
    // Streaming pays where a tile covers whole 64-byte lines, or nearly so.
    const bool stream = cells > kStreamCells && (tiling.height > 1 || columns % 8 == 0 || columns >= 2048);
    ParallelFor(tiling.count, tiling.grain, [&](int64_t begin, int64_t end) {
      OperandReader left_reader(left, tiling), right_reader(right, tiling);
      for (int64_t i = begin; i < end && !IsCancelled(cancelled); ++i) {
        const Tile tile = tiling.At(i);
        const auto x = left_reader.Read(tile);
        const auto y = right_reader.Read(tile);
        kernels.Of(code, KindOf(x.single, y.single))(
            x.data, y.data, out + tile.row_begin * columns + tile.column_begin, tile.cells(), stream);
      }
    });
  }
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return result;
}

Result<Matrix> DenseUnary(UnaryCode code, const Matrix& x, const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  const UnaryKernel kernel = SelectedElementwiseKernels().Of(code);
  const int64_t cells = x.cells();
  double* out = result.mutable_data();
  if (!x.IsSparse()) {
    ParallelFor(cells, kGrainCells, [&](int64_t begin, int64_t end) {
      if (IsCancelled(cancelled)) return;
      kernel(x.data() + begin, out + begin, end - begin, cells > kStreamCells);
    });
  } else {
    // f(0) everywhere, then f of the entries.
    const double zero = 0;
    double of_zero;
    kernel(&zero, &of_zero, 1, false);
    const int64_t columns = x.columns();
    ParallelFor(x.rows(), std::max<int64_t>(1, kGrainCells / std::max<int64_t>(columns, 1)),
                [&](int64_t begin, int64_t end) {
                  if (IsCancelled(cancelled)) return;
                  double values[kTileCells];
                  std::fill(out + begin * columns, out + end * columns, of_zero);
                  for (int64_t i = begin; i < end; ++i) {
                    for (int64_t p = x.row_offsets()[i]; p < x.row_offsets()[i + 1]; p += kTileCells) {
                      const int64_t count = std::min(kTileCells, x.row_offsets()[i + 1] - p);
                      kernel(x.values() + p, values, count, false);
                      for (int64_t k = 0; k < count; ++k)
                        out[i * columns + x.column_indexes()[p + k]] = values[k];
                    }
                  }
                });
  }
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return result;
}

Result<Matrix> DenseSelect(const Operand& condition, const Operand& a, const Operand& b, int64_t rows,
                           int64_t columns, const std::atomic<bool>* cancelled) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns));
  double* out = result.mutable_data();
  const SelectKernel kernel = SelectedElementwiseKernels().select;
  const Tiling tiling(rows, columns);
  ParallelFor(result.cells() == 0 ? 0 : tiling.count, tiling.grain, [&](int64_t begin, int64_t end) {
    OperandReader condition_reader(condition, tiling), a_reader(a, tiling), b_reader(b, tiling);
    for (int64_t i = begin; i < end && !IsCancelled(cancelled); ++i) {
      const Tile tile = tiling.At(i);
      const auto c = condition_reader.Read(tile), x = a_reader.Read(tile), y = b_reader.Read(tile);
      kernel(c.data, c.single ? 0 : 1, x.data, x.single ? 0 : 1, y.data, y.single ? 0 : 1,
             out + tile.row_begin * columns + tile.column_begin, tile.cells());
    }
  });
  if (IsCancelled(cancelled)) return Cancelled("cancelled");
  return result;
}

}  // namespace heddle::ops

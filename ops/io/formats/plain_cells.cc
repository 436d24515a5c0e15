// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/plain_cells.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/base/kernel.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/ordered_pieces.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsOfPiece = 1 << 17;  // a megabyte

// True of +0.0 alone: a zero with a sign is a cell that is stored.
bool IsAbsent(double cell) { return std::bit_cast<uint64_t>(cell) == 0; }

// Rows cut into pieces.
struct Pieces {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t rows = 1;  // of a piece

  int64_t count() const { return (end - begin + rows - 1) / rows; }
  int64_t Begin(int64_t piece) const { return begin + piece * rows; }
  int64_t End(int64_t piece) const { return std::min(Begin(piece) + rows, end); }
};

// Calls visit(piece) for every piece, several at once; the status of the first that failed.
template <typename Visit>
Status ForEachPiece(const ReadOptions& options, const Pieces& pieces, const Visit& visit) {
  FirstFailure failure;
  ParallelFor(pieces.count(), 1, [&](int64_t begin, int64_t end) {
    CountedBytes buffer;
    for (int64_t p = begin; p < end; ++p) {
      if (IsCancelled(options.cancelled)) return;
      if (const Status status = visit(p, &buffer); !status.ok()) return failure.Add(p, status);
    }
  });
  if (IsCancelled(options.cancelled)) return Cancelled("cancelled");
  return failure.status();
}

Result<Matrix> CollectSparse(const ReadOptions& options, const Pieces& pieces, int64_t columns,
                             const FillRows& fill) {
  const int64_t rows = pieces.end - pieces.begin;
  HEDDLE_ASSIGN_OR_RETURN(Matrix counted, Matrix::Sparse(rows, columns, 0));
  int64_t* const counts = counted.mutable_row_offsets();
  // Calls take(row, column, cell) for the stored cells of a piece, rows counted from the first of all.
  const auto visit_cells = [&](int64_t piece, CountedBytes* buffer, const auto& take) -> Status {
    const int64_t begin = pieces.Begin(piece), end = pieces.End(piece);
    HEDDLE_RETURN_IF_ERROR(buffer->Renew((end - begin) * columns * 8, options.path));
    auto* const cells = reinterpret_cast<double*>(buffer->data());
    HEDDLE_RETURN_IF_ERROR(fill(begin, end, cells));
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (const double cell = cells[(i - begin) * columns + j]; !IsAbsent(cell))
          take(i - pieces.begin, j, cell);
    return OkStatus();
  };
  HEDDLE_RETURN_IF_ERROR(ForEachPiece(options, pieces, [&](int64_t piece, CountedBytes* buffer) {
    return visit_cells(piece, buffer, [&](int64_t row, int64_t, double) { ++counts[row + 1]; });
  }));
  for (int64_t i = 0; i < rows; ++i) counts[i + 1] += counts[i];
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Sparse(rows, columns, counts[rows]));
  std::copy_n(counts, rows + 1, matrix.mutable_row_offsets());
  std::atomic<bool> changed = false;
  HEDDLE_RETURN_IF_ERROR(ForEachPiece(options, pieces, [&](int64_t piece, CountedBytes* buffer) {
    int64_t at = counts[pieces.Begin(piece) - pieces.begin];
    HEDDLE_RETURN_IF_ERROR(visit_cells(piece, buffer, [&](int64_t row, int64_t column, double cell) {
      if (at < counts[row] || at >= counts[row + 1]) {
        changed = true;
        return;
      }
      matrix.mutable_values()[at] = cell;
      matrix.mutable_column_indexes()[at++] = static_cast<int32_t>(column);
    }));
    if (at != counts[pieces.End(piece) - pieces.begin]) changed = true;
    return OkStatus();
  }));
  return changed ? Result<Matrix>(ItChanged(options)) : std::move(matrix);
}

// Cells [begin, end) of a matrix, counted row by row.
template <typename T>
void CopyCells(const Matrix& matrix, int64_t begin, int64_t end, double* out) {
  if (!matrix.IsSparse()) {
    const T* const cells = matrix.data<T>();
    for (int64_t k = begin; k < end; ++k) out[k - begin] = CanonicalCell(static_cast<double>(cells[k]));
    return;
  }
  std::fill_n(out, end - begin, 0.0);
  const int64_t columns = matrix.columns();
  for (int64_t row = begin / columns; row * columns < end; ++row)
    for (int64_t k = matrix.row_offsets()[row]; k < matrix.row_offsets()[row + 1]; ++k) {
      const int64_t cell = row * columns + matrix.column_indexes()[k];
      if (cell >= begin && cell < end)
        out[cell - begin] = CanonicalCell(static_cast<double>(matrix.values<T>()[k]));
    }
}

}  // namespace

double CanonicalCell(double cell) {
  return std::isnan(cell) ? std::numeric_limits<double>::quiet_NaN() : cell;
}

Result<Matrix> CollectRows(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                           int64_t row_end, int64_t least_rows, const FillRows& fill) {
  const int64_t columns = summary.shape.columns;
  const int64_t rows = std::max({int64_t{1}, least_rows, kCellsOfPiece / std::max<int64_t>(1, columns)});
  const Pieces pieces{row_begin, columns == 0 ? row_begin : row_end, rows};
  if (summary.format == Format::kSparse && columns > 0) return CollectSparse(options, pieces, columns, fill);
  HEDDLE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Dense(row_end - row_begin, columns));
  HEDDLE_RETURN_IF_ERROR(ForEachPiece(options, pieces, [&](int64_t piece, CountedBytes*) {
    const int64_t begin = pieces.Begin(piece);
    return fill(begin, pieces.End(piece), matrix.mutable_data() + (begin - row_begin) * columns);
  }));
  return matrix;
}

int64_t RowsOfCellPiece(int64_t columns) {
  return std::max<int64_t>(1, kCellsOfPiece / std::max<int64_t>(1, columns));
}

Status GiveCells(const Matrix& matrix, const std::optional<Packing>& packing,
                 const std::atomic<bool>* cancelled, const ByteSink& sink) {
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    std::vector<double> cells;
    std::string packed;
    std::string_view bytes() const {
      return {reinterpret_cast<const char*>(cells.data()), cells.size() * sizeof(double)};
    }
  };
  const bool doubles = matrix.element_type() == ElementType::kFloat64;
  const int64_t cells_of_rows = RowsOfCellPiece(matrix.columns()) * matrix.columns();
  int64_t at = 0;
  return GiveInOrder<Piece>(
      cancelled,
      [&](Piece* piece) {
        if (at >= matrix.cells()) return false;
        piece->begin = at;
        at = std::min(at + kCellsOfPiece, (at / cells_of_rows + 1) * cells_of_rows);
        piece->end = at = std::min(at, matrix.cells());
        return true;
      },
      [&](Piece* piece) {
        piece->cells.resize(static_cast<size_t>(piece->end - piece->begin));
        doubles ? CopyCells<double>(matrix, piece->begin, piece->end, piece->cells.data())
                : CopyCells<float>(matrix, piece->begin, piece->end, piece->cells.data());
        return PackPiece(packing, piece->bytes(), &piece->packed);
      },
      [&](Piece* piece) { return sink(packing ? std::string_view(piece->packed) : piece->bytes()); });
}

Result<std::unique_ptr<InputFile>> OpenOneFile(const ReadOptions& options, Files& files) {
  if (files.IsDirectory(options.path))
    return DataLoss("cannot read '{}': it is a folder, in format {} a matrix is one file", options.path,
                    Name(*options.format));
  return files.Open(options.path);
}

std::shared_ptr<const Schema> TableOfMatrix(std::shared_ptr<const Schema> schema) {
  const bool are_doubles = std::all_of(schema->types.begin(), schema->types.end(),
                                       [](ColumnType type) { return type == ColumnType::kFloat64; });
  return are_doubles && schema->names.empty() ? nullptr : std::move(schema);
}

Status CheckSaidSizes(const ReadOptions& options, const Shape& found) {
  for (const auto& [name, said, has] :
       {std::tuple{"rows", options.rows, found.rows}, std::tuple{"cols", options.columns, found.columns}})
    if (said != kUnknown && said != has)
      return DataLoss("cannot read '{}': {}={} was asked for, the file has {}", options.path, name, said,
                      has);
  return OkStatus();
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
// Matrices in binary files. What is written is a function of the cells alone, not of how they are stored:
// each block has the layout that takes fewer bytes.
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "core/values/column_groups.h"
#include "ops/base/cpu.h"
#include "ops/base/parallel.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/binary_layout.h"
#include "ops/io/formats/plain_cells.h"
#include "ops/io/formats/readers.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsToCount = 1 << 16;

// True of +0.0 alone: a zero with a sign is a cell that is stored.
template <typename T>
bool IsAbsent(T cell) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return std::bit_cast<Bits>(cell) == 0;
}

// Which NaN it is depends on the plan (docs/numerics.md R7), the file must not.
template <typename T>
T Canonical(T cell) {
  return std::isnan(cell) ? std::numeric_limits<T>::quiet_NaN() : cell;
}

// Cells in memory of these rows, one after the other: all of a dense matrix, the entries of a CSR one.
template <typename T>
std::span<const T> CellsOf(const Matrix& matrix, int64_t begin, int64_t end) {
  const int64_t first = matrix.IsSparse() ? matrix.row_offsets()[begin] : begin * matrix.columns();
  const int64_t last = matrix.IsSparse() ? matrix.row_offsets()[end] : end * matrix.columns();
  return {matrix.values<T>() + first, static_cast<size_t>(last - first)};
}

template <typename T>
int64_t CountStored(const Matrix& matrix, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (const T cell : CellsOf<T>(matrix, begin, end)) count += !IsAbsent(cell);
  return count;
}

template <typename T>
int64_t CountStored(const Matrix& matrix) {
  const int64_t rows_at_once = std::max<int64_t>(1, kCellsToCount / std::max<int64_t>(1, matrix.columns()));
  std::atomic<int64_t> count = 0;
  ParallelFor(matrix.rows(), rows_at_once, [&](int64_t begin, int64_t end) {
    count.fetch_add(CountStored<T>(matrix, begin, end), std::memory_order_relaxed);
  });
  return count;
}

// Calls visit(column, cell) for the stored cells of a row, columns ascending.
template <typename T, typename Visit>
void VisitStored(const Matrix& matrix, int64_t row, const Visit& visit) {
  const std::span<const T> cells = CellsOf<T>(matrix, row, row + 1);
  const int32_t* const columns =
      matrix.IsSparse() ? matrix.column_indexes() + matrix.row_offsets()[row] : nullptr;
  for (size_t k = 0; k < cells.size(); ++k)
    if (!IsAbsent(cells[k])) visit(columns == nullptr ? static_cast<int64_t>(k) : columns[k], cells[k]);
}

template <typename T>
void EncodeDense(const Matrix& matrix, int64_t begin, int64_t end, char* out) {
  T* const cells = reinterpret_cast<T*>(out);
  const int64_t columns = matrix.columns();
  if (!matrix.IsSparse()) {
    const T* const from = matrix.data<T>() + begin * columns;
    for (int64_t k = 0; k < (end - begin) * columns; ++k) cells[k] = Canonical(from[k]);
    return;
  }
  std::fill_n(cells, (end - begin) * columns, T{0});
  for (int64_t row = begin; row < end; ++row)
    VisitStored<T>(matrix, row, [&](int64_t column, T cell) {
      cells[(row - begin) * columns + column] = Canonical(cell);
    });
}

template <typename T>
void EncodeCsr(const Matrix& matrix, int64_t begin, int64_t end, int64_t stored, char* out) {
  T* values = reinterpret_cast<T*>(out);
  auto* columns = reinterpret_cast<int32_t*>(out + stored * static_cast<int64_t>(sizeof(T)));
  auto* ends = reinterpret_cast<uint32_t*>(columns + stored);
  uint32_t count = 0;
  for (int64_t row = begin; row < end; ++row) {
    VisitStored<T>(matrix, row, [&](int64_t column, T cell) {
      values[count] = Canonical(cell);
      columns[count++] = static_cast<int32_t>(column);
    });
    ends[row - begin] = count;
  }
}

template <typename T>
constexpr BlockLayout kDenseOf = sizeof(T) == 8 ? BlockLayout::kDense64 : BlockLayout::kDense32;
template <typename T>
constexpr BlockLayout kCsrOf = sizeof(T) == 8 ? BlockLayout::kCsr64 : BlockLayout::kCsr32;

// True of dense rows that are in memory as in a file: with padding, and with whatever is a NaN.
template <typename T>
bool AreEncoded(const Matrix& matrix, int64_t begin, int64_t end) {
  if (matrix.IsSparse()) return false;
  const std::span<const T> cells = CellsOf<T>(matrix, begin, end);
  bool any_nan = false;
  for (const T cell : cells) any_nan |= std::isnan(cell);
  return !any_nan && !cells.empty() && cells.size_bytes() % 8 == 0;
}

template <typename T>
Status Encode(const Matrix& matrix, int64_t begin, int64_t end, EncodedBlock* block) {
  const int64_t rows = end - begin;
  block->stored = CountStored<T>(matrix, begin, end);
  const int64_t dense = BytesOfMatrixBlock(kDenseOf<T>, rows, matrix.columns(), block->stored);
  const int64_t csr = BytesOfMatrixBlock(kCsrOf<T>, rows, matrix.columns(), block->stored);
  // What counts entries and columns in a CSR block has 32 bits.
  const bool fits = block->stored <= UINT32_MAX && matrix.columns() <= INT32_MAX;
  const bool is_csr = fits && csr < dense;
  block->layout = is_csr ? kCsrOf<T> : kDenseOf<T>;
  block->borrowed = {};
  if (!is_csr && AreEncoded<T>(matrix, begin, end)) {
    const std::span<const T> cells = CellsOf<T>(matrix, begin, end);
    block->borrowed = {reinterpret_cast<const char*>(cells.data()), cells.size_bytes()};
    return OkStatus();
  }
  const int64_t bytes = is_csr ? csr : dense;
  HEDDLE_RETURN_IF_ERROR(block->bytes.Renew(bytes, "a binary file"));
  if (bytes >= 8) std::memset(block->bytes.data() + bytes - 8, 0, 8);  // what is rounded up to
  is_csr ? EncodeCsr<T>(matrix, begin, end, block->stored, block->bytes.data())
         : EncodeDense<T>(matrix, begin, end, block->bytes.data());
  return OkStatus();
}

// Rows [begin, end) of a matrix as they come out of blocks.
class Target {
 public:
  static Result<Target> Make(const BinaryFile& file, Format format, int64_t begin, int64_t end) {
    Target target(file, begin, end);
    const int64_t columns = file.shape().columns;
    if (format == Format::kDense) {
      HEDDLE_ASSIGN_OR_RETURN(target.matrix_, Matrix::Dense(end - begin, columns));
      return target;
    }
    // Entries keep their places in the blocks, so that blocks can be taken in any order: some room is left
    // before the first and behind the last row where they lie inside of blocks.
    int64_t stored = 0;
    for (int64_t b = target.first_block_; b < file.BlocksUpTo(end) && begin < end; ++b) {
      target.entries_.push_back(stored);
      stored += file.Block(b).stored;
    }
    HEDDLE_ASSIGN_OR_RETURN(target.matrix_, Matrix::Sparse(end - begin, columns, stored));
    return target;
  }

  // Where all cells of a block go one after the other as they are in the file; nullptr where they do not.
  char* PlaceOf(int64_t number) {
    const bool is_whole = From(number) == 0 && To(number) == file_.EndRow(number) - file_.FirstRow(number);
    if (matrix_.IsSparse() || !is_whole || file_.Block(number).layout != BlockLayout::kDense64)
      return nullptr;
    return reinterpret_cast<char*>(matrix_.mutable_data() + RowOf(number, 0) * file_.shape().columns);
  }

  Status Take(int64_t number, const char* bytes) {
    const BinaryBlock block = file_.Block(number);
    if (bytes == PlaceOf(number)) return OkStatus();
    switch (block.layout) {
      case BlockLayout::kDense64: return TakeDense<double>(number, block, bytes);
      case BlockLayout::kDense32: return TakeDense<float>(number, block, bytes);
      case BlockLayout::kCsr64: return TakeCsr<double>(number, block, bytes);
      case BlockLayout::kCsr32: return TakeCsr<float>(number, block, bytes);
      case BlockLayout::kColumns:
      case BlockLayout::kGroups64:
      case BlockLayout::kGroups32: break;
    }
    return file_.Malformed(number, "they are no rows of a matrix");
  }

  Matrix Finish() && { return std::move(matrix_); }

 private:
  Target(const BinaryFile& file, int64_t begin, int64_t end)
      : file_(file), begin_(begin), end_(end), first_block_(begin / file.rows_of_block()) {}

  // The rows of a block that are wanted, counted in the block.
  int64_t From(int64_t block) const {
    return std::max(begin_, file_.FirstRow(block)) - file_.FirstRow(block);
  }
  int64_t To(int64_t block) const { return std::min(end_, file_.EndRow(block)) - file_.FirstRow(block); }
  int64_t RowOf(int64_t block, int64_t row) const { return file_.FirstRow(block) + row - begin_; }
  int64_t FirstEntry(int64_t block) const { return entries_[static_cast<size_t>(block - first_block_)]; }

  template <typename T>
  Status TakeDense(int64_t number, const BinaryBlock& block, const char* bytes) {
    const int64_t columns = file_.shape().columns;
    const int64_t from = From(number), to = To(number);
    const T* const cells = reinterpret_cast<const T*>(bytes);
    if (!matrix_.IsSparse()) {
      std::copy(cells + from * columns, cells + to * columns,
                matrix_.mutable_data() + RowOf(number, from) * columns);
      return OkStatus();
    }
    int64_t at = FirstEntry(number);
    const int64_t end = at + block.stored;
    for (int64_t row = 0; row < to; ++row) {
      if (row == from && RowOf(number, row) == 0) matrix_.mutable_row_offsets()[0] = at;
      for (int64_t j = 0; j < columns; ++j) {
        const T cell = cells[row * columns + j];
        if (IsAbsent(cell)) continue;
        if (at == end) return file_.Malformed(number, "they have more cells than the index says");
        matrix_.mutable_values()[at] = cell;
        matrix_.mutable_column_indexes()[at++] = static_cast<int32_t>(j);
      }
      if (row >= from) matrix_.mutable_row_offsets()[RowOf(number, row) + 1] = at;
    }
    // The next block begins where this one was to end.
    if (to == file_.EndRow(number) - file_.FirstRow(number) && at != end)
      return file_.Malformed(number, "they have fewer cells than the index says");
    return OkStatus();
  }

  template <typename T>
  Status TakeCsr(int64_t number, const BinaryBlock& block, const char* bytes) {
    const int64_t columns = file_.shape().columns;
    const int64_t rows = file_.EndRow(number) - file_.FirstRow(number);
    const int64_t from = From(number), to = To(number);
    const T* const values = reinterpret_cast<const T*>(bytes);
    const auto* indexes = reinterpret_cast<const int32_t*>(values + block.stored);
    const auto* ends = reinterpret_cast<const uint32_t*>(indexes + block.stored);
    const bool dense = !matrix_.IsSparse();
    if (dense)
      std::fill_n(matrix_.mutable_data() + RowOf(number, from) * columns, (to - from) * columns, 0.0);
    else if (RowOf(number, from) == 0)  // elsewhere it is the end of the block before, which writes it
      matrix_.mutable_row_offsets()[0] = FirstEntry(number) + (from == 0 ? 0 : int64_t{ends[from - 1]});
    int64_t begin = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t end = ends[row];
      if (end < begin || end > block.stored) return file_.Malformed(number, "their rows overlap");
      const bool wanted = row >= from && row < to;
      int64_t before = -1;
      for (int64_t k = begin; k < end; ++k) {
        const int64_t column = indexes[k];
        if (column <= before || column >= columns)
          return file_.Malformed(number, "their columns are out of order");
        before = column;
        if (!wanted) continue;
        if (dense) {
          matrix_.mutable_data()[RowOf(number, row) * columns + column] = values[k];
        } else {
          matrix_.mutable_values()[FirstEntry(number) + k] = values[k];
          matrix_.mutable_column_indexes()[FirstEntry(number) + k] = indexes[k];
        }
      }
      if (wanted && !dense) matrix_.mutable_row_offsets()[RowOf(number, row) + 1] = FirstEntry(number) + end;
      begin = end;
    }
    return begin == block.stored ? OkStatus()
                                 : file_.Malformed(number, "they have fewer cells than the index says");
  }

  const BinaryFile& file_;
  const int64_t begin_;
  const int64_t end_;
  const int64_t first_block_;
  std::vector<int64_t> entries_;  // Of CSR: where those of each block begin.
  Matrix matrix_;
};

}  // namespace

Status EncodeRows(const Matrix& matrix, int64_t begin, int64_t end, EncodedBlock* block) {
  return matrix.element_type() == ElementType::kFloat64 ? Encode<double>(matrix, begin, end, block)
                                                        : Encode<float>(matrix, begin, end, block);
}

int64_t CountStoredCells(const Matrix& matrix) {
  return matrix.element_type() == ElementType::kFloat64 ? CountStored<double>(matrix)
                                                        : CountStored<float>(matrix);
}

Result<Matrix> RowsOf(const BinaryFile& file, Format format, int64_t row_begin, int64_t row_end,
                      const std::atomic<bool>* cancelled) {
  if (file.coding() != nullptr && row_begin < row_end)
    return CodedRowsOf(file, row_begin, row_end, cancelled);
  HEDDLE_ASSIGN_OR_RETURN(Target target, Target::Make(file, format, row_begin, row_end));
  HEDDLE_RETURN_IF_ERROR(file.Visit(
      row_begin, row_end, cancelled, [&](int64_t block) { return target.PlaceOf(block); },
      [&](int64_t block, const char* bytes) { return target.Take(block, bytes); }));
  return std::move(target).Finish();
}

Result<Matrix> ReadBinaryMatrix(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                                int64_t row_end, Files& files) {
  HEDDLE_ASSIGN_OR_RETURN(const BinaryFile file, BinaryFile::Open(options, files));
  if (file.size() != summary.text_bytes || file.schema() != nullptr || file.shape() != summary.shape ||
      file.stored() != summary.stored)
    return ItChanged(options);
  // To read cells of what fits in a cache takes less time than to look them up.
  const auto bytes = static_cast<double>(row_end - row_begin) * static_cast<double>(8 * file.shape().columns);
  const bool keeps_codes = options.by_groups && bytes > static_cast<double>(SecondLevelCacheBytes());
  if (file.coding() == nullptr || row_begin == row_end || keeps_codes)
    return RowsOf(file, summary.format, row_begin, row_end, options.cancelled);
  // Codes of a few blocks are there at a time, each beside the cells that it becomes.
  const auto decode = [&](int64_t begin, int64_t end, double* out) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix rows, CodedRowsOf(file, begin, end, options.cancelled));
    DecodeRows(rows.groups(), rows.first_row(), rows.first_row() + rows.rows(), out);
    return OkStatus();
  };
  return CollectRows(options, summary, row_begin, row_end, file.rows_of_block(), decode);
}

}  // namespace heddle::ops

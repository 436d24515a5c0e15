// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/io/formats/file_format.h"

// Arrays as NumPy's save() writes them: a header in Python's notation, then the cells.
namespace heddle::ops {

constexpr std::string_view kNpyMark = "\x93NUMPY";

/// The header of an array, and where its cells are.
struct NpyHeader {
  char kind = 'f';       ///< Of a cell: f a float, i an integer with a sign, u one without, b a boolean.
  int64_t bytes = 8;     ///< Of a cell.
  bool swapped = false;  ///< Big endian.
  bool fortran = false;  ///< The first index runs fastest.
  std::vector<int64_t> sizes;  ///< One for each index.
  int64_t cells_begin = 0;     ///< In the file.

  /// As a matrix: the first index counts rows, all others together columns, as DML keeps tensors. An array
  /// with one index is a column, one with none a single cell.
  Shape shape() const;
  /// The array with its indexes in the other order.
  void Transpose() {
    std::reverse(sizes.begin(), sizes.end());
    fortran = !fortran;
  }
};

/// An array in bytes [begin, end) of a file. kDataLoss, which calls it `name`, says what it is instead.
Result<NpyHeader> ReadNpyHeader(const std::string& name, const InputFile& file, int64_t begin, int64_t end);
/// The text that is such an array's only cell, of which it may have as many as `most` characters.
Result<std::string> ReadNpyText(const std::string& name, const InputFile& file, size_t most);
/// Cells [begin, end) of an array, in the order of the file.
Status ReadNpyCells(const NpyHeader& header, const InputFile& file, int64_t begin, int64_t end, double* out);
/// What a look at it tells.
Result<FileSummary> SummarizeArray(const ReadOptions& options, const NpyHeader& header);
/// Rows [row_begin, row_end) of it.
Result<Matrix> ReadArrayRows(const ReadOptions& options, const FileSummary& summary, const NpyHeader& header,
                             const InputFile& file, int64_t row_begin, int64_t row_end);
/// The header of an array that is written: `kind` is NumPy's name of its cells.
std::string HeaderOfArray(std::string_view kind, const std::string& sizes);
/// The bytes of an array: doubles in C order. Pieces are packed where `packing` says how.
Status WriteArray(const Matrix& matrix, const std::optional<Packing>& packing,
                  const std::atomic<bool>* cancelled, const ByteSink& sink);
/// What stands before the cells of an array that is written of a matrix.
std::string HeaderOfMatrix(const Shape& shape);
/// How many bytes it has.
int64_t BytesOfArray(const Shape& shape);

Result<FileSummary> SummarizeNpy(const ReadOptions& options, Files& files);
Result<Matrix> ReadNpy(const ReadOptions& options, const FileSummary& summary, int64_t row_begin,
                       int64_t row_end, Files& files);

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/share_rows.h"

#include <algorithm>

namespace heddle::ops {
namespace {

// A row: the number of the share, how many rows the share has, how many bytes are in the last of them, the
// number of this row, and bytes, three in a cell: a float holds 24 bits.
constexpr int64_t kColumns = 64, kHead = 4, kBytesOfCell = 3;
constexpr int64_t kBytesOfRow = (kColumns - kHead) * kBytesOfCell;

int64_t RowsOf(int64_t bytes) { return std::max<int64_t>(1, (bytes + kBytesOfRow - 1) / kBytesOfRow); }

}  // namespace

Result<Matrix> ShareAsRows(int64_t number, std::string_view bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  HEDDLE_ASSIGN_OR_RETURN(Matrix rows, Matrix::Dense(RowsOf(size), kColumns));
  std::fill_n(rows.mutable_data(), rows.cells(), 0.0);
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double* const row = rows.mutable_data() + i * kColumns;
    row[0] = static_cast<double>(number);
    row[1] = static_cast<double>(rows.rows());
    row[2] = static_cast<double>(size - (rows.rows() - 1) * kBytesOfRow);
    row[3] = static_cast<double>(i);
    const int64_t begin = i * kBytesOfRow, end = std::min(size, begin + kBytesOfRow);
    for (int64_t at = begin; at < end; ++at) {
      const auto byte = static_cast<unsigned char>(bytes[static_cast<size_t>(at)]);
      row[kHead + (at - begin) / kBytesOfCell] += byte * static_cast<double>(1 << 8 * (at % kBytesOfCell));
    }
  }
  return rows;
}

Result<std::vector<std::string>> SharesInRows(const Matrix& rows) {
  const Status malformed = Internal("what the workers tell each other of a file arrived malformed");
  if (rows.columns() != kColumns) return malformed;
  std::vector<std::string> texts;
  std::vector<int64_t> arrived;  // Rows of each share.
  for (int64_t i = 0; i < rows.rows(); ++i) {
    const double* const row = rows.data<double>() + i * kColumns;
    const auto share = static_cast<int64_t>(row[0]), count = static_cast<int64_t>(row[1]),
               in_last = static_cast<int64_t>(row[2]), number = static_cast<int64_t>(row[3]);
    if (share < 0 || share >= rows.rows() || number < 0 || number >= count || in_last < 0 ||
        in_last > kBytesOfRow)
      return malformed;
    if (share >= std::ssize(texts)) {
      texts.resize(static_cast<size_t>(share) + 1);
      arrived.resize(texts.size(), 0);
    }
    const int64_t size = (count - 1) * kBytesOfRow + in_last;
    std::string& text = texts[static_cast<size_t>(share)];
    text.resize(static_cast<size_t>(size));
    ++arrived[static_cast<size_t>(share)];
    const int64_t begin = number * kBytesOfRow, end = std::min(size, begin + kBytesOfRow);
    for (int64_t at = begin; at < end; ++at) {
      const auto cell = static_cast<uint32_t>(row[kHead + (at - begin) / kBytesOfCell]);
      text[static_cast<size_t>(at)] = static_cast<char>(cell >> 8 * (at % kBytesOfCell) & 255);
    }
  }
  for (size_t share = 0; share < texts.size(); ++share)
    if (arrived[share] != RowsOf(static_cast<int64_t>(texts[share].size()))) return malformed;
  return texts;
}

}  // namespace heddle::ops

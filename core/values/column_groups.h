// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/buffer.h"
#include "core/status.h"
#include "core/values/matrix.h"

// A matrix stored by groups of columns (docs/compression.md). The columns of a group have few distinct tuples
// of cells; a dictionary holds each of them once, and a code tells of a row which one it has. After
// Elgohary, Boehm, Haas, Reiss and Reinwald: Compressed Linear Algebra for Large-Scale Machine Learning (VLDB
// 2016), and Baunsgaard and Boehm: AWARE (SIGMOD 2023), whose names of the encodings these are.
namespace heddle {

/// How a group of columns says which tuple a row has.
enum class Encoding : uint8_t {
  kEmpty,         ///< Every cell is +0.0: nothing is stored.
  kConstant,      ///< Every row has the one tuple of the dictionary.
  kDenseCodes,    ///< DDC: a code for each row.
  kDefault,       ///< SDC: every row has tuple 0, but for the exceptions, each of which has a row and a code.
  kRuns,          ///< RLE: a code for each run of rows with the same tuple.
  kUncompressed,  ///< The cells, dense or CSR.
};
std::string_view Name(Encoding encoding);  ///< "EMPTY", "CONST", "DDC", "SDC", "RLE", "UNCOMPRESSED"

/// Rows of a kDefault group whose exceptions are counted together: an exception's row within its segment
/// takes two bytes.
constexpr int64_t kSegmentRows = int64_t{1} << 16;
/// A dictionary has at most so many tuples: a code takes 4, 8 or 16 bits.
constexpr int64_t kMostTuples = int64_t{1} << 16;
/// Bits of a code of a dictionary of so many tuples.
constexpr int32_t CodeBits(int64_t tuples) { return tuples <= 16 ? 4 : tuples <= 256 ? 8 : 16; }
/// Bytes of `count` codes.
constexpr int64_t CodeBytes(int64_t count, int32_t bits) { return (count * bits + 7) / 8; }

/// Codes one behind the other; of 4 bits, the code with the even number is in the low half of its byte.
class Codes {
 public:
  Codes() = default;
  /// `bits`: 4, 8 or 16. kResourceExhausted.
  static Result<Codes> Make(int64_t count, int32_t bits);
  int64_t count() const { return count_; }
  int32_t bits() const { return bits_; }
  int64_t bytes() const { return CodeBytes(count_, bits_); }
  const uint8_t* data() const {
    return buffer_ == nullptr ? nullptr : static_cast<uint8_t*>(buffer_->data());
  }
  uint8_t* mutable_data() { return static_cast<uint8_t*>(buffer_->data()); }
  /// How often codes 0, 1, ... are there, as far as the largest one; nullptr before KeepCounts(), which one
  /// copy of these codes says to all. Both for all threads, once codes are set no more.
  std::shared_ptr<const std::vector<int64_t>> counts() const;
  void KeepCounts(std::vector<int64_t> counts) const;
  uint32_t At(int64_t i) const {
    const uint8_t* data = this->data();
    if (bits_ == 8) return data[i];
    if (bits_ == 4) return data[i >> 1] >> ((i & 1) * 4) & 15;
    return reinterpret_cast<const uint16_t*>(data)[i];
  }
  /// Of 4 bits: the other half of the byte is kept, so that threads may set codes of ranges that begin at
  /// even numbers at once.
  void Set(int64_t i, uint32_t code) {
    uint8_t* data = mutable_data();
    if (bits_ == 8)
      data[i] = static_cast<uint8_t>(code);
    else if (bits_ == 16)
      reinterpret_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(code);
    else if ((i & 1) == 0)
      data[i >> 1] = static_cast<uint8_t>((data[i >> 1] & 0xf0) | code);
    else
      data[i >> 1] = static_cast<uint8_t>((data[i >> 1] & 0x0f) | code << 4);
  }

 private:
  int64_t count_ = 0;
  int32_t bits_ = 8;
  std::shared_ptr<Buffer> buffer_;
  struct KeptCounts;
  std::shared_ptr<KeptCounts> kept_;
};

/// Some columns of a matrix. Plain data; what does not belong to the encoding is empty.
struct ColumnGroup {
  Encoding encoding = Encoding::kEmpty;
  std::vector<int32_t> columns;  ///< Of the matrix; ascending, at least one.
  /// Tuples x columns, dense; of kConstant one. Groups of several matrices share it. It may hold a tuple
  /// twice (the squares of -1 and 1), in any order, and tuples that no row has (of the rows that a view left
  /// out). Of kUncompressed the cells themselves, rows x columns, dense or CSR.
  Matrix dictionary;
  Codes codes;  ///< One for each row, exception or run.
  /// kDefault: the row of each exception, less the first of its segment, ascending in a segment.
  /// kRuns: the first row of each run, ascending from 0.
  std::vector<int64_t> starts;        ///< Of kRuns.
  std::shared_ptr<Buffer> positions;  ///< Of kDefault: uint16_t[codes.count()].
  std::vector<int64_t> segments;      ///< Of kDefault: exceptions before each segment, and all of them.

  int64_t width() const { return static_cast<int64_t>(columns.size()); }
  int64_t tuples() const { return encoding == Encoding::kUncompressed ? 0 : dictionary.rows(); }
  const uint16_t* exception_rows() const { return static_cast<const uint16_t*>(positions->data()); }
  /// Of its memory, the dictionary included.
  int64_t bytes() const;
};

/// All columns of a matrix, each in one group. Immutable; copies of a matrix, and views of its rows, share
/// it.
struct ColumnGroups {
  int64_t rows = 0;
  int64_t columns = 0;
  ElementType element_type = ElementType::kFloat64;
  std::vector<ColumnGroup> groups;

  /// Of all groups; a dictionary that several share counts once.
  int64_t bytes() const;
};

/// kDataLoss, naming the group, for what is no matrix: columns that are missing or twice, codes beyond the
/// dictionary, rows that do not ascend, arrays of other sizes. Reads every code. For what comes from a file
/// or another process.
Status Verify(const ColumnGroups& groups);

/// Writes the cells of rows [begin, end) of the group: row i, column groups.columns[k] to
/// cells[(i - begin) * stride + columns[k]]. T is the type of the cells.
template <typename T>
void DecodeRows(const ColumnGroup& group, int64_t begin, int64_t end, T* cells, int64_t stride);
/// The same of all groups: rows [begin, end) as row-major cells, `groups.columns` a row.
template <typename T>
void DecodeRows(const ColumnGroups& groups, int64_t begin, int64_t end, T* cells);
/// Rows [begin, end) as a dense matrix. kResourceExhausted.
Result<Matrix> DecodeRows(const ColumnGroups& groups, int64_t begin, int64_t end);

/// Rows [begin, end) as groups of their own; dictionaries are shared, codes are copied. kResourceExhausted.
Result<std::shared_ptr<const ColumnGroups>> SliceGroups(const ColumnGroups& groups, int64_t begin,
                                                        int64_t end);

/// Cells of rows [begin, end) that are not zero (NaN is not zero).
int64_t CountNonzeros(const ColumnGroups& groups, int64_t begin, int64_t end);

/// How many rows of [begin, end) have each tuple of the dictionary, by row number modulo `classes` (1, 2, 4,
/// 8): place c * tuples + t is of rows i with tuple t and (i - begin) mod classes = c. Of kEmpty and
/// kUncompressed nothing. Reads no codes of all rows where Codes::counts() are there and classes is 1.
std::vector<int64_t> CountTuples(const ColumnGroup& group, int64_t begin, int64_t end, int classes = 1);

/// Whether all codes are of rows [begin, end).
bool HoldsAllCodes(const ColumnGroup& group, int64_t begin, int64_t end);

/// The code of each row of [begin, end), as 16-bit numbers, whatever the encoding is; not of kEmpty and
/// kUncompressed, which have none.
void DecodeCodes(const ColumnGroup& group, int64_t begin, int64_t end, uint16_t* codes);

}  // namespace heddle

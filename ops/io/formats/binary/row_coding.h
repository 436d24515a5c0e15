// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/column_groups.h"
#include "ops/io/formats/binary/binary_file.h"
#include "ops/io/formats/binary/counted_cells.h"

// Binary files that hold column groups (docs/files.md): the header has the groups with their dictionaries,
// each block the codes of its rows.
namespace heddle::ops {

/// How the columns of a matrix are stored by groups: what the header of a file says. Columns that have few
/// different cells have codes, several of them one together where all combinations of their cells are so few
/// that it saves bits; all others are one uncompressed group.
class RowCoding {
 public:
  /// A function of the cells alone. nullptr where groups would save less than a tenth of the file without
  /// them; `stored`: cells that are not +0.0. kResourceExhausted.
  static Result<std::shared_ptr<const RowCoding>> Choose(CountedCells cells, const Shape& shape,
                                                         ElementType type, int64_t stored);
  /// Of what header() has returned, for so many columns. Fails as Parse() does.
  static Result<std::shared_ptr<const RowCoding>> Of(std::string_view header, int64_t columns);
  /// Those of the header of a file that says so many columns: kDataLoss for what is no such text.
  static Result<std::shared_ptr<const RowCoding>> Parse(std::string_view header, int64_t columns);

  /// What Parse() takes; not of Parse().
  const std::string& header() const { return header_; }
  /// The groups with their dictionaries, without rows.
  const ColumnGroups& groups() const { return groups_; }
  /// Rows with about a megabyte of cells; even, so that codes of 4 bits begin with a byte.
  static int64_t RowsOfBlock(int64_t columns);

  /// The block of rows [begin, end), of cells that Choose() has been told; else kInternal.
  Status Encode(const Matrix& matrix, int64_t begin, int64_t end, EncodedBlock* block) const;
  /// Bytes of a block of so many rows: the least, and the most.
  int64_t LeastBytes(int64_t rows, BlockLayout layout) const;
  int64_t MostBytes(int64_t rows, BlockLayout layout) const;

 private:
  // Finds the codes of the tuples of a group.
  class Codebook {
   public:
    explicit Codebook(const ColumnGroup& group);
    int64_t Find(const double* tuple) const;  // -1: there is none.

   private:
    size_t SlotOf(const double* tuple) const;
    const double* tuples_;
    int64_t count_;
    int64_t width_;
    std::vector<int32_t> slots_;
  };

  explicit RowCoding(ColumnGroups groups);
  static std::shared_ptr<const RowCoding> WithCodebooks(ColumnGroups groups, std::string header);
  Status FindCodes(size_t group, const Matrix& rows, uint16_t* codes) const;

  ColumnGroups groups_;
  std::vector<Codebook> codebooks_;  // By group; not of Parse(), which reads.
  std::string header_;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/values/frame.h"
#include "core/values/matrix.h"
#include "ops/io/formats/file_format.h"
#include "ops/io/formats/rds/r_vector.h"

// Tables of R: data frames (also those of tibble and data.table), and vectors and matrices as such.
namespace heddle::ops {

struct RColumn {
  const RObject* vector = nullptr;
  int64_t begin = 0;  ///< Which cell of the vector is its first.
  RCells cells = RCells::kNone;
};

struct RTable {
  int64_t rows = 0;
  std::vector<RColumn> columns;
  std::vector<std::string> names;  ///< None where no column has one.
  bool has_row_names = false;      ///< Texts, which are no column.

  Schema schema() const;
  int64_t number_of_columns() const { return static_cast<int64_t>(columns.size()); }
  /// "column 'a'" or "column 3", for messages.
  std::string Describe(size_t column) const;
};

/// The table that an object is: a data frame, whose columns may be matrices themselves, a vector, or an array
/// of two indexes. kDataLoss says what it is else.
Result<RTable> TableOf(const RFile& file, const RObject& object);
/// Whether an object is a data frame.
Result<bool> IsDataFrame(const RFile& file, const RObject& object);

/// kDataLoss names a column of texts.
Status CheckNumbers(const RFile& file, const RTable& table);

/// Rows [begin, end) of a table of numbers; NA is NaN.
Result<Matrix> ReadTableAsMatrix(const ReadOptions& options, const RFile& file, const RTable& table,
                                 int64_t begin, int64_t end);
/// Rows [begin, end), several columns at once.
Result<Frame> ReadTable(const ReadOptions& options, const RFile& file, const RTable& table,
                        const std::shared_ptr<const Schema>& schema, int64_t begin, int64_t end);

}  // namespace heddle::ops

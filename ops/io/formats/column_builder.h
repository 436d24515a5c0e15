// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/frame.h"

namespace heddle::ops {

/// Cells of one column of a frame as a file has them, one a row. A missing one is 0, FALSE or empty, and
/// marked.
class ColumnBuilder {
 public:
  explicit ColumnBuilder(ColumnType type);

  int64_t rows() const { return rows_; }
  /// False, and nothing is added, if the text is no cell of the column (ops/io/formats/frame_cells.h).
  bool Add(std::string_view text);
  /// Missing cells up to row `rows`. What lines leave out costs nothing until then.
  void MissUntil(int64_t rows);
  /// The column with this many rows; the builder is empty then.
  Result<Column> Finish(int64_t rows);

 private:
  void Append(int64_t number);

  ColumnType type_;
  int64_t rows_ = 0;
  std::vector<double> doubles_;
  std::vector<int64_t> numbers_;  // Of texts their ends.
  std::string texts_;
  std::vector<uint8_t> missing_;  // Up to the last one that is.
};

/// The frame of such columns, all with this many rows; the builders are empty then.
Result<Frame> FinishFrame(const std::shared_ptr<const Schema>& schema, int64_t rows,
                          std::vector<ColumnBuilder>* builders);

}  // namespace heddle::ops

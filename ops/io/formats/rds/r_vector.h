// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/values/frame.h"
#include "ops/io/formats/rds/r_file.h"

namespace heddle::ops {

/// What the cells of a vector mean, by its type and its class.
enum class RCells : uint8_t {
  kNone,  ///< It is no vector of which a column can be made.
  kDoubles,
  kIntegers,
  kWideIntegers,  ///< Of 64 bits (class integer64).
  kBooleans,
  kBytes,
  kTexts,
  kFactor,   ///< Numbers of texts, the attribute levels.
  kDays,     ///< Since 1970: class Date.
  kSeconds,  ///< Since 1970, in UTC: class POSIXct.
};

Result<RCells> CellsOf(const RFile& file, const RObject& vector);
/// Neither texts nor what becomes texts.
bool AreNumbers(RCells cells);
/// The type of the column that such cells make.
ColumnType TypeOf(RCells cells);

/// Cells [begin, end) as doubles. Those that are NA are NaN; with `missing`, they are 0 and their places
/// behind `begin` are added to it. Of booleans, integers and doubles, whatever class they are of.
Status ReadNumbers(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                   double* out, std::vector<int64_t>* missing = nullptr);
/// The same as whole numbers; not of doubles.
Status ReadIntegers(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                    int64_t* out, std::vector<int64_t>* missing);

/// Cells [begin, end) as a column. `what` is the vector in messages: "column 'a'". NA is missing, NaN is not;
/// days are "2024-01-31" and seconds "2024-01-31T12:34:56Z".
Result<Column> ReadColumn(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                          const std::string& what);

}  // namespace heddle::ops

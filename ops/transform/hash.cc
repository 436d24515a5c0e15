// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "ops/base/parallel.h"
#include "ops/frame/convert.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

constexpr int64_t kGrainRows = int64_t{1} << 16;

int32_t HashOfBits(uint64_t bits) { return static_cast<int32_t>(static_cast<uint32_t>(bits ^ bits >> 32)); }

int32_t HashOfDouble(double x, ColumnType type) {
  if (type == ColumnType::kFloat32) {
    const auto single = static_cast<float>(x);
    return static_cast<int32_t>(std::isnan(single) ? 0x7fc00000U : std::bit_cast<uint32_t>(single));
  }
  return HashOfBits(std::isnan(x) ? 0x7ff8000000000000ULL : std::bit_cast<uint64_t>(x));
}

int32_t HashOfCell(const Column& column, int64_t row) {
  switch (column.storage()) {
    case ColumnStorage::kDoubles: return HashOfDouble(column.doubles()[row], column.type());
    case ColumnStorage::kIntegers: {
      const int64_t x = column.integers()[row];
      return column.type() == ColumnType::kInteger32 ? static_cast<int32_t>(x)
                                                     : HashOfBits(static_cast<uint64_t>(x));
    }
    case ColumnStorage::kBooleans:
      return column.booleans()[row];  // Not Java's 1231 and 1237.
    // The hash of a character is that of its text, where it is one code unit.
    case ColumnStorage::kTexts: return JavaHash(column.TextAt(row));
  }
  HEDDLE_CHECK(false, "cells of every storage have a hash");
}

double CodeOf(int32_t hash, int64_t values) {
  return static_cast<double>(std::abs(int64_t{hash}) % values + 1);
}

}  // namespace

Status Hash(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes) {
  double replacement = std::numeric_limits<double>::quiet_NaN();
  if (input.spec.impute && metadata.imputed && !metadata.imputed->empty()) {
    const std::string_view text = *metadata.imputed;
    HEDDLE_ASSIGN_OR_RETURN(const Column as_text, Column::OfTexts({&text, 1}));
    const Result<Column> cell = Converted(as_text, input.cells.type());
    if (!cell.ok() && cell.status().code() == StatusCode::kFailedPrecondition)
      return FailedPrecondition("{}: missing cells of column {}: {}", input.op, input.name,
                                cell.status().message());
    HEDDLE_RETURN_IF_ERROR(cell.status());
    replacement = CodeOf(HashOfCell(*cell, 0), input.spec.hash_values);
  }
  std::vector<double> code_of_number;
  for (const int64_t row : input.distinct->first_rows)
    code_of_number.push_back(
        input.IsReplaced(row) ? replacement : CodeOf(HashOfCell(input.cells, row), input.spec.hash_values));
  ParallelFor(static_cast<int64_t>(codes.size()), kGrainRows, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const int32_t number = input.distinct->numbers[i];
      codes[i] = number < 0 ? replacement : code_of_number[static_cast<size_t>(number)];
    }
  });
  return OkStatus();
}

}  // namespace heddle::ops

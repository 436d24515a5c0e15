// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/module/arrow/cells.h"

#include <arrow/array/array_run_end.h>
#include <arrow/extension_type.h>
#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <string_view>

#include "ops/io/formats/module/arrow/cell_texts.h"

namespace heddle::ops::tables {
namespace {

size_t RowsOf(const ModuleColumn& column) {
  return column.doubles.size() + column.integers.size() + column.booleans.size();
}

template <typename ArrowType, typename Out>
void AppendNumbers(const arrow::Array& array, std::vector<Out>* out) {
  const auto& cells = static_cast<const arrow::NumericArray<ArrowType>&>(array);
  const auto* const values = cells.raw_values();
  const size_t rows = out->size();
  out->resize(rows + static_cast<size_t>(cells.length()));
  for (int64_t i = 0; i < cells.length(); ++i)
    (*out)[rows + static_cast<size_t>(i)] = static_cast<Out>(values[i]);
  if (cells.null_count() == 0) return;
  // What stands in the place of a missing cell may be anything.
  for (int64_t i = 0; i < cells.length(); ++i)
    if (cells.IsNull(i)) (*out)[rows + static_cast<size_t>(i)] = 0;
}

// True where `array` is of a type of integers that `out` holds, and their cells are appended.
template <typename Out>
bool AppendIntegers(const arrow::Array& array, std::vector<Out>* out) {
  switch (array.type_id()) {
    case arrow::Type::INT8: AppendNumbers<arrow::Int8Type>(array, out); return true;
    case arrow::Type::INT16: AppendNumbers<arrow::Int16Type>(array, out); return true;
    case arrow::Type::INT32: AppendNumbers<arrow::Int32Type>(array, out); return true;
    case arrow::Type::INT64: AppendNumbers<arrow::Int64Type>(array, out); return true;
    case arrow::Type::UINT8: AppendNumbers<arrow::UInt8Type>(array, out); return true;
    case arrow::Type::UINT16: AppendNumbers<arrow::UInt16Type>(array, out); return true;
    case arrow::Type::UINT32: AppendNumbers<arrow::UInt32Type>(array, out); return true;
    case arrow::Type::UINT64: AppendNumbers<arrow::UInt64Type>(array, out); return true;
    default: return false;
  }
}

arrow::Status TooLarge(const std::string& number) {
  return arrow::Status::CapacityError("holds ", number,
                                      ", which is larger than an INT64 can be: a matrix has it, as the "
                                      "nearest double");
}

arrow::Status CheckUnsigned(const arrow::Array& array) {
  if (array.type_id() != arrow::Type::UINT64) return arrow::Status::OK();
  const auto& cells = static_cast<const arrow::UInt64Array&>(array);
  for (int64_t i = 0; i < cells.length(); ++i)
    if (!cells.IsNull(i) && cells.Value(i) > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return TooLarge(fmt::format("{}", cells.Value(i)));
  return arrow::Status::OK();
}

// Powers of ten that a double holds.
constexpr std::array<double, 23> kPowersOfTen = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int64_t kExactIntegers = int64_t{1} << 53;

// The text of a number, as the nearest double or as an integer.
template <typename Number>
arrow::Result<Number> NumberOf(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return arrow::Status::Invalid("a decimal is no number: ", text);
  return number;
}

// The cell of a decimal column, as the nearest double or as an integer.
template <typename Number>
arrow::Result<Number> DecimalAt(const arrow::Array& array, int64_t row) {
  if (array.type_id() == arrow::Type::DECIMAL128) {
    const int32_t scale = static_cast<const arrow::DecimalType&>(*array.type()).scale();
    const arrow::Decimal128 value(static_cast<const arrow::Decimal128Array&>(array).GetValue(row));
    const auto low = static_cast<int64_t>(value.low_bits());
    // Of two numbers that doubles hold the quotient is rounded once.
    const bool is_short =
        value.high_bits() == (low < 0 ? -1 : 0) && low >= -kExactIntegers && low <= kExactIntegers;
    if (is_short && scale >= 0 && scale < static_cast<int32_t>(kPowersOfTen.size()))
      return static_cast<Number>(static_cast<double>(low) / kPowersOfTen[static_cast<size_t>(scale)]);
  }
  ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Scalar> cell, array.GetScalar(row));
  return NumberOf<Number>(cell->ToString());
}

template <typename Number>
arrow::Status AppendDecimals(const arrow::Array& array, std::vector<Number>* out) {
  for (int64_t i = 0; i < array.length(); ++i) {
    Number number = 0;
    if (!array.IsNull(i)) {
      ARROW_ASSIGN_OR_RAISE(number, DecimalAt<Number>(array, i));
    }
    out->push_back(number);
  }
  return arrow::Status::OK();
}

arrow::Status CannotBe(const arrow::Array& array, std::string_view what) {
  return arrow::Status::Invalid("a column of ", array.type()->ToString(), " is read as ", what);
}

arrow::Status AppendDoubles(const arrow::Array& array, std::vector<double>* out) {
  if (arrow::is_decimal(array.type_id())) return AppendDecimals(array, out);
  if (AppendIntegers(array, out)) return arrow::Status::OK();
  switch (array.type_id()) {
    case arrow::Type::NA: out->resize(out->size() + static_cast<size_t>(array.length()), 0); break;
    case arrow::Type::BOOL: {
      const auto& cells = static_cast<const arrow::BooleanArray&>(array);
      for (int64_t i = 0; i < cells.length(); ++i) out->push_back(!cells.IsNull(i) && cells.Value(i) ? 1 : 0);
      break;
    }
    case arrow::Type::HALF_FLOAT: {
      const auto& cells = static_cast<const arrow::HalfFloatArray&>(array);
      for (int64_t i = 0; i < cells.length(); ++i)
        out->push_back(cells.IsNull(i) ? 0
                                       : double{arrow::util::Float16::FromBits(cells.Value(i)).ToFloat()});
      break;
    }
    case arrow::Type::FLOAT: AppendNumbers<arrow::FloatType>(array, out); break;
    case arrow::Type::DOUBLE: AppendNumbers<arrow::DoubleType>(array, out); break;
    default: return CannotBe(array, "numbers");
  }
  return arrow::Status::OK();
}

arrow::Status AppendBooleans(const arrow::Array& array, std::vector<uint8_t>* out) {
  if (array.type_id() == arrow::Type::INT8) {  // A byte each: 0 is false, all else true.
    const auto& cells = static_cast<const arrow::Int8Array&>(array);
    for (int64_t i = 0; i < cells.length(); ++i) out->push_back(!cells.IsNull(i) && cells.Value(i) != 0);
    return arrow::Status::OK();
  }
  if (array.type_id() != arrow::Type::BOOL) return CannotBe(array, "booleans");
  const auto& cells = static_cast<const arrow::BooleanArray&>(array);
  for (int64_t i = 0; i < cells.length(); ++i) out->push_back(!cells.IsNull(i) && cells.Value(i));
  return arrow::Status::OK();
}

// Cells of an array that holds each by itself.
arrow::Status AppendPlain(const arrow::Array& array, ColumnType type, BytesAre bytes_are, ModuleColumn* out) {
  const size_t rows = RowsOf(*out);
  if (array.null_count() > 0) {
    out->missing.resize(rows + static_cast<size_t>(array.length()), 0);
    for (int64_t i = 0; i < array.length(); ++i)
      if (array.IsNull(i)) out->missing[rows + static_cast<size_t>(i)] = 1;
  }
  switch (type) {
    case ColumnType::kFloat64:
    case ColumnType::kFloat32: return AppendDoubles(array, &out->doubles);
    case ColumnType::kInteger64:
    case ColumnType::kInteger32:
      if (arrow::is_decimal(array.type_id())) return AppendDecimals(array, &out->integers);
      ARROW_RETURN_NOT_OK(CheckUnsigned(array));
      return AppendIntegers(array, &out->integers) ? arrow::Status::OK() : CannotBe(array, "integers");
    case ColumnType::kBoolean: return AppendBooleans(array, &out->booleans);
    case ColumnType::kString:
    case ColumnType::kCharacter: break;
  }
  return AppendTexts(array, bytes_are, out);
}

// Of a dictionary, or of runs: the cells at these places of `from`, -1 for one that is missing.
arrow::Status AppendCellsAt(const ModuleColumn& from, ColumnType type, std::span<const int64_t> places,
                            ModuleColumn* out) {
  const auto count = static_cast<int64_t>(RowsOf(from));
  const size_t rows = RowsOf(*out);
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t place = places[i];
    if (place < -1 || place >= count) return arrow::Status::Invalid("a dictionary has no such entry");
    const auto at = static_cast<size_t>(place);
    if (place < 0 || (!from.missing.empty() && from.missing[at] != 0)) {
      out->missing.resize(rows + places.size(), 0);
      out->missing[rows + i] = 1;
    }
    switch (type) {
      case ColumnType::kFloat64:
      case ColumnType::kFloat32: out->doubles.push_back(place < 0 ? 0 : from.doubles[at]); break;
      case ColumnType::kInteger64:
      case ColumnType::kInteger32: out->integers.push_back(place < 0 ? 0 : from.integers[at]); break;
      case ColumnType::kBoolean: out->booleans.push_back(place < 0 ? 0 : from.booleans[at]); break;
      case ColumnType::kString:
      case ColumnType::kCharacter:
        if (place >= 0) {
          const int64_t begin = place == 0 ? 0 : from.integers[at - 1];
          out->texts.append(from.texts, static_cast<size_t>(begin),
                            static_cast<size_t>(from.integers[at] - begin));
        }
        out->integers.push_back(static_cast<int64_t>(out->texts.size()));
        break;
    }
  }
  return arrow::Status::OK();
}

// Where in its values each cell of an array of runs is.
template <typename RunEnds>
arrow::Status FindRuns(const arrow::RunEndEncodedArray& array, std::vector<int64_t>* places) {
  const auto& ends = static_cast<const RunEnds&>(*array.run_ends());
  int64_t run = 0;
  for (int64_t i = 0; i < array.length(); ++i) {
    while (run < ends.length() && static_cast<int64_t>(ends.Value(run)) <= array.offset() + i) ++run;
    if (run == ends.length()) return arrow::Status::Invalid("the runs end before the column");
    places->push_back(run);
  }
  return arrow::Status::OK();
}

arrow::Status AppendRuns(const arrow::RunEndEncodedArray& array, ColumnType type, BytesAre bytes_are,
                         ModuleColumn* out) {
  ModuleColumn values;
  ARROW_RETURN_NOT_OK(AppendCells(*array.values(), type, bytes_are, &values));
  std::vector<int64_t> places;
  switch (array.run_ends()->type_id()) {
    case arrow::Type::INT16: ARROW_RETURN_NOT_OK(FindRuns<arrow::Int16Array>(array, &places)); break;
    case arrow::Type::INT32: ARROW_RETURN_NOT_OK(FindRuns<arrow::Int32Array>(array, &places)); break;
    default: ARROW_RETURN_NOT_OK(FindRuns<arrow::Int64Array>(array, &places)); break;
  }
  return AppendCellsAt(values, type, places, out);
}

arrow::Status AppendDictionary(const arrow::DictionaryArray& array, ColumnType type, BytesAre bytes_are,
                               ModuleColumn* out) {
  ModuleColumn values;
  ARROW_RETURN_NOT_OK(AppendCells(*array.dictionary(), type, bytes_are, &values));
  std::vector<int64_t> places;
  for (int64_t i = 0; i < array.length(); ++i)
    places.push_back(array.IsNull(i) ? -1 : array.GetValueIndex(i));
  return AppendCellsAt(values, type, places, out);
}

}  // namespace

arrow::Status AppendCells(const arrow::Array& array, ColumnType type, BytesAre bytes_are, ModuleColumn* out) {
  switch (array.type_id()) {
    case arrow::Type::DICTIONARY:
      ARROW_RETURN_NOT_OK(
          AppendDictionary(static_cast<const arrow::DictionaryArray&>(array), type, bytes_are, out));
      break;
    case arrow::Type::RUN_END_ENCODED:
      ARROW_RETURN_NOT_OK(
          AppendRuns(static_cast<const arrow::RunEndEncodedArray&>(array), type, bytes_are, out));
      break;
    case arrow::Type::EXTENSION: {
      const auto& extension = static_cast<const arrow::ExtensionArray&>(array);
      const std::string name = extension.extension_type()->extension_name();
      if (name == "arrow.uuid") bytes_are = BytesAre::kUuid;
      const size_t rows = out->doubles.size();
      ARROW_RETURN_NOT_OK(AppendCells(*extension.storage(), type, bytes_are, out));
      if (name == "arrow.bool8")  // any byte but 0 is true
        for (size_t i = rows; i < out->doubles.size(); ++i) out->doubles[i] = out->doubles[i] != 0;
      return arrow::Status::OK();
    }
    default: ARROW_RETURN_NOT_OK(AppendPlain(array, type, bytes_are, out));
  }
  if (!out->missing.empty()) out->missing.resize(RowsOf(*out), 0);
  return arrow::Status::OK();
}

}  // namespace heddle::ops::tables

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/utf8.h"
#include "python/module/arrow.h"
#include "python/module/arrow_structures.h"

namespace heddle::python {
namespace {

/// One of the structures, released with its last owner.
template <typename Structure>
struct Released {
  Structure value{};
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() {
    if (value.release != nullptr) value.release(&value);
  }
};
using Batch = std::shared_ptr<Released<ArrowArray>>;

bool BitAt(const void* bits, int64_t index) {
  return (static_cast<const uint8_t*>(bits)[index / 8] >> (index % 8) & 1) != 0;
}

// A column of one batch, or the values of its dictionary.
struct Part {
  const ArrowSchema* schema;
  const ArrowArray* array;

  std::string_view format() const { return schema->format; }
  int64_t rows() const { return array->length; }
  bool IsMissing(int64_t row) const {
    if (format() == "n") return true;
    return array->n_buffers > 0 && array->buffers[0] != nullptr &&
           !BitAt(array->buffers[0], array->offset + row);
  }
  bool SomeMiss() const {
    if (array->null_count == 0) return false;
    for (int64_t row = 0; row < rows(); ++row)
      if (IsMissing(row)) return true;
    return false;
  }
  template <typename T>
  T At(int64_t row, int buffer = 1) const {
    return static_cast<const T*>(array->buffers[buffer])[array->offset + row];
  }
};

// --- numbers ---

// A decimal "d:PRECISION,SCALE" of 128 bits: the number times 10^scale.
struct Decimal {
  int precision = 0;
  int scale = 0;
};
std::optional<Decimal> DecimalOf(std::string_view format) {
  Decimal decimal;
  int bits = 128;
  if (std::sscanf(std::string(format).c_str(), "d:%d,%d,%d", &decimal.precision, &decimal.scale, &bits) < 2)
    return std::nullopt;
  if (bits != 128) return std::nullopt;
  return decimal;
}

// The same types as in files of Arrow (docs/files.md). nullopt: no frame has such cells.
std::optional<ColumnType> TypeOf(std::string_view format) {
  if (format == "g" || format == "n") return ColumnType::kFloat64;
  if (format == "f" || format == "e") return ColumnType::kFloat32;
  if (format == "b") return ColumnType::kBoolean;
  const auto is_one_of = [&](std::string_view letters) {
    return format.size() == 1 && letters.find(format[0]) != std::string_view::npos;
  };
  if (is_one_of("cCsSi")) return ColumnType::kInteger32;
  if (is_one_of("IlL")) return ColumnType::kInteger64;
  if (const std::optional<Decimal> decimal = DecimalOf(format))
    return decimal->scale == 0 && decimal->precision <= 18 ? ColumnType::kInteger64 : ColumnType::kFloat64;
  if (is_one_of("uUzZ") || format == "vu" || format == "vz" || format.starts_with("td") ||
      format.starts_with("ts") || format.starts_with("tt"))
    return ColumnType::kString;
  return std::nullopt;
}

// IEEE 754 binary16, section 3.6.
double OfHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                             : std::numeric_limits<double>::quiet_NaN())
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (bits >> 15) != 0 ? -magnitude : magnitude;
}

__extension__ using Integer128 = __int128;

std::string DigitsOf(Integer128 number) {
  if (number == 0) return "0";
  std::string digits;
  const bool is_negative = number < 0;
  for (; number != 0; number /= 10) {
    const int digit = static_cast<int>(number % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
  }
  if (is_negative) digits += '-';
  return {digits.rbegin(), digits.rend()};
}

// The nearest double: by its digits, which are rounded once.
double NumberOf(Integer128 number, int scale) {
  return std::strtod(fmt::format("{}e{}", DigitsOf(number), -scale).c_str(), nullptr);
}

double DoubleAt(const Part& part, int64_t row) {
  if (const std::optional<Decimal> decimal = DecimalOf(part.format()))
    return NumberOf(part.At<Integer128>(row), decimal->scale);
  if (part.format() == "g") return part.At<double>(row);
  if (part.format() == "f") return part.At<float>(row);
  return OfHalf(part.At<uint16_t>(row));
}

int64_t IntegerAt(const Part& part, int64_t row) {
  switch (part.format()[0]) {
    case 'c': return part.At<int8_t>(row);
    case 'C': return part.At<uint8_t>(row);
    case 's': return part.At<int16_t>(row);
    case 'S': return part.At<uint16_t>(row);
    case 'i': return part.At<int32_t>(row);
    case 'I': return part.At<uint32_t>(row);
    case 'l': return part.At<int64_t>(row);
    case 'd': return static_cast<int64_t>(part.At<Integer128>(row));
    default: return static_cast<int64_t>(part.At<uint64_t>(row));
  }
}

// --- texts ---

// A view of 16 bytes: its length, then the text itself up to 12 bytes, else its first 4 bytes, a buffer and
// where it begins there.
std::string_view ViewAt(const Part& part, int64_t row) {
  struct View {
    int32_t length;
    char prefix[4];
    int32_t buffer;
    int32_t begin;
  };
  const View& view = static_cast<const View*>(part.array->buffers[1])[part.array->offset + row];
  const auto length = static_cast<size_t>(view.length);
  if (length <= 12) return {reinterpret_cast<const char*>(&view) + sizeof(int32_t), length};
  return {static_cast<const char*>(part.array->buffers[2 + view.buffer]) + view.begin, length};
}

template <typename Offset>
std::string_view TextAt(const Part& part, int64_t row) {
  const auto begin = part.At<Offset>(row), end = part.At<Offset>(row + 1);
  return {static_cast<const char*>(part.array->buffers[2]) + begin, static_cast<size_t>(end - begin)};
}

// "07:08:09", with as many digits behind as the unit has: 's', 'm', 'u', 'n'. `rest` are units since
// midnight.
std::string TimeText(int64_t rest, char unit) {
  const int digits = unit == 's' ? 0 : unit == 'm' ? 3 : unit == 'u' ? 6 : 9;
  int64_t scale = 1;
  for (int i = 0; i < digits; ++i) scale *= 10;
  const int64_t seconds = rest / scale;
  std::string text = fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (digits > 0) text += fmt::format(".{:0{}}", rest % scale, digits);
  return text;
}

std::string DayText(int64_t days) {
  const std::chrono::year_month_day day{std::chrono::sys_days(std::chrono::days(days))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                     static_cast<unsigned>(day.day()));
}

// Days, times and moments, in universal time where they have a zone.
std::string MomentText(const Part& part, int64_t row) {
  const std::string_view format = part.format();
  if (format == "tdD") return DayText(part.At<int32_t>(row));
  if (format == "tdm") {
    const int64_t milliseconds = part.At<int64_t>(row), day = 86'400'000;
    return DayText((milliseconds - (milliseconds % day + day) % day) / day);
  }
  const char unit = format[2];
  if (format[1] == 't')
    return TimeText(unit == 's' || unit == 'm' ? part.At<int32_t>(row) : part.At<int64_t>(row), unit);
  int64_t day = 86'400;
  for (const char larger : {'m', 'u', 'n'}) {
    if (unit == 's') break;
    day *= 1000;
    if (unit == larger) break;
  }
  const int64_t moment = part.At<int64_t>(row), rest = (moment % day + day) % day;
  std::string text = DayText((moment - rest) / day) + " " + TimeText(rest, unit);
  if (format.size() > 4) text += "Z";
  return text;
}

void AppendText(const Part& part, int64_t row, std::string* out) {
  const std::string_view format = part.format();
  if (format == "u" || format == "z") {
    out->append(TextAt<int32_t>(part, row));
  } else if (format == "U" || format == "Z") {
    out->append(TextAt<int64_t>(part, row));
  } else if (format == "vu" || format == "vz") {
    out->append(ViewAt(part, row));
  } else {
    out->append(MomentText(part, row));
  }
}

// --- columns ---

// The row of the values that a dictionary has for this one; the row itself without a dictionary.
int64_t RowOfValue(const Part& part, int64_t row) {
  return part.array->dictionary != nullptr ? IntegerAt(part, row) : row;
}
Part ValuesOf(const Part& part) {
  return part.array->dictionary != nullptr ? Part{part.schema->dictionary, part.array->dictionary} : part;
}
bool IsMissing(const Part& part, int64_t row) {
  return part.IsMissing(row) ||
         (part.array->dictionary != nullptr && ValuesOf(part).IsMissing(RowOfValue(part, row)));
}

// The memory of the batch itself, where it is laid out as a column is. nullopt: it has to be copied.
std::optional<Result<Column>> AdoptColumn(const Part& part, const Batch& batch) {
  if (part.array->dictionary != nullptr || part.SomeMiss() || part.rows() == 0) return std::nullopt;
  const auto release = [batch] {};
  if (part.format() == "g")
    return Column::Adopt(ColumnType::kFloat64, part.rows(),
                         static_cast<const double*>(part.array->buffers[1]) + part.array->offset, nullptr,
                         nullptr, release);
  if (part.format() == "l")
    return Column::Adopt(ColumnType::kInteger64, part.rows(),
                         static_cast<const int64_t*>(part.array->buffers[1]) + part.array->offset, nullptr,
                         nullptr, release);
  if (part.format() == "U" || part.format() == "Z")
    return Column::Adopt(ColumnType::kString, part.rows(),
                         static_cast<const int64_t*>(part.array->buffers[1]) + part.array->offset,
                         static_cast<const char*>(part.array->buffers[2]), nullptr, release);
  return std::nullopt;
}

Result<Column> CopyColumn(const std::vector<Part>& parts, ColumnType type, std::string_view name,
                          int64_t rows) {
  const ColumnStorage storage = StorageOf(type);
  bool some_miss = false;
  std::string texts;
  std::vector<int64_t> offsets{0};
  for (const Part& part : parts) {
    const Part values = ValuesOf(part);
    for (int64_t row = 0; row < part.rows(); ++row) {
      const bool missing = IsMissing(part, row);
      some_miss |= missing;
      if (storage != ColumnStorage::kTexts) continue;
      if (!missing) AppendText(values, RowOfValue(part, row), &texts);
      offsets.push_back(static_cast<int64_t>(texts.size()));
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(Column column,
                          Column::Make(type, rows, static_cast<int64_t>(texts.size()), some_miss));
  int64_t at = 0;
  for (const Part& part : parts) {
    const Part values = ValuesOf(part);
    for (int64_t row = 0; row < part.rows(); ++row, ++at) {
      const bool missing = IsMissing(part, row);
      const int64_t value = missing ? 0 : RowOfValue(part, row);
      if (some_miss) column.mutable_missing()[at] = missing ? 1 : 0;
      if (storage == ColumnStorage::kDoubles)
        column.mutable_doubles()[at] = missing ? 0 : DoubleAt(values, value);
      if (storage == ColumnStorage::kIntegers)
        column.mutable_integers()[at] = missing ? 0 : IntegerAt(values, value);
      if (storage == ColumnStorage::kBooleans)
        column.mutable_booleans()[at] =
            !missing && BitAt(values.array->buffers[1], values.array->offset + value) ? 1 : 0;
    }
  }
  if (storage == ColumnStorage::kTexts) {
    std::copy(offsets.begin(), offsets.end(), column.mutable_offsets());
    texts.copy(column.mutable_texts(), texts.size());
    if (!IsUtf8(texts)) return InvalidArgument("column '{}' has bytes that are not UTF-8", name);
  }
  return column;
}

Status CheckRange(const std::vector<Part>& parts, std::string_view name) {
  for (const Part& part : parts) {
    const Part values = ValuesOf(part);
    if (values.format() != "L") continue;
    for (int64_t row = 0; row < values.rows(); ++row)
      if (!values.IsMissing(row) && values.At<uint64_t>(row) > static_cast<uint64_t>(INT64_MAX))
        return InvalidArgument("column '{}' has integers that do not fit into 64 bits with a sign", name);
  }
  return OkStatus();
}

Result<Column> ColumnOf(const std::vector<Part>& parts, const std::vector<Batch>& batches,
                        std::string_view name, const ArrowSchema& schema, int64_t rows) {
  const std::string_view format = schema.dictionary != nullptr ? schema.dictionary->format : schema.format;
  const std::optional<ColumnType> type = TypeOf(format);
  if (!type)
    return InvalidArgument("column '{}' has the type '{}' of Arrow, which no column of a frame has", name,
                           format)
        .WithNote("cast it to numbers, booleans or texts");
  HEDDLE_RETURN_IF_ERROR(CheckRange(parts, name));
  if (parts.size() == 1)
    if (std::optional<Result<Column>> adopted = AdoptColumn(parts[0], batches[0])) return *std::move(adopted);
  return CopyColumn(parts, *type, name, rows);
}

}  // namespace

Result<Frame> FrameFromArrow(PyObject* capsule) {
  auto* const stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, kArrowStreamName));
  if (stream == nullptr || stream->release == nullptr) {
    PyErr_Clear();
    return InvalidArgument("the stream of Arrow has been read already");
  }
  const auto failure = [&](const char* what) {
    const char* const why = stream->get_last_error(stream);
    return InvalidArgument("{}: {}", what,
                           why != nullptr ? why : "the library that made the table does not say why");
  };
  Released<ArrowSchema> schema;
  if (stream->get_schema(stream, &schema.value) != 0) return failure("the columns of the table");
  if (std::string_view(schema.value.format) != "+s")
    return InvalidArgument("the stream of Arrow has one array instead of the columns of a table");
  std::vector<Batch> batches;
  int64_t rows = 0;
  while (true) {
    auto batch = std::make_shared<Released<ArrowArray>>();
    if (stream->get_next(stream, &batch->value) != 0) return failure("the rows of the table");
    if (batch->value.release == nullptr) break;
    rows += batch->value.length;
    batches.push_back(std::move(batch));
  }
  std::vector<std::string> names;
  std::vector<Column> columns;
  for (int64_t i = 0; i < schema.value.n_children; ++i) {
    const ArrowSchema& column_schema = *schema.value.children[i];
    names.emplace_back(column_schema.name != nullptr ? column_schema.name : "");
    std::vector<Part> parts;
    for (const Batch& batch : batches) parts.push_back({&column_schema, batch->value.children[i]});
    HEDDLE_ASSIGN_OR_RETURN(Column column, ColumnOf(parts, batches, names.back(), column_schema, rows));
    columns.push_back(std::move(column));
  }
  return Frame::Of(std::move(names), std::move(columns));
}

}  // namespace heddle::python

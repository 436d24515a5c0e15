// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_vector.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>

#include "ops/io/formats/column_builder.h"
#include "ops/io/formats/rds/r_bytes.h"
#include "ops/io/formats/rds/r_texts.h"

namespace heddle::ops {
namespace {

constexpr int64_t kCellsAtOnce = int64_t{1} << 15;
constexpr double kSecondsOfDay = 86400;

bool Has(const std::vector<std::string>& classes, std::string_view name) {
  return std::find(classes.begin(), classes.end(), name) != classes.end();
}

// NA_real_ is the NaN whose lower half is 1954.
bool IsMissing(uint64_t bits) {
  return std::isnan(std::bit_cast<double>(bits)) && (bits & 0xFFFFFFFF) == 1954;
}

int64_t BytesOfCell(RType type) { return type == RType::kDouble ? 8 : type == RType::kBytes ? 1 : 4; }

// Calls take(place behind begin, bytes of the cell) for each cell that stands in the file.
template <typename Take>
Status VisitCells(const RFile& file, const RObject& vector, int64_t begin, int64_t end, const Take& take) {
  const int64_t bytes_of_cell = BytesOfCell(vector.type);
  CountedBytes buffer;
  for (int64_t at = begin; at < end; at += kCellsAtOnce) {
    const int64_t count = std::min(kCellsAtOnce, end - at);
    HEDDLE_ASSIGN_OR_RETURN(const std::string_view bytes, file.bytes().Read(vector.begin + at * bytes_of_cell,
                                                                            count * bytes_of_cell, &buffer));
    for (int64_t k = 0; k < count; ++k) take(at - begin + k, bytes.data() + k * bytes_of_cell);
  }
  return OkStatus();
}

// Whether it is missing; else the whole number.
struct WholeNumber {
  bool is_missing = false;
  int64_t number = 0;
};

WholeNumber NumberOf(const char* bytes, RCells cells, bool is_little_endian) {
  if (cells == RCells::kBytes) return {false, static_cast<uint8_t>(*bytes)};
  if (cells == RCells::kWideIntegers) {
    const auto number = LoadNumber<int64_t>(bytes, is_little_endian);
    return {number == INT64_MIN, number};
  }
  const auto number = LoadNumber<int32_t>(bytes, is_little_endian);
  return {number == INT32_MIN, cells == RCells::kBooleans ? number != 0 : number};
}

// Calls take(place behind begin, WholeNumber) for each cell of a vector that holds no doubles.
template <typename Take>
Status VisitIntegers(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                     const Take& take) {
  if (vector.storage == RStorage::kSequence) {
    for (int64_t k = begin; k < end; ++k)
      take(k - begin,
           WholeNumber{false, static_cast<int64_t>(vector.first + static_cast<double>(k) * vector.step)});
    return OkStatus();
  }
  return VisitCells(file, vector, begin, end, [&](int64_t place, const char* bytes) {
    take(place, NumberOf(bytes, cells, file.is_little_endian()));
  });
}

// Those of type double, whatever class they are of.
bool HoldsDoubles(const RObject& vector, RCells cells) {
  return vector.type == RType::kDouble && cells != RCells::kWideIntegers;
}

// What no year of four digits or so has is missing, as it is printed by R.
void AppendDay(double days, std::string* text) {
  constexpr double kMostDays = 365.0 * 32'000;
  days = std::floor(days);
  if (!(std::abs(days) <= kMostDays)) return;
  const std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(static_cast<int64_t>(days))));
  fmt::format_to(std::back_inserter(*text), "{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                 static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

// With as many digits of a second as it has, up to six.
void AppendInstant(double seconds, std::string* text) {
  constexpr double kMillion = 1e6;
  const double days = std::floor(seconds / kSecondsOfDay);
  AppendDay(days, text);
  if (text->empty()) return;
  auto microseconds = static_cast<int64_t>(std::floor((seconds - days * kSecondsOfDay) * kMillion + 0.5));
  constexpr int64_t kOfDay = 86'400'000'000;
  if (microseconds >= kOfDay) {
    text->clear();
    AppendDay(days + 1, text);
    microseconds -= kOfDay;
  }
  const int64_t whole = microseconds / 1'000'000, fraction = microseconds % 1'000'000;
  fmt::format_to(std::back_inserter(*text), "T{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  if (fraction != 0) {
    fmt::format_to(std::back_inserter(*text), ".{:06}", fraction);
    text->erase(text->find_last_not_of('0') + 1);
  }
  text->push_back('Z');
}

Result<Column> ReadTextColumn(const RFile& file, const RObject& vector, int64_t begin, int64_t end,
                              const std::string& what) {
  // Texts that the file does not hold may be any number: there is no room for too many, before they are made.
  HEDDLE_RETURN_IF_ERROR(Column::Make(ColumnType::kString, end - begin, 0, false).status());
  ColumnBuilder builder(ColumnType::kString);
  HEDDLE_ASSIGN_OR_RETURN(RTexts texts, RTexts::From(file, vector, begin, what));
  for (int64_t i = begin; i < end; ++i) {
    std::string_view text;
    bool is_missing = false;
    HEDDLE_RETURN_IF_ERROR(texts.Next(&text, &is_missing));
    if (is_missing)
      builder.MissUntil(i - begin + 1);
    else
      builder.Add(text);
  }
  return builder.Finish(end - begin);
}

Result<Column> ReadFactor(const RFile& file, const RObject& vector, int64_t begin, int64_t end,
                          const std::string& what) {
  const RObject* const levels = file.Attribute(vector, "levels");
  if (levels == nullptr || levels->type != RType::kTexts || levels->length > INT32_MAX)
    return file.Damaged(fmt::format("{} is a factor without levels", what));
  HEDDLE_ASSIGN_OR_RETURN(const Column texts, ReadTextColumn(file, *levels, 0, levels->length, what));
  ColumnBuilder builder(ColumnType::kString);
  int64_t wrong = kUnknown;
  const auto take = [&](int64_t place, bool is_missing, double level) {
    if (is_missing) {
      builder.MissUntil(place + 1);
    } else if (level >= 1 && level <= static_cast<double>(texts.rows())) {
      const int64_t row = static_cast<int64_t>(level) - 1;
      if (texts.IsMissing(row))
        builder.MissUntil(place + 1);
      else
        builder.Add(texts.TextAt(row));
    } else if (wrong == kUnknown) {
      wrong = begin + place;
    }
  };
  HEDDLE_RETURN_IF_ERROR(VisitIntegers(file, vector, RCells::kIntegers, begin, end,
                                       [&](int64_t place, const WholeNumber& number) {
                                         take(place, number.is_missing, static_cast<double>(number.number));
                                       }));
  if (wrong != kUnknown)
    return file.Damaged(fmt::format("{}, row {}: there is no such level", what, wrong + 1));
  return builder.Finish(end - begin);
}

Result<Column> ReadTimes(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end) {
  ColumnBuilder builder(ColumnType::kString);
  std::vector<double> numbers;
  std::vector<int64_t> missing;
  std::string text;
  for (int64_t at = begin; at < end; at += kCellsAtOnce) {
    const int64_t last = std::min(end, at + kCellsAtOnce);
    numbers.resize(static_cast<size_t>(last - at));
    HEDDLE_RETURN_IF_ERROR(ReadNumbers(file, vector, cells, at, last, numbers.data()));
    for (int64_t i = at; i < last; ++i) {
      text.clear();
      const double number = numbers[static_cast<size_t>(i - at)];
      cells == RCells::kDays ? AppendDay(number, &text) : AppendInstant(number, &text);
      if (text.empty())
        builder.MissUntil(i - begin + 1);
      else
        builder.Add(text);
    }
  }
  return builder.Finish(end - begin);
}

}  // namespace

Result<RCells> CellsOf(const RFile& file, const RObject& vector) {
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassesOf(file, vector));
  switch (vector.type) {
    case RType::kTexts: return RCells::kTexts;
    case RType::kLogical: return RCells::kBooleans;
    case RType::kBytes: return RCells::kBytes;
    case RType::kInteger:
      if (Has(classes, "factor")) return RCells::kFactor;
      break;
    case RType::kDouble:
      if (Has(classes, "integer64")) return RCells::kWideIntegers;
      break;
    default: return RCells::kNone;
  }
  if (Has(classes, "Date")) return RCells::kDays;
  if (Has(classes, "POSIXct")) return RCells::kSeconds;
  return vector.type == RType::kDouble ? RCells::kDoubles : RCells::kIntegers;
}

bool AreNumbers(RCells cells) {
  return cells != RCells::kNone && StorageOf(TypeOf(cells)) != ColumnStorage::kTexts;
}

ColumnType TypeOf(RCells cells) {
  switch (cells) {
    case RCells::kDoubles: return ColumnType::kFloat64;
    case RCells::kIntegers:
    case RCells::kBytes: return ColumnType::kInteger32;
    case RCells::kWideIntegers: return ColumnType::kInteger64;
    case RCells::kBooleans: return ColumnType::kBoolean;
    default: return ColumnType::kString;
  }
}

Status ReadNumbers(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                   double* out, std::vector<int64_t>* missing) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto miss = [&](int64_t place) {
    if (missing != nullptr) missing->push_back(place);
    out[place] = missing != nullptr ? 0 : kNaN;
  };
  if (!HoldsDoubles(vector, cells))
    return VisitIntegers(file, vector, cells, begin, end, [&](int64_t place, const WholeNumber& number) {
      if (number.is_missing) return miss(place);
      out[place] = static_cast<double>(number.number);
    });
  if (vector.storage == RStorage::kSequence) {
    for (int64_t k = begin; k < end; ++k)
      out[k - begin] = vector.first + static_cast<double>(k) * vector.step;
    return OkStatus();
  }
  return VisitCells(file, vector, begin, end, [&](int64_t place, const char* bytes) {
    const auto bits = LoadNumber<uint64_t>(bytes, file.is_little_endian());
    if (IsMissing(bits)) return miss(place);
    const auto number = std::bit_cast<double>(bits);
    out[place] = std::isnan(number) ? kNaN : number;
  });
}

Status ReadIntegers(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                    int64_t* out, std::vector<int64_t>* missing) {
  return VisitIntegers(file, vector, cells, begin, end, [&](int64_t place, const WholeNumber& number) {
    out[place] = number.is_missing ? 0 : number.number;
    if (number.is_missing && missing != nullptr) missing->push_back(place);
  });
}

Result<Column> ReadColumn(const RFile& file, const RObject& vector, RCells cells, int64_t begin, int64_t end,
                          const std::string& what) {
  if (cells == RCells::kTexts) return ReadTextColumn(file, vector, begin, end, what);
  if (cells == RCells::kFactor) return ReadFactor(file, vector, begin, end, what);
  if (cells == RCells::kDays || cells == RCells::kSeconds) return ReadTimes(file, vector, cells, begin, end);
  const ColumnType type = TypeOf(cells);
  HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, end - begin, 0, false));
  std::vector<int64_t> missing;
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      HEDDLE_RETURN_IF_ERROR(
          ReadNumbers(file, vector, cells, begin, end, column.mutable_doubles(), &missing));
      break;
    case ColumnStorage::kIntegers:
      HEDDLE_RETURN_IF_ERROR(
          ReadIntegers(file, vector, cells, begin, end, column.mutable_integers(), &missing));
      break;
    default:
      HEDDLE_RETURN_IF_ERROR(
          VisitIntegers(file, vector, cells, begin, end, [&](int64_t place, const WholeNumber& number) {
            column.mutable_booleans()[place] = !number.is_missing && number.number != 0;
            if (number.is_missing) missing.push_back(place);
          }));
  }
  if (missing.empty()) return column;
  HEDDLE_ASSIGN_OR_RETURN(Column marked, Column::Make(type, end - begin, 0, true));
  switch (column.storage()) {
    case ColumnStorage::kDoubles:
      std::copy_n(column.doubles(), column.rows(), marked.mutable_doubles());
      break;
    case ColumnStorage::kIntegers:
      std::copy_n(column.integers(), column.rows(), marked.mutable_integers());
      break;
    default: std::copy_n(column.booleans(), column.rows(), marked.mutable_booleans());
  }
  for (const int64_t row : missing) marked.mutable_missing()[row] = 1;
  return marked;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/cell_types.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text/double_text.h"
#include "core/text/utf8.h"
#include "ops/frame/convert.h"
#include "ops/frame/text_column.h"

namespace heddle::ops {
namespace {

constexpr size_t kLongestInteger = 22;
constexpr size_t kLongestNumber = 30;

bool IsDigit(char sign) { return sign >= '0' && sign <= '9'; }

std::string Small(std::string_view text) {
  std::string small(text);
  for (char& letter : small)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return small;
}

// True if `text` is digits with nothing but zeros behind a point; `digits` is what stands before it.
bool IsInteger(std::string_view text, std::string_view* digits) {
  const size_t sign = text[0] == '-' ? 1 : 0;
  const size_t point = text.find('.');
  *digits = text.substr(0, point);
  const std::string_view rest = point == text.npos ? std::string_view() : text.substr(point + 1);
  const std::string_view whole = digits->substr(std::min(sign, digits->size()));
  return !whole.empty() && std::all_of(whole.begin(), whole.end(), IsDigit) &&
         rest.find_first_not_of('0') == rest.npos;
}

bool IsBoolean(std::string_view text) {
  const std::string small = Small(text);
  std::string_view digits;
  if (small == "t" || small == "f" || small == "true" || small == "false") return true;
  return IsInteger(small, &digits) && (digits == "0" || digits == "1");
}

std::optional<ColumnType> IntegerType(std::string_view text) {
  const std::optional<int64_t> value = text.size() > kLongestInteger ? std::nullopt : IntegerInText(text);
  if (!value) return std::nullopt;
  const bool is_short =
      *value >= std::numeric_limits<int32_t>::min() && *value <= std::numeric_limits<int32_t>::max();
  return is_short ? ColumnType::kInteger32 : ColumnType::kInteger64;
}

std::optional<ColumnType> FloatType(std::string_view text) {
  const std::string small = Small(text);
  const std::string_view unsigned_part = std::string_view(small).substr(small[0] == '-' ? 1 : 0);
  if (unsigned_part == "inf" || unsigned_part == "infinity" || small == "nan") return ColumnType::kFloat32;
  const bool numeric = text.size() <= kLongestNumber &&
                       text.find_first_not_of("0123456789+-.eE") == text.npos &&
                       text.find_first_of("0123456789") != text.npos;
  const std::optional<double> value = numeric ? ParseDouble(text) : std::nullopt;
  if (!value) return std::nullopt;
  return IsSingle(*value) ? ColumnType::kFloat32 : ColumnType::kFloat64;
}

constexpr std::string_view kMayBeEmpty = "\u00B7n";

bool IsNumeric(ColumnType type) { return StorageOf(type) != ColumnStorage::kTexts; }

}  // namespace

std::optional<ColumnType> TypeOfText(std::string_view text, ColumnType least) {
  if (text.empty()) return std::nullopt;
  if (least == ColumnType::kBoolean && IsBoolean(text)) return ColumnType::kBoolean;
  const bool integers = IsNumeric(least) && StorageOf(least) != ColumnStorage::kDoubles;
  if (integers)
    if (const std::optional<ColumnType> type = IntegerType(text)) return type;
  if (IsNumeric(least))
    if (const std::optional<ColumnType> type = FloatType(text)) return type;
  if (least != ColumnType::kString && Utf8Length(text, 0) == text.size()) return ColumnType::kCharacter;
  return ColumnType::kString;
}

std::string Plain(std::string_view text) {
  const auto is_blank = [](char sign) { return static_cast<unsigned char>(sign) <= ' '; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  std::string plain = Small(text);
  std::erase(plain, '"');
  return plain;
}

namespace {

// What a cell behind cells that fit `type` makes of it.
std::optional<ColumnType> TypeBehind(std::optional<ColumnType> type, std::string_view text) {
  const std::optional<ColumnType> one = TypeOfText(text, type.value_or(ColumnType::kBoolean));
  if (!one || !type) return one ? one : type;
  return IsNumeric(*type) != IsNumeric(*one) ? ColumnType::kString : WiderOf(*type, *one);
}

}  // namespace

DetectedCells::State DetectedCells::StateAt(size_t place) {
  if (place == 0) return std::nullopt;
  return static_cast<ColumnType>(place - 1);
}

DetectedCells DetectedCells::Of(const Frame& frame, int64_t column, bool is_part) {
  DetectedCells cells;
  for (size_t i = 0; i < kStates; ++i) cells.leads_to_[i] = StateAt(i);
  const ColumnType own = frame.column(column).type();
  if (own != ColumnType::kString && own != ColumnType::kFloat64) {
    cells.own_ = own;
    return cells;
  }
  for (int64_t i = 0; i < frame.rows(); ++i) {
    const std::optional<std::string> text = TextOfCell(frame, i, column);
    if (text.value_or("").empty()) {
      cells.has_empty_ = true;
      continue;
    }
    cells.Read(*text, is_part);
    // Nothing changes any more.
    if (is_part ? cells.AreAllTexts() : cells.leads_to_[0] == ColumnType::kString) break;
  }
  return cells;
}

bool DetectedCells::AreAllTexts() const {
  return std::all_of(leads_to_.begin(), leads_to_.end(),
                     [](State state) { return state == ColumnType::kString; });
}

void DetectedCells::Read(const std::string& text, bool is_part) {
  // Most of them lead to the same few types.
  std::array<std::optional<State>, kStates> behind;
  for (size_t i = 0; i < (is_part ? kStates : 1); ++i) {
    std::optional<State>& next = behind[PlaceOf(leads_to_[i])];
    if (!next) next = TypeBehind(leads_to_[i], text);
    leads_to_[i] = *next;
  }
  const std::optional<double> number = NumberInText(text);
  are_single_ &= number && IsSingle(*number);
  has_letters_ |= IsBoolean(text) && !number;  // t, f
}

void DetectedCells::Append(const DetectedCells& next) {
  for (State& state : leads_to_) state = next.leads_to_[PlaceOf(state)];
  are_single_ &= next.are_single_;
  has_letters_ |= next.has_letters_;
  has_empty_ |= next.has_empty_;
}

ColumnType DetectedCells::type() const {
  if (own_) return *own_;
  const State type = leads_to_[0];
  if (!type || !IsNumeric(*type)) return type.value_or(ColumnType::kString);
  if (has_letters_ && type != ColumnType::kBoolean) return ColumnType::kString;
  // Whole numbers before a fraction may be too long for a float.
  return type == ColumnType::kFloat32 && !are_single_ ? ColumnType::kFloat64 : *type;
}

std::string DetectedCells::NameInSchema() const {
  std::string name(Name(type()));
  const bool has_mark = !own_ && type() != ColumnType::kString && has_empty_;
  return has_mark ? name.append(kMayBeEmpty) : name;
}

void DetectedCells::Write(double* numbers) const {
  for (const State state : leads_to_) *numbers++ = static_cast<double>(PlaceOf(state));
  *numbers++ = static_cast<double>(PlaceOf(own_));
  *numbers++ = are_single_ ? 1 : 0;
  *numbers++ = has_letters_ ? 1 : 0;
  *numbers++ = has_empty_ ? 1 : 0;
}

DetectedCells DetectedCells::Read(const double* numbers) {
  DetectedCells cells;
  for (State& state : cells.leads_to_) state = StateAt(static_cast<size_t>(*numbers++));
  cells.own_ = StateAt(static_cast<size_t>(*numbers++));
  cells.are_single_ = *numbers++ != 0;
  cells.has_letters_ = *numbers++ != 0;
  cells.has_empty_ = *numbers++ != 0;
  return cells;
}

TypeName TypeInSchema(const Frame& schema, int64_t column) {
  TypeName type{TextOfCell(schema, 0, column).value_or("")};
  type.may_be_empty = type.name.ends_with(kMayBeEmpty);
  if (type.may_be_empty) type.name.resize(type.name.size() - kMayBeEmpty.size());
  return type;
}

}  // namespace heddle::ops

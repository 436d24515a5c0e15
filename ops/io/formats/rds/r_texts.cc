// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/rds/r_texts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/text/utf8.h"
#include "ops/io/formats/rds/r_vector.h"

namespace heddle::ops {
namespace {

// In the flags of a string.
constexpr uint32_t kIsLatin1 = 1u << 14, kIsUtf8 = 1u << 15;

constexpr int64_t kNumbersAtOnce = 4096;

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

bool IsLatin1(std::string_view encoding) {
  for (const std::string_view known :
       {"latin1", "iso-8859-1", "iso8859-1", "iso88591", "cp1252", "windows-1252", "1252"})
    if (encoding == known) return true;
  return false;
}

// R calls the encoding of Windows Latin-1 as well, which has characters where Latin-1 has controls.
std::string OfLatin1(std::string_view bytes) {
  static constexpr std::array<uint16_t, 32> kOfWindows = {
      0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
      0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    AppendUtf8(byte >= 0x80 && byte < 0xA0 ? kOfWindows[byte - 0x80] : byte, &text);
  }
  return text;
}

// As UTF-8: the bytes as they are, or in `room`. False where nobody knows how they are encoded.
bool Decode(const RFile& file, const RString& string, std::string* room, std::string_view* text) {
  *text = string.bytes;
  if (IsAscii(string.bytes)) return true;
  const bool has_encoding = (string.flags & (kIsUtf8 | kIsLatin1)) != 0;
  if ((string.flags & kIsLatin1) == 0 && (has_encoding || !IsLatin1(file.native_encoding())))
    return IsUtf8(string.bytes);
  *room = OfLatin1(string.bytes);
  *text = *room;
  return true;
}

// As much as the texts of a short vector need.
int64_t WindowBytes(const RObject& vector) {
  constexpr int64_t kBytesOfText = 32, kLeast = 256;
  return vector.length >= RBytes::kManyBytes / kBytesOfText ? RBytes::kManyBytes
                                                            : kLeast + vector.length * kBytesOfText;
}

}  // namespace

RTexts::RTexts(const RFile& file, const RObject& vector, int64_t first, std::string what)
    : file_(file),
      vector_(vector),
      at_(first),
      what_(std::move(what)),
      bytes_(file.path(), file.bytes(), file.is_little_endian(), vector.begin, WindowBytes(vector)) {}

Result<RTexts> RTexts::From(const RFile& file, const RObject& vector, int64_t first, std::string what) {
  RTexts texts(file, vector, first, std::move(what));
  if (vector.storage == RStorage::kInFile) {
    for (int64_t i = 0; i < first; ++i) HEDDLE_RETURN_IF_ERROR(texts.bytes_.SkipString());
    return texts;
  }
  texts.numbers_begin_ = first;
  const RObject* const favour = file.Next(*file.FirstChild(vector));
  if (favour != nullptr && favour->type == RType::kInteger && favour->length == 1)
    HEDDLE_RETURN_IF_ERROR(ReadNumbers(file, *favour, RCells::kIntegers, 0, 1, &texts.favours_fixed_));
  return texts;
}

Status RTexts::Next(std::string_view* text, bool* is_missing) {
  if (vector_.storage == RStorage::kNumbersAsTexts) return NextOfNumbers(text, is_missing);
  RString string;
  HEDDLE_RETURN_IF_ERROR(bytes_.TakeString(&string));
  ++at_;
  *is_missing = string.is_missing;
  if (Decode(file_, string, &room_, text)) return OkStatus();
  return DataLoss("cannot read '{}': {}, text {}: '{}' is not in an encoding that the file tells",
                  file_.path(), what_, at_, ShownInLine(EscapeInvalidUtf8(string.bytes), 40))
      .WithNote("enc2utf8(), in R where it was written, gives a vector of texts that is read");
}

Status RTexts::NextOfNumbers(std::string_view* text, bool* is_missing) {
  const RObject& of = *file_.FirstChild(vector_);
  if (at_ == numbers_begin_ + static_cast<int64_t>(numbers_.size())) {
    const int64_t end = std::min(vector_.length, at_ + kNumbersAtOnce);
    numbers_begin_ = at_;
    missing_.clear();
    numbers_.resize(static_cast<size_t>(end - at_));
    HEDDLE_RETURN_IF_ERROR(ReadNumbers(file_, of,
                                       of.type == RType::kDouble ? RCells::kDoubles : RCells::kIntegers, at_,
                                       end, numbers_.data(), &missing_));
  }
  const int64_t place = at_++ - numbers_begin_;
  *is_missing = std::binary_search(missing_.begin(), missing_.end(), place);
  room_.clear();
  if (!*is_missing) AppendRNumber(numbers_[static_cast<size_t>(place)], favours_fixed_, &room_);
  *text = room_;
  return OkStatus();
}

Result<std::vector<std::string>> TextsOf(const RFile& file, const RObject* vector) {
  constexpr int64_t kMostNames = int64_t{1} << 24;
  std::vector<std::string> all;
  if (vector == nullptr || vector->type != RType::kTexts) return all;
  if (vector->length > kMostNames) return file.Damaged(fmt::format("it has {} names", vector->length));
  HEDDLE_ASSIGN_OR_RETURN(RTexts texts, RTexts::From(file, *vector, 0, "names"));
  for (int64_t i = 0; i < vector->length; ++i) {
    std::string_view text;
    bool is_missing = false;
    HEDDLE_RETURN_IF_ERROR(texts.Next(&text, &is_missing));
    all.emplace_back(text);
  }
  return all;
}

Result<std::vector<std::string>> ClassesOf(const RFile& file, const RObject& object) {
  constexpr int64_t kMostClasses = 64;
  const RObject* const classes = file.Attribute(object, "class");
  return TextsOf(file, classes != nullptr && classes->length <= kMostClasses ? classes : nullptr);
}

void AppendRNumber(double number, double favours_fixed, std::string* text) {
  constexpr size_t kMostDigits = 15;
  if (std::isnan(number)) {
    text->append("NaN");
    return;
  }
  if (std::isinf(number)) {
    text->append(number < 0 ? "-Inf" : "Inf");
    return;
  }
  // "d.dddde+XX": the digits without zeros at their end, and the power of ten.
  const std::string scientific = fmt::format("{:.{}e}", std::abs(number), kMostDigits - 1);
  const size_t mark = scientific.find('e');
  const int power = std::stoi(scientific.substr(mark + 1));
  const size_t last = scientific.find_last_not_of("0", mark - 1);
  const int digits = last == 1 ? 1 : static_cast<int>(last);
  const int behind_point = std::max(0, digits - power - 1);
  const int fixed_length = std::max(power, 0) + 1 + (behind_point > 0 ? behind_point + 1 : 0);
  const int length = (digits > 1 ? digits + 1 : 1) + (std::abs(power) >= 100 ? 5 : 4);
  if (static_cast<double>(fixed_length) <= static_cast<double>(length) + favours_fixed)
    fmt::format_to(std::back_inserter(*text), "{:.{}f}", number, behind_point);
  else
    fmt::format_to(std::back_inserter(*text), "{:.{}e}", number, digits - 1);
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/text/java_text.h"

#include <algorithm>
#include <cstdint>

#include "core/text/utf8.h"
#include "ops/text/character_runs.h"

namespace heddle::ops {
namespace {

// The run that may hold the unit; nullptr where none begins before it.
template <typename Run, size_t size>
const Run* RunAt(const Run (&runs)[size], char16_t unit) {
  const Run* const next = std::upper_bound(runs, runs + size, unit,
                                           [](char16_t value, const Run& run) { return value < run.first; });
  return next == runs ? nullptr : next - 1;
}

// The same of runs with steps; nullptr where the unit is in none.
template <typename Run, size_t size>
const Run* RunOf(const Run (&runs)[size], char16_t unit) {
  const Run* const run = RunAt(runs, unit);
  return run != nullptr && unit <= run->last && (unit - run->first) % run->step == 0 ? run : nullptr;
}

template <size_t size>
bool IsIn(const UnitRun (&runs)[size], char16_t unit) {
  return RunOf(runs, unit) != nullptr;
}

template <size_t size>
char16_t OtherCase(const CaseRun (&runs)[size], char16_t unit) {
  const CaseRun* const run = RunOf(runs, unit);
  return run == nullptr ? unit : static_cast<char16_t>(unit + run->distance);
}

}  // namespace

std::u16string ToUtf16(std::string_view text) {
  std::u16string units;
  units.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text, i);
    if (length <= 1) {
      units.push_back(length == 1 ? static_cast<char16_t>(text[i]) : u'\uFFFD');
      ++i;
      continue;
    }
    uint32_t point = static_cast<unsigned char>(text[i]) & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k)
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu);
    i += length;
    if (point < 0x10000) {
      units.push_back(static_cast<char16_t>(point));
    } else {
      units.push_back(static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF)));
    }
  }
  return units;
}

std::string ToUtf8(std::u16string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t point = text[i];
    const bool high = point >= 0xD800 && point < 0xDC00;
    if (high && i + 1 < text.size() && text[i + 1] >= 0xDC00 && text[i + 1] < 0xE000) {
      point = 0x10000 + ((point - 0xD800) << 10) + (text[++i] - 0xDC00u);
    } else if (point >= 0xD800 && point < 0xE000) {
      point = '?';
    }
    if (point < 0x80)
      bytes.push_back(static_cast<char>(point));
    else
      AppendUtf8(point, &bytes);
  }
  return bytes;
}

char16_t LowerCase(char16_t unit) { return OtherCase(kLowerCaseRuns, unit); }

char16_t UpperCase(char16_t unit) { return OtherCase(kUpperCaseRuns, unit); }

bool IsLetter(char16_t unit) { return IsIn(kLetterRuns, unit); }
bool IsUpperCase(char16_t unit) { return IsIn(kUpperCaseLetterRuns, unit); }
bool IsLowerCase(char16_t unit) { return IsIn(kLowerCaseLetterRuns, unit); }
bool IsAlphabetic(char16_t unit) { return IsLetter(unit) || IsIn(kAlphabeticRuns, unit); }
bool IsDecimalDigit(char16_t unit) { return IsIn(kDigitRuns, unit); }
bool IsWhitespace(char16_t unit) { return IsIn(kWhitespaceRuns, unit); }
bool IsSpaceCharacter(char16_t unit) { return IsIn(kSpaceRuns, unit); }

int32_t NumericValue(char16_t unit) {
  const ValueRun* const run = RunAt(kNumericValueRuns, unit);
  if (run == nullptr || unit > run->last) return -1;
  return run->value + (unit - run->first) * run->step;
}

}  // namespace heddle::ops

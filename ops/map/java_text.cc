// SPDX-License-Identifier: Apache-2.0
#include "ops/map/java_text.h"

#include <cstdint>

#include "core/utf8.h"

namespace heddle::ops {
namespace {

// Letters in pairs, an even (or odd) capital followed by its small letter.
struct Pairs {
  char16_t first, last;
};
constexpr Pairs kPairs[] = {{0x100, 0x12F}, {0x132, 0x137}, {0x139, 0x148}, {0x14A, 0x177}, {0x179, 0x17E},
                            {0x1DE, 0x1EF}, {0x1F8, 0x21F}, {0x222, 0x233}, {0x370, 0x373}, {0x376, 0x377},
                            {0x3D8, 0x3EF}, {0x460, 0x481}, {0x48A, 0x4BF}, {0x4C1, 0x4CE}, {0x4D0, 0x4FF}};
// Capitals at a fixed distance before their small letters.
struct Shifted {
  char16_t first, last;
  int distance;
};
constexpr Shifted kShifted[] = {{'A', 'Z', 32},     {0xC0, 0xD6, 32},   {0xD8, 0xDE, 32},
                                {0x386, 0x386, 38}, {0x388, 0x38A, 37}, {0x38C, 0x38C, 64},
                                {0x38E, 0x38F, 63}, {0x391, 0x3A1, 32}, {0x3A3, 0x3AB, 32},
                                {0x400, 0x40F, 80}, {0x410, 0x42F, 32}, {0x178, 0x178, -121}};

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
  const auto add = [&](uint32_t byte) { bytes.push_back(static_cast<char>(byte)); };
  for (size_t i = 0; i < text.size(); ++i) {
    uint32_t point = text[i];
    const bool high = point >= 0xD800 && point < 0xDC00;
    if (high && i + 1 < text.size() && text[i + 1] >= 0xDC00 && text[i + 1] < 0xE000) {
      point = 0x10000 + ((point - 0xD800) << 10) + (text[++i] - 0xDC00u);
    } else if (point >= 0xD800 && point < 0xE000) {
      point = '?';
    }
    if (point < 0x80) {
      add(point);
    } else if (point < 0x800) {
      add(0xC0 | point >> 6);
      add(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
      add(0xE0 | point >> 12);
      add(0x80 | (point >> 6 & 0x3F));
      add(0x80 | (point & 0x3F));
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
      add(0x80 | (point >> 6 & 0x3F));
      add(0x80 | (point & 0x3F));
    }
  }
  return bytes;
}

char16_t LowerCase(char16_t unit) {
  for (const Shifted& letters : kShifted)
    if (unit >= letters.first && unit <= letters.last) return static_cast<char16_t>(unit + letters.distance);
  for (const Pairs& letters : kPairs)
    if (unit >= letters.first && unit <= letters.last)
      return static_cast<char16_t>(unit + ((unit - letters.first) % 2 == 0 ? 1 : 0));
  return unit;
}

char16_t UpperCase(char16_t unit) {
  for (const Shifted& letters : kShifted) {
    const int capital = unit - letters.distance;
    if (capital >= letters.first && capital <= letters.last) return static_cast<char16_t>(capital);
  }
  for (const Pairs& letters : kPairs)
    if (unit >= letters.first && unit <= letters.last)
      return static_cast<char16_t>(unit - ((unit - letters.first) % 2 == 0 ? 0 : 1));
  return unit == 0x3C2 ? u'\u03A3' : unit;  // The small sigma that ends a word.
}

bool IsLetter(char16_t unit) {
  return LowerCase(unit) != unit || UpperCase(unit) != unit || unit == 0xAA || unit == 0xBA || unit == 0xDF;
}

}  // namespace heddle::ops

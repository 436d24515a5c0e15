// SPDX-License-Identifier: Apache-2.0
#include "core/text/message_lines.h"

#include <algorithm>
#include <string_view>

namespace heddle {
namespace {

constexpr size_t kLongestLine = 1000;
constexpr size_t kBytesOfBeginning = 600;
constexpr size_t kBytesOfEnd = 300;

bool ContinuesCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

void AppendShort(std::string_view line, std::string* out) {
  if (line.size() <= kLongestLine) {
    *out += line;
    return;
  }
  size_t first_left_out = kBytesOfBeginning;
  while (first_left_out > 0 && ContinuesCharacter(line[first_left_out])) --first_left_out;
  size_t end = line.size() - kBytesOfEnd;
  while (end < line.size() && ContinuesCharacter(line[end])) ++end;
  *out += line.substr(0, first_left_out);
  *out += "...";
  *out += line.substr(end);
}

}  // namespace

std::string WithShortLines(std::string text) {
  if (text.size() <= kLongestLine) return text;
  std::string shown;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    AppendShort(std::string_view(text).substr(begin, end - begin), &shown);
    if (end < text.size()) shown += '\n';
    begin = end + 1;
  }
  return shown;
}

}  // namespace heddle

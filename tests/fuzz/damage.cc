// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/damage.h"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/hostile.h"
#include "tests/fuzz/script_text.h"

namespace heddle::fuzz {
namespace {

constexpr size_t kMostBytes = 1 << 16;

void WriteInteger(std::string* bytes, Chooser& choose) {
  const int64_t values[] = {0,        1,         -1,        2,          255,       256,
                            65535,    INT32_MAX, INT32_MIN, INT64_MAX,  INT64_MIN, 1L << 32,
                            1L << 40, 1L << 48,  1L << 62,  -(1L << 40)};
  int64_t value = values[choose.Below(std::size(values))];
  if (choose.Chance(20)) value = static_cast<int64_t>(bytes->size()) + choose.Between(-64, 64);
  const size_t width = choose.Chance(60) ? 8 : choose.Chance(50) ? 4 : 2;
  if (bytes->size() < width) return;
  size_t at = choose.Below(bytes->size() - width + 1);
  if (choose.Chance(70)) at -= at % width;
  std::memcpy(bytes->data() + at, &value, width);
}

void WriteNumber(std::string* bytes, Chooser& choose) {
  std::vector<std::string> tokens = SplitTokens(*bytes);
  std::vector<size_t> numbers;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (IsNumberToken(tokens[i])) numbers.push_back(i);
  if (numbers.empty()) return;
  tokens[choose.Pick(numbers)] = choose.Chance(50) ? HostileField(choose) : HostileNumber(choose);
  *bytes = JoinTokens(tokens);
}

std::string PieceOf(const std::string& bytes, Chooser& choose) {
  const size_t at = choose.Below(bytes.size() + 1);
  return bytes.substr(at, 1 + choose.Below(choose.Chance(70) ? 16 : 512));
}

void DamageOnce(const std::vector<std::string>& inputs, std::string* bytes, Chooser& choose) {
  const size_t at = choose.Below(bytes->size() + 1);
  switch (choose.Below(12)) {
    case 0:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << choose.Below(8)));
      break;
    case 1:
      if (at < bytes->size()) (*bytes)[at] = static_cast<char>(choose.Below(256));
      break;
    case 2: bytes->resize(at); break;
    case 3: bytes->erase(at, 1 + choose.Below(32)); break;
    case 4: bytes->insert(at, PieceOf(*bytes, choose)); break;
    case 5: bytes->insert(at, PieceOf(choose.Pick(inputs), choose)); break;
    case 6: *bytes = bytes->substr(0, at) + PieceOf(choose.Pick(inputs), choose); break;
    case 7: WriteNumber(bytes, choose); break;
    case 8:
      bytes->insert(at, 1 + choose.Below(40),
                    static_cast<char>(choose.Pick({"(", "[", "{", "\"", "0", "9", " ", "\n", "-"})[0]));
      break;
    default: WriteInteger(bytes, choose);
  }
  if (bytes->size() > kMostBytes) bytes->resize(kMostBytes);
}

}  // namespace

std::string Damaged(const std::vector<std::string>& inputs, Chooser& choose) {
  std::string bytes = choose.Pick(inputs);
  for (size_t changes = choose.Chance(50) ? 1 : 1 + choose.Below(4); changes > 0; --changes)
    DamageOnce(inputs, &bytes, choose);
  return bytes;
}

}  // namespace heddle::fuzz

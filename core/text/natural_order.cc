// SPDX-License-Identifier: Apache-2.0
#include "core/text/natural_order.h"

#include <algorithm>

namespace heddle {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The digits at the front of a text, without zeros before them.
std::string_view TakeDigits(std::string_view* text) {
  const auto end = std::find_if_not(text->begin(), text->end(), IsDigit);
  std::string_view digits = text->substr(0, static_cast<size_t>(end - text->begin()));
  text->remove_prefix(digits.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

}  // namespace

bool ComesBefore(std::string_view a, std::string_view b) {
  std::string_view rest_of_a = a, rest_of_b = b;
  while (!rest_of_a.empty() && !rest_of_b.empty()) {
    if (IsDigit(rest_of_a.front()) && IsDigit(rest_of_b.front())) {
      const std::string_view x = TakeDigits(&rest_of_a), y = TakeDigits(&rest_of_b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    const auto x = static_cast<unsigned char>(rest_of_a.front());
    const auto y = static_cast<unsigned char>(rest_of_b.front());
    if (x != y) return x < y;
    rest_of_a.remove_prefix(1);
    rest_of_b.remove_prefix(1);
  }
  if (rest_of_a.empty() != rest_of_b.empty()) return rest_of_a.empty();
  return a < b;
}

}  // namespace heddle

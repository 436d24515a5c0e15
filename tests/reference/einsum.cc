// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/einsum.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace heddle::ops::reference {
namespace {

std::string Letters(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (c != ' ') letters += c;
  return letters;
}

}  // namespace

Matrix Einsum(std::string_view equation, std::span<const Matrix> operands) {
  const size_t arrow = equation.find("->");
  const std::string result = Letters(equation.substr(arrow + 2));
  std::vector<std::string> names(1);
  for (const char c : Letters(equation.substr(0, arrow))) {
    if (c == ',')
      names.emplace_back();
    else
      names.back() += c;
  }
  std::map<char, int64_t> sizes, at;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Matrix& x = operands[i];
    if (names[i].size() == 1) {
      sizes[names[i][0]] = x.rows() * x.columns();
    } else {
      sizes[names[i][0]] = x.rows();
      sizes[names[i][1]] = x.columns();
    }
  }
  const int64_t rows = result.empty() ? 1 : sizes[result[0]];
  Matrix sums = *FilledMatrix(rows, result.size() < 2 ? 1 : sizes[result[1]], 0);
  const std::function<void(std::map<char, int64_t>::const_iterator)> visit = [&](auto letter) {
    if (letter != sizes.cend()) {
      for (int64_t k = 0; k < letter->second; ++k) {
        at[letter->first] = k;
        visit(std::next(letter));
      }
      return;
    }
    double product = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Matrix& x = operands[i];
      const int64_t first = at[names[i][0]];
      product *= names[i].size() == 2 ? x.At(first, at[names[i][1]])
                 : x.columns() == 1   ? x.At(first, 0)
                                      : x.At(0, first);
    }
    const int64_t row = result.empty() ? 0 : at[result[0]], column = result.size() < 2 ? 0 : at[result[1]];
    sums.mutable_data()[row * sums.columns() + column] += product;
  };
  visit(sizes.cbegin());
  return sums;
}

}  // namespace heddle::ops::reference

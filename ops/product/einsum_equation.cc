// SPDX-License-Identifier: Apache-2.0
#include "ops/product/einsum_equation.h"

#include <cctype>

namespace heddle::ops {
namespace {

Result<std::string> LettersOf(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c == ' ') continue;
    if (!std::isalpha(static_cast<unsigned char>(c)))
      return InvalidArgument("einsum: '{}' is no letter of an equation", c)
          .WithNote("an equation names rows and columns by letters: \"ij,jk->ik\" is A %*% B");
    letters += c;
  }
  return letters;
}

Status CheckResult(const EinsumEquation& equation) {
  const std::string& letters = equation.result;
  if (letters.size() > 2)
    return InvalidArgument("einsum: the result has {} letters, \"{}\", but a matrix has two", letters.size(),
                           letters);
  if (letters.size() == 2 && letters[0] == letters[1])
    return InvalidArgument("einsum: the result has the letter {} twice", letters[0]);
  for (const char letter : letters) {
    bool found = false;
    for (const std::string& operand : equation.operands) found |= operand.find(letter) != std::string::npos;
    if (!found) return InvalidArgument("einsum: no operand has the letter {} of the result", letter);
  }
  return OkStatus();
}

}  // namespace

Result<EinsumEquation> ParseEinsum(std::string_view text, size_t operands) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos)
    return InvalidArgument("einsum: the equation \"{}\" has no ->", text)
        .WithNote("an equation names rows and columns by letters: \"ij,jk->ik\" is A %*% B");
  EinsumEquation equation;
  HEDDLE_ASSIGN_OR_RETURN(equation.result, LettersOf(text.substr(arrow + 2)));
  std::string_view left = text.substr(0, arrow);
  while (true) {
    const size_t comma = std::min(left.find(','), left.size());
    HEDDLE_ASSIGN_OR_RETURN(const std::string letters, LettersOf(left.substr(0, comma)));
    if (letters.empty() || letters.size() > 2)
      return InvalidArgument("einsum: operand {} has {} letters, but a matrix has one or two",
                             equation.operands.size() + 1, letters.size());
    equation.operands.push_back(letters);
    if (comma == left.size()) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.operands.size() != operands)
    return InvalidArgument("einsum: the equation \"{}\" has {} operands, but {} are given", text,
                           equation.operands.size(), operands);
  HEDDLE_RETURN_IF_ERROR(CheckResult(equation));
  return equation;
}

Result<LetterSizes> SizesOfLetters(const EinsumEquation& equation, std::span<const Shape> shapes,
                                   StatusCode code) {
  LetterSizes sizes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& letters = equation.operands[i];
    const Shape shape = shapes[i];
    std::vector<int64_t> lengths = {shape.rows, shape.columns};
    if (letters.size() == 1) {
      if (shape.IsKnown() && shape.rows != 1 && shape.columns != 1)
        return Status(code, fmt::format("einsum: operand {} is {} but has one letter", i + 1, shape));
      lengths = {shape.columns == 1 ? shape.rows : shape.rows == 1 ? shape.columns : kUnknown};
    }
    for (size_t k = 0; k < letters.size(); ++k) {
      int64_t& size = sizes.emplace(letters[k], kUnknown).first->second;
      if (size != kUnknown && lengths[k] != kUnknown && size != lengths[k])
        return Status(code, fmt::format("einsum: the letter {} is {} in operand {} but {} before it",
                                        letters[k], lengths[k], i + 1, size));
      if (size == kUnknown) size = lengths[k];
    }
  }
  return sizes;
}

}  // namespace heddle::ops

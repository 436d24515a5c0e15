// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/chooser.h"

namespace heddle {

/// Random scripts around one function f that calls itself over a structure (recursion_structures.h), at fixed
/// children, in loops, by arithmetic, or step by step, with results that are rows, columns, matrices and
/// numbers, and bodies of every operator that batches treat in a way of their own.
class RecursionGenerator {
 public:
  explicit RecursionGenerator(uint64_t seed) : choose_(seed) {}

  /// Calls it for one root, in loops, in parfors, in functions, with other weights and other structures, and
  /// prints all results with all digits.
  std::string Calls();
  /// Differentiates a loss of its results for the roots and prints the derivatives. Behind them a line
  /// "quotient NAME a b" for each: a difference quotient in a random direction, and what the derivative says.
  std::string Gradient();

 private:
  using Names = std::vector<std::string>;
  /// Types of values: r, c and m are matrices of 1 x H, H x 1 and H x H cells, d doubles, k numbers of the
  /// structure, b conditions on it.
  using Variables = std::vector<std::pair<std::string, char>>;

  std::string Expression(char type, int depth);
  std::string Fill(std::string_view pattern, int depth);
  std::string Part(std::string_view name, int depth);
  std::string NewName();
  void Line(const std::string& text);
  void Assign(const std::string& name, char type);
  void Statement(int depth);
  void Branch(int depth);
  void Within(int depth);
  void Change();

  void Function();
  void Head();
  void CallOf(const std::string& node, const std::string& prefix);
  void Combine();
  void FixedChildren();
  void ChildrenInLoop();
  void NestedBranches();
  void Accumulate(const std::string& total, char type, const std::string& of_child);

  void Data(bool is_first);
  void Caller(size_t form);
  Names Loss();
  Names Outputs(const std::string& prefix) const;
  std::string Assigned(const Names& names) const;
  std::string Arguments(const std::string& node) const;
  std::string Declared() const;

  fuzz::Chooser choose_;
  bool is_smooth_ = false;  ///< Only what has a derivative nearly everywhere.
  bool has_sparse_ = false, has_list_ = false;
  int64_t width_ = 0, tokens_ = 0;
  std::string results_;  ///< Their types.
  Names parameters_;     ///< But for the node, which is the second.
  Variables variables_;  ///< What a statement may read,
  Variables changed_;    ///< and assign anew.
  int names_ = 0;
  size_t indent_ = 0;
  std::string text_;
};

}  // namespace heddle

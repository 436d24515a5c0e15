// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/fuzz/chooser.h"

namespace heddle {

/// A structure for a recursive script to go over: a tree, chain, comb, grid, graph with shared nodes, forest
/// or single node, its rows in any order. Interpreted calls go every way to a node, so there are few ways.
struct RandomStructure {
  explicit RandomStructure(fuzz::Chooser& choose);

  std::vector<std::vector<size_t>> children;  ///< By node, from 0.
  std::vector<size_t> roots;                  ///< Nodes without a parent, perhaps others, perhaps twice.

  /// DML for the matrix of nodes, a row each: first and second child (0: none), token, first and last place
  /// of the children in the next column, children of all nodes one behind the other, a kind (0 to 2), a
  /// number.
  std::string Matrix(fuzz::Chooser& choose, int64_t tokens) const;
  int64_t rows() const;
  std::string Roots() const;

 private:
  void Make(fuzz::Chooser& choose);
  void Join(fuzz::Chooser& choose, size_t leaves, size_t most_roots);
};

/// matrix("...", rows, columns).
std::string MatrixText(const std::vector<std::vector<double>>& rows);

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::scheduler {

/// Variables that each take one of a few choices, with a cost for every choice and for pairs of choices. The
/// sum of all costs is to be as small as possible (runtime reference 3.4).
class ChoiceProblem {
 public:
  /// A variable with a choice for each cost; at least one. Returns its number, from 0.
  int Add(std::vector<double> costs);
  /// Adds to the costs of a variable's choices.
  void AddCosts(int variable, const std::vector<double>& costs);
  /// Adds costs[i * choices of b + j] where `a` takes choice i and `b` choice j. a != b; infinite where they
  /// exclude each other. Some assignment of all variables must have a finite sum.
  void AddPair(int a, int b, std::vector<double> costs);

  /// The choice of every variable. Exact while eliminating the variables one by one, the one with the
  /// smallest table first, needs no table of more than 10^5 costs: trees and what is near to them. What is
  /// left beyond is improved from a greedy start in a fixed number of sweeps. Equal sums go to the lower
  /// choice of the variable that is decided, so equal problems have equal answers. `is_exact`, where it is
  /// given: whether nothing was left.
  std::vector<int> Solve(bool* is_exact = nullptr) const;

  int size() const { return static_cast<int>(variables_.size()); }  ///< Number of variables.
  /// The sum of all costs under `choices`.
  double CostOf(const std::vector<int>& choices) const;
  /// By choice of variable `a`: its cost and those of its pairs, the other variables as in `choices`.
  std::vector<double> CostsOf(int a, const std::vector<int>& choices) const;

 private:
  struct Pair {
    int a = 0;
    int b = 0;
    std::vector<double> costs;
  };
  class Elimination;
  std::vector<std::vector<double>> variables_;
  std::vector<Pair> pairs_;
};

}  // namespace heddle::scheduler

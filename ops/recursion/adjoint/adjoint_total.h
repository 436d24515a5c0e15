// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/recursion/adjoint/adjoint_sums.h"
#include "ops/reduction/reduction_tree.h"

namespace heddle::ops {

/// The adjoints of parameters, put together of what groups of roots add to them (docs/numerics.md, section
/// 3): sums by the tree over the numbers of the groups, in doubles; rows that are looked up one after the
/// other, group by group.
class AdjointTotal {
 public:
  /// Nothing. `wanted`, which outlives it: the parameters.
  explicit AdjointTotal(const std::map<std::string, ValueInfo>& wanted) : wanted_(&wanted) {}

  /// Before groups are added: of one who has all of them, numbers below `end`,
  void BeginAll(int64_t end);
  /// or those of [begin, end), and makes a list of them.
  void BeginPart(int64_t begin, int64_t end);
  /// Adds what a group gives, in ascending order of their numbers; some may give nothing.
  void Add(int64_t group, AdjointSums sums);

  /// What has been added as a list of rows, for one who puts those of all together.
  Result<Matrix> ToList();
  /// Adds what stands in the lists of others, whose rows come in any order.
  Status AddLists(const Matrix& list);

  /// The adjoint of a parameter: a matrix of its size and type. Once for each.
  Result<Matrix> Take(const std::string& parameter);

 private:
  struct Sum {
    std::unique_ptr<PayloadStack> stack;  // Of the covering node that groups are added to.
    std::vector<double> nodes;            // Those before: (index, level, cells) of each.
  };
  struct LookedBy {
    int64_t group = 0;
    AdjointSums::Looked rows;
  };

  int64_t CellsOf(const std::string& parameter) const;
  double PlaceOf(const std::string& parameter) const;
  void CloseNode();
  Status AddPieces(const std::vector<double>& numbers);
  Result<RootPayload> RootOf(Sum* sum, int64_t cells) const;

  const std::map<std::string, ValueInfo>* wanted_;
  std::map<std::string, Sum> sums_;
  std::vector<LookedBy> looked_;
  std::vector<TreeNode> covering_;  // Of the groups that are being added,
  size_t covered_ = 0;              // that to which they are.
};

}  // namespace heddle::ops

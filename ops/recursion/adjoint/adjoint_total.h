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

  /// Comes before Add: all groups below `end` will be added here,
  void BeginAll(int64_t end);
  /// or only those of [begin, end), and ToList gives them to another rank.
  void BeginPart(int64_t begin, int64_t end);
  /// Adds what a group gives, in ascending order of their numbers; some may give nothing.
  void Add(int64_t group, AdjointSums sums);

  /// What has been added, as rows that AddLists takes.
  Result<Matrix> ToList();
  /// Adds the rows of the lists of all ranks, in any order.
  Status AddLists(const Matrix& list);

  /// The adjoint of a parameter: a matrix of its size and type. Once for each.
  Result<Matrix> Take(const std::string& parameter);

 private:
  struct Sum {
    std::unique_ptr<PayloadStack> stack;  // Of the covering node that groups are added to.
    std::vector<double> nodes;            // Those before: (index, level, cells) of each.
  };
  struct LookupOfGroup {
    int64_t group = 0;
    AdjointSums::LookupRows rows;
  };

  int64_t CellsOf(const std::string& parameter) const;
  double PlaceOf(const std::string& parameter) const;
  void CloseNode();
  Status AddPieces(const std::vector<double>& numbers);
  Result<RootPayload> RootOf(Sum* sum, int64_t cells) const;

  const std::map<std::string, ValueInfo>* wanted_;
  std::map<std::string, Sum> sums_;
  std::vector<LookupOfGroup> lookups_;
  std::vector<TreeNode> covering_;  // The nodes of the tree that cover the groups of this rank,
  size_t covered_ = 0;              // and the one that groups are being added to.
};

}  // namespace heddle::ops

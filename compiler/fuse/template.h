// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "compiler/fuse/dag.h"
#include "compiler/fuse/memo.h"

namespace heddle::compiler::fusion {

/// Whether an entry may grow upwards (open), and whether it may be the root of an operator (valid).
enum class Close : uint8_t { kOpenValid, kOpenInvalid, kClosedValid, kClosedInvalid };

/// Multi-aggregates are no template of this kind: operators are put together to them (stitch.h).
///
/// A template is four questions about nodes; whoever walks the graph asks them (Explore). `node` and `input`
/// are candidates (DagNode::op is set); `input` is among the first `arity` inputs of `node`.
struct Template {
  FusionTemplate kind;
  /// May an operator of this kind begin at this node?
  bool (*open)(const Dag& dag, NodeId node);
  /// May an open operator that ends at `input` take in its consumer `node`?
  bool (*fuse)(const Dag& dag, NodeId node, NodeId input);
  /// May an operator that covers `node` also take in `input`?
  bool (*merge)(const Dag& dag, NodeId node, NodeId input);
  /// May it grow further, and may it be executed as it is? Asked after fuse and merge.
  Close (*close)(const Dag& dag, NodeId node, const Entry& entry);
};

extern const Template kRowTemplate;    ///< row.cc
extern const Template kCellTemplate;   ///< cell.cc
extern const Template kOuterTemplate;  ///< outer_product.cc
/// stitch_template.cc. Its entries choose nothing about single operators: a reference means that the input
/// may be made in the same pass over rows.
extern const Template kStitchTemplate;

/// True if the CSR value of a cell-wise operator or a sampled product has no entry wherever the operands for
/// which `absent` is true have none, whatever the other operands hold there: X * Y where X has none, X + Y
/// where both have none, but not X / Y, since 0 / 0 is NaN.
bool IsAbsent(const Dag& dag, NodeId node, const std::function<bool(NodeId operand)>& absent);
/// True if the value has no entry wherever one of its CSR operands has none.
bool FollowsEntries(const Dag& dag, NodeId node);
/// True if all CSR operands of such a value have one pattern and its other operands are columns and scalars.
/// Then the value has these entries and one number in the rest of each row: X / rowSums(X) is NaN in rows of
/// zeros.
bool HasRowDefaults(const Dag& dag, NodeId node);
/// Whether an operator of Cell or Row that computes `input` inside may take in `node` without making a CSR
/// value dense. Such an operator walks the entries of its driver (ops/fused/program/walk_entries.cc) if all
/// values are CSR, or dense tiles if some value is dense anyway. sparse_values.cc.
bool KeepsSparsity(const Dag& dag, NodeId node, NodeId input);

/// Whether the value is complete only when all rows have been seen: aggregates of all cells or of columns,
/// and t(X) %*% Y.
bool ReducesRows(const DagNode& node);
/// An aggregate of all cells, of rows or of columns.
bool IsAggregate(const DagNode& node);
/// An aggregate of all cells: what multi-aggregates are made of.
bool IsFullAggregate(const DagNode& node);
/// A cell-wise operator with a matrix operand of its own shape, or of a column and a row, of more than one
/// cell.
bool IsPlainCellWise(const Dag& dag, NodeId node);

}  // namespace heddle::compiler::fusion

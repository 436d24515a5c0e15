// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "compiler/fuse/dag.h"
#include "compiler/fuse/memo.h"

namespace heddle::compiler::fusion {

/// What becomes of an entry when its node is done.
enum class Close : uint8_t { kOpenValid, kOpenInvalid, kClosedValid, kClosedInvalid };

/// Multi-aggregates are no template of this kind: they are formed after the search (multi_aggregate.h).
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

/// Of a CSR value that a cell-wise operator or a sampled product makes: true if it is absent at every cell
/// where those operands are for which `absent` is true, whatever else it reads holds (X * Y where X is
/// absent; X + Y where both are; not X / Y: 0 / 0).
bool IsAbsent(const Dag& dag, NodeId node, const std::function<bool(NodeId operand)>& absent);
/// True if the value is absent wherever one of its CSR operands is.
bool FollowsEntries(const Dag& dag, NodeId node);
/// True if such a value has the entries of its only CSR operands, all of one pattern, and elsewhere one
/// number in each row: beside them are columns and scalars alone (X / rowSums(X) is NaN in rows that are
/// zero).
bool HasRowDefaults(const Dag& dag, NodeId node);
/// True if an operator that is no Outer may hold `node` and `input` (which it computes) as far as CSR values
/// go: one that is walked along its entries (ops/fused/program/walk_entries.cc) where every value is CSR, or
/// dense tiles that some value needs anyway. What would make dense what is CSR operator by operator is no
/// candidate. sparse_values.cc.
bool KeepsSparsity(const Dag& dag, NodeId node, NodeId input);

/// Over all rows: an aggregate of all cells or of columns, t(X) %*% Y.
bool ReducesRows(const DagNode& node);
/// Of all cells, of rows or of columns.
bool IsAggregate(const DagNode& node);
/// A cell-wise operator with a matrix operand of its own shape, or of a column and a row, of more than one
/// cell.
bool IsPlainCellWise(const Dag& dag, NodeId node);

}  // namespace heddle::compiler::fusion

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"

namespace heddle {

/// Which set of rules formed a fused operator (docs/fusion.md, section 2). It decides what may be inside, not
/// what is computed.
enum class FusionTemplate : uint8_t { kMultiAggregate, kStitch, kOuter, kRow, kCell };
constexpr size_t kFusionTemplates = 5;
std::string_view Name(FusionTemplate kind);  ///< "multi-aggregate" "stitch" "outer" "row" "cell"

/// Several operators of a block that are computed in one pass over the rows of their inputs. Plain data, held
/// by a graph node named "fused" or "fusedSeveral" (Node::fused); with the text of the graph it travels as
/// the node's attribute "operator". Machine code does not travel.
///
/// The body is a graph of the operators that it replaces, unchanged: its "variable" nodes are named "0", "1",
/// ... after the inputs of the fused node, all other nodes are operators of ops/catalog.h with their known
/// shapes and formats. What the fused operator computes is, to the last bit, what the body computes node by
/// node (docs/numerics.md).
///
/// One root: the value of the node. Several roots are the results of a node named "fusedSeveral", in their
/// order: of a multi-aggregate (at most kMostAggregates) full aggregates of matrices of one shape; of a
/// stitch (at most kMaxRoots) whatever one pass over the rows leaves behind, values with a row for each row
/// of the driver and reductions over all rows of any kind. A root may be read inside, too.
struct FusedOperator {
  static constexpr int kMaxRoots = 16, kMostAggregates = 3;
  FusionTemplate kind = FusionTemplate::kCell;
  Graph body;
  std::vector<NodeId> roots;
  int driver = 0;  ///< Input whose rows are walked; where it is CSR and the body allows, its non-zeros.

  /// Text form:  row driver=0 roots=(%5)\n<body>. Parses back.
  std::string ToText() const;
  static Result<FusedOperator> Parse(std::string_view text);
};

/// True for the two operators whose nodes hold a fused operator.
inline bool IsFused(const Node& node) { return node.Is("fused") || node.Is("fusedSeveral"); }

/// Ids, roots, driver, input names. An error here is our bug (kInternal).
Status Verify(const FusedOperator& fused);

}  // namespace heddle

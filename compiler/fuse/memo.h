// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "compiler/fuse/dag.h"
#include "core/programs/fused_operator.h"

namespace heddle::compiler::fusion {

/// One way to compute a node as the root of a fused operator, or inside one that grows upwards: a template,
/// and which inputs are computed inside the same operator. A reference to an input leaves open which of the
/// input's own entries is taken; EntryPicker decides that. An entry of the template Stitch is different: it
/// says that the node's operator may be a member of a pass with several results, and refers to the inputs
/// that the same pass may compute.
struct Entry {
  FusionTemplate kind = FusionTemplate::kCell;
  std::array<NodeId, kMaxArity> refs = {kNoNode, kNoNode,
                                        kNoNode};  ///< By position: the input, or kNoNode: it is read.
  int arity = 0;
  bool open = true;   ///< May still grow upwards.
  bool valid = true;  ///< May be the root of an operator.

  bool JoinsOperators() const { return kind == FusionTemplate::kStitch; }
  int References() const { return static_cast<int>(refs.size() - std::ranges::count(refs, kNoNode)); }
  bool Refers(NodeId id) const { return std::ranges::find(refs, id) != refs.end(); }
  bool operator==(const Entry&) const = default;
};

/// Row and Outer may hold Cell entries of other nodes; apart from that templates do not mix.
inline bool IsCompatible(FusionTemplate inside, FusionTemplate other) {
  return other == inside || other == FusionTemplate::kCell;
}

/// The entries of every node, in the order Row, Cell, Outer, Stitch, then by references. Later steps take the
/// first of several equally good entries, so this order decides which plan is chosen.
struct Memo {
  std::vector<std::vector<Entry>> groups;  ///< By node.

  const std::vector<Entry>& operator[](NodeId id) const { return groups[static_cast<size_t>(id)]; }
  std::vector<Entry>& operator[](NodeId id) { return groups[static_cast<size_t>(id)]; }
};

/// "R(10,-1)"; "|x" at the end of an entry that cannot be a root.
std::string ToText(const Entry& entry);
/// One line per node with entries: "11 t%*%: R(-1,9)".
std::string ToText(const Memo& memo, const Graph& graph);

/// All candidates, in one pass from inputs to consumers: open, fuse, merge, close of every template
/// (template.h). Time and space linear in the graph.
Memo Explore(const Dag& dag);

/// Removes entries that no plan needs: those without references at nodes that no entry refers to, Row entries
/// that equal Cell entries where no operator needs whole rows, and Stitch entries of nodes that share rows
/// with no other result.
void Prune(const Dag& dag, Memo* memo);

}  // namespace heddle::compiler::fusion

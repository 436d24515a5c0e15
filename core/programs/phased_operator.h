// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/programs/graph.h"

namespace heddle {

/// Several operators of a block that run as one, in phases: what one phase has finished, the next one reads.
/// Plain data, held by a graph node named "phased" (Node::phased), whose results are those of `roots` in
/// their order; with the text of the graph it travels as the node's attribute "operator".
///
/// The body is a graph of the operators that it replaces, unchanged, fused ones among them: its "variable"
/// nodes are named "0", "1", ... after the inputs of the phased node. It assigns nothing and acts on nothing
/// outside; operators that may fail keep their order.
struct PhasedOperator {
  static constexpr size_t kMaxRoots = 64;
  Graph body;
  std::vector<NodeId> roots;

  /// Text form:  phased roots=(%5, %7)\n<body>. Parses back.
  std::string ToText() const;
  static Result<PhasedOperator> Parse(std::string_view text);
};

/// Ids, roots, input names. An error here is our bug (kInternal).
Status Verify(const PhasedOperator& phased);

/// By node of a body: its phase, from 0, one behind the last of what it reads or comes after; -1 for nodes
/// that compute nothing (variables, literals, and the results of a node, which are there with it).
std::vector<int> PhasesOf(const Graph& body);

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "core/programs/graph.h"

namespace heddle::compiler {

/// Rebuilds a graph after a pass decided, for every node, which node stands for it from now on (itself when
/// kept as it is; an earlier node when it is merged or replaced) and which nodes nobody needs.
///
/// `stands_for[i] <= i`; chains are followed. Data and order edges are redirected; an order edge to a dropped
/// node becomes the order edges of that node, so that what came before it stays before.
Graph Compact(Graph graph, const std::vector<NodeId>& stands_for, const std::vector<bool>& keep);

/// True if nothing tells two scalars apart: of one type, numbers of the same bits (0.0 is not -0.0), NaN
/// apart.
bool IsSameScalar(const Scalar& a, const Scalar& b);

/// True for operators of one or two operands, cell by cell.
bool IsCellWise(const Node& node);

/// True for operators that act or can fail: they stay in script order. Values that can fail and that nobody
/// reads are removed first of all (drop_unread.cc); of those that lose their readers to a later pass, none
/// is.
bool IsOrdered(const Node& node);

/// True for operators that ask the world outside, as a read does: inference finds the file, or fails, before
/// the block runs.
bool LooksOutside(const Node& node);

/// True for operators whose result is when they ran: without inputs, and another each time. Such a node
/// stands in a block of its own, so that all before it has been computed, and nothing behind it has begun.
bool TellsTime(std::string_view op);

}  // namespace heddle::compiler

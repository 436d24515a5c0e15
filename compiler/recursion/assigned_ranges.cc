// SPDX-License-Identifier: Apache-2.0
#include "compiler/recursion/assigned_ranges.h"

#include <cmath>
#include <map>
#include <utility>

#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Columns, counted from 1.
struct Range {
  int64_t first = 0, last = 0;
  int64_t columns() const { return last - first + 1; }
  bool operator==(const Range&) const = default;
  bool Meets(const Range& other) const { return first <= other.last && other.first <= last; }
};

bool IsRow(const ValueInfo& info) { return info.IsMatrix() && info.shape.rows == 1; }

// `bounds`: the first of the four inputs that tell the range.
std::optional<Range> RangeOf(const Graph& graph, NodeId id, size_t bounds) {
  const Node& node = graph[id];
  if (!IsRow(graph[node.inputs[0]].info)) return std::nullopt;
  const auto literal = [&](size_t i) -> std::optional<int64_t> {
    const NodeId bound = bounds + i < node.inputs.size() ? node.inputs[bounds + i] : kNoNode;
    if (bound == kNoNode || !graph[bound].Is("literal") || !graph[bound].info.IsScalar()) return std::nullopt;
    const Scalar& value = *graph[bound].FindAttribute("value");
    if (value.IsString() || value.AsDouble() != std::floor(value.AsDouble())) return std::nullopt;
    return value.AsInteger();
  };
  for (size_t i = 0; i < 2; ++i)
    if (bounds + i < node.inputs.size() && node.inputs[bounds + i] != kNoNode && literal(i) != 1)
      return std::nullopt;
  const std::optional<int64_t> first = literal(2), last = literal(3);
  if (!first || !last || *first < 1 || *last < *first || *last > graph[node.inputs[0]].info.shape.columns)
    return std::nullopt;
  return Range{*first, *last};
}

// Of a row with a range of columns assigned to.
std::optional<Range> AssignedRange(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (!ops::HasRole(node, ops::Role::kRangeAssign) || !IsRow(node.info)) return std::nullopt;
  const std::optional<Range> range = RangeOf(graph, id, 2);
  const ValueInfo &base = graph[node.inputs[0]].info, &value = graph[node.inputs[1]].info;
  const auto is_like = [&](const ValueInfo& info, int64_t columns) {
    return IsRow(info) && info.shape.columns == columns && info.element_type == node.info.element_type;
  };
  if (!range || !is_like(base, node.info.shape.columns) || !is_like(value, range->columns()))
    return std::nullopt;
  return range;
}

// The value that a range was assigned as a whole, or the row before all assignments that do not touch it.
NodeId Assigned(const Graph& graph, NodeId row, const Range& range, bool* is_value) {
  for (;;) {
    const std::optional<Range> assigned = AssignedRange(graph, row);
    *is_value = assigned == range;
    if (*is_value) return graph[row].inputs[1];
    if (!assigned || assigned->Meets(range)) return row;
    row = graph[row].inputs[0];
  }
}

}  // namespace

std::optional<std::vector<NodeId>> AssignedParts(const Graph& graph, NodeId id) {
  if (!IsRow(graph[id].info)) return std::nullopt;
  std::map<int64_t, std::pair<Range, NodeId>> parts;  // By first column.
  for (int64_t left = graph[id].info.shape.columns; left > 0; id = graph[id].inputs[0]) {
    const std::optional<Range> range = AssignedRange(graph, id);
    if (!range) return std::nullopt;
    for (const auto& [first, part] : parts)
      if (part.first.Meets(*range)) return std::nullopt;
    parts.emplace(range->first, std::pair(*range, graph[id].inputs[1]));
    left -= range->columns();
  }
  std::vector<NodeId> values;
  for (const auto& [first, part] : parts) values.push_back(part.second);
  return values;
}

ClassGraph JoinAssigned(const ClassGraph& given) {
  const Graph& from = given.graph;
  ClassGraph joined;
  joined.inputs = given.inputs;
  std::vector<NodeId> now;
  const auto of = [&](NodeId id) { return id == kNoNode ? kNoNode : now[static_cast<size_t>(id)]; };
  for (NodeId id = 0; id < from.size(); ++id) {
    Node node = from[id];
    if (std::optional<std::vector<NodeId>> parts = AssignedParts(from, id); parts && parts->size() > 1) {
      node.op = "cbind";
      node.inputs = *std::move(parts);
      node.attributes.clear();
    } else if (ops::HasRole(node, ops::Role::kRange)) {
      if (const std::optional<Range> range = RangeOf(from, id, 1)) {
        bool is_value = false;
        const NodeId row = Assigned(from, node.inputs[0], *range, &is_value);
        if (is_value) {
          now.push_back(of(row));
          continue;
        }
        node.inputs[0] = row;
      }
    }
    for (NodeId& input : node.inputs) input = of(input);
    for (NodeId& before : node.after) before = of(before);
    now.push_back(joined.graph.Add(std::move(node)));
  }
  for (const NodeId result : given.results) joined.results.push_back(of(result));
  return joined;
}

}  // namespace heddle::compiler

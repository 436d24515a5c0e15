// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/linearize.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace heddle::ops {
namespace {

constexpr int32_t kUnknownHeight = -1;
constexpr size_t kMostShown = 8;  // nodes of a circle

using Places = std::vector<int32_t>;

// True if every child was visited behind its parent, as in trees: then one sweep backwards finds all heights.
bool HeightsOfTree(const VisitedStructure& visited, Places* heights) {
  const size_t count = visited.nodes.size();
  for (size_t v = count; v-- > 0;) {
    int32_t height = 0;
    for (int64_t c = visited.first_child[v]; c < visited.first_child[v + 1]; ++c) {
      const int32_t child = visited.children[static_cast<size_t>(c)];
      if (static_cast<size_t>(child) <= v) return false;
      height = std::max(height, (*heights)[static_cast<size_t>(child)] + 1);
    }
    (*heights)[v] = height;
  }
  return true;
}

// Kahn: a node has its height when all its children have theirs. False where some never do.
bool HeightsOfGraph(const VisitedStructure& visited, Places* heights) {
  const size_t count = visited.nodes.size();
  Places missing(count);
  std::vector<int64_t> first_parent(count + 1, 0);
  for (const int32_t child : visited.children) ++first_parent[static_cast<size_t>(child) + 1];
  std::partial_sum(first_parent.begin(), first_parent.end(), first_parent.begin());
  Places parents(visited.children.size());
  std::vector<int64_t> next(first_parent.begin(), first_parent.end() - 1);
  Places ready;
  ready.reserve(count);
  std::fill(heights->begin(), heights->end(), kUnknownHeight);
  for (size_t v = 0; v < count; ++v) {
    missing[v] = static_cast<int32_t>(visited.first_child[v + 1] - visited.first_child[v]);
    for (int64_t c = visited.first_child[v]; c < visited.first_child[v + 1]; ++c)
      parents[static_cast<size_t>(next[static_cast<size_t>(visited.children[static_cast<size_t>(c)])]++)] =
          static_cast<int32_t>(v);
    if (missing[v] == 0) {
      (*heights)[v] = 0;
      ready.push_back(static_cast<int32_t>(v));
    }
  }
  // Children are ready before their parents, and lower ones first: the last child is the highest.
  for (size_t at = 0; at < ready.size(); ++at) {
    const auto child = static_cast<size_t>(ready[at]);
    for (int64_t p = first_parent[child]; p < first_parent[child + 1]; ++p) {
      const auto parent = static_cast<size_t>(parents[static_cast<size_t>(p)]);
      if (--missing[parent] > 0) continue;
      (*heights)[parent] = (*heights)[child] + 1;
      ready.push_back(static_cast<int32_t>(parent));
    }
  }
  return ready.size() == count;
}

// From any node without a height: each has a child without one, so a walk meets itself.
Status CircleError(const VisitedStructure& visited, const Places& heights, std::string_view function) {
  size_t at = 0;
  while (heights[at] != kUnknownHeight) ++at;
  std::vector<size_t> walk;
  std::vector<bool> seen(heights.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(at);
    for (int64_t c = visited.first_child[at]; c < visited.first_child[at + 1]; ++c) {
      const auto child = static_cast<size_t>(visited.children[static_cast<size_t>(c)]);
      if (heights[child] != kUnknownHeight) continue;
      at = child;
      break;
    }
  }
  walk.erase(walk.begin(), std::find(walk.begin(), walk.end(), at));
  std::string circle;
  for (size_t i = 0; i < std::min(walk.size(), kMostShown); ++i)
    circle += fmt::format("{} -> ", visited.nodes[walk[i]]);
  if (walk.size() > kMostShown) circle += "... -> ";
  return FailedPrecondition("function '{}': the calls never end: nodes {}{} are children of each other",
                            function, circle, visited.nodes[at])
      .WithNote("a structure is a tree, or a graph without circles");
}

}  // namespace

Result<Linearized> Linearize(VisitedStructure visited, std::string_view function) {
  const size_t count = visited.nodes.size();
  Places heights(count);
  if (!HeightsOfTree(visited, &heights) && !HeightsOfGraph(visited, &heights))
    return CircleError(visited, heights, function);
  Linearized out;
  out.classes.resize(visited.paths.size());
  for (size_t k = 0; k < visited.paths.size(); ++k) out.classes[k].path = std::move(visited.paths[k]);
  // Two counting sorts: by height, then by class, which keeps the order of heights.
  const int32_t highest = count == 0 ? 0 : *std::max_element(heights.begin(), heights.end());
  out.levels = count == 0 ? 0 : highest + 1;
  std::vector<int64_t> next(static_cast<size_t>(highest) + 2, 0);
  for (const int32_t height : heights) ++next[static_cast<size_t>(height) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  Places by_height(count);
  for (size_t v = 0; v < count; ++v)
    by_height[static_cast<size_t>(next[static_cast<size_t>(heights[v])]++)] = static_cast<int32_t>(v);
  for (const int32_t node_class : visited.classes) ++out.classes[static_cast<size_t>(node_class)].end;
  int64_t begin = 0;
  for (Linearized::Class& node_class : out.classes) {
    node_class.begin = begin;
    begin += node_class.end;
    node_class.end = node_class.begin;
  }
  Places place_of(count), visit_at(count);
  out.nodes.resize(count);
  for (const int32_t visit : by_height) {
    const auto v = static_cast<size_t>(visit);
    const auto node_class = visited.classes[v];
    const int64_t place = out.classes[static_cast<size_t>(node_class)].end++;
    place_of[v] = static_cast<int32_t>(place);
    visit_at[static_cast<size_t>(place)] = visit;
    out.nodes[static_cast<size_t>(place)] = visited.nodes[v];
  }
  std::vector<std::pair<int32_t, Linearized::Batch>> batches;  // with their heights
  for (size_t k = 0; k < out.classes.size(); ++k) {
    Linearized::Class& node_class = out.classes[k];
    const int64_t size = node_class.end - node_class.begin;
    if (size == 0) continue;
    const int32_t* const visits = visit_at.data() + node_class.begin;
    const auto first = static_cast<size_t>(visits[0]);
    const auto calls = static_cast<int32_t>(visited.first_child[first + 1] - visited.first_child[first]);
    const auto given = static_cast<int32_t>(visited.first_number[first + 1] - visited.first_number[first]);
    node_class.calls = calls;
    node_class.given = given;
    node_class.children.resize(static_cast<size_t>(size * calls));
    node_class.numbers.resize(static_cast<size_t>(size * given));
    int32_t* const to_children = node_class.children.data();
    double* const to_numbers = node_class.numbers.data();
    int32_t height = kUnknownHeight;
    for (int64_t i = 0; i < size; ++i) {
      const auto v = static_cast<size_t>(visits[i]);
      if (calls > 0) {
        const int32_t* const children = visited.children.data() + visited.first_child[v];
        for (int64_t c = 0; c < calls; ++c)
          to_children[c * size + i] = place_of[static_cast<size_t>(children[c])];
      }
      if (given > 0) {
        const double* const numbers = visited.numbers.data() + visited.first_number[v];
        for (int64_t c = 0; c < given; ++c) to_numbers[c * size + i] = numbers[c];
      }
      if (heights[v] != height) {
        if (i > 0) batches.back().second.end = node_class.begin + i;
        height = heights[v];
        batches.push_back({height, {static_cast<int32_t>(k), node_class.begin + i, 0}});
      }
    }
    batches.back().second.end = node_class.end;
  }
  std::stable_sort(batches.begin(), batches.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [height, batch] : batches) out.batches.push_back(batch);
  for (const int32_t root : visited.roots) out.roots.push_back(place_of[static_cast<size_t>(root)]);
  return out;
}

}  // namespace heddle::ops

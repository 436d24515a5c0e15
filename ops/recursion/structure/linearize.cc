// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/structure/linearize.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace heddle::ops {
namespace {

using Places = std::vector<int32_t>;

// Where the arrays of a class are written.
struct ClassArrays {
  int64_t begin = 0, size = 0;
  int32_t calls = 0, number_count = 0;
  int32_t* children = nullptr;
  double* numbers = nullptr;
};

// `numbers` in the order of their keys, which are below `keys`; equal keys stay in their order.
template <typename Key>
Places SortedBy(const Places& numbers, int32_t keys, const Key& key) {
  Places next(static_cast<size_t>(keys) + 1, 0), sorted(numbers.size());
  for (const int32_t number : numbers) ++next[static_cast<size_t>(key(number)) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const int32_t number : numbers)
    sorted[static_cast<size_t>(next[static_cast<size_t>(key(number))]++)] = number;
  return sorted;
}

// Gives classes and batches their places. Returns where each batch of the visits begins.
std::vector<int64_t> MakeBatches(const VisitedStructure& visited, Linearized* out) {
  Places all(visited.batches.size());
  std::iota(all.begin(), all.end(), 0);
  int32_t levels = 0;
  for (const VisitedStructure::Batch& batch : visited.batches) levels = std::max(levels, batch.height + 1);
  const auto class_of = [&](int32_t batch) { return visited.batches[static_cast<size_t>(batch)].node_class; };
  const auto classes = static_cast<int32_t>(visited.classes.size());
  const Places by_height = SortedBy(SortedBy(all, classes, class_of), levels, [&](int32_t batch) {
    return visited.batches[static_cast<size_t>(batch)].height;
  });
  out->levels = levels;
  out->classes.resize(visited.classes.size());
  std::vector<int64_t> begins(visited.batches.size());
  int64_t place = 0;
  int32_t last = -1;
  for (const int32_t batch : SortedBy(by_height, classes, class_of)) {
    Linearized::Class& node_class = out->classes[static_cast<size_t>(class_of(batch))];
    if (class_of(batch) != last) node_class.begin = place;
    last = class_of(batch);
    begins[static_cast<size_t>(batch)] = place;
    place += visited.batches[static_cast<size_t>(batch)].size;
    node_class.end = place;
  }
  for (const int32_t batch : by_height) {
    const auto at = static_cast<size_t>(batch);
    out->batches.push_back({class_of(batch), begins[at], begins[at] + visited.batches[at].size});
  }
  return begins;
}

std::vector<ClassArrays> AllocateClasses(const VisitedStructure& visited, Linearized* out) {
  std::vector<ClassArrays> arrays;
  for (size_t k = 0; k < visited.classes.size(); ++k) {
    Linearized::Class& node_class = out->classes[k];
    const int64_t size = node_class.end - node_class.begin;
    node_class.decisions = visited.classes[k].decisions;
    node_class.calls = visited.classes[k].calls;
    node_class.number_count = visited.classes[k].number_count;
    node_class.children.resize(static_cast<size_t>(size * node_class.calls));
    node_class.numbers.resize(static_cast<size_t>(size * node_class.number_count));
    arrays.push_back({node_class.begin, size, node_class.calls, node_class.number_count,
                      node_class.children.data(), node_class.numbers.data()});
  }
  return arrays;
}

}  // namespace

Linearized::Batch Linearized::Within(const Batch& batch, int32_t first, int32_t end) const {
  const auto places = order.begin();
  const auto from = std::lower_bound(places + batch.begin, places + batch.end, first);
  return {batch.node_class, from - places, std::lower_bound(from, places + batch.end, end) - places};
}

Linearized Linearize(const VisitedStructure& visited) {
  const size_t count = visited.visits.size();
  Linearized out;
  std::vector<int64_t> next = MakeBatches(visited, &out);
  const std::vector<ClassArrays> arrays = AllocateClasses(visited, &out);
  Places place_of(count);
  for (size_t v = 0; v < count; ++v)
    place_of[v] = static_cast<int32_t>(next[static_cast<size_t>(visited.visits[v].batch)]++);
  out.nodes.resize(count);
  out.order.resize(count);
  out.components = visited.components;
  out.is_tree = visited.is_tree;
  if (out.is_tree) out.subtrees.resize(count);
  const int32_t* child = visited.children.data();
  const double* number = visited.numbers.data();
  for (size_t v = 0; v < count; ++v) {
    const auto place = static_cast<size_t>(place_of[v]);
    const VisitedStructure::Visit& visit = visited.visits[v];
    out.nodes[place] = visit.node;
    out.order[place] = static_cast<int32_t>(v);
    if (out.is_tree) out.subtrees[place] = visit.subtree;
    const int32_t node_class = visited.batches[static_cast<size_t>(visit.batch)].node_class;
    const ClassArrays& of_class = arrays[static_cast<size_t>(node_class)];
    const int64_t i = place_of[v] - of_class.begin;
    for (int32_t c = 0; c < of_class.calls; ++c)
      of_class.children[c * of_class.size + i] = place_of[static_cast<size_t>(*child++)];
    for (int32_t c = 0; c < of_class.number_count; ++c) of_class.numbers[c * of_class.size + i] = *number++;
  }
  for (const int32_t root : visited.roots) out.roots.push_back(place_of[static_cast<size_t>(root)]);
  return out;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/recursion/linearize.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace heddle::ops {
namespace {

using Places = std::vector<int32_t>;

// Of a class, where its arrays are written.
struct Room {
  int64_t begin = 0, size = 0;
  int32_t calls = 0, given = 0;
  int32_t* children = nullptr;
  double* numbers = nullptr;
};

// Counts of heights, one behind the other: those of `height` are from ends[height - 1] to before
// ends[height].
std::vector<int64_t> EndsOfHeights(const Places& heights) {
  const int32_t highest = heights.empty() ? -1 : *std::max_element(heights.begin(), heights.end());
  std::vector<int64_t> ends(static_cast<size_t>(highest + 1), 0);
  for (const int32_t height : heights) ++ends[static_cast<size_t>(height)];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return ends;
}

// Visits by height, of one height in their order.
Places ByHeight(const Places& heights, const std::vector<int64_t>& ends) {
  std::vector<int64_t> next(ends.size(), 0);
  if (!ends.empty()) std::copy(ends.begin(), ends.end() - 1, next.begin() + 1);
  Places visits(heights.size());
  for (size_t v = 0; v < heights.size(); ++v)
    visits[static_cast<size_t>(next[static_cast<size_t>(heights[v])]++)] = static_cast<int32_t>(v);
  return visits;
}

// Classes with their rooms, still without places: `end` is where the next node comes.
std::vector<Room> MakeClasses(VisitedStructure* visited, Linearized* out) {
  std::vector<Room> rooms(visited->classes.size());
  for (const int32_t node_class : visited->class_of) ++rooms[static_cast<size_t>(node_class)].size;
  out->classes.resize(rooms.size());
  int64_t begin = 0;
  for (size_t k = 0; k < rooms.size(); ++k) {
    Linearized::Class& node_class = out->classes[k];
    VisitedStructure::Class& of_visits = visited->classes[k];
    Room& room = rooms[k];
    node_class.path = std::move(of_visits.path);
    node_class.begin = node_class.end = room.begin = begin;
    node_class.calls = room.calls = of_visits.calls;
    node_class.given = room.given = of_visits.given;
    node_class.children.resize(static_cast<size_t>(room.size * room.calls));
    node_class.numbers.resize(static_cast<size_t>(room.size * room.given));
    room.children = node_class.children.data();
    room.numbers = node_class.numbers.data();
    begin += room.size;
  }
  return rooms;
}

// Two counting sorts: by height, then by class, which keeps the order of heights. The place of each visit.
Places PlaceVisits(const VisitedStructure& visited, Linearized* out) {
  const std::vector<int64_t> ends = EndsOfHeights(visited.heights);
  out->levels = static_cast<int64_t>(ends.size());
  Places place_of(visited.nodes.size());
  std::vector<size_t> batch_of(out->classes.size());
  int64_t at = 0;
  const Places by_height = ByHeight(visited.heights, ends);
  for (const int64_t end : ends) {
    const size_t first = out->batches.size();
    for (; at < end; ++at) {
      const auto v = static_cast<size_t>(by_height[static_cast<size_t>(at)]);
      const auto k = static_cast<size_t>(visited.class_of[v]);
      Linearized::Class& node_class = out->classes[k];
      if (batch_of[k] <= first) {  // One more than the number of its last batch.
        out->batches.push_back({static_cast<int32_t>(k), node_class.end, 0});
        batch_of[k] = out->batches.size();
      }
      place_of[v] = static_cast<int32_t>(node_class.end++);
    }
    const auto of_height = out->batches.begin() + static_cast<std::ptrdiff_t>(first);
    for (auto batch = of_height; batch != out->batches.end(); ++batch)
      batch->end = out->classes[static_cast<size_t>(batch->node_class)].end;
    std::sort(of_height, out->batches.end(),
              [](const auto& a, const auto& b) { return a.node_class < b.node_class; });
  }
  return place_of;
}

}  // namespace

Linearized::Batch Linearized::Within(const Batch& batch, int32_t first, int32_t end) const {
  const auto places = order.begin();
  const auto from = std::lower_bound(places + batch.begin, places + batch.end, first);
  return {batch.node_class, from - places, std::lower_bound(from, places + batch.end, end) - places};
}

Linearized Linearize(VisitedStructure visited) {
  const size_t count = visited.nodes.size();
  Linearized out;
  const std::vector<Room> rooms = MakeClasses(&visited, &out);
  const Places place_of = PlaceVisits(visited, &out);
  out.nodes.resize(count);
  out.is_tree = visited.is_tree;
  if (out.is_tree) {
    out.order.resize(count);
    out.subtrees.resize(count);
  }
  const int32_t* child = visited.children.data();
  const double* number = visited.numbers.data();
  for (size_t v = 0; v < count; ++v) {
    const auto place = static_cast<size_t>(place_of[v]);
    out.nodes[place] = visited.nodes[v];
    if (out.is_tree) {
      out.order[place] = static_cast<int32_t>(v);
      out.subtrees[place] = visited.subtrees[v];
    }
    const Room& room = rooms[static_cast<size_t>(visited.class_of[v])];
    const int64_t i = place_of[v] - room.begin;
    for (int32_t c = 0; c < room.calls; ++c)
      room.children[c * room.size + i] = place_of[static_cast<size_t>(*child++)];
    for (int32_t c = 0; c < room.given; ++c) room.numbers[c * room.size + i] = *number++;
  }
  for (const int32_t root : visited.roots) out.roots.push_back(place_of[static_cast<size_t>(root)]);
  return out;
}

}  // namespace heddle::ops

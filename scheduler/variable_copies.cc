// SPDX-License-Identifier: Apache-2.0
#include "scheduler/variable_copies.h"

#include <algorithm>

#include "scheduler/transition.h"

namespace heddle::scheduler {

double HeldBytes(double bytes, const Distribution& where, int32_t ranks) {
  if (!where.IsSplit() || where.split.Length() == 0) return bytes;
  int64_t longest = 0;
  for (int32_t rank = 0; rank < ranks; ++rank)
    longest = std::max(longest, where.split.End(rank) - where.split.Begin(rank));
  return bytes * static_cast<double>(longest) / static_cast<double>(where.split.Length());
}

bool HasCopy(const ScheduleOptions& options, const std::string& variable, const Distribution& distribution) {
  const auto found = options.copies.find(variable);
  return found != options.copies.end() &&
         std::find(found->second.begin(), found->second.end(), distribution) != found->second.end();
}

double BytesOf(const Node& node, const ScheduleOptions& options) {
  if (node.Is("variable"))
    if (const auto found = options.bytes.find(node.Text("name")); found != options.bytes.end())
      return found->second;
  return BytesToMove(node.info);
}

std::vector<MovedVariable> KeptOf(const Graph& graph, const ScheduleOptions& options,
                                  std::vector<MovedVariable> moved) {
  double room = options.room_for_copies;
  std::erase_if(moved, [&](const MovedVariable& each) {
    const Node& node = graph[each.node];
    const double bytes = BytesOf(node, options), held = HeldBytes(bytes, each.made, options.ranks);
    const bool is_kept = options.kept.contains(node.Text("name")) && node.info.IsSized() &&
                         TransitionOf(bytes, each.home, each.made, options.ranks).sent_bytes > 0 &&
                         held <= room;
    if (is_kept) room -= held;
    return !is_kept;
  });
  return moved;
}

}  // namespace heddle::scheduler

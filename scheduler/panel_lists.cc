// SPDX-License-Identifier: Apache-2.0
#include "scheduler/panel_lists.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/reduction/joined_lists.h"

namespace heddle::scheduler {

ops::PayloadUnits UnitsOfLists(const Graph& graph, const Task& task, size_t result) {
  const Node& node = graph[task.node];
  const ops::Operator* const op = ops::FindOperator(node.op);
  const ops::StagedForm* const form = op == nullptr ? nullptr : ops::PartsFormOf(*op).second;
  if (form == nullptr) return {};
  std::vector<ValueInfo> inputs;
  for (const NodeId input : node.inputs) inputs.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
  const ops::PayloadUnits units = form->units(node, inputs, result);
  return units.is_row && units.count > 1 ? units : ops::PayloadUnits();
}

PayloadBytes PayloadBytesOf(const PanelRegion& region, int64_t total, const ops::PayloadUnits& units) {
  constexpr int64_t kForJoin = 2;      // A copy of what is joined, and what it becomes.
  constexpr double kPlaceBytes = 512;  // Of a node: its place in the tree, and gaps of its payload.
  const int64_t granule = Granule(total);
  // Leaves are granules, or aligned parts of them. The few nodes of the last granule, where that is not full,
  // are not counted: leaves that are so low have small payloads.
  const ops::HeldPayloads held = ops::PayloadsHeld(region.begin / granule, CeilDivide(region.end, granule),
                                                   std::max<int64_t>(1, region.height / granule));
  const auto bytes = [&](int64_t payloads) {
    const double all = static_cast<double>(payloads) * (units.bytes + kPlaceBytes);
    return all < 1e18 ? static_cast<int64_t>(all) : std::numeric_limits<int64_t>::max();
  };
  // Those that are left are put one below the other, and copied once more when they are joined.
  return {bytes(held.of_list), bytes(std::max(held.most + kForJoin, 2 * held.left))};
}

}  // namespace heddle::scheduler

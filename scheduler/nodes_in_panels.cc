// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes_in_panels.h"

#include "scheduler/panel_roles.h"

namespace heddle::scheduler {

std::vector<NodeInPanels> NodesInPanels(const Plan& plan, const PanelOptions& options) {
  std::vector<NodeInPanels> nodes(plan.graph.nodes.size());
  const PanelRoles roles(plan, options);
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    if (plan.tasks[i].node == kNoNode) continue;
    NodeInPanels& node = nodes[static_cast<size_t>(plan.tasks[i].node)];
    const TaskRole& role = roles.roles()[i];
    // Tasks that bring rows to an operator are the host's wherever it runs.
    const Phase phase = plan.tasks[i].phase;
    if (phase != Phase::kWhole && phase != Phase::kPartial && phase != Phase::kStage) continue;
    node.is_hosts |= role.is_lazy || role.takes_panels || role.stages.has_value();
    if (!role.is_panelled || node.pass != NodeInPanels::kOnce) continue;
    node.pass = static_cast<int>(role.region);
    node.acts = roles.regions()[role.region].panels();
  }
  return nodes;
}

}  // namespace heddle::scheduler

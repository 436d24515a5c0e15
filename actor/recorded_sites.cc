// SPDX-License-Identifier: Apache-2.0
#include "actor/recorded_sites.h"

#include "actor/plan_instance.h"
#include "core/environment/progress_board.h"
#include "core/environment/recorder.h"
#include "core/programs/fused_operator.h"
#include "ops/fused/fused.h"

namespace heddle::actor {

std::string TaskName(const Plan& plan, NodeId node, Phase phase) {
  std::string name;
  if (node != kNoNode)
    name = IsFused(plan.graph[node]) ? ops::NameOf(*plan.graph[node].fused) : plan.graph[node].op;
  if (phase == Phase::kWhole) return name;
  return name.empty() ? std::string(Name(phase)) : name + "." + std::string(Name(phase));
}

std::vector<uint32_t> SitesOf(const PlanInstance& instance, Recorder& recorder) {
  std::vector<uint32_t> sites;
  const Plan& plan = instance.plan();
  for (const Actor& actor : instance.actors()) {
    const Task& task = actor.task();
    RecordedSite site;
    site.kind = task.kind == TaskKind::kCopy ? RecordedKind::kCopy : RecordedKind::kOperator;
    site.name = TaskName(plan, task.node, task.phase);
    site.stream = plan.streams[task.id.stream()].name;
    if (task.node != kNoNode) {
      const SourcePosition& position = plan.graph[task.node].position;
      site.file = position.file;
      site.line = position.line;
      site.column = position.column;
    }
    sites.push_back(recorder.SiteOf(site));
  }
  return sites;
}

std::vector<int32_t> LinesOf(const PlanInstance& instance) {
  std::vector<int32_t> lines;
  for (const Actor& actor : instance.actors()) {
    const NodeId node = actor.task().node;
    lines.push_back(node == kNoNode ? 0 : LineOfStatement(instance.plan().graph[node].position));
  }
  return lines;
}

}  // namespace heddle::actor

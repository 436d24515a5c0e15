// SPDX-License-Identifier: Apache-2.0
#include "engine/blocks/plan_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actor/recorded_sites.h"
#include "compiler/explain/explain.h"
#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"

namespace heddle::engine {
namespace {

constexpr size_t kMostNodes = 400;             // Of a plan; what comes behind them is not shown.
constexpr size_t kMostText = size_t{1} << 14;  // Of choices and of a body.

std::string Shortened(std::string text) {
  if (text.size() <= kMostText) return text;
  text.resize(text.rfind('\n', kMostText) == std::string::npos ? kMostText : text.rfind('\n', kMostText));
  return text + "\n...";
}

std::string ShapeOf(const ValueInfo& info) {
  if (info.IsScalar()) return "scalar";
  if (!info.IsTabular()) return "";
  const char* kind = info.IsFrame() ? " frame" : info.format == Format::kSparse ? " sparse" : "";
  return fmt::format("{}{}", info.shape, kind);
}

std::string ShapesOf(const Node& node) {
  std::string text;
  for (const ValueInfo& info : ResultsOf(node)) {
    if (!text.empty()) text += ", ";
    text += ShapeOf(info);
  }
  return text;
}

std::string NameOf(const Plan& plan, NodeId id) {
  const Node& node = plan.graph[id];
  if (node.Is("variable")) return node.Text("name");
  if (node.Is("assign")) return node.Text("name") + " =";
  return actor::TaskName(plan, id, Phase::kWhole);
}

PlanNodeRecord Describe(const Plan& plan, NodeId id) {
  const Node& node = plan.graph[id];
  PlanNodeRecord record;
  record.name = NameOf(plan, id);
  record.shape = ShapesOf(node);
  if (node.position.IsKnown()) record.place = node.position.ToString();
  if (IsFused(node)) record.body = Shortened(compiler::ExplainGraph(node.fused->body));
  if (node.phased != nullptr) record.body = Shortened(compiler::ExplainGraph(node.phased->body));
  return record;
}

// Results of a node, and literals, are no operators.
bool IsShown(const Node& node) { return !node.Is("literal") && !node.Is("result"); }

}  // namespace

PlanRecords::Entry PlanRecords::Describe(const Plan& plan, std::string choices) const {
  Entry entry;
  entry.record.key = plan.key;
  entry.record.choices = Shortened(std::move(choices));
  const auto rank = static_cast<size_t>(rank_);
  if (rank < plan.peak_bytes.size()) entry.record.promised_bytes = plan.peak_bytes[rank];
  for (const Task& task : plan.tasks)
    if (task.id.rank() == rank) entry.record.expected_ns += std::max<int64_t>(task.cost_ns, 0);
  for (NodeId id = 0; id < plan.graph.size(); ++id) {
    const Node& node = plan.graph[id];
    // What reads a result reads what its node has left.
    int32_t place = node.Is("result") ? entry.of_node[static_cast<size_t>(node.inputs[0])] : -1;
    if (IsShown(node) && entry.record.nodes.size() < kMostNodes) {
      place = static_cast<int32_t>(entry.record.nodes.size());
      PlanNodeRecord& record = entry.record.nodes.emplace_back(engine::Describe(plan, id));
      for (const NodeId input : node.inputs)
        if (input != kNoNode && entry.of_node[static_cast<size_t>(input)] >= 0)
          record.inputs.push_back(entry.of_node[static_cast<size_t>(input)]);
    }
    entry.of_node.push_back(place);
  }
  return entry;
}

void PlanRecords::Add(const Plan& plan, int64_t ns, std::span<const actor::TaskStatistics> tasks,
                      std::string choices) {
  const std::lock_guard lock(mutex_);
  auto found = plans_.find(plan.key);
  if (found == plans_.end()) {
    if (plans_.size() == kMost) DropShortest();
    found = plans_.emplace(plan.key, Describe(plan, std::move(choices))).first;
    found->second.first_run = runs_;
  }
  ++runs_;
  Entry& entry = found->second;
  ++entry.record.runs;
  entry.record.ns += ns;
  for (const actor::TaskStatistics& task : tasks) {
    const int32_t place = task.node == kNoNode ? -1 : entry.of_node[static_cast<size_t>(task.node)];
    if (place < 0) continue;
    PlanNodeRecord& node = entry.record.nodes[static_cast<size_t>(place)];
    node.acts += task.acts;
    node.ns += task.kernel_ns;
    node.rows += task.rows;
  }
}

void PlanRecords::Absorb(const PlanRecords& other) {
  const std::scoped_lock lock(mutex_, other.mutex_);
  left_out_ += other.left_out_;
  for (const auto& [key, theirs] : other.plans_) {
    if (plans_.size() == kMost && !plans_.contains(key)) DropShortest();
    const auto [own, is_new] = plans_.try_emplace(key, theirs);
    if (is_new) {
      own->second.first_run += runs_;
      continue;
    }
    own->second.record.runs += theirs.record.runs;
    own->second.record.ns += theirs.record.ns;
    for (size_t i = 0; i < theirs.record.nodes.size(); ++i) {
      own->second.record.nodes[i].acts += theirs.record.nodes[i].acts;
      own->second.record.nodes[i].ns += theirs.record.nodes[i].ns;
      own->second.record.nodes[i].rows += theirs.record.nodes[i].rows;
    }
  }
  runs_ += other.runs_;
}

void PlanRecords::DropShortest() {
  const auto shortest = std::ranges::min_element(
      plans_, [](const auto& a, const auto& b) { return a.second.record.ns < b.second.record.ns; });
  plans_.erase(shortest);
  ++left_out_;
}

void PlanRecords::Fill(RankRecord* record) const {
  const std::lock_guard lock(mutex_);
  std::vector<const Entry*> entries;
  for (const auto& [key, entry] : plans_) entries.push_back(&entry);
  std::ranges::sort(entries, {}, &Entry::first_run);
  for (const Entry* entry : entries) record->plans.push_back(entry->record);
  record->plans_left_out = left_out_;
}

}  // namespace heddle::engine

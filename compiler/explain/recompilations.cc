// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/recompilations.h"

#include <fmt/format.h>

#include <vector>

namespace heddle::compiler {
namespace {

// A variable that the script does not name: a seed, or what an earlier part has left for this one.
bool IsHidden(std::string_view name) { return name.empty() || name[0] == '%'; }

std::string SizeOf(const ValueInfo& info) {
  if (!info.IsTabular()) return std::string(Name(info.data_type));
  return fmt::format("{}{}", info.shape, info.IsMatrix() && info.format == Format::kSparse ? " sparse" : "");
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// The first place of the script in a graph, whatever the order of its nodes.
const SourcePosition* PlaceOf(const Graph& graph) {
  const SourcePosition* first = nullptr;
  for (const Node& node : graph.nodes) {
    const SourcePosition& position = node.position;
    if (!position.IsKnown()) continue;
    if (first == nullptr || std::pair(position.line, position.column) < std::pair(first->line, first->column))
      first = &position;
  }
  return first;
}

}  // namespace

Result<std::string> Recompilations::Describe(std::string_view text) {
  HEDDLE_ASSIGN_OR_RETURN(const Plan plan, Plan::Parse(text));
  std::map<std::string, std::string> sizes;
  std::string operators, part;
  for (const Node& node : plan.graph.nodes) {
    if (node.Is("variable")) {
      if (node.info.IsTabular() && !IsHidden(node.Text("name"))) sizes[node.Text("name")] = SizeOf(node.info);
    } else if (!node.Is("literal")) {
      operators += " " + node.op;
    }
  }
  const SourcePosition* position = PlaceOf(plan.graph);
  const std::string place = position == nullptr ? "a step of the control program"
                                                : fmt::format("{}:{}", position->file, position->line);
  part = place;
  for (const auto& [name, size] : sizes) part += "\n" + name;
  Compiled& compiled = parts_[part];
  std::vector<std::string> now, before;
  for (const auto& [name, size] : sizes) {
    now.push_back(fmt::format("{} {}", name, size));
    const auto found = compiled.sizes.find(name);
    if (found != compiled.sizes.end() && found->second != size)
      before.push_back(fmt::format("{} was {}", name, found->second));
  }
  std::string why = "first entry";
  if (compiled.count > 0) why = before.empty() ? "another part, other types or values" : Joined(before);
  ++compiled.count;
  compiled.sizes = sizes;
  return fmt::format(
      "{}: compiled{} ({}), {}:{}", place, now.empty() ? "" : " for " + Joined(now), why,
      plan.tasks.empty() ? "run directly" : fmt::format("a plan of {} tasks", plan.tasks.size()), operators);
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "core/programs/phased_operator.h"

#include <algorithm>
#include <set>

#include "core/programs/text_format.h"

namespace heddle {
namespace {

Status Broken(std::string_view why) { return Internal("broken operator of phases: {}", why); }

bool ComputesNothing(const Node& node) { return node.Is("variable") || node.Is("literal"); }

}  // namespace

std::string PhasedOperator::ToText() const {
  std::string text = "phased";
  AppendRoots(roots, &text);
  AppendGraph(body, 0, &text);
  return text;
}

Result<PhasedOperator> PhasedOperator::Parse(std::string_view text) {
  TextReader reader(text, "operator of phases");
  PhasedOperator phased;
  reader.Expect("phased");
  phased.roots = ReadRoots(reader);
  phased.body = ReadGraph(reader);
  if (!reader.AtEnd()) reader.Fail("a node");
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return phased;
}

Status Verify(const PhasedOperator& phased) {
  HEDDLE_RETURN_IF_ERROR(Verify(phased.body));
  if (phased.roots.empty() || phased.roots.size() > PhasedOperator::kMaxRoots)
    return Broken("it has no or too many roots");
  std::set<NodeId> seen;
  for (const NodeId root : phased.roots) {
    if (root < 0 || root >= phased.body.size()) return Broken("a root is not in the body");
    if (!seen.insert(root).second) return Broken("a root stands twice");
    if (ComputesNothing(phased.body[root])) return Broken("a root computes nothing");
    if (phased.body[root].info.IsTuple()) return Broken("a root is a tuple");
  }
  std::set<std::string_view> names;
  for (const Node& node : phased.body.nodes) {
    if (node.Is("assign")) return Broken("an assignment in the body");
    if (node.Is("variable") && !names.insert(node.Text("name")).second)
      return Broken("an input stands twice");
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (!names.contains(std::to_string(i))) return Broken("inputs are not named 0, 1, ...");
  return OkStatus();
}

std::vector<int> PhasesOf(const Graph& body) {
  std::vector<int> phases(body.nodes.size(), -1), of_value(body.nodes.size(), -1);
  for (NodeId id = 0; id < body.size(); ++id) {
    int last = -1;
    for (const std::vector<NodeId>* needs : {&body[id].inputs, &body[id].after})
      for (const NodeId need : *needs)
        if (need != kNoNode) last = std::max(last, of_value[static_cast<size_t>(need)]);
    const bool computes = !ComputesNothing(body[id]) && !body[id].Is("result");
    if (computes) phases[static_cast<size_t>(id)] = last + 1;
    of_value[static_cast<size_t>(id)] = computes ? last + 1 : last;
  }
  return phases;
}

}  // namespace heddle

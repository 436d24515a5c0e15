// SPDX-License-Identifier: Apache-2.0
#include "core/programs/fused_operator.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/programs/text_format.h"
#include "core/text/quoted.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, kFusionTemplates> kNames = {"multi-aggregate", "stitch", "outer",
                                                                   "row", "cell"};

// The name of a template has a dash in it, so it is all up to the next blank.
FusionTemplate ReadKind(TextReader& reader) {
  for (size_t kind = 0; kind < kNames.size(); ++kind)
    if (reader.Accept(kNames[kind])) return static_cast<FusionTemplate>(kind);
  reader.Fail("a template");
  return FusionTemplate::kCell;
}

Status Broken(std::string_view why) { return Internal("broken fused operator: {}", why); }

Status VerifyRoots(const FusedOperator& fused) {
  if (fused.roots.empty() || fused.roots.size() > FusedOperator::kMaxRoots)
    return Broken("it has no or too many roots");
  const bool aggregates = fused.kind == FusionTemplate::kMultiAggregate;
  if (fused.roots.size() > 1 && !aggregates && fused.kind != FusionTemplate::kStitch)
    return Broken("several roots, but it is no multi-aggregate and no stitch");
  if (aggregates && fused.roots.size() > FusedOperator::kMostAggregates)
    return Broken("too many roots of a multi-aggregate");
  std::set<NodeId> seen;
  for (const NodeId root : fused.roots) {
    if (root < 0 || root >= fused.body.size()) return Broken("a root is not in the body");
    if (!seen.insert(root).second) return Broken("a root stands twice");
    if (fused.body[root].Is("variable") || fused.body[root].Is("literal"))
      return Broken("a root computes nothing");
    if (aggregates && fused.roots.size() > 1 && !fused.body[root].info.IsScalar())
      return Broken("a root of a multi-aggregate is not a scalar");
  }
  return OkStatus();
}

}  // namespace

std::string_view Name(FusionTemplate kind) { return kNames[static_cast<size_t>(kind)]; }

std::string FusedOperator::ToText() const {
  std::string text(Name(kind));
  text += " driver=";
  AppendInteger(driver, &text);
  AppendRoots(roots, &text);
  AppendGraph(body, 0, &text);
  return text;
}

Result<FusedOperator> FusedOperator::Parse(std::string_view text) {
  TextReader reader(text, "fused operator");
  FusedOperator fused;
  fused.kind = ReadKind(reader);
  reader.Expect("driver=");
  fused.driver = reader.Integer32();
  fused.roots = ReadRoots(reader);
  fused.body = ReadGraph(reader);
  if (!reader.AtEnd()) reader.Fail("a node");
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return fused;
}

Status Verify(const FusedOperator& fused) {
  HEDDLE_RETURN_IF_ERROR(Verify(fused.body));
  HEDDLE_RETURN_IF_ERROR(VerifyRoots(fused));
  std::set<std::string_view> names;
  for (const Node& node : fused.body.nodes) {
    if (node.Is("assign")) return Broken("an assignment in the body");
    if (node.info.IsTuple()) return Broken("several results of a node in the body");
    if (!node.after.empty()) return Broken("an order edge in the body");
    if (node.Is("variable") && !names.insert(node.Text("name")).second)
      return Broken("an input stands twice");
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (!names.contains(std::to_string(i))) return Broken("inputs are not named 0, 1, ...");
  if (fused.driver < 0 || fused.driver >= static_cast<int>(names.size()))
    return Broken("the driver is no input");
  const std::string driver = std::to_string(fused.driver);
  for (const Node& node : fused.body.nodes)
    if (node.Is("variable") && node.Text("name") == driver && !node.info.IsMatrix())
      return Broken("the driver is no matrix");
  return OkStatus();
}

}  // namespace heddle

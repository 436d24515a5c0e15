// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/source.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/programs/for_each_block.h"
#include "core/programs/input_infos.h"
#include "ops/base/operator.h"

namespace heddle::engine {
namespace {

// A node that stands behind `id`, which is no constant, makes it something else than a source.
bool IsOfConstants(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](NodeId input) { return input == kNoNode || graph[input].Is("literal"); });
}

bool CanBeMadeAgain(const Graph& graph, const Node& node) {
  if (!node.info.IsTabular() || !node.info.IsSized() || !IsOfConstants(graph, node)) return false;
  if (ops::HasRole(node, ops::Role::kRead)) return true;
  const std::vector<ValueInfo> infos = InputInfos(graph, node);
  return ops::RowRuleOf(node, infos) == ops::RowRule::kGenerate;
}

}  // namespace

Sources::Sources(const Program& program, ops::Files* files) : files_(files), written_(files) {
  ForEachBlock(program, [&](const Block& block) {
    for (const Node& node : block.graph.nodes)
      if (ops::HasRole(node, ops::Role::kWrite)) written_.Add(compiler::LiteralPath(block.graph, node));
    if (block.kind == Block::Kind::kList && block.operation == ListOperation::kWrite)
      written_.Add(std::nullopt);
  });
}

std::shared_ptr<const Source> Sources::Of(const Graph& graph, NodeId assign, std::string* variable) const {
  variable->clear();
  const NodeId made = graph[assign].inputs[0];
  const Node& node = graph[made];
  if (node.Is("variable")) *variable = node.Text("name");
  if (!CanBeMadeAgain(graph, node)) return nullptr;
  auto source = std::make_shared<Source>();
  if (ops::HasRole(node, ops::Role::kRead)) {
    const std::optional<Scalar> path = compiler::LiteralPath(graph, node);
    if (!path || files_ == nullptr || files_->versions() == nullptr || written_.MayChange(path))
      return nullptr;
    source->path = path->ToText();
    const std::optional<ops::FileVersion> version = files_->versions()->Expected(source->path);
    using Kind = ops::FileVersion::Kind;
    if (!version || (version->kind != Kind::kFile && version->kind != Kind::kFolder)) return nullptr;
    source->version = *version;
  }
  Node copy = node;
  copy.after.clear();
  for (NodeId& input : copy.inputs)
    if (input != kNoNode) input = source->graph.Add(graph[input]);
  Node assigned;
  assigned.op = "assign";
  assigned.info = node.info;
  assigned.position = node.position;
  assigned.SetAttribute("name", Source::kVariable);
  assigned.inputs = {source->graph.Add(std::move(copy))};
  source->graph.Add(std::move(assigned));
  return source;
}

}  // namespace heddle::engine

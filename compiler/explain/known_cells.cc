// SPDX-License-Identifier: Apache-2.0
#include "compiler/explain/known_cells.h"

#include <string>
#include <vector>

#include "core/memory/counted_heap.h"
#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"

namespace heddle::compiler {
namespace {

// Whether the operator gives now what it gives in the run.
bool IsKnown(const Graph& graph, const Node& node, const ops::Operator& op) {
  if (op.effect || op.run == nullptr || !node.info.IsSized()) return false;
  if (op.pure || op.role == ops::Role::kRead) return true;
  if (op.seed_input < 0 || static_cast<size_t>(op.seed_input) >= node.inputs.size()) return false;
  const NodeId seed = node.inputs[static_cast<size_t>(op.seed_input)];
  const Scalar* const value =
      seed == kNoNode || !graph[seed].Is("literal") ? nullptr : graph[seed].FindAttribute("value");
  return value != nullptr && !value->IsString() && value->AsDouble() >= 0;
}

bool AssignsAnywhere(const Block& block, const std::string& name) {
  bool found = false;
  ForEachBlock(block, [&](const Block& inner) {
    ForEachAssigned(inner, [&](const std::string& assigned) { found = found || assigned == name; });
  });
  return found;
}

}  // namespace

std::optional<Value> KnownCells::Of(const Block& block, NodeId id) {
  const auto [found, is_new] = values_.try_emplace({block.id, id});
  if (is_new) {
    std::optional<Value> value = Compute(block, id);
    values_[{block.id, id}] = value;
    return value;
  }
  return found->second;
}

// The value that the last block of the main script before this one has given it.
std::optional<Value> KnownCells::OfVariable(const Block& block, const std::string& name) {
  const Block* last = nullptr;
  for (const Block& before : program_.main) {
    if (&before == &block) break;
    if (AssignsAnywhere(before, name)) last = &before;
  }
  if (last == nullptr || last->kind != Block::Kind::kBasic) return std::nullopt;
  for (NodeId id = last->graph.size(); id-- > 0;)
    if (last->graph[id].Is("assign") && last->graph[id].Text("name") == name)
      return Of(*last, last->graph[id].inputs[0]);
  return std::nullopt;
}

std::optional<Value> KnownCells::Compute(const Block& block, NodeId id) {
  const Node& node = block.graph[id];
  if (node.Is("literal")) return Value(*node.FindAttribute("value"));
  if (node.Is("variable")) return OfVariable(block, node.Text("name"));
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || !IsKnown(block.graph, node, *op)) return std::nullopt;
  if (const auto waiting = behind_writes_.find(block.id);
      waiting != behind_writes_.end() && waiting->second.contains(id))
    return std::nullopt;
  std::vector<std::optional<Value>> values;
  std::vector<ValueInfo> infos;
  for (const NodeId input : node.inputs) {
    values.emplace_back();
    infos.emplace_back();
    if (input == kNoNode) continue;
    values.back() = Of(block, input);
    if (!values.back()) return std::nullopt;
    infos.back() = block.graph[input].info;
  }
  std::vector<const Value*> inputs;
  for (const std::optional<Value>& value : values) inputs.push_back(value ? &*value : nullptr);
  const int64_t rows = ops::TotalRowsOf(*op, node, infos);
  const Result<Value> result = WithinMemory("explain", [&] {
    return ops::CatalogKernels().Run({node, Phase::kWhole, inputs, infos, 0, rows, rows, context_});
  });
  return result.ok() ? std::optional<Value>(*result) : std::nullopt;
}

}  // namespace heddle::compiler

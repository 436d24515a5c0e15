// SPDX-License-Identifier: Apache-2.0
#include "compiler/optimize/static/known_rounds.h"

#include <algorithm>
#include <set>

#include "core/programs/for_each_block.h"
#include "ops/base/operator.h"
#include "ops/scalar/evaluate_scalar.h"

namespace heddle::compiler {
namespace {

// Operators inside each other of which an index may consist.
constexpr int kMostDepth = 16;

}  // namespace

// The first or the last one of all loops.
struct KnownRounds::Round {
  const Graph& graph;
  const std::vector<std::optional<Scalar>>& values;
  bool is_last = false;
  std::set<std::string> counters;  // that a value has asked for, with what they are
  std::string where;
};

std::optional<Scalar> KnownRounds::ValueIn(Round* round, NodeId id, int depth) const {
  if (id == kNoNode || depth > kMostDepth) return std::nullopt;
  if (const std::optional<Scalar>& known = round->values[static_cast<size_t>(id)]) return known;
  const Node& node = round->graph[id];
  if (node.Is("variable")) {
    const auto loop = std::find_if(loops_.rbegin(), loops_.rend(),
                                   [&](const Loop& other) { return other.counter == node.Text("name"); });
    if (loop == loops_.rend()) return std::nullopt;
    const int64_t value = round->is_last ? loop->range.last : loop->range.first;
    if (round->counters.insert(loop->counter).second)
      round->where += fmt::format("{}'{}' is {}", round->where.empty() ? "" : " and ", loop->counter, value);
    return Scalar(value);
  }
  const ops::Operator* const op = ops::FindOperator(node.op);
  if (op == nullptr || !op->pure || op->effect || !node.info.IsScalar() || node.inputs.empty())
    return std::nullopt;
  std::vector<Scalar> operands;
  std::vector<const Scalar*> pointers;
  for (const NodeId input : node.inputs) {
    std::optional<Scalar> operand = ValueIn(round, input, depth + 1);
    if (!operand) return std::nullopt;
    operands.push_back(*std::move(operand));
  }
  for (const Scalar& operand : operands) pointers.push_back(&operand);
  Result<Scalar> value = ops::EvaluateScalar(node, pointers);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

Status KnownRounds::CheckIndex(const Graph& graph, const std::vector<std::optional<Scalar>>& values,
                               NodeId id) const {
  const Node& node = graph[id];
  if (loops_.empty()) return OkStatus();
  for (const bool is_last : {false, true}) {
    Round round{graph, values, is_last, {}, ""};
    std::vector<ValueInfo> infos;
    std::vector<std::optional<Scalar>> bounds;
    std::vector<const Scalar*> scalars;
    for (const NodeId input : node.inputs) {
      infos.push_back(input == kNoNode ? ValueInfo() : graph[input].info);
      bounds.push_back(infos.back().IsScalar() ? ValueIn(&round, input, 0) : std::nullopt);
    }
    if (round.counters.empty()) return OkStatus();
    for (const std::optional<Scalar>& bound : bounds) scalars.push_back(bound ? &*bound : nullptr);
    std::vector<ValueInfo> results;
    const Status status =
        ops::Infer({node, infos, scalars, nullptr, ElementType::kFloat64}, &results).status();
    if (status.code() == StatusCode::kInvalidArgument)
      return status.WithNote(fmt::format("in the round of the loop in which {}", round.where));
  }
  return OkStatus();
}

bool Assigns(const std::vector<Block>& blocks, const std::string& variable) {
  bool assigns = false;
  ForEachBlock(blocks, [&](const Block& block) {
    ForEachAssigned(block, [&](const std::string& name) { assigns |= name == variable; });
  });
  return assigns;
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "compiler/editor/value_infos.h"

#include <algorithm>

namespace heddle::compiler {
namespace {

// x = y, y = z, ...: names that are followed for one.
constexpr int kMostSteps = 50;

// What both may be: sizes that differ are not known.
ValueInfo Common(const ValueInfo& a, const ValueInfo& b) {
  if (a.data_type != b.data_type) return ValueInfo();
  ValueInfo common = a;
  if (a.value_type != b.value_type) common.value_type = ValueType::kUnknown;
  if (a.shape.rows != b.shape.rows) common.shape.rows = kUnknown;
  if (a.shape.columns != b.shape.columns) common.shape.columns = kUnknown;
  if (a.format != b.format) common.format = Format::kDense;
  if (!(a == b)) common.schema = nullptr;
  return common;
}

}  // namespace

ValueInfos::ValueInfos(const Program& program, const ScriptView& script) {
  Collect(program.main, script.path);
  for (const auto& [key, function] : program.functions) Collect(function.body, script.path);
  for (const NameUse& use : script.names) {
    if (use.kind != NameUse::Kind::kVariable) continue;
    if (!use.is_definition && use.from.size() == 1) {
      const ValueInfo* const info = Find(use.range.begin, "variable", use.name);
      if (info != nullptr) read_.emplace(script.names[static_cast<size_t>(use.from[0])].range.begin, *info);
    }
  }
  for (const NameUse& use : script.names)
    if (use.kind == NameUse::Kind::kVariable)
      if (const std::optional<ValueInfo> info = Of(script, use)) last_[{use.scope, use.name}] = *info;
}

void ValueInfos::Collect(const std::vector<Block>& blocks, const std::string& path) {
  for (const Block& block : blocks) {
    for (const Node& node : block.graph.nodes) {
      if (node.position.file != path || node.info.data_type == DataType::kUnknown) continue;
      const bool has_name = node.Is("variable") || node.Is("assign");
      nodes_[{node.position.line, node.position.column}].push_back(
          {node.op, has_name ? node.Text("name") : "", node.info});
    }
    Collect(block.body, path);
    Collect(block.otherwise, path);
  }
}

const ValueInfo* ValueInfos::Find(const Place& place, std::string_view op, std::string_view name) const {
  const auto found = nodes_.find(place);
  if (found == nodes_.end()) return nullptr;
  for (auto known = found->second.rbegin(); known != found->second.rend(); ++known) {
    const bool is_variable = known->op == "variable" || known->op == "assign" || known->op == "literal";
    if (op.empty() ? !is_variable : known->op == op && known->name == name) return &known->info;
  }
  return nullptr;
}

std::optional<ValueInfo> ValueInfos::LastOf(int32_t scope, const std::string& name) const {
  const auto found = last_.find({scope, name});
  return found == last_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ValueInfo> ValueInfos::Of(const ScriptView& script, const NameUse& use) const {
  return OfUse(script, use, 0);
}

std::optional<ValueInfo> ValueInfos::OfUse(const ScriptView& script, const NameUse& use, int depth) const {
  if (use.is_definition) return OfDefinition(script, use, depth);
  if (const ValueInfo* info = Find(use.range.begin, "variable", use.name)) return *info;
  std::optional<ValueInfo> all;
  for (const int32_t definition : use.from) {
    const std::optional<ValueInfo> info =
        OfDefinition(script, script.names[static_cast<size_t>(definition)], depth + 1);
    if (!info) return std::nullopt;
    all = all ? Common(*all, *info) : *info;
  }
  return all;
}

std::optional<ValueInfo> ValueInfos::OfDefinition(const ScriptView& script, const NameUse& use,
                                                  int depth) const {
  if (depth > kMostSteps) return std::nullopt;
  if (use.parameter != nullptr) {
    if (const auto found = read_.find(use.range.begin); found != read_.end()) return found->second;
    return ValueInfo::OfDeclared(use.parameter->data_type, use.parameter->value_type);
  }
  const Statement& statement = *use.statement;
  if (statement.kind == Statement::Kind::kFor || statement.kind == Statement::Kind::kParallelFor)
    if (statement.name_range.begin == use.range.begin) return ValueInfo::OfScalar(ValueType::kInteger);
  const bool is_whole = statement.targets.size() == 1 && statement.targets[0].index == nullptr;
  if (statement.kind == Statement::Kind::kAssign && is_whole) {
    if (std::optional<ValueInfo> info = OfExpression(script, *statement.value, depth)) return info;
  } else if (const ValueInfo* info = Find(use.range.begin, "", "")) {
    return *info;
  }
  if (const auto found = read_.find(use.range.begin); found != read_.end()) return found->second;
  if (const ValueInfo* info = Find(use.range.begin, "assign", use.name)) return *info;
  return std::nullopt;
}

std::optional<ValueInfo> ValueInfos::OfExpression(const ScriptView& script, const Expression& expression,
                                                  int depth) const {
  switch (expression.kind) {
    case Expression::Kind::kLiteral: return ValueInfo::OfScalar(expression.literal.type());
    case Expression::Kind::kIdentifier: {
      const NameUse* const use = script.NameAt(expression.name_range.begin);
      return use == nullptr || use->name != expression.name ? std::nullopt : OfUse(script, *use, depth + 1);
    }
    case Expression::Kind::kBinary:
    case Expression::Kind::kUnary:
    case Expression::Kind::kCall:
      if (const ValueInfo* info = Find(expression.name_range.begin, "", "")) return *info;
      return std::nullopt;
    case Expression::Kind::kIndexed:
    case Expression::Kind::kIndexedValue:
      if (const ValueInfo* info = Find(expression.range.begin, "", "")) return *info;
      return std::nullopt;
    case Expression::Kind::kParameter:
    case Expression::Kind::kList: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace heddle::compiler

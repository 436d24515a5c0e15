// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/body_builder.h"

#include "compiler/optimize/list_steps.h"

namespace heddle::compiler {

BodyBuilder::BodyBuilder(ProgramBuilder* program, int32_t file, std::string function)
    : program_(*program),
      file_(file),
      path_(&program->scripts.files[static_cast<size_t>(file)].path),
      function_(std::move(function)) {}

void BodyBuilder::GoOnWith(const std::vector<GivenVariable>& given) {
  for (const GivenVariable& variable : given) {
    LiveIn known = variable.info.data_type == DataType::kList
                       ? UnknownList()
                       : LiveIn{variable.info, variable.value, nullptr};
    if (known.info.IsTabular()) known.info = known.info.WithoutSize();
    DefineAs(variable.name, std::move(known), {});
  }
}

std::vector<std::string> BodyBuilder::NamesToKeep() const {
  std::vector<std::string> names;
  for (const auto& [name, variable] : scope_)
    if ((name[0] != '%' && !variable.is_tensor) || name == kExpressionValue) names.push_back(name);
  return names;
}

std::vector<Block> BodyBuilder::BuildMain(std::span<const Statement> statements) {
  BuildStatements(statements);
  Flush();
  return std::move(blocks_);
}

std::vector<Block> BodyBuilder::BuildFunction(const FunctionDefinition& definition) {
  for (const ParameterDefinition& parameter : definition.parameters) {
    LiveIn known;
    known.info = ValueInfo::OfDeclared(parameter.data_type, parameter.value_type);
    DefineAs(parameter.name, std::move(known), parameter.name_range);
  }
  BuildStatements(definition.body);
  Flush();
  for (const ParameterDefinition& result : definition.results) {
    if (const auto found = scope_.find(result.name); found != scope_.end()) {
      ReportConflict(found->second);
      if (found->second.is_tensor) RefuseTensor(result.name_range);
      const DataType assigned = found->second.known.info.data_type;
      const bool is_list = assigned == DataType::kList;
      if (assigned == DataType::kUnknown || is_list == (result.data_type == DataType::kList)) continue;
      Error(found->second.assigned_at,
            fmt::format("the result '{}' of function '{}' is declared as a {}, but its value is a {}",
                        result.name, function_, Name(result.data_type), Name(assigned)));
      continue;
    }
    program_.diagnostics.Warning(
        *path_, result.name_range,
        fmt::format("the result '{}' of function '{}' is never assigned", result.name, function_));
  }
  return std::move(blocks_);
}

Diagnostic& BodyBuilder::Error(const SourceRange& range, std::string message) {
  return program_.diagnostics.Error(*path_, range, std::move(message));
}

const std::string& BodyBuilder::VariableFor(const std::string& name) const {
  auto found = renamed_.find(name);
  return found == renamed_.end() ? name : found->second;
}

void BodyBuilder::DefineAs(const std::string& name, LiveIn known, const SourceRange& range) {
  scope_[VariableFor(name)] = {std::move(known), range};
}

void BodyBuilder::Define(const std::string& name, NodeId value, const SourceRange& range) {
  block_.Assign(VariableFor(name), value, At(range));
  LiveIn known{block_.InfoOf(value), block_.ValueOf(value)};
  if (known.info.IsMatrix()) known.info = ValueInfo::OfMatrix(Shape());
  if (known.info.IsFrame()) known.info = known.info.WithoutSize();
  const bool numbers_rows = NumbersRows(value);
  DefineAs(name, std::move(known), range);
  scope_[VariableFor(name)].numbers_rows = numbers_rows;
}

Block BodyBuilder::NewBlock(Block::Kind kind, const SourceRange& range) {
  Block block;
  block.kind = kind;
  block.id = program_.next_block_id++;
  block.position = At(range);
  return block;
}

void BodyBuilder::Flush() {
  built_arguments_.clear();
  if (block_.IsEmpty()) return;
  Block block;
  block.id = program_.next_block_id++;
  block.position = block_.NodeOf(0).position;
  block.graph = block_.Finish();
  if (!block.graph.nodes.empty()) blocks_.push_back(std::move(block));
}

}  // namespace heddle::compiler

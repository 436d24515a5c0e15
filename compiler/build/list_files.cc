// SPDX-License-Identifier: Apache-2.0
// read() and write() of lists, which are steps of the control program: a folder has a file for each element.
#include <algorithm>

#include "compiler/build/body_builder.h"
#include "compiler/build/file_options.h"
#include "ops/base/operator.h"
#include "ops/io/formats/file_format.h"

namespace heddle::compiler {

std::vector<std::string> FileOptionsOf(std::string_view operator_name) {
  std::vector<std::string> names;
  for (const ops::OperatorParameter& parameter :
       ops::ParseParameters(ops::FindOperator(operator_name)->parameters))
    if (parameter.attribute) names.emplace_back(parameter.name);
  return names;
}

// True if data_type says so, or the metadata at a path that is a literal or an argument of the script.
bool BodyBuilder::ReadsList(const Expression& call) const {
  const auto text_of = [&](const Expression& expression) -> std::optional<std::string> {
    std::optional<Scalar> value;
    if (expression.kind == Expression::Kind::kLiteral) value = expression.literal;
    if (expression.kind == Expression::Kind::kParameter) value = FindScriptArgument(expression.name);
    return value && value->IsString() ? std::optional(value->AsString()) : std::nullopt;
  };
  for (const Argument& argument : call.arguments)
    if (argument.name == "data_type")
      return ops::FindDataTypeOfFile(text_of(*argument.value).value_or("")) == DataType::kList;
  if (call.arguments.empty() || !call.arguments[0].name.empty()) return false;
  const std::optional<std::string> path = text_of(*call.arguments[0].value);
  return path && ops::FileTypeInMetadata(program_.options.loader->LoadMetadata(*path + ".mtd")).data_type ==
                     DataType::kList;
}

bool BodyBuilder::PassListRead(const Expression& call, Block* step) {
  const std::vector<std::string> options = FileOptionsOf("read");
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Argument& argument = call.arguments[i];
    if (i == 0 && argument.name.empty()) {
      const NodeId path = BuildExpression(*argument.value);
      if (InfoOf(path).IsTabular()) {
        Error(argument.value->range, fmt::format("the path of {}() must be a string", call.name));
        return false;
      }
      step->arguments.emplace_back("path", PassNode(path, argument.value->range));
    } else if (argument.name.empty()) {
      Error(argument.value->range, fmt::format("{}() takes one path; its options are named", call.name));
      return false;
    } else if (std::find(options.begin(), options.end(), argument.name) == options.end()) {
      Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
          .suggestion = SuggestName(argument.name, options);
      return false;
    }
  }
  if (!step->arguments.empty()) return true;
  Error(call.range, fmt::format("the argument 'path' of {}() is missing", call.name));
  return false;
}

void BodyBuilder::BuildListWrite(const Expression& call) {
  HoistInside(call);
  const std::vector<std::string> options = FileOptionsOf("write");
  Block step = NewBlock(Block::Kind::kList, call.name_range);
  step.operation = ListOperation::kWrite;
  size_t positional = 0;
  for (const Argument& argument : call.arguments) {
    if (!argument.name.empty()) {
      if (std::find(options.begin(), options.end(), argument.name) == options.end()) {
        Error(argument.name_range, fmt::format("{}() has no parameter '{}'", call.name, argument.name))
            .suggestion = SuggestName(argument.name, options);
        return;
      }
      // What is written has the type that it has.
      if (argument.name != "data_type" && argument.name != "value_type")
        step.arguments.emplace_back(argument.name, PassOperand(*argument.value));
      continue;
    }
    constexpr const char* kNames[] = {"list", "path", "format"};
    if (positional < std::size(kNames))
      step.arguments.emplace_back(kNames[positional], PassOperand(*argument.value));
    ++positional;
  }
  if (positional != 2 && positional != 3) {
    Error(call.range, fmt::format("{}() takes a variable and a path, got {} positional argument{}", call.name,
                                  positional, positional == 1 ? "" : "s"));
    return;
  }
  EmitStep(std::move(step), {}, call.range);
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "compiler/build/body_builder.h"

namespace heddle::compiler {
namespace {

bool Fits(DataType entry_point, DataType argument) {
  return entry_point == argument || (entry_point == DataType::kScalar && argument == DataType::kList);
}

std::string TypesOf(const Callee& callee) {
  std::string types;
  for (const auto& [type, function] : callee.functions) {
    if (!types.empty()) types += " or ";
    types += type == DataType::kScalar ? "a scalar or a list" : fmt::format("a {}", Name(type));
  }
  return types;
}

}  // namespace

// The argument is made before its turn: its type is asked for before the function is known.
DataType BodyBuilder::TypeOf(const Argument& argument) {
  if (IsList(*argument.value)) return DataType::kList;
  const auto [built, is_new] = built_arguments_.try_emplace(argument.value.get(), kNoNode);
  if (is_new) built->second = BuildExpression(*argument.value);
  return InfoOf(built->second).data_type;
}

// Makes the calls in the arguments and tells which function is called then; nullptr after an error. Of the
// entry points of a library function it is the one for the type of the first argument as written; where there
// is none, and the call names its arguments, the one whose first parameter gets an argument of its type.
const DmlFunction* BodyBuilder::ChooseFunction(const Expression& call, const Callee& callee) {
  for (const Argument& argument : call.arguments) HoistCalls(*argument.value);
  if (!callee.IsLibrary()) return callee.functions.begin()->second;
  if (callee.functions.empty()) return nullptr;  // its file has errors
  const DataType given = call.arguments.empty() ? DataType::kScalar : TypeOf(call.arguments[0]);
  for (const auto& [type, function] : callee.functions)
    if (Fits(type, given)) return function;
  for (const auto& [type, function] : callee.functions)
    for (const Argument& argument : call.arguments)
      if (!function->definition->parameters.empty() &&
          argument.name == function->definition->parameters[0].name && Fits(type, TypeOf(argument)))
        return function;
  if (given == DataType::kUnknown && callee.functions.size() == 1) return callee.functions.begin()->second;
  const SourceRange& range = call.arguments.empty() ? call.range : call.arguments[0].value->range;
  if (call.arguments.empty()) {
    Error(range, fmt::format("{}() takes {} as its first argument, got none", call.name, TypesOf(callee)));
  } else {
    Error(range, fmt::format("{}() takes {} as its first argument, not a {}", call.name, TypesOf(callee),
                             Name(given)));
  }
  return nullptr;
}

}  // namespace heddle::compiler

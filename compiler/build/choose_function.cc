// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "compiler/build/body_builder.h"

// Which functions a call may mean: of a library function the entry point for the type of the first argument,
// of eval() the function that its first argument names.
namespace heddle::compiler {
namespace {

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

// Makes the calls in the arguments and tells what is called then; nullopt after an error.
std::optional<CallChoice> BodyBuilder::ChooseFunctions(const Expression& call, const Callee& callee) {
  if (callee.is_gradient) return ChooseGradient(call);
  for (const Argument& argument : call.arguments) HoistCalls(*argument.value);
  built_arguments_.clear();
  if (callee.is_eval) return ChooseByName(call);
  if (callee.is_paramserv) return ChooseParamserv(call);
  CallChoice choice;
  for (const Argument& argument : call.arguments) choice.arguments.push_back(&argument);
  if (!ChooseEntryPoints(call, callee, &choice)) return std::nullopt;
  return choice;
}

// The entry point for the type of the first argument as written; where there is none, and the call names its
// arguments, the one whose first parameter gets an argument of its type. All of them when that type is known
// only at run time. False after an error.
bool BodyBuilder::ChooseEntryPoints(const Expression& call, const Callee& callee, CallChoice* choice) {
  if (!callee.IsLibrary()) {
    choice->functions = {*callee.functions.begin()};
    return true;
  }
  if (callee.functions.empty()) return false;  // its file has errors
  const std::vector<const Argument*>& arguments = choice->arguments;
  DataType given = arguments.empty() ? DataType::kScalar : TypeOf(*arguments[0]);
  if (choice->is_eval && given == DataType::kList) given = DataType::kMatrix;
  for (const auto& entry : callee.functions)
    if (CallCandidate::IsFor(entry.first, given)) choice->functions = {entry};
  if (!choice->functions.empty()) return true;
  for (const auto& entry : callee.functions)
    for (const Argument* argument : arguments)
      if (!entry.second->definition->parameters.empty() &&
          argument->name == entry.second->definition->parameters[0].name &&
          CallCandidate::IsFor(entry.first, TypeOf(*argument)))
        choice->functions = {entry};
  if (choice->functions.empty() && given == DataType::kUnknown)
    choice->functions.assign(callee.functions.begin(), callee.functions.end());
  if (!choice->functions.empty()) return true;
  const std::string what = arguments.empty() ? ", got none" : fmt::format(", not a {}", Name(given));
  Error(arguments.empty() ? call.range : arguments[0]->value->range,
        fmt::format("{}() takes {} as its first argument{}", call.name, TypesOf(callee), what));
  return false;
}

std::optional<CallChoice> BodyBuilder::ChooseByName(const Expression& call) {
  if (call.arguments.size() < 2) {
    Error(call.range,
          fmt::format("{}() takes the name of a function and at least one argument for it", call.name));
    return std::nullopt;
  }
  CallChoice choice;
  choice.is_eval = true;
  choice.gives_list = call.name == "evalList";
  for (size_t i = 1; i < call.arguments.size(); ++i) choice.arguments.push_back(&call.arguments[i]);
  const Expression& name = *call.arguments[0].value;
  const NodeId node = BuildExpression(name);
  const std::optional<Scalar> text = block_.ValueOf(node);
  if (InfoOf(node).IsMatrix() || (text && !text->IsString())) {
    Error(name.range, fmt::format("the first argument of {}() must be the name of a function", call.name));
    return std::nullopt;
  }
  choice.first_argument = TypeOf(*choice.arguments[0]);
  if (!text) {
    choice.selector = PassNode(node, name.range);
    return choice;
  }
  const Callee* callee = program_.FindCalleeNamed(file_, text->AsString(), At(name.range));
  if (callee == nullptr || callee->functions.empty()) {
    Diagnostic& diagnostic =
        Error(name.range,
              fmt::format("{}() finds no function '{}' that is written in DML", call.name, text->AsString()));
    SuggestFunction(text->AsString(), {}, &diagnostic);
    return std::nullopt;
  }
  if (!ChooseEntryPoints(call, *callee, &choice)) return std::nullopt;
  return choice;
}

}  // namespace heddle::compiler

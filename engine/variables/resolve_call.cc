// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/resolve_call.h"

#include <algorithm>
#include <string>

namespace heddle::engine {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

// eval(name, list(...)): named elements by their names, others in the order of the parameters; literals that
// are defaults where there is none.
Result<ResolvedCall> ExpandList(const Function& function, const ListOf<Variable>& list) {
  const std::vector<Parameter>& parameters = function.parameters;
  if (list.size() > parameters.size())
    return FailedPrecondition("function '{}' takes {} argument{}, the list has {} elements", function.name,
                              parameters.size(), parameters.size() == 1 ? "" : "s", list.size());
  for (const std::string& name : list.names)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& p) { return p.name == name; }))
      return FailedPrecondition("function '{}' has no parameter '{}', as an element of the list is named",
                                function.name, name);
  ResolvedCall call;
  call.function = &function;
  call.defaults.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    size_t element = i;
    if (!list.names.empty())
      element = static_cast<size_t>(std::find(list.names.begin(), list.names.end(), parameter.name) -
                                    list.names.begin());
    if (element < list.size()) {
      call.arguments.emplace_back(parameter.name, &list.elements[element]);
    } else if (parameter.default_value) {
      call.defaults.push_back(Variable::OfScalar(*parameter.default_value));
      call.arguments.emplace_back(parameter.name, &call.defaults.back());
    } else {
      return FailedPrecondition("function '{}': the list has no element for the argument '{}'", function.name,
                                parameter.name);
    }
  }
  return call;
}

Result<ResolvedCall> Resolve(const Program& program, const std::string& name, const Arguments& arguments,
                             const VariableTable& caller) {
  const auto found = program.functions.find(name);
  if (found == program.functions.end()) return Internal("there is no function {}", name);
  const Function& function = found->second;
  ResolvedCall call;
  call.function = &function;
  call.arguments.reserve(arguments.size());
  for (const auto& [parameter, variable] : arguments)
    call.arguments.emplace_back(parameter, caller.Find(variable));
  if (arguments.size() != 1 || !arguments[0].first.empty()) return call;
  const Variable* only = call.arguments[0].second;
  if (only != nullptr && only->list != nullptr) return ExpandList(function, *only->list);
  if (function.parameters.size() != 1)
    return FailedPrecondition("eval() gives all arguments of a function: {}() takes {}, got 1", function.name,
                              function.parameters.size());
  call.arguments[0].first = function.parameters[0].name;
  return call;
}

// The text that names the function.
Result<std::string> NameOf(const Block& call, const VariableTable& caller) {
  if (call.selector.empty()) return std::string();
  const Variable* name = caller.Find(call.selector);
  if (name == nullptr || !name->info.IsScalar() || !name->value.scalar().IsString())
    return FailedPrecondition("the name of the function that is called is not a string");
  return name->value.scalar().AsString();
}

Result<ResolvedCall> ChooseCandidate(const Program& program, const Block& call, const VariableTable& caller) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string name, NameOf(call, caller));
  const Variable* first = call.first_argument.empty() ? nullptr : caller.Find(call.first_argument);
  DataType type = first == nullptr ? DataType::kUnknown : first->info.data_type;
  // For eval a list of arguments counts as a matrix.
  if (!call.selector.empty() && type == DataType::kList) type = DataType::kMatrix;
  bool has_name = false;
  for (const CallCandidate& candidate : call.candidates) {
    if (candidate.name != name) continue;
    has_name = true;
    if (!candidate.Takes(type)) continue;
    if (!candidate.function.empty()) return Resolve(program, candidate.function, candidate.arguments, caller);
    return candidate.is_wrong ? FailedPrecondition("{}", candidate.reason)
                              : Unimplemented("{}", candidate.reason);
  }
  if (has_name)
    return FailedPrecondition("no function of this name takes a {} as its first argument", Name(type));
  return FailedPrecondition("there is no function '{}' to call", name)
      .WithNote(
          "a function of the library must be named by a string in the script, or by one of its arguments");
}

}  // namespace

Result<ResolvedCall> ResolveCall(const Program& program, const Block& call, const VariableTable& caller) {
  Result<ResolvedCall> resolved = call.candidates.empty()
                                      ? Resolve(program, call.function, call.arguments, caller)
                                      : ChooseCandidate(program, call, caller);
  if (!resolved.ok()) return resolved.status().OnEveryRank().At(call.position);
  return resolved;
}

}  // namespace heddle::engine

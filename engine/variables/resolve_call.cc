// SPDX-License-Identifier: Apache-2.0
#include "engine/variables/resolve_call.h"

#include <algorithm>
#include <string>

#include "core/programs/argument_presence.h"

namespace heddle::engine {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

// How many parameters the function has as the script declares it.
size_t CountOf(const Function& function) {
  return static_cast<size_t>(
      std::count_if(function.parameters.begin(), function.parameters.end(),
                    [](const Parameter& parameter) { return !IsPresence(parameter.name); }));
}

// eval(name, list(...)): named elements by their names, others in the order of the parameters; defaults where
// there is none, those that are no literals by a function that knows which parameters have a value.
Result<ResolvedCall> ExpandList(const Function& function, const ListOf<Variable>& list) {
  const std::vector<Parameter>& parameters = function.parameters;
  const auto find = [&](std::string_view name) {
    return std::find_if(parameters.begin(), parameters.end(),
                        [&](const Parameter& parameter) { return parameter.name == name; });
  };
  const size_t count = CountOf(function);
  if (list.size() > count)
    return FailedPrecondition("function '{}' takes {} argument{}, the list has {} elements", function.name,
                              count, count == 1 ? "" : "s", list.size());
  for (const std::string& name : list.names)
    if (find(name) == parameters.end() || IsPresence(name))
      return FailedPrecondition("function '{}' has no parameter '{}', as an element of the list is named",
                                function.name, name);
  ResolvedCall call;
  call.function = &function;
  call.defaults.reserve(parameters.size());
  const auto pass = [&](std::string_view parameter, const Scalar& value) {
    call.defaults.push_back(Variable::OfScalar(value));
    call.arguments.emplace_back(parameter, &call.defaults.back());
  };
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = parameters[i];
    size_t element = i;
    if (!list.names.empty())
      element = static_cast<size_t>(std::find(list.names.begin(), list.names.end(), parameter.name) -
                                    list.names.begin());
    const bool is_there = element < list.size();
    const auto presence = find(PresenceOf(parameter.name));
    if (presence != parameters.end()) pass(presence->name, Scalar(is_there));
    if (is_there) {
      call.arguments.emplace_back(parameter.name, &list.elements[element]);
    } else if (parameter.default_value) {
      pass(parameter.name, *parameter.default_value);
    } else if (presence == parameters.end()) {
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
  const size_t count = CountOf(function);
  if (count != 1)
    return FailedPrecondition("eval() gives all arguments of a function: {}() takes {}, got 1", function.name,
                              count);
  call.arguments[0].first = function.parameters[0].name;
  if (function.parameters.size() > count) {
    call.defaults.push_back(Variable::OfScalar(true));
    call.arguments.emplace_back(function.parameters.back().name, &call.defaults.back());
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "compiler/build/paramserv.h"

#include <algorithm>
#include <span>

#include "compiler/build/body_builder.h"

namespace heddle::compiler {
namespace {

struct RoleParameter {
  std::string_view name;
  DataType data_type;
  bool must_be_there = false;
};

constexpr RoleParameter kOfUpdate[] = {{"model", DataType::kList, true},
                                       {"hyperparams", DataType::kList},
                                       {"features", DataType::kMatrix, true},
                                       {"labels", DataType::kMatrix, true}};
constexpr RoleParameter kOfAggregate[] = {
    {"model", DataType::kList}, {"hyperparams", DataType::kList}, {"gradients", DataType::kList}};
constexpr RoleParameter kOfValidate[] = {{"model", DataType::kList},
                                         {"hyperparams", DataType::kList},
                                         {"val_features", DataType::kMatrix},
                                         {"val_labels", DataType::kMatrix}};

std::span<const RoleParameter> ParametersOf(ParamservRole role) {
  switch (role) {
    case ParamservRole::kUpdate: return kOfUpdate;
    case ParamservRole::kAggregate: return kOfAggregate;
    case ParamservRole::kValidate: return kOfValidate;
  }
  return {};
}

struct RoleArgument {
  std::string_view name;
  ParamservRole role;
  bool optional;
};
constexpr RoleArgument kRoleArguments[] = {{"upd", ParamservRole::kUpdate, false},
                                           {"agg", ParamservRole::kAggregate, false},
                                           {"val", ParamservRole::kValidate, true}};

bool NamesFunction(const Argument& argument) {
  return std::any_of(std::begin(kRoleArguments), std::end(kRoleArguments),
                     [&](const RoleArgument& role) { return role.name == argument.name; });
}

const Argument* FindArgument(const Expression& call, std::string_view name) {
  const auto found = std::find_if(call.arguments.begin(), call.arguments.end(),
                                  [&](const Argument& argument) { return argument.name == name; });
  return found == call.arguments.end() ? nullptr : &*found;
}

}  // namespace

bool PassesInParamserv(ParamservRole role, std::string_view parameter) {
  const std::span<const RoleParameter> passed = ParametersOf(role);
  return std::any_of(passed.begin(), passed.end(),
                     [&](const RoleParameter& p) { return p.name == parameter; });
}

std::string_view DescribeParamservRole(ParamservRole role) {
  switch (role) {
    case ParamservRole::kUpdate:
      return "upd takes the lists model and hyperparams and the matrices features and labels, and returns a "
             "list of gradients";
    case ParamservRole::kAggregate:
      return "agg takes the lists model, hyperparams and gradients, and returns a list, the new model";
    case ParamservRole::kValidate:
      return "val takes the lists model and hyperparams and the matrices val_features and val_labels, and "
             "returns two scalars, loss and accuracy";
  }
  return "";
}

std::optional<std::string> WhyNotInParamserv(ParamservRole role, const FunctionDefinition& function) {
  const std::span<const RoleParameter> passed = ParametersOf(role);
  for (const RoleParameter& required : passed) {
    const bool is_there = std::any_of(function.parameters.begin(), function.parameters.end(),
                                      [&](const auto& parameter) { return parameter.name == required.name; });
    if (required.must_be_there && !is_there)
      return fmt::format("it has no parameter '{}', a {}", required.name, Name(required.data_type));
  }
  for (const ParameterDefinition& parameter : function.parameters) {
    const auto found = std::find_if(passed.begin(), passed.end(),
                                    [&](const RoleParameter& p) { return p.name == parameter.name; });
    if (found == passed.end()) {
      if (parameter.default_value != nullptr) continue;
      return fmt::format("its parameter '{}' gets no value", parameter.name);
    }
    if (parameter.data_type != found->data_type)
      return fmt::format("its parameter '{}' is a {}, not a {}", parameter.name, Name(parameter.data_type),
                         Name(found->data_type));
  }
  const size_t results = role == ParamservRole::kValidate ? 2 : 1;
  const DataType type = role == ParamservRole::kValidate ? DataType::kScalar : DataType::kList;
  if (function.results.size() != results)
    return fmt::format("it returns {} result{}, not {}", function.results.size(),
                       function.results.size() == 1 ? "" : "s", results);
  for (const ParameterDefinition& result : function.results)
    if (result.data_type != type)
      return fmt::format("its result '{}' is a {}, not a {}", result.name, Name(result.data_type),
                         Name(type));
  return std::nullopt;
}

bool ParamservLimit::Allows(const Scalar& value) const {
  if (!words.empty()) return std::find(words.begin(), words.end(), value.ToText()) != words.end();
  return value.IsString() || value.AsInteger() >= least;
}

std::string ParamservLimit::Requirement() const {
  std::string what = fmt::format("at least {}", least);
  for (size_t i = 0; i < words.size(); ++i)
    what = i == 0 ? words[0] : what + (i + 1 == words.size() ? " or " : ", ") + words[i];
  return fmt::format("the argument '{}' of paramserv() must be {}, not ", parameter, what);
}

const std::vector<ParamservLimit>& ParamservLimits() {
  static const std::vector<ParamservLimit> limits = {
      {"mode", {"LOCAL", "REMOTE_SPARK"}},
      {"utype", {"BSP", "ASP", "SSP", "SBP"}},
      {"freq", {"BATCH", "EPOCH", "NBATCHES"}},
      {"scheme", {"DISJOINT_CONTIGUOUS", "DISJOINT_ROUND_ROBIN", "DISJOINT_RANDOM", "OVERLAP_RESHUFFLE"}},
      {"checkpointing", {"NONE", "EPOCH", "EPOCH10"}},
      {"epochs", {}, 1},
      {"batchsize", {}, 1},
      {"k", {}, 1},
      {"nbatches", {}, 1},
      {"num_backup_workers", {}, 0},
  };
  return limits;
}

// The function that an argument of paramserv() names; nullptr after an error, and where there is none.
const DmlFunction* BodyBuilder::FindParamservFunction(const Expression& call, std::string_view name,
                                                      ParamservRole role, bool optional) {
  const Argument* argument = FindArgument(call, name);
  if (argument == nullptr) {
    if (!optional) Error(call.range, fmt::format("the argument '{}' of paramserv() is missing", name));
    return nullptr;
  }
  const SourceRange& range = argument->value->range;
  const NodeId node = BuildExpression(*argument->value);
  const std::optional<Scalar> text = block_.ValueOf(node);
  if (InfoOf(node).IsTabular() || (text && !text->IsString())) {
    Error(range, fmt::format("the argument '{}' of paramserv() must be the name of a function", name));
    return nullptr;
  }
  if (!text) {
    if (InfoOf(node).data_type != DataType::kUnknown)
      Error(range,
            fmt::format("the argument '{}' of paramserv() must be known when the script is compiled", name));
    return nullptr;
  }
  const DmlFunction* function = program_.FindUserFunction(file_, text->AsString(), At(range));
  if (function == nullptr) {
    Error(range, fmt::format("paramserv() finds no function '{}' that is written in DML", text->AsString()));
    return nullptr;
  }
  if (const std::optional<std::string> why = WhyNotInParamserv(role, *function->definition)) {
    Error(range, fmt::format("{}() cannot be the '{}' of paramserv(): {}", function->name, name, *why))
        .notes.emplace_back(DescribeParamservRole(role));
    return nullptr;
  }
  return function;
}

// False after an error. What is known of the values of arguments is looked at here, the rest when it runs.
bool BodyBuilder::CheckParamservArguments(const CallChoice& choice) {
  bool ok = true;
  for (const Argument* argument : choice.arguments) {
    for (const ParamservLimit& limit : ParamservLimits()) {
      if (limit.parameter != argument->name || TypeOf(*argument) != DataType::kScalar) continue;
      const std::optional<Scalar> value = block_.ValueOf(built_arguments_[argument->value.get()]);
      if (!value || limit.Allows(*value)) continue;
      Error(argument->value->range,
            limit.Requirement() + (value->IsString() ? "'" + value->AsString() + "'" : value->ToText()))
          .suggestion = SuggestName(value->ToText(), limit.words);
      ok = false;
    }
  }
  return ok;
}

// paramserv(...) calls the script that is made for its functions, with its other arguments.
std::optional<CallChoice> BodyBuilder::ChooseParamserv(const Expression& call) {
  for (const Argument& argument : call.arguments) {
    if (!argument.name.empty()) continue;
    Error(argument.value->range, "paramserv() takes named arguments only");
    return std::nullopt;
  }
  const bool may_validate = FindArgument(call, "val_features") != nullptr && FindArgument(call, "val_labels");
  const DmlFunction* found[std::size(kRoleArguments)];
  const size_t errors = program_.diagnostics.errors();
  for (size_t i = 0; i < std::size(kRoleArguments); ++i)
    found[i] = FindParamservFunction(call, kRoleArguments[i].name, kRoleArguments[i].role,
                                     kRoleArguments[i].optional);
  CallChoice choice;
  for (const Argument& argument : call.arguments)
    if (!NamesFunction(argument)) choice.arguments.push_back(&argument);
  if (!CheckParamservArguments(choice) || found[0] == nullptr || found[1] == nullptr ||
      program_.diagnostics.errors() > errors)
    return std::nullopt;
  const DmlFunction* script = program_.FindParamserv({found[0], found[1], may_validate ? found[2] : nullptr});
  choice.functions = {{DataType::kUnknown, script}};
  return choice;
}

}  // namespace heddle::compiler

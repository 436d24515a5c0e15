// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/function_table.h"
#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// paramserv(model=, features=, labels=, upd=, agg=, ...) trains a model on k workers (docs/paramserv.md). It
/// is a function that is written in DML: a script that the compiler has, in which the calls of the functions
/// that one paramserv() names are put. So workers are iterations of a parfor, and models are lists.
struct ParamservFunctions {
  const DmlFunction* update = nullptr;
  const DmlFunction* aggregate = nullptr;
  const DmlFunction* validate = nullptr;  ///< nullptr: there is no validation.

  auto operator<=>(const ParamservFunctions&) const = default;
};

constexpr std::string_view kParamservFile = "heddle/paramserv.dml";  ///< As messages call the script.

/// The script with the function "paramserv", whose parameters are those of the language but for the names of
/// the functions, which it calls by the namespaces of ParamservImports(). It looks at its arguments first.
std::string ParamservScript(const ParamservFunctions& functions);
std::vector<Import> ParamservImports(const ParamservFunctions& functions);

/// What a function does for paramserv().
enum class ParamservRole : uint8_t {
  kUpdate,     ///< upd: the gradients of a batch
  kAggregate,  ///< agg: the model after a step along gradients
  kValidate,   ///< val: loss and accuracy of a model
};
/// True if functions of this role get a value for a parameter of this name.
bool PassesInParamserv(ParamservRole role, std::string_view parameter);
/// Why a function cannot have a role, or nullopt.
std::optional<std::string> WhyNotInParamserv(ParamservRole role, const FunctionDefinition& function);
/// What functions of this role take and return.
std::string_view DescribeParamservRole(ParamservRole role);

/// The values that a parameter of paramserv() may have, whatever the others are.
struct ParamservLimit {
  std::string_view parameter;
  std::vector<std::string> words;  ///< One of these, or
  int64_t least = 0;               ///< a number that is not smaller.

  bool Allows(const Scalar& value) const;
  /// "the argument 'k' of paramserv() must be at least 1, not ", before the value.
  std::string Requirement() const;
};
const std::vector<ParamservLimit>& ParamservLimits();

}  // namespace heddle::compiler

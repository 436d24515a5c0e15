// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// A name at a place of a script.
struct NameUse {
  enum class Kind : uint8_t {
    kVariable,        ///< Parameters and results of functions, too.
    kFunction,        ///< A call, or the name of a function in a string of eval(), gradient(), paramserv().
    kArgument,        ///< The name before "=" in a call; `callee` is what is called.
    kNameSpace,       ///< Where source() binds it.
    kScriptArgument,  ///< $name
  };
  Kind kind = Kind::kVariable;
  bool is_definition = false;  ///< Assigns, declares, defines or binds it here.
  std::string name;
  std::string name_space;  ///< Of a function, or of what kArgument is an argument of.
  std::string callee;      ///< Of kArgument: the name of the function.
  SourceRange range;       ///< Of the name alone, without a namespace.
  int32_t scope = 0;       ///< Of a variable: 0 for the main script, 1 + i in function i of the file.
  /// Of a variable that is read: the definitions, by index, whose value it may have. May be too many in
  /// loops.
  std::vector<int32_t> from;
  const Statement* statement = nullptr;            ///< That defines a variable; nullptr of a parameter.
  const ParameterDefinition* parameter = nullptr;  ///< That declares it.
};

/// All names of a script that has parsed, in the order of their places, but for statements with errors.
/// Points into `file`.
std::vector<NameUse> NamesIn(const ScriptFile& file);

}  // namespace heddle::compiler

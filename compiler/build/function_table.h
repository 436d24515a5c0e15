// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/ast.h"

namespace heddle::compiler {

/// A function f of the library is defined as m_f, f_f or s_f, by the type of its first argument; a list
/// counts as a scalar.
struct EntryPoint {
  std::string_view prefix;
  DataType first_argument;
};
constexpr EntryPoint kEntryPoints[] = {
    {"m_", DataType::kMatrix}, {"f_", DataType::kFrame}, {"s_", DataType::kScalar}};

/// A function written in DML.
struct DmlFunction {
  std::string key;   ///< In Program::functions: "f", "ns::f" as the main script sees it, or "<file>::f".
  std::string name;  ///< For messages: the key, of a function of the library without its file.
  const FunctionDefinition* definition = nullptr;
  int32_t file = 0;  ///< Index in ScriptSet::files.
  /// Not null: this one computes the defaults of parameters of `of_list` that a list has no element for, and
  /// calls it (core/programs/argument_presence.h).
  const DmlFunction* of_list = nullptr;
};

/// Whether the parameter has a default that has to be computed: no literal.
bool HasComputedDefault(const ParameterDefinition& parameter);

/// What the name of a call stands for: one function of the user, or the entry points of a library function
/// (language reference 1.6), of which the type of the first argument chooses one.
struct Callee {
  /// By data type: m_f for a matrix, f_f for a frame, s_f for a scalar or a list. A function of the user is
  /// alone here, for kUnknown.
  std::map<DataType, const DmlFunction*> functions;
  bool is_broken = false;     ///< Its file has errors, which were reported.
  bool is_eval = false;       ///< eval(name, ...), evalList(name, ...): `functions` is empty, the name tells.
  bool is_paramserv = false;  ///< paramserv(...): `functions` is empty, its arguments tell.
  bool is_gradient = false;   ///< gradient(f, by, ...): `functions` is empty, its arguments tell.

  bool IsLibrary() const {
    return !is_eval && !is_paramserv && !is_gradient && !functions.contains(DataType::kUnknown);
  }
  /// False for what the name alone tells to be no function that is written in DML.
  bool Exists() const { return !functions.empty() || is_broken || is_eval || is_paramserv || is_gradient; }
};

/// Finds DML functions by the name that a file uses for them. Keeps pointers into the scripts.
class FunctionTable {
 public:
  /// Takes in the files that are new since the last call.
  void Add(const ScriptSet& scripts);

  /// What `name_space::name` (or `name`) means in a file; nullptr when nothing.
  const DmlFunction* Find(int32_t file, const std::string& name_space, const std::string& name) const;
  /// True if the file binds this namespace (to whatever file, loaded or not).
  bool HasNameSpace(int32_t file, const std::string& name_space) const;
  /// True if the namespace is bound to a file that could be loaded.
  bool IsLoaded(int32_t file, const std::string& name_space) const;

  /// All functions of a file.
  const std::map<std::string, DmlFunction>& FunctionsOf(int32_t file) const {
    return functions_[static_cast<size_t>(file)];
  }
  std::vector<std::string> NamesIn(int32_t file, const std::string& name_space) const;
  std::vector<std::string> NameSpacesIn(int32_t file) const;

 private:
  int32_t FileOf(int32_t file, const std::string& name_space) const;

  std::vector<std::map<std::string, DmlFunction>> functions_;  // by file
  std::vector<std::map<std::string, int32_t>> name_spaces_;    // by file; -1: not loaded
  std::map<int32_t, std::string> seen_by_main_;                // file -> the main script's first name for it
};

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/diagnostics.h"
#include "compiler/parse/load_scripts.h"
#include "core/programs/program.h"

namespace heddle::compiler {

/// What a script needs to know that begins with variables: an entry of a session at a terminal, where
/// expressions alone may be statements (kExpressionValue), or a whole script that a host program runs.
struct Continuation {
  std::vector<GivenVariable> given;  ///< Variables that are there.
  /// A script as it stands in a file: all of it is checked, and read as without a continuation.
  bool is_whole_script = false;
  /// Of its variables only these are kept; one that nothing assigns and nobody gave is an error. nullopt:
  /// all.
  std::optional<std::vector<std::string>> outputs;
  /// Of the statements at the top level only so many are built, from number `first` on.
  size_t first = 0;
  size_t count = SIZE_MAX;
  bool checks_functions = false;  ///< Also functions that nothing calls are checked.
};

/// True of a script that is read as one that stands in a file.
inline bool IsWholeScript(const Continuation* continuation) {
  return continuation == nullptr || continuation->is_whole_script;
}

struct BuildOptions {
  /// -args and -nvargs: "1", "2", ... or names, with the text as given.
  std::map<std::string, std::string> arguments;
  std::function<std::string(std::string_view name)> argument_hint;  ///< CompileOptions::argument_hint.
  /// Finds the metadata of files that are read: whether one holds a scalar is part of the script's types.
  SourceLoader* loader;
  const Continuation* continuation = nullptr;  ///< nullptr: the script begins without variables.
  /// CompileOptions::any_arguments.
  bool any_arguments = false;
};

/// Makes a Program of syntax trees: names resolved, maximal straight-line blocks as graphs in which a
/// variable that is assigned and then read is just an edge, calls of DML functions as blocks of their own.
///
/// Only functions that the main script reaches are in the program; the main script's others are checked as
/// well. Files of the library are loaded when a function that is built calls them. Reports everything that is
/// wrong with names, arguments and types of data. With errors the program must not run. Sizes are the
/// business of optimize/static_pass.h.
Program BuildProgram(ScriptLoader* scripts, const BuildOptions& options, Diagnostics* diagnostics);

}  // namespace heddle::compiler

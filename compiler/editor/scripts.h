// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/editor/script_view.h"
#include "compiler/parse/load_scripts.h"
#include "compiler/parse/source_loader.h"

namespace heddle::compiler {

/// The scripts that others source or call, parsed once for each text that they have had. One thread.
class Scripts {
 public:
  /// Neither pointer is owned. The loader is asked for a text each time. `whole_path` makes one path of all
  /// those by which a file is known; without it they stay as they are.
  Scripts(SourceLoader* loader, const LoadOptions* options,
          std::function<std::string(const std::string& path)> whole_path = {})
      : loader_(*loader), options_(*options), whole_path_(std::move(whole_path)) {}

  /// The script at a path that is known to the loader, or of Heddle's library ("heddle:..."); nullptr: none.
  ScriptViewPointer Find(const std::string& path);
  /// A script with this text.
  ScriptViewPointer View(const std::string& path, const std::string& text);
  /// What source() in `script` binds to a namespace; nullptr: none.
  ScriptViewPointer Imported(const ScriptView& script, std::string_view name_space);
  /// The file of a function that is called by its name alone and is not defined in the script; nullptr: none.
  ScriptViewPointer OfLibraryFunction(const std::string& name);

 private:
  ScriptViewPointer FindFirst(const std::vector<std::string>& paths);

  SourceLoader& loader_;
  const LoadOptions& options_;
  const std::function<std::string(const std::string& path)> whole_path_;
  std::map<std::string, ScriptViewPointer> views_;  // the last one of each path
};

/// A function as its caller sees it.
struct Callable {
  struct Parameter {
    std::string name;
    std::string type;           ///< "matrix", "double"; "" where it is not known.
    std::string default_value;  ///< As it is written; "" without one.
    bool optional = false;
  };
  std::string name;  ///< "f", "ns::f"
  std::vector<Parameter> parameters;
  std::vector<Parameter> results;
  std::string text;                                ///< What its comment or its help says; lines.
  ScriptViewPointer script;                        ///< Where it is defined; nullptr of a builtin.
  const FunctionDefinition* definition = nullptr;  ///< In that script.

  /// "B = lm(X, y, icpt=0)"; `places`, if given, gets where each parameter begins and ends in it.
  std::string Usage(std::vector<std::pair<size_t, size_t>>* places = nullptr) const;
};

/// What a call of `name` in `script` means: a function of the script, of a file that it sources, of the
/// library, or a builtin.
std::optional<Callable> FindCallable(const ScriptViewPointer& script, std::string_view name_space,
                                     const std::string& name, Scripts* scripts);

}  // namespace heddle::compiler

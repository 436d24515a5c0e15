// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/build/build.h"
#include "compiler/parse/diagnostics.h"
#include "compiler/parse/source_loader.h"
#include "core/programs/program.h"

namespace heddle::compiler {

struct CompileOptions {
  std::string script = "script.dml";             ///< Name of the main script, for messages.
  std::map<std::string, std::string> arguments;  ///< -args as "1", "2", ...; -nvargs by name. Texts as given.
  /// How the user gives an argument of this name that is missing, for messages: "give it with ...". Empty: as
  /// on a command line.
  std::function<std::string(std::string_view name)> argument_hint;
  SourceLoader* loader = nullptr;      ///< Where source() finds files; nullptr: nowhere.
  std::vector<std::string> libraries;  ///< LoadOptions::libraries.
  uint64_t library_fingerprint = 0;    ///< LoadOptions::library_fingerprint.
  std::set<std::string, std::less<>>
      disabled_passes;                       ///< Passes and rules (optimize/pass.h, NamesToDisable()).
  std::optional<Continuation> continuation;  ///< Of a script that goes on where others have ended.
  /// A script whose arguments nobody knows: those that are not given may be any scalar, and all functions of
  /// the script are called with whatever they declare. Only to check it: such a program cannot run.
  bool any_arguments = false;
  bool types_only = false;  ///< The passes are left out: only what is known of types and sizes is asked for.
  /// Called after every stage (see Stages()); after the first two also of a script with errors, whose program
  /// tells what is known of the rest.
  std::function<void(std::string_view stage, const Program& program)> observe;
  std::function<void(std::string_view text)>
      observe_ast;  ///< Called with the syntax tree of the main script.
};

/// From text to a Program that a session can run: parse, build, static pass, passes.
///
/// All that is wrong with the script is found at once and collected in `diagnostics`, warnings too. Nothing
/// is read but sourced files, and of files that the script reads their metadata. Errors: kInvalidArgument
/// with the text of all diagnostics.
Result<Program> CompileScript(std::string text, const CompileOptions& options, Diagnostics* diagnostics);

/// The names of the stages in order: "build", "shapes", then the passes.
std::vector<std::string_view> Stages();

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/parse/ast.h"
#include "compiler/parse/diagnostics.h"
#include "compiler/parse/source_loader.h"

namespace heddle::compiler {

struct LoadOptions {
  /// Folders of functions that are written in DML, in the order in which they are searched: a checkout of the
  /// scripts of SystemDS, or a folder of files that are named after their functions.
  std::vector<std::string> libraries;
  /// LibraryFingerprint() of the machine that the script comes from: another library than this one's is not
  /// used. 0: that of this machine.
  uint64_t library_fingerprint = 0;
};

/// Parses the files of a program, each once: the main script, every file that it sources directly or
/// indirectly (cycles are fine), and the files of the library when they are first called. All errors of all
/// files go to `diagnostics`; with errors the set is still a valid, incomplete tree.
///
/// A sourced path is absolute or relative to the directory of the last setwd() before it in its file
/// (default: the working directory, not the folder of the sourcing file). Tried in order: <directory>/<path>,
/// <directory>/scripts/<path>, and for each library <library>/<path> and <library>/scripts/<path>; a path
/// that begins with "scripts/" is looked for without it, too, in libraries that are themselves a folder of
/// scripts; last in the library that is part of Heddle (library/library_files.h).
class ScriptLoader {
 public:
  ScriptLoader(LoadOptions options, SourceLoader* loader, Diagnostics* diagnostics)
      : options_(std::move(options)), loader_(*loader), diagnostics_(*diagnostics) {}

  /// `takes_expressions` as of Parse(), for the main script alone.
  void LoadMain(const std::string& path, std::string text, bool takes_expressions = false);
  /// Index of the file of a library function, which is read when it is asked for first; nullopt when there is
  /// none. Errors in it are reported with a note that names the function and the place of that first `call`.
  /// A call `from_library`, in a file of Heddle's own, is of Heddle's own function where there is one.
  std::optional<int32_t> LoadLibraryFunction(const std::string& name, const SourcePosition& call,
                                             bool from_library = false);

  /// Adds a script that the compiler has written, as one of the library; its namespaces are of files that are
  /// loaded (Import::file). Returns its index.
  int32_t AddWritten(const std::string& path, std::string text, std::vector<Import> imports);

  const ScriptSet& scripts() const { return set_; }
  const LoadOptions& options() const { return options_; }

 private:
  int32_t Add(const std::string& path, std::string text, bool takes_expressions = false);
  Result<std::string> Load(const std::string& candidate);
  int32_t AddBroken(const std::string& path);
  void LoadImports(size_t importer);
  int32_t LoadImport(const ScriptFile& importer, const Import& import);

  const LoadOptions options_;
  SourceLoader& loader_;
  Diagnostics& diagnostics_;
  ScriptSet set_;
  std::map<std::string, int32_t> files_;
  // By name, and whether Heddle's own is meant.
  std::map<std::pair<std::string, bool>, std::optional<int32_t>> library_functions_;
  size_t complete_ = 0;  // files whose imports are loaded
};

/// The places an import is looked for, in order, as paths for SourceLoader::Load.
std::vector<std::string> ImportCandidates(const Import& import, const LoadOptions& options);
/// The places a library function is looked for: scripts/builtin/NAME.dml in the working directory, then in
/// each library builtin/NAME.dml, NAME.dml and scripts/builtin/NAME.dml, then in the library of Heddle.
std::vector<std::string> LibraryCandidates(const std::string& name, const LoadOptions& options);

}  // namespace heddle::compiler

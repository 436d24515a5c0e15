// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/parse/ast.h"
#include "compiler/parse/diagnostics.h"
#include "compiler/parse/source_loader.h"

namespace heddle::compiler {

struct LoadOptions {
  std::string library_directory;  ///< Tried last, with and without "scripts/"; "" for none.
};

/// Parses the main script and, once each, every file it sources directly or indirectly (cycles are fine). All
/// errors of all files go to `diagnostics`; with errors the set is still a valid, incomplete tree.
///
/// A sourced path is absolute or relative to the directory of the last setwd() before it in its file
/// (default: the working directory, not the folder of the sourcing file). Tried in order: <directory>/<path>,
/// <directory>/scripts/<path>, <library>/<path>, <library>/scripts/<path>.
ScriptSet LoadScripts(const std::string& path, std::string text, const LoadOptions& options,
                      SourceLoader* loader, Diagnostics* diagnostics);

/// The places an import is looked for, in order, as paths for SourceLoader::Load.
std::vector<std::string> ImportCandidates(const Import& import, const LoadOptions& options);

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/load_scripts.h"

#include <algorithm>
#include <map>

#include "compiler/parse/parser.h"
#include "compiler/parse/source_path.h"

namespace heddle::compiler {
namespace {

class Loader {
 public:
  Loader(const LoadOptions& options, SourceLoader* loader, Diagnostics* diagnostics)
      : options_(options), loader_(*loader), diagnostics_(*diagnostics) {}

  ScriptSet Load(const std::string& path, std::string text) {
    files_[JoinPath("", path)] = 0;
    set_.files.push_back(Parse(path, std::move(text), &diagnostics_));
    // Files that are added on the way have their turn later; a file met again is not read again.
    for (size_t i = 0; i < set_.files.size(); ++i) LoadImports(i);
    return std::move(set_);
  }

 private:
  void LoadImports(size_t importer) {
    std::map<std::string, const Import*> bound;
    for (size_t i = 0; i < set_.files[importer].imports.size(); ++i) {
      const int32_t file = LoadImport(set_.files[importer], set_.files[importer].imports[i]);
      Import& import = set_.files[importer].imports[i];
      import.file = file;
      if (file < 0) continue;
      const auto [first, is_new] = bound.emplace(import.name_space, &import);
      if (is_new || first->second->file == file) continue;
      diagnostics_
          .Error(set_.files[importer].path, import.range,
                 fmt::format("the namespace '{}' is bound to two files", import.name_space))
          .notes.push_back(fmt::format("on line {} it is bound to {}, here to {}",
                                       first->second->range.begin.line, set_.files[first->second->file].path,
                                       set_.files[file].path));
    }
  }

  // Index of the file, or -1 after reporting why there is none. May add a file.
  int32_t LoadImport(const ScriptFile& importer, const Import& import) {
    const std::vector<std::string> candidates = ImportCandidates(import, options_);
    for (const std::string& candidate : candidates) {
      if (const auto known = files_.find(candidate); known != files_.end()) return known->second;
      Result<std::string> text = loader_.Load(candidate);
      if (text.ok()) {
        const auto index = static_cast<int32_t>(set_.files.size());
        files_[candidate] = index;
        set_.files.push_back(Parse(candidate, *std::move(text), &diagnostics_));
        return index;
      }
      if (text.status().code() != StatusCode::kNotFound) {
        diagnostics_.Error(importer.path, import.range, text.status().message()).notes =
            text.status().notes();
        return -1;
      }
    }
    Diagnostic& diagnostic = diagnostics_.Error(importer.path, import.range,
                                                fmt::format("cannot source '{}': no such file", import.path));
    for (const std::string& candidate : candidates) diagnostic.notes.push_back("tried " + candidate);
    return -1;
  }

  const LoadOptions& options_;
  SourceLoader& loader_;
  Diagnostics& diagnostics_;
  ScriptSet set_;
  std::map<std::string, int32_t> files_;
};

}  // namespace

std::vector<std::string> ImportCandidates(const Import& import, const LoadOptions& options) {
  std::vector<std::string> candidates;
  const auto add = [&](const std::string& candidate) {
    if (std::find(candidates.begin(), candidates.end(), candidate) == candidates.end())
      candidates.push_back(candidate);
  };
  add(JoinPath(import.directory, import.path));
  if (!import.path.empty() && import.path.front() == '/') return candidates;
  add(JoinPath(import.directory, JoinPath("scripts", import.path)));
  if (!options.library_directory.empty()) {
    add(JoinPath(options.library_directory, import.path));
    add(JoinPath(options.library_directory, JoinPath("scripts", import.path)));
  }
  return candidates;
}

ScriptSet LoadScripts(const std::string& path, std::string text, const LoadOptions& options,
                      SourceLoader* loader, Diagnostics* diagnostics) {
  return Loader(options, loader, diagnostics).Load(path, std::move(text));
}

}  // namespace heddle::compiler

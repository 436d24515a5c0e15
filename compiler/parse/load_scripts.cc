// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/load_scripts.h"

#include <algorithm>

#include "compiler/library/library_files.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/source_path.h"
#include "core/call_site.h"

namespace heddle::compiler {
namespace {

constexpr std::string_view kScripts = "scripts/";

void AddOnce(const std::string& candidate, std::vector<std::string>* candidates) {
  if (std::find(candidates->begin(), candidates->end(), candidate) == candidates->end())
    candidates->push_back(candidate);
}

// A path in a message, which is one line.
std::string OneLine(const std::string& path) {
  std::string line;
  for (const char c : path) line += c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  return line;
}

// What a path of source() means in the library of Heddle, whose functions are in rooms: "builtin/lm.dml" is
// SystemDS's path of lm().
const LibraryFile* FindSourcedFile(std::string_view path) {
  constexpr std::string_view kBuiltin = "builtin/", kSuffix = ".dml";
  if (!path.starts_with(kBuiltin) || !path.ends_with(kSuffix)) return FindLibraryFile(path);
  path.remove_prefix(kBuiltin.size());
  path.remove_suffix(kSuffix.size());
  return FindLibraryFunction(path);
}

bool IsBelow(const std::string& path, const std::string& folder) {
  const std::string prefix = JoinPath(folder, "x");
  return path.starts_with(prefix.substr(0, prefix.size() - 1));
}

}  // namespace

void ScriptLoader::LoadMain(const std::string& path, std::string text, bool takes_expressions) {
  Add(JoinPath("", path), std::move(text), takes_expressions);
  set_.files[0].path = path;
  set_.files[0].is_library = false;
  // Files that are added on the way have their turn later; a file met again is not read again.
  while (complete_ < set_.files.size()) LoadImports(complete_++);
}

std::optional<int32_t> ScriptLoader::LoadLibraryFunction(const std::string& name, const SourcePosition& call,
                                                         bool from_library) {
  const LibraryFile* const own = from_library ? FindLibraryFunction(name) : nullptr;
  const auto [known, is_new] = library_functions_.try_emplace({name, own != nullptr});
  if (!is_new) return known->second;
  const size_t reported = diagnostics_.size();
  const std::vector<std::string> candidates =
      own != nullptr ? std::vector{LibraryPath(*own)} : LibraryCandidates(name, options_);
  for (const std::string& candidate : candidates) {
    if (const auto file = files_.find(candidate); file != files_.end()) {
      known->second = file->second;
      break;
    }
    Result<std::string> text = Load(candidate);
    if (text.ok()) {
      known->second = Add(candidate, *std::move(text));
      break;
    }
    if (text.status().code() == StatusCode::kNotFound) continue;
    diagnostics_.Error(candidate, {}, text.status().message()).notes = text.status().notes();
    known->second = AddBroken(candidate);
    break;
  }
  if (!known->second) return std::nullopt;
  set_.files[static_cast<size_t>(*known->second)].is_library = true;
  const std::optional<int32_t> file = known->second;
  while (complete_ < set_.files.size()) LoadImports(complete_++);
  diagnostics_.AddNotes(reported, {fmt::format("in the file of {}(), called at {}", name, call.ToString())});
  return file;
}

int32_t ScriptLoader::AddWritten(const std::string& path, std::string text, std::vector<Import> imports) {
  const auto index = static_cast<int32_t>(set_.files.size());
  set_.files.push_back(Parse(path, std::move(text), &diagnostics_));
  set_.files.back().imports = std::move(imports);
  set_.files.back().is_library = true;
  complete_ = set_.files.size();
  return index;
}

int32_t ScriptLoader::Add(const std::string& path, std::string text, bool takes_expressions) {
  const auto index = static_cast<int32_t>(set_.files.size());
  files_[path] = index;
  const size_t errors = diagnostics_.errors();
  set_.files.push_back(Parse(path, std::move(text), &diagnostics_, takes_expressions));
  set_.files.back().has_errors = diagnostics_.errors() > errors;
  set_.files.back().is_library =
      path.starts_with(kLibraryPrefix) ||
      std::any_of(options_.libraries.begin(), options_.libraries.end(),
                  [&](const std::string& library) { return IsBelow(path, library); });
  return index;
}

// The text of a file of the user, of a library folder, or of the library that is part of Heddle.
Result<std::string> ScriptLoader::Load(const std::string& candidate) {
  if (!candidate.starts_with(kLibraryPrefix)) return loader_.Load(candidate);
  const LibraryFile* const file = FindLibraryPath(candidate);
  if (file == nullptr) return NotFound("no such file");
  if (options_.library_fingerprint != 0 && options_.library_fingerprint != LibraryFingerprint())
    return FailedPrecondition(
               "the script calls functions of the library, and the master's is of another version")
        .WithNote("'heddle version' tells versions: client and master must be the same");
  return std::string(file->text);
}

int32_t ScriptLoader::AddBroken(const std::string& path) {
  files_[path] = static_cast<int32_t>(set_.files.size());
  set_.files.emplace_back();
  set_.files.back().path = path;
  set_.files.back().has_errors = true;
  return files_[path];
}

void ScriptLoader::LoadImports(size_t importer) {
  std::map<std::string, const Import*> bound;
  for (Import& import : set_.files[importer].imports) {
    import.file = LoadImport(set_.files[importer], import);
    if (import.file < 0) continue;
    const auto [first, is_new] = bound.emplace(import.name_space, &import);
    if (is_new || first->second->file == import.file) continue;
    diagnostics_
        .Error(set_.files[importer].path, import.range,
               fmt::format("the namespace '{}' is bound to two files", import.name_space))
        .notes.push_back(fmt::format("on line {} it is bound to {}, here to {}",
                                     first->second->range.begin.line,
                                     set_.files[static_cast<size_t>(first->second->file)].path,
                                     set_.files[static_cast<size_t>(import.file)].path));
  }
}

// Index of the file, or -1 after reporting why there is none. May add a file.
int32_t ScriptLoader::LoadImport(const ScriptFile& importer, const Import& import) {
  std::vector<std::string> tried;
  for (const std::string& candidate : ImportCandidates(import, options_)) {
    if (const auto known = files_.find(candidate); known != files_.end()) return known->second;
    Result<std::string> text = Load(candidate);
    if (text.ok()) return Add(candidate, *std::move(text));
    if (text.status().code() != StatusCode::kNotFound) {
      diagnostics_.Error(importer.path, import.range, text.status().message()).notes = text.status().notes();
      return -1;
    }
    tried.push_back(fmt::format("tried {}{}", OneLine(candidate),
                                text.status().notes().empty() ? "" : ": " + text.status().notes()[0]));
  }
  Diagnostic& diagnostic = diagnostics_.Error(
      importer.path, import.range, fmt::format("cannot source '{}': no such file", OneLine(import.path)));
  diagnostic.notes = std::move(tried);
  return -1;
}

std::vector<std::string> ImportCandidates(const Import& import, const LoadOptions& options) {
  std::vector<std::string> candidates;
  if (import.path.starts_with(kLibraryPrefix)) return {import.path};
  AddOnce(JoinPath(import.directory, import.path), &candidates);
  if (!import.path.empty() && import.path.front() == '/') return candidates;
  AddOnce(JoinPath(import.directory, JoinPath("scripts", import.path)), &candidates);
  for (const std::string& library : options.libraries) {
    AddOnce(JoinPath(library, import.path), &candidates);
    AddOnce(JoinPath(library, JoinPath("scripts", import.path)), &candidates);
    if (import.path.starts_with(kScripts))
      AddOnce(JoinPath(library, import.path.substr(kScripts.size())), &candidates);
  }
  std::string path = JoinPath("", import.path);
  if (path.starts_with(kScripts)) path = path.substr(kScripts.size());
  if (const LibraryFile* const file = FindSourcedFile(path)) candidates.push_back(LibraryPath(*file));
  return candidates;
}

std::vector<std::string> LibraryCandidates(const std::string& name, const LoadOptions& options) {
  const std::string file = name + ".dml";
  std::vector<std::string> candidates;
  AddOnce("scripts/builtin/" + file, &candidates);
  for (const std::string& library : options.libraries) {
    AddOnce(JoinPath(library, "builtin/" + file), &candidates);
    AddOnce(JoinPath(library, file), &candidates);
    AddOnce(JoinPath(library, "scripts/builtin/" + file), &candidates);
  }
  if (const LibraryFile* const own = FindLibraryFunction(name)) candidates.push_back(LibraryPath(*own));
  return candidates;
}

}  // namespace heddle::compiler

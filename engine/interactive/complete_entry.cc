// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/complete_entry.h"

#include <algorithm>
#include <filesystem>

#include "compiler/editor/complete.h"
#include "engine/interactive/complete_files.h"

namespace heddle::engine {
namespace {

// Functions of library folders; those of Heddle's own library are known to the compiler.
std::vector<std::string> LibraryNames(const InteractiveSession& session) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::vector<std::string> folders = {"scripts/builtin"};
  for (const std::string& library : session.libraries())
    folders.insert(folders.end(), {library, library + "/builtin", library + "/scripts/builtin"});
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".dml") names.push_back(entry->path().stem().string());
  }
  return names;
}

compiler::KnownNames NamesOf(const InteractiveSession& session) {
  compiler::KnownNames known;
  for (const auto& [name, variable] : session.variables().variables()) known.variables.push_back(name);
  for (const Definitions::FunctionHead& head : session.definitions().functions())
    known.functions.push_back(head.name);
  known.name_spaces = session.definitions().name_spaces();
  known.library = LibraryNames(session);
  known.members = [&session](std::string_view name_space) { return session.FunctionsOf(name_space); };
  known.parameters = [&session](std::string_view function) -> std::vector<std::string> {
    for (const Definitions::FunctionHead& head : session.definitions().functions())
      if (head.name == function) return head.parameters;
    return {};
  };
  known.files = [](std::string_view path) { return FilesBeginningWith(path, ""); };
  return known;
}

}  // namespace

std::string Completions::Common() const {
  if (words.empty()) return "";
  std::string common = words.front();
  for (const std::string& word : words) {
    size_t same = 0;
    while (same < std::min(common.size(), word.size()) && common[same] == word[same]) ++same;
    common.resize(same);
  }
  return common;
}

Completions CompleteEntry(std::string_view text, const InteractiveSession& session) {
  const compiler::WritingContext context = compiler::ContextAtEnd(text);
  Completions found;
  found.begin = context.begin;
  for (compiler::Candidate& candidate : compiler::Complete(text, context, NamesOf(session)))
    found.words.push_back(std::move(candidate.text));
  std::sort(found.words.begin(), found.words.end());
  return found;
}

}  // namespace heddle::engine

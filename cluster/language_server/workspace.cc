// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/workspace.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "compiler/library/library_files.h"
#include "core/call_site.h"
#include "ops/io/files/files.h"

namespace heddle::cluster {
namespace {

namespace fs = std::filesystem;

// Scripts below the folder of a workspace that are looked at for references; in more, those that are open
// alone.
constexpr size_t kMostScripts = 2000;
// Files and folders that are looked at on the way: the folder may be a home directory.
constexpr size_t kMostEntries = 50'000;

}  // namespace

Workspace::Workspace(LanguageServerSettings settings) : settings_(std::move(settings)) {
  SetRoot(settings_.check.root);
}

void Workspace::SetRoot(const std::string& root) {
  settings_.check.root = root;
  load_.libraries = settings_.check.compile.libraries;
  loader_ = std::make_unique<DocumentLoader>(documents_, root, root);
  scripts_ = std::make_unique<compiler::Scripts>(
      loader_.get(), &load_, [this](const std::string& path) { return loader_->WholePath(path); });
}

void Workspace::ReadSettings(const Json& settings) {
  if (const Json* const width = FindMember(settings, {"width"});
      width != nullptr && width->is_number_integer())
    settings_.format.width = static_cast<int32_t>(
        std::clamp<int64_t>(width->get<int64_t>(), compiler::kLeastFormatWidth, compiler::kMostFormatWidth));
  if (const Json* const libraries = FindMember(settings, {"libraries"});
      libraries != nullptr && libraries->is_array()) {
    std::vector<std::string>& folders = settings_.check.compile.libraries;
    folders.clear();
    for (const Json& folder : *libraries)
      if (folder.is_string()) folders.push_back(folder.get<std::string>());
    load_.libraries = folders;
  }
  if (const Json* const arguments = FindMember(settings, {"arguments"});
      arguments != nullptr && arguments->is_object()) {
    settings_.check.compile.arguments.clear();
    for (const auto& [name, value] : arguments->items())
      settings_.check.compile.arguments[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

void Workspace::Open(const std::string& address, int64_t version, std::string text) {
  documents_[PathOf(address)] = {address, version, std::make_shared<const std::string>(std::move(text))};
}

void Workspace::Close(const std::string& path) { documents_.erase(path); }

const OpenDocument* Workspace::Find(const std::string& path) const {
  const auto found = documents_.find(path);
  return found == documents_.end() ? nullptr : &found->second;
}

compiler::Scripts* Workspace::ScriptsFor(const std::string& path) {
  loader_->MoveTo(documents_, fs::path(path).parent_path().string());
  return scripts_.get();
}

compiler::ScriptViewPointer Workspace::View(const std::string& path) {
  const OpenDocument* const document = Find(path);
  return document == nullptr ? nullptr : ScriptsFor(path)->View(path, *document->text);
}

std::vector<compiler::ScriptViewPointer> Workspace::All() {
  std::vector<std::string> paths;
  for (const auto& [path, document] : documents_) paths.push_back(path);
  const std::string& root = settings_.check.root;
  std::error_code error;
  fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied, error), end;
  for (size_t looked_at = 0;
       !root.empty() && !error && entry != end && paths.size() < kMostScripts && looked_at < kMostEntries;
       entry.increment(error), ++looked_at) {
    std::error_code ignored;
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) {
      if (entry->is_directory(ignored)) entry.disable_recursion_pending();
    } else if (entry->path().extension() == ".dml" && entry->is_regular_file(ignored) &&
               !documents_.contains(entry->path().string())) {
      paths.push_back(entry->path().string());
    }
  }
  std::vector<compiler::ScriptViewPointer> views;
  for (const std::string& path : paths)
    if (compiler::ScriptViewPointer view = ScriptsFor(path)->Find(path)) views.push_back(std::move(view));
  return views;
}

std::string Workspace::Address(const std::string& path) const {
  if (const OpenDocument* const document = Find(path)) return document->address;
  const compiler::LibraryFile* const file = compiler::FindLibraryPath(path);
  if (file == nullptr) return path.starts_with('/') ? AddressOf(path) : "";
  if (settings_.library_folder.empty()) return "";
  const fs::path place = fs::path(settings_.library_folder) / file->path;
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  const std::unique_ptr<ops::Files> files = ops::MakeFiles(settings_.library_folder);
  if (!fs::exists(place, error) && !files->Replace(place.string(), file->text).ok()) return "";
  return AddressOf(place.string());
}

}  // namespace heddle::cluster

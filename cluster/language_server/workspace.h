// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/language_server/checker.h"
#include "cluster/language_server/open_documents.h"
#include "compiler/editor/format_script.h"
#include "compiler/editor/scripts.h"

namespace heddle::cluster {

/// What the command line and the editor say of a session.
struct LanguageServerSettings {
  CheckSettings check;
  compiler::FormatOptions format;
  int64_t min_distributed_bytes = 0;  ///< HoverOptions
  std::string library_folder;         ///< Where functions of the library are shown as files; "": nowhere.
};

/// The scripts of a session: the open ones, those that they source, and those below the folder of the
/// workspace. One thread.
class Workspace {
 public:
  explicit Workspace(LanguageServerSettings settings);

  /// The folder of the workspace, where relative paths of scripts begin; before anything is opened.
  void SetRoot(const std::string& root);
  /// "width", "libraries" and "arguments" of what an editor sends; anything else in it is passed over.
  void ReadSettings(const Json& settings);

  void Open(const std::string& address, int64_t version, std::string text);
  void Close(const std::string& path);
  const OpenDocument* Find(const std::string& path) const;
  const OpenDocuments& documents() const { return documents_; }
  const LanguageServerSettings& settings() const { return settings_; }

  /// An open document as it is now; nullptr: it is not open.
  compiler::ScriptViewPointer View(const std::string& path);
  /// Finds other scripts as the script at `path` would.
  compiler::Scripts* ScriptsFor(const std::string& path);
  /// All scripts of the workspace, open or on disk, as far as there are not too many.
  std::vector<compiler::ScriptViewPointer> All();
  /// The address of a script; one of the library is put into a file first. "" where that cannot be done.
  std::string Address(const std::string& path) const;

  compiler::TextLines::Units units = compiler::TextLines::Units::kUtf16;

 private:
  LanguageServerSettings settings_;
  OpenDocuments documents_;
  compiler::LoadOptions load_;
  std::unique_ptr<DocumentLoader> loader_;
  std::unique_ptr<compiler::Scripts> scripts_;
};

}  // namespace heddle::cluster

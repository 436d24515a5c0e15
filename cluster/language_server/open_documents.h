// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/language_server/protocol_values.h"
#include "compiler/parse/source_loader.h"

namespace heddle::cluster {

/// A text that an editor has open.
struct OpenDocument {
  std::string address;  ///< As the editor names it.
  int64_t version = 0;
  std::shared_ptr<const std::string> text;
};

/// The texts of an editor, by path (PathOf()). Copies are cheap: they share the texts.
using OpenDocuments = std::map<std::string, OpenDocument>;

/// Applies one change of textDocument/didChange. False where it is malformed; the text stays.
bool ApplyChange(const Json& change, compiler::TextLines::Units units, std::string* text);

/// Reads scripts for the compiler: open documents, else files. Relative paths are looked for in the folder of
/// the workspace, where `heddle run` would be called, then beside the script. One thread.
class DocumentLoader : public compiler::SourceLoader {
 public:
  DocumentLoader(OpenDocuments documents, std::string root, std::string beside);
  /// Other texts, and the folder of another script.
  void MoveTo(OpenDocuments documents, std::string beside);
  Result<std::string> Load(const std::string& path) override;
  std::string LoadMetadata(const std::string& path) override;
  std::string LoadNames(const std::string& path) override;
  /// The absolute path of what Load() would give; `path` itself where there is nothing.
  std::string WholePath(const std::string& path) const;

 private:
  std::vector<std::string> Places(const std::string& path) const;

  OpenDocuments documents_;
  const std::string root_;
  std::string beside_;
  compiler::FileSourceLoader files_;
};

}  // namespace heddle::cluster

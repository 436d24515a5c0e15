// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/open_documents.h"

#include <filesystem>
#include <utility>

#include "compiler/parse/source_path.h"

namespace heddle::cluster {

bool ApplyChange(const Json& change, compiler::TextLines::Units units, std::string* text) {
  const std::optional<std::string> replacement = FindText(change, {"text"});
  if (!replacement) return false;
  const Json* const range = FindMember(change, {"range"});
  if (range == nullptr) {
    *text = *replacement;
    return true;
  }
  const auto begin = ReadPlace(FindMember(*range, {"start"}));
  const auto end = ReadPlace(FindMember(*range, {"end"}));
  if (!begin || !end) return false;
  const compiler::TextLines lines(*text);
  const size_t from = lines.OffsetOf(*begin, units);
  const size_t to = lines.OffsetOf(*end, units);
  if (to < from) return false;
  text->replace(from, to - from, *replacement);
  return true;
}

DocumentLoader::DocumentLoader(OpenDocuments documents, std::string root, std::string beside)
    : documents_(std::move(documents)), root_(std::move(root)), beside_(std::move(beside)), files_(root_) {}

void DocumentLoader::MoveTo(OpenDocuments documents, std::string beside) {
  documents_ = std::move(documents);
  beside_ = std::move(beside);
}

std::vector<std::string> DocumentLoader::Places(const std::string& path) const {
  if (path.starts_with('/')) return {path};
  std::vector<std::string> places = {compiler::JoinPath(root_, path)};
  if (beside_ != root_) places.push_back(compiler::JoinPath(beside_, path));
  return places;
}

Result<std::string> DocumentLoader::Load(const std::string& path) {
  for (const std::string& place : Places(path)) {
    if (const auto open = documents_.find(place); open != documents_.end()) return *open->second.text;
    Result<std::string> text = files_.Load(place);
    if (text.ok() || text.status().code() != StatusCode::kNotFound) return text;
  }
  return NotFound("no such file");
}

std::string DocumentLoader::LoadMetadata(const std::string& path) {
  for (const std::string& place : Places(path))
    if (std::string text = files_.LoadMetadata(place); !text.empty()) return text;
  return "";
}

std::string DocumentLoader::LoadNames(const std::string& path) {
  for (const std::string& place : Places(path))
    if (std::string text = files_.LoadNames(place); !text.empty()) return text;
  return "";
}

std::string DocumentLoader::WholePath(const std::string& path) const {
  for (const std::string& place : Places(path)) {
    std::error_code error;
    if (documents_.contains(place) || std::filesystem::exists(place, error)) return place;
  }
  return path;
}

}  // namespace heddle::cluster

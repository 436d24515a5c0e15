// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/source_loader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "compiler/parse/parser.h"
#include "compiler/parse/source_path.h"

namespace heddle::compiler {
namespace {

constexpr int64_t kPieceBytes = 64 << 10;
constexpr size_t kMostMetadataBytes = size_t{1} << 20;

}  // namespace

std::string JoinPath(const std::string& directory, const std::string& path) {
  // An absolute path replaces what stands before it.
  const std::string joined = (std::filesystem::path(directory) / path).lexically_normal().string();
  return joined.empty() ? path : joined;
}

Result<std::string> FileSourceLoader::Load(const std::string& path) {
  const std::string place = JoinPath(directory_, path);
  std::error_code error;
  const auto status = std::filesystem::status(place, error);
  if (!std::filesystem::exists(status)) return NotFound("script not found: {}", place);
  if (std::filesystem::is_directory(status)) return NotFound("not a script but a directory: {}", place);
  std::ifstream stream(place, std::ios::binary);
  std::string text;
  // A device may never end: what is longer than a script may be is refused by its length alone.
  while (stream && text.size() <= kMostScriptBytes) {
    const size_t before = text.size();
    text.resize(before + kPieceBytes);
    stream.read(text.data() + before, kPieceBytes);
    text.resize(before + static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad() || (!stream && !stream.eof())) {
    return PermissionDenied("script cannot be read: {} ({})", place, std::strerror(errno));
  }
  return text;
}

std::string FileSourceLoader::LoadMetadata(const std::string& path) {
  // A pipe of that name would be waited for, and what is longer describes nothing.
  std::error_code error;
  const std::string place = JoinPath(directory_, path);
  if (!std::filesystem::is_regular_file(place, error)) return "";
  if (std::filesystem::file_size(place, error) > kMostMetadataBytes || error) return "";
  const Result<std::string> text = Load(path);
  return text.ok() ? *text : "";
}

std::string FileSourceLoader::LoadNames(const std::string& path) {
  const std::string text = LoadMetadata(path);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  std::set<std::string_view> names;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() && is_part(text[end])) ++end;
    if (end > begin && is_letter(text[begin]))
      names.insert(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
  }
  std::string lines;
  for (const std::string_view name : names) lines.append(name).push_back('\n');
  return lines;
}

Result<std::string> MemorySourceLoader::Load(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("script not found among those of the job: {}", path);
  return found->second;
}

std::string MemorySourceLoader::LoadMetadata(const std::string& path) {
  const auto found = files_.find(path);
  return found == files_.end() ? "" : found->second;
}

std::string MemorySourceLoader::LoadNames(const std::string& path) { return LoadMetadata(PathOfNames(path)); }

}  // namespace heddle::compiler

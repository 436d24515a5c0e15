// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/source_loader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "compiler/parse/parser.h"
#include "compiler/parse/source_path.h"
#include "ops/io/files/script_paths.h"

namespace heddle::compiler {
namespace {

constexpr size_t kPieceBytes = 64 << 10;
constexpr size_t kMostMetadataBytes = size_t{1} << 20;

}  // namespace

std::string JoinPath(const std::string& directory, const std::string& path) {
  // An absolute path replaces what stands before it.
  const std::string joined = (std::filesystem::path(directory) / path).lexically_normal().string();
  return joined.empty() ? path : joined;
}

FileSourceLoader::FileSourceLoader(const std::string& directory, ops::FileRoots roots)
    : directory_(directory), paths_(std::make_unique<ops::ScriptPaths>(directory, std::move(roots))) {}
FileSourceLoader::~FileSourceLoader() = default;

Result<std::string> FileSourceLoader::Read(const std::string& path, size_t most_bytes,
                                           bool only_ordinary) const {
  const std::string place = JoinPath(directory_, path);
  const Result<ops::FilePlace> found = paths_->Find(place, ops::ScriptPaths::Use::kRead);
  if (!found.ok())
    return found.status().code() == StatusCode::kNotFound ? NotFound("script not found: {}", place)
                                                          : found.status();
  struct stat status {};
  if (!found->Look(&status)) return NotFound("script not found: {}", place);
  if (S_ISDIR(status.st_mode)) return NotFound("script not found: {}", place).WithNote("it is a directory");
  // A pipe would be waited for.
  if (only_ordinary && !S_ISREG(status.st_mode))
    return PermissionDenied("script cannot be read: {} (no ordinary file)", place);
  const Descriptor file(found->Open(O_RDONLY | O_NOCTTY));
  if (!file.ok()) return PermissionDenied("script cannot be read: {} ({})", place, std::strerror(errno));
  std::string text;
  // A device may never end: what is longer than a script may be is refused by its length alone.
  while (text.size() <= most_bytes) {
    const size_t before = text.size();
    text.resize(before + kPieceBytes);
    const ssize_t got = read(file.get(), text.data() + before, kPieceBytes);
    text.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR)
      return PermissionDenied("script cannot be read: {} ({})", place, std::strerror(errno));
  }
  return text;
}

Result<std::string> FileSourceLoader::Load(const std::string& path) {
  return Read(path, kMostScriptBytes, /*only_ordinary=*/false);
}

std::string FileSourceLoader::LoadMetadata(const std::string& path) {
  const Result<std::string> text = Read(path, kMostMetadataBytes, /*only_ordinary=*/true);
  // What is longer describes nothing.
  return text.ok() && text->size() <= kMostMetadataBytes ? *text : "";
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

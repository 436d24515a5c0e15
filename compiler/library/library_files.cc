// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/library_files.h"

#include <algorithm>
#include <map>

#include "core/call_site.h"
#include "core/hash.h"

namespace heddle::compiler {
namespace {

// Files of these are sourced, by scripts or by other files of the library.
constexpr std::string_view kSourcedFolders[] = {"nn/", "pipelines/scripts/", "checks/"};
constexpr std::string_view kSuffix = ".dml";

std::map<std::string_view, const LibraryFile*> FilesByFunction() {
  std::map<std::string_view, const LibraryFile*> files;
  for (const LibraryFile& file : LibraryFiles())
    if (const std::string_view name = FunctionOf(file); !name.empty()) files.emplace(name, &file);
  return files;
}

}  // namespace

const LibraryFile* FindLibraryFile(std::string_view path) {
  const std::span<const LibraryFile> files = LibraryFiles();
  const auto found =
      std::lower_bound(files.begin(), files.end(), path,
                       [](const LibraryFile& file, std::string_view p) { return file.path < p; });
  return found != files.end() && found->path == path ? &*found : nullptr;
}

const LibraryFile* FindLibraryFunction(std::string_view name) {
  static const auto* const files = new std::map<std::string_view, const LibraryFile*>(FilesByFunction());
  const auto found = files->find(name);
  return found == files->end() ? nullptr : found->second;
}

std::string_view FunctionOf(const LibraryFile& file) {
  for (const std::string_view folder : kSourcedFolders)
    if (file.path.starts_with(folder)) return "";
  const std::string_view name = file.path.substr(file.path.rfind('/') + 1);
  return name.substr(0, name.size() - kSuffix.size());
}

std::vector<std::string> LibraryFunctionNames() {
  std::vector<std::string> names;
  for (const LibraryFile& file : LibraryFiles())
    if (const std::string_view name = FunctionOf(file); !name.empty()) names.emplace_back(name);
  return names;
}

std::string LibraryPath(const LibraryFile& file) {
  return std::string(kLibraryPrefix) + std::string(file.path);
}

const LibraryFile* FindLibraryPath(std::string_view path) {
  return path.starts_with(kLibraryPrefix) ? FindLibraryFile(path.substr(kLibraryPrefix.size())) : nullptr;
}

uint64_t LibraryFingerprint() {
  static const uint64_t fingerprint = [] {
    uint64_t hash = 0;
    for (const LibraryFile& file : LibraryFiles()) hash = FoldHash(FoldHash(hash, file.path), file.text);
    return hash;
  }();
  return fingerprint;
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/folder_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/text/natural_order.h"
#include "ops/io/files/replacement.h"

namespace heddle::ops {

Result<FolderParts> FolderParts::Open(const FilePlace& place, const std::string& path) {
  Descriptor folder(place.Open(O_RDONLY | O_DIRECTORY));
  if (!folder.ok()) return FileError("list", path);
  DIR* const directory = fdopendir(folder.get());
  if (directory == nullptr) return FileError("list", path);
  folder.Release();
  std::vector<std::string> names;
  while (const dirent* entry = readdir(directory)) names.emplace_back(entry->d_name);
  closedir(directory);
  FolderParts parts(path);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::sort(names.begin(), names.end(), ComesBefore);
  parts.names_ = std::move(names);
  return parts;
}

Result<FilePlace> FolderParts::Find(const std::string& name, const ScriptPaths& paths,
                                    ScriptPaths::Use use) const {
  return paths.Find(path_ + "/" + name, use);
}

}  // namespace heddle::ops

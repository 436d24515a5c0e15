// SPDX-License-Identifier: Apache-2.0
#include "engine/interactive/complete_files.h"

#include <filesystem>

namespace heddle::engine {

std::vector<std::string> FilesBeginningWith(std::string_view path, const std::string& directory) {
  namespace fs = std::filesystem;
  const size_t slash = path.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const fs::path place = fs::path(directory) / folder;
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(place.empty() ? "." : place, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(name) || (name.empty() && file.starts_with('.'))) continue;
    std::error_code ignored;
    paths.push_back(folder + file + (entry->is_directory(ignored) ? "/" : ""));
  }
  return paths;
}

}  // namespace heddle::engine

// SPDX-License-Identifier: Apache-2.0
#include "cluster/cli/find_scripts.h"

#include <algorithm>
#include <filesystem>

namespace heddle::cluster::cli {

Result<std::vector<std::string>> FindScripts(const std::string& folder, std::string_view asked_by) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return NotFound("{}: there is no folder '{}'", asked_by, folder);
  std::vector<std::string> paths;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename().string().starts_with(".")) {
      if (entry->is_directory(ignored)) entry.disable_recursion_pending();
      continue;
    }
    if (entry->path().extension() == ".dml" && entry->is_regular_file(ignored))
      paths.push_back(entry->path().lexically_relative(folder).string());
  }
  if (error) return NotFound("cannot look into '{}': {}", folder, error.message());
  if (paths.empty()) return NotFound("{}: there is no .dml file in '{}'", asked_by, folder);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace heddle::cluster::cli

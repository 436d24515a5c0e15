// SPDX-License-Identifier: Apache-2.0
#include "compiler/parse/source_loader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/parse/source_path.h"

namespace heddle::compiler {

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
  std::ostringstream text;
  if (!stream || (stream.peek() != std::ifstream::traits_type::eof() && !(text << stream.rdbuf()))) {
    return PermissionDenied("script cannot be read: {} ({})", place, std::strerror(errno));
  }
  return text.str();
}

Result<std::string> MemorySourceLoader::Load(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end()) return NotFound("script not found among those of the job: {}", path);
  return found->second;
}

}  // namespace heddle::compiler

// SPDX-License-Identifier: Apache-2.0
#include "ops/io/formats/libraries/format_module.h"

#include <dlfcn.h>

#include <filesystem>

namespace heddle::ops {

Result<const void*> OpenFormatModule(const std::string& name, const std::string& symbol) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  if (error) return Unavailable("where this program lies is unknown: {}", error.message());
  const fs::path folder = executable.parent_path();
  const std::string file_name = "lib" + name + ".so";
  for (const fs::path& place : {folder, folder.parent_path(), folder.parent_path() / "lib" / "heddle"}) {
    const fs::path file = place / file_name;
    if (!fs::exists(file, error)) continue;
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return Unavailable("{}", dlerror());
    using OpenModule = const void* (*)(int32_t abi);
    const auto open = reinterpret_cast<OpenModule>(dlsym(library, symbol.c_str()));
    const void* const functions = open == nullptr ? nullptr : open(kFormatModuleAbi);
    if (functions == nullptr) return Unavailable("{} belongs to another version", file.string());
    return functions;
  }
  return NotFound("{} is not beside {}", file_name, executable.string());
}

Result<const Hdf5Module*> OpenHdf5Module() {
  static const auto* const found = new Result<const void*>(OpenFormatModule("heddle_hdf5", "HeddleOpenHdf5"));
  if (!found->ok()) return found->status();
  return static_cast<const Hdf5Module*>(**found);
}

Result<const MatModule*> OpenMatModule() {
  static const auto* const found = new Result<const void*>(OpenFormatModule("heddle_mat", "HeddleOpenMat"));
  if (!found->ok()) return found->status();
  return static_cast<const MatModule*>(**found);
}

Result<const ArrowModule*> OpenArrowModule() {
  static const auto* const found =
      new Result<const void*>(OpenFormatModule("heddle_arrow", "HeddleOpenArrow"));
  if (!found->ok()) return found->status();
  return static_cast<const ArrowModule*>(**found);
}

}  // namespace heddle::ops

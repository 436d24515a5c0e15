// SPDX-License-Identifier: Apache-2.0
#include "core/environment/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace heddle {
namespace {

namespace fs = std::filesystem;

// The first bytes of a program or library, which the loader maps together with its program headers.
bool IsProgram(const void* base) {
  const auto* const head = static_cast<const ElfW(Ehdr)*>(base);
  return getauxval(AT_PHDR) == reinterpret_cast<uintptr_t>(base) + head->e_phoff;
}

// The file that the code of this function was loaded from. dladdr knows a program only by the name with which
// it was started, which need not be a path.
Result<fs::path> OwnFile() {
  Dl_info info{};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&OwnFile), &info) == 0 || info.dli_fbase == nullptr)
    return Unavailable("where Heddle's library lies is unknown");
  fs::path file = IsProgram(info.dli_fbase) ? fs::read_symlink("/proc/self/exe", error)
                                            : fs::canonical(info.dli_fname, error);
  if (error) return Unavailable("where Heddle's library lies is unknown: {}", error.message());
  return file;
}

// Whether a file may be taken for one that was installed with this program: whoever can write into the folder
// above it must not be able to put code into its process.
bool IsTrusted(const fs::path& file, const fs::path& own) {
  struct stat of_file {
  }, of_own{};
  if (stat(file.c_str(), &of_file) != 0 || stat(own.c_str(), &of_own) != 0) return false;
  return of_file.st_uid == 0 || of_file.st_uid == geteuid() || of_file.st_uid == of_own.st_uid;
}

}  // namespace

Result<std::string> FindInstalled(std::string_view file_name) {
  HEDDLE_ASSIGN_OR_RETURN(const fs::path own, OwnFile());
  const fs::path folder = own.parent_path();
  for (const fs::path& place : {folder, folder.parent_path(), folder.parent_path() / "lib" / "heddle"}) {
    const fs::path file = place / file_name;
    if (IsTrusted(file, own)) return file.string();
  }
  return NotFound("{} is not beside {}", file_name, own.string());
}

Result<const void*> OpenModule(std::string_view file_name, const char* symbol, int32_t abi) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string file, FindInstalled(file_name));
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Unavailable("{}", dlerror());
  using Open = const void* (*)(int32_t abi);
  const auto open = reinterpret_cast<Open>(dlsym(library, symbol));
  const void* const functions = open == nullptr ? nullptr : open(abi);
  if (functions == nullptr) return Unavailable("{} belongs to another version", file);
  return functions;
}

}  // namespace heddle

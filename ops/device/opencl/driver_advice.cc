// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/driver_advice.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace heddle::ops {
namespace {

// How a GPU of a maker shows, and what its OpenCL needs.
struct Maker {
  const char* name;
  const char* device_file;
  const char* driver;  // The library that files of the loader's folder name.
  const char* file;    // Such a file, as the maker's packages call it.
  const char* install;
};
constexpr Maker kMakers[] = {
    {"NVIDIA", "/dev/nvidiactl", "libnvidia-opencl.so.1", "nvidia.icd",
     "the driver's package has it; a container gets it with NVIDIA_DRIVER_CAPABILITIES=compute,utility"},
    {"AMD", "/dev/kfd", "libamdocl64.so", "amdocl64.icd",
     "ROCm's package rocm-opencl-runtime has it; Debian: mesa-opencl-icd"},
    {"Intel", "/dev/dri", "libigdrcl.so", "intel.icd", "Debian: intel-opencl-icd"},
};

bool IsInstalled(const char* library) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

// Whether a file in the folder has the library's name, with a path before it or not.
bool IsNamed(const std::filesystem::path& folder, const char* library) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find(library) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string AdviceOnDrivers() {
  const char* const named = std::getenv("OCL_ICD_VENDORS");
  const std::filesystem::path folder = named != nullptr ? named : "/etc/OpenCL/vendors";
  for (const Maker& maker : kMakers) {
    const bool is_named = IsNamed(folder, maker.driver);
    if (!is_named && IsInstalled(maker.driver))
      return fmt::format("{}'s driver is installed, but no file in {} names it: mkdir -p {} && echo {} > {}",
                         maker.name, folder.string(), folder.string(), maker.driver,
                         (folder / maker.file).string());
    if (!std::filesystem::exists(maker.device_file)) continue;
    if (is_named)
      return fmt::format("{}'s driver {} finds no device: see that this user may open {}", maker.name,
                         maker.driver, maker.device_file);
    return fmt::format("{}'s driver {} is not installed, though there is {}: {}", maker.name, maker.driver,
                       maker.device_file, maker.install);
  }
  return "this machine shows no GPU; Debian's package pocl-opencl-icd makes a device of the processor, for "
         "tests";
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/opencl_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <utility>

namespace heddle::ops {
namespace {

Result<OpenClLibrary> OpenLibrary() {
  void* const handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Unavailable("no OpenCL on this machine: {} (Debian: ocl-icd-libopencl1, and a driver)", dlerror());
  OpenClLibrary library;
  const char* missing = nullptr;
#define HEDDLE_FIND(name)                                                        \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (library.name == nullptr) missing = #name;
  HEDDLE_OPENCL_FUNCTIONS(HEDDLE_FIND)
#undef HEDDLE_FIND
  if (missing != nullptr)
    return Unavailable("libOpenCL.so.1 has no {}: OpenCL 1.2 or later is needed", missing);
  return library;
}

#define HEDDLE_CODE(name) \
  std::pair<cl_int, const char*> { name, #name }
constexpr std::array kCodes = {
    HEDDLE_CODE(CL_DEVICE_NOT_FOUND),        HEDDLE_CODE(CL_DEVICE_NOT_AVAILABLE),
    HEDDLE_CODE(CL_COMPILER_NOT_AVAILABLE),  HEDDLE_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    HEDDLE_CODE(CL_OUT_OF_RESOURCES),        HEDDLE_CODE(CL_OUT_OF_HOST_MEMORY),
    HEDDLE_CODE(CL_BUILD_PROGRAM_FAILURE),   HEDDLE_CODE(CL_INVALID_VALUE),
    HEDDLE_CODE(CL_INVALID_DEVICE),          HEDDLE_CODE(CL_INVALID_CONTEXT),
    HEDDLE_CODE(CL_INVALID_COMMAND_QUEUE),   HEDDLE_CODE(CL_INVALID_MEM_OBJECT),
    HEDDLE_CODE(CL_INVALID_BINARY),          HEDDLE_CODE(CL_INVALID_PROGRAM),
    HEDDLE_CODE(CL_INVALID_KERNEL_NAME),     HEDDLE_CODE(CL_INVALID_KERNEL),
    HEDDLE_CODE(CL_INVALID_ARG_INDEX),       HEDDLE_CODE(CL_INVALID_ARG_VALUE),
    HEDDLE_CODE(CL_INVALID_ARG_SIZE),        HEDDLE_CODE(CL_INVALID_KERNEL_ARGS),
    HEDDLE_CODE(CL_INVALID_WORK_GROUP_SIZE), HEDDLE_CODE(CL_INVALID_BUFFER_SIZE),
    HEDDLE_CODE(CL_INVALID_GLOBAL_WORK_SIZE)};
#undef HEDDLE_CODE

}  // namespace

Result<const OpenClLibrary*> OpenClLibrary::Open() {
  static const Result<OpenClLibrary> library = OpenLibrary();
  if (!library.ok()) return library.status();
  return &*library;
}

std::string NameOfOpenClError(cl_int code) {
  for (const auto& [value, name] : kCodes)
    if (value == code) return name;
  return fmt::format("OpenCL error {}", code);
}

}  // namespace heddle::ops

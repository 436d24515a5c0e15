// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/device/opencl/opencl_library.h"

namespace heddle::ops::testing {

/// The first OpenCL device of the machine, opened once for all tests of a process. Without a library there is
/// none.
struct Opened {
  const OpenClLibrary* library = nullptr;
  cl_device_id id = nullptr;
  cl_context context = nullptr;
};

inline const Opened& FirstOpened() {
  static const Opened opened = [] {
    Opened first;
    const Result<const OpenClLibrary*> library = OpenClLibrary::Open();
    cl_platform_id platform = nullptr;
    if (!library.ok() || (*library)->clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return first;
    if ((*library)->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &first.id, nullptr) != CL_SUCCESS)
      return first;
    cl_int code = CL_SUCCESS;
    first.context = (*library)->clCreateContext(nullptr, 1, &first.id, nullptr, nullptr, &code);
    if (code == CL_SUCCESS) first.library = *library;
    return first;
  }();
  return opened;
}

}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

#include "core/status.h"

namespace heddle::ops {

// The functions of OpenCL 1.2 that Heddle calls. They come from the loader of the machine's drivers,
// libOpenCL.so.1, which is opened when somebody asks for devices: Heddle is built and runs without it.
#define HEDDLE_OPENCL_FUNCTIONS(F)                                                                          \
  F(clGetPlatformIDs) F(clGetPlatformInfo) F(clGetDeviceIDs) F(clGetDeviceInfo) F(clCreateContext)          \
  F(clCreateCommandQueue) F(clReleaseCommandQueue) F(clCreateBuffer) F(clReleaseMemObject)                  \
  F(clCreateProgramWithSource) F(clBuildProgram) F(clGetProgramBuildInfo) F(clReleaseProgram)               \
  F(clCreateKernel) F(clReleaseKernel) F(clSetKernelArg) F(clEnqueueNDRangeKernel) F(clEnqueueReadBuffer)   \
  F(clEnqueueWriteBuffer) F(clEnqueueMarkerWithWaitList) F(clSetEventCallback)                              \
  F(clReleaseEvent) F(clRetainEvent) F(clEnqueueBarrierWithWaitList) F(clGetEventInfo) F(clFlush)           \
  F(clFinish) F(clCreateProgramWithBinary) F(clGetProgramInfo)

struct OpenClLibrary {
#define HEDDLE_MEMBER(name) decltype(&::name) name = nullptr;
  HEDDLE_OPENCL_FUNCTIONS(HEDDLE_MEMBER)
#undef HEDDLE_MEMBER

  /// Opened once, and never closed: drivers have threads of their own. kUnavailable, with what to install,
  /// where there is none.
  static Result<const OpenClLibrary*> Open();
};

/// "CL_OUT_OF_RESOURCES", or the number of a code without a name.
std::string NameOfOpenClError(cl_int code);

}  // namespace heddle::ops

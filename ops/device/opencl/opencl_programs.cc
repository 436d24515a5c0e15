// SPDX-License-Identifier: Apache-2.0
#include "ops/device/opencl/opencl_programs.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace heddle::ops {
namespace {

// Floats, too, are divided as IEEE 754 has it, and no option gives up a rounding. Warnings of our own kernels
// tell a user nothing, and POCL writes how many there are to the terminal.
constexpr char kOptions[] = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -w";

}  // namespace

Status OpenClError(cl_int code, std::string_view command, const DeviceDescription& device) {
  const std::string name = NameOfOpenClError(code);
  if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
    return Unavailable("{}: the device {} has failed in a command before it", command, device.name);
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY)
    return ResourceExhausted("{}: the device {} has no memory for it ({})", command, device.name, name);
  if (code == CL_OUT_OF_RESOURCES || code == CL_DEVICE_NOT_AVAILABLE || code < -1000)
    return Unavailable("{}: the device {} does not answer ({})", command, device.name, name);
  return Internal("{} on the device {}: {}", command, device.name, name);
}

OpenClPrograms::OpenClPrograms(const OpenClLibrary& library, cl_device_id id, cl_context context,
                               const DeviceDescription& description, std::string folder)
    : library_(library),
      id_(id),
      context_(context),
      description_(description),
      keeps_binaries_(!folder.empty()),
      disk_(std::move(folder), kMostBytesOfKernels) {}

std::string OpenClPrograms::KeyOf(std::string_view source) const {
  return fmt::format("opencl\n{}\n{}\n{}\n{}", description_.name, description_.driver, kOptions, source);
}

Result<std::shared_ptr<const OpenClProgram>> OpenClPrograms::Build(const std::string& source) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto* const found = at_hand_.Find(source); found != nullptr) return *found;
  }
  HEDDLE_ASSIGN_OR_RETURN(const cl_program program, Load(source));
  auto built = std::make_shared<const OpenClProgram>(library_, program);
  const std::lock_guard lock(mutex_);
  return at_hand_.Add(source, std::move(built));
}

Result<cl_program> OpenClPrograms::Load(const std::string& source) const {
  const std::string key = KeyOf(source);
  if (const std::optional<std::string> binary = disk_.Find(key)) {
    if (const cl_program program = TakeBack(*binary); program != nullptr) return program;
  }
  HEDDLE_ASSIGN_OR_RETURN(const cl_program program, Compile(source));
  // POCL compiles all kernels once more for a binary.
  if (!keeps_binaries_) return program;
  if (const std::string binary = BinaryOf(program); !binary.empty()) disk_.Store(key, binary);
  return program;
}

Result<cl_program> OpenClPrograms::Compile(const std::string& source) const {
  cl_int code = CL_SUCCESS;
  const char* text = source.data();
  const size_t length = source.size();
  const cl_program program = library_.clCreateProgramWithSource(context_, 1, &text, &length, &code);
  if (program == nullptr || code != CL_SUCCESS) return OpenClError(code, "a program", description_);
  code = library_.clBuildProgram(program, 1, &id_, kOptions, nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  const bool is_for_now = code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                          code == CL_DEVICE_NOT_AVAILABLE;
  const Status status = is_for_now
                            ? OpenClError(code, "a program", description_)
                            : Internal("the compiler of the device {} refuses a program ({}): {}",
                                       description_.name, NameOfOpenClError(code), BuildLog(program));
  library_.clReleaseProgram(program);
  return status;
}

cl_program OpenClPrograms::TakeBack(const std::string& binary) const {
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  const size_t size = binary.size();
  cl_int taken = CL_SUCCESS, code = CL_SUCCESS;
  const cl_program program =
      library_.clCreateProgramWithBinary(context_, 1, &id_, &size, &bytes, &taken, &code);
  if (program == nullptr) return nullptr;
  if (code == CL_SUCCESS && taken == CL_SUCCESS &&
      library_.clBuildProgram(program, 1, &id_, kOptions, nullptr, nullptr) == CL_SUCCESS)
    return program;
  library_.clReleaseProgram(program);
  return nullptr;
}

std::string OpenClPrograms::BinaryOf(cl_program program) const {
  size_t size = 0;
  if (library_.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) != CL_SUCCESS)
    return "";
  std::string binary(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
  if (library_.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS)
    return "";
  return binary;
}

// The first lines of what the compiler says.
std::string OpenClPrograms::BuildLog(cl_program program) const {
  size_t bytes = 0;
  if (library_.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS)
    return "it does not say why";
  std::string log(bytes, '\0');
  library_.clGetProgramBuildInfo(program, id_, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  log = log.substr(0, log.find('\0'));
  constexpr size_t kMostText = 600;
  log.resize(std::min(kMostText, log.find_last_not_of(" \n") + 1));
  return log;
}

}  // namespace heddle::ops

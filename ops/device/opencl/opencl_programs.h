// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/recently_used.h"
#include "ops/device/device.h"
#include "ops/device/opencl/opencl_library.h"
#include "ops/io/object_cache.h"

namespace heddle::ops {

/// What is kept on disk of compiled kernels; the oldest go beyond that.
constexpr int64_t kMostBytesOfKernels = int64_t{128} << 20;

/// What the code of a failed command means to whoever waits for it: kResourceExhausted, kUnavailable or
/// kInternal.
Status OpenClError(cl_int code, std::string_view command, const DeviceDescription& device);

/// A program that is built, released with the last owner.
class OpenClProgram {
 public:
  OpenClProgram(const OpenClLibrary& library, cl_program program) : library_(library), program_(program) {}
  ~OpenClProgram() { library_.clReleaseProgram(program_); }
  OpenClProgram(const OpenClProgram&) = delete;
  OpenClProgram& operator=(const OpenClProgram&) = delete;
  cl_program handle() const { return program_; }

 private:
  const OpenClLibrary& library_;
  const cl_program program_;
};

/// Programs in OpenCL C for one device. All kernels of a source come from one program: the last few are at
/// hand. What its driver makes of them is kept on disk for later processes of this user, by source, device,
/// version of the driver and options: compiling takes up to a second. What the driver does not take back is
/// compiled again, and replaced.
class OpenClPrograms {
 public:
  /// All outlive it. Binaries are kept in `folder`; "": nowhere.
  OpenClPrograms(const OpenClLibrary& library, cl_device_id id, cl_context context,
                 const DeviceDescription& description, std::string folder);

  /// kInternal, with what the compiler says. Thread-safe.
  Result<std::shared_ptr<const OpenClProgram>> Build(const std::string& source) const;

  /// Under which a binary is kept.
  std::string KeyOf(std::string_view source) const;
  /// Whether a binary of that source is kept, or a name that Keep was told.
  bool IsKept(std::string_view source_or_name) const { return disk_.Find(KeyOf(source_or_name)).has_value(); }
  void Keep(std::string_view name) const { disk_.Store(KeyOf(name), name); }

 private:
  static constexpr size_t kMostAtHand = 16;

  Result<cl_program> Load(const std::string& source) const;
  Result<cl_program> Compile(const std::string& source) const;
  /// nullptr: the driver refuses it.
  cl_program TakeBack(const std::string& binary) const;
  /// "": the driver does not give it.
  std::string BinaryOf(cl_program program) const;
  std::string BuildLog(cl_program program) const;

  const OpenClLibrary& library_;
  const cl_device_id id_;
  const cl_context context_;
  const DeviceDescription& description_;
  const bool keeps_binaries_;
  const ObjectCache disk_;
  mutable std::mutex mutex_;  ///< Of the next; not held while something is built.
  mutable RecentlyUsedMap<std::string, std::shared_ptr<const OpenClProgram>> at_hand_{kMostAtHand};
};

}  // namespace heddle::ops

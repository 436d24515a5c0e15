// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/device/device.h"
#include "ops/device/opencl/free_buffers.h"
#include "ops/device/opencl/opencl_library.h"

namespace heddle::ops {

class OpenClMemories;

/// A buffer of an OpenCL device. It knows the last command of each queue that reads or writes it: when its
/// last owner goes away these may still be at work, and nobody else gets the buffer before they are done.
class OpenClMemory : public DeviceMemory {
 public:
  OpenClMemory(OpenClMemories& memories, cl_mem handle, int64_t bytes, int64_t buffer_bytes)
      : memories_(memories), handle_(handle), bytes_(bytes), buffer_bytes_(buffer_bytes) {}
  /// Keeps the buffer for the next allocation.
  ~OpenClMemory() override;
  OpenClMemory(const OpenClMemory&) = delete;
  OpenClMemory& operator=(const OpenClMemory&) = delete;

  int64_t bytes() const override { return bytes_; }
  cl_mem handle() const { return handle_; }
  /// A command of that queue reads or writes the buffer, which is done with the event.
  void UsedBy(cl_command_queue queue, cl_event event) const;

 private:
  /// With the lock, or by the last owner.
  void ForgetDone() const;

  OpenClMemories& memories_;
  const cl_mem handle_;
  const int64_t bytes_, buffer_bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<cl_command_queue, cl_event>> last_uses_;
};

/// The memory of one OpenCL device.
class OpenClMemories {
 public:
  /// All outlive it, and all it gives.
  OpenClMemories(const OpenClLibrary& library, cl_context context, const DeviceDescription& device);

  /// Uninitialised bytes: of a buffer that was given back, or of a new one. kResourceExhausted where the
  /// device has no room even without the buffers that are kept.
  Result<std::shared_ptr<DeviceMemory>> Allocate(int64_t bytes);
  /// Gives all buffers that are kept back to the driver: some make room when a command first uses a buffer,
  /// and then have none. How many bytes that were.
  int64_t ReleaseKept() { return kept_.Release(INT64_MAX); }

  int64_t made() const { return made_; }  ///< Buffers that the driver has made so far.
  int64_t kept_bytes() const { return kept_.bytes(); }

 private:
  friend class OpenClMemory;
  cl_mem Make(int64_t bytes, cl_int* code);
  bool IsDone(cl_event event) const;

  const OpenClLibrary& library_;
  const cl_context context_;
  const DeviceDescription& device_;
  std::atomic<int64_t> made_ = 0;
  std::atomic<int64_t> owned_bytes_ = 0;  ///< Of buffers that somebody owns.
  FreeBuffers kept_;
};

}  // namespace heddle::ops

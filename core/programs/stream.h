// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Hardware with kernels of its own.
enum class DeviceType : uint8_t {
  kCpu,
  kOpenCl,  ///< With memory of its own, driven through OpenCL (ops/device/device.h).
};
/// The most that a TaskId has room for.
constexpr uint32_t kMostDeviceTypes = 1u << 5;
constexpr uint32_t kMostDevices = 1u << 7;  ///< Of one type.
constexpr uint32_t kMostStreams = 1u << 15;

/// One device of a rank.
struct Device {
  DeviceType type = DeviceType::kCpu;
  uint32_t index = 0;  ///< Among the rank's devices of that type.
  /// Whether its memory is that of the process.
  bool IsHost() const { return type == DeviceType::kCpu; }
  bool operator==(const Device&) const = default;
};

/// What the thread of a stream does.
enum class StreamKind : uint8_t {
  kCompute,  ///< Kernels, parallel inside.
  kHost,     ///< Prints, writes, reads of metadata: side effects in program order.
  kNetwork,  ///< Copies from other ranks; asynchronous.
  kDisk,     ///< Panels of files; asynchronous. Of plans in panels alone.
  kCopyIn,   ///< Copies to the memory of a device; asynchronous. Of plans with devices alone, as the next.
  kCopyOut,  ///< Copies from it.
};

/// A FIFO of work on one device; one OS thread serves it.
struct StreamDescription {
  Device device;
  StreamKind kind = StreamKind::kCompute;
  std::string name;  ///< For messages and traces.
  bool operator==(const StreamDescription&) const = default;
};

std::string_view Name(DeviceType type);  ///< "cpu", "opencl"
std::string_view Name(StreamKind kind);  ///< "compute", "host", "network", "disk", "copyin", "copyout"
std::optional<DeviceType> ParseDeviceType(std::string_view name);
std::optional<StreamKind> ParseStreamKind(std::string_view name);

/// The streams of a rank: one of each kind but the disk, all of its one CPU. The place of a stream in such a
/// list is its number in task ids.
std::vector<StreamDescription> StandardStreams();

}  // namespace heddle

// SPDX-License-Identifier: Apache-2.0
#include "ops/device/device.h"

#include <atomic>
#include <charconv>

namespace heddle::ops {
namespace {

std::atomic<uint64_t> devices_made = 0;

}  // namespace

ComputeDevice::ComputeDevice() : id_(++devices_made) {}

std::optional<Device> ParseDevice(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<DeviceType> type = ParseDeviceType(name.substr(0, colon));
  const std::string_view digits = name.substr(colon + 1);
  uint32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size() &&
                         (digits.size() == 1 || digits[0] != '0');
  if (!type || *type == DeviceType::kCpu || !is_number || index >= kMostDevices) return std::nullopt;
  return Device{*type, index};
}

}  // namespace heddle::ops

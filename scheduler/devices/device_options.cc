// SPDX-License-Identifier: Apache-2.0
#include "scheduler/devices/device_options.h"

#include <charconv>

#include "ops/device/device.h"

namespace heddle::scheduler {

std::optional<DeviceOptions> ParseDevices(std::string_view text) {
  constexpr std::string_view kRandom = "random:";
  const size_t slash = text.find('/');
  const std::optional<Device> device = ops::ParseDevice(text.substr(0, slash));
  if (!device) return std::nullopt;
  DeviceOptions options;
  options.device = *device;
  if (slash == std::string_view::npos) return options;
  const std::string_view rule = text.substr(slash + 1);
  if (rule == "cost") {
    options.rule = DeviceOptions::Rule::kByCost;
    return options;
  }
  if (!rule.starts_with(kRandom)) return std::nullopt;
  const std::string_view seed = rule.substr(kRandom.size());
  options.rule = DeviceOptions::Rule::kRandom;
  const auto [end, error] = std::from_chars(seed.data(), seed.data() + seed.size(), options.seed);
  if (error != std::errc() || end != seed.data() + seed.size()) return std::nullopt;
  return options;
}

}  // namespace heddle::scheduler

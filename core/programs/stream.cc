// SPDX-License-Identifier: Apache-2.0
#include "core/programs/stream.h"

#include <array>

#include "core/text/named_value.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 2> kDeviceTypes = {"cpu", "opencl"};
constexpr std::array<std::string_view, 6> kStreamKinds = {"compute", "host",   "network",
                                                          "disk",    "copyin", "copyout"};

}  // namespace

std::string_view Name(DeviceType type) { return kDeviceTypes[static_cast<size_t>(type)]; }
std::string_view Name(StreamKind kind) { return kStreamKinds[static_cast<size_t>(kind)]; }
std::optional<DeviceType> ParseDeviceType(std::string_view name) {
  return ValueNamed<DeviceType>(kDeviceTypes, name);
}
std::optional<StreamKind> ParseStreamKind(std::string_view name) {
  return ValueNamed<StreamKind>(kStreamKinds, name);
}

std::vector<StreamDescription> StandardStreams() {
  std::vector<StreamDescription> streams;
  for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kHost, StreamKind::kNetwork})
    streams.push_back({.kind = kind, .name = std::string(Name(kind))});
  return streams;
}

}  // namespace heddle

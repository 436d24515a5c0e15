// SPDX-License-Identifier: Apache-2.0
#include "core/programs/stream.h"

#include <array>

namespace heddle {
namespace {

constexpr std::array<std::string_view, 1> kDeviceTypes = {"cpu"};
constexpr std::array<std::string_view, 3> kStreamKinds = {"compute", "host", "network"};

template <typename T, size_t n>
std::optional<T> Find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<T>(i);
  return std::nullopt;
}

}  // namespace

std::string_view Name(DeviceType type) { return kDeviceTypes[static_cast<size_t>(type)]; }
std::string_view Name(StreamKind kind) { return kStreamKinds[static_cast<size_t>(kind)]; }
std::optional<DeviceType> ParseDeviceType(std::string_view name) {
  return Find<DeviceType>(kDeviceTypes, name);
}
std::optional<StreamKind> ParseStreamKind(std::string_view name) {
  return Find<StreamKind>(kStreamKinds, name);
}

std::vector<StreamDescription> StandardStreams() {
  std::vector<StreamDescription> streams;
  for (const StreamKind kind : {StreamKind::kCompute, StreamKind::kHost, StreamKind::kNetwork})
    streams.push_back({.kind = kind, .name = std::string(Name(kind))});
  return streams;
}

}  // namespace heddle

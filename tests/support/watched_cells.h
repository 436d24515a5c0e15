// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// What the simulated device knows of cells and of the text of kernels.
namespace heddle::testing_support {

// Quiet NaN with a text in it: "nothing" was written there, or "too soon" for who reads it.
inline constexpr uint64_t kNothing = 0x7ff8'6e6f'7468'696eu;
inline constexpr uint64_t kTooSoon = 0x7ff8'746f'6f73'6f6fu;
inline constexpr int64_t kBytesBehind = 64;

inline void Fill(void* to, int64_t bytes, uint64_t pattern) {
  for (int64_t at = 0; at < bytes; at += 8)
    std::memcpy(static_cast<char*>(to) + at, &pattern, static_cast<size_t>(std::min<int64_t>(8, bytes - at)));
}

inline bool IsFilled(const void* with, int64_t bytes, uint64_t pattern) {
  for (int64_t at = 0; at < bytes; at += 8)
    if (std::memcmp(static_cast<const char*>(with) + at, &pattern,
                    static_cast<size_t>(std::min<int64_t>(8, bytes - at))) != 0)
      return false;
  return true;
}

inline size_t HashOf(const void* data, int64_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(data), static_cast<size_t>(bytes)});
}

// Of a function of a program in OpenCL C, which parameters are pointers to const.
inline std::vector<bool> ReadOnlyParameters(const std::string& source, const std::string& name) {
  std::vector<bool> are;
  size_t at = source.find("void " + name + "(");
  if (at == std::string::npos) return are;
  const size_t end = source.find(')', at);
  at = source.find('(', at) + 1;
  while (at < end) {
    const size_t next = std::min(source.find(',', at), end);
    const std::string parameter = source.substr(at, next - at);
    are.push_back(parameter.substr(0, parameter.find('*')).find("const") != std::string::npos &&
                  parameter.find('*') != std::string::npos);
    at = next + 1;
  }
  return are;
}

/// Of each queue the larger number of commands.
inline void Join(std::map<int, int64_t>* known, const std::map<int, int64_t>& more) {
  for (const auto& [queue, commands] : more) {
    int64_t& had = (*known)[queue];
    had = std::max(had, commands);
  }
}

}  // namespace heddle::testing_support

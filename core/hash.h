// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

/// Mixes `value` into a running hash, the same on every machine. For keys and for comparing what ranks did;
/// no defence against those who choose the values.
constexpr uint64_t FoldHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

/// The same of a text, byte by byte (FNV-1a).
constexpr uint64_t FoldHash(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return FoldHash(hash, static_cast<uint64_t>(text.size()));
}

}  // namespace heddle

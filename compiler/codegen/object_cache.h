// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle::codegen {

/// Machine code on disk, one file an object. Safe for concurrent processes: files appear whole, by renaming.
/// A file holds its whole key and a checksum, so a file that is damaged, truncated, foreign or of another key
/// that has the same hash is as good as absent, and replaced. Files of other users are not read. No operation
/// reports an error: without a usable folder nothing is found.
class ObjectCache {
 public:
  /// `folder` is made when something is stored. `capacity_bytes` bounds the sum of all files; the least
  /// recently used go first.
  ObjectCache(std::string folder, int64_t capacity_bytes)
      : folder_(std::move(folder)), capacity_bytes_(capacity_bytes) {}

  /// "" when neither XDG_CACHE_HOME nor HOME is set; then there is no cache.
  static std::string DefaultFolder();

  std::optional<std::string> Find(std::string_view key) const;
  void Store(std::string_view key, std::string_view object) const;
  /// Where the object of a key lies.
  std::string PathOf(std::string_view key) const;

 private:
  void Shrink() const;
  std::string folder_;
  int64_t capacity_bytes_;
};

}  // namespace heddle::codegen

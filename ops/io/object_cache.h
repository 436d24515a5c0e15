// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "ops/io/files/own_folders.h"

namespace heddle::ops {

/// Code that was compiled, for the processor or for a device, on disk: one file an object. Safe for
/// concurrent processes: files appear whole, by renaming.
///
/// What is found is run, so that it must be what this user's Heddle stored: the folder is this user's alone,
/// a file is a plain one of this user that others can neither read nor write, and it ends in a code over its
/// key and object that only who knows the user's secret can make (SecretOfUser). Whatever is damaged,
/// truncated, foreign, or of another key that has the same hash is as good as absent, and replaced. No
/// operation reports an error: without a usable folder, or without a secret, nothing is found.
class ObjectCache {
 public:
  /// `folder` is made when something is stored. `capacity_bytes` bounds the sum of all files; the least
  /// recently used go first. The secret is kept in `state_folder`.
  ObjectCache(std::string folder, int64_t capacity_bytes, std::string state_folder = UserStateFolder())
      : folder_(std::move(folder)), capacity_bytes_(capacity_bytes), state_folder_(std::move(state_folder)) {}

  /// The folder of that name among the user's caches. "" when neither XDG_CACHE_HOME nor HOME is set; then
  /// there is no cache.
  static std::string FolderOf(std::string_view name);

  std::optional<std::string> Find(std::string_view key) const;
  void Store(std::string_view key, std::string_view object) const;
  /// Where the object of a key lies; "" without a secret.
  std::string PathOf(std::string_view key) const;

 private:
  const std::optional<std::string>& Secret() const;
  void Shrink() const;

  const std::string folder_;
  const int64_t capacity_bytes_;
  const std::string state_folder_;
  mutable std::once_flag secret_read_;
  mutable std::optional<std::string> secret_;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/environment/descriptor.h"

// Files that are still there after a power failure. What fails is told as errno has it, 0 for success: those
// who call word it.
namespace heddle::cluster {

/// Makes the names in a folder last as they are. A file system that cannot do that does not need it.
int SyncFolder(const std::string& folder);

/// A file that takes its place whole or not at all. Until then it lies beside it under a hidden name
/// (ops/io/files/hidden_names.h); only this user may read it, before and after. Not thread-safe.
class DurableFile {
 public:
  explicit DurableFile(std::string path);
  /// Removes what has not taken its place.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;

  int Open();
  int Append(std::string_view bytes);
  enum class Place : uint8_t {
    kFree,   ///< EEXIST when something is there.
    kTaken,  ///< A file that is there goes.
  };
  /// On the disk, with its name.
  int Finish(Place place);

  int64_t bytes() const { return bytes_; }

 private:
  const std::string path_;
  const std::string folder_;
  std::string hidden_;  // Its path until it takes its place; "" when there is none.
  Descriptor file_;
  int64_t bytes_ = 0;
};

}  // namespace heddle::cluster

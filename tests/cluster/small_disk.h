// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>

namespace heddle::testing_support {

/// A file system of a few bytes in a folder, which this process and those that it starts from now on see.
/// Needs the rights of root.
class SmallDisk {
 public:
  SmallDisk(std::string folder, int64_t bytes) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("small", folder_.c_str(), "tmpfs", 0, SizeOf(bytes).c_str()) != 0)
      why_not_ = std::string("no file system can be mounted: ") + strerror(errno);
  }
  ~SmallDisk() {
    if (why_not_.empty()) umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;

  /// Why there is none; "": there is.
  const std::string& why_not() const { return why_not_; }
  const std::string& folder() const { return folder_; }
  bool Resize(int64_t bytes) {
    return mount("small", folder_.c_str(), "tmpfs", MS_REMOUNT, SizeOf(bytes).c_str()) == 0;
  }
  int64_t used() const {
    const std::filesystem::space_info space = std::filesystem::space(folder_);
    return static_cast<int64_t>(space.capacity - space.free);
  }

 private:
  static std::string SizeOf(int64_t bytes) { return "size=" + std::to_string(bytes); }
  const std::string folder_;
  std::string why_not_;
};

}  // namespace heddle::testing_support

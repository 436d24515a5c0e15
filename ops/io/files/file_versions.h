// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

struct stat;

namespace heddle::ops {

class FilePlace;    // ops/io/files/script_paths.h
class ScriptPaths;  // the same

/// What was at a path at one moment, as far as the file system tells without reading it.
struct FileVersion {
  enum class Kind : uint8_t { kMissing, kFile, kFolder, kOther };
  Kind kind = Kind::kMissing;
  int64_t bytes = 0;        ///< Of a folder: of its part files.
  int64_t seconds = 0;      ///< When it was written last; of a folder: the latest of its part files.
  int64_t nanoseconds = 0;  ///< Of that second.
  uint64_t parts = 0;       ///< Of a folder: hash of the names, sizes and times of its part files.
  uint64_t machine = 0;  ///< Who numbers the device and the inode: machines that share files need not agree.
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t writes =
      0;  ///< How often the script had written it: tells versions apart that clock and inode do not.

  bool IsMissing() const { return kind == Kind::kMissing; }
  /// Whether both may be the same bytes. Inodes are compared where the same machine numbers them; pipes and
  /// devices have no versions.
  bool IsSame(const FileVersion& other) const;
  /// "12 bytes of 2026-11-27 06:04:39.123456789 UTC", "no file".
  std::string Describe() const;
  /// Plain fields; parses back.
  std::string ToText() const;
  static Result<FileVersion> Parse(std::string_view text);
};

/// Which files are which, and which versions of them a script is to see. One per Files; any thread.
class FileVersions {
 public:
  /// Looks for files by `paths`, which outlive it.
  explicit FileVersions(const ScriptPaths& paths) : paths_(paths) {}

  /// What is at `path` now.
  FileVersion Find(const std::string& path) const;
  /// `path` from the root, without links, "." and "..". It need not exist.
  std::string Identity(const std::string& path) const;
  /// Whether writing to the file or folder of one identity may change what reading the other one gives: they
  /// are equal, one holds the other, or they are two names of one file.
  static bool MayMeet(const std::string& written, const std::string& read);

  /// The script has written `path`.
  void CountWrite(const std::string& path);

  /// From now on these paths, spelled like that, are these versions or an error. Of all others nothing is
  /// expected. Worker 0 has seen them; `worker` is who is to see the same.
  void Expect(std::map<std::string, FileVersion> versions, int worker);
  /// What Expect() said of `path`.
  std::optional<FileVersion> Expected(const std::string& path) const;
  /// kDataLoss if `found`, seen at `path` when it was opened, is not what is expected.
  Status Check(const std::string& path, const FileVersion& found) const;
  Status CheckOpened(const std::string& path, const struct stat& status) const;
  /// kDataLoss if what is at `path` was written after it was looked at. A file that another has replaced
  /// since it was opened is none of these: whoever opened it has the old one whole.
  Status CheckUnchanged(const std::string& path) const;
  /// A text that differs for versions that differ, one after the other in time, too.
  std::string Fingerprint(const std::string& path) const;

 private:
  FileVersion FindFolder(const std::string& path, const FilePlace& place) const;

  const ScriptPaths& paths_;
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> writes_;  // by identity
  std::map<std::string, FileVersion> expected_;
  int worker_ = 0;
};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"

namespace heddle::ops {

/// One file without a name that others could see or that could stay behind: it is gone, and its blocks are
/// the disk's again, when it is destroyed or the process ends. Thread-safe for disjoint bytes.
class SpillFile {
 public:
  virtual ~SpillFile() = default;
  /// Writes all bytes at that place. kResourceExhausted when the disk or what the process may write is full,
  /// with the numbers and what to do.
  virtual Status WriteAt(int64_t offset, const void* bytes, int64_t count) = 0;
  /// Reads all bytes at that place. kDataLoss when the disk fails.
  virtual Status ReadAt(int64_t offset, void* bytes, int64_t count) const = 0;
  /// These bytes will be read soon: the disk may begin. Waits for nothing.
  virtual void Announce(int64_t offset, int64_t count) const = 0;
  /// The folder that the file is in, for messages.
  virtual const std::string& folder() const = 0;
};

/// Where spill files are made. Behind an interface, so that tests fail them and a simulation has them in
/// memory. Thread-safe.
class SpillFiles {
 public:
  virtual ~SpillFiles() = default;
  /// A new empty file. kResourceExhausted where the folder takes none.
  virtual Result<std::unique_ptr<SpillFile>> Create() = 0;
};

/// How a file comes to have no name.
enum class SpillNames : uint8_t {
  kNever,        ///< It never has one (O_TMPFILE), where the file system knows such files; else as below.
  kRemovedSoon,  ///< It has one for the moment between its creation and the removal of the name.
};

/// Files in `folder` ("": SpillFolder()), gone with the process even after SIGKILL. A name that a killed
/// process left behind in the moment between creation and removal is removed before the first file is made;
/// whose process lives holds its lock and keeps it.
std::unique_ptr<SpillFiles> MakeSpillFiles(std::string folder, SpillNames names = SpillNames::kNever);

/// Whether a folder takes spill files, found by making one: kNotFound where there is no such folder,
/// kResourceExhausted with the reason where it takes none. The messages begin with "there is no folder" and
/// "cannot make a file".
Status CheckSpillFolder(const std::string& folder);

/// Where spill files are unless the user says it: $TMPDIR, else /tmp, or /var/tmp where /tmp is in memory,
/// which spilling is to save.
std::string SpillFolder();

}  // namespace heddle::ops

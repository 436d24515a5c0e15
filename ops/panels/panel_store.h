// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/values/row_panels.h"
#include "core/values/value.h"

namespace heddle::ops {

/// Where the spill files of a store are. Behind an interface, so that tests fail them and a simulation has
/// them in memory.
class SpillFiles {
 public:
  virtual ~SpillFiles() = default;
  /// One file without a name that others could see or that could stay behind.
  class File {
   public:
    virtual ~File() = default;
    /// All bytes at that place, or an error: kResourceExhausted when the disk is full, with the numbers.
    virtual Status WriteAt(int64_t offset, const void* bytes, int64_t count) = 0;
    virtual Status ReadAt(int64_t offset, void* bytes, int64_t count) const = 0;
    /// The bytes there are not needed any more: their blocks go back to the disk.
    virtual void Discard(int64_t offset, int64_t count) = 0;
  };
  virtual Result<std::unique_ptr<File>> Create() = 0;
};
/// Files in `folder` ("": that of temporary files), gone with the process even after SIGKILL: O_TMPFILE, or,
/// where the file system has none, a name that is removed at once.
std::unique_ptr<SpillFiles> MakeSpillFiles(std::string folder);

/// What a store did so far, for -stats.
struct PanelStatistics {
  int64_t kept_bytes = 0;     ///< In memory now.
  int64_t spilled_bytes = 0;  ///< In spill files now.
  int64_t written_bytes = 0;  ///< To spill files, so far.
  int64_t read_bytes = 0;     ///< From them.
  int64_t remade_bytes = 0;   ///< Made again from where they come.
};

/// Keeps the row panels of matrices and frames: in memory as long as its room lasts, else in a spill file, or,
/// where they can be made again for less, nowhere. Thread-safe.
class PanelStore {
 public:
  virtual ~PanelStore() = default;

  /// Takes the rows of one value in their order, in panels of any height.
  class Collector {
   public:
    virtual ~Collector() = default;
    /// The next rows, a matrix or frame. Writes them out where the store has no room for them.
    virtual Status Add(Value rows) = 0;
    /// The value of all rows: a handle to panels. Nothing is added any more.
    virtual Result<std::shared_ptr<const RowPanels>> Finish() = 0;
  };
  virtual std::unique_ptr<Collector> Collect(Shape shape, bool is_frame) = 0;

  /// Makes rows [begin, end) of a value, thread-safe: reads them from a file, or computes them.
  using Maker = std::function<Result<Value>(int64_t begin, int64_t end)>;
  /// A value whose rows `make` makes when they are asked for. What has been made is kept while there is room;
  /// a panel that has to go is written to a spill file where `is_costly`, else forgotten and made again.
  virtual std::shared_ptr<const RowPanels> Lazy(Shape shape, bool is_frame, Maker make, bool is_costly) = 0;

  /// How many bytes of panels may be in memory from now on. What is beyond goes at once, the panels first that
  /// are read last when rows are read from the first to the last. An error of a spill file.
  virtual Status SetRoom(int64_t bytes) = 0;
  virtual PanelStatistics Statistics() const = 0;
};

/// `files` outlives the store, and the store all of its values.
std::unique_ptr<PanelStore> MakePanelStore(SpillFiles& files);

}  // namespace heddle::ops

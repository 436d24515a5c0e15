// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/status.h"
#include "core/values/row_panels.h"
#include "core/values/value.h"
#include "ops/panels/spill_files.h"

namespace heddle::ops {

/// What a store did so far, for -stats.
struct PanelStatistics {
  int64_t kept_bytes = 0;     ///< In memory now, as the pool of blocks counts them.
  int64_t spilled_bytes = 0;  ///< In spill files now.
  int64_t written_bytes = 0;  ///< To spill files, so far.
  int64_t read_bytes = 0;     ///< From them.
  int64_t remade_bytes = 0;   ///< Made again from where they come.
};

/// Keeps the row panels of matrices and frames: in memory as long as its room lasts, else in a spill file,
/// or, where they can be made again for less, nowhere. Thread-safe.
///
/// Which panels are in memory: a script reads its values again and again from the first row to the last. Of a
/// value that does not fit, the panels that were used last are then the ones that are needed last, so the
/// LAST rows leave first, and its first rows stay; to keep what was used last would keep nothing. Among
/// values, the one that has been read the longest time ago gives its panels first. A new panel takes the room
/// only of values that were not read since its own value was begun, and one that comes back only of those
/// that were not read since it was itself: what a loop reads in turns is not pushed out and read back in each
/// round.
class PanelStore {
 public:
  virtual ~PanelStore() = default;

  /// Takes the rows of one value in their order, in panels of any height. One thread at a time.
  class Collector {
   public:
    virtual ~Collector() = default;
    /// The next rows, a matrix or frame, which hold their memory alone: of a view, the store would hold the
    /// whole that it is a view of, and count the view. Writes rows to a file where there is no room for them.
    /// kInternal for rows that are none of the value's;
    /// kResourceExhausted.
    virtual Status Add(Value rows) = 0;
    /// The value of all rows: a handle to panels. Nothing is added any more. kInternal when rows are missing.
    virtual Result<std::shared_ptr<const RowPanels>> Finish() = 0;
  };
  /// `shape`: rows may be kUnknown; there are then as many as are added. Matrices are stored as their first
  /// rows.
  /// `least_panel_bytes`: rows of fewer bytes wait in memory for more, to become a panel together; 0: as the
  /// store does with all values.
  virtual std::unique_ptr<Collector> Collect(Shape shape, bool is_frame, int64_t least_panel_bytes) = 0;
  std::unique_ptr<Collector> Collect(Shape shape, bool is_frame) { return Collect(shape, is_frame, 0); }

  /// Makes rows [begin, end) of a value: reads them from a file, or computes them. Called by several threads
  /// at once, perhaps for the same rows; begin == end: without rows, stored as all others.
  using Maker = std::function<Result<Value>(int64_t begin, int64_t end)>;
  /// A value whose rows `make` makes when they are asked for. What has been made is kept while there is room;
  /// a panel that has to go is written to a spill file where `is_costly`, else forgotten and made again. It
  /// pushes out no panel that would have to be written unless `is_costly`.
  /// `origin`: what its rows come from, e.g. the fingerprint of a file; "": of nothing that changes.
  virtual std::shared_ptr<const RowPanels> Lazy(Shape shape, bool is_frame, Maker make, bool is_costly,
                                                std::string origin) = 0;
  std::shared_ptr<const RowPanels> Lazy(Shape shape, bool is_frame, Maker make, bool is_costly) {
    return Lazy(shape, is_frame, std::move(make), is_costly, "");
  }
  /// The origin ("": any) is about to change: rows of values that come from it are made now, and kept, when
  /// who reads some of them is through. Fails as `make` does, and as SpillFile::WriteAt.
  virtual Status KeepAll(const std::string& origin) = 0;

  /// How many bytes of panels may be in memory from now on; at first any number. What is beyond goes before
  /// this returns, but for panels that another thread is reading or writing at that moment. Fails as
  /// SpillFile::WriteAt does; the panels that could not be written stay.
  virtual Status SetRoom(int64_t bytes) = 0;
  /// What makers of lazy values that begin from now on refer to: it lives as long as such a value does.
  virtual void SetHome(std::shared_ptr<const void> home) = 0;
  /// A flag that whoever reads or writes panels looks at, and makers, while a run is at work: once it is set,
  /// reads and writes end with kCancelled before their next chunk. nullptr: nobody asks them to end.
  virtual void SetCancelled(const std::atomic<bool>* cancelled) = 0;
  virtual const std::atomic<bool>* cancelled() const = 0;
  virtual PanelStatistics Statistics() const = 0;
};

/// Of a CSR matrix that a Collector has taken, the entries before each of its granules, and all of them
/// (EntryCounts of ops/panels/entry_counts.h); empty of any other value.
std::vector<int64_t> EntriesOf(const RowPanels& panels);

/// `files` outlives the store, and the store all of its values. Rows of fewer than `least_panel_bytes` are
/// joined before they become a panel.
std::unique_ptr<PanelStore> MakePanelStore(SpillFiles& files, int64_t least_panel_bytes = int64_t{1} << 20);

}  // namespace heddle::ops

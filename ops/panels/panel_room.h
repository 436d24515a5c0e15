// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/values/value.h"
#include "ops/panels/panel_store.h"
#include "ops/panels/spilled_rows.h"

namespace heddle::ops {

/// Some rows of a value. Its fields belong to the mutex of the PanelRoom, but for `begin` and `file_offset`.
struct Panel {
  int64_t begin = 0;
  int64_t end = 0;
  Value rows;               ///< Where is_kept.
  bool is_kept = false;     ///< In memory.
  bool is_leaving = false;  ///< A thread writes it to its file, or is about to drop it.
  bool is_coming = false;   ///< A thread reads it from its file to keep it, or writes what it has made.
  int64_t held_bytes = 0;   ///< Of memory that its rows take when they are there.
  int64_t file_offset = 0;  ///< Its place in the file; in the order of rows, written or not.
  std::shared_ptr<const SpilledRows> spilled;  ///< In its file; nullptr: not yet.
  uint64_t last_read = 0;

  /// False of rows that were made and forgotten.
  bool HasRows() const { return is_kept || spilled != nullptr; }
};

/// A value: its panels by their first rows, disjoint. Belongs to the mutex of the PanelRoom, but for what
/// never changes and the file.
struct PanelSet {
  Shape shape;
  bool is_frame = false;
  std::shared_ptr<const void> home;  ///< Of what `make` refers to, which goes before it.
  PanelStore::Maker make;            ///< Empty: all rows are in panels.
  std::atomic<bool> is_costly = false;
  std::atomic<bool> must_stay =
      false;  ///< `make` will make other rows: what cannot be written is not forgotten.
  uint64_t begun = 0;

  std::map<int64_t, std::shared_ptr<Panel>> panels;
  uint64_t last_read = 0;
  int64_t next_row = 0;  ///< Behind the rows that were read last.
  int64_t kept_bytes = 0;
  int64_t spilled_bytes = 0;
  int64_t file_end = 0;
  std::vector<int64_t> entries;  ///< EntriesOf; written before the value is there.
  std::optional<Value> no_rows;  ///< 0 rows, stored as all others.

  std::mutex file_mutex;
  std::shared_ptr<SpillFile> file;  ///< Of the first panel that is written.

  /// Whether a panel that is not in its file may be dropped.
  bool MayForget() const { return make != nullptr && !is_costly; }
};

/// Decides which panels of all values are in memory (panel_store.h), and moves them to their files.
///
/// A panel that is in memory, coming or leaving counts as kept; what leaves counts as gone for whoever looks
/// for room, so that two threads do not both make room for one panel. Files are read and written without the
/// mutex.
class PanelRoom {
 public:
  explicit PanelRoom(SpillFiles& files) : files_(files) {}

  /// The next moment.
  uint64_t Now() { return ++now_; }
  std::mutex& mutex() const { return mutex_; }

  void Add(std::shared_ptr<PanelSet> set);
  /// Nobody reads or adds rows any more.
  void Remove(const std::shared_ptr<PanelSet>& set);

  /// A panel on its way out.
  struct Leaving {
    std::shared_ptr<PanelSet> set;
    std::shared_ptr<Panel> panel;
    Value rows;
  };
  /// Under the mutex: counts `bytes` more as kept, where they fit once `leaving` has been sent out; else
  /// false and nothing is changed. Takes the room of values that were not read since `read_before`;
  /// `may_write`: also of panels that have to be written first.
  bool TakeRoom(int64_t bytes, uint64_t read_before, bool may_write, std::vector<Leaving>* leaving);
  /// Under the mutex: how many bytes of panels may be in memory.
  int64_t room() const { return room_; }
  /// Under the mutex: they are not kept any more.
  void GiveRoom(int64_t bytes) { kept_bytes_ -= bytes; }
  /// Without the mutex. The first error; the panel that it is about, and those behind it, stay in memory.
  Status SendOut(std::vector<Leaving> leaving);
  Status SetRoom(int64_t bytes);

  /// Under the mutex: the panel's place in its file, behind those of the rows before it.
  void PlaceInFile(PanelSet* set, Panel* panel, const Value& rows) const;
  /// Writes rows to the place of their panel. Without the mutex.
  Result<std::shared_ptr<const SpilledRows>> Write(PanelSet& set, const Panel& panel, const Value& rows);
  /// Under the mutex: the panel is in its file.
  void SetSpilled(PanelSet* set, Panel* panel, std::shared_ptr<const SpilledRows> spilled);

  /// Under the mutex: the sum of what is kept and spilled now, and of what was read and written.
  PanelStatistics Statistics() const;
  /// PanelStore::SetCancelled.
  void SetCancelled(const std::atomic<bool>* cancelled) { cancelled_ = cancelled; }
  const std::atomic<bool>* cancelled() const { return cancelled_; }
  /// kCancelled once that flag is set.
  Status CheckCancelled() const;
  /// Counts what is made again.
  void NoteRemade(int64_t bytes) { remade_bytes_ += bytes; }

 private:
  class CountedFile;

  std::vector<std::shared_ptr<PanelSet>> SetsByLastRead() const;
  // Under the mutex: panels of at least `bytes`, where values that were read before `read_before` have so
  // many.
  std::vector<Leaving> Choose(int64_t bytes, uint64_t read_before, bool may_write) const;
  void Mark(const std::vector<Leaving>& leaving);

  SpillFiles& files_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<PanelSet>> sets_;
  std::atomic<uint64_t> now_ = 0;
  int64_t room_ = INT64_MAX;
  int64_t kept_bytes_ = 0;
  int64_t leaving_bytes_ = 0;
  int64_t spilled_bytes_ = 0;
  std::atomic<const std::atomic<bool>*> cancelled_ = nullptr;
  std::atomic<int64_t> written_bytes_ = 0;
  std::atomic<int64_t> read_bytes_ = 0;
  std::atomic<int64_t> remade_bytes_ = 0;
};

}  // namespace heddle::ops

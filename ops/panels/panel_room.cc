// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/panel_room.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/memory/counted_heap.h"
#include "ops/base/kernel.h"

namespace heddle::ops {
namespace {

// Panels begin at pages: one that is written does not wait for the page that it shares with another.
constexpr int64_t kPageBytes = 4096;

}  // namespace

// Adds up what is moved, until the run is cancelled.
class PanelRoom::CountedFile : public SpillFile {
 public:
  CountedFile(PanelRoom& room, std::unique_ptr<SpillFile> file) : room_(room), file_(std::move(file)) {}
  Status WriteAt(int64_t offset, const void* bytes, int64_t count) override {
    HEDDLE_RETURN_IF_ERROR(room_.CheckCancelled());
    HEDDLE_RETURN_IF_ERROR(file_->WriteAt(offset, bytes, count));
    room_.written_bytes_ += count;
    return OkStatus();
  }
  Status ReadAt(int64_t offset, void* bytes, int64_t count) const override {
    HEDDLE_RETURN_IF_ERROR(room_.CheckCancelled());
    HEDDLE_RETURN_IF_ERROR(file_->ReadAt(offset, bytes, count));
    room_.read_bytes_ += count;
    return OkStatus();
  }
  void Announce(int64_t offset, int64_t count) const override { file_->Announce(offset, count); }
  const std::string& folder() const override { return file_->folder(); }

 private:
  PanelRoom& room_;
  std::unique_ptr<SpillFile> file_;
};

void PanelRoom::Add(std::shared_ptr<PanelSet> set) {
  const std::lock_guard lock(mutex_);
  sets_.push_back(std::move(set));
}

void PanelRoom::Remove(const std::shared_ptr<PanelSet>& set) {
  std::map<int64_t, std::shared_ptr<Panel>> panels;  // Destroyed without the mutex.
  const std::lock_guard lock(mutex_);
  for (auto& [begin, panel] : set->panels) {
    if (panel->is_leaving) leaving_bytes_ -= panel->held_bytes;
    panel->is_leaving = false;
  }
  kept_bytes_ -= set->kept_bytes;
  spilled_bytes_ -= set->spilled_bytes;
  std::erase(sets_, set);
  panels.swap(set->panels);
}

std::vector<std::shared_ptr<PanelSet>> PanelRoom::SetsByLastRead() const {
  std::vector<std::shared_ptr<PanelSet>> sets;
  for (const auto& set : sets_)
    if (set->kept_bytes > 0) sets.push_back(set);
  std::sort(sets.begin(), sets.end(),
            [](const auto& a, const auto& b) { return a->last_read < b->last_read; });
  return sets;
}

std::vector<PanelRoom::Leaving> PanelRoom::Choose(int64_t bytes, uint64_t read_before, bool may_write) const {
  std::vector<Leaving> leaving;
  for (const auto& set : SetsByLastRead()) {
    if (set->last_read >= read_before) break;
    for (auto at = set->panels.rbegin(); at != set->panels.rend() && bytes > 0; ++at) {
      const auto& panel = at->second;
      if (!panel->is_kept || panel->is_leaving) continue;
      if (!may_write && panel->spilled == nullptr && !set->MayForget()) continue;
      bytes -= panel->held_bytes;
      leaving.push_back({set, panel, panel->rows});
    }
  }
  return leaving;
}

void PanelRoom::Mark(const std::vector<Leaving>& leaving) {
  for (const Leaving& one : leaving) {
    one.panel->is_leaving = true;
    leaving_bytes_ += one.panel->held_bytes;
  }
}

bool PanelRoom::TakeRoom(int64_t bytes, uint64_t read_before, bool may_write, std::vector<Leaving>* leaving) {
  if (bytes > room_) return false;
  const int64_t missing = bytes - (room_ - (kept_bytes_ - leaving_bytes_));
  if (missing > 0) {
    *leaving = Choose(missing, read_before, may_write);
    int64_t found = 0;
    for (const Leaving& one : *leaving) found += one.panel->held_bytes;
    if (found < missing) {
      leaving->clear();
      return false;
    }
    Mark(*leaving);
  }
  kept_bytes_ += bytes;
  return true;
}

Status PanelRoom::SendOut(std::vector<Leaving> leaving) {
  Status error;
  for (Leaving& one : leaving) {
    const Value rows = std::exchange(one.rows, Value());  // Its last owner destroys it without the mutex.
    PanelSet& set = *one.set;
    Panel& panel = *one.panel;
    std::unique_lock lock(mutex_);
    // Rows are given up under the mutex under which it is asked whether they may be: from then on whoever
    // wants all rows of the value kept (KeepAll) finds that these are missing.
    if (error.ok() && panel.is_leaving && panel.spilled == nullptr && !set.MayForget()) {
      lock.unlock();
      Result<std::shared_ptr<const SpilledRows>> written = Write(set, panel, rows);
      lock.lock();
      if (!written.ok() && (set.make == nullptr || set.must_stay))
        error = written.status();  // Otherwise it is forgotten, and made again.
      else if (written.ok() && panel.is_leaving)
        SetSpilled(&set, &panel, *std::move(written));
    }
    if (!panel.is_leaving) continue;  // Its value is gone.
    panel.is_leaving = false;
    leaving_bytes_ -= panel.held_bytes;
    if (!error.ok()) continue;
    panel.rows = Value();
    panel.is_kept = false;
    set.kept_bytes -= panel.held_bytes;
    kept_bytes_ -= panel.held_bytes;
  }
  return error;
}

Status PanelRoom::SetRoom(int64_t bytes) {
  std::vector<Leaving> leaving;
  {
    const std::lock_guard lock(mutex_);
    room_ = std::max<int64_t>(bytes, 0);
    leaving = Choose(kept_bytes_ - leaving_bytes_ - room_, UINT64_MAX, /*may_write=*/true);
    Mark(leaving);
  }
  return SendOut(std::move(leaving));
}

void PanelRoom::PlaceInFile(PanelSet* set, Panel* panel, const Value& rows) const {
  panel->file_offset = set->file_end;
  set->file_end += (SpilledRows::BytesFor(rows) + kPageBytes - 1) / kPageBytes * kPageBytes;
}

Result<std::shared_ptr<const SpilledRows>> PanelRoom::Write(PanelSet& set, const Panel& panel,
                                                            const Value& rows) {
  return WithinMemory("a spill file", [&]() -> Result<std::shared_ptr<const SpilledRows>> {
    std::shared_ptr<SpillFile> file;
    {
      const std::lock_guard lock(set.file_mutex);
      if (set.file == nullptr) {
        HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<SpillFile> created, files_.Create());
        set.file = std::make_shared<CountedFile>(*this, std::move(created));
      }
      file = set.file;
    }
    return SpilledRows::Write(std::move(file), panel.file_offset, rows);
  });
}

void PanelRoom::SetSpilled(PanelSet* set, Panel* panel, std::shared_ptr<const SpilledRows> spilled) {
  set->spilled_bytes += spilled->file_bytes();
  spilled_bytes_ += spilled->file_bytes();
  panel->spilled = std::move(spilled);
}

Status PanelRoom::CheckCancelled() const {
  return IsCancelled(cancelled_) ? Cancelled("cancelled") : OkStatus();
}

PanelStatistics PanelRoom::Statistics() const {
  return {.kept_bytes = kept_bytes_,
          .spilled_bytes = spilled_bytes_,
          .written_bytes = written_bytes_,
          .read_bytes = read_bytes_,
          .remade_bytes = remade_bytes_};
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/panel_store.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "core/memory/counted_heap.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/entry_counts.h"
#include "ops/panels/gather_rows.h"
#include "ops/panels/panel_collector.h"
#include "ops/panels/panel_room.h"

namespace heddle::ops {
namespace {

// What a read announces of the rows behind its own.
constexpr int64_t kMostAnnounced = int64_t{64} << 20;

class PanelsOfValue : public RowPanels {
 public:
  PanelsOfValue(PanelRoom& room, std::shared_ptr<PanelSet> set) : room_(room), set_(std::move(set)) {
    room_.Add(set_);
  }
  ~PanelsOfValue() override { room_.Remove(set_); }

  Shape shape() const override { return set_->shape; }
  bool IsFrame() const override { return set_->is_frame; }
  const std::vector<int64_t>& entries() const { return set_->entries; }
  int64_t bytes() const override {
    const std::lock_guard lock(room_.mutex());
    return set_->kept_bytes;
  }

  Result<Value> Rows(int64_t begin, int64_t end) const override {
    const std::shared_lock lock(origin_mutex_);
    return Read(begin, end);
  }

  /// Every row has a panel from now on: what its rows come from is not read any more when this returns.
  Status KeepAll() const {
    constexpr int64_t kBytesAtOnce = int64_t{1} << 20;
    const std::unique_lock lock(origin_mutex_);
    set_->is_costly = true;
    set_->must_stay = true;
    int64_t height = 1;
    for (int64_t begin = 0; begin < set_->shape.rows;) {
      const int64_t end = std::min(set_->shape.rows, begin + height);
      HEDDLE_ASSIGN_OR_RETURN(const Value rows, Read(begin, end));
      for (const Piece& piece : PiecesOf(begin, end))
        if (piece.panel == nullptr) HEDDLE_RETURN_IF_ERROR(Spill(piece));
      const int64_t row_bytes = std::max<int64_t>(1, rows.bytes() / (end - begin));
      height = std::max<int64_t>(1, kBytesAtOnce / row_bytes);
      begin = end;
    }
    return OkStatus();
  }

 private:
  Result<Value> Read(int64_t begin, int64_t end) const {
    if (begin < 0 || begin > end || end > set_->shape.rows)
      return Internal("panels: rows {} to {} are not in the value", begin, end);
    if (begin == end) return NoRows(begin);
    std::vector<RowSource> sources;
    for (Piece& piece : PiecesOf(begin, end)) {
      HEDDLE_RETURN_IF_ERROR(room_.CheckCancelled());
      if (piece.panel == nullptr)
        HEDDLE_RETURN_IF_ERROR(Make(piece, &sources));
      else
        HEDDLE_RETURN_IF_ERROR(Find(piece, &sources));
    }
    HEDDLE_ASSIGN_OR_RETURN(Value rows, GatherRows(sources));
    AnnounceNext(begin, end);
    return rows;
  }

  // A part of the rows that somebody asks for: all of one panel, or rows that no panel has.
  struct Piece {
    int64_t begin = 0;
    int64_t end = 0;
    std::shared_ptr<Panel> panel;  // nullptr: none has them.
    Value in_memory;
    std::shared_ptr<const SpilledRows> spilled;
    uint64_t last_read = 0;  // Before now; of rows that are new, when their value was begun.
    bool is_remade = false;
  };

  std::vector<Piece> PiecesOf(int64_t begin, int64_t end) const {
    std::vector<Piece> pieces;
    const auto add_missing = [&](int64_t from, int64_t to) -> Piece& {
      if (pieces.empty() || pieces.back().panel != nullptr)
        pieces.push_back({.begin = from, .last_read = set_->begun});
      pieces.back().end = to;
      return pieces.back();
    };
    const std::lock_guard lock(room_.mutex());
    set_->last_read = room_.Now();
    auto at = set_->panels.upper_bound(begin);
    if (at != set_->panels.begin()) --at;
    int64_t row = begin;
    for (; at != set_->panels.end() && at->first < end; ++at) {
      const auto& panel = at->second;
      if (panel->end <= begin) continue;
      if (row < panel->begin) add_missing(row, panel->begin);
      const int64_t from = std::max(begin, panel->begin);
      row = std::min(end, panel->end);
      if (panel->HasRows()) {
        pieces.push_back({from, row, panel, panel->rows, panel->is_kept ? nullptr : panel->spilled,
                          panel->last_read, false});
        panel->last_read = set_->last_read;
      } else {
        Piece& missing = add_missing(from, row);
        missing.last_read = std::max(missing.last_read, panel->last_read);
        missing.is_remade = true;
      }
    }
    if (row < end) add_missing(row, end);
    return pieces;
  }

  // Rows of a panel, which comes back to memory where there is room for it.
  Status Find(const Piece& piece, std::vector<RowSource>* sources) const {
    const int64_t first = piece.panel->begin;
    RowSource source{piece.in_memory, piece.spilled, piece.begin - first, piece.end - first};
    std::vector<PanelRoom::Leaving> leaving;
    if (piece.spilled != nullptr && BeginsToCome(piece, &leaving)) {
      HEDDLE_RETURN_IF_ERROR(room_.SendOut(std::move(leaving)));
      Result<Value> rows =
          WithinMemory("a spill file", [&] { return piece.spilled->Read(0, piece.spilled->shape().rows); });
      const std::lock_guard lock(room_.mutex());
      piece.panel->is_coming = false;
      if (rows.ok()) {
        piece.panel->rows = *rows;
        piece.panel->is_kept = true;
        set_->kept_bytes += piece.panel->held_bytes;
        source.in_memory = *std::move(rows);
        source.spilled = nullptr;
      } else {
        room_.GiveRoom(piece.panel->held_bytes);
        // Where memory has no room for all rows of the panel, it may have it for those that are asked for.
        if (rows.status().code() != StatusCode::kResourceExhausted) return rows.status();
      }
    }
    sources->push_back(std::move(source));
    return OkStatus();
  }

  bool BeginsToCome(const Piece& piece, std::vector<PanelRoom::Leaving>* leaving) const {
    const std::lock_guard lock(room_.mutex());
    Panel& panel = *piece.panel;
    if (panel.is_kept || panel.is_coming ||
        !room_.TakeRoom(panel.held_bytes, piece.last_read, /*may_write=*/false, leaving))
      return false;
    panel.is_coming = true;
    return true;
  }

  // Makes rows that no panel has.
  Status Make(const Piece& piece, std::vector<RowSource>* sources) const {
    if (set_->make == nullptr) return Internal("panels: rows that were never added");
    HEDDLE_ASSIGN_OR_RETURN(Value rows, set_->make(piece.begin, piece.end));
    HEDDLE_RETURN_IF_ERROR(CheckRows(*set_, rows));
    if (rows.shape().rows != piece.end - piece.begin)
      return Internal("panels: {} rows were made for rows {} to {}", rows.shape().rows, piece.begin,
                      piece.end);
    if (piece.is_remade) room_.NoteRemade(rows.bytes());
    sources->push_back({rows, nullptr, 0, rows.shape().rows});
    return Keep(piece, std::move(rows));
  }

  // Keeps what has been made, in memory or in a file.
  Status Keep(const Piece& piece, Value rows) const {
    auto panel = std::make_shared<Panel>();
    panel->begin = piece.begin;
    panel->end = piece.end;
    panel->held_bytes = HeldBytes(rows);
    std::vector<PanelRoom::Leaving> leaving;
    {
      const std::lock_guard lock(room_.mutex());
      if (!MakePlace(piece.begin, piece.end)) return OkStatus();
      panel->last_read = set_->last_read;
      room_.PlaceInFile(set_.get(), panel.get(), rows);
      set_->panels.emplace(panel->begin, panel);
      if (room_.TakeRoom(panel->held_bytes, piece.last_read, set_->is_costly, &leaving)) {
        panel->rows = rows;
        panel->is_kept = true;
        set_->kept_bytes += panel->held_bytes;
      } else if (!set_->is_costly) {
        return OkStatus();
      }
      panel->is_coming = !panel->is_kept;
    }
    if (const Status status = room_.SendOut(std::move(leaving)); !status.ok()) Forget(*panel);
    if (!panel->is_coming) return OkStatus();
    // A disk without room is no reason to fail: the rows are made again.
    Result<std::shared_ptr<const SpilledRows>> spilled = room_.Write(*set_, *panel, rows);
    const std::lock_guard lock(room_.mutex());
    panel->is_coming = false;
    if (spilled.ok()) room_.SetSpilled(set_.get(), panel.get(), *std::move(spilled));
    return OkStatus();
  }

  // Rows that could not be kept go to the file, or the error of that is told.
  Status Spill(const Piece& piece) const {
    HEDDLE_ASSIGN_OR_RETURN(const Value rows, set_->make(piece.begin, piece.end));
    auto panel = std::make_shared<Panel>();
    panel->begin = piece.begin;
    panel->end = piece.end;
    panel->held_bytes = HeldBytes(rows);
    {
      const std::lock_guard lock(room_.mutex());
      if (!MakePlace(piece.begin, piece.end)) return OkStatus();
      room_.PlaceInFile(set_.get(), panel.get(), rows);
    }
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const SpilledRows> spilled, room_.Write(*set_, *panel, rows));
    const std::lock_guard lock(room_.mutex());
    room_.SetSpilled(set_.get(), panel.get(), std::move(spilled));
    set_->panels.emplace(panel->begin, std::move(panel));
    return OkStatus();
  }

  // What had to make place for these rows could not: they are made again another time.
  void Forget(Panel& panel) const {
    Value dropped;  // Destroyed without the mutex.
    const std::lock_guard lock(room_.mutex());
    if (!panel.is_kept || panel.is_leaving) return;
    std::swap(dropped, panel.rows);
    panel.is_kept = false;
    set_->kept_bytes -= panel.held_bytes;
    room_.GiveRoom(panel.held_bytes);
  }

  // Under the mutex: takes away what is known of rows that were forgotten. False where a panel has some of
  // these rows by now, or another thread is about to write them.
  bool MakePlace(int64_t begin, int64_t end) const {
    std::vector<std::shared_ptr<Panel>> found;
    auto at = set_->panels.upper_bound(begin);
    if (at != set_->panels.begin()) --at;
    for (; at != set_->panels.end() && at->first < end; ++at) {
      if (at->second->end <= begin) continue;
      if (at->second->HasRows() || at->second->is_coming) return false;
      found.push_back(at->second);
    }
    for (const auto& panel : found) {
      set_->panels.erase(panel->begin);
      const auto keep_part = [&](int64_t from, int64_t to) {
        if (from >= to) return;
        auto part = std::make_shared<Panel>();
        part->begin = from;
        part->end = to;
        part->last_read = panel->last_read;
        set_->panels.emplace(from, std::move(part));
      };
      keep_part(panel->begin, begin);
      keep_part(end, panel->end);
    }
    return true;
  }

  // Who reads on where the last read ended will go on so.
  void AnnounceNext(int64_t begin, int64_t end) const {
    struct Part {
      std::shared_ptr<const SpilledRows> spilled;
      int64_t begin, end;
    };
    std::vector<Part> parts;
    {
      const std::lock_guard lock(room_.mutex());
      const bool goes_on = set_->next_row == begin;
      set_->next_row = end;
      if (!goes_on) return;
      const int64_t next_end = std::min(set_->shape.rows, end + (end - begin));
      auto at = set_->panels.upper_bound(end);
      if (at != set_->panels.begin()) --at;
      int64_t bytes = 0;
      for (; at != set_->panels.end() && at->first < next_end && bytes < kMostAnnounced; ++at) {
        const Panel& panel = *at->second;
        if (panel.end <= end || panel.is_kept || panel.spilled == nullptr) continue;
        const int64_t from = std::max(end, panel.begin) - panel.begin;
        const int64_t rows = panel.end - panel.begin;
        const int64_t row_bytes = std::max<int64_t>(1, panel.spilled->file_bytes() / rows);
        const int64_t to =
            std::min({next_end - panel.begin, rows, from + (kMostAnnounced - bytes) / row_bytes + 1});
        parts.push_back({panel.spilled, from, to});
        bytes += (to - from) * row_bytes;
      }
    }
    for (const Part& part : parts) part.spilled->Announce(part.begin, part.end);
  }

  Result<Value> NoRows(int64_t row) const {
    {
      const std::lock_guard lock(room_.mutex());
      if (set_->no_rows) return *set_->no_rows;
    }
    if (set_->make != nullptr) return set_->make(row, row);
    if (set_->is_frame) return Value(Frame());
    HEDDLE_ASSIGN_OR_RETURN(Matrix none, Matrix::Dense(0, std::max<int64_t>(set_->shape.columns, 0)));
    return Value(std::move(none));
  }

  PanelRoom& room_;
  const std::shared_ptr<PanelSet> set_;
  mutable std::shared_mutex origin_mutex_;  // Held by who reads; alone, before the origin of rows changes.
};

class Store : public PanelStore {
 public:
  Store(SpillFiles& files, int64_t least_panel_bytes) : room_(files), least_panel_bytes_(least_panel_bytes) {}

  std::unique_ptr<Collector> Collect(Shape shape, bool is_frame, int64_t least_panel_bytes) override {
    if (least_panel_bytes == 0 || least_panel_bytes > least_panel_bytes_)
      least_panel_bytes = least_panel_bytes_;
    return CollectorOf(room_, Begin(shape, is_frame), least_panel_bytes);
  }
  std::shared_ptr<const RowPanels> Lazy(Shape shape, bool is_frame, Maker make, bool is_costly,
                                        std::string origin) override {
    std::shared_ptr<PanelSet> set = Begin(shape, is_frame);
    set->make = std::move(make);
    set->is_costly = is_costly;
    {
      const std::lock_guard lock(mutex_);
      set->home = home_;
    }
    auto panels = std::make_shared<PanelsOfValue>(room_, std::move(set));
    if (origin.empty()) return panels;
    const std::lock_guard lock(mutex_);
    std::erase_if(made_from_, [](const auto& made) { return made.second.expired(); });
    made_from_.emplace_back(std::move(origin), panels);
    return panels;
  }
  Status KeepAll(const std::string& origin) override {
    std::vector<std::shared_ptr<const PanelsOfValue>> found;
    {
      const std::lock_guard lock(mutex_);
      const auto changes = [&](const auto& made) { return origin.empty() || made.first == origin; };
      for (const auto& made : made_from_)
        if (changes(made)) found.push_back(made.second.lock());
      std::erase_if(made_from_, changes);
    }
    for (const auto& panels : found)
      if (panels != nullptr) HEDDLE_RETURN_IF_ERROR(panels->KeepAll());
    return OkStatus();
  }
  Status SetRoom(int64_t bytes) override { return room_.SetRoom(bytes); }
  void SetHome(std::shared_ptr<const void> home) override {
    const std::lock_guard lock(mutex_);
    home_ = std::move(home);
  }
  void SetCancelled(const std::atomic<bool>* cancelled) override { room_.SetCancelled(cancelled); }
  const std::atomic<bool>* cancelled() const override { return room_.cancelled(); }
  PanelStatistics Statistics() const override {
    const std::lock_guard lock(room_.mutex());
    return room_.Statistics();
  }

 private:
  std::shared_ptr<PanelSet> Begin(Shape shape, bool is_frame) {
    auto set = std::make_shared<PanelSet>();
    set->shape = shape;
    set->is_frame = is_frame;
    set->begun = set->last_read = room_.Now();
    return set;
  }

  PanelRoom room_;
  const int64_t least_panel_bytes_;
  std::mutex mutex_;
  std::shared_ptr<const void> home_;                                                   // Under mutex_.
  std::vector<std::pair<std::string, std::weak_ptr<const PanelsOfValue>>> made_from_;  // Under mutex_.
};

}  // namespace

std::vector<int64_t> EntriesOf(const RowPanels& panels) {
  const auto* const known = dynamic_cast<const PanelsOfValue*>(&panels);
  return known == nullptr ? std::vector<int64_t>() : known->entries();
}

std::shared_ptr<const RowPanels> PanelsOf(PanelRoom& room, std::shared_ptr<PanelSet> set) {
  return std::make_shared<PanelsOfValue>(room, std::move(set));
}

std::unique_ptr<PanelStore> MakePanelStore(SpillFiles& files, int64_t least_panel_bytes) {
  return std::make_unique<Store>(files, least_panel_bytes);
}

}  // namespace heddle::ops

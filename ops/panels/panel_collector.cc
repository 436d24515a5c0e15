// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/panel_collector.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory/block_pool.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/entry_counts.h"

namespace heddle::ops {
namespace {

// No rows, stored as these, and without their memory.
Result<Value> NoRowsLike(const Value& rows) {
  if (rows.IsMatrix()) {
    const Matrix& matrix = rows.matrix();
    HEDDLE_ASSIGN_OR_RETURN(Matrix none, matrix.IsSparse()
                                             ? Matrix::Sparse(0, matrix.columns(), 0, matrix.element_type())
                                             : Matrix::Dense(0, matrix.columns(), matrix.element_type()));
    return Value(std::move(none));
  }
  std::vector<Column> columns;
  for (const ColumnType type : rows.frame().schema()->types) {
    HEDDLE_ASSIGN_OR_RETURN(Column column, Column::Make(type, 0, 0, /*may_miss=*/false));
    if (column.storage() == ColumnStorage::kTexts) column.mutable_offsets()[0] = 0;
    columns.push_back(std::move(column));
  }
  return Value(Frame(rows.frame().schema(), std::move(columns)));
}

// Bytes of the rows as the next operator gets them: a compressed panel is no smaller than others.
int64_t CellBytes(const Value& rows) {
  if (!rows.IsMatrix() || !rows.matrix().IsCompressed()) return rows.bytes();
  return rows.matrix().cells() * BytesOf(rows.matrix().element_type());
}

class CollectorOfPanels : public PanelStore::Collector {
 public:
  CollectorOfPanels(PanelRoom& room, std::shared_ptr<PanelSet> set, int64_t least_panel_bytes)
      : room_(room),
        set_(std::move(set)),
        least_panel_bytes_(least_panel_bytes),
        value_(PanelsOf(room, set_)) {}

  Status Add(Value rows) override {
    HEDDLE_RETURN_IF_ERROR(CheckRows(*set_, rows));
    const int64_t count = rows.shape().rows;
    if (set_->shape.rows != kUnknown && count > set_->shape.rows - rows_ - waiting_rows_)
      return Internal("panels: more than the {} rows of the value", set_->shape.rows);
    if (!no_rows_) {
      HEDDLE_ASSIGN_OR_RETURN(no_rows_, NoRowsLike(rows));
      const std::lock_guard lock(room_.mutex());
      set_->no_rows = no_rows_;
    }
    if (count == 0) return OkStatus();
    if (rows.IsMatrix()) {
      if (rows.matrix().element_type() != no_rows_->matrix().element_type())
        return Internal("panels: cells of {} below cells of {}", Name(rows.matrix().element_type()),
                        Name(no_rows_->matrix().element_type()));
      const bool is_sparse = no_rows_->matrix().IsSparse();
      if (!rows.matrix().IsCompressed() || is_sparse) {
        HEDDLE_ASSIGN_OR_RETURN(Matrix stored, is_sparse ? ToSparse(rows.matrix()) : ToDense(rows.matrix()));
        rows = Value(std::move(stored));
      }
    }
    const int64_t least_bytes = LeastPanelBytes();
    if (waiting_.empty() && CellBytes(rows) >= least_bytes) return AddPanel(std::move(rows));
    waiting_rows_ += count;
    waiting_bytes_ += CellBytes(rows);
    waiting_.push_back(std::move(rows));
    return waiting_bytes_ >= least_bytes ? AddWaiting() : OkStatus();
  }

  Result<std::shared_ptr<const RowPanels>> Finish() override {
    HEDDLE_RETURN_IF_ERROR(AddWaiting());
    if (set_->shape.rows == kUnknown) set_->shape.rows = rows_;
    if (set_->shape.columns == kUnknown) set_->shape.columns = no_rows_ ? no_rows_->shape().columns : 0;
    if (rows_ != set_->shape.rows)
      return Internal("panels: {} of the {} rows of the value were added", rows_, set_->shape.rows);
    if (entries_) set_->entries = entries_->Finish();
    return std::move(value_);
  }

 private:
  // Rows that wait are in memory beside what the room is for: few where it is small.
  int64_t LeastPanelBytes() const {
    constexpr int64_t kPartsOfRoom = 32;
    const std::lock_guard lock(room_.mutex());
    return std::min(least_panel_bytes_, std::max(SpilledArray::kChunkBytes, room_.room() / kPartsOfRoom));
  }

  Status AddWaiting() {
    if (waiting_.empty()) return OkStatus();
    const std::vector<Value> pieces = std::exchange(waiting_, {});
    std::vector<const Value*> pointers;
    for (const Value& piece : pieces) pointers.push_back(&piece);
    HEDDLE_ASSIGN_OR_RETURN(Value rows, JoinRows(pointers));
    waiting_rows_ = waiting_bytes_ = 0;
    return AddPanel(std::move(rows));
  }

  Status AddPanel(Value rows) {
    if (rows.IsMatrix() && rows.matrix().IsSparse() && set_->shape.rows != kUnknown) {
      if (!entries_) entries_.emplace(set_->shape.rows);
      entries_->Add(rows.matrix());
    }
    auto panel = std::make_shared<Panel>();
    panel->begin = rows_;
    panel->end = rows_ += rows.shape().rows;
    panel->held_bytes = HeldBytes(rows);
    std::vector<PanelRoom::Leaving> leaving;
    bool is_kept = false;
    {
      const std::lock_guard lock(room_.mutex());
      set_->last_read = panel->last_read = room_.Now();
      room_.PlaceInFile(set_.get(), panel.get(), rows);
      is_kept = room_.TakeRoom(panel->held_bytes, set_->begun, /*may_write=*/true, &leaving);
      if (is_kept) {
        set_->panels.emplace(panel->begin, panel);
        panel->rows = std::move(rows);
        panel->is_kept = true;
        set_->kept_bytes += panel->held_bytes;
      }
    }
    if (is_kept) return room_.SendOut(std::move(leaving));
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const SpilledRows> spilled, room_.Write(*set_, *panel, rows));
    const std::lock_guard lock(room_.mutex());
    room_.SetSpilled(set_.get(), panel.get(), std::move(spilled));
    set_->panels.emplace(panel->begin, panel);
    return OkStatus();
  }

  PanelRoom& room_;
  const std::shared_ptr<PanelSet> set_;
  const int64_t least_panel_bytes_;
  std::shared_ptr<const RowPanels> value_;
  int64_t rows_ = 0;                    // In panels.
  std::optional<EntryCounts> entries_;  // Of a CSR matrix.
  std::optional<Value> no_rows_;
  std::vector<Value> waiting_;  // For more rows, to become a panel.
  int64_t waiting_rows_ = 0;
  int64_t waiting_bytes_ = 0;
};

}  // namespace

int64_t HeldBytes(const Value& rows) {
  if (!rows.IsFrame()) return BlockPool::ClassBytes(rows.bytes());
  int64_t bytes = 0;
  for (int64_t j = 0; j < rows.frame().columns(); ++j)
    bytes += BlockPool::ClassBytes(rows.frame().column(j).bytes());
  return bytes;
}

Status CheckRows(const PanelSet& set, const Value& rows) {
  if (set.is_frame ? !rows.IsFrame() : !rows.IsMatrix())
    return Internal("panels: rows of another kind than their value");
  if (rows.shape().columns != set.shape.columns && set.shape.columns != kUnknown)
    return Internal("panels: rows of {} columns for a value of {}", rows.shape().columns, set.shape.columns);
  return OkStatus();
}

std::unique_ptr<PanelStore::Collector> CollectorOf(PanelRoom& room, std::shared_ptr<PanelSet> set,
                                                   int64_t least_panel_bytes) {
  return std::make_unique<CollectorOfPanels>(room, std::move(set), least_panel_bytes);
}

}  // namespace heddle::ops

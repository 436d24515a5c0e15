// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/kept_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/memory/counted_heap.h"
#include "core/values/column_groups.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "ops/frame/stack_rows.h"

namespace heddle::ops {
namespace {

// Whether the rows of both can be rows of one value.
bool AreAlike(const Value& a, const Value& b) {
  if (a.kind() != b.kind() || a.shape().columns != b.shape().columns) return false;
  if (a.IsFrame())
    return a.frame().schema()->types == b.frame().schema()->types &&
           a.frame().schema()->names == b.frame().schema()->names;
  return a.IsMatrix() && a.matrix().element_type() == b.matrix().element_type();
}

}  // namespace

Result<Value> WithMemoryOfItsOwn(Value value) {
  if (value.IsFrame()) {
    HEDDLE_ASSIGN_OR_RETURN(Frame copy, CopyRows(value.frame()));
    return Value(std::move(copy));
  }
  if (!value.IsMatrix()) return value;
  const Matrix& matrix = value.matrix();
  if (matrix.IsCompressed()) {
    HEDDLE_ASSIGN_OR_RETURN(
        std::shared_ptr<const ColumnGroups> groups,
        SliceGroups(matrix.groups(), matrix.first_row(), matrix.first_row() + matrix.rows()));
    return Value(Matrix::OfGroups(std::move(groups)));
  }
  const auto cell = static_cast<size_t>(BytesOf(matrix.element_type()));
  if (!matrix.IsSparse()) {
    if (matrix.HoldsCellsAlone()) return value;
    HEDDLE_ASSIGN_OR_RETURN(Matrix copy,
                            Matrix::Dense(matrix.rows(), matrix.columns(), matrix.element_type()));
    std::memcpy(copy.mutable_data<char>(), matrix.data<char>(), static_cast<size_t>(matrix.cells()) * cell);
    return Value(std::move(copy));
  }
  const int64_t first = matrix.rows() == 0 ? 0 : matrix.row_offsets()[0];
  HEDDLE_ASSIGN_OR_RETURN(
      Matrix copy, Matrix::Sparse(matrix.rows(), matrix.columns(), matrix.stored(), matrix.element_type()));
  for (int64_t i = 0; i <= matrix.rows(); ++i)
    copy.mutable_row_offsets()[i] = matrix.rows() == 0 ? 0 : matrix.row_offsets()[i] - first;
  const auto stored = static_cast<size_t>(matrix.stored());
  std::copy_n(matrix.column_indexes() + first, stored, copy.mutable_column_indexes());
  std::memcpy(copy.mutable_values<char>(), matrix.values<char>() + static_cast<size_t>(first) * cell,
              stored * cell);
  return Value(std::move(copy));
}

Result<Value> KeptPart::Read() const {
  HEDDLE_ASSIGN_OR_RETURN(Value rows,
                          panels == nullptr ? Result<Value>(in_memory) : panels->Rows(begin, end));
  return Decoded(std::move(rows));
}

Status KeptParts::Add(Value value) {
  if (value.IsPanels()) {
    const int64_t rows = value.shape().rows;
    Add(KeptPart{.panels = value.panels(), .end = rows});
    return OkStatus();
  }
  const bool is_empty = !value.IsScalar() && value.shape().rows == 0;
  if (is_empty && AreAlike(value, empty_) && value.bytes() == empty_.bytes()) {
    parts_.push_back({KeptPart{.in_memory = empty_}});  // Of many targets most get nothing.
    return OkStatus();
  }
  if (value.IsScalar() || is_empty || (collector_ != nullptr && !AreAlike(value, first_))) {
    // Rows of a larger value, however few, hold its memory.
    HEDDLE_ASSIGN_OR_RETURN(value, WithMemoryOfItsOwn(std::move(value)));
    if (is_empty) empty_ = value;
    parts_.push_back({KeptPart{.in_memory = std::move(value)}});
    return OkStatus();
  }
  if (collector_ == nullptr) {
    collector_ = store_->Collect({kUnknown, value.shape().columns}, value.IsFrame(), least_panel_bytes_);
    HEDDLE_ASSIGN_OR_RETURN(first_, SliceRows(value, 0, 0));
    HEDDLE_ASSIGN_OR_RETURN(first_, WithMemoryOfItsOwn(std::move(first_)));
  }
  const int64_t begin = rows_;
  rows_ += value.shape().rows;
  parts_.push_back({.part = {.begin = begin, .end = rows_}, .is_collected = true});
  HEDDLE_ASSIGN_OR_RETURN(value, WithMemoryOfItsOwn(std::move(value)));
  return collector_->Add(std::move(value));
}

Status KeptParts::Finish() {
  if (collector_ == nullptr) return OkStatus();
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const RowPanels> panels, collector_->Finish());
  collector_.reset();
  first_ = empty_ = Value();
  for (Added& added : parts_)
    if (added.is_collected) added.part.panels = panels;
  return OkStatus();
}

std::vector<KeptPart> KeptParts::TakeParts() {
  std::vector<KeptPart> parts;
  for (Added& added : parts_) parts.push_back(std::move(added.part));
  parts_.clear();
  return parts;
}

Result<std::vector<Value>> ReadAll(std::span<const KeptPart> parts) {
  std::vector<Value> values;
  for (size_t i = 0; i < parts.size();) {
    const KeptPart& first = parts[i];
    size_t last = i + 1;
    while (first.panels != nullptr && last < parts.size() && parts[last].panels == first.panels &&
           parts[last].begin == parts[last - 1].end)
      ++last;
    if (last == i + 1) {
      HEDDLE_ASSIGN_OR_RETURN(Value value, first.Read());
      values.push_back(std::move(value));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(Value together, first.panels->Rows(first.begin, parts[last - 1].end));
      HEDDLE_ASSIGN_OR_RETURN(together, Decoded(std::move(together)));
      for (size_t j = i; j < last; ++j) {
        HEDDLE_ASSIGN_OR_RETURN(
            Value value, SliceRows(together, parts[j].begin - first.begin, parts[j].end - first.begin));
        values.push_back(std::move(value));
      }
    }
    i = last;
  }
  return values;
}

std::vector<KeptPart> PartsOfPanels::TakeFor(size_t panel) const {
  std::vector<KeptPart> taken;
  for (size_t i = panel * of_each_; i < (panel + 1) * of_each_; ++i)
    taken.push_back(std::exchange(parts_[i], {}));
  return taken;
}

Result<Value> PartsOfPanels::Take(size_t i) const { return std::exchange(parts_[i], {}).Read(); }

Result<Value> PartsOfPanels::Rows(int64_t begin, int64_t end) const {
  return Internal("panels: rows {} to {} of what stages exchange", begin, end);
}

const PartsOfPanels* PartsIn(const Value& value) {
  return value.IsPanels() ? dynamic_cast<const PartsOfPanels*>(value.panels().get()) : nullptr;
}

Status PartsCollector::Add(Value value) {
  if (of_panel_ == nullptr) of_panel_ = std::make_unique<KeptParts>(*store_, 0);
  HEDDLE_RETURN_IF_ERROR(of_panel_->Add(std::move(value)));
  return ++added_ == of_each_ ? FinishPanel() : OkStatus();
}

Status PartsCollector::FinishPanel() {
  HEDDLE_RETURN_IF_ERROR(of_panel_->Finish());
  for (KeptPart& part : of_panel_->TakeParts()) parts_.push_back(std::move(part));
  of_panel_.reset();
  added_ = 0;
  return OkStatus();
}

Result<Value> PartsCollector::Finish() {
  if (of_panel_ != nullptr) return Internal("panels: {} of {} parts of a panel were added", added_, of_each_);
  return Value(std::make_shared<const PartsOfPanels>(std::move(parts_), of_each_));
}

}  // namespace heddle::ops

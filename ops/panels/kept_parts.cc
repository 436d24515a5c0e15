// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/kept_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/memory/counted_heap.h"
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
  return panels == nullptr ? Result<Value>(in_memory) : panels->Rows(begin, end);
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

Result<std::vector<Value>> KeptParts::ReadAll() const {
  std::vector<Value> values;
  for (size_t i = 0; i < parts_.size();) {
    const KeptPart& first = parts_[i].part;
    size_t last = i + 1;
    while (first.panels != nullptr && last < parts_.size() && parts_[last].part.panels == first.panels &&
           parts_[last].part.begin == parts_[last - 1].part.end)
      ++last;
    if (last == i + 1) {
      HEDDLE_ASSIGN_OR_RETURN(Value value, first.Read());
      values.push_back(std::move(value));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Value together,
                              first.panels->Rows(first.begin, parts_[last - 1].part.end));
      for (size_t j = i; j < last; ++j) {
        const KeptPart& part = parts_[j].part;
        HEDDLE_ASSIGN_OR_RETURN(Value value,
                                SliceRows(together, part.begin - first.begin, part.end - first.begin));
        values.push_back(std::move(value));
      }
    }
    i = last;
  }
  return values;
}

}  // namespace heddle::ops

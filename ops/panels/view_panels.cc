// SPDX-License-Identifier: Apache-2.0
#include "ops/panels/view_panels.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "ops/cells/column_pieces.h"
#include "ops/cells/frame_columns.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "ops/panels/kept_parts.h"

namespace heddle::ops {
namespace {

class Range : public RowPanels {
 public:
  Range(std::shared_ptr<const RowPanels> panels, const PanelRange& range)
      : panels_(std::move(panels)), range_(range) {}

  Shape shape() const override {
    return {range_.row_end - range_.row_begin, range_.column_end - range_.column_begin};
  }
  bool IsFrame() const override { return panels_->IsFrame(); }
  int64_t bytes() const override { return 0; }  // They are those of `panels_`.
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    HEDDLE_ASSIGN_OR_RETURN(Value rows, panels_->Rows(range_.row_begin + begin, range_.row_begin + end));
    if (shape().columns == panels_->shape().columns) return rows;
    if (rows.IsFrame()) return Value(ColumnsOf(rows.frame(), range_.column_begin, range_.column_end));
    return ColumnsOfValue(rows, range_.column_begin, range_.column_end);
  }

 private:
  const std::shared_ptr<const RowPanels> panels_;
  const PanelRange range_;
};

class DecodingPanels : public RowPanels {
 public:
  explicit DecodingPanels(std::shared_ptr<const RowPanels> panels) : panels_(std::move(panels)) {}

  Shape shape() const override { return panels_->shape(); }
  bool IsFrame() const override { return panels_->IsFrame(); }
  int64_t bytes() const override { return 0; }  // They are those of `panels_`.
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    HEDDLE_ASSIGN_OR_RETURN(Value rows, panels_->Rows(begin, end));
    return Decoded(std::move(rows));
  }

 private:
  const std::shared_ptr<const RowPanels> panels_;
};

class DecodedMatrix : public RowPanels {
 public:
  DecodedMatrix(Matrix compressed, Format format) : compressed_(std::move(compressed)), format_(format) {}

  Shape shape() const override { return compressed_.shape(); }
  bool IsFrame() const override { return false; }
  int64_t bytes() const override { return 0; }  // They are those of the matrix.
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    const Matrix rows = compressed_.Rows(begin, end);
    HEDDLE_ASSIGN_OR_RETURN(Matrix decoded, format_ == Format::kSparse ? AsSparse(rows) : AsDense(rows));
    return Value(std::move(decoded));
  }

 private:
  const Matrix compressed_;
  const Format format_;
};

class Joined : public RowPanels {
 public:
  Joined(std::vector<std::shared_ptr<const RowPanels>> parts, ValueInfo info)
      : parts_(std::move(parts)), info_(std::move(info)) {
    for (const auto& part : parts_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part->shape().rows);
  }

  const std::vector<std::shared_ptr<const RowPanels>>& parts() const { return parts_; }
  Shape shape() const override { return {ends_.back(), parts_[0]->shape().columns}; }
  bool IsFrame() const override { return parts_[0]->IsFrame(); }
  int64_t bytes() const override { return 0; }  // They are those of its parts.
  Result<Value> Rows(int64_t begin, int64_t end) const override {
    std::vector<Value> pieces;
    size_t part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
    part = std::min(part, parts_.size() - 1);
    for (; part < parts_.size(); ++part) {
      const int64_t first = part == 0 ? 0 : ends_[part - 1];
      if (first >= end && !pieces.empty()) break;
      HEDDLE_ASSIGN_OR_RETURN(
          Value rows, parts_[part]->Rows(std::max(begin, first) - first, std::min(end, ends_[part]) - first));
      pieces.push_back(std::move(rows));
    }
    std::vector<const Value*> pointers;
    for (const Value& piece : pieces) pointers.push_back(&piece);
    return JoinRowsAs(pointers, info_);
  }

 private:
  const std::vector<std::shared_ptr<const RowPanels>> parts_;
  const ValueInfo info_;
  std::vector<int64_t> ends_;  // Of each, the rows up to its last one.
};

}  // namespace

std::shared_ptr<const RowPanels> RangeOfPanels(std::shared_ptr<const RowPanels> panels,
                                               const PanelRange& range) {
  return std::make_shared<Range>(std::move(panels), range);
}

std::shared_ptr<const RowPanels> DecodedPanels(std::shared_ptr<const RowPanels> panels) {
  return std::make_shared<DecodingPanels>(std::move(panels));
}

std::shared_ptr<const RowPanels> DecodedPanels(Matrix compressed, Format format) {
  return std::make_shared<DecodedMatrix>(std::move(compressed), format);
}

Result<Value> JoinedPanels(std::span<const Value* const> values, const ValueInfo& info, PanelStore& store) {
  std::vector<std::shared_ptr<const RowPanels>> parts;
  for (const Value* const value : values) {
    if (value->IsPanels()) {
      // What a loop adds to one by one is one level deep, whatever the number of rounds.
      if (const auto* const joined = dynamic_cast<const Joined*>(value->panels().get()); joined != nullptr)
        parts.insert(parts.end(), joined->parts().begin(), joined->parts().end());
      else
        parts.push_back(value->panels());
      continue;
    }
    const auto collector = store.Collect(value->shape(), value->IsFrame());
    HEDDLE_ASSIGN_OR_RETURN(Value rows, WithMemoryOfItsOwn(*value));
    HEDDLE_RETURN_IF_ERROR(collector->Add(std::move(rows)));
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const RowPanels> panels, collector->Finish());
    parts.push_back(std::move(panels));
  }
  // Parts without rows say nothing, unless there are no others.
  const auto has_rows = [](const auto& part) { return part->shape().rows > 0; };
  if (std::any_of(parts.begin(), parts.end(), has_rows)) std::erase_if(parts, std::not_fn(has_rows));
  ValueInfo stored = info;
  stored.shape = {kUnknown, parts[0]->shape().columns};
  return Value(std::make_shared<Joined>(std::move(parts), std::move(stored)));
}

}  // namespace heddle::ops

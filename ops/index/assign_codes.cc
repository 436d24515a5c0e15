// SPDX-License-Identifier: Apache-2.0
#include "ops/index/assign_codes.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/cells/append_groups.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/index/ranges.h"

namespace heddle::ops {
namespace {

// Rows of X for each assigned one, at most: codes of all are copied.
constexpr int64_t kRowsOfAssigned = 32;

// rows x columns times the same cell.
Result<Matrix> ConstantGroup(int64_t rows, int64_t columns, double cell, ElementType type) {
  auto groups = std::make_shared<ColumnGroups>();
  groups->rows = rows;
  groups->columns = columns;
  groups->element_type = type;
  ColumnGroup& group = groups->groups.emplace_back();
  group.encoding = Encoding::kConstant;
  group.columns.resize(static_cast<size_t>(columns));
  std::iota(group.columns.begin(), group.columns.end(), 0);
  HEDDLE_ASSIGN_OR_RETURN(const Matrix tuple, FilledMatrix(1, columns, cell));
  HEDDLE_ASSIGN_OR_RETURN(group.dictionary, ToElementType(tuple, type));
  return Matrix::OfGroups(std::move(groups));
}

Result<std::optional<Matrix>> ColumnsOf(const Matrix& x, int64_t begin, int64_t end) {
  std::vector<int64_t> wanted(static_cast<size_t>(end - begin));
  std::iota(wanted.begin(), wanted.end(), begin);
  return GatherGroupColumns(x, wanted);
}

class Assignment {
 public:
  explicit Assignment(const KernelCall& call) : call_(call), x_(call.inputs[0]->matrix()) {}

  Result<std::optional<Value>> Run() {
    const std::optional<Value> nothing;
    if (!x_.IsCompressed() || !Prepare()) return nothing;
    if (row_begin_ == row_end_ || first_ == last_) return std::optional<Value>(*call_.inputs[0]);
    HEDDLE_ASSIGN_OR_RETURN(const std::optional<Matrix> cells, Replacement());
    if (!cells) return nothing;
    std::vector<Matrix> parts;  // Side by side.
    HEDDLE_ASSIGN_OR_RETURN(const bool has_left, Add(0, first_, &parts));
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> assigned, Columns(*cells));
    if (!has_left || !assigned) return nothing;
    parts.push_back(*std::move(assigned));
    HEDDLE_ASSIGN_OR_RETURN(const bool has_right, Add(last_, x_.columns(), &parts));
    if (!has_right) return nothing;
    std::optional<Matrix> result = parts[0];
    if (parts.size() > 1) {
      if (std::none_of(parts.begin(), parts.end(), [](const Matrix& part) { return part.IsCompressed(); }))
        return nothing;
      HEDDLE_ASSIGN_OR_RETURN(result, JoinGroups(parts));
    }
    if (!result || !result->IsCompressed() || !DictionariesPay(*result)) return nothing;
    return std::optional<Value>(*std::move(result));
  }

 private:
  bool AllRows() const { return row_begin_ == 0 && row_end_ == x_.rows(); }

  // The bounds; false for errors and for few rows.
  bool Prepare() {
    const Range rows = GivenRange(call_, 2), columns = GivenRange(call_, 4);
    const Shape whole = call_.input_infos.empty() || !call_.input_infos[0].shape.IsKnown()
                            ? x_.shape()
                            : call_.input_infos[0].shape;
    if (!CheckRanges(rows, columns, whole, StatusCode::kFailedPrecondition).ok()) return false;
    first_ = columns.Begin();
    last_ = columns.End(x_.columns());
    row_end_ = x_.rows();
    if (!rows.all) {
      row_begin_ = std::clamp<int64_t>(rows.Begin() - call_.row_begin, 0, x_.rows());
      row_end_ = std::clamp<int64_t>(rows.upper.number() - call_.row_begin, row_begin_, x_.rows());
      row_of_value_ = call_.row_begin + row_begin_ - rows.Begin();
    }
    const Value& v = *call_.inputs[1];
    if (v.IsScalar() && v.scalar().IsString()) return false;
    const bool is_cell = v.IsScalar() || v.shape() == Shape{1, 1};
    const int64_t all_rows = rows.all ? x_.rows() : rows.Count(whole.rows);
    if (!v.IsScalar() && !v.IsMatrix()) return false;
    if (!is_cell && v.shape() != Shape{all_rows, last_ - first_}) return false;
    return row_begin_ == row_end_ || (row_end_ - row_begin_) * kRowsOfAssigned >= x_.rows();
  }

  // What goes into the rows and columns; dense or compressed.
  Result<std::optional<Matrix>> Replacement() const {
    const int64_t rows = row_end_ - row_begin_, columns = last_ - first_;
    const bool is_sparse = call_.node.info.format == Format::kSparse;
    const Value& v = *call_.inputs[1];
    if (v.IsScalar() || v.shape() == Shape{1, 1}) {
      double cell = v.IsScalar() ? v.scalar().AsDouble() : v.matrix().At(0, 0);
      if (is_sparse) cell += 0.0;  // Zeros that are not stored have no sign.
      HEDDLE_ASSIGN_OR_RETURN(Matrix constant, ConstantGroup(rows, columns, cell, x_.element_type()));
      return std::optional<Matrix>(std::move(constant));
    }
    Matrix cells = v.matrix();
    if (cells.element_type() != x_.element_type()) return std::optional<Matrix>();
    if (cells.rows() != rows) cells = cells.Rows(row_of_value_, row_of_value_ + rows);
    const bool may_have_signs = is_sparse && call_.input_infos[1].format != Format::kSparse;
    if (cells.IsCompressed())
      return may_have_signs ? std::optional<Matrix>() : std::optional<Matrix>(std::move(cells));
    if (may_have_signs) {
      HEDDLE_ASSIGN_OR_RETURN(cells, AsSparse(cells));
    }
    HEDDLE_ASSIGN_OR_RETURN(cells, AsDense(cells));
    return std::optional<Matrix>(std::move(cells));
  }

  // The columns that are assigned to, with all rows.
  Result<std::optional<Matrix>> Columns(const Matrix& cells) const {
    if (AllRows()) return std::optional<Matrix>(cells);
    HEDDLE_ASSIGN_OR_RETURN(const std::optional<Matrix> columns, ColumnsOf(x_, first_, last_));
    if (!columns) return std::optional<Matrix>();
    std::vector<Matrix> below;
    if (row_begin_ > 0) below.push_back(columns->Rows(0, row_begin_));
    below.push_back(cells);
    if (row_end_ < x_.rows()) below.push_back(columns->Rows(row_end_, x_.rows()));
    return AppendGroups(below);
  }

  // Columns of X that stay; false where they cannot be taken out of their groups.
  Result<bool> Add(int64_t begin, int64_t end, std::vector<Matrix>* parts) const {
    if (begin == end) return true;
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> columns, ColumnsOf(x_, begin, end));
    if (!columns) return false;
    parts->push_back(*std::move(columns));
    return true;
  }

  const KernelCall& call_;
  const Matrix& x_;
  int64_t row_begin_ = 0, row_end_ = 0;  // Of X, as far as the call has it.
  int64_t first_ = 0, last_ = 0;         // Columns.
  int64_t row_of_value_ = 0;             // The row of V that goes into row_begin_.
};

}  // namespace

Result<std::optional<Value>> AssignCodes(const KernelCall& call) {
  if (!call.inputs[0]->IsMatrix()) return std::optional<Value>();
  return Assignment(call).Run();
}

}  // namespace heddle::ops

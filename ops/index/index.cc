// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/double_text.h"
#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/device_forms.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/frame_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/frame/arrange.h"
#include "ops/frame/cast.h"
#include "ops/frame/part_failures.h"
#include "ops/frame/row_pieces.h"
#include "ops/index/assign_codes.h"
#include "ops/index/index_stages.h"
#include "ops/index/ranges.h"
#include "ops/panels/view_panels.h"

namespace heddle::ops {
namespace {

// The shape of the whole value: what messages name and column bounds are checked against.
Shape WholeShape(const KernelCall& call) {
  return call.input_infos.empty() || !call.input_infos[0].shape.IsKnown() ? call.inputs[0]->shape()
                                                                          : call.input_infos[0].shape;
}

// ---- X[rl:ru, cl:cu]: the cells within bounds, (ru-rl+1) x (cu-cl+1); a cell stays a 1 x 1 matrix.
//      Columns of a frame keep types and names.
//      Inputs: X, rl, ru, cl, cu (scalars, truncated; left out in pairs: all rows, all columns).
//      Format: X's. Exact. Cost: none for whole rows (shares X's memory), else one copy.
//      Rows: row-wise when only columns are chosen; with row bounds in stages: every rank has rows of X, some
//      of them within the bounds.

ValueInfo FrameWithin(const ValueInfo& x, const Range& rows, const Range& columns) {
  ValueInfo info = ValueInfo::OfFrame(rows.Count(x.shape.rows), nullptr);
  info.shape.columns = columns.Count(x.shape.columns);
  if (x.schema != nullptr && (columns.all || columns.IsKnown()))
    info.schema =
        std::make_shared<const Schema>(ColumnsOf(*x.schema, columns.Begin(), columns.End(x.shape.columns)));
  return info;
}

Result<ValueInfo> InferIndex(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsFrame()) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "the indexed value"));
  HEDDLE_ASSIGN_OR_RETURN(const Range rows, InferRange(context, 1));
  HEDDLE_ASSIGN_OR_RETURN(const Range columns, InferRange(context, 3));
  HEDDLE_RETURN_IF_ERROR(
      CheckRanges(rows, columns, x.shape, StatusCode::kInvalidArgument, x.IsFrame() ? "frame" : "matrix"));
  if (x.IsFrame()) return FrameWithin(x, rows, columns);
  return ValueInfo::OfMatrix({rows.Count(x.shape.rows), columns.Count(x.shape.columns)}, x.format);
}

RowRule IndexRowRule(const Node& node, std::span<const ValueInfo>) {
  return HasRowBounds(node, 1) ? RowRule::kWhole : RowRule::kRowWise;
}

// Only the cells within bounds are read.
Cost IndexCost(const Node& node, std::span<const ValueInfo>) {
  return {.bytes = 2 * static_cast<double>(KnownBytes(node.info))};
}

Result<Value> IndexFrame(const KernelCall& call) {
  const Frame& x = call.inputs[0]->frame();
  const Range rows = GivenRange(call, 1);
  const Range columns = GivenRange(call, 3);
  HEDDLE_RETURN_IF_ERROR(
      CheckRanges(rows, columns, WholeShape(call), StatusCode::kFailedPrecondition, "frame"));
  const Frame panel = rows.all ? x : x.Rows(rows.Begin(), rows.End(x.rows()));
  return Value(columns.all ? panel : ColumnsOf(panel, columns.Begin(), columns.End(x.columns())));
}

// A range of a value in panels reads nothing: its rows are read when they are needed.
Value IndexPanels(const std::shared_ptr<const RowPanels>& x, const Range& rows, const Range& columns) {
  const Shape shape = x->shape();
  return Value(
      RangeOfPanels(x, {rows.Begin(), rows.End(shape.rows), columns.Begin(), columns.End(shape.columns)}));
}

Result<Value> RunIndex(const KernelCall& call) {
  if (call.phase == Phase::kPanels) {
    const Range rows = GivenRange(call, 1), columns = GivenRange(call, 3);
    HEDDLE_RETURN_IF_ERROR(CheckRanges(rows, columns, call.inputs[0]->shape(),
                                       StatusCode::kFailedPrecondition,
                                       call.inputs[0]->panels()->IsFrame() ? "frame" : "matrix"));
    return IndexPanels(call.inputs[0]->panels(), rows, columns);
  }
  if (call.inputs[0]->IsFrame()) return IndexFrame(call);
  const Matrix& x = call.inputs[0]->matrix();
  const Range rows = GivenRange(call, 1);
  const Range columns = GivenRange(call, 3);
  HEDDLE_RETURN_IF_ERROR(CheckRanges(rows, columns, WholeShape(call), StatusCode::kFailedPrecondition));
  const Matrix panel = rows.all ? x : x.Rows(rows.Begin(), rows.End(x.rows()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SliceColumns(panel, columns.Begin(), columns.End(x.columns())));
  return Value(std::move(result));
}

// Rows of a compressed matrix are a view of it, columns those of its dictionaries; a few cells are decoded.
Result<std::optional<Value>> RunIndexOfCodes(const KernelCall& call) {
  constexpr int64_t kFewCells = 1 << 16;
  const std::optional<Value> nothing;
  const Matrix& x = call.inputs[0]->matrix();
  const Range rows = GivenRange(call, 1), columns = GivenRange(call, 3);
  if (!CheckRanges(rows, columns, WholeShape(call), StatusCode::kFailedPrecondition).ok()) return nothing;
  const auto decoded = [&](const Matrix& matrix) {
    return call.node.info.format == Format::kSparse ? AsSparse(matrix) : AsDense(matrix);
  };
  const int64_t first = columns.Begin(), last = columns.End(x.columns());
  const Matrix panel = rows.all ? x : x.Rows(rows.Begin(), rows.End(x.rows()));
  if (panel.cells() <= kFewCells && !DictionariesPay(panel)) {
    HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, decoded(panel));
    HEDDLE_ASSIGN_OR_RETURN(Matrix slice, SliceColumns(cells, first, last));
    return std::optional<Value>(std::move(slice));
  }
  std::vector<int64_t> wanted(static_cast<size_t>(last - first));
  std::iota(wanted.begin(), wanted.end(), first);
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> result, GatherGroupColumns(panel, wanted));
  if (!result) return nothing;
  if (!DictionariesPay(*result)) {
    HEDDLE_ASSIGN_OR_RETURN(result, decoded(*result));
  }
  return std::optional<Value>(*std::move(result));
}

// ---- X[rl:ru, cl:cu] = V: X with the cells within bounds replaced by V, a scalar or a matrix of just that
// size (a 1 x 1
//      matrix counts as a scalar). Inputs: X, V, rl, ru, cl, cu. Format: X's. Exact. Cost: one copy of X,
//      or of V alone where nobody else needs the dense X.
//      Rows: row-wise; V is needed whole where rows are chosen. Of a frame the ranks tell each other then
//      which cells their columns cannot hold.

Status CheckReplacement(const Range& rows, const Range& columns, Shape x, Shape v, StatusCode code,
                        std::string_view what = "matrix") {
  const int64_t row_count = rows.Count(x.rows);
  const int64_t column_count = columns.Count(x.columns);
  if (v.rows == 1 && v.columns == 1) return OkStatus();
  const bool fits = (row_count == kUnknown || v.rows == kUnknown || row_count == v.rows) &&
                    (column_count == kUnknown || v.columns == kUnknown || column_count == v.columns);
  if (fits) return OkStatus();
  return Status(code, fmt::format("index [{},{}] is {} but the assigned {} is {}", RangeText(rows),
                                  RangeText(columns), Shape{row_count, column_count}, what, v));
}

Result<ValueInfo> InferIndexAssign(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  const ValueInfo& v = context.inputs[1];
  if (!x.IsFrame()) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "the indexed value"));
  HEDDLE_ASSIGN_OR_RETURN(const Range rows, InferRange(context, 2));
  HEDDLE_ASSIGN_OR_RETURN(const Range columns, InferRange(context, 4));
  HEDDLE_RETURN_IF_ERROR(
      CheckRanges(rows, columns, x.shape, StatusCode::kInvalidArgument, x.IsFrame() ? "frame" : "matrix"));
  if ((x.IsFrame() && v.IsMatrix()) || (!x.IsFrame() && v.IsFrame()))
    return InvalidArgument("indexAssign: cells of a {} cannot become cells of a {}", Name(v.data_type),
                           x.IsFrame() ? "frame" : "matrix")
        .WithNote(x.IsFrame() ? "as.frame(X) makes a frame of a matrix"
                              : "as.matrix(F) makes a matrix of a frame whose cells are numbers");
  if (x.IsFrame()) {
    if (v.IsFrame())
      HEDDLE_RETURN_IF_ERROR(
          CheckReplacement(rows, columns, x.shape, v.shape, StatusCode::kInvalidArgument, "frame"));
    ValueInfo info = x;
    info.schema = OfChangedCopy(x.schema);
    return info;
  }
  // A text that names a number counts as that number: the pass "cell-operands" converts it.
  const Scalar* known = context.scalars.size() > 1 ? context.scalars[1] : nullptr;
  if (known != nullptr && known->IsString() && !ParseDouble(known->AsString()))
    return InvalidArgument("indexAssign: a string cannot be a cell of a matrix");
  if (v.IsMatrix())
    HEDDLE_RETURN_IF_ERROR(CheckReplacement(rows, columns, x.shape, v.shape, StatusCode::kInvalidArgument));
  return ValueInfo::OfMatrix(x.shape, x.format);
}

// Of a frame in stages: cells that its columns cannot hold may be on several ranks.
RowRule IndexAssignRowRule(const Node&, std::span<const ValueInfo> inputs) {
  return inputs[0].IsFrame() ? RowRule::kWhole : RowRule::kRowWise;
}
InputUse IndexAssignInputUse(const Node& node, std::span<const ValueInfo> inputs, int i) {
  if (i == 0) return InputUse::kRows;
  if (HasRowBounds(node, 2) || i > 1) return InputUse::kWhole;
  const ValueInfo& v = inputs[1];
  return v.IsTabular() && v.shape != Shape{1, 1} ? InputUse::kRows : InputUse::kWhole;
}

// What goes into the region: a constant, or the cells of a matrix.
template <typename T>
struct Replacement {
  const Matrix* matrix = nullptr;
  T constant = 0;
  int64_t first = 0;  // Row of the matrix that goes into the first row of the region.

  void CopyRow(int64_t of_region, int64_t count, T* out) const {
    const int64_t i = first + of_region;
    if (matrix == nullptr) {
      std::fill_n(out, count, constant);
    } else if (!matrix->IsSparse()) {
      std::copy_n(matrix->template data<T>() + i * count, count, out);
    } else {
      std::fill_n(out, count, T{0});
      for (int64_t k = matrix->row_offsets()[i]; k < matrix->row_offsets()[i + 1]; ++k)
        out[matrix->column_indexes()[k]] = matrix->template values<T>()[k];
    }
  }
};

// The region, 0-based and half open.
struct Region {
  int64_t row_begin, row_end, column_begin, column_end;
};

// The part of a range in the rows of X that the call has, from row `call.row_begin` of all on.
std::pair<int64_t, int64_t> OwnPart(const KernelCall& call, const Range& rows, int64_t own_rows) {
  if (rows.all) return {0, own_rows};
  const int64_t begin = std::clamp<int64_t>(rows.Begin() - call.row_begin, 0, own_rows);
  return {begin, std::clamp<int64_t>(rows.upper.number() - call.row_begin, begin, own_rows)};
}

template <typename T>
Result<Matrix> AssignDense(const Matrix& x, const Region& region, const Replacement<T>& replacement) {
  const int64_t n = x.columns();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), n, x.element_type()));
  T* out = result.mutable_data<T>();
  ParallelFor(n == 0 ? 0 : x.rows(), RowGrain(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* in = x.data<T>() + i * n;
      if (i < region.row_begin || i >= region.row_end) {
        std::copy_n(in, n, out + i * n);
        continue;
      }
      std::copy_n(in, region.column_begin, out + i * n);
      replacement.CopyRow(i - region.row_begin, region.column_end - region.column_begin,
                          out + i * n + region.column_begin);
      std::copy(in + region.column_end, in + n, out + i * n + region.column_end);
    }
  });
  return result;
}

template <typename T>
Result<Matrix> AssignSparse(const Matrix& x, const Region& region, const Replacement<T>& replacement) {
  const int64_t width = region.column_end - region.column_begin;
  std::vector<int32_t> indexes;
  std::vector<T> values;
  std::vector<int64_t> counts(static_cast<size_t>(x.rows()));
  std::vector<T> row(static_cast<size_t>(width));
  indexes.reserve(static_cast<size_t>(x.stored()));
  values.reserve(static_cast<size_t>(x.stored()));
  for (int64_t i = 0; i < x.rows(); ++i) {
    const size_t before = values.size();
    int64_t k = x.row_offsets()[i];
    const int64_t end = x.row_offsets()[i + 1];
    const bool inside = i >= region.row_begin && i < region.row_end;
    const auto keep_until = [&](int64_t column) {
      for (; k < end && x.column_indexes()[k] < column; ++k) {
        indexes.push_back(x.column_indexes()[k]);
        values.push_back(x.values<T>()[k]);
      }
    };
    if (inside) {
      keep_until(region.column_begin);
      while (k < end && x.column_indexes()[k] < region.column_end) ++k;
      replacement.CopyRow(i - region.row_begin, width, row.data());
      for (int64_t j = 0; j < width; ++j) {
        if (row[static_cast<size_t>(j)] == 0) continue;
        indexes.push_back(static_cast<int32_t>(region.column_begin + j));
        values.push_back(row[static_cast<size_t>(j)]);
      }
    }
    keep_until(x.columns());
    counts[static_cast<size_t>(i)] = static_cast<int64_t>(values.size() - before);
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, SparseOfCounts(x.columns(), counts, x.element_type()));
  std::copy(indexes.begin(), indexes.end(), result.mutable_column_indexes());
  std::copy(values.begin(), values.end(), result.mutable_values<T>());
  return result;
}

template <typename T>
Result<Value> AssignCells(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const Range rows = GivenRange(call, 2);
  const Range columns = GivenRange(call, 4);
  HEDDLE_RETURN_IF_ERROR(CheckRanges(rows, columns, WholeShape(call), StatusCode::kFailedPrecondition));
  Replacement<T> replacement;
  if (call.inputs[1]->IsScalar()) {
    if (call.inputs[1]->scalar().IsString())
      return FailedPrecondition("indexAssign: a string cannot be a cell of a matrix");
    replacement.constant = static_cast<T>(call.inputs[1]->scalar().AsDouble());
  } else {
    const Matrix& v = call.inputs[1]->matrix();
    HEDDLE_RETURN_IF_ERROR(
        CheckReplacement(rows, columns, x.shape(), v.shape(), StatusCode::kFailedPrecondition));
    if (v.rows() == 1 && v.columns() == 1)
      replacement.constant = static_cast<T>(v.At(0, 0));
    else
      replacement.matrix = &v;
  }
  const auto [row_begin, row_end] = OwnPart(call, rows, x.rows());
  if (!rows.all) replacement.first = call.row_begin + row_begin - rows.Begin();
  const Region region{row_begin, row_end, columns.Begin(), columns.End(x.columns())};
  Matrix result;
  if (x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(result, AssignSparse(x, region, replacement));
  } else if (call.last_read != nullptr && call.inputs[1] != call.inputs[0] &&
             call.last_read->matrix().HoldsCellsAlone()) {
    result = std::move(call.last_read->matrix());
    for (int64_t i = region.row_begin; i < region.row_end; ++i)
      replacement.CopyRow(i - region.row_begin, region.column_end - region.column_begin,
                          result.mutable_data<T>() + i * result.columns() + region.column_begin);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, AssignDense(x, region, replacement));
  }
  return Value(std::move(result));
}

// One cell stands for all within the bounds.
Result<Frame> Repeated(const Frame& cell, int64_t rows, int64_t columns) {
  Frame column = cell;
  while (column.rows() < rows) {
    const std::vector<Frame> pieces = {column, column.Rows(0, std::min(column.rows(), rows - column.rows()))};
    HEDDLE_ASSIGN_OR_RETURN(column, BelowEachOther(pieces));
  }
  return SideBySide(std::vector<Frame>(static_cast<size_t>(columns), column.Rows(0, rows)));
}

// Of a failure, `column_of_failure` is the column that has it.
Result<Value> AssignFrame(const KernelCall& call, int64_t* column_of_failure) {
  const Frame& x = call.inputs[0]->frame();
  const Range rows = GivenRange(call, 2);
  const Range columns = GivenRange(call, 4);
  HEDDLE_RETURN_IF_ERROR(
      CheckRanges(rows, columns, WholeShape(call), StatusCode::kFailedPrecondition, "frame"));
  HEDDLE_ASSIGN_OR_RETURN(Frame v, call.inputs[1]->IsScalar() ? FrameOf(call.inputs[1]->scalar())
                                                              : Result<Frame>(call.inputs[1]->frame()));
  HEDDLE_RETURN_IF_ERROR(
      CheckReplacement(rows, columns, x.shape(), v.shape(), StatusCode::kFailedPrecondition, "frame"));
  const auto [row_begin, row_end] = OwnPart(call, rows, x.rows());
  if (v.shape() == Shape{1, 1}) {
    HEDDLE_ASSIGN_OR_RETURN(v, Repeated(v, row_end - row_begin, columns.Count(x.columns())));
  } else if (row_begin == row_end) {
    v = v.Rows(0, 0);  // None of the region.
  } else if (!rows.all) {
    const int64_t first = call.row_begin + row_begin - rows.Begin();
    v = v.Rows(first, first + row_end - row_begin);
  }
  Result<Frame> result = Replaced(x, row_begin, columns.Begin(), v, column_of_failure);
  if (!result.ok() && result.status().code() == StatusCode::kFailedPrecondition)
    return FailedPrecondition("index [{},{}]: {}, the type of its column", RangeText(rows),
                              RangeText(columns), result.status().message());
  HEDDLE_RETURN_IF_ERROR(result.status());
  return Value(*std::move(result));
}

bool AssignsAllColumns(const Node& node, std::span<const ValueInfo> inputs) {
  return inputs[0].IsMatrix() && !IsGiven(node, 4) && !IsGiven(node, 5);
}
constexpr StagedForm kIndexAssignColumns = ByColumns(ResultColumns, AssignsAllColumns);

Result<Value> RunIndexAssign(const KernelCall& call) {
  int64_t column_of_failure = 0;
  if (call.inputs[0]->IsFrame()) return AssignFrame(call, &column_of_failure);
  return call.inputs[0]->matrix().element_type() == ElementType::kFloat64 ? AssignCells<double>(call)
                                                                          : AssignCells<float>(call);
}

Status RunAssignFrameStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 1) return GiveReported(call, outputs);
  KernelCall own = call.WholeCall();
  own.row_begin = call.rows.Begin(call.rank);
  own.row_end = call.rows.End(call.rank);
  own.total_rows = call.rows.Length();
  int64_t column_of_failure = 0;
  Result<Value> rows = AssignFrame(own, &column_of_failure);
  return MakeReported(std::move(rows), column_of_failure, 0, outputs);
}

bool IsOfFrame(const Node&, std::span<const ValueInfo> inputs) { return inputs[0].IsFrame(); }
constexpr StagedForm kAssignFrameForm = {.stages = kReportingStages,
                                         .result = StagedResult::kSameRows,
                                         .other = &kIndexAssignColumns,
                                         .applies = IsOfFrame,
                                         .run = RunAssignFrameStage};

// The bounds of the index, which are inputs `first` and those behind it, after `inputs`.
std::vector<NodeId> WithBounds(AdjointCall& call, std::vector<NodeId> inputs, size_t first) {
  for (size_t i = first; i < first + 4; ++i) {
    const bool is_given = i < call.node().inputs.size() && call.node().inputs[i] != kNoNode;
    inputs.push_back(is_given ? call.Input(i) : kNoNode);
  }
  return inputs;
}

// Adds to the cells within bounds, in place where a loop picks one row after the other.
void DifferentiateIndex(AdjointCall& call) {
  const bool is_first = !call.IsGiven(0);
  const NodeId given = call.Given(0);
  NodeId sum = call.Adjoint();
  if (!is_first) sum = call.Add("+", {call.Add("index", WithBounds(call, {given}, 1)), sum});
  call.Replace(0, call.Add("indexAssign", WithBounds(call, {given, sum}, 1)));
}

// A cell that is assigned to all within bounds gets the sum of their adjoints.
void DifferentiateIndexAssign(AdjointCall& call) {
  if (call.IsWanted(1)) {
    const NodeId cells = call.Add("index", WithBounds(call, {call.Adjoint()}, 2));
    if (call.InfoOf(1).IsScalar())
      call.Give(1, call.Add("sum", {cells}));
    else
      call.Give(1, call.Add("sumTo", {cells, call.Rows(1), call.Columns(1)}));
  }
  if (call.IsWanted(0))
    call.Give(0, call.Add("indexAssign", WithBounds(call, {call.Adjoint(), call.Literal(Scalar(0.0))}, 2)));
}

constexpr Operator kOperators[] = {
    {.name = "index",
     .parameters = "X rl? ru? cl? cu?",
     .min_inputs = 1,
     .max_inputs = 5,
     .infer = InferIndex,
     .row_rule = IndexRowRule,
     .input_use = FirstByRows,
     .panel_use = ViewsPanels,
     .staged = &kIndexStages,
     .cost = IndexCost,
     .run = RunIndex,
     .run_compressed = RunIndexOfCodes,
     .run_on_device = IndexOnDevice,
     .may_fail = true,
     .takes_singles = TakesAnySingles,
     .takes_frames = true,
     .role = Role::kRange,
     .fusion = {.use = RowUse::kColumnRange, .cell = true, .row = true},
     .adjoints = "*; 0",
     .differentiate = DifferentiateIndex},
    {.name = "indexAssign",
     .parameters = "X V rl? ru? cl? cu?",
     .min_inputs = 2,
     .max_inputs = 6,
     .infer = InferIndexAssign,
     .row_rule = IndexAssignRowRule,
     .input_use = IndexAssignInputUse,
     .staged = &kAssignFrameForm,
     .run = RunIndexAssign,
     .run_compressed = AssignCodes,
     .may_fail = true,
     .updates = true,
     .takes_singles = TakesAnySingles,
     .takes_frames = true,
     .role = Role::kRangeAssign,
     .adjoints = "*; *; 0",
     .differentiate = DifferentiateIndexAssign},
};

}  // namespace

std::span<const Operator> IndexOperators() { return kOperators; }

}  // namespace heddle::ops

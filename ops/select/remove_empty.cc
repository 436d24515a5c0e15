// SPDX-License-Identifier: Apache-2.0
#include "ops/frame/remove_empty.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/compressed/occurring_cells.h"
#include "ops/frame/arrange.h"
#include "ops/select/select_operators.h"

namespace heddle::ops {
namespace {

// ---- removeEmpty(target=X, margin="rows"|"cols", select=S, empty.return=TRUE): the rows (columns) of X that
// have a cell
//      other than zero, or for which S is not zero. Inputs: target, select. Attributes: margin, empty.return.
//      Shapes: X m x n, S m x 1 for rows, 1 x n for columns, or of a matrix X the other way round; the result
//      k x n or m x k, k known only after the run. If nothing is left: one row (column) of zeros, or none
//      with empty.return=FALSE. NaN is not zero, -0.0 is. Format: X's. Exact. Cost: reads X once, copies what
//      is left. X may be a frame (ops/frame/remove_empty.h).

constexpr int64_t kCellsOfTask = 32768;

Result<bool> ByRows(const Node& node) {
  const std::string& margin = node.Text("margin");
  if (margin == "rows") return true;
  if (margin == "cols") return false;
  return InvalidArgument("removeEmpty: margin must be \"rows\" or \"cols\", not \"{}\"", margin);
}

Status CheckSelect(bool rows, std::string_view what, Shape x, Shape select, StatusCode code) {
  const int64_t length = rows ? x.rows : x.columns;
  const Shape wanted = rows ? Shape{length, 1} : Shape{1, length};
  const auto may_be = [&select](int64_t wanted_rows, int64_t wanted_columns) {
    return (select.rows == kUnknown || wanted_rows == kUnknown || select.rows == wanted_rows) &&
           (select.columns == kUnknown || wanted_columns == kUnknown || select.columns == wanted_columns);
  };
  if (may_be(wanted.rows, wanted.columns)) return OkStatus();
  if (what == Name(DataType::kMatrix) && may_be(wanted.columns, wanted.rows)) return OkStatus();
  return Status(code, fmt::format("removeEmpty: select is {} but margin=\"{}\" of a {} {} needs {}", select,
                                  rows ? "rows" : "cols", x, what, wanted));
}

Result<ValueInfo> InferRemoveEmpty(const InferContext& context) {
  const ValueInfo& x = context.inputs[0];
  if (!x.IsFrame()) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "target"));
  HEDDLE_ASSIGN_OR_RETURN(const bool rows, ByRows(context.node));
  if (IsGiven(context.node, 1)) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 1, "select"));
    HEDDLE_RETURN_IF_ERROR(
        CheckSelect(rows, Name(x.data_type), x.shape, context.inputs[1].shape, StatusCode::kInvalidArgument));
  }
  const Shape shape = rows ? Shape{kUnknown, x.shape.columns} : Shape{x.shape.rows, kUnknown};
  if (!x.IsFrame()) return ValueInfo::OfMatrix(shape, x.format);
  ValueInfo info = ValueInfo::OfFrame(shape.rows, rows ? OfChangedCopy(x.schema) : nullptr);
  info.shape = shape;
  return info;
}

// A byte for each row (column): whether it has a cell other than zero.
std::vector<char> NotZero(const Matrix& x, bool rows) {
  const int64_t length = rows ? x.rows() : x.columns(), width = rows ? x.columns() : x.rows();
  std::vector<char> found(static_cast<size_t>(length), 0);
  if (width == 0) return found;
  if (x.IsSparse()) {
    for (int64_t i = 0; i < x.rows(); ++i)
      for (int64_t k = x.row_offsets()[i]; k < x.row_offsets()[i + 1]; ++k)
        if (x.values()[k] != 0) found[static_cast<size_t>(rows ? i : int64_t{x.column_indexes()[k]})] = 1;
    return found;
  }
  // Either way cells that follow each other in memory are looked at one after the other.
  const double* const cells = x.data();
  const int64_t columns = x.columns();
  ParallelFor(length, std::max<int64_t>(1, kCellsOfTask / std::max<int64_t>(1, width)),
              [&](int64_t begin, int64_t end) {
                if (rows && width > 1) {
                  for (int64_t i = begin; i < end; ++i)
                    found[static_cast<size_t>(i)] =
                        std::any_of(cells + i * columns, cells + (i + 1) * columns,
                                    [](double cell) { return cell != 0; });
                  return;
                }
                for (int64_t i = 0; i < (rows ? 1 : width); ++i)
                  for (int64_t j = begin; j < end; ++j)
                    found[static_cast<size_t>(j)] |= static_cast<char>(cells[i * columns + j] != 0);
              });
  return found;
}

// Which rows (columns) stay, a byte each.
std::vector<char> Keep(const Value& x, const Matrix* select, bool rows) {
  if (select != nullptr) return NotZero(*select, select->columns() == 1);
  return x.IsFrame() ? NotEmpty(x.frame(), rows) : NotZero(x.matrix(), rows);
}

// How many of the bytes before each run of kCellsOfTask are 1, and before the end. The loops over such bytes
// have no branch that depends on them: nothing foresees those of random cells.
std::vector<int64_t> CountsBefore(const std::vector<char>& keep) {
  const auto count = static_cast<int64_t>(keep.size()), runs = CeilDivide(count, kCellsOfTask);
  std::vector<int64_t> before(static_cast<size_t>(runs) + 1, 0);
  ParallelFor(runs, 1, [&](int64_t first, int64_t last) {
    for (int64_t run = first; run < last; ++run) {
      int64_t kept = 0;
      for (int64_t i = run * kCellsOfTask; i < std::min(count, (run + 1) * kCellsOfTask); ++i)
        kept += keep[static_cast<size_t>(i)];
      before[static_cast<size_t>(run) + 1] = kept;
    }
  });
  std::partial_sum(before.begin(), before.end(), before.begin());
  return before;
}

// out[k] = of(i) for the k-th byte i that is 1.
template <typename Out, typename Of>
void Compress(const std::vector<char>& keep, const std::vector<int64_t>& before, Out* out, const Of& of) {
  ParallelFor(static_cast<int64_t>(before.size()) - 1, 1, [&](int64_t first, int64_t last) {
    const int64_t end = before[static_cast<size_t>(last)];
    int64_t i = first * kCellsOfTask;
    for (int64_t at = before[static_cast<size_t>(first)]; at < end; ++i) {
      out[at] = of(i);
      at += keep[static_cast<size_t>(i)];
    }
  });
}

// The numbers of the bytes that are 1.
std::vector<int64_t> Kept(const std::vector<char>& keep) {
  const std::vector<int64_t> before = CountsBefore(keep);
  std::vector<int64_t> kept(static_cast<size_t>(before.back()));
  Compress(keep, before, kept.data(), [](int64_t i) { return i; });
  return kept;
}

// The rows (columns) of x that stay.
Result<Value> Left(const Value& x, const std::vector<char>& keep, bool rows) {
  const std::vector<int64_t> before = CountsBefore(keep);
  if (!x.IsFrame() && before.back() == static_cast<int64_t>(keep.size())) return x;
  // A vector of which some cells stay is its own list of them.
  if (!x.IsFrame() && !x.matrix().IsSparse() && (rows ? x.shape().columns : x.shape().rows) == 1) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix left,
                            rows ? Matrix::Dense(before.back(), 1) : Matrix::Dense(1, before.back()));
    Compress(keep, before, left.mutable_data(), [&](int64_t i) { return x.matrix().data()[i]; });
    return Value(std::move(left));
  }
  const std::vector<int64_t> kept = Kept(keep);
  if (x.IsFrame()) {
    HEDDLE_ASSIGN_OR_RETURN(Frame left, Gathered(x.frame(), rows, kept));
    return Value(std::move(left));
  }
  HEDDLE_ASSIGN_OR_RETURN(Matrix left, rows ? GatherRows(x.matrix(), kept) : GatherColumns(x.matrix(), kept));
  return Value(std::move(left));
}

// What stands in place of nothing: one row (column) of zeros.
Result<Value> OneEmpty(const Value& x, bool rows) {
  if (x.IsFrame()) {
    HEDDLE_ASSIGN_OR_RETURN(Frame left, NothingLeft(x.frame(), rows));
    return Value(std::move(left));
  }
  const Shape shape = rows ? Shape{1, x.shape().columns} : Shape{x.shape().rows, 1};
  HEDDLE_ASSIGN_OR_RETURN(Matrix left, x.matrix().IsSparse() ? Matrix::Sparse(shape.rows, shape.columns, 0)
                                                             : FilledMatrix(shape.rows, shape.columns, 0));
  return Value(std::move(left));
}

bool IsFilled(const Node& node) { return BooleanAttribute(node, "empty.return", true); }

Status CheckSelectOf(const KernelCall& call, bool rows) {
  if (call.inputs.size() < 2 || call.inputs[1] == nullptr) return OkStatus();
  const Value& x = *call.inputs[0];
  return CheckSelect(rows, x.IsFrame() ? "frame" : "matrix", x.shape(), call.inputs[1]->shape(),
                     StatusCode::kFailedPrecondition);
}

Result<Value> RunRemoveEmpty(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const bool rows, ByRows(call.node));
  HEDDLE_RETURN_IF_ERROR(CheckSelectOf(call, rows));
  const Value& x = *call.inputs[0];
  const bool is_given = call.inputs.size() > 1 && call.inputs[1] != nullptr;
  const std::vector<char> keep = Keep(x, is_given ? &call.inputs[1]->matrix() : nullptr, rows);
  const bool is_empty = std::find(keep.begin(), keep.end(), 1) == keep.end();
  return is_empty && IsFilled(call.node) ? OneEmpty(x, rows) : Left(x, keep, rows);
}

// What is left of a compressed matrix is compressed, unless it is little.
Result<std::optional<Value>> RunRemoveEmptyOfCodes(const KernelCall& call) {
  const std::optional<Value> nothing;
  HEDDLE_ASSIGN_OR_RETURN(const bool rows, ByRows(call.node));
  if (!call.inputs[0]->IsMatrix() || !CheckSelectOf(call, rows).ok()) return nothing;
  const Matrix& x = call.inputs[0]->matrix();
  if (!x.IsCompressed()) return nothing;
  std::vector<char> keep;
  if (call.inputs.size() > 1 && call.inputs[1] != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix select, AsDense(call.inputs[1]->matrix()));
    HEDDLE_ASSIGN_OR_RETURN(select, ToElementType(select, ElementType::kFloat64));
    keep = NotZero(select, select.columns() == 1);
  } else {
    keep = rows ? RowsWithNonzeros(x) : ColumnsWithNonzeros(x);
  }
  const std::vector<int64_t> kept = Kept(keep);
  if (kept.empty()) return nothing;
  if (kept.size() == keep.size()) return std::optional<Value>(x);
  std::optional<Matrix> left;
  if (rows) {
    HEDDLE_ASSIGN_OR_RETURN(left, GatherGroupRows(x, kept, call.context));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(left, GatherGroupColumns(x, kept));
  }
  if (!left) return nothing;
  if (!DictionariesPay(*left)) {
    HEDDLE_ASSIGN_OR_RETURN(left,
                            call.node.info.format == Format::kSparse ? AsSparse(*left) : AsDense(*left));
  }
  return std::optional<Value>(*std::move(left));
}

// ---- On several ranks.

bool IsByRows(const Node& node) { return node.Text("margin") == "rows"; }
bool RemovesRows(const Node& node, std::span<const ValueInfo>) { return IsByRows(node); }
bool RemovesColumns(const Node& node, std::span<const ValueInfo> inputs) {
  return !IsByRows(node) && inputs[0].shape.rows != kUnknown;
}

// A column of `select` has a cell for each row that may be removed; lying down, it is whole everywhere.
InputUse RemoveEmptyInputUse(const Node& node, std::span<const ValueInfo> inputs, int i) {
  if (i == 0) return InputUse::kRows;
  return IsByRows(node) && inputs[1].shape.columns == 1 ? InputUse::kRows : InputUse::kWhole;
}

Result<Value> OneNumber(double number) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix cell, FilledMatrix(1, 1, number));
  return Value(std::move(cell));
}

// The rows that stay of this rank's, and how many there are of all: if none, rank 0 has the empty one.
Status RemoveRowsStage(const StageCall& call, std::span<Value> outputs) {
  if (call.stage == 0) {
    const Value& x = *call.inputs[0];
    Matrix select;
    const bool is_given = call.inputs.size() > 1 && call.inputs[1] != nullptr;
    if (is_given) {
      select = call.inputs[1]->matrix();
      if (call.input_infos[1].shape.columns != 1) {
        HEDDLE_ASSIGN_OR_RETURN(select,
                                SliceColumns(select, call.rows.Begin(call.rank), call.rows.End(call.rank)));
        HEDDLE_ASSIGN_OR_RETURN(select, Transpose(select));
      }
    }
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], Left(x, Keep(x, is_given ? &select : nullptr, true), true));
    HEDDLE_ASSIGN_OR_RETURN(outputs[1], OneNumber(static_cast<double>(outputs[0].shape().rows)));
    return OkStatus();
  }
  outputs[0] = call.Received(0);
  const Matrix& counts = call.Received(1).matrix();
  const bool is_empty =
      std::all_of(counts.data(), counts.data() + counts.rows(), [](double n) { return n == 0; });
  if (is_empty && IsFilled(call.node) && call.rank == 0) {
    HEDDLE_ASSIGN_OR_RETURN(outputs[0], OneEmpty(outputs[0], true));
  }
  return OkStatus();
}

// Which columns stay is known when every rank has looked at its rows.
Status RemoveColumnsStage(const StageCall& call, std::span<Value> outputs) {
  const Value& x = *call.inputs[0];
  const bool is_given = call.inputs.size() > 1 && call.inputs[1] != nullptr;
  if (call.stage == 0) {
    const std::vector<char> keep = Keep(x, is_given ? &call.inputs[1]->matrix() : nullptr, false);
    HEDDLE_ASSIGN_OR_RETURN(Matrix mask, Matrix::Dense(1, static_cast<int64_t>(keep.size())));
    std::copy(keep.begin(), keep.end(), mask.mutable_data());
    outputs[0] = Value(std::move(mask));
    return OkStatus();
  }
  const std::vector<char> keep = NotZero(call.Received(0).matrix(), false);
  const bool is_empty = std::find(keep.begin(), keep.end(), 1) == keep.end();
  HEDDLE_ASSIGN_OR_RETURN(outputs[0],
                          is_empty && IsFilled(call.node) ? OneEmpty(x, false) : Left(x, keep, false));
  return OkStatus();
}

constexpr Reach kRowsAndCount[] = {Reach::kHere, Reach::kAll}, kMask[] = {Reach::kAll};
constexpr Stage kRowStages[] = {{.outputs = kRowsAndCount, .reads_inputs = true}, {}},
                kColumnStages[] = {{.outputs = kMask, .reads_inputs = true}, {.reads_inputs = true}};
constexpr StagedForm kColumnsForm = {.stages = kColumnStages,
                                     .result = StagedResult::kSameRows,
                                     .applies = RemovesColumns,
                                     .run = RemoveColumnsStage};
constexpr StagedForm kRowsForm = {.stages = kRowStages,
                                  .result = StagedResult::kUneven,
                                  .other = &kColumnsForm,
                                  .applies = RemovesRows,
                                  .run = RemoveRowsStage};

// What is left are rows of P %*% X, or columns of X %*% P, with what is left of the diagonal of `select`.
void DifferentiateRemoveEmpty(AdjointCall& call) {
  const std::string& margin = call.node().Text("margin");
  const bool rows = margin == "rows";
  const bool is_given = call.node().inputs.size() > 1 && call.node().inputs[1] != kNoNode;
  // A column, whichever direction `select` has.
  const NodeId kept = call.Formula(is_given ? "matrix(select != 0, nrow(select) * ncol(select), 1)"
                                   : rows   ? "rowSums(target != 0) > 0"
                                            : "t(colSums(target != 0) > 0)");
  const NodeId diagonal = call.Add("diag", {kept});
  const NodeId picked = call.Add("removeEmpty", {diagonal, kept}, call.node().attributes);
  call.Give(0, rows ? call.Add("t%*%", {picked, call.Adjoint()})
                    : call.Add("%*%", {call.Adjoint(), call.Add("t", {picked})}));
}

}  // namespace

constexpr Operator kRemoveEmptyOperator = {.name = "removeEmpty",
                                           .form = CallForm::kNamed,
                                           .parameters = "target select? @margin @empty.return?",
                                           .min_inputs = 1,
                                           .max_inputs = 2,
                                           .infer = InferRemoveEmpty,
                                           .input_use = RemoveEmptyInputUse,
                                           .staged = &kRowsForm,
                                           .run = RunRemoveEmpty,
                                           .run_compressed = RunRemoveEmptyOfCodes,
                                           .takes_frames = true,
                                           .adjoints = "*; 0",
                                           .differentiate = DifferentiateRemoveEmpty};

}  // namespace heddle::ops

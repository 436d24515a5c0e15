// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/catalog.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/elementwise/elementwise_sparse.h"
#include "ops/frame/arrange.h"
#include "ops/frame/remove_empty.h"
#include "ops/select/select_operators.h"
#include "ops/simd/cellwise/elementwise_codes.h"

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
Result<std::vector<char>> Keep(const KernelCall& call, bool rows) {
  const Value& x = *call.inputs[0];
  if (call.inputs.size() < 2 || call.inputs[1] == nullptr)
    return x.IsFrame() ? NotEmpty(x.frame(), rows) : NotZero(x.matrix(), rows);
  const Matrix& select = call.inputs[1]->matrix();
  HEDDLE_RETURN_IF_ERROR(CheckSelect(rows, x.IsFrame() ? "frame" : "matrix", x.shape(), select.shape(),
                                     StatusCode::kFailedPrecondition));
  return NotZero(select, select.columns() == 1);
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

Result<Value> RunRemoveEmpty(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const bool rows, ByRows(call.node));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<char> keep, Keep(call, rows));
  const std::vector<int64_t> before = CountsBefore(keep);
  const bool fills = before.back() == 0 && BooleanAttribute(call.node, "empty.return", true);
  // A vector of which some cells stay is its own list of them.
  if (!call.inputs[0]->IsFrame() && !fills) {
    const Matrix& x = call.inputs[0]->matrix();
    if (before.back() == static_cast<int64_t>(keep.size())) return Value(x);
    if (!x.IsSparse() && (rows ? x.columns() : x.rows()) == 1) {
      HEDDLE_ASSIGN_OR_RETURN(Matrix left,
                              rows ? Matrix::Dense(before.back(), 1) : Matrix::Dense(1, before.back()));
      Compress(keep, before, left.mutable_data(), [&](int64_t i) { return x.data()[i]; });
      return Value(std::move(left));
    }
  }
  std::vector<int64_t> kept(static_cast<size_t>(before.back()));
  Compress(keep, before, kept.data(), [](int64_t i) { return i; });
  if (call.inputs[0]->IsFrame()) {
    const Frame& frame = call.inputs[0]->frame();
    HEDDLE_ASSIGN_OR_RETURN(Frame left, fills ? NothingLeft(frame, rows) : Gathered(frame, rows, kept));
    return Value(std::move(left));
  }
  const Matrix& x = call.inputs[0]->matrix();
  Matrix result;
  if (fills) {
    const Shape shape = rows ? Shape{1, x.columns()} : Shape{x.rows(), 1};
    if (x.IsSparse()) {
      HEDDLE_ASSIGN_OR_RETURN(result, Matrix::Sparse(shape.rows, shape.columns, 0));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(result, FilledMatrix(shape.rows, shape.columns, 0));
    }
  } else if (rows) {
    HEDDLE_ASSIGN_OR_RETURN(result, GatherRows(x, kept));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, GatherColumns(x, kept));
  }
  return Value(std::move(result));
}

// ---- replace(target=X, pattern=p, replacement=r): X with every cell equal to p replaced by r, m x n; a NaN
//      pattern matches every NaN, 0 matches -0.0. Inputs: target, pattern, replacement (scalars). Format: X's
//      (a pattern of 0 fills a CSR matrix). Exact. Rows: row-wise. Cost: reads and writes X once.

Result<ValueInfo> InferReplace(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 1, "pattern"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, 2, "replacement"));
  for (size_t i : {1, 2})
    if (context.inputs[i].value_type == ValueType::kString)
      return InvalidArgument("replace: {} is a string, but the cells of a matrix are numbers",
                             i == 1 ? "pattern" : "replacement");
  return ValueInfo::OfMatrix(context.inputs[0].shape, context.inputs[0].format);
}

RowRule ReplaceRowRule(const Node&, std::span<const ValueInfo>) { return RowRule::kRowWise; }
InputUse ReplaceInputUse(const Node&, std::span<const ValueInfo>, int i) {
  return i == 0 ? InputUse::kRows : InputUse::kWhole;
}

bool ReplaceVanishes(const CellOperands& operands) {
  return operands.absent(0) && !IsZero(operands.operand(1));
}

void ReplaceCells(const double* in, int64_t count, double pattern, double replacement, double* out) {
  if (std::isnan(pattern)) {
    for (int64_t k = 0; k < count; ++k) out[k] = in[k] != in[k] ? replacement : in[k];
  } else {
    for (int64_t k = 0; k < count; ++k) out[k] = in[k] == pattern ? replacement : in[k];
  }
}

Result<Matrix> ReplaceDense(const Matrix& x, double pattern, double replacement) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  double* out = result.mutable_data();
  ParallelFor(x.cells(), 32768, [&](int64_t begin, int64_t end) {
    ReplaceCells(x.data() + begin, end - begin, pattern, replacement, out + begin);
  });
  return result;
}

Result<Value> RunReplace(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const double pattern = NumberOr(call, 1, 0);
  const double replacement = NumberOr(call, 2, 0);
  Matrix result;
  if (!x.IsSparse()) {
    HEDDLE_ASSIGN_OR_RETURN(result, ReplaceDense(x, pattern, replacement));
    return Value(std::move(result));
  }
  if (pattern == 0 && replacement != 0) {  // Every cell has an entry, but for what else is there.
    HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, AsDense(x));
    HEDDLE_ASSIGN_OR_RETURN(const Matrix replaced, ReplaceDense(dense, pattern, replacement));
    HEDDLE_ASSIGN_OR_RETURN(result, AsSparse(replaced));
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(result, SamePattern(x));
  if (x.rows() == 0) return Value(std::move(result));
  const double* values = x.values() + x.row_offsets()[0];
  ParallelFor(x.stored(), 32768, [&](int64_t begin, int64_t end) {
    ReplaceCells(values + begin, end - begin, pattern, replacement, result.mutable_values() + begin);
  });
  HEDDLE_ASSIGN_OR_RETURN(result, DropZeros(result));
  return Value(std::move(result));
}

}  // namespace

namespace {

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

// Cells that are replaced do not count any more; NaN is replaced where cells are NaN.
void DifferentiateReplace(AdjointCall& call) {
  const NodeId replaced = call.Formula("(target == pattern) | (is.nan(target) & is.nan(pattern))");
  if (call.IsWanted(0)) call.Give(0, call.Formula("dy * (1 - R)", {{"R", replaced}}));
  if (call.IsWanted(2)) call.Give(2, call.Formula("sum(dy * R)", {{"R", replaced}}));
}

}  // namespace

std::span<const Operator> SelectOperators() {
  static const Operator kOperators[] = {
      kTableOperator,
      kTableBackwardOperator,
      {.name = "removeEmpty",
       .form = CallForm::kNamed,
       .parameters = "target select? @margin @empty.return?",
       .min_inputs = 1,
       .max_inputs = 2,
       .infer = InferRemoveEmpty,
       .run = RunRemoveEmpty,
       .takes_frames = true,
       .adjoints = "*; 0",
       .differentiate = DifferentiateRemoveEmpty},
      kOrderOperator,
      {.name = "replace",
       .form = CallForm::kNamed,
       .parameters = "target pattern replacement",
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = InferReplace,
       .row_rule = ReplaceRowRule,
       .input_use = ReplaceInputUse,
       .run = RunReplace,
       .role = Role::kReplace,
       .fusion =
           {.use = RowUse::kCells, .cell = true, .row = true, .outer = true, .work = 0.8, .literal_input = 1},
       .vanishes = ReplaceVanishes,
       .adjoints = "*; 0; *",
       .differentiate = DifferentiateReplace},
  };
  return kOperators;
}

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/columns.h"
#include "ops/base/device_forms.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/catalog.h"
#include "ops/cells/append_groups.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/compressed/arrange_groups.h"
#include "ops/frame/arrange.h"
#include "ops/panels/view_panels.h"
#include "ops/reorganize/moved_rows.h"

namespace heddle::ops {
namespace {

// ---- t(X): the n x m transpose. Format: X's. Exact. Cost: reads and writes X once; a dense vector costs
// nothing.

Result<ValueInfo> InferTranspose(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const ValueInfo& x = context.inputs[0];
  return ValueInfo::OfMatrix({x.shape.columns, x.shape.rows}, x.format);
}

Result<Value> RunTranspose(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Transpose(call.inputs[0]->matrix()));
  return Value(std::move(result));
}

// ---- cbind(A, B, ...): the matrices side by side, m x (n1 + n2 + ...); rbind: below each other.
//      Format: CSR if dense inputs make up at most a quarter of the result (X and a column of ones), else
//      dense. Exact. Cost: reads and writes every cell (or entry) once.

constexpr int64_t kLeastPartsOfDense = 4;

Format BindFormat(std::span<const ValueInfo> inputs, int64_t Shape::*length) {
  int64_t total = 0, dense = 0;
  for (const ValueInfo& input : inputs) {
    if (input.shape.*length == kUnknown) {
      total = kUnknown;
      break;
    }
    total = SaturatingSum(total, input.shape.*length);
    if (input.format != Format::kSparse) dense = SaturatingSum(dense, input.shape.*length);
  }
  const auto is_sparse = [](const ValueInfo& input) { return input.format == Format::kSparse; };
  const bool sparse = total == kUnknown ? std::all_of(inputs.begin(), inputs.end(), is_sparse)
                                        : std::any_of(inputs.begin(), inputs.end(), is_sparse) &&
                                              SaturatingProduct(dense, kLeastPartsOfDense) <= total;
  return sparse ? Format::kSparse : Format::kDense;
}

bool BindsFrames(std::span<const ValueInfo> inputs) {
  const auto known = std::find_if(inputs.begin(), inputs.end(), [](const ValueInfo& input) {
    return input.data_type != DataType::kUnknown;
  });
  return known != inputs.end() && known->IsFrame();
}

// All inputs are matrices, or all are frames.
Status RequireAlike(const InferContext& context) {
  const bool frames = BindsFrames(context.inputs);
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const DataType type = context.inputs[i].data_type;
    if (!frames)
      HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, static_cast<int>(i), fmt::format("argument {}", i + 1)));
    else if (type != DataType::kFrame && type != DataType::kUnknown)
      return InvalidArgument("{}: argument {} must be a frame, not a {}", context.node.op, i + 1, Name(type))
          .WithNote("as.frame(X) makes a frame of a matrix");
  }
  return OkStatus();
}

ValueInfo BoundFrame(std::span<const ValueInfo> inputs, Shape shape, bool columns) {
  ValueInfo info = ValueInfo::OfFrame(shape.rows, nullptr);
  info.shape = shape;
  std::vector<const Schema*> schemas;
  for (const ValueInfo& input : inputs) {
    if (input.schema == nullptr) return info;
    schemas.push_back(input.schema.get());
  }
  info.schema = std::make_shared<const Schema>(columns ? SideBySide(schemas) : BelowEachOther(schemas));
  return info;
}

Result<ValueInfo> InferBind(const InferContext& context, bool columns) {
  HEDDLE_RETURN_IF_ERROR(RequireAlike(context));
  Shape shape{columns ? kUnknown : 0, columns ? 0 : kUnknown};
  int64_t& common = columns ? shape.rows : shape.columns;
  int64_t& total = columns ? shape.columns : shape.rows;
  const ValueInfo* first = nullptr;
  for (size_t i = 0; i < context.inputs.size(); ++i) {
    const ValueInfo& input = context.inputs[i];
    const int64_t length = columns ? input.shape.rows : input.shape.columns;
    const int64_t added = columns ? input.shape.columns : input.shape.rows;
    if (length != kUnknown && common == kUnknown) {
      common = length;
      first = &input;
    } else if (length != kUnknown && length != common) {
      return InvalidArgument("{}: numbers of {} differ: {} and {}", context.node.op,
                             columns ? "rows" : "columns", first->shape, input.shape)
          .WithNote(columns ? "rbind puts matrices below each other" : "cbind puts matrices side by side");
    }
    total = total == kUnknown || added == kUnknown ? kUnknown : SaturatingSum(total, added);
  }
  if (BindsFrames(context.inputs)) return BoundFrame(context.inputs, shape, columns);
  return ValueInfo::OfMatrix(shape, BindFormat(context.inputs, columns ? &Shape::columns : &Shape::rows));
}

Result<ValueInfo> InferCbind(const InferContext& context) { return InferBind(context, true); }
Result<ValueInfo> InferRbind(const InferContext& context) { return InferBind(context, false); }

// The cells of all inputs of a bind, and of its result.
ElementType TypeOf(const KernelCall& call) { return call.inputs[0]->matrix().element_type(); }
bool TakesSingles(const KernelCall& call) {
  return std::all_of(call.inputs.begin(), call.inputs.end(), [](const Value* input) {
    return input->IsMatrix() && input->matrix().element_type() == ElementType::kFloat32;
  });
}

// Rows of panels are put below others as they are.
bool TakesSinglesBelow(const KernelCall& call) { return call.phase == Phase::kPanels || TakesSingles(call); }

// The inputs of a bind, all of the result's format where that is CSR.
Result<std::vector<Matrix>> BindParts(const KernelCall& call) {
  std::vector<Matrix> parts;
  for (const Value* input : call.inputs) {
    Matrix part = input->matrix();
    if (call.node.info.format == Format::kSparse) {
      HEDDLE_ASSIGN_OR_RETURN(part, AsSparse(part));
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// Growing by less than a fourth again and again costs one copy of all cells for each half that is added. The
// room for that half ends here: larger matrices are copied more often instead.
constexpr int64_t kMostRoom = int64_t{8} << 20;  // cells

template <typename T>
void CopyRows(const Matrix& part, T* out) {
  const int64_t columns = part.columns();
  ParallelFor(columns == 0 ? 0 : part.rows(), RowGrain(columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) CopyRow(part, i, out + i * columns);
  });
}

// X = rbind(X, A) and the like in a loop: where nobody else needs the dense X any more and its cells are the
// first of the result's, the others go behind them, into room that an earlier such call has left. nullopt
// where the cells have to be copied. `first` is taken only if something is returned.
template <typename T>
Result<std::optional<Matrix>> Append(const KernelCall& call, int64_t rows, int64_t columns) {
  const std::optional<Matrix> nothing;
  if (call.last_read == nullptr || call.last_read->matrix().IsSparse()) return nothing;
  for (size_t i = 1; i < call.inputs.size(); ++i)
    if (call.inputs[i] == call.inputs[0]) return nothing;
  Matrix& first = call.last_read->matrix();
  const int64_t cells = first.cells(), all = SaturatingProduct(rows, columns);
  if (!first.HoldsCellsAlone() || cells == 0 || (all - cells) * 4 > all) return nothing;
  Matrix result;
  if (first.GrowTo(rows, columns)) {
    result = std::move(first);
  } else {
    Result<Matrix> roomy = Matrix::DenseWithRoom(rows, columns, std::min(all / 2, kMostRoom), TypeOf(call));
    if (!roomy.ok()) return nothing;
    result = *std::move(roomy);
    CopyRows(first, result.mutable_data<T>());
    first = Matrix();
  }
  T* out = result.mutable_data<T>() + cells;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    CopyRows(call.inputs[i]->matrix(), out);
    out += call.inputs[i]->matrix().cells();
  }
  return std::optional<Matrix>(std::move(result));
}

// The number of rows (or columns) that all inputs of a bind have in common, and that of the result.
struct BoundLengths {
  int64_t common = 0;
  int64_t total = 0;
};

Result<BoundLengths> LengthsOf(const KernelCall& call, bool columns) {
  const Shape first = call.inputs[0]->shape();
  BoundLengths lengths{.common = columns ? first.rows : first.columns};
  for (const Value* input : call.inputs) {
    const Shape shape = input->shape();
    if ((columns ? shape.rows : shape.columns) != lengths.common)
      return FailedPrecondition("{}: numbers of {} differ: {} and {}", call.node.op,
                                columns ? "rows" : "columns", first, shape);
    lengths.total = SaturatingSum(lengths.total, columns ? shape.columns : shape.rows);
  }
  return lengths;
}

Result<Value> BindFrames(const KernelCall& call, bool columns) {
  HEDDLE_RETURN_IF_ERROR(LengthsOf(call, columns).status());
  std::vector<Frame> parts;
  for (const Value* input : call.inputs) parts.push_back(input->frame());
  HEDDLE_ASSIGN_OR_RETURN(Frame result, columns ? SideBySide(parts) : BelowEachOther(parts));
  return Value(std::move(result));
}

template <typename T>
Result<Value> CbindCells(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const BoundLengths lengths, LengthsOf(call, /*columns=*/true));
  const int64_t rows = lengths.common, columns = lengths.total;
  if (rows == 1 && call.node.info.format == Format::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> appended, Append<T>(call, rows, columns));
    if (appended) return Value(*std::move(appended));
  }
  std::vector<Matrix> parts;
  for (const Value* input : call.inputs) parts.push_back(input->matrix());
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, JoinColumns(std::move(parts), call.node.info.format));
  return Value(std::move(result));
}

Result<Value> RunCbind(const KernelCall& call) {
  if (call.inputs[0]->IsFrame()) return BindFrames(call, true);
  return TakesSingles(call) ? CbindCells<float>(call) : CbindCells<double>(call);
}

template <typename T>
Result<Matrix> RbindSparse(const std::vector<Matrix>& parts, int64_t rows, int64_t columns) {
  int64_t stored = 0;
  for (const Matrix& part : parts) stored += part.stored();
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(rows, columns, stored, parts[0].element_type()));
  int64_t row = 0;
  int64_t at = 0;
  for (const Matrix& part : parts) {
    if (part.rows() == 0) continue;
    const int64_t first = part.row_offsets()[0];
    for (int64_t i = 0; i < part.rows(); ++i)
      result.mutable_row_offsets()[++row] = at + part.row_offsets()[i + 1] - first;
    std::copy_n(part.column_indexes() + first, part.stored(), result.mutable_column_indexes() + at);
    std::copy_n(part.values<T>() + first, part.stored(), result.mutable_values<T>() + at);
    at += part.stored();
  }
  return result;
}

template <typename T>
Result<Matrix> RbindDense(const std::vector<Matrix>& parts, int64_t rows, int64_t columns) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(rows, columns, parts[0].element_type()));
  T* out = result.mutable_data<T>();
  for (const Matrix& part : parts) {
    CopyRows(part, out);
    out += part.cells();
  }
  return result;
}

template <typename T>
Result<Value> RbindCells(const KernelCall& call) {
  HEDDLE_ASSIGN_OR_RETURN(const BoundLengths lengths, LengthsOf(call, /*columns=*/false));
  const int64_t rows = lengths.total, columns = lengths.common;
  if (call.node.info.format == Format::kDense) {
    HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> appended, Append<T>(call, rows, columns));
    if (appended) return Value(*std::move(appended));
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Matrix> parts, BindParts(call));
  Matrix result;
  if (call.node.info.format == Format::kSparse) {
    HEDDLE_ASSIGN_OR_RETURN(result, RbindSparse<T>(parts, rows, columns));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(result, RbindDense<T>(parts, rows, columns));
  }
  return Value(std::move(result));
}

Result<Value> RunRbind(const KernelCall& call) {
  if (call.phase == Phase::kPanels && call.context.panels != nullptr)
    return JoinedPanels(call.inputs, call.node.info, *call.context.panels);
  if (call.inputs[0]->IsFrame()) return BindFrames(call, false);
  return TakesSingles(call) ? RbindCells<float>(call) : RbindCells<double>(call);
}

// Compressed matrices stay so. Cells of a CSR result are no -0.0, which cells of the others may be.
Result<std::optional<Value>> RunBindOfCodes(const KernelCall& call, bool columns) {
  const std::optional<Value> nothing;
  const bool is_sparse = call.node.info.format == Format::kSparse;
  std::vector<Matrix> parts;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]->IsMatrix()) return nothing;
    parts.push_back(call.inputs[i]->matrix());
    if (!is_sparse || call.input_infos[i].format == Format::kSparse) continue;
    if (parts.back().IsCompressed()) return nothing;
    HEDDLE_ASSIGN_OR_RETURN(const Matrix sparse, AsSparse(parts.back()));
    HEDDLE_ASSIGN_OR_RETURN(parts.back(), AsDense(sparse));
  }
  if (!LengthsOf(call, columns).ok()) return nothing;
  HEDDLE_ASSIGN_OR_RETURN(std::optional<Matrix> result, columns ? JoinGroups(parts) : AppendGroups(parts));
  if (!result || !DictionariesPay(*result)) return nothing;
  return std::optional<Value>(*std::move(result));
}
Result<std::optional<Value>> RunCbindOfCodes(const KernelCall& call) { return RunBindOfCodes(call, true); }
Result<std::optional<Value>> RunRbindOfCodes(const KernelCall& call) { return RunBindOfCodes(call, false); }

// ---- diag(X): an n x 1 vector becomes the n x n diagonal matrix (CSR), a square matrix its n x 1 diagonal
//      (dense). A 1 x 1 matrix counts as a vector. Exact. Row by row. Cost: n cells.

Result<ValueInfo> InferDiag(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const Shape shape = context.inputs[0].shape;
  if (shape.columns == 1) return ValueInfo::OfMatrix({shape.rows, shape.rows}, Format::kSparse);
  if (shape.columns == kUnknown) return ValueInfo::OfMatrix({shape.rows, kUnknown}, Format::kDense);
  if (shape.rows != kUnknown && shape.rows != shape.columns)
    return InvalidArgument("diag: needs a column vector or a square matrix, got {}", shape)
        .WithNote(shape.rows == 1 ? "diag(t(x)) makes the diagonal matrix of a row vector"
                                  : "X[1:n, 1:n] cuts a square");
  return ValueInfo::OfMatrix({shape.columns, 1}, Format::kDense);
}

Result<Value> RunDiag(const KernelCall& call) {
  const Matrix& x = call.inputs[0]->matrix();
  const int64_t n = x.rows(), all = std::max(call.total_rows, n);
  if (x.columns() != 1) {
    if (x.columns() != all)
      return FailedPrecondition("diag: needs a column vector or a square matrix, got {}",
                                Shape{all, x.columns()});
    HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(n, 1));
    for (int64_t i = 0; i < n; ++i) result.mutable_data()[i] = x.At(i, call.row_begin + i);
    return Value(std::move(result));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Matrix vector, AsDense(x));
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Sparse(n, all, vector.CountNonzeros()));
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (vector.data()[i] != 0) {
      result.mutable_column_indexes()[at] = static_cast<int32_t>(call.row_begin + i);
      result.mutable_values()[at++] = vector.data()[i];
    }
    result.mutable_row_offsets()[i + 1] = at;
  }
  return Value(std::move(result));
}

// The rows or columns of the adjoint that came from each input.
void DifferentiateBind(AdjointCall& call, bool columns) {
  const size_t count = call.node().inputs.size();
  if (count == 1) return call.Give(0, call.Adjoint());
  NodeId before = kNoNode;  // Rows or columns of the inputs so far.
  for (size_t i = 0; i < count; ++i) {
    const NodeId length = columns ? call.Columns(i) : call.Rows(i);
    const NodeId first =
        before == kNoNode ? call.Literal(Scalar(1)) : call.Add("+", {before, call.Literal(Scalar(1))});
    const NodeId last = before == kNoNode ? length : call.Add("+", {before, length});
    before = last;
    if (!call.IsWanted(i)) continue;
    std::vector<NodeId> inputs = {call.Adjoint(), kNoNode, kNoNode, kNoNode, kNoNode};
    inputs[columns ? 3 : 1] = first;
    inputs[columns ? 4 : 2] = last;
    call.Give(i, call.Add("index", std::move(inputs)));
  }
}
void DifferentiateCbind(AdjointCall& call) { DifferentiateBind(call, /*columns=*/true); }
void DifferentiateRbind(AdjointCall& call) { DifferentiateBind(call, /*columns=*/false); }

bool BindsMatrices(const Node&, std::span<const ValueInfo> inputs) { return !BindsFrames(inputs); }
constexpr StagedForm kRbindColumns = ByColumns(AllByRows, BindsMatrices);

using enum CallForm;
constexpr Operator kOperators[] = {
    {.name = "t",
     .form = kPositional,
     .parameters = "X",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferTranspose,
     .input_use = AllByRows,
     .staged = &kTransposeStaged,
     .run = RunTranspose,
     .run_on_device = TransposeOnDevice,
     .takes_singles = TakesAnySingles,
     .kind = OperatorKind::kTranspose,
     .role = Role::kTranspose,
     .adjoints = "t(dy)"},
    {.name = "cbind",
     .form = kVariadic,
     .parameters = "X",
     .aliases = "append",
     .min_inputs = 1,
     .max_inputs = -1,
     .infer = InferCbind,
     .row_rule = RowWise,
     .input_use = AllByRows,
     .run = RunCbind,
     .run_compressed = RunCbindOfCodes,
     .run_on_device = CbindOnDevice,
     .takes_singles = TakesSingles,
     .takes_frames = true,
     .role = Role::kCbind,
     .fusion = {.use = RowUse::kCbind, .row = true},
     .adjoints = "*",
     .differentiate = DifferentiateCbind},
    {.name = "rbind",
     .form = kVariadic,
     .parameters = "X",
     .min_inputs = 1,
     .max_inputs = -1,
     .infer = InferRbind,
     .panel_use = ViewsPanels,
     .staged = &kRbindColumns,
     .run = RunRbind,
     .run_compressed = RunRbindOfCodes,
     .run_on_device = RbindOnDevice,
     .updates = true,
     .takes_singles = TakesSinglesBelow,
     .takes_frames = true,
     .role = Role::kRbind,
     .adjoints = "*",
     .differentiate = DifferentiateRbind},
    {.name = "diag",
     .form = kPositional,
     .parameters = "X",
     .min_inputs = 1,
     .max_inputs = 1,
     .infer = InferDiag,
     .row_rule = RowWise,
     .input_use = AllByRows,
     .run = RunDiag,
     .run_on_device = DiagonalOnDevice,
     .adjoints = "diag(dy)"},
};

}  // namespace

std::span<const Operator> ReorganizeOperators() { return kOperators; }

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/base/whole_number.h"
#include "ops/catalog.h"
#include "ops/cells/global_places.h"
#include "ops/cells/join_columns.h"
#include "ops/cells/move_cells.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "ops/spectrum/fourier_plan.h"

// Fourier transforms. All have two results, the real and the imaginary part.
//
//   [re, im] = fft(X)                     of the rows, then of the columns of X m x n; results m x n
//   [re, im] = ifft(R [, I])              the inverse, divided by the number of cells
//   [re, im] = fft_linearized(X), ifft_linearized(R [, I])   each row alone
//   [re, im] = stft(X [, I], window, overlap)                windows of each row, one after the other
//
// Any sizes (SystemDS has powers of two only). Windows begin every window - overlap columns; the last is
// filled up with zeros: the results have m rows and window * ceil((n - overlap) / (window - overlap))
// columns. Error: ops/spectrum/fourier_plan.h. Cost: 5 m n log2(mn). Format: dense. Rows: row-wise; of fft
// and ifft in stages, each cell sent twice.
namespace heddle::ops {
namespace {

struct Kind {
  bool inverse;
  bool by_rows;  // Not the columns.
};
Kind KindOf(const Node& node) { return {node.op[0] == 'i', node.op.ends_with("_linearized")}; }

Status CheckSameShape(const Node& node, Shape re, Shape im, StatusCode code) {
  if (!re.IsKnown() || !im.IsKnown() || re == im) return OkStatus();
  return Status(code, fmt::format("{}: the real part is {} but the imaginary part is {}", node.op, re, im));
}

Result<std::vector<ValueInfo>> InferTransform(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  Shape shape = context.inputs[0].shape;
  if (IsGiven(context.node, 1)) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 1, "argument 2"));
    HEDDLE_RETURN_IF_ERROR(
        CheckSameShape(context.node, shape, context.inputs[1].shape, StatusCode::kInvalidArgument));
  }
  return std::vector<ValueInfo>(2, ValueInfo::OfMatrix(shape));
}

// The parts of a complex matrix.
struct Parts {
  Matrix re, im;
};

// A copy of its own of the cells of x.
Result<Matrix> OwnCells(const Matrix& x) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.rows(), x.columns()));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix cells, AsDense(x));
  std::copy_n(cells.data(), cells.cells(), result.mutable_data());
  return result;
}

// Zeros if there is no x.
Result<Matrix> OwnCells(const Value* x, Shape shape) {
  return x == nullptr ? FilledMatrix(shape.rows, shape.columns, 0) : OwnCells(x->matrix());
}

Result<Parts> ReadParts(const KernelCall& call) {
  const Shape shape = call.inputs[0]->matrix().shape();
  const Value* const im = call.inputs.size() > 1 ? call.inputs[1] : nullptr;
  if (im != nullptr)
    HEDDLE_RETURN_IF_ERROR(
        CheckSameShape(call.node, shape, im->matrix().shape(), StatusCode::kFailedPrecondition));
  Parts parts;
  HEDDLE_ASSIGN_OR_RETURN(parts.re, OwnCells(call.inputs[0], shape));
  HEDDLE_ASSIGN_OR_RETURN(parts.im, OwnCells(im, shape));
  return parts;
}

// Transforms runs of plan.n() cells, all of the parts.
Status TransformRuns(const KernelCall& call, const FourierPlan& plan, bool inverse, Parts* parts) {
  if (parts->re.cells() == 0) return OkStatus();
  double* re = parts->re.mutable_data();
  double* im = parts->im.mutable_data();
  ParallelFor(parts->re.cells() / plan.n(), RowGrain(plan.n()), [&](int64_t begin, int64_t end) {
    FourierPlan::Workspace workspace;
    for (int64_t i = begin; i < end && !IsCancelled(call.context.cancelled); ++i)
      plan.Transform(re + i * plan.n(), im + i * plan.n(), inverse, &workspace);
  });
  return IsCancelled(call.context.cancelled) ? Cancelled("cancelled") : OkStatus();
}

Status TransposeParts(Parts* parts) {
  HEDDLE_ASSIGN_OR_RETURN(parts->re, Transpose(parts->re));
  HEDDLE_ASSIGN_OR_RETURN(parts->im, Transpose(parts->im));
  return OkStatus();
}

Status RunTransform(const KernelCall& call, std::span<Value> results) {
  const Kind kind = KindOf(call.node);
  HEDDLE_ASSIGN_OR_RETURN(Parts parts, ReadParts(call));
  const Shape shape = parts.re.shape();
  HEDDLE_RETURN_IF_ERROR(TransformRuns(call, FourierPlan(shape.columns), kind.inverse, &parts));
  if (!kind.by_rows && shape.rows > 1) {
    HEDDLE_RETURN_IF_ERROR(TransposeParts(&parts));
    HEDDLE_RETURN_IF_ERROR(TransformRuns(call, FourierPlan(shape.rows), kind.inverse, &parts));
    HEDDLE_RETURN_IF_ERROR(TransposeParts(&parts));
  }
  results[0] = Value(std::move(parts.re));
  results[1] = Value(std::move(parts.im));
  return OkStatus();
}

// ---- fft and ifft on several ranks: each transforms its rows, gets some columns of all rows, transforms
// those, and gets its rows of all columns back.

// Of both parts every rank gets as many columns as the others, or one less: transforms have no order in which
// columns would have to stay together.
Status SendColumns(const StageCall& call, const Parts& parts, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto [begin, end] = OwnPlaces(parts.re.columns(), static_cast<int32_t>(rank), call.ranks());
    HEDDLE_ASSIGN_OR_RETURN(Matrix re, SliceColumns(parts.re, begin, end));
    HEDDLE_ASSIGN_OR_RETURN(Matrix im, SliceColumns(parts.im, begin, end));
    outputs[rank] = Value(std::move(re));
    outputs[ranks + rank] = Value(std::move(im));
  }
  return OkStatus();
}

Status SendRows(const StageCall& call, const Parts& parts, std::span<Value> outputs) {
  const auto ranks = static_cast<size_t>(call.ranks());
  for (size_t rank = 0; rank < ranks; ++rank) {
    const int64_t begin = call.rows.Begin(static_cast<int32_t>(rank)),
                  end = call.rows.End(static_cast<int32_t>(rank));
    outputs[rank] = Value(parts.re.Rows(begin, end));
    outputs[ranks + rank] = Value(parts.im.Rows(begin, end));
  }
  return OkStatus();
}

Status RunTransformStage(const StageCall& call, std::span<Value> outputs) {
  const bool inverse = KindOf(call.node).inverse;
  const KernelCall whole = call.WholeCall();
  const Shape shape = call.input_infos[0].shape;
  Parts parts;
  switch (call.stage) {
    case 0: {
      HEDDLE_ASSIGN_OR_RETURN(parts, ReadParts(whole));
      HEDDLE_RETURN_IF_ERROR(TransformRuns(whole, FourierPlan(shape.columns), inverse, &parts));
      return SendColumns(call, parts, outputs);
    }
    case 1: {
      HEDDLE_ASSIGN_OR_RETURN(const Value re, JoinRows(call.Parts(0)));
      HEDDLE_ASSIGN_OR_RETURN(const Value im, JoinRows(call.Parts(1)));
      parts = {re.matrix(), im.matrix()};
      if (shape.rows > 1) {
        HEDDLE_RETURN_IF_ERROR(TransposeParts(&parts));
        if (std::min(parts.re.rows(), parts.re.columns()) == 1) {  // It shares the cells that have arrived.
          HEDDLE_ASSIGN_OR_RETURN(parts.re, OwnCells(parts.re));
          HEDDLE_ASSIGN_OR_RETURN(parts.im, OwnCells(parts.im));
        }
        HEDDLE_RETURN_IF_ERROR(TransformRuns(whole, FourierPlan(shape.rows), inverse, &parts));
        HEDDLE_RETURN_IF_ERROR(TransposeParts(&parts));
      }
      return SendRows(call, parts, outputs);
    }
    default: {
      for (const size_t part : {0, 1}) {
        std::vector<Matrix> columns;
        for (const Value* piece : call.Parts(part)) columns.push_back(piece->matrix());
        HEDDLE_ASSIGN_OR_RETURN(Matrix rows, JoinColumns(std::move(columns), Format::kDense));
        outputs[part] = Value(std::move(rows));
      }
      return OkStatus();
    }
  }
}

constexpr Reach kBothParts[] = {Reach::kParts, Reach::kParts};
constexpr Stage kTransformStages[] = {
    {.outputs = kBothParts, .reads_inputs = true}, {.outputs = kBothParts}, {}};

bool TransformsColumns(const Node& node, std::span<const ValueInfo>) { return !KindOf(node).by_rows; }

// Both parts there and back.
double MovedBytes(const Node&, std::span<const ValueInfo> inputs, const RankGrid&) {
  return 32 * static_cast<double>(inputs[0].shape.Cells());
}

constexpr StagedForm kTransformStaged = {.stages = kTransformStages,
                                         .result = StagedResult::kSameRows,
                                         .all_alike = true,
                                         .applies = TransformsColumns,
                                         .moved_bytes = MovedBytes,
                                         .run = RunTransformStage};

// ---- stft: its imaginary part may be left out in the middle of the arguments, so the numbers are the last
// two.

struct Windows {
  int64_t window = kUnknown;
  int64_t step = kUnknown;
  int64_t CountOf(int64_t columns) const {
    return std::max<int64_t>(0, (columns - (window - step) + step - 1) / step);
  }
};

Result<Windows> MakeWindows(const Scalar& window, const Scalar& overlap, StatusCode code) {
  Windows windows;
  HEDDLE_ASSIGN_OR_RETURN(windows.window, RequireSize(window, "stft", "window", code));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t both, RequireSize(overlap, "stft", "overlap", code));
  windows.step = windows.window - both;
  if (windows.step > 0) return windows;
  return Status(code, fmt::format("stft: the overlap of windows, {}, must be less than their size, {}", both,
                                  windows.window));
}

Result<std::vector<ValueInfo>> InferWindows(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 0, "argument 1"));
  const int last = IsGiven(context.node, 3) ? 3 : 2;
  const Shape x = context.inputs[0].shape;
  if (last == 3) {
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, 1, "argument 2"));
    HEDDLE_RETURN_IF_ERROR(
        CheckSameShape(context.node, x, context.inputs[1].shape, StatusCode::kInvalidArgument));
  }
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, last - 1, "window"));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, last, "overlap"));
  const Scalar* const window = KnownScalar(context, last - 1);
  const Scalar* const overlap = KnownScalar(context, last);
  int64_t columns = kUnknown;
  if (window != nullptr && overlap != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const Windows windows,
                            MakeWindows(*window, *overlap, StatusCode::kInvalidArgument));
    if (x.columns != kUnknown) columns = SaturatingProduct(windows.CountOf(x.columns), windows.window);
  }
  return std::vector<ValueInfo>(2, ValueInfo::OfMatrix({x.rows, columns}));
}

Status RunWindows(const KernelCall& call, std::span<Value> results) {
  const size_t last = call.inputs.size() > 3 && call.inputs[3] != nullptr ? 3 : 2;
  HEDDLE_ASSIGN_OR_RETURN(const Windows windows,
                          MakeWindows(call.inputs[last - 1]->scalar(), call.inputs[last]->scalar(),
                                      StatusCode::kFailedPrecondition));
  HEDDLE_ASSIGN_OR_RETURN(const Matrix re, AsDense(call.inputs[0]->matrix()));
  Matrix im;
  if (last == 3) {
    HEDDLE_ASSIGN_OR_RETURN(im, AsDense(call.inputs[1]->matrix()));
    HEDDLE_RETURN_IF_ERROR(
        CheckSameShape(call.node, re.shape(), im.shape(), StatusCode::kFailedPrecondition));
  }
  const int64_t count = windows.CountOf(re.columns());
  Parts parts;
  HEDDLE_ASSIGN_OR_RETURN(parts.re, FilledMatrix(re.rows(), count * windows.window, 0));
  HEDDLE_ASSIGN_OR_RETURN(parts.im, FilledMatrix(re.rows(), count * windows.window, 0));
  for (int64_t run = 0; run < re.rows() * count; ++run) {
    const int64_t row = run / count, begin = run % count * windows.step;
    const int64_t cells = std::min(windows.window, re.columns() - begin);
    std::copy_n(re.data() + row * re.columns() + begin, cells,
                parts.re.mutable_data() + run * windows.window);
    if (last == 3)
      std::copy_n(im.data() + row * re.columns() + begin, cells,
                  parts.im.mutable_data() + run * windows.window);
  }
  HEDDLE_RETURN_IF_ERROR(TransformRuns(call, FourierPlan(windows.window), false, &parts));
  results[0] = Value(std::move(parts.re));
  results[1] = Value(std::move(parts.im));
  return OkStatus();
}

RowRule TransformRowRule(const Node& node, std::span<const ValueInfo>) {
  return node.Is("stft") || KindOf(node).by_rows ? RowRule::kRowWise : RowRule::kWhole;
}
InputUse MatricesByRows(const Node&, std::span<const ValueInfo> inputs, int i) {
  return inputs[static_cast<size_t>(i)].IsMatrix() ? InputUse::kRows : InputUse::kWhole;
}

constexpr Operator OfTransform(std::string_view name, std::string_view parameters, int most) {
  return {.name = name,
          .form = CallForm::kPositional,
          .parameters = parameters,
          .min_inputs = 1,
          .max_inputs = most,
          .results = 2,
          .infer_several = InferTransform,
          .row_rule = TransformRowRule,
          .input_use = MatricesByRows,
          .staged = &kTransformStaged,
          .run_several = RunTransform};
}

constexpr Operator kOperators[] = {
    OfTransform("fft", "X", 1),
    OfTransform("ifft", "re im?", 2),
    OfTransform("fft_linearized", "X", 1),
    OfTransform("ifft_linearized", "re im?", 2),
    {.name = "stft",
     .form = CallForm::kPositional,
     .parameters = "X im window overlap?",
     .min_inputs = 3,
     .max_inputs = 4,
     .results = 2,
     .infer_several = InferWindows,
     .row_rule = TransformRowRule,
     .input_use = MatricesByRows,
     .run_several = RunWindows,
     .may_fail = true},
};

}  // namespace

std::span<const Operator> FourierOperators() { return kOperators; }

}  // namespace heddle::ops

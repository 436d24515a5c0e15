// SPDX-License-Identifier: Apache-2.0
#include "ops/neural/lstm.h"

#include <algorithm>

#include "core/values/panels.h"
#include "core/values/sizes.h"
#include "ops/base/adjoint.h"
#include "ops/base/arguments.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/base/row_rules.h"
#include "ops/neural/cell_types.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/matmul_pack.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::ops {
namespace {

enum Input { kX, kWeights, kBias, kOut0, kC0, kSequences };
enum Output { kOut, kCells, kOutputsOfSteps, kCellsOfSteps, kGatesOfSteps, kOutputs };

constexpr std::string_view kNames[] = {"X", "W", "b", "out0", "c0"};

bool IsByRows(const Node& node) { return node.op.ends_with("_by_rows"); }

Result<std::vector<ValueInfo>> InferLstm(const InferContext& context) {
  for (int i = kX; i <= kC0; ++i) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, i, kNames[i]));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kSequences, "return_sequences"));
  const auto shape = [&](int i) { return context.inputs[static_cast<size_t>(i)].shape; };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          SizesOf("lstm", shape(kX), shape(kWeights), shape(kBias), shape(kOut0), shape(kC0),
                                  StatusCode::kInvalidArgument));
  const bool all = sizes.n != kUnknown && sizes.m != kUnknown && sizes.steps != kUnknown;
  const Scalar* const sequences = KnownScalar(context, kSequences);
  std::vector<ValueInfo> results(kOutputs, ValueInfo::OfMatrix({sizes.n, sizes.m}));
  if (sequences == nullptr || sequences->AsBoolean())
    results[kOut].shape.columns =
        sequences != nullptr && all ? SaturatingProduct(sizes.steps, sizes.m) : kUnknown;
  const LstmPlaces places(sizes, IsByRows(context.node));
  for (int i = kOutputsOfSteps; i < kOutputs; ++i)
    results[static_cast<size_t>(i)].shape = places.ShapeOf(
        sizes.m == kUnknown ? kUnknown : SaturatingProduct(i == kGatesOfSteps ? 4 : 1, sizes.m));
  return results;
}

bool TakesSingles(const KernelCall& call) { return HoldSingles(call, {kX, kWeights, kBias, kOut0, kC0}); }

template <typename Cell>
Status GiveSteps(const KernelCall& call, const LstmSizes& sizes, std::span<Value> results) {
  const LstmPlaces places(sizes, IsByRows(call.node));
  HEDDLE_ASSIGN_OR_RETURN(LstmStates states, RunSteps<Cell>(call, sizes, places));
  const bool sequences = BooleanOr(call, kSequences, false);
  const int64_t steps = sizes.steps, m = sizes.m, first = sequences ? 0 : steps - 1;
  HEDDLE_ASSIGN_OR_RETURN(Matrix out, Matrix::Dense(sizes.n, (steps - first) * m, kElementTypeOf<Cell>));
  HEDDLE_ASSIGN_OR_RETURN(Matrix cells, Matrix::Dense(sizes.n, m, kElementTypeOf<Cell>));
  for (int64_t i = 0; i < sizes.n; ++i) {
    for (int64_t t = first; t < steps; ++t)
      std::copy_n(states.outputs.template data<Cell>() + places.At(t, i) * m, m,
                  out.mutable_data<Cell>() + (i * (steps - first) + t - first) * m);
    std::copy_n(states.cells.template data<Cell>() + places.At(steps - 1, i) * m, m,
                cells.mutable_data<Cell>() + i * m);
  }
  results[kOut] = Value(std::move(out));
  results[kCells] = Value(std::move(cells));
  results[kOutputsOfSteps] = Value(std::move(states.outputs));
  results[kCellsOfSteps] = Value(std::move(states.cells));
  results[kGatesOfSteps] = Value(std::move(states.gates));
  return OkStatus();
}

Status RunLstm(const KernelCall& call, std::span<Value> results) {
  const auto shape = [&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          SizesOf("lstm", shape(kX), shape(kWeights), shape(kBias), shape(kOut0), shape(kC0),
                                  StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? GiveSteps<float>(call, sizes, results)
                            : GiveSteps<double>(call, sizes, results);
}

Cost LstmCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[kX].shape, &weights = inputs[kWeights].shape;
  if (!x.IsKnown() || !weights.IsKnown()) return {};
  const double d =
      std::max(1.0, static_cast<double>(weights.rows) - static_cast<double>(weights.columns) / 4);
  const double steps = static_cast<double>(x.columns) / d;
  return {
      .work = kWorkOfMultiplyAdd * static_cast<double>(x.rows) * steps * static_cast<double>(weights.Cells()),
      .bytes = 8 * static_cast<double>(x.Cells())};
}

}  // namespace

Result<LstmSizes> SizesOf(std::string_view op, Shape x, Shape weights, Shape bias, Shape out0, Shape c0,
                          StatusCode code) {
  LstmSizes sizes{.n = x.rows};
  if (weights.columns != kUnknown) {
    if (weights.columns == 0 || weights.columns % 4 != 0)
      return Status(code, fmt::format("{}: W must have 4 * m columns, not {}", op, weights.columns));
    sizes.m = weights.columns / 4;
  }
  if (weights.IsKnown()) {
    sizes.d = weights.rows - sizes.m;
    if (sizes.d < 1)
      return Status(code, fmt::format("{}: W is {}: it must have more than {} rows", op, weights, sizes.m))
          .WithNote(
              "W has a row for each number of an input and of the state, four columns for each of the state");
  }
  if (sizes.d != kUnknown && x.columns != kUnknown) {
    if (x.columns == 0 || x.columns % sizes.d != 0)
      return Status(code,
                    fmt::format("{}: {} columns of X are no steps of {} numbers", op, x.columns, sizes.d))
          .WithNote(fmt::format("W, {}, has rows for {} numbers of an input and {} of the state", weights,
                                sizes.d, sizes.m));
    sizes.steps = x.columns / sizes.d;
  }
  const auto differs = [](int64_t a, int64_t b) { return a != kUnknown && b != kUnknown && a != b; };
  if (differs(bias.rows, 1) || differs(bias.columns, weights.columns))
    return Status(code, fmt::format("{}: b is {} but W {}", op, bias, weights))
        .WithNote("b is a row with a number for each column of W");
  for (const auto& [what, shape] : {std::pair("out0", out0), std::pair("c0", c0)}) {
    const bool too_few = shape.rows != kUnknown && sizes.n != kUnknown && shape.rows < sizes.n;
    if (too_few || differs(shape.columns, sizes.m))
      return Status(code,
                    fmt::format("{}: {} is {} but must be {}", op, what, shape, Shape{sizes.n, sizes.m}));
  }
  return sizes;
}

namespace {

void Apply(UnaryCode code, const double* in, double* out, int64_t count) {
  SelectedElementwiseKernels().Of(code)(in, out, count, false);
}
// Functions of floats take and give floats in doubles.
void Apply(UnaryCode code, const float* in, float* out, int64_t count) {
  constexpr int64_t kTogether = 512;
  alignas(64) double room[kTogether];
  const ElementwiseKernels& kernels = SelectedElementwiseKernels();
  for (int64_t j = 0; j < count; j += kTogether) {
    const int64_t here = std::min(kTogether, count - j);
    kernels.widen(in + j, room, here);
    kernels.Of(code)(room, room, here, false);
    kernels.narrow(room, out + j, here);
  }
}

}  // namespace

void HyperbolicTangents(const double* in, double* out, int64_t count) {
  Apply(UnaryCode::kHyperbolicTangent, in, out, count);
}
void HyperbolicTangents(const float* in, float* out, int64_t count) {
  Apply(UnaryCode::kSingleHyperbolicTangent, in, out, count);
}
void Sigmoids(const double* in, double* out, int64_t count) { Apply(UnaryCode::kSigmoid, in, out, count); }
void Sigmoids(const float* in, float* out, int64_t count) {
  Apply(UnaryCode::kSingleSigmoid, in, out, count);
}

template <typename Cell>
Result<LstmStates> RunSteps(const KernelCall& call, const LstmSizes& sizes, const LstmPlaces& places) {
  const int64_t n = sizes.n, m = sizes.m, depth = sizes.depth(), columns = sizes.steps * sizes.d;
  const Cell *const x = CellsOf<Cell>(call, kX), *const weights = CellsOf<Cell>(call, kWeights),
                    *const bias = CellsOf<Cell>(call, kBias);
  const Cell *const out0 = RowsOfSequences<Cell>(call, kOut0, sizes), *const c0 = RowsOfSequences<Cell>(
                                                                          call, kC0, sizes);
  constexpr ElementType kType = kElementTypeOf<Cell>;
  LstmStates states;
  const Shape of_states = places.ShapeOf(m), of_gates = places.ShapeOf(4 * m);
  HEDDLE_ASSIGN_OR_RETURN(states.outputs, Matrix::Dense(of_states.rows, of_states.columns, kType));
  HEDDLE_ASSIGN_OR_RETURN(states.cells, Matrix::Dense(of_states.rows, of_states.columns, kType));
  HEDDLE_ASSIGN_OR_RETURN(states.gates, Matrix::Dense(of_gates.rows, of_gates.columns, kType));
  if (n == 0) return states;
  Cell *const outputs = states.outputs.template mutable_data<Cell>(),
              *const cells = states.cells.template mutable_data<Cell>(),
              *const gates = states.gates.template mutable_data<Cell>();
  const PackedRightOf<Cell> packed(weights, depth, 4 * m);
  // Sequences know nothing of each other: a task takes some of them through all steps.
  const int64_t grain = std::max<int64_t>(8, CeilDivide(n, 2 * ParallelThreads()));
  ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
    const PackedCells<Cell> inputs((end - begin) * depth);
    for (int64_t t = 0; t < sizes.steps; ++t) {
      if (IsCancelled(call.context.cancelled)) return;
      const auto before = [&](const Cell* first, const Cell* of_steps, int64_t i) {
        return t == 0 ? first + i * m : of_steps + places.At(t - 1, i) * m;
      };
      for (int64_t i = begin; i < end; ++i)
        CopyInput(sizes, x + i * columns, t, before(out0, outputs, i), inputs.data() + (i - begin) * depth);
      GemmOf<Cell> product{.m = end - begin,
                           .n = 4 * m,
                           .k = depth,
                           .a = inputs.data(),
                           .a_row = depth,
                           .b = weights,
                           .b_row = 4 * m,
                           .packed = &packed,
                           .c_row = places.Stride() * 4 * m};
      WriteCells(gates + places.At(t, begin) * 4 * m, &product);
      Run(product);
      for (int64_t i = begin; i < end; ++i) {
        Cell* const gate = gates + places.At(t, i) * 4 * m;
        for (int64_t j = 0; j < 4 * m; ++j) gate[j] += bias[j];
        Sigmoids(gate, gate, 3 * m);
        HyperbolicTangents(gate + 3 * m, gate + 3 * m, m);
        const Cell* const cell_before = before(c0, cells, i);
        Cell* const cell = cells + places.At(t, i) * m;
        Cell* const output = outputs + places.At(t, i) * m;
        for (int64_t j = 0; j < m; ++j) cell[j] = gate[m + j] * cell_before[j] + gate[j] * gate[3 * m + j];
        HyperbolicTangents(cell, output, m);
        for (int64_t j = 0; j < m; ++j) output[j] = gate[2 * m + j] * output[j];
      }
    }
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return states;
}
template Result<LstmStates> RunSteps<double>(const KernelCall& call, const LstmSizes& sizes,
                                             const LstmPlaces& places);
template Result<LstmStates> RunSteps<float>(const KernelCall& call, const LstmSizes& sizes,
                                            const LstmPlaces& places);

Shape LstmPlaces::ShapeOf(int64_t width) const {
  const int64_t rows = by_rows ? n : steps, side_by_side = by_rows ? steps : n;
  const bool known = side_by_side != kUnknown && width != kUnknown;
  return {rows, known ? SaturatingProduct(side_by_side, width) : kUnknown};
}

const Operator* ByRowsOf(const Node& node) {
  return node.Is("lstm") || node.Is("lstm_backward") ? FindOperator(node.op + "_by_rows") : nullptr;
}

namespace {

void DifferentiateLstm(AdjointCall& call) {
  for (size_t i = 2; i < 5; ++i)
    if (call.HasAdjoint(i)) return call.Refuse("of the results of lstm() only out and c have a derivative");
  std::vector<NodeId> inputs;
  for (size_t i = 0; i < 6; ++i) inputs.push_back(call.Input(i));
  for (size_t i = 0; i < 2; ++i) inputs.push_back(call.Adjoint(i));
  for (size_t i = 2; i < 5; ++i) inputs.push_back(call.Computed(i));
  const NodeId tuple = call.Add("lstm_backward", std::move(inputs));
  for (int64_t i = 0; i < 5; ++i)
    if (call.IsWanted(static_cast<size_t>(i)))
      call.Give(static_cast<size_t>(i), call.Add("result", {tuple}, {{"index", Scalar(i)}}));
}

InputUse UseOfInput(const Node&, std::span<const ValueInfo> inputs, int i) {
  return (i == kX || i == kOut0 || i == kC0) && HasRowsOfFirst(inputs, i) ? InputUse::kRows
                                                                          : InputUse::kWhole;
}

}  // namespace

/// [out, c, outputs, cells, gates] = lstm(X, W, b, out0, c0, return_sequences): n sequences through a layer
/// of long short-term memory. At step t: (i, f, o, g) = cbind(X_t, out) %*% W + b, i, f and o through
/// sigmoid, g through tanh; c = f * c + i * g; out = o * tanh(c).
///
/// Shapes:  X is n x T*d, W (d+m) x 4*m, b 1 x 4*m, out0 and c0 n x m (more rows do not count). out is n x
///          T*m, or n x m, the last step, without return_sequences; c n x m; outputs and cells T x n*m, gates
///          T x n*4*m: what each step left, row by row.
/// Errors:  shapes that do not fit.
/// Order:   each cell of the product one chain s = fma(x, w, s) over the rows of W ascending, from +0.0, +
/// 0.0
///          at its end; everything else one rounding an operator. Floats likewise, the product as that of
///          floats.
/// Cost:    2 * n*T * (d+m) * 4*m; a task takes some sequences through all steps.
/// Rows:    whole; where sizes are known lstm_by_rows takes its place (compiler/optimize, "sequences").
extern constexpr Operator kLstm = {.name = "lstm",
                                   .form = CallForm::kPositional,
                                   .parameters = "X W b out0 c0 return_sequences",
                                   .min_inputs = 6,
                                   .max_inputs = 6,
                                   .results = 5,
                                   .infer_several = InferLstm,
                                   .cost = LstmCost,
                                   .run_several = RunLstm,
                                   .takes_singles = TakesSingles,
                                   .storages = Storages::kDense,
                                   .adjoints = "*; *; *; *; *; 0",
                                   .differentiate = DifferentiateLstm};

/// lstm with a row for each sequence in all results: outputs and cells n x T*m, gates n x T*4*m.
extern constexpr Operator kLstmByRows = {.name = "lstm_by_rows",
                                         .parameters = "X W b out0 c0 return_sequences",
                                         .min_inputs = 6,
                                         .max_inputs = 6,
                                         .results = 5,
                                         .infer_several = InferLstm,
                                         .row_rule = RowWise,
                                         .input_use = UseOfInput,
                                         .cost = LstmCost,
                                         .run_several = RunLstm,
                                         .takes_singles = TakesSingles,
                                         .storages = Storages::kDense};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/values/sizes.h"
#include "ops/arguments.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/lstm.h"
#include "ops/parallel.h"
#include "ops/product/matmul_gemm.h"
#include "ops/reduction/reduction_tree.h"
#include "ops/simd/elementwise.h"

namespace heddle::ops {
namespace {

constexpr std::string_view kName = "lstm_backward";
enum Input {
  kX,
  kWeights,
  kBias,
  kOut0,
  kC0,
  kSequences,
  kGradient,
  kOfCells,
  kCacheOut,
  kCacheC,
  kCacheIfog
};
enum Output { kOfX, kOfWeights, kOfBias, kOfOut0, kOfC0, kOutputs };

constexpr std::string_view kNames[] = {"X",    "W",  "b",         "out0",    "c0",        "",
                                       "dout", "dc", "cache_out", "cache_c", "cache_ifog"};

// Rows of the batch that a task takes.
constexpr int64_t kTaskRows = 8;

// One of them is enough: then inference asks for all.
template <typename IsThere>
bool HasCaches(const IsThere& is_there) {
  return is_there(kCacheOut) || is_there(kCacheC) || is_there(kCacheIfog);
}

template <typename ShapeOf>
Result<LstmSizes> CheckInputs(const ShapeOf& shape_of, const Scalar* sequences, bool cached,
                              StatusCode code) {
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          SizesOf(kName, shape_of(kX), shape_of(kWeights), shape_of(kBias), shape_of(kOut0),
                                  shape_of(kC0), code));
  const auto product = [](int64_t a, int64_t b) {
    return a == kUnknown || b == kUnknown ? kUnknown : SaturatingProduct(a, b);
  };
  const int64_t state = product(sizes.n, sizes.m);
  const auto check = [&](int i, Shape expected) -> Status {
    return CheckShape(kName, kNames[i], shape_of(i), expected, code);
  };
  for (const int i : {kOut0, kC0, kOfCells}) HEDDLE_RETURN_IF_ERROR(check(i, {sizes.n, sizes.m}));
  if (sequences != nullptr)
    HEDDLE_RETURN_IF_ERROR(
        check(kGradient, {sizes.n, sequences->AsBoolean() ? product(sizes.steps, sizes.m) : sizes.m}));
  if (!cached) return sizes;
  HEDDLE_RETURN_IF_ERROR(check(kCacheOut, {sizes.steps, state}));
  HEDDLE_RETURN_IF_ERROR(check(kCacheC, {sizes.steps, state}));
  HEDDLE_RETURN_IF_ERROR(check(kCacheIfog, {sizes.steps, product(4, state)}));
  return sizes;
}

Result<std::vector<ValueInfo>> InferBackward(const InferContext& context) {
  const bool cached = HasCaches([&](int i) { return IsGiven(context.node, i); });
  for (int i = kX; i <= (cached ? kCacheIfog : kOfCells); ++i)
    if (i != kSequences) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, i, kNames[i]));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kSequences, "given_sequences"));
  const auto shape = [&](int i) { return context.inputs[static_cast<size_t>(i)].shape; };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes, CheckInputs(shape, KnownScalar(context, kSequences), cached,
                                                             StatusCode::kInvalidArgument));
  const Shape state{sizes.n, sizes.m};
  return std::vector<ValueInfo>{ValueInfo::OfMatrix(shape(kX)), ValueInfo::OfMatrix(shape(kWeights)),
                                ValueInfo::OfMatrix({1, shape(kWeights).columns}), ValueInfo::OfMatrix(state),
                                ValueInfo::OfMatrix(state)};
}

Result<Matrix> Transposed(const Matrix& x) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix result, Matrix::Dense(x.columns(), x.rows()));
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j)
      result.mutable_data()[j * x.rows() + i] = x.data()[i * x.columns() + j];
  return result;
}

// What goes from one step to the one before it, and what adds up over the steps.
struct Gradients {
  Matrix of_x, of_weights, of_bias;
  Matrix of_output, of_cell;  // n x m: what the step after this one sends back.
};

// One step for some rows: the gradient of the four gates before their functions, and of the state before.
void StepOfGates(const LstmSizes& sizes, const double* gate, const double* cell, const double* cell_before,
                 const double* of_output, double* of_cell, double* of_gate, double* work) {
  const int64_t m = sizes.m;
  SelectedElementwiseKernels().Of(UnaryCode::kHyperbolicTangent)(cell, work, m, false);
  for (int64_t j = 0; j < m; ++j) {
    const double i = gate[j], f = gate[m + j], o = gate[2 * m + j], g = gate[3 * m + j], tanh = work[j];
    const double d = of_cell[j] + o * ((1 - tanh * tanh) * of_output[j]);
    of_gate[j] = i * (1 - i) * (g * d);
    of_gate[m + j] = f * (1 - f) * (cell_before[j] * d);
    of_gate[2 * m + j] = o * (1 - o) * (tanh * of_output[j]);
    of_gate[3 * m + j] = (1 - g * g) * (i * d);
    of_cell[j] = f * d;
  }
}

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  const auto matrix = [&](int i) -> const Matrix& { return call.inputs[static_cast<size_t>(i)]->matrix(); };
  const bool cached = HasCaches([&](int i) {
    return static_cast<size_t>(i) < call.inputs.size() && call.inputs[static_cast<size_t>(i)] != nullptr;
  });
  const auto shape = [&](int i) { return matrix(i).shape(); };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes, CheckInputs(shape, GivenScalar(call, kSequences), cached,
                                                             StatusCode::kFailedPrecondition));
  const Matrix& x = matrix(kX);
  LstmStates states;
  if (cached) {
    states = {matrix(kCacheOut), matrix(kCacheC), matrix(kCacheIfog)};
  } else {
    HEDDLE_ASSIGN_OR_RETURN(
        states, RunSteps(call, sizes, x, matrix(kWeights), matrix(kBias), matrix(kOut0), matrix(kC0)));
  }
  const int64_t n = sizes.n, m = sizes.m, d = sizes.d, depth = sizes.depth();
  const bool sequences = BooleanOr(call, kSequences, false);
  const Matrix& gradient = matrix(kGradient);
  Gradients sums;
  HEDDLE_ASSIGN_OR_RETURN(sums.of_x, Matrix::Dense(n, x.columns()));
  HEDDLE_ASSIGN_OR_RETURN(sums.of_weights, FilledMatrix(depth, 4 * m, 0));
  HEDDLE_ASSIGN_OR_RETURN(sums.of_bias, FilledMatrix(1, 4 * m, 0));
  HEDDLE_ASSIGN_OR_RETURN(sums.of_output, FilledMatrix(n, m, 0));
  HEDDLE_ASSIGN_OR_RETURN(sums.of_cell, Matrix::Dense(n, m));
  std::copy_n(matrix(kOfCells).data(), n * m, sums.of_cell.mutable_data());
  HEDDLE_ASSIGN_OR_RETURN(const Matrix transposed, Transposed(matrix(kWeights)));
  AlignedArray inputs(n * depth + 1), of_gates(n * 4 * m + 1), of_inputs(n * depth + 1),
      of_step(depth * 4 * m);
  for (int64_t t = sizes.steps - 1; t >= 0 && n > 0; --t) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const double* const before = t == 0 ? matrix(kOut0).data() : states.outputs.data() + (t - 1) * n * m;
    const double* const cells_before = t == 0 ? matrix(kC0).data() : states.cells.data() + (t - 1) * n * m;
    ParallelFor(n, kTaskRows, [&](int64_t begin, int64_t end) {
      AlignedArray of_output(m), work(m);
      for (int64_t i = begin; i < end; ++i) {
        // From outside first, then from the step after this one; 0.0 where the call gives none for a step.
        const bool is_given = sequences || t == sizes.steps - 1;
        const double* const given = gradient.data() + i * gradient.columns() + (sequences ? t * m : 0);
        for (int64_t j = 0; j < m; ++j)
          of_output[j] = (is_given ? given[j] : 0.0) + sums.of_output.data()[i * m + j];
        CopyInput(sizes, x.data() + i * x.columns(), t, before + i * m, inputs.data() + i * depth);
        StepOfGates(sizes, states.gates.data() + (t * n + i) * 4 * m, states.cells.data() + (t * n + i) * m,
                    cells_before + i * m, of_output.data(), sums.of_cell.mutable_data() + i * m,
                    of_gates.data() + i * 4 * m, work.data());
      }
    });
    Run(Gemm{.m = depth,
             .n = 4 * m,
             .k = n,
             .a = inputs.data(),
             .a_row = 1,
             .a_column = depth,
             .b = of_gates.data(),
             .b_row = 4 * m,
             .c = of_step.data(),
             .c_row = 4 * m,
             .canonical = true,
             .parallel = true});
    for (int64_t i = 0; i < depth * 4 * m; ++i) sums.of_weights.mutable_data()[i] += of_step[i];
    for (int64_t j = 0; j < 4 * m; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += of_gates[i * 4 * m + j];
      sums.of_bias.mutable_data()[j] += sum;
    }
    Run(Gemm{.m = n,
             .n = depth,
             .k = 4 * m,
             .a = of_gates.data(),
             .a_row = 4 * m,
             .b = transposed.data(),
             .b_row = depth,
             .c = of_inputs.data(),
             .c_row = depth,
             .canonical = true,
             .parallel = true});
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(of_inputs.data() + i * depth, d, sums.of_x.mutable_data() + i * x.columns() + t * d);
      std::copy_n(of_inputs.data() + i * depth + d, m, sums.of_output.mutable_data() + i * m);
    }
  }
  results[kOfX] = Value(std::move(sums.of_x));
  results[kOfWeights] = Value(std::move(sums.of_weights));
  results[kOfBias] = Value(std::move(sums.of_bias));
  results[kOfOut0] = Value(std::move(sums.of_output));
  results[kOfC0] = Value(std::move(sums.of_cell));
  return OkStatus();
}

Cost LstmBackwardCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[kX].shape, &weights = inputs[kWeights].shape;
  if (!x.IsKnown() || !weights.IsKnown()) return {};
  const double d =
      std::max(1.0, static_cast<double>(weights.rows) - static_cast<double>(weights.columns) / 4);
  const double steps = static_cast<double>(x.columns) / d;
  return {.flops = 4 * static_cast<double>(x.rows) * steps * static_cast<double>(weights.Cells()),
          .bytes = 16 * static_cast<double>(x.Cells())};
}

}  // namespace

/// [dX, dW, db, dout0, dc0] = lstm_backward(X, W, b, out0, c0, given_sequences, dout, dc, cache_out, cache_c,
/// cache_ifog): the gradients of lstm. dout is that of all outputs (n x T*m), or of the last (n x m) without
/// given_sequences, dc that of the last state. The caches are the last three results of lstm; left out, they
/// are computed again.
///
/// Shapes:  as of lstm; results have those of what they are gradients of. out0 has just n rows.
/// Errors:  shapes that do not fit.
/// Order:   steps descending. dW and db add a product t(cbind(X_t, out)) %*% d and the column sums of d of
/// each
///          step (chains over the sequences ascending); dX is d %*% t(W) (a chain over the columns of W).
/// Cost:    twice that of lstm.
extern constexpr Operator kLstmBackward = {
    .name = kName,
    .form = CallForm::kPositional,
    .parameters = "X W b out0 c0 given_sequences dout dc cache_out? cache_c? cache_ifog?",
    .min_inputs = 8,
    .max_inputs = 11,
    .results = 5,
    .infer_several = InferBackward,
    .cost = LstmBackwardCost,
    .run_several = RunBackward,
    .may_fail = true,
    .storages = Storages::kDense};

}  // namespace heddle::ops

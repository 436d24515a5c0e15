// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/values/sizes.h"
#include "ops/base/arguments.h"
#include "ops/base/machine_constants.h"
#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/neural/cell_types.h"
#include "ops/neural/check_shape.h"
#include "ops/neural/lstm.h"
#include "ops/product/matmul_gemm.h"
#include "ops/product/matmul_pack.h"
#include "ops/simd/product/gemm.h"
#include "ops/simd/transpose.h"

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

// One step for some rows: the gradient of the four gates before their functions, and of the state before.
template <typename Cell>
void StepOfGates(const LstmSizes& sizes, const Cell* gate, const Cell* cell, const Cell* cell_before,
                 const Cell* of_output, Cell* of_cell, Cell* of_gate, Cell* work) {
  const int64_t m = sizes.m;
  HyperbolicTangents(cell, work, m);
  for (int64_t j = 0; j < m; ++j) {
    const Cell i = gate[j], f = gate[m + j], o = gate[2 * m + j], g = gate[3 * m + j], tanh = work[j];
    const Cell d = of_cell[j] + o * ((1 - tanh * tanh) * of_output[j]);
    of_gate[j] = i * (1 - i) * (g * d);
    of_gate[m + j] = f * (1 - f) * (cell_before[j] * d);
    of_gate[2 * m + j] = o * (1 - o) * (tanh * of_output[j]);
    of_gate[3 * m + j] = (1 - g * g) * (i * d);
    of_cell[j] = f * d;
  }
}

// t(inputs) %*% of_gates, where to is not said.
template <typename Cell>
GemmOf<Cell> ProductOf(const Cell* inputs, int64_t depth, const Cell* of_gates, int64_t gates, int64_t rows) {
  return {.m = depth,
          .n = gates,
          .k = rows,
          .a = inputs,
          .a_row = 1,
          .a_column = depth,
          .b = of_gates,
          .b_row = gates,
          .c_row = gates,
          .parallel = true};
}

// The gradient of W, which is t(inputs) %*% (gradients of gates) of all steps, and those of one step: n rows
// of `depth` and of `gates` cells. Of doubles each step adds its product.
template <typename Cell>
class WeightGradient {
 public:
  WeightGradient(int64_t n, int64_t depth, int64_t gates)
      : n_(n),
        depth_(depth),
        gates_(gates),
        inputs_(n * depth + 1),
        of_gates_(n * gates + 1),
        product_(depth * gates) {}
  Cell* inputs() { return inputs_.data(); }
  Cell* of_gates() { return of_gates_.data(); }
  // Both are complete for this step.
  void AddStep(double* sums) {
    GemmOf<Cell> product = ProductOf(inputs_.data(), depth_, of_gates_.data(), gates_, n_);
    WriteCells(product_.data(), &product);
    Run(product);
    for (int64_t i = 0; i < depth_ * gates_; ++i) sums[i] += product_.data()[i];
  }
  void End(double*) {}

 private:
  int64_t n_, depth_, gates_;
  PackedCells<Cell> inputs_, of_gates_, product_;
};

// Of floats the rows of all steps are those of one product, whose blocks of chains end where they may: rows
// wait until they are as many as a product takes at once.
template <>
class WeightGradient<float> {
 public:
  WeightGradient(int64_t n, int64_t depth, int64_t gates)
      : n_(n),
        depth_(depth),
        gates_(gates),
        inputs_((kSingleDepth + n) * depth),
        of_gates_((kSingleDepth + n) * gates) {}
  float* inputs() { return inputs_.data() + rows_ * depth_; }
  float* of_gates() { return of_gates_.data() + rows_ * gates_; }
  void AddStep(double* sums) {
    rows_ += n_;
    if (rows_ < kSingleDepth) return;
    const int64_t whole = rows_ / kSingleBlock * kSingleBlock;
    AddRows(whole, sums);
    rows_ -= whole;
    std::copy_n(inputs_.data() + whole * depth_, rows_ * depth_, inputs_.data());
    std::copy_n(of_gates_.data() + whole * gates_, rows_ * gates_, of_gates_.data());
  }
  void End(double* sums) {
    if (rows_ > 0) AddRows(rows_, sums);
  }

 private:
  void AddRows(int64_t rows, double* sums) const {
    SingleGemm product = ProductOf(inputs_.data(), depth_, of_gates_.data(), gates_, rows);
    product.c = sums;
    product.accumulate = true;
    Run(product);
  }

  int64_t n_, depth_, gates_;
  int64_t rows_ = 0;  // That wait.
  PackedCells<float> inputs_, of_gates_;
};

Result<Matrix> Rounded(Matrix sums, ElementType type) {
  return type == ElementType::kFloat32 ? Narrow(sums) : std::move(sums);
}

template <typename Cell>
Status Descend(const KernelCall& call, const LstmSizes& sizes, const LstmStates& states,
               std::span<Value> results) {
  const int64_t n = sizes.n, m = sizes.m, d = sizes.d, depth = sizes.depth(), columns = sizes.steps * d;
  const bool sequences = BooleanOr(call, kSequences, false);
  const Cell *const x = CellsOf<Cell>(call, kX), *const weights = CellsOf<Cell>(call, kWeights),
                    *const gradient = CellsOf<Cell>(call, kGradient);
  constexpr ElementType kType = kElementTypeOf<Cell>;
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_x, Matrix::Dense(n, columns, kType));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_weights, FilledMatrix(depth, 4 * m, 0));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_bias, FilledMatrix(1, 4 * m, 0));
  // n x m: what the step after this one sends back.
  HEDDLE_ASSIGN_OR_RETURN(Matrix output_sent, Matrix::Dense(n, m, kType));
  HEDDLE_ASSIGN_OR_RETURN(Matrix cell_sent, Matrix::Dense(n, m, kType));
  Cell *const of_outputs = output_sent.mutable_data<Cell>(), *const of_cells = cell_sent.mutable_data<Cell>();
  std::fill_n(of_outputs, n * m, Cell{0});
  std::copy_n(CellsOf<Cell>(call, kOfCells), n * m, of_cells);
  PackedCells<Cell> transposed(4 * m * depth), of_inputs(n * depth + 1);
  WeightGradient<Cell> rows(n, depth, 4 * m);
  simd::Transpose(weights, 4 * m, depth, 4 * m, transposed.data(), depth);
  for (int64_t t = sizes.steps - 1; t >= 0 && n > 0; --t) {
    if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
    const Cell* const before =
        t == 0 ? CellsOf<Cell>(call, kOut0) : states.outputs.data<Cell>() + (t - 1) * n * m;
    const Cell* const cells_before =
        t == 0 ? CellsOf<Cell>(call, kC0) : states.cells.data<Cell>() + (t - 1) * n * m;
    Cell *const inputs = rows.inputs(), *const of_gates = rows.of_gates();
    ParallelFor(n, kTaskRows, [&](int64_t begin, int64_t end) {
      std::vector<Cell> of_output(static_cast<size_t>(m)), work(static_cast<size_t>(m));
      for (int64_t i = begin; i < end; ++i) {
        // From outside first, then from the step after this one; 0.0 where the call gives none for a step.
        const bool is_given = sequences || t == sizes.steps - 1;
        const Cell* const given = gradient + (sequences ? i * sizes.steps * m + t * m : i * m);
        for (int64_t j = 0; j < m; ++j)
          of_output[static_cast<size_t>(j)] = (is_given ? given[j] : Cell{0}) + of_outputs[i * m + j];
        CopyInput(sizes, x + i * columns, t, before + i * m, inputs + i * depth);
        StepOfGates(sizes, states.gates.data<Cell>() + (t * n + i) * 4 * m,
                    states.cells.data<Cell>() + (t * n + i) * m, cells_before + i * m, of_output.data(),
                    of_cells + i * m, of_gates + i * 4 * m, work.data());
      }
    });
    for (int64_t j = 0; j < 4 * m; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(of_gates[i * 4 * m + j]);
      of_bias.mutable_data()[j] += sum;
    }
    GemmOf<Cell> back{.m = n,
                      .n = depth,
                      .k = 4 * m,
                      .a = of_gates,
                      .a_row = 4 * m,
                      .b = transposed.data(),
                      .b_row = depth,
                      .c_row = depth,
                      .parallel = true};
    WriteCells(of_inputs.data(), &back);
    Run(back);
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(of_inputs.data() + i * depth, d, of_x.mutable_data<Cell>() + i * columns + t * d);
      std::copy_n(of_inputs.data() + i * depth + d, m, of_outputs + i * m);
    }
    rows.AddStep(of_weights.mutable_data());
  }
  rows.End(of_weights.mutable_data());
  HEDDLE_ASSIGN_OR_RETURN(of_weights, Rounded(std::move(of_weights), kType));
  HEDDLE_ASSIGN_OR_RETURN(of_bias, Rounded(std::move(of_bias), kType));
  results[kOfX] = Value(std::move(of_x));
  results[kOfWeights] = Value(std::move(of_weights));
  results[kOfBias] = Value(std::move(of_bias));
  results[kOfOut0] = Value(std::move(output_sent));
  results[kOfC0] = Value(std::move(cell_sent));
  return OkStatus();
}

bool HasCaches(const KernelCall& call) {
  return HasCaches([&](int i) {
    return static_cast<size_t>(i) < call.inputs.size() && call.inputs[static_cast<size_t>(i)] != nullptr;
  });
}

bool TakesSingles(const KernelCall& call) {
  return HoldSingles(call, {kX, kWeights, kBias, kOut0, kC0, kGradient, kOfCells}) &&
         (!HasCaches(call) || HoldSingles(call, {kCacheOut, kCacheC, kCacheIfog}));
}

template <typename Cell>
Status RunCells(const KernelCall& call, const LstmSizes& sizes, std::span<Value> results) {
  if (!HasCaches(call)) {
    HEDDLE_ASSIGN_OR_RETURN(const LstmStates states, RunSteps<Cell>(call, sizes));
    return Descend<Cell>(call, sizes, states, results);
  }
  const auto matrix = [&](int i) { return call.inputs[static_cast<size_t>(i)]->matrix(); };
  return Descend<Cell>(call, sizes, {matrix(kCacheOut), matrix(kCacheC), matrix(kCacheIfog)}, results);
}

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  const auto shape = [&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); };
  HEDDLE_ASSIGN_OR_RETURN(
      const LstmSizes sizes,
      CheckInputs(shape, GivenScalar(call, kSequences), HasCaches(call), StatusCode::kFailedPrecondition));
  return TakesSingles(call) ? RunCells<float>(call, sizes, results) : RunCells<double>(call, sizes, results);
}

Cost LstmBackwardCost(const Node&, std::span<const ValueInfo> inputs) {
  const Shape &x = inputs[kX].shape, &weights = inputs[kWeights].shape;
  if (!x.IsKnown() || !weights.IsKnown()) return {};
  const double d =
      std::max(1.0, static_cast<double>(weights.rows) - static_cast<double>(weights.columns) / 4);
  const double steps = static_cast<double>(x.columns) / d;
  return {.work = 2 * kWorkOfMultiplyAdd * static_cast<double>(x.rows) * steps *
                  static_cast<double>(weights.Cells()),
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
///          step (chains over the sequences ascending); dX is d %*% t(W) (a chain over the columns of W). Of
///          floats the rows of all steps, the last step first, are one product for dW; db adds up in doubles.
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
    .takes_singles = TakesSingles,
    .storages = Storages::kDense};

}  // namespace heddle::ops

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "core/values/panels.h"
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
#include "ops/reduction/reduction_tree.h"
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

bool IsByRows(const Node& node) { return node.op.ends_with("_by_rows"); }

// One of them is enough: then inference asks for all.
template <typename IsThere>
bool HasCaches(const IsThere& is_there) {
  return is_there(kCacheOut) || is_there(kCacheC) || is_there(kCacheIfog);
}

template <typename ShapeOf>
Result<LstmSizes> CheckInputs(const Node& node, const ShapeOf& shape_of, const Scalar* sequences, bool cached,
                              StatusCode code) {
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          SizesOf(kName, shape_of(kX), shape_of(kWeights), shape_of(kBias), shape_of(kOut0),
                                  shape_of(kC0), code));
  const auto product = [](int64_t a, int64_t b) {
    return a == kUnknown || b == kUnknown ? kUnknown : SaturatingProduct(a, b);
  };
  const auto check = [&](int i, Shape expected) -> Status {
    return CheckShape(kName, kNames[i], shape_of(i), expected, code);
  };
  for (const int i : {kOut0, kC0, kOfCells}) HEDDLE_RETURN_IF_ERROR(check(i, {sizes.n, sizes.m}));
  if (sequences != nullptr)
    HEDDLE_RETURN_IF_ERROR(
        check(kGradient, {sizes.n, sequences->AsBoolean() ? product(sizes.steps, sizes.m) : sizes.m}));
  if (!cached) return sizes;
  const LstmPlaces places(sizes, IsByRows(node));
  HEDDLE_RETURN_IF_ERROR(check(kCacheOut, places.ShapeOf(sizes.m)));
  HEDDLE_RETURN_IF_ERROR(check(kCacheC, places.ShapeOf(sizes.m)));
  HEDDLE_RETURN_IF_ERROR(check(kCacheIfog, places.ShapeOf(product(4, sizes.m))));
  return sizes;
}

Result<std::vector<ValueInfo>> InferBackward(const InferContext& context) {
  const bool cached = HasCaches([&](int i) { return IsGiven(context.node, i); });
  for (int i = kX; i <= (cached ? kCacheIfog : kOfCells); ++i)
    if (i != kSequences) HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, i, kNames[i]));
  HEDDLE_RETURN_IF_ERROR(RequireScalar(context, kSequences, "given_sequences"));
  const auto shape = [&](int i) { return context.inputs[static_cast<size_t>(i)].shape; };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          CheckInputs(context.node, shape, KnownScalar(context, kSequences), cached,
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

// The gradients, from what the steps have left. Those of W and b are sums over sequences: a leaf of the tree
// is a granule of sequences, which goes down all steps on its own.
template <typename Cell>
class Descent {
 public:
  Descent(const KernelCall& call, const LstmSizes& sizes, const LstmStates& states)
      : call_(call),
        sizes_(sizes),
        states_(states),
        places_(sizes, IsByRows(call.node)),
        sequences_(BooleanOr(call, kSequences, false)),
        x_(CellsOf<Cell>(call, kX)),
        gradient_(CellsOf<Cell>(call, kGradient)),
        out0_(RowsOfSequences<Cell>(call, kOut0, sizes)),
        c0_(RowsOfSequences<Cell>(call, kC0, sizes)),
        transposed_(4 * sizes.m * sizes.depth()) {
    simd::Transpose(CellsOf<Cell>(call, kWeights), 4 * sizes.m, sizes.depth(), 4 * sizes.m,
                    transposed_.data(), sizes.depth());
  }

  // Gives the gradients of X, out0 and c0, and returns the nodes of those of W, row by row, with b behind
  // them.
  Result<Matrix> Run(std::span<Value> results) {
    constexpr ElementType kType = kElementTypeOf<Cell>;
    const int64_t n = sizes_.n, m = sizes_.m;
    HEDDLE_ASSIGN_OR_RETURN(of_x_, Matrix::Dense(n, sizes_.steps * sizes_.d, kType));
    HEDDLE_ASSIGN_OR_RETURN(output_sent_, Matrix::Dense(n, m, kType));
    HEDDLE_ASSIGN_OR_RETURN(cell_sent_, Matrix::Dense(n, m, kType));
    std::fill_n(output_sent_.mutable_data<Cell>(), n * m, Cell{0});
    std::copy_n(CellsOf<Cell>(call_, kOfCells), n * m, cell_sent_.mutable_data<Cell>());
    const bool is_part = call_.phase == Phase::kPartial;
    const int64_t total = is_part ? call_.total_rows : n, first = is_part ? call_.row_begin : 0;
    const int64_t granule = Granule(total);
    Reduction reduction = OfWeights(sizes_);
    reduction.leaf_cells = granule * sizes_.steps * sizes_.depth() * 4 * m;
    reduction.cancelled = call_.context.cancelled;
    HEDDLE_ASSIGN_OR_RETURN(
        Matrix nodes, ReduceLeaves(reduction, CeilDivide(first, granule), CeilDivide(first + n, granule),
                                   [&](int64_t leaf, double* payload) {
                                     const int64_t begin = leaf * granule - first;
                                     return Descend(begin, std::min(n, begin + granule), payload);
                                   }));
    results[kOfX] = Value(std::move(of_x_));
    results[kOfOut0] = Value(std::move(output_sent_));
    results[kOfC0] = Value(std::move(cell_sent_));
    return nodes;
  }

  static Reduction OfWeights(const LstmSizes& sizes) { return {.width = (sizes.depth() + 1) * 4 * sizes.m}; }

 private:
  // Sequences [begin, end) from the last step to the first.
  bool Descend(int64_t begin, int64_t end, double* payload) {
    const int64_t n = end - begin, m = sizes_.m, d = sizes_.d, depth = sizes_.depth();
    double *const of_weights = payload, *const of_bias = payload + depth * 4 * m;
    std::fill_n(payload, (depth + 1) * 4 * m, 0.0);
    Cell* const of_x = of_x_.mutable_data<Cell>() + begin * sizes_.steps * d;
    // What the step after this one sends back.
    Cell* const of_outputs = output_sent_.mutable_data<Cell>() + begin * m;
    PackedCells<Cell> of_inputs(n * depth + 1);
    WeightGradient<Cell> rows(n, depth, 4 * m);
    for (int64_t t = sizes_.steps - 1; t >= 0; --t) {
      if (IsCancelled(call_.context.cancelled)) return false;
      Cell* const of_gates = rows.of_gates();
      StepBack(t, begin, end, rows.inputs(), of_gates);
      for (int64_t j = 0; j < 4 * m; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(of_gates[i * 4 * m + j]);
        of_bias[j] += sum;
      }
      GemmOf<Cell> back{.m = n,
                        .n = depth,
                        .k = 4 * m,
                        .a = of_gates,
                        .a_row = 4 * m,
                        .b = transposed_.data(),
                        .b_row = depth,
                        .c_row = depth,
                        .parallel = true};
      WriteCells(of_inputs.data(), &back);
      heddle::ops::Run(back);
      for (int64_t i = 0; i < n; ++i) {
        std::copy_n(of_inputs.data() + i * depth, d, of_x + (i * sizes_.steps + t) * d);
        std::copy_n(of_inputs.data() + i * depth + d, m, of_outputs + i * m);
      }
      rows.AddStep(of_weights);
    }
    rows.End(of_weights);
    return true;
  }

  // The inputs of the step, and the gradients of its gates; what it sends back to the states before it.
  void StepBack(int64_t t, int64_t first, int64_t last, Cell* inputs, Cell* of_gates) {
    const int64_t m = sizes_.m, depth = sizes_.depth();
    Cell *const of_outputs = output_sent_.mutable_data<Cell>(), *const of_cells =
                                                                    cell_sent_.mutable_data<Cell>();
    const auto before = [&](const Cell* at_start, const Matrix& of_steps, int64_t i) {
      return t == 0 ? at_start + i * m : of_steps.data<Cell>() + places_.At(t - 1, i) * m;
    };
    ParallelFor(last - first, kTaskRows, [&](int64_t begin, int64_t end) {
      std::vector<Cell> of_output(static_cast<size_t>(m)), work(static_cast<size_t>(m));
      for (int64_t k = begin; k < end; ++k) {
        const int64_t i = first + k;
        // From outside first, then from the step after this one; 0.0 where the call gives none for a step.
        const bool is_given = sequences_ || t == sizes_.steps - 1;
        const Cell* const given = gradient_ + (sequences_ ? (i * sizes_.steps + t) * m : i * m);
        for (int64_t j = 0; j < m; ++j)
          of_output[static_cast<size_t>(j)] = (is_given ? given[j] : Cell{0}) + of_outputs[i * m + j];
        CopyInput(sizes_, x_ + i * sizes_.steps * sizes_.d, t, before(out0_, states_.outputs, i),
                  inputs + k * depth);
        StepOfGates(sizes_, states_.gates.data<Cell>() + places_.At(t, i) * 4 * m,
                    states_.cells.data<Cell>() + places_.At(t, i) * m, before(c0_, states_.cells, i),
                    of_output.data(), of_cells + i * m, of_gates + k * 4 * m, work.data());
      }
    });
  }

  const KernelCall& call_;
  const LstmSizes& sizes_;
  const LstmStates& states_;
  const LstmPlaces places_;
  const bool sequences_;
  const Cell *const x_, *const gradient_, *const out0_, *const c0_;
  PackedCells<Cell> transposed_;
  Matrix of_x_, output_sent_, cell_sent_;
};

// Columns [begin, end) of the payloads, as a partial value of its own.
Result<Matrix> PartOfNodes(const Matrix& nodes, int64_t begin, int64_t end) {
  HEDDLE_ASSIGN_OR_RETURN(Matrix part, Matrix::Dense(nodes.rows(), 2 + end - begin));
  double* out = part.mutable_data();
  for (int64_t i = 0; i < nodes.rows(); ++i) {
    const double* const row = nodes.data() + i * nodes.columns();
    out = std::copy_n(row, 2, out);
    out = std::copy_n(row + 2 + begin, end - begin, out);
  }
  return part;
}

Result<Value> SumOfNodes(const KernelContext& context, const Matrix& nodes, Shape shape) {
  HEDDLE_ASSIGN_OR_RETURN(const RootPayload root,
                          JoinNodes({.width = shape.Cells(), .cancelled = context.cancelled}, nodes));
  HEDDLE_ASSIGN_OR_RETURN(Matrix sum, Matrix::Dense(shape.rows, shape.columns));
  std::copy_n(root.data(), sum.cells(), sum.mutable_data());
  return Value(std::move(sum));
}

// Of both sums, from all nodes of each.
Status Finish(const KernelContext& context, const Matrix& of_weights, const Matrix& of_bias,
              std::span<const ValueInfo> infos, Value* weights, Value* bias) {
  HEDDLE_ASSIGN_OR_RETURN(*weights, SumOfNodes(context, of_weights, infos[kOfWeights].shape));
  HEDDLE_ASSIGN_OR_RETURN(*bias, SumOfNodes(context, of_bias, infos[kOfBias].shape));
  return OkStatus();
}

template <typename Cell>
Status GiveGradients(const KernelCall& call, const LstmSizes& sizes, const LstmStates& states,
                     std::span<Value> results) {
  HEDDLE_ASSIGN_OR_RETURN(const Matrix nodes, Descent<Cell>(call, sizes, states).Run(results));
  const int64_t weights = sizes.depth() * 4 * sizes.m;
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_weights, PartOfNodes(nodes, 0, weights));
  HEDDLE_ASSIGN_OR_RETURN(Matrix of_bias, PartOfNodes(nodes, weights, weights + 4 * sizes.m));
  if (call.phase == Phase::kPartial) {
    results[kOfWeights] = Value(std::move(of_weights));
    results[kOfBias] = Value(std::move(of_bias));
    return OkStatus();
  }
  HEDDLE_RETURN_IF_ERROR(Finish(call.context, of_weights, of_bias, ResultsOf(call.node), &results[kOfWeights],
                                &results[kOfBias]));
  for (const Output i : {kOfWeights, kOfBias}) {
    HEDDLE_ASSIGN_OR_RETURN(Matrix rounded, Rounded(results[i].matrix(), kElementTypeOf<Cell>));
    results[i] = Value(std::move(rounded));
  }
  return OkStatus();
}

bool HasCaches(const KernelCall& call) {
  return HasCaches([&](int i) {
    return static_cast<size_t>(i) < call.inputs.size() && call.inputs[static_cast<size_t>(i)] != nullptr;
  });
}

// Sums of floats are doubles until they are finished.
bool TakesSingles(const KernelCall& call) {
  if (call.phase == Phase::kFinish) return false;
  return HoldSingles(call, {kX, kWeights, kBias, kOut0, kC0, kGradient, kOfCells}) &&
         (!HasCaches(call) || HoldSingles(call, {kCacheOut, kCacheC, kCacheIfog}));
}

template <typename Cell>
Status RunCells(const KernelCall& call, const LstmSizes& sizes, std::span<Value> results) {
  if (!HasCaches(call)) {
    HEDDLE_ASSIGN_OR_RETURN(const LstmStates states,
                            RunSteps<Cell>(call, sizes, LstmPlaces(sizes, IsByRows(call.node))));
    return GiveGradients<Cell>(call, sizes, states, results);
  }
  const auto matrix = [&](int i) { return call.inputs[static_cast<size_t>(i)]->matrix(); };
  const LstmStates states{matrix(kCacheOut), matrix(kCacheC), matrix(kCacheIfog)};
  return GiveGradients<Cell>(call, sizes, states, results);
}

Status RunBackward(const KernelCall& call, std::span<Value> results) {
  if (call.phase == Phase::kFinish)
    return Finish(call.context, call.inputs[0]->matrix(), call.inputs[1]->matrix(), ResultsOf(call.node),
                  &results[0], &results[1]);
  const auto shape = [&](int i) { return call.inputs[static_cast<size_t>(i)]->shape(); };
  HEDDLE_ASSIGN_OR_RETURN(const LstmSizes sizes,
                          CheckInputs(call.node, shape, GivenScalar(call, kSequences), HasCaches(call),
                                      StatusCode::kFailedPrecondition));
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

// Caches of scripts have a row for each step.
RowRule BackwardRowRule(const Node& node, std::span<const ValueInfo>) {
  const bool cached = HasCaches([&](int i) { return IsGiven(node, i); });
  return cached && !IsByRows(node) ? RowRule::kWhole : RowRule::kMixed;
}
bool IsSum(const Node&, size_t i) { return i == kOfWeights || i == kOfBias; }
InputUse UseOfInput(const Node&, std::span<const ValueInfo> inputs, int i) {
  return i != kWeights && i != kBias && HasRowsOfFirst(inputs, i) ? InputUse::kRows : InputUse::kWhole;
}

constexpr Operator Backward(std::string_view name, CallForm form) {
  return {.name = name,
          .form = form,
          .parameters = "X W b out0 c0 given_sequences dout dc cache_out? cache_c? cache_ifog?",
          .min_inputs = 8,
          .max_inputs = 11,
          .results = 5,
          .infer_several = InferBackward,
          .row_rule = BackwardRowRule,
          .reduces = IsSum,
          .input_use = UseOfInput,
          .cost = LstmBackwardCost,
          .run_several = RunBackward,
          .may_fail = true,
          .takes_singles = TakesSingles,
          .storages = Storages::kDense};
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
///          step (chains over the sequences of a granule ascending), then add up along the tree of granules;
///          dX is d %*% t(W) (a chain over the columns of W). Of floats the rows of all steps, the last step
///          first, are one product for dW of a granule; sums of granules add up in doubles.
/// Cost:    twice that of lstm.
/// Rows:    each rank its sequences, a partial value for dW and db; whole with caches, for which
///          lstm_backward_by_rows takes its place (compiler/optimize, "sequences").
extern constexpr Operator kLstmBackward = Backward(kName, CallForm::kPositional);

/// lstm_backward with a row for each sequence in the caches, as lstm_by_rows leaves them.
extern constexpr Operator kLstmBackwardByRows = Backward("lstm_backward_by_rows", CallForm::kNone);

}  // namespace heddle::ops

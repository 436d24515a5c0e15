// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/programs/fused_operator.h"
#include "core/programs/phased_operator.h"
#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "ops/elementwise/single_precision.h"
#include "ops/fused/fused.h"

// Builds the body of a fused operator together with the values of its inputs, and runs it both ways: by
// tiles, and one operator after the other by the kernels of the catalog.
namespace heddle::ops::testing {

/// Cells of several magnitudes, some zeros of both signs; with `special`, a few NaN and infinities.
inline Matrix Cells(int64_t rows, int64_t columns, uint32_t seed, bool special = false, double density = 1) {
  std::mt19937_64 random(seed);
  Result<Matrix> result = Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    double cell = (unit - 0.4) * std::ldexp(1.0, static_cast<int>(random() % 9) - 4);
    if (random() % 17 == 0) cell = random() % 2 == 0 ? 0.0 : -0.0;
    if (special && random() % 97 == 0)
      cell = random() % 3 == 0 ? std::nan("")
                               : (random() % 2 == 0 ? 1 : -1) * std::numeric_limits<double>::infinity();
    if (density < 1 && static_cast<double>(random() >> 11) * 0x1p-53 >= density) cell = 0.0;
    result->mutable_data()[i] = cell;
  }
  return *std::move(result);
}

/// The same cells so large that their sums leave the range of doubles.
inline Matrix Enlarged(const Matrix& x) {
  Matrix large = *FilledMatrix(x.rows(), x.columns(), 0.0);
  for (int64_t i = 0; i < x.cells(); ++i) large.mutable_data()[i] = std::ldexp(x.data()[i], 1020);
  return large;
}

/// Around the cuts of tiles, panels and registers.
inline const std::vector<Shape> kShapes = {{2, 1},     {65, 1},    {4099, 1},   {3, 2},     {130, 3},
                                           {1000, 7},  {999, 8},   {1025, 9},   {777, 10},  {333, 31},
                                           {200, 32},  {129, 100}, {70, 1000},  {9, 20000}, {4200, 13},
                                           {20011, 4}, {515, 16},  {20011, 12}, {9, 7},     {1000, 5}};

class BodyBuilder {
 public:
  NodeId Input(Value value) {
    Node node{.op = "variable"};
    node.SetAttribute("name", Scalar(std::to_string(inputs_.size())));
    node.info = value.IsScalar()
                    ? ValueInfo::OfScalar(value.scalar().type())
                    : ValueInfo::OfMatrix(value.matrix().shape(), FormatOf(value.matrix().storage()));
    infos_.push_back(node.info);
    inputs_.push_back(std::move(value));
    return fused_.body.Add(std::move(node));
  }
  NodeId Literal(Scalar value) {
    Node node{.op = "literal", .info = ValueInfo::OfScalar(value.type())};
    node.SetAttribute("value", std::move(value));
    return fused_.body.Add(std::move(node));
  }
  NodeId Op(std::string op, std::vector<NodeId> inputs) {
    Node node{.op = std::move(op), .inputs = std::move(inputs)};
    std::vector<ValueInfo> infos;
    std::vector<const Scalar*> scalars;
    for (NodeId input : node.inputs) {
      infos.push_back(input == kNoNode ? ValueInfo() : fused_.body[input].info);
      scalars.push_back(input == kNoNode ? nullptr : fused_.body[input].FindAttribute("value"));
    }
    const Result<ValueInfo> info = Infer({.node = node, .inputs = infos, .scalars = scalars});
    EXPECT_TRUE(info.ok()) << node.op << ": " << info.status().ToString();
    if (info.ok()) node.info = *info;
    return fused_.body.Add(std::move(node));
  }
  /// X[, first:last]
  NodeId Columns(NodeId x, int64_t first, int64_t last) {
    return Op("index", {x, kNoNode, kNoNode, Literal(Scalar(first)), Literal(Scalar(last))});
  }
  void Finish(std::vector<NodeId> roots, int driver = 0) {
    fused_.roots = std::move(roots);
    fused_.driver = driver;
  }
  FusedOperator& fused() { return fused_; }
  KernelContext& context() { return context_; }
  const ValueInfo& info(NodeId id) const { return fused_.body[id].info; }

  /// Node by node, each operator's own kernel: what the roots are.
  std::vector<Value> RootsOneByOne() {
    std::vector<Value> values(fused_.body.nodes.size());
    for (NodeId id = 0; id < fused_.body.size(); ++id) {
      const Node& node = fused_.body[id];
      const auto i = static_cast<size_t>(id);
      if (node.Is("variable")) {
        values[i] = inputs_[static_cast<size_t>(std::stoi(node.Text("name")))];
      } else if (node.Is("literal")) {
        values[i] = Value(*node.FindAttribute("value"));
      } else {
        std::vector<const Value*> operands;
        std::vector<ValueInfo> infos;
        for (NodeId input : node.inputs) {
          operands.push_back(input == kNoNode ? nullptr : &values[static_cast<size_t>(input)]);
          infos.push_back(input == kNoNode ? ValueInfo() : fused_.body[input].info);
        }
        Result<Value> result = CatalogKernels().Run({.node = node,
                                                     .phase = Phase::kWhole,
                                                     .inputs = operands,
                                                     .input_infos = infos,
                                                     .context = context_});
        EXPECT_TRUE(result.ok()) << node.op << ": " << result.status().ToString();
        if (result.ok()) values[i] = *std::move(result);
      }
    }
    std::vector<Value> roots;
    for (const NodeId root : fused_.roots) roots.push_back(values[static_cast<size_t>(root)]);
    return roots;
  }
  /// The first of them.
  Value RunOneByOne() { return RootsOneByOne()[0]; }

  /// By tiles, on `workers` workers whose pieces are put together: the roots.
  Result<std::vector<Value>> RootsFused(int workers, int threads, FusedRuntime* runtime = nullptr) {
    Node node{.op = fused_.roots.size() == 1 ? "fused" : "fusedSeveral"};
    for (size_t i = 0; i < inputs_.size(); ++i) node.inputs.push_back(static_cast<NodeId>(i));
    node.fused = std::make_shared<const FusedOperator>(fused_);
    HEDDLE_ASSIGN_OR_RETURN(node.info, Infer({.node = node, .inputs = infos_, .scalars = {}}, &node.results));
    context_.fused = runtime;
    Result<std::vector<Value>> results = Status();
    Arena(threads).Execute([&] { results = RunOn(*FindOperator(node.op), node, workers); });
    return results;
  }
  /// The body as an operator of phases.
  Result<std::vector<Value>> RootsPhased(int threads) {
    Node node{.op = "phased"};
    for (size_t i = 0; i < inputs_.size(); ++i) node.inputs.push_back(static_cast<NodeId>(i));
    node.phased = std::make_shared<const PhasedOperator>(fused_.body, fused_.roots);
    HEDDLE_RETURN_IF_ERROR(Verify(*node.phased));
    HEDDLE_ASSIGN_OR_RETURN(node.info, Infer({.node = node, .inputs = infos_, .scalars = {}}, &node.results));
    std::vector<const Value*> inputs;
    for (const Value& input : inputs_) inputs.push_back(&input);
    std::vector<Value> results(fused_.roots.size());
    Status status;
    Arena(threads).Execute([&] {
      status = CatalogKernels().Run({.node = node,
                                     .phase = Phase::kWhole,
                                     .inputs = inputs,
                                     .input_infos = infos_,
                                     .context = context_},
                                    results);
    });
    HEDDLE_RETURN_IF_ERROR(status);
    if (also_run)
      also_run({.node = node,
                .phase = Phase::kWhole,
                .inputs = inputs,
                .input_infos = infos_,
                .context = context_},
               results);
    return results;
  }
  /// Every root has the bytes that the operators give one by one.
  void ExpectSamePhased(const std::string& what) {
    SCOPED_TRACE(what);
    const std::vector<Value> expected = RootsOneByOne();
    for (const int threads : {1, 2, 7}) {
      const Result<std::vector<Value>> actual = RootsPhased(threads);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      for (size_t i = 0; i < expected.size(); ++i) ExpectEqual(expected[i], (*actual)[i]);
    }
  }
  Result<Value> RunFused(int workers, int threads, FusedRuntime* runtime = nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> roots, RootsFused(workers, threads, runtime));
    return roots[0];
  }

  /// Both ways, several workers and thread counts; the same bytes. Then the same on floats.
  void ExpectSame(const std::string& what, FusedRuntime* runtime = nullptr) {
    SCOPED_TRACE(what);
    ExpectSameDoubles(runtime);
    if (::testing::Test::HasFailure()) return;
    const BodyBuilder doubles = *this;
    BecomeSingle();
    SCOPED_TRACE("single precision");
    const Status can_run_single = CanRunFused(fused_);
    EXPECT_TRUE(can_run_single.ok()) << can_run_single.ToString() << "\n" << fused_.ToText();
    if (can_run_single.ok()) ExpectSameBytes(runtime, {{1, 2}, {3, 1}});
    fused_ = doubles.fused_;
    inputs_ = doubles.inputs_;
    infos_ = doubles.infos_;
  }

  /// Called with each call of the fused operator, or of the operator of phases, and its results, while the
  /// scope lasts, in place of that of a scope around it.
  using AlsoRun = std::function<void(const KernelCall& call, std::span<const Value> results)>;
  class AlsoRunScope {
   public:
    explicit AlsoRunScope(AlsoRun run) : around_(std::exchange(also_run, std::move(run))) {}
    ~AlsoRunScope() { also_run = std::move(around_); }
    AlsoRunScope(const AlsoRunScope&) = delete;
    AlsoRunScope& operator=(const AlsoRunScope&) = delete;

   private:
    AlsoRun around_;
  };

  /// Inputs rounded to floats, and every matrix of the body one of floats.
  void BecomeSingle() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].IsMatrix()) continue;
      inputs_[i] = Value(*Narrow(inputs_[i].matrix()));
      infos_[i].element_type = ElementType::kFloat32;
    }
    for (Node& node : fused_.body.nodes)
      if (node.info.IsMatrix()) node.info.element_type = ElementType::kFloat32;
  }
  const Value& input(size_t i) const { return inputs_[i]; }

 private:
  static inline AlsoRun also_run;

  void ExpectSameDoubles(FusedRuntime* runtime) {
    const Status can_run = CanRunFused(fused_);
    ASSERT_TRUE(can_run.ok()) << can_run.ToString() << "\n" << fused_.ToText();
    ExpectSameBytes(runtime, {{1, 1}, {1, 2}, {3, 1}});
    // As another processor would run it.
    FusedRuntime other(nullptr, false, nullptr, {.memory_streams = MemoryStreams() == 1 ? 8 : 1});
    ExpectSameBytes(&other, {{1, 2}});
  }

  void ExpectSameBytes(FusedRuntime* runtime,
                       std::initializer_list<std::pair<int, int>> workers_and_threads) {
    const std::vector<Value> expected = RootsOneByOne();
    for (const auto& [workers, threads] : workers_and_threads) {
      const Result<std::vector<Value>> actual = RootsFused(workers, threads, runtime);
      ASSERT_TRUE(actual.ok()) << actual.status().ToString() << "\n" << fused_.ToText();
      ASSERT_EQ(expected.size(), actual->size());
      for (size_t i = 0; i < expected.size(); ++i) ExpectEqual(expected[i], (*actual)[i]);
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << workers << " workers, " << threads << " threads\n" << fused_.ToText();
        return;
      }
    }
  }

  static void ExpectEqual(const Value& expected, const Value& actual) {
    ASSERT_EQ(expected.IsScalar(), actual.IsScalar());
    if (expected.IsScalar()) {
      const double a = expected.scalar().AsDouble(), b = actual.scalar().AsDouble();
      EXPECT_TRUE(std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b))
          << a << " " << b;
      return;
    }
    EXPECT_EQ(expected.matrix().storage(), actual.matrix().storage());
    EXPECT_EQ(expected.matrix().element_type(), actual.matrix().element_type());
    ASSERT_EQ(expected.matrix().shape(), actual.matrix().shape());
    if (Matrix::SameCells(expected.matrix(), actual.matrix())) return;
    for (int64_t i = 0, shown = 0; i < expected.matrix().rows() && shown < 3; ++i)
      for (int64_t j = 0; j < expected.matrix().columns() && shown < 3; ++j) {
        const double a = expected.matrix().At(i, j), b = actual.matrix().At(i, j);
        if (std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b)) continue;
        ADD_FAILURE() << "cell " << i << "," << j << ": " << a << " by operators, " << b << " fused";
        ++shown;
      }
  }

  Result<std::vector<Value>> RunOn(const Operator& op, const Node& node, int workers) {
    const RowRule rule = op.row_rule(node, infos_);
    const size_t results = ResultsOf(node).size();
    const bool reduces = rule == RowRule::kReduce || rule == RowRule::kMixed;
    std::vector<std::vector<Value>> parts;  // By result, or the one list of all.
    int64_t rows = 0;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (op.input_use(node, infos_, static_cast<int>(i)) == InputUse::kRows)
        rows = inputs_[i].matrix().rows();
    for (int worker = 0; worker < workers; ++worker) {
      const int64_t begin = CutRow(rows, worker, workers), end = CutRow(rows, worker + 1, workers);
      if (workers > 1 && begin == end) continue;
      std::vector<Value> pieces = inputs_;
      std::vector<const Value*> pointers;
      for (size_t i = 0; i < pieces.size(); ++i) {
        if (workers > 1 && op.input_use(node, infos_, static_cast<int>(i)) == InputUse::kRows)
          pieces[i] = Value(pieces[i].matrix().Rows(begin, end));
        pointers.push_back(&pieces[i]);
      }
      const bool whole = workers == 1;
      std::vector<Value> made(!whole && rule == RowRule::kReduce ? 1 : results);
      const KernelCall call{.node = node,
                            .phase = !whole && reduces ? Phase::kPartial : Phase::kWhole,
                            .inputs = pointers,
                            .input_infos = infos_,
                            .row_begin = whole ? 0 : begin,
                            .row_end = whole ? 0 : end,
                            .total_rows = whole ? 0 : rows,
                            .context = context_};
      HEDDLE_RETURN_IF_ERROR(RunOperator(op, call, made));
      if (also_run) also_run(call, made);
      if (whole) return made;
      parts.resize(made.size());
      for (size_t i = 0; i < made.size(); ++i) parts[i].push_back(std::move(made[i]));
    }
    std::vector<Value> joined;
    for (const std::vector<Value>& list : parts) {
      HEDDLE_ASSIGN_OR_RETURN(Value value, PutTogether(list));
      joined.push_back(std::move(value));
    }
    if (!reduces) return joined;
    std::vector<const Value*> nodes;
    std::vector<size_t> reduced;
    for (size_t i = 0; i < results; ++i)
      if (rule == RowRule::kReduce || op.reduces(node, i)) reduced.push_back(i);
    for (size_t i = 0; i < joined.size(); ++i)
      if (rule == RowRule::kReduce || op.reduces(node, i)) nodes.push_back(&joined[i]);
    std::vector<Value> finished(reduced.size());
    HEDDLE_RETURN_IF_ERROR(RunOperator(
        op,
        {.node = node, .phase = Phase::kFinish, .inputs = nodes, .input_infos = infos_, .context = context_},
        finished));
    if (rule == RowRule::kReduce) return finished;
    for (size_t i = 0; i < reduced.size(); ++i) joined[reduced[i]] = std::move(finished[i]);
    return joined;
  }

  // Rows below one another; of tree nodes their order does not matter.
  static Result<Value> PutTogether(const std::vector<Value>& parts) {
    int64_t total = 0;
    for (const Value& part : parts) total += part.matrix().rows();
    const ElementType type = parts[0].matrix().element_type();
    HEDDLE_ASSIGN_OR_RETURN(Matrix all, Matrix::Dense(total, parts[0].matrix().columns(), type));
    char* to = all.mutable_data<char>();
    for (const Value& part : parts) {
      HEDDLE_ASSIGN_OR_RETURN(const Matrix dense, ToDense(part.matrix()));
      const int64_t bytes = dense.cells() * BytesOf(type);
      std::memcpy(to, dense.data<char>(), static_cast<size_t>(bytes));
      to += bytes;
    }
    if (!parts[0].matrix().IsSparse()) return Value(std::move(all));
    HEDDLE_ASSIGN_OR_RETURN(all, ToSparse(all));
    return Value(std::move(all));
  }

  FusedOperator fused_;
  std::vector<Value> inputs_;
  std::vector<ValueInfo> infos_;
  KernelContext context_;
};

}  // namespace heddle::ops::testing

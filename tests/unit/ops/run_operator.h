// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"
#include "tests/support/all_plans.h"
#include "tests/unit/ops/compressed/every_encoding.h"

// Runs one operator of a family as the system does: infer, check that the result is what inference promised,
// run.
namespace heddle::ops::testing {

using Inputs = std::vector<std::optional<Value>>;
using Attributes = std::vector<std::pair<std::string, Scalar>>;

struct Invocation {
  Invocation(std::span<const Operator> family, std::string name, Inputs given, Attributes attributes = {})
      : Invocation(name, std::move(given), std::move(attributes)) {
    EXPECT_TRUE(std::any_of(family.begin(), family.end(), [&](const Operator& one) { return &one == op; }))
        << name;
  }
  explicit Invocation(std::string name, Inputs given, Attributes attributes = {})
      : op(FindOperator(name)), inputs(std::move(given)) {
    EXPECT_NE(op, nullptr) << name;
    node.op = std::move(name);
    for (const auto& [key, value] : attributes) node.SetAttribute(key, value);
    for (size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back(inputs[i] ? static_cast<NodeId>(i) : kNoNode);
      ValueInfo info;
      const Scalar* scalar = nullptr;
      if (inputs[i] && inputs[i]->IsScalar()) {
        scalar = &inputs[i]->scalar();
        info = ValueInfo::OfScalar(scalar->type());
      } else if (inputs[i] && inputs[i]->IsFrame()) {
        info = ValueInfo::OfFrame(inputs[i]->frame().rows(), inputs[i]->frame().schema());
      } else if (inputs[i]) {
        info = ValueInfo::OfMatrix(inputs[i]->matrix().shape(), FormatOf(inputs[i]->matrix().storage()));
      }
      infos.push_back(info);
      scalars.push_back(scalar);
    }
  }

  Result<ValueInfo> Infer() const {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ValueInfo> results, InferWith(scalars));
    return results[0];
  }
  /// As when no scalar is known yet.
  Result<ValueInfo> InferBlind() const {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ValueInfo> results,
                            InferWith(std::vector<const Scalar*>(scalars.size(), nullptr)));
    return results[0];
  }
  /// What all results are.
  Result<std::vector<ValueInfo>> InferWith(const std::vector<const Scalar*>& known) const {
    const InferContext call{.node = node, .inputs = infos, .scalars = known};
    if (op->infer_several != nullptr) return op->infer_several(call);
    HEDDLE_ASSIGN_OR_RETURN(const ValueInfo info, op->infer(call));
    return std::vector<ValueInfo>{info};
  }

  /// The first result of rows [begin, end) of total; begin = end = total = 0 runs it whole.
  Result<Value> RunRows(int64_t begin, int64_t end, int64_t total, int threads = 1) {
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<Value> results, RunSeveralRows(begin, end, total, threads));
    return results[0];
  }
  Result<std::vector<Value>> RunSeveralRows(int64_t begin, int64_t end, int64_t total, int threads = 1) {
    std::vector<Value> pieces(inputs.size());
    std::vector<const Value*> pointers;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) {
        pointers.push_back(nullptr);
        continue;
      }
      pieces[i] = *inputs[i];
      const bool rows = total > 0 && op->input_use != nullptr &&
                        op->input_use(node, infos, static_cast<int>(i)) == InputUse::kRows;
      if (rows && inputs[i]->IsMatrix()) pieces[i] = Value(inputs[i]->matrix().Rows(begin, end));
      pointers.push_back(&pieces[i]);
    }
    HEDDLE_ASSIGN_OR_RETURN(const std::vector<ValueInfo> inferred, InferWith(scalars));
    SetInfos(inferred);
    context.threads = threads;
    std::vector<Value> results(inferred.size());
    Status status;
    Arena(threads).Execute([&] {
      status = CatalogKernels().Run({.node = node,
                                     .phase = Phase::kWhole,
                                     .inputs = pointers,
                                     .input_infos = infos,
                                     .row_begin = begin,
                                     .row_end = end,
                                     .total_rows = total,
                                     .context = context,
                                     .op = op},
                                    results);
    });
    HEDDLE_RETURN_IF_ERROR(status);
    ExpectSameCompressed(pointers, results, begin, end, total);
    return results;
  }
  // How its matrices are stored changes no bit of what an operator makes (docs/compression.md): in groups of
  // all kinds at once, and, of the first invocations of an operator, by each encoding alone. Making groups
  // takes longer than most operators: after its first invocations every seventh of an operator is compared,
  // all of them with HEDDLE_ALL_PLANS=1.
  void ExpectSameCompressed(const std::vector<const Value*>& given, const std::vector<Value>& expected,
                            int64_t begin, int64_t end, int64_t total) {
    constexpr int64_t kMostCells = 100'000, kFewCells = 3000;
    constexpr int kFirst = 30;
    int64_t most_cells = 0;
    bool has_matrix = false;
    for (const Value* value : given) {
      if (value == nullptr || !value->IsMatrix() || value->matrix().IsCompressed()) continue;
      if (value->matrix().cells() > kMostCells || value->matrix().columns() > kMostCells) return;
      most_cells = std::max(most_cells, value->matrix().cells());
      has_matrix = true;
    }
    if (!has_matrix || op->effect || context.cancelled != nullptr) return;
    static std::map<std::string, int> times, alone;
    const int time = times[std::string(op->name)]++;
    const bool is_alone = most_cells <= kFewCells && alone[std::string(op->name)] < kFirst;
    if (time >= kFirst && time % 7 != 0 && !is_alone && !testing_support::RunsAllPlans()) return;
    const auto seed = static_cast<uint32_t>(op->name.size() + 7 * given.size() + static_cast<size_t>(begin));
    const auto mixed = [&](const Matrix& x, size_t i) {
      return RandomGroups(x, seed + static_cast<uint32_t>(i));
    };
    ExpectSameStored("groups", given, mixed, expected, begin, end, total);
    if (!is_alone) return;
    ++alone[std::string(op->name)];
    for (const Encoding encoding : kEncodingsOfAll)
      ExpectSameStored(
          Name(encoding), given, [&](const Matrix& x, size_t) { return InEncoding(x, encoding); }, expected,
          begin, end, total);
    ExpectSameOfConstantColumns(given, begin, end, total);
  }
  // The same with other cells, which have columns of zeros and of one cell: what may be no valid input is an
  // error in both ways.
  void ExpectSameOfConstantColumns(const std::vector<const Value*>& given, int64_t begin, int64_t end,
                                   int64_t total) {
    std::vector<Value> changed(given.size());
    std::vector<const Value*> pointers = given;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == nullptr || !given[i]->IsMatrix() || given[i]->matrix().IsCompressed()) continue;
      changed[i] = Value(WithConstantColumns(given[i]->matrix()));
      pointers[i] = &changed[i];
    }
    std::vector<Value> expected(ResultsOf(node).size());
    const Status status = RunKernel(pointers, begin, end, total, expected);
    const auto constant = [](const Matrix& x, size_t) { return InEncoding(x, Encoding::kDenseCodes); };
    ExpectSameStored("constant columns", pointers, constant, expected, begin, end, total, status.code());
  }
  Status RunKernel(const std::vector<const Value*>& given, int64_t begin, int64_t end, int64_t total,
                   std::vector<Value>& results) {
    return CatalogKernels().Run({.node = node,
                                 .phase = Phase::kWhole,
                                 .inputs = given,
                                 .input_infos = infos,
                                 .row_begin = begin,
                                 .row_end = end,
                                 .total_rows = total,
                                 .context = context,
                                 .op = op},
                                results);
  }
  // `store(matrix, input)`: the same cells, compressed.
  template <typename Store>
  void ExpectSameStored(std::string_view how, const std::vector<const Value*>& given, Store store,
                        const std::vector<Value>& expected, int64_t begin, int64_t end, int64_t total,
                        StatusCode code = StatusCode::kOk) {
    std::vector<Value> compressed(given.size());
    std::vector<const Value*> pointers = given;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == nullptr || !given[i]->IsMatrix() || given[i]->matrix().IsCompressed()) continue;
      compressed[i] = Value(store(given[i]->matrix(), i));
      EncodingsTried::Add(std::string(op->name), compressed[i].matrix());
      pointers[i] = &compressed[i];
    }
    std::vector<Value> results(expected.size());
    const Status status = RunKernel(pointers, begin, end, total, results);
    ASSERT_EQ(status.code(), code) << op->name << " of matrices in " << how << ": " << status.ToString();
    if (!status.ok()) return;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_TRUE(IsSameValue(results[i], expected[i]))
          << op->name << " of matrices in " << how << ", result " << i;
  }
  // Where zeros are not stored they have no sign.
  static bool IsSameValue(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return false;
    if (a.IsMatrix())
      return a.matrix().element_type() == b.matrix().element_type() &&
             Matrix::SameCells(a.matrix(), b.matrix());
    if (a.IsFrame()) return Frame::SameCells(a.frame(), b.frame());
    if (!a.IsScalar()) return true;
    if (!a.scalar().IsDouble() || !b.scalar().IsDouble()) return a.scalar() == b.scalar();
    const double x = a.scalar().AsDouble(), y = b.scalar().AsDouble();
    return (std::isnan(x) && std::isnan(y)) || std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
  }
  void SetInfos(const std::vector<ValueInfo>& inferred) {
    node.info = op->infer_several != nullptr ? ValueInfo::OfTuple() : inferred[0];
    if (op->infer_several != nullptr) node.results = inferred;
  }

  /// All results, matrices; fails the test when they are not what inference said.
  std::vector<Matrix> RunMatrices() {
    std::vector<Matrix> matrices;
    const Result<std::vector<Value>> results = RunSeveralRows(0, 0, 0);
    EXPECT_TRUE(results.ok()) << results.status().ToString();
    if (!results.ok()) return std::vector<Matrix>(static_cast<size_t>(op->results));
    for (size_t i = 0; i < results->size(); ++i) {
      matrices.push_back((*results)[i].matrix());
      EXPECT_EQ(matrices[i].shape(), ResultsOf(node)[i].shape) << node.op << " " << i;
    }
    return matrices;
  }

  /// The whole result; fails the test when it is not what inference said.
  Value Run(int threads = 1) {
    Result<Value> result = RunRows(0, 0, 0, threads);
    if (!result.ok()) {
      ADD_FAILURE() << node.op << ": " << result.status().ToString();
      return Value(Scalar(0.0));
    }
    if (result->IsMatrix()) ExpectPromised(0, result->matrix());
    return *std::move(result);
  }
  void ExpectPromised(size_t i, const Matrix& matrix) const {
    const ValueInfo& info = ResultsOf(node)[i];
    EXPECT_TRUE(info.shape.rows == kUnknown || info.shape.rows == matrix.rows()) << node.op;
    EXPECT_TRUE(info.shape.columns == kUnknown || info.shape.columns == matrix.columns()) << node.op;
    EXPECT_TRUE(info.shape.columns == kUnknown || info.format == FormatOf(matrix.storage())) << node.op;
  }
  Matrix RunMatrix(int threads = 1) {
    Value value = Run(threads);
    if (value.IsMatrix()) return value.matrix();
    ADD_FAILURE() << node.op << " did not give a matrix";
    return {};
  }

  /// Runs it in the pieces of `workers` workers and compares every piece of every result with the rows of the
  /// whole.
  void ExpectPiecesMatch(int workers) {
    const Result<std::vector<Value>> all = RunSeveralRows(0, 0, 0);
    ASSERT_TRUE(all.ok()) << node.op << ": " << all.status().ToString();
    for (size_t i = 0; i < all->size(); ++i) {
      ExpectPromised(i, (*all)[i].matrix());
      ExpectPiecesOf(i, (*all)[i].matrix(), workers);
    }
  }
  void ExpectPiecesOf(size_t i, const Matrix& whole, int workers) {
    for (int worker = 0; worker < workers; ++worker) {
      const int64_t begin = CutRow(whole.rows(), worker, workers);
      const int64_t end = CutRow(whole.rows(), worker + 1, workers);
      if (begin == end) continue;
      const Result<std::vector<Value>> pieces = RunSeveralRows(begin, end, whole.rows());
      ASSERT_TRUE(pieces.ok()) << node.op << ": " << pieces.status().ToString();
      const Matrix& piece = (*pieces)[i].matrix();
      EXPECT_EQ(piece.storage(), whole.storage());
      EXPECT_TRUE(Matrix::SameCells(piece, whole.Rows(begin, end)))
          << node.op << " rows " << begin << " to " << end << " of " << whole.rows();
    }
  }

  /// The message of the failure; "" if there is none.
  std::string Error(StatusCode* code = nullptr) {
    const Result<Value> result = RunRows(0, 0, 0);
    if (code != nullptr) *code = result.ok() ? StatusCode::kOk : result.status().code();
    return result.ok() ? "" : result.status().message();
  }
  /// The same when only the run can find it: inference knows no scalar.
  std::string RunTimeError(StatusCode* code) {
    std::vector<const Value*> pointers;
    for (const auto& input : inputs) pointers.push_back(input ? &*input : nullptr);
    const Result<std::vector<ValueInfo>> inferred =
        InferWith(std::vector<const Scalar*>(scalars.size(), nullptr));
    EXPECT_TRUE(inferred.ok());
    if (inferred.ok()) SetInfos(*inferred);
    std::vector<Value> results(inferred.ok() ? inferred->size() : 1);
    const Status status = RunOperator(
        *op,
        {.node = node, .phase = Phase::kWhole, .inputs = pointers, .input_infos = infos, .context = context},
        results);
    *code = status.code();
    return status.message();
  }

  const Operator* op = nullptr;
  Node node;
  Inputs inputs;
  std::vector<ValueInfo> infos;
  std::vector<const Scalar*> scalars;
  KernelContext context;
};

/// A small matrix from its rows.
inline Matrix Rows(std::initializer_list<std::initializer_list<double>> rows) {
  const int64_t columns = rows.size() == 0 ? 0 : static_cast<int64_t>(rows.begin()->size());
  Result<Matrix> result = Matrix::Dense(static_cast<int64_t>(rows.size()), columns);
  double* out = result->mutable_data();
  for (const auto& row : rows)
    for (double cell : row) *out++ = cell;
  return *std::move(result);
}

/// Cells -3 ... 3 and one in `zero_of` not zero; the same for the same seed.
inline Matrix RandomCells(int64_t rows, int64_t columns, uint32_t seed, int zero_of = 2) {
  std::mt19937 random(seed);
  Result<Matrix> result = Matrix::Dense(rows, columns);
  for (int64_t k = 0; k < rows * columns; ++k) {
    const bool empty = static_cast<int>(random() % static_cast<uint32_t>(zero_of)) != 0;
    result->mutable_data()[k] = empty ? 0 : (static_cast<double>(random() % 6001) - 3000) / 1000;
  }
  return *std::move(result);
}

inline Matrix Csr(const Matrix& x) { return *ToSparse(x); }
/// The CSR matrix as rows [2, 2 + m) of a larger one: its first offset is not zero.
inline Matrix CsrPanel(const Matrix& x) {
  Result<Matrix> padded = FilledMatrix(x.rows() + 3, x.columns(), 7);
  for (int64_t i = 0; i < x.rows(); ++i)
    for (int64_t j = 0; j < x.columns(); ++j) padded->mutable_data()[(i + 2) * x.columns() + j] = x.At(i, j);
  return ToSparse(*padded)->Rows(2, 2 + x.rows());
}

/// Dense, CSR and CSR panel of the same cells.
inline std::vector<Matrix> Forms(const Matrix& x) { return {x, Csr(x), CsrPanel(x)}; }

}  // namespace heddle::ops::testing

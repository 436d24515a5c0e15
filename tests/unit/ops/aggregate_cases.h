// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/kernel.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"

// Matrices that are awkward for reductions, and ways to run an operator: whole, or split among workers.
namespace heddle::ops {

inline uint64_t NextBits(uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Cells of very different sizes and both signs, a fraction `density` of them present, the others +0.0.
inline Matrix RandomCells(int64_t m, int64_t n, double density, uint64_t seed) {
  Matrix x = *FilledMatrix(m, n, 0.0);
  uint64_t state = seed;
  for (int64_t i = 0; i < m * n; ++i) {
    const uint64_t bits = NextBits(state);
    if (static_cast<double>(bits % 1000) >= density * 1000) continue;
    const double fraction = static_cast<double>(NextBits(state) >> 11) * 0x1.0p-53 - 0.5;
    x.mutable_data()[i] = std::ldexp(fraction, static_cast<int>(bits >> 60));
  }
  return x;
}

enum class Special { kNone, kNegativeZero, kDenormal, kInfinity, kNaN, kAll };

/// Puts special values at a few places.
inline void AddSpecials(Matrix& x, Special special) {
  if (special == Special::kNone || x.cells() == 0) return;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const auto put = [&](uint64_t place, double value) {
    x.mutable_data()[place % static_cast<uint64_t>(x.cells())] = value;
  };
  const bool all = special == Special::kAll;
  if (all || special == Special::kNegativeZero) put(3, -0.0), put(1000003, -0.0);
  if (all || special == Special::kDenormal) put(5, 5e-324), put(77777, -5e-324), put(8, 2.3e-308);
  if (all || special == Special::kInfinity) put(11, kInf), put(54321, kInf);
  if (all || special == Special::kNaN) put(13, std::nan(""));
}

/// The digits of the same cells, those that are not 0 as large as doubles are: their sums are not.
inline Matrix Enlarged(const Matrix& x, uint64_t seed) {
  Matrix large = *FilledMatrix(x.rows(), x.columns(), 0.0);
  uint64_t state = seed;
  for (int64_t i = 0; i < x.cells(); ++i) {
    const int exponent = 1024 - static_cast<int>(NextBits(state) % 4);
    int ignored = 0;
    large.mutable_data()[i] = std::ldexp(std::frexp(x.data()[i], &ignored), exponent);
  }
  return large;
}

/// As rows [begin, end) of a larger CSR matrix, so that the first offset is not zero.
inline Matrix SparseView(const Matrix& dense) {
  Matrix tall = *FilledMatrix(dense.rows() + 2, dense.columns(), 1.0);
  if (dense.cells() > 0)
    std::memcpy(tall.mutable_data() + dense.columns(), dense.data(),
                static_cast<size_t>(dense.cells()) * sizeof(double));
  return ToSparse(tall)->Rows(1, dense.rows() + 1);
}

inline const Operator& OperatorNamed(std::span<const Operator> family, std::string_view name) {
  for (const Operator& op : family)
    if (op.name == name) return op;
  ADD_FAILURE() << "no operator " << name;
  return family[0];
}

/// A 1x1 matrix for a scalar, so that results compare alike.
inline Matrix AsMatrix(const Value& value) {
  return value.IsMatrix() ? value.matrix() : *FilledMatrix(1, 1, value.scalar().AsDouble());
}

/// Runs one operator on whole inputs, or as `workers` ranks would.
class OperatorRun {
 public:
  OperatorRun(const Operator& op, std::vector<Matrix> inputs, bool same_input = false)
      : op_(op), inputs_(std::move(inputs)) {
    node_.op = std::string(op.name);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      node_.inputs.push_back(same_input ? 0 : static_cast<NodeId>(i));
      infos_.push_back(ValueInfo::OfMatrix(inputs_[i].shape(), FormatOf(inputs_[i].storage())));
    }
    const std::vector<const Scalar*> scalars(inputs_.size(), nullptr);
    Result<ValueInfo> info = op.infer({node_, infos_, scalars});
    EXPECT_TRUE(info.ok()) << info.status().ToString();
    node_.info = *info;
  }

  Result<Value> Whole() { return Call(Phase::kWhole, inputs_, 0, inputs_[0].rows()); }
  Matrix Result1() {
    Result<Value> value = Whole();
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return AsMatrix(*value);
  }

  /// kRowWise: rows of each worker put together. kReduce: every worker's nodes, in reverse order of ranks,
  /// then "finish".
  Matrix Split(int workers) {
    const bool reduce = op_.row_rule(node_, infos_) == RowRule::kReduce;
    const int64_t m = inputs_[0].rows();
    std::vector<Matrix> parts;
    for (int worker = workers - 1; worker >= 0; --worker) {
      const int64_t begin = CutRow(m, worker, workers), end = CutRow(m, worker + 1, workers);
      std::vector<Matrix> pieces = inputs_;
      for (size_t i = 0; i < pieces.size(); ++i)
        if (op_.input_use(node_, infos_, static_cast<int>(i)) == InputUse::kRows)
          pieces[i] = pieces[i].Rows(begin, end);
      Result<Value> part = Call(reduce ? Phase::kPartial : Phase::kWhole, pieces, begin, end);
      EXPECT_TRUE(part.ok()) << part.status().ToString();
      parts.push_back(*ToDense(part->matrix()));
    }
    if (!reduce) std::reverse(parts.begin(), parts.end());
    int64_t rows = 0, columns = 0;
    for (const Matrix& part : parts) rows += part.rows(), columns = std::max(columns, part.columns());
    Matrix together = *FilledMatrix(rows, columns, 0.0);
    int64_t at = 0;
    for (const Matrix& part : parts) {
      if (part.cells() > 0)
        std::memcpy(together.mutable_data() + at, part.data(),
                    static_cast<size_t>(part.cells()) * sizeof(double));
      at += part.cells();
    }
    if (!reduce) return together;
    Result<Value> value = Call(Phase::kFinish, {together}, 0, m);
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return AsMatrix(*value);
  }

 private:
  Result<Value> Call(Phase phase, const std::vector<Matrix>& pieces, int64_t begin, int64_t end) {
    std::vector<Value> values(pieces.begin(), pieces.end());
    std::vector<const Value*> pointers;
    for (const Value& value : values) pointers.push_back(&value);
    return CatalogKernels().Run(
        {node_, phase, pointers, infos_, begin, end, inputs_[0].rows(), context_, nullptr, &op_});
  }

  const Operator& op_;
  std::vector<Matrix> inputs_;
  Node node_;
  std::vector<ValueInfo> infos_;
  KernelContext context_;
};

/// body() on one thread, then on two.
inline void OnOneAndTwoThreads(const std::function<void()>& body) {
  for (int threads : {1, 2}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    Arena arena(threads);
    arena.Execute(body);
  }
}

}  // namespace heddle::ops

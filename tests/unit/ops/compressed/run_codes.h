// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/values/panels.h"
#include "ops/base/operator.h"
#include "ops/base/parallel.h"

// Runs an operator on compressed inputs by Operator::run_compressed, and by `run` on the same cells dense and
// CSR, and compares bytes.
namespace heddle::ops::testing {

class CodesCall {
 public:
  /// Compressed and plain inputs. With `sparse` compressed ones have the format kSparse.
  CodesCall(std::string name, std::vector<Value> inputs, bool sparse = false,
            std::vector<std::pair<std::string, Scalar>> attributes = {})
      : op_(FindOperator(name)), inputs_(std::move(inputs)), is_sparse_(sparse) {
    node_.op = std::move(name);
    for (auto& [key, value] : attributes) node_.SetAttribute(key, value);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      node_.inputs.push_back(static_cast<NodeId>(i));
      const Value& value = inputs_[i];
      scalars_.push_back(value.IsScalar() ? &value.scalar() : nullptr);
      if (value.IsScalar()) {
        infos_.push_back(ValueInfo::OfScalar(value.scalar().type()));
        plain_.push_back(value);
        continue;
      }
      const Matrix& matrix = value.matrix();
      const bool as_csr = matrix.IsSparse() || (matrix.IsCompressed() && sparse);
      infos_.push_back(ValueInfo::OfMatrix(matrix.shape(), as_csr ? Format::kSparse : Format::kDense));
      infos_.back().element_type = matrix.element_type();
      plain_.emplace_back(matrix.IsCompressed() ? Plain(matrix) : matrix);
    }
    Result<ValueInfo> info = Infer({.node = node_, .inputs = infos_, .scalars = scalars_});
    EXPECT_TRUE(info.ok()) << node_.op << ": " << info.status().ToString();
    if (info.ok()) node_.info = *info;
  }

  /// Of run_compressed; nothing where it leaves the call.
  std::optional<Value> OfCodes(int threads = 1) {
    std::optional<Value> result;
    Arena(threads).Execute([&] {
      Result<std::optional<Value>> ran =
          op_->run_compressed(CallOf(inputs_, Phase::kWhole, 0, TotalRows(), TotalRows()));
      EXPECT_TRUE(ran.ok()) << node_.op << ": " << ran.status().ToString();
      if (ran.ok()) result = *std::move(ran);
    });
    return result;
  }
  Value OfCells() { return Ran(CallOf(plain_, Phase::kWhole, 0, TotalRows(), TotalRows())); }

  /// Fails unless it takes the call and gives the bytes of `run`.
  void Expect() {
    const Value wanted = OfCells();
    for (const int threads : {1, 3}) {
      const std::optional<Value> found = OfCodes(threads);
      ASSERT_TRUE(found.has_value()) << node_.op << " leaves the call" << (is_sparse_ ? ", sparse" : "");
      ExpectSame(*found, wanted);
    }
  }
  /// Fails unless the kernels of the catalog give the bytes of `run`, whatever way they take.
  void ExpectRun() {
    const Value wanted = OfCells();
    for (const int threads : {1, 3})
      Arena(threads).Execute(
          [&] { ExpectSame(Ran(CallOf(inputs_, Phase::kWhole, 0, TotalRows(), TotalRows())), wanted); });
  }
  /// The same where it may leave the call; true if it took it.
  bool ExpectIfTaken() {
    const std::optional<Value> found = OfCodes();
    if (found) ExpectSame(*found, OfCells());
    return found.has_value();
  }
  void ExpectLeft() { EXPECT_FALSE(OfCodes().has_value()) << node_.op << " takes the call"; }

  /// Of a reduction: lists of nodes of some ranks' rows, of every second rank from codes, finish to the bytes
  /// of `run`; with `same_nodes` the lists have those of the lists of `run`.
  void ExpectParts(int ranks, bool same_nodes) {
    const int64_t rows = infos_[0].shape.rows;
    std::vector<Matrix> lists;
    int64_t nodes = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t begin = CutRow(rows, rank, ranks), end = CutRow(rows, rank + 1, ranks);
      const auto rows_of = [&](const std::vector<Value>& values) {
        std::vector<Value> own = values;
        for (size_t i = 0; i < own.size(); ++i)
          if (InputUseOf(node_, infos_, static_cast<int>(i)) == InputUse::kRows)
            own[i] = Value(values[i].matrix().Rows(begin, end));
        return own;
      };
      const std::vector<Value> own = rows_of(inputs_), plain = rows_of(plain_);
      const Value by_cells = Ran(CallOf(plain, Phase::kPartial, begin, end, rows));
      lists.push_back(by_cells.matrix());
      if (rank % 2 == 0 && begin < end) {
        const Result<std::optional<Value>> found =
            op_->run_compressed(CallOf(own, Phase::kPartial, begin, end, rows));
        ASSERT_TRUE(found.ok() && found->has_value())
            << node_.op << " leaves rows " << begin << " to " << end;
        lists.back() = (*found)->matrix();
        EXPECT_TRUE(!same_nodes || Matrix::SameCells(lists.back(), by_cells.matrix())) << node_.op;
      }
      nodes += lists.back().rows();
    }
    Matrix all = *Matrix::Dense(nodes, lists[0].columns());
    double* out = all.mutable_data();
    for (const Matrix& list : lists) out = std::copy_n(list.data(), list.cells(), out);
    const std::vector<Value> joined = {Value(std::move(all))};
    ExpectSame(Ran(CallOf(joined, Phase::kFinish, 0, rows, rows)), OfCells());
  }

  const Operator& op() const { return *op_; }
  const Node& node() const { return node_; }

 private:
  Matrix Plain(const Matrix& compressed) const {
    const Matrix dense = *ToDense(compressed);
    return is_sparse_ ? *ToSparse(dense) : dense;
  }
  int64_t TotalRows() const { return TotalRowsOf(*op_, node_, infos_); }

  KernelCall CallOf(const std::vector<Value>& values, Phase phase, int64_t begin, int64_t end,
                    int64_t total) {
    pointers_.clear();
    for (const Value& value : values) pointers_.push_back(&value);
    return {.node = node_,
            .phase = phase,
            .inputs = pointers_,
            .input_infos = infos_,
            .row_begin = begin,
            .row_end = end,
            .total_rows = total,
            .context = context_,
            .op = op_};
  }
  Value Ran(const KernelCall& call) {
    Result<Value> result = CatalogKernels().Run(call);
    EXPECT_TRUE(result.ok()) << node_.op << ": " << result.status().ToString();
    return result.ok() ? *std::move(result) : Value(Scalar(0.0));
  }

  void ExpectSame(const Value& found, const Value& wanted) const {
    ASSERT_EQ(found.kind(), wanted.kind()) << node_.op;
    if (found.IsScalar()) {
      const double x = found.scalar().AsDouble(), y = wanted.scalar().AsDouble();
      EXPECT_EQ(found.scalar().type(), wanted.scalar().type()) << node_.op;
      EXPECT_TRUE(std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y) ||
                  (std::isnan(x) && std::isnan(y)))
          << node_.op << " gives " << x << " for " << y;
      return;
    }
    const Matrix a = *ToDense(found.matrix()), b = *ToDense(wanted.matrix());
    EXPECT_EQ(a.element_type(), b.element_type()) << node_.op;
    ASSERT_EQ(a.shape(), b.shape()) << node_.op;
    if (Matrix::SameCells(a, b)) return;
    for (int64_t i = 0; i < a.rows(); ++i)
      for (int64_t j = 0; j < a.columns(); ++j)
        if (!Matrix::SameCells(*FilledMatrix(1, 1, a.At(i, j)), *FilledMatrix(1, 1, b.At(i, j)))) {
          ADD_FAILURE() << node_.op << (is_sparse_ ? ", sparse" : "") << ": cell " << i << ", " << j << " is "
                        << a.At(i, j) << " for " << b.At(i, j);
          return;
        }
  }

  const Operator* op_;
  Node node_;
  std::vector<Value> inputs_, plain_;
  bool is_sparse_;
  std::vector<ValueInfo> infos_;
  std::vector<const Scalar*> scalars_;
  std::vector<const Value*> pointers_;
  KernelContext context_;
};

}  // namespace heddle::ops::testing

// SPDX-License-Identifier: Apache-2.0
// Operators that ranks compute together of what they have by columns give the bytes of the operator that runs
// whole: also with more ranks than columns, and where a rank has none.
#include <gtest/gtest.h>

#include "core/environment/random.h"
#include "ops/base/columns.h"
#include "ops/cells/column_pieces.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Csr;
using testing::Forms;
using testing::Invocation;
using testing::RandomCells;

// Cuts at multiples of `step`, some of them equal.
Split CutsOf(int64_t columns, int32_t ranks, int64_t step, uint64_t seed) {
  Split split{.axis = Axis::kColumns, .cuts = {0}};
  SeededRandom random(seed);
  for (int32_t rank = 1; rank < ranks; ++rank) {
    const auto at = static_cast<int64_t>(random.Below(static_cast<uint64_t>(columns / step) + 1)) * step;
    split.cuts.push_back(seed == 0 ? columns * rank / ranks / step * step : at);
  }
  split.cuts.push_back(columns);
  std::sort(split.cuts.begin(), split.cuts.end());
  return split;
}

// What the ranks make of their parts, put together.
Result<Value> Together(const StagedForm& form, const std::vector<std::vector<Value>>& parts) {
  std::vector<const Value*> pieces;
  for (const std::vector<Value>& of_rank : parts) pieces.push_back(&of_rank[0]);
  switch (form.result) {
    case StagedResult::kSameColumns:
    case StagedResult::kColumns: return JoinColumns(pieces);
    case StagedResult::kEach:
      for (const Value* piece : pieces) EXPECT_TRUE(testing::AreSame(*piece, *pieces[0]));
      return *pieces[0];
    default: return JoinRows(pieces);
  }
}

// All forms by columns of the call, or those with so many stages.
void ExpectFormsMatch(Invocation call, int64_t columns, size_t stages = 0) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << call.node.op << ": " << whole.status().ToString();
  int runs = 0;
  for (const auto& [place, form] : StagedFormsOf(*call.op, call.node, call.infos, Axis::kColumns)) {
    if (stages > 0 && form->stages.size() != stages) continue;
    const int64_t step = form->needs_granules ? kColumnChunk : 1;
    for (const int32_t ranks : {1, 2, 3, 5, 9}) {
      for (uint64_t seed = 0; seed < 4; ++seed) {
        ++runs;
        const Split cuts = CutsOf(columns, ranks, step, seed);
        const std::vector<std::vector<Value>> parts =
            testing::RunStages(call, {.rows = cuts, .place = place});
        ASSERT_EQ(parts.size(), static_cast<size_t>(ranks)) << call.node.op;
        const Result<Value> all = Together(*form, parts);
        ASSERT_TRUE(all.ok()) << all.status().ToString();
        EXPECT_EQ(all->shape(), (*whole)[0].shape()) << call.node.op;
        EXPECT_TRUE(testing::AreSame(*all, (*whole)[0]))
            << call.node.op << ", form " << place << ", " << ranks << " ranks, cuts " << seed;
      }
    }
  }
  EXPECT_GT(runs, 0) << call.node.op << " has no such form";
}

void ExpectRandomColumns(int64_t rows, int64_t columns, double sparsity, const char* pdf) {
  const auto number = [](double x) { return Value(Scalar(x)); };
  ExpectFormsMatch(
      Invocation("rand",
                 {number(static_cast<double>(rows)), number(static_cast<double>(columns)), number(-1),
                  number(2), number(sparsity), Value(Scalar(int64_t{42})), number(3)},
                 {{"pdf", Scalar(std::string(pdf))}}),
      columns);
}

// Blocks of the definition have 1000 rows and columns.
TEST(ColumnStagesTest, MatricesOfRandomNumbers) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{1, 3}, {4, 2500}, {3, 1000}})
    for (const double sparsity : {1.0, 0.7, 0.1})
      for (const char* pdf : {"uniform", "normal", "poisson", "cb_uniform"})
        ExpectRandomColumns(rows, columns, sparsity, pdf);
  ExpectRandomColumns(1002, 60, 1, "uniform");
  ExpectRandomColumns(1002, 60, 0.1, "uniform");
}

TEST(ColumnStagesTest, FilledMatrices) {
  for (const int64_t columns : {1, 2, 70})
    ExpectFormsMatch(
        Invocation("matrix", {Value(Scalar(2.5)), Value(Scalar(int64_t{5})), Value(Scalar(columns))}),
        columns);
}

TEST(ColumnStagesTest, RangesOfColumns) {
  const auto at = [](int64_t bound) { return Value(Scalar(bound)); };
  for (const int64_t columns : {3, 70, 200})
    for (const Matrix& x : Forms(RandomCells(20, columns, 4)))
      for (const auto& [first, last] :
           {std::pair<int64_t, int64_t>{1, columns}, {columns, columns}, {2, columns - 1}}) {
        ExpectFormsMatch(Invocation("index", {Value(x), std::nullopt, std::nullopt, at(first), at(last)}),
                         columns);
        ExpectFormsMatch(Invocation("index", {Value(x), at(3), at(9), at(first), at(last)}), columns);
      }
}

TEST(ColumnStagesTest, ColumnsOutsideFailOnEveryRank) {
  Invocation call("index", {Value(RandomCells(4, 10, 1)), std::nullopt, std::nullopt,
                            Value(Scalar(int64_t{9})), Value(Scalar(int64_t{12}))});
  call.SetInfos({ValueInfo::OfMatrix({4, 4})});
  call.scalars.assign(5, nullptr);
  Status failed;
  for (const auto& [place, form] : StagedFormsOf(*call.op, call.node, call.infos, Axis::kColumns)) {
    std::vector<Value> outputs(3);
    const Split cuts = CutsOf(10, 3, 1, 0);
    const std::vector<Value> pieces = testing::PiecesOf(*form, call, cuts, 1);
    std::vector<const Value*> inputs;
    for (size_t i = 0; i < pieces.size(); ++i) inputs.push_back(call.inputs[i] ? &pieces[i] : nullptr);
    failed = form->run({.form = *form,
                        .node = call.node,
                        .input_infos = call.infos,
                        .rank = 1,
                        .rows = cuts,
                        .result_rows = cuts,
                        .inputs = inputs,
                        .context = call.context},
                       outputs);
  }
  EXPECT_EQ(failed.message(), "index [,9:12] is out of range for a 4x10 matrix");
}

TEST(ColumnStagesTest, TransposedProductsByColumnsOfTheLeft) {
  for (const int64_t rows : {1, 130, 3000})
    for (const int64_t columns : {3, 9, 70})
      for (const int64_t right : {1, 4, 9, 40}) {
        if (columns * right <= 8) continue;
        for (const Matrix& x : Forms(RandomCells(rows, columns, 5)))
          for (const Matrix& y : Forms(RandomCells(rows, right, 6)))
            ExpectFormsMatch(Invocation("t%*%", {Value(x), Value(y)}), columns);
      }
}

// Each cell below the diagonal is computed like that above it.
TEST(ColumnStagesTest, SymmetricProductsByColumns) {
  Invocation call("t%*%", {Value(RandomCells(700, 40, 5, 1)), std::nullopt});
  call.inputs[1] = call.inputs[0];
  call.infos[1] = call.infos[0];
  call.node.inputs = {0, 0};
  ExpectFormsMatch(call, 40);
}

// Chains of ascending k go from rank to rank.
TEST(ColumnStagesTest, ProductsByColumnsOfTheLeftInTurns) {
  for (const int64_t rows : {1, 40, 100})
    for (const int64_t inner : {1, 7, 300})
      for (const int64_t columns : {1, 3, 8, 9, 33})
        ExpectFormsMatch(Invocation("%*%", {Value(RandomCells(rows, inner, 7, 1)),
                                            Value(RandomCells(inner, columns, 8, 1))}),
                         inner, 18);
}

TEST(ColumnStagesTest, NarrowProductsOfEntriesInTurns) {
  for (const int64_t columns : {1, 5})
    for (const Matrix& x : {Csr(RandomCells(50, 90, 7, 3)), testing::CsrPanel(RandomCells(50, 90, 7, 3))})
      ExpectFormsMatch(Invocation("%*%", {Value(x), Value(RandomCells(90, columns, 8, 1))}), 90, 18);
}

// Leaves of trees: chunks of columns, or panels.
TEST(ColumnStagesTest, ProductsOfLongRows) {
  constexpr int64_t kInner = 3 * kColumnChunk + 1000;
  for (const int64_t rows : {1, 3})
    for (const int64_t columns : {1, 3, 12})
      for (const Matrix& x : {RandomCells(rows, kInner, 9, 1), Csr(RandomCells(rows, kInner, 9, 50))})
        ExpectFormsMatch(Invocation("%*%", {Value(x), Value(RandomCells(kInner, columns, 10, 1))}), kInner,
                         2);
}

// Of few rows that are no longer than a chunk.
TEST(ColumnStagesTest, FullAggregatesOfFewRows) {
  for (const char* op : {"sum", "mean", "min", "max", "prod", "var", "sd"})
    for (const int64_t rows : {1, 7, 64})
      for (const int64_t columns : {1, 5, 3000}) {
        if (rows * columns > 30'000) continue;
        Matrix large = RandomCells(rows, columns, 11, 1);
        for (int64_t k = 0; k < large.cells(); k += 3)
          large.mutable_data()[k] = k % 2 == 0 ? 1.6e308 : -1.6e308;
        for (const Matrix& x : Forms(RandomCells(rows, columns, 12)))
          ExpectFormsMatch(Invocation(op, {Value(x)}), columns);
        ExpectFormsMatch(Invocation(op, {Value(large)}), columns);
      }
}

}  // namespace
}  // namespace heddle::ops

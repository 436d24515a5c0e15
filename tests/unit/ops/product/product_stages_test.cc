// SPDX-License-Identifier: Apache-2.0
// X %*% Y of two operands that are split by rows: the cells of the product that runs whole, in every form, on
// every grid, and the bytes that ranks send beside the least that is possible.
#include <gtest/gtest.h>

#include <optional>

#include "ops/elementwise/single_precision.h"
#include "tests/reference/matmul.h"
#include "tests/unit/ops/run_stages.h"

namespace heddle::ops {
namespace {

using testing::Csr;
using testing::CsrPanel;
using testing::Forms;
using testing::Invocation;
using testing::RandomCells;
using testing::SentBytes;
using testing::StagesRun;

// Places of the forms of %*%.
constexpr int32_t kOnGrid = 0, kInTurns = 1, kOnGridInSteps = 2, kByPanels = 3;

Split EvenCuts(int64_t rows, int32_t ranks) {
  Split split;
  for (int64_t rank = 0; rank <= ranks; ++rank) split.cuts.push_back(rows * rank / ranks);
  return split;
}

Invocation ProductOf(const Matrix& a, const Matrix& b, int32_t grid_columns) {
  Invocation call("%*%", {Value(a), Value(b)});
  if (grid_columns > 0) call.node.SetAttribute(kGridColumns, Scalar(int64_t{grid_columns}));
  return call;
}

Matrix WholeProduct(Invocation call) {
  const Result<std::vector<Value>> whole = call.RunSeveralRows(0, 0, 0);
  EXPECT_TRUE(whole.ok()) << whole.status().ToString();
  return (*whole)[0].matrix();
}

// All ranks together make the bytes of `expected`, each the rows that it owns.
void ExpectProduct(const Matrix& expected, Invocation call, const StagesRun& run) {
  const auto ranks = static_cast<int32_t>(run.rows.cuts.size()) - 1;
  const std::vector<std::vector<Value>> parts = testing::RunStages(call, run);
  ASSERT_EQ(parts.size(), static_cast<size_t>(ranks));
  std::vector<const Value*> pieces;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    pieces.push_back(&parts[static_cast<size_t>(rank)][0]);
    const int64_t on_last = rank + 1 == ranks ? expected.rows() : 0;
    EXPECT_EQ(pieces.back()->shape().rows, run.on_last ? on_last : run.rows.End(rank) - run.rows.Begin(rank));
    EXPECT_EQ(FormatOf(pieces.back()->matrix().storage()), call.node.info.format);
  }
  const Result<Value> all = JoinRows(pieces);
  ASSERT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(all->matrix().shape(), expected.shape());
  EXPECT_EQ(all->matrix().element_type(), expected.element_type());
  EXPECT_TRUE(Matrix::SameCells(all->matrix(), expected));
}

struct Sizes {
  int64_t m, k, n;
};

// Few and many columns, ranks without rows, dimensions without cells.
constexpr Sizes kSizes[] = {{1, 1, 1},       {5, 130, 3},  {130, 5, 9},   {200, 300, 40},
                            {70, 1000, 130}, {0, 5, 9},    {5, 0, 9},     {5, 9, 0},
                            {1000, 64, 12},  {3, 129, 25}, {300, 70, 300}};

TEST(ProductStagesTest, EveryGridMakesTheCellsOfOneRank) {
  for (const Sizes& s : kSizes)
    for (const Matrix& a : Forms(RandomCells(s.m, s.k, 1)))
      for (const Matrix& b : Forms(RandomCells(s.k, s.n, 2)))
        for (const int32_t ranks : {1, 2, 6, 8})
          for (int32_t columns = 1; columns <= ranks; ++columns) {
            if (ranks % columns != 0) continue;
            SCOPED_TRACE(::testing::Message() << s.m << "x" << s.k << "x" << s.n << " on " << ranks << ", "
                                              << columns << " columns");
            const Invocation call = ProductOf(a, b, columns);
            const Matrix expected = WholeProduct(call);
            ExpectProduct(expected, call, {.rows = Distribution::SplitRows(s.m, ranks).split});
            ExpectProduct(expected, call, {.rows = EvenCuts(s.m, ranks)});
            if (columns == ranks)
              ExpectProduct(expected, call,
                            {.rows = Distribution::SplitRows(s.m, ranks).split, .on_last = true});
          }
}

TEST(ProductStagesTest, ChainsThatGoFromRankToRankAreThoseOfOne) {
  for (const Sizes& s : kSizes) {
    if (s.n <= 8) continue;
    const Matrix a = RandomCells(s.m, s.k, 3), b = RandomCells(s.k, s.n, 4);
    const Invocation call = ProductOf(a, b, 0);
    const Matrix expected = WholeProduct(call);
    EXPECT_TRUE(Matrix::SameCells(expected, reference::Multiply(a, b)));
    for (const int32_t ranks : {1, 2, 3, 8})
      for (const bool on_last : {false, true}) {
        SCOPED_TRACE(::testing::Message() << s.m << "x" << s.k << "x" << s.n << " on " << ranks);
        ExpectProduct(
            expected, call,
            {.rows = Distribution::SplitRows(s.m, ranks).split, .place = kInTurns, .on_last = on_last});
      }
  }
}

TEST(ProductStagesTest, StepsOnAGridContinueTheChains) {
  for (const Sizes& s : kSizes) {
    if (s.n <= 8) continue;
    const Matrix a = RandomCells(s.m, s.k, 3), b = RandomCells(s.k, s.n, 4);
    const Matrix expected = WholeProduct(ProductOf(a, b, 0));
    for (const int32_t ranks : {1, 2, 6, 8})
      for (int32_t columns = 1; columns <= ranks; ++columns) {
        if (ranks % columns != 0) continue;
        SCOPED_TRACE(::testing::Message()
                     << s.m << "x" << s.k << "x" << s.n << " on " << ranks << ", " << columns << " columns");
        const Invocation call = ProductOf(a, b, columns);
        ExpectProduct(expected, call, {.rows = EvenCuts(s.m, ranks), .place = kOnGridInSteps});
        if (columns == ranks)
          ExpectProduct(
              expected, call,
              {.rows = Distribution::SplitRows(s.m, ranks).split, .place = kOnGridInSteps, .on_last = true});
      }
  }
}

TEST(ProductStagesTest, PanelsOfAllRanksAreThoseOfOne) {
  for (const int64_t m : {1, 130})
    for (const Matrix& a : Forms(RandomCells(m, 70'000, 5, m == 1 ? 2 : 9)))
      for (const Matrix& b : Forms(RandomCells(70'000, 9, 6))) {
        if (m > 1 && (a.IsSparse() || b.IsSparse())) continue;
        const Invocation call = ProductOf(a, b, 0);
        const Matrix expected = WholeProduct(call);
        for (const int32_t ranks : {1, 3, 8})
          for (const bool on_last : {false, true})
            ExpectProduct(
                expected, call,
                {.rows = Distribution::SplitRows(m, ranks).split, .place = kByPanels, .on_last = on_last});
      }
}

// NaN, infinities and both zeros, which CSR operands skip or not as one rank does.
TEST(ProductStagesTest, SpecialValuesAreThoseOfOneRank) {
  Matrix a = RandomCells(150, 200, 7), b = RandomCells(200, 30, 8);
  double* const cells = a.mutable_data();
  cells[3] = std::numeric_limits<double>::quiet_NaN();
  cells[500] = std::numeric_limits<double>::infinity();
  cells[7'777] = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < 200; ++i) cells[900 + i] = -0.0;
  for (const Matrix& left : {a, Csr(a)})
    for (const Matrix& right : {b, Csr(b)}) {
      const Matrix expected = WholeProduct(ProductOf(left, right, 0));
      for (const int32_t columns : {2, 4})
        ExpectProduct(expected, ProductOf(left, right, columns),
                      {.rows = Distribution::SplitRows(150, 4).split});
      if (!left.IsSparse() && !right.IsSparse())
        ExpectProduct(expected, ProductOf(left, right, 0), {.rows = EvenCuts(150, 4), .place = kInTurns});
    }
}

// Floats: blocks of chains are whole on every rank.
TEST(ProductStagesTest, FloatsAreThoseOfOneRank) {
  for (const Sizes& s : {Sizes{130, 300, 5}, Sizes{130, 1000, 40}, Sizes{1, 70'000, 12}}) {
    const Matrix a = *Narrow(RandomCells(s.m, s.k, 1)), b = *Narrow(RandomCells(s.k, s.n, 2));
    for (const int32_t columns : {2, 4}) {
      Invocation call = ProductOf(a, b, columns);
      for (ValueInfo& info : call.infos) info.element_type = ElementType::kFloat32;
      const Matrix expected = WholeProduct(call);
      EXPECT_EQ(expected.element_type(), ElementType::kFloat32);
      call.SetInfos(*call.InferWith(call.scalars));
      const auto forms = StagedFormsOf(*call.op, call.node, call.infos);
      EXPECT_GE(forms.size(), 1u);
      for (const auto& [place, form] : forms)
        ExpectProduct(expected, call, {.rows = EvenCuts(s.m, 4), .place = place});
    }
  }
}

// ---- Bytes.

struct Sent {
  double bytes = 0;     // Of real cells.
  double foreseen = 0;  // By the cost model.
};

Sent BytesOf(const Sizes& s, int32_t ranks, int32_t columns, int32_t place, bool on_last) {
  Invocation call = ProductOf(RandomCells(s.m, s.k, 1), RandomCells(s.k, s.n, 2), columns);
  const Matrix expected = WholeProduct(call);
  SentBytes sent;
  ExpectProduct(expected, call,
                {.rows = EvenCuts(s.m, ranks), .place = place, .on_last = on_last, .sent = &sent});
  call.SetInfos(*call.InferWith(call.scalars));
  const StagedForm& form = *StagedFormAt(*call.op, place);
  return {sent.all, form.moved_bytes(call.node, call.infos, GridOf(call.node, ranks))};
}

double Bytes(int64_t rows, int64_t columns) {
  return 8.0 * static_cast<double>(rows) * static_cast<double>(columns);
}

// The least that ranks can send which each begin with an equal share of the rows of A and B, make whole
// chains of equal rectangles of cells, and end with a share of the rows of C: a rank receives what it does
// not have of the rows of A and the columns of B of its rectangle, and sends what it does not own of its
// cells. Of all ways to stand in a grid the best one.
double LeastOnGrid(const Sizes& s, int32_t ranks) {
  double least = std::numeric_limits<double>::infinity();
  for (int32_t columns = 1; columns <= ranks; ++columns) {
    if (ranks % columns != 0) continue;
    const double c = columns, r = ranks / columns, p = ranks;
    const double a = Bytes(s.m, s.k) * (1 / r - 1 / p), b = Bytes(s.k, s.n) * (1 / c - 1 / (p * c)),
                 out = Bytes(s.m, s.n) * (1 / p - 1 / (p * c));
    least = std::min(least, p * (a + b + out));
  }
  return least;
}

// Rows of A, B and C are multiples of 64 times the ranks, so that the cuts of B are even.
TEST(ProductStagesTest, AGridSendsTheLeastThatIsPossible) {
  struct Case {
    int32_t ranks, columns;
    Sizes sizes;
  };
  for (const Case& one :
       {Case{2, 2, {128, 512, 1024}}, Case{4, 2, {512, 1024, 512}}, Case{8, 2, {1024, 1024, 512}},
        Case{8, 4, {512, 1024, 1024}}, Case{64, 8, {1024, 4096, 1024}}, Case{1024, 32, {1024, 1024, 1024}}}) {
    SCOPED_TRACE(::testing::Message() << one.ranks << " ranks, " << one.columns << " columns");
    for (const int32_t place : {kOnGrid, kOnGridInSteps}) {
      if (place != kOnGrid && one.ranks > 64) continue;
      const Sent sent = BytesOf(one.sizes, one.ranks, one.columns, place, false);
      EXPECT_LE(sent.bytes, 1.1 * LeastOnGrid(one.sizes, one.ranks));
      EXPECT_NEAR(sent.bytes, sent.foreseen, 0.02 * sent.foreseen);
    }
  }
}

// Sums that go around: the ranks send the columns of A that others need, once, and the sums once to each next
// rank; of a small left operand that is next to nothing beside B, which stays.
TEST(ProductStagesTest, TurnsSendTheSumsOnceToEachNextRank) {
  for (const int32_t ranks : {2, 4, 8, 64}) {
    SCOPED_TRACE(::testing::Message() << ranks);
    const Sizes s{128, 4096, 64};
    const double least = Bytes(s.m, s.k) * (1 - 1.0 / ranks) + Bytes(s.m, s.n) * (ranks - 1);
    for (const bool on_last : {false, true}) {
      const Sent sent = BytesOf(s, ranks, 0, kInTurns, on_last);
      EXPECT_LE(sent.bytes, 1.1 * least + (on_last ? 0 : Bytes(s.m, s.n)));
      EXPECT_NEAR(sent.bytes, sent.foreseen, 0.05 * sent.foreseen);
    }
  }
}

// The ranges of rows that are complete stay as they are from turn to turn: nothing of them is copied.
TEST(ProductStagesTest, TurnsHandOnCompleteRangesUncopied) {
  Invocation call = ProductOf(RandomCells(160, 30, 1, 1), RandomCells(30, 20, 2, 1), 0);
  call.SetInfos(*call.InferWith(call.scalars));
  const StagedForm& form = *StagedFormAt(*call.op, kInTurns);
  const Split cuts = Distribution::SplitRows(160, 1).split;
  const Value* const inputs[] = {&*call.inputs[0], &*call.inputs[1]};
  std::vector<Value> held;
  for (int32_t stage = 0; HandsOn(form.stages[static_cast<size_t>(stage)]) || stage == 0; ++stage) {
    const Stage& now = form.stages[static_cast<size_t>(stage)];
    std::vector<const Value*> received;
    for (const Value& value : held) received.push_back(&value);
    std::vector<Value> made(now.outputs.size());
    ASSERT_TRUE(form.run({.form = form,
                          .node = call.node,
                          .input_infos = call.infos,
                          .stage = stage,
                          .rows = cuts,
                          .result_rows = cuts,
                          .inputs = inputs,
                          .received = received,
                          .context = call.context},
                         made)
                    .ok());
    if (HandsOn(now)) made.pop_back();
    for (size_t range = 1; range < held.size(); ++range)
      EXPECT_EQ(made[range].matrix().data(), held[range].matrix().data()) << stage << ", range " << range;
    held = std::move(made);
  }
  EXPECT_EQ(held.size(), 17u);
}

}  // namespace
}  // namespace heddle::ops

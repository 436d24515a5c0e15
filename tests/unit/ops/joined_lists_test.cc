// SPDX-License-Identifier: Apache-2.0
// Lists of tree nodes that are joined while panels pass: about log2 of them are held, and what finishes the
// reduction makes the bytes of one process.
#include "ops/reduction/joined_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "core/environment/random.h"
#include "ops/base/stages.h"
#include "ops/cells/storage.h"
#include "ops/frame/row_pieces.h"
#include "tests/unit/ops/run_operator.h"

namespace heddle::ops {
namespace {

using testing::Invocation;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Matrix Random(int64_t rows, int64_t columns, SeededRandom& random, uint64_t one_in = 1) {
  Matrix matrix = *Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < matrix.cells(); ++i)
    matrix.mutable_data()[i] =
        random.Below(one_in) == 0 ? static_cast<double>(random.Below(2'000'001)) / 1e6 - 1 : 0.0;
  return matrix;
}

// A reduction of which each rank has rows that pass in panels.
class InPanels {
 public:
  explicit InPanels(Invocation& call) : call_(call), form_(PartsFormOf(*call.op).second) {
    const Result<std::vector<ValueInfo>> inferred = call.InferWith(call.scalars);
    EXPECT_TRUE(inferred.ok()) << inferred.status().ToString();
    call.SetInfos(*inferred);
    units_ = form_->units(call.node, call.infos, 0);
    EXPECT_TRUE(units_.is_row);
    EXPECT_GT(units_.count, 1);
  }

  /// What a rank hands on of its rows, in panels of `height`.
  Value ListOf(int64_t begin, int64_t end, int64_t total, int64_t height) {
    JoinedLists lists;
    most_held_ = 0;
    const auto join = [&](const Value& left, const Value& right) { return Join(left, right); };
    for (int64_t row = begin; row < end; row += height) {
      const Value list = Partial(row, std::min(end, row + height), total);
      // A matrix of the store would be handed on to another panel, too: it must not be written over.
      const Matrix& nodes = list.matrix();
      const std::vector<double> before(nodes.data(), nodes.data() + nodes.cells());
      const Status added = lists.Add(list, join);
      EXPECT_TRUE(added.ok()) << added.ToString();
      EXPECT_EQ(std::memcmp(before.data(), nodes.data(), before.size() * sizeof(double)), 0);
      most_held_ = std::max(most_held_, lists.payloads());
    }
    const Result<std::vector<Value>> left = lists.Finish(join);
    EXPECT_TRUE(left.ok()) << left.status().ToString();
    EXPECT_EQ(lists.payloads(), 0);
    std::vector<const Value*> pointers;
    for (const Value& one : *left) pointers.push_back(&one);
    return *JoinRows(pointers);
  }
  Value Finish(const std::vector<Value>& lists) {
    std::vector<const Value*> pointers;
    for (const Value& list : lists) pointers.push_back(&list);
    const Value all = *JoinRows(pointers);
    const Value* const input = &all;
    const Result<Value> result = CatalogKernels().Run({.node = call_.node,
                                                       .phase = Phase::kFinish,
                                                       .inputs = {&input, 1},
                                                       .input_infos = call_.infos,
                                                       .total_rows = call_.infos[0].shape.rows,
                                                       .context = call_.context});
    EXPECT_TRUE(result.ok()) << result.status().ToString();
    return *result;
  }
  int64_t most_held() const { return most_held_; }
  const PayloadUnits& units() const { return units_; }

 private:
  Value Partial(int64_t begin, int64_t end, int64_t total) {
    std::vector<Value> pieces(call_.inputs.size());
    std::vector<const Value*> pointers;
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = *call_.inputs[i];
      if (InputUseOf(call_.node, call_.infos, static_cast<int>(i)) == InputUse::kRows)
        pieces[i] = *SliceRows(pieces[i], begin, end);
      pointers.push_back(&pieces[i]);
    }
    const Result<Value> list = CatalogKernels().Run({.node = call_.node,
                                                     .phase = Phase::kPartial,
                                                     .inputs = pointers,
                                                     .input_infos = call_.infos,
                                                     .row_begin = begin,
                                                     .row_end = end,
                                                     .total_rows = total,
                                                     .context = call_.context});
    EXPECT_TRUE(list.ok()) << list.status().ToString();
    return *list;
  }

  Result<Value> Join(const Value& left, const Value& right) {
    const Value* const lists[] = {&left, &right};
    const Split no_cuts;
    const StagePlace place{.form = *form_, .stage = kJoinParts, .rows = no_cuts, .result_rows = no_cuts};
    return CatalogKernels().Run({.node = call_.node,
                                 .phase = Phase::kStage,
                                 .inputs = lists,
                                 .input_infos = call_.infos,
                                 .row_begin = 0,
                                 .row_end = units_.count,
                                 .total_rows = units_.count,
                                 .context = call_.context,
                                 .stage = &place});
  }

  Invocation& call_;
  const StagedForm* const form_;
  PayloadUnits units_;
  int64_t most_held_ = 0;
};

// Panels of all heights, on one rank and on several. `is_joined`: no node has to stay apart.
void ExpectSame(Invocation call, int64_t rows, uint64_t seed, bool is_joined = true) {
  const Result<Value> whole = call.RunRows(0, 0, 0);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  InPanels panels(call);
  const int64_t granule = Granule(rows);
  for (int ranks = 1; ranks <= 5; ranks += 2)
    for (int64_t height = granule; height < 2 * rows; height *= 2) {
      SCOPED_TRACE(::testing::Message() << call.node.op << ", seed " << seed << ", " << rows << " rows on "
                                        << ranks << " ranks, panels of " << height);
      std::vector<Value> lists;
      for (int rank = 0; rank < ranks; ++rank) {
        const int64_t begin = CutRow(rows, rank, ranks), end = CutRow(rows, rank + 1, ranks);
        if (begin == end) continue;
        lists.push_back(panels.ListOf(begin, end, rows, height));
        if (!is_joined) continue;
        const HeldPayloads held = PayloadsHeld(begin / granule, CeilDivide(end, granule), height / granule);
        // Of a last granule that is not full, the nodes are more.
        const int64_t more = std::bit_width(static_cast<uint64_t>(granule));
        EXPECT_LE(panels.most_held(), held.most + more);
        EXPECT_LE(lists.back().matrix().rows(), ranks == 1 ? 1 : held.left + more);
      }
      const Value made = panels.Finish(lists);
      ASSERT_TRUE(made.IsMatrix());
      EXPECT_EQ(made.matrix().shape(), whole->matrix().shape());
      EXPECT_TRUE(Matrix::SameCells(made.matrix(), whole->matrix()));
    }
}

constexpr int64_t kRows[] = {65, 200, 1000, 2049, 5001};

TEST(JoinedListsTest, ColumnAggregates) {
  constexpr const char* kAggregates[] = {"colSums",  "colMeans", "colMins", "colMaxs",
                                         "colProds", "colVars",  "colSds"};
  for (uint64_t seed = 0; seed < 21; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(5)], columns = 9 + static_cast<int64_t>(random.Below(60));
    Matrix x = Random(rows, columns, random, 1 + random.Below(3));
    if (random.Below(3) == 0) x = *AsSparse(x);
    ExpectSame(Invocation(kAggregates[seed % 7], {Value(x)}), rows, seed);
  }
}

TEST(JoinedListsTest, TransposedProducts) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(5)], n = 9 + static_cast<int64_t>(random.Below(50));
    const int64_t k = random.Below(2) == 0 ? 1 + static_cast<int64_t>(random.Below(8))
                                           : 9 + static_cast<int64_t>(random.Below(40));
    Matrix x = Random(rows, n, random, 1 + random.Below(3)), y = Random(rows, k, random);
    if (random.Below(3) == 0) x = *AsSparse(x);
    ExpectSame(Invocation("t%*%", {Value(x), Value(y)}), rows, seed);
  }
}

TEST(JoinedListsTest, SymmetricProducts) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = kRows[random.Below(5)], n = 9 + static_cast<int64_t>(random.Below(60));
    Invocation call("t%*%", {Value(Random(rows, n, random)), std::nullopt});
    call.inputs[1] = call.inputs[0];
    call.infos[1] = call.infos[0];
    call.node.inputs = {0, 0};
    ExpectSame(call, rows, seed);
  }
}

// Sums that leave the range of doubles keep their nodes; where cells are not finite themselves, nodes are
// joined as any others.
TEST(JoinedListsTest, SumsBeyondTheLargestDouble) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    SeededRandom random(seed);
    const int64_t rows = 65 + static_cast<int64_t>(random.Below(1500)), columns = 12;
    Matrix x = Random(rows, columns, random);
    double* const cells = x.mutable_data();
    const bool overflows = seed % 3 != 0;
    for (int64_t i = 0; i < rows && overflows; ++i) {
      if (random.Below(2) == 0) cells[i * columns + 1] = (i % 2 == 0 ? 1 : -1) * 1.7e308;
      cells[i * columns + 5] = (2 * i < rows ? 1 : -1) * 1.7e308;
      cells[i * columns + 7] = 1e200 * cells[i * columns + 7];
    }
    cells[3] = kInfinity;
    cells[(rows - 1) * columns + 4] = std::numeric_limits<double>::quiet_NaN();
    cells[rows / 2 * columns + 3] = -kInfinity;
    constexpr const char* kAggregates[] = {"colSums", "colMeans", "colVars", "colSds"};
    ExpectSame(Invocation(kAggregates[seed % 4], {Value(x)}), rows, seed, /*is_joined=*/!overflows);
  }
}

TEST(JoinedListsTest, OfTwoHundredPanelsNineAreHeld) {
  const HeldPayloads held = PayloadsHeld(0, 200, 1);
  EXPECT_EQ(held.most, 8) << "127 panels are 7 nodes, and there is a new one";
  EXPECT_EQ(held.of_list, 1);
  EXPECT_EQ(held.left, 3) << "128 + 64 + 8";
  // Panels that do not begin at a multiple of their height are several nodes.
  EXPECT_EQ(PayloadsHeld(3, 19, 4).of_list, 3);
}

}  // namespace
}  // namespace heddle::ops

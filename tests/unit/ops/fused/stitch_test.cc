// SPDX-License-Identifier: Apache-2.0
// One pass that leaves several results of several kinds gives the bytes of its operators run one by one.
#include <random>

#include "body_builder.h"

namespace heddle::ops::testing {
namespace {

class StitchShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Awkward, StitchShapes, ::testing::ValuesIn(kShapes), [](const auto& info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns);
});

// k-means: distances, the nearest centre, and what moves the centres.
TEST_P(StitchShapes, AssignmentsAndSums) {
  const auto [m, n] = GetParam();
  if (n > 1000) return;
  for (const int64_t k : {3, 10}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(m, n, 1))), centres = body.Input(Value(Cells(n, k, 2))),
                 norms = body.Input(Value(Cells(1, k, 3)));
    const NodeId distances = body.Op(
        "+", {body.Op("*", {body.Literal(Scalar(int64_t{-2})), body.Op("%*%", {x, centres})}), norms});
    const NodeId nearest = body.Op("rowMins", {distances});
    const NodeId chosen = body.Op("<=", {distances, nearest});
    const NodeId shares = body.Op("/", {chosen, body.Op("rowSums", {chosen})});
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({nearest, shares, body.Op("sum", {nearest}), body.Op("colSums", {shares}),
                 body.Op("t%*%", {shares, x})});
    ASSERT_TRUE(Verify(body.fused()).ok()) << Verify(body.fused()).ToString();
    body.ExpectSame("k-means k=" + std::to_string(k));
  }
}

// Reductions whose leaves have different heights, beside values that are read again.
TEST_P(StitchShapes, EveryKindOfResult) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 4, true))), y = body.Input(Value(Cells(m, n, 5))),
               w = body.Input(Value(Cells(m, 1, 6)));
  const NodeId difference = body.Op("-", {x, y});
  const NodeId weighted = body.Op("*", {difference, w});
  std::vector<NodeId> roots = {difference, body.Op("sum", {weighted}), body.Op("max", {difference}),
                               body.Op("rowSums", {weighted}), body.Op("exp", {w})};
  if (n <= 8192) {  // Else leaves are shorter than the lanes of narrow column sums.
    roots.push_back(body.Op("colSums", {weighted}));
    roots.push_back(body.Op("colMins", {w}));
    roots.push_back(body.Op("t%*%", {y, w}));
  } else {
    roots.erase(roots.begin() + 1);
  }
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish(roots);
  body.ExpectSame("every kind");
}

// Moments are those of whole leaves, which are higher than those of other reductions.
TEST_P(StitchShapes, MeansAndDeviationsOfColumns) {
  const auto [m, n] = GetParam();
  if (n > 8192) return;
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 15, true))), y = body.Input(Value(Cells(m, n, 16)));
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish({body.Op("colMeans", {x}), body.Op("colSds", {x}), body.Op("colVars", {y}),
               body.Op("sum", {body.Op("*", {x, y})})});
  body.ExpectSame("moments");
}

TEST_P(StitchShapes, SeveralRowsAndNothingElse) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  const NodeId g = body.Input(Value(Cells(m, n, 7))), v = body.Input(Value(Cells(m, n, 8)));
  const NodeId rate = body.Input(Value(Scalar(0.1)));
  const NodeId moved = body.Op("-", {body.Op("*", {v, body.Literal(Scalar(0.9))}), body.Op("*", {g, rate})});
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish({moved, body.Op("+", {g, moved}), body.Op("abs", {moved})});
  body.ExpectSame("momentum");
}

TEST(StitchTest, ProductsOfAllWidths) {
  for (const int64_t k : {1, 2, 9, 70}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(3000, 40, 9))), b = body.Input(Value(Cells(40, k, 10)));
    const NodeId p = body.Op("%*%", {x, b});
    const NodeId e = body.Op("sigmoid", {p});
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({e, body.Op("t%*%", {x, e}), body.Op("t%*%", {x, x}), body.Op("sum", {p}),
                 body.Op("rowIndexMax", {e})});
    body.ExpectSame("k=" + std::to_string(k));
  }
}

// Sums of all cells and of few columns have different lanes.
TEST(StitchTest, SumsOfAllCellsAndOfFewColumns) {
  for (const int64_t n : {1, 3, 8}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(1000, n, 14)));
    const NodeId e = body.Op("exp", {x});
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({body.Op("sum", {e}), body.Op("colSums", {e}), body.Op("max", {body.Op("abs", {x})})});
    body.ExpectSame("n=" + std::to_string(n));
  }
}

TEST(StitchTest, ResultsOfLongRows) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(5, 70000, 13)));
  const NodeId twice = body.Op("+", {x, x});
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish({twice, body.Op("colSums", {twice})});
  body.ExpectSame("rows and sums of columns");
  body.Finish({twice, body.Op("exp", {x}), body.Op("sum", {twice})});
  body.ExpectSame("two full results and a sum");
}

TEST(StitchTest, ReductionsCannotBeReadInside) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(100, 5, 11)));
  const NodeId means = body.Op("colMeans", {x});
  body.fused().kind = FusionTemplate::kStitch;
  body.Finish({means, body.Op("-", {x, means})});
  EXPECT_EQ(CanRunFused(body.fused()).code(), StatusCode::kUnimplemented);
  BodyBuilder other;
  const NodeId z = other.Input(Value(Cells(100, 5, 12)));
  const NodeId sum = other.Op("sum", {z});
  other.fused().kind = FusionTemplate::kStitch;
  other.Finish({other.Op("*", {z, sum}), sum});
  EXPECT_EQ(CanRunFused(other.fused()).code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace heddle::ops::testing

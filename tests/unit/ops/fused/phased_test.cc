// SPDX-License-Identifier: Apache-2.0
// Several operators that run as one, phase by phase, give the bytes of its operators run one by one.
#include <random>

#include "body_builder.h"

namespace heddle::ops::testing {
namespace {

class PhasedShapes : public ::testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Awkward, PhasedShapes, ::testing::ValuesIn(kShapes), [](const auto& info) {
  return std::to_string(info.param.rows) + "x" + std::to_string(info.param.columns);
});

TEST_P(PhasedShapes, BatchNorm) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(m, n, 1))), g = body.Input(Value(Cells(1, n, 2)));
  const NodeId centred = body.Op("-", {x, body.Op("colMeans", {x})});
  const NodeId variance = body.Op("colMeans", {body.Op("^", {centred, body.Literal(Scalar(int64_t{2}))})});
  const NodeId deviation = body.Op("sqrt", {body.Op("+", {variance, body.Literal(Scalar(1e-5))})});
  body.Finish({body.Op("*", {body.Op("/", {centred, deviation}), g}), variance});
  body.ExpectSamePhased("batch norm");
}

TEST_P(PhasedShapes, NormalisedByRowsAndColumnsInTurn) {
  const auto [m, n] = GetParam();
  BodyBuilder body;
  NodeId x = body.Op("exp", {body.Input(Value(Cells(m, n, 3)))});
  for (int i = 0; i < 3; ++i) {
    x = body.Op("/", {x, body.Op("rowSums", {x})});
    x = body.Op("/", {x, body.Op("colSums", {x})});
  }
  body.Finish({x});
  body.ExpectSamePhased("Sinkhorn");
}

TEST(PhasedTest, ScalarsBetweenMatrices) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(500, 30, 4))), rate = body.Input(Value(Scalar(0.25)));
  const NodeId norm = body.Op("sqrt", {body.Op("sum", {body.Op("*", {x, x})})});
  const NodeId factor = body.Op("/", {rate, norm});
  body.Finish({body.Op("*", {x, factor}), norm});
  body.ExpectSamePhased("clipped by its norm");
}

// Of many small operators of one phase each thread takes some.
TEST(PhasedTest, UpdatesOfManyParameters) {
  BodyBuilder body;
  std::vector<NodeId> roots;
  for (uint32_t i = 0; i < 20; ++i) {
    const int64_t rows = 1 + 7 * i, columns = i % 3 == 0 ? 1 : 64;
    const NodeId w = body.Input(Value(Cells(rows, columns, 10 + i))),
                 g = body.Input(Value(Cells(rows, columns, 40 + i))),
                 m = body.Input(Value(Cells(rows, columns, 70 + i)));
    const NodeId moment = body.Op(
        "+", {body.Op("*", {m, body.Literal(Scalar(0.9))}), body.Op("*", {g, body.Literal(Scalar(0.1))})});
    roots.push_back(moment);
    roots.push_back(body.Op("-", {w, body.Op("*", {moment, body.Literal(Scalar(0.01))})}));
  }
  body.Finish(roots);
  body.ExpectSamePhased("momentum");
}

// A kernel may write over a value that nobody reads any more, and over no other one.
TEST(PhasedTest, ValuesAreWrittenOverOnlyByTheirLastReader) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(40, 3, 5))), row = body.Input(Value(Cells(1, 3, 6)));
  const NodeId twice = body.Op("*", {x, body.Literal(Scalar(2.0))});
  const NodeId longer = body.Op("rbind", {twice, row}), other = body.Op("rbind", {twice, x});
  const NodeId longest = body.Op("rbind", {longer, row});
  const NodeId again = body.Op("rbind", {longest, row});
  body.Finish({body.Op("colSums", {twice}), other, longest, again});
  body.ExpectSamePhased("rows are appended");
}

TEST(PhasedTest, OperatorsOfSeveralResults) {
  BodyBuilder inner;
  const NodeId y = inner.Input(Value(Cells(300, 8, 7)));
  const NodeId e = inner.Op("exp", {y});
  inner.fused().kind = FusionTemplate::kStitch;
  inner.Finish({e, inner.Op("colSums", {e})});
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(300, 8, 7)));
  Node fused{.op = "fusedSeveral", .inputs = {x}, .info = ValueInfo::OfTuple()};
  fused.fused = std::make_shared<const FusedOperator>(inner.fused());
  for (const NodeId root : inner.fused().roots) fused.results.push_back(inner.info(root));
  const NodeId tuple = body.fused().body.Add(std::move(fused));
  const NodeId values = body.fused().body.Add(ResultOf(body.fused().body, tuple, 0)),
               sums = body.fused().body.Add(ResultOf(body.fused().body, tuple, 1));
  body.Finish({body.Op("/", {values, sums})});
  BodyBuilder plain;
  const NodeId z = plain.Op("exp", {plain.Input(Value(Cells(300, 8, 7)))});
  plain.Finish({plain.Op("/", {z, plain.Op("colSums", {z})})});
  const Result<std::vector<Value>> actual = body.RootsPhased(2);
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_TRUE(Matrix::SameCells((*actual)[0].matrix(), plain.RunOneByOne().matrix()));
}

TEST(PhasedTest, CancelledBetweenOperators) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(10, 3, 8)));
  body.Finish({body.Op("exp", {body.Op("colSums", {x})})});
  const std::atomic<bool> cancelled = true;
  body.context().cancelled = &cancelled;
  EXPECT_EQ(body.RootsPhased(2).status().code(), StatusCode::kCancelled);
}

TEST(PhasedTest, BrokenOperatorsAreRefused) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(10, 3, 8)));
  const NodeId sums = body.Op("colSums", {x});
  for (const std::vector<NodeId>& roots : {std::vector<NodeId>{}, {sums, sums}, {x}, {9}})
    EXPECT_EQ(Verify(PhasedOperator{body.fused().body, roots}).code(), StatusCode::kInternal);
  EXPECT_FALSE(PhasedOperator::Parse("phased roots=(%1)\n%0 = ").ok());
}

}  // namespace
}  // namespace heddle::ops::testing

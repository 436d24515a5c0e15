// SPDX-License-Identifier: Apache-2.0
// Random bodies, and long rows into every root: fused against one by one.
#include "body_builder.h"
#include "ops/fused/fused.h"
#include "ops/fused/program/tile_program.h"
#include "random_body.h"
#include "tests/support/all_plans.h"

namespace heddle::ops::testing {
namespace {

TEST(RandomBodiesTest, AgreeWithTheirOperators) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 600 && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() <= 60000) ran += RandomBodyAgrees(shape, seed, 11) ? 1 : 0;
  }
  EXPECT_GT(ran, 250);
}

TEST(RandomBodiesTest, StitchesAgreeWithTheirOperators) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 700 && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() <= 60000) ran += RandomBodyAgrees(shape, seed, 11, Roots::kSeveral) ? 1 : 0;
  }
  EXPECT_GT(ran, 300);
}

// Sums that are computed again (docs/numerics.md, section 3) are those of the plain operators.
TEST(RandomBodiesTest, LargeCellsAgreeWithTheirOperators) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() > 60000) continue;
    ran += RandomBodyAgrees(shape, seed, 4, Roots::kOne, Sizes::kLarge) ? 1 : 0;
    ran += RandomBodyAgrees(shape, seed, 5, Roots::kSeveral, Sizes::kLarge) ? 1 : 0;
  }
  EXPECT_GT(ran, 200);
}
TEST(RandomBodiesTest, LargeCellsOfLongRowsAgreeWithTheirOperators) {
  const uint32_t count = testing_support::RunsAllPlans() ? 60 : 21;
  int ran = 0;
  for (uint32_t seed = 0; seed < count && !HasFailure(); ++seed) {
    const Shape shapes[] = {{1, 200003}, {3, 131072}, {5, 70000}};
    ran += RandomBodyAgrees(shapes[seed % 3], seed, 4, Roots::kOne, Sizes::kLarge) ? 1 : 0;
    ran += RandomBodyAgrees(shapes[seed % 3], seed, 5, Roots::kSeveral, Sizes::kLarge) ? 1 : 0;
  }
  EXPECT_GT(ran, static_cast<int>(count) / 2);
}

// Every kind of root of rows that are cut by columns, on workers that have leaves of their own, beside
// vectors of both formats.
TEST(RandomBodiesTest, EveryRootOfLongRows) {
  for (const char* root :
       {"", "sum", "mean", "min", "rowSums", "rowMeans", "rowMaxs", "colSums", "colMeans", "colMaxs"}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{130, 65540}, {3, 131073}, {1, 70001}}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(m, n, 1, m < 100))), row = body.Input(Value(Cells(1, n, 2)));
      const NodeId column = body.Input(Value(Cells(m, 1, 3))),
                   sparse = body.Input(Value(*ToSparse(Cells(m, 1, 4, false, 0.7))));
      const NodeId scaled = body.Op("*", {body.Op("+", {x, m == 1 ? x : sparse}), body.Op("exp", {column})});
      const NodeId chain = body.Op("-", {scaled, m == 1 ? x : row});
      body.Finish({*root == 0 ? chain : body.Op(root, {chain})});
      const Result<TileProgram> program = Lower(body.fused());
      ASSERT_TRUE(program.ok()) << root << ": " << program.status().ToString();
      EXPECT_EQ(program->cut_columns, n) << root;
      body.ExpectSame(fmt::format("{} of {} x {}", root, m, n));
    }
  }
  BodyBuilder several;
  const NodeId x = several.Input(Value(Cells(130, 65540, 1))), y = several.Input(Value(Cells(130, 65540, 2)));
  several.Finish(
      {several.Op("sum", {several.Op("*", {x, y})}), several.Op("max", {several.Op("-", {x, y})})});
  EXPECT_EQ(Lower(several.fused())->cut_columns, 65540);
  several.ExpectSame("two sums");
}

// Rows longer than a column chunk are computed chunk by chunk, a single one, too; the last shape has two
// leaves of a column sum.
TEST(RandomBodiesTest, AgreeOnLongRows) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 120 && !HasFailure(); ++seed) {
    const Shape shapes[] = {{1, 65537}, {1, 200003}, {3, 131072}, {2, 70001}, {66, 65540}};
    ran += RandomBodyAgrees(shapes[seed % 20 == 19 ? 4 : seed % 4], seed, 5) ? 1 : 0;
  }
  EXPECT_GT(ran, 70);
}

TEST(RandomBodiesTest, StitchesAgreeOnLongRows) {
  const uint32_t count = testing_support::RunsAllPlans() ? 200 : 60;
  int ran = 0;
  for (uint32_t seed = 0; seed < count && !HasFailure(); ++seed) {
    const Shape shapes[] = {{1, 200000}, {5, 70000}, {2, 131073}, {130, 65540}};
    ran += RandomBodyAgrees(shapes[seed % 20 == 19 ? 3 : seed % 3], seed, 8, Roots::kSeveral) ? 1 : 0;
  }
  EXPECT_GT(ran, static_cast<int>(count) / 5);
}

// Fewer rows than leaves, each nearly a column chunk.
TEST(RandomBodiesTest, AgreeOnFewWideRows) {
  int ran = 0;
  for (uint32_t seed = 0; seed < 12 && !HasFailure(); ++seed) {
    ran += RandomBodyAgrees({64, 30000}, seed, 6) ? 1 : 0;
    ran += RandomBodyAgrees({64, 30000}, seed, 6, Roots::kSeveral) ? 1 : 0;
  }
  EXPECT_GT(ran, 8);
}

}  // namespace
}  // namespace heddle::ops::testing

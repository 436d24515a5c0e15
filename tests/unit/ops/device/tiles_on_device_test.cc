// SPDX-License-Identifier: Apache-2.0
// Fused operators have the same bytes on a device as on the processor. On machines without an OpenCL device
// (Debian: pocl-opencl-icd) these tests are skipped.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "device_comparison.h"
#include "tests/unit/ops/fused/random_body.h"

namespace heddle::ops::testing {
namespace {

// HEDDLE_FUSED_ON_DEVICE=1: every test of fused operators runs them on the device, too, and the end tells why
// some of them have not run there.
class EveryTestOnDevice : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* const asked = std::getenv("HEDDLE_FUSED_ON_DEVICE");
    ComputeDevice* const device = asked == nullptr ? nullptr : FirstDevice();
    if (device != nullptr) comparison_.emplace(*device);
  }
  void TearDown() override {
    if (!comparison_) return;
    fmt::print("{} calls on the device\n", comparison_->ran());
    for (const auto& [why, count] : comparison_->left_to_host()) fmt::print("{} not: {}\n", count, why);
    const auto& tests = *::testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() > tests.total_test_count() / 2) {
      EXPECT_GT(comparison_->ran(), 0);
    }
  }

 private:
  std::optional<DeviceComparison> comparison_;
};
const auto* const every_test_on_device = ::testing::AddGlobalTestEnvironment(new EveryTestOnDevice);

// Each kind of root with some of the shapes: compiling a kernel takes longer than all else.
TEST_F(TilesOnDeviceTest, CellsRowsAndReductions) {
  const Shape shapes[] = {{65, 1}, {130, 3}, {999, 8}, {1025, 9}, {129, 100}, {9, 20000}};
  size_t turn = 0;
  for (const char* root : {"", "sum", "mean", "min", "max", "prod", "rowSums", "rowMeans", "rowMaxs",
                           "rowMins", "rowProds", "colSums", "colMeans", "colMaxs", "colMins", "colProds"}) {
    for (size_t k = 0; k < (testing_support::RunsAllPlans() ? std::size(shapes) : 1); ++k, ++turn) {
      const Shape& shape = shapes[turn % std::size(shapes)];
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 1, *root == 'm')));
      const NodeId y = body.Input(Value(Cells(shape.rows, 1, 2)));
      const NodeId cells = body.Op("-", {body.Op("*", {x, y}), body.Literal(Scalar(0.3))});
      body.Finish({*root == 0 ? cells : body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 50);
}

TEST_F(TilesOnDeviceTest, Products) {
  for (const Shape& shape : {Shape{130, 3}, Shape{1025, 9}, Shape{129, 100}})
    for (const int64_t k : {1, 3, 20}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 1)));
      const NodeId v = body.Input(Value(Cells(shape.columns, k, 2)));
      const NodeId w = body.Input(Value(Cells(shape.rows, 1, 3)));
      body.Finish({body.Op("t%*%", {x, body.Op("*", {body.Op("%*%", {x, v}), w})})});
      body.ExpectSame(fmt::format("t(X) (w * (X V)) of {}, {}", shape, k));
      if (HasFailure()) return;
    }
  EXPECT_GT(ran(), 20);
}

// Sums that are finite in every leaf and leave the range of doubles where leaves are joined are the host's.
TEST_F(TilesOnDeviceTest, SumsThatOverflowWhereLeavesAreJoined) {
  Matrix x = *FilledMatrix(2048, 3, 1.0);
  for (int64_t i = 0; i < x.rows(); i += 64) x.mutable_data()[i * 3] = i % 128 == 0 ? 1.7e308 : -1.7e308;
  for (const char* root : {"sum", "mean", "colSums"}) {
    // Of both signs, or of one.
    BodyBuilder body;
    const NodeId in = body.Input(Value(x));
    body.Finish({body.Op(root, {body.Op(*root == 'm' ? "abs" : "round", {in})})});
    body.ExpectSame(fmt::format("{} of large cells", root));
  }
  EXPECT_TRUE(left_to_host().contains("a sum is infinite or NaN"));
}

// The place of the largest cell of a row, and what goes by moments: two passes over the cells.
TEST_F(TilesOnDeviceTest, PlacesAndMoments) {
  size_t turn = 0;
  for (const Shape& shape : {Shape{130, 3}, Shape{1025, 9}}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 15, ++turn % 2 == 0))),
                 y = body.Input(Value(Cells(shape.rows, shape.columns, 16)));
    const NodeId cells = body.Op("-", {x, y});
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({body.Op("rowIndexMax", {cells}), body.Op("rowIndexMin", {x}), body.Op("rowVars", {y}),
                 body.Op("rowSds", {body.Op("*", {y, y})}), body.Op("colVars", {y}), body.Op("colSds", {y}),
                 body.Op("max", {y}), body.Op("var", {y}), body.Op("sd", {x})});
    body.ExpectSame(fmt::format("places and moments of {}", shape));
    if (HasFailure()) return;
  }
  EXPECT_GT(ran(), 5);
}

// Chains of floats over blocks of 64 rows, of which tiles have fewer where their rows are wide.
TEST_F(TilesOnDeviceTest, ProductsOfFloatsInBlocks) {
  BodyBuilder body;
  const NodeId x = body.Input(Value(Cells(1000, 300, 1))), y = body.Input(Value(Cells(1000, 9, 2)));
  body.Finish({body.Op("t%*%", {body.Op("abs", {x}), y})});
  body.ExpectSame("t(abs(X)) Y of floats");
  EXPECT_GT(ran(), 1);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// Rows of a CSR matrix by their entries: aggregates, products from both sides, and rows written out.
TEST_F(TilesOnDeviceTest, RowsOfCsrMatrices) {
  for (const Shape& shape : {Shape{130, 3}, Shape{1025, 40}}) {
    for (const int64_t k : {1, 3, 20}) {
      if ((k == 3) != (shape.columns == 3) && !testing_support::RunsAllPlans()) continue;
      BodyBuilder body;
      const NodeId w = body.Input(Value(Cells(shape.rows, 1, 3)));
      const NodeId x =
          body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, k == 20, k == 1 ? 0.1 : 0.02))));
      const NodeId v = body.Input(Value(Cells(shape.columns, k, 2)));
      const NodeId product = body.Op("%*%", {x, v});
      body.fused().kind = FusionTemplate::kStitch;
      std::vector<NodeId> roots = {product, body.Op("rowSums", {x}),
                                   body.Op("t%*%", {x, body.Op("*", {product, w})})};
      if (k == 3)
        roots = {body.Op("*", {product, w}), body.Op("rowMaxs", {x}), body.Op("rowMeans", {x}),
                 body.Op("rowMins", {x})};
      if (k == 20)
        roots = {product, body.Op("rowIndexMax", {x}), body.Op("rowProds", {x}), body.Op("-", {x, w})};
      body.Finish(roots);
      body.ExpectSame(fmt::format("products of CSR {}, {}", shape, k));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 5);
}

// What goes along the entries of a CSR driver: cells beside rows, columns, dense cells and a sampled product,
// and what they add up to.
TEST_F(TilesOnDeviceTest, EntriesOfACsrDriver) {
  for (const Shape& shape : {Shape{1025, 40}, Shape{130, 3}}) {
    for (const char* root : {"sum", "colSums", "rowSums", "%*%", "t%*%"}) {
      if (shape.columns == 3 && std::string_view(root) != "sum" && std::string_view(root) != "colSums" &&
          !testing_support::RunsAllPlans())
        continue;
      BodyBuilder body;
      const NodeId x = body.Input(Value(*ToSparse(Cells(shape.rows, shape.columns, 1, false, 0.1))));
      const NodeId y = body.Input(Value(Cells(shape.rows, shape.columns, 2)));
      const NodeId w = body.Input(Value(Cells(shape.rows, 1, 3))),
                   v = body.Input(Value(Cells(1, shape.columns, 4)));
      NodeId cells = body.Op("*", {body.Op("*", {x, y}), body.Op("abs", {x})});
      if (*root == 's')
        cells =
            body.Op("*", {x, body.Op("sampledProduct", {x, body.Input(Value(Cells(shape.rows, 11, 5))),
                                                        body.Input(Value(Cells(shape.columns, 11, 6)))})});
      if (*root == 'c') cells = body.Op("*", {body.Op("*", {x, w}), v});
      if (*root == '%')
        body.Finish({body.Op("%*%", {cells, body.Input(Value(Cells(shape.columns, 3, 7)))})});
      else if (*root == 't')
        body.Finish({body.Op("t%*%", {cells, w})});
      else
        body.Finish({body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} along entries of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 10);
}

// Rows longer than a column chunk: cells, aggregates of rows, of columns and of all, of dense rows and of CSR
// ones written out, in one phase.
TEST_F(TilesOnDeviceTest, LongRows) {
  const Shape shapes[] = {{2, 65545}, {1, 140000}, {3, 65537}};
  size_t turn = 0;
  for (const char* root : {"", "sum", "mean", "max", "prod", "rowSums", "rowMeans", "rowMaxs", "rowProds",
                           "colSums", "colMins"}) {
    for (size_t k = 0; k < (testing_support::RunsAllPlans() ? std::size(shapes) : 1); ++k, ++turn) {
      const std::string_view name = root;
      // Two leaves of columns.
      const Shape shape = name == "colSums" ? Shape{65, 65537} : shapes[turn % std::size(shapes)];
      const bool is_sparse = turn % 4 == 3;
      BodyBuilder body;
      const Matrix dense = Cells(shape.rows, shape.columns, 1, name == "rowMaxs", is_sparse ? 0.1 : 1);
      const NodeId x = body.Input(Value(is_sparse ? *ToSparse(dense) : dense));
      // A column of which each row has one cell for all its tiles.
      const Matrix column = Cells(shape.rows, 1, 2);
      const NodeId y = body.Input(Value(turn % 3 == 2 ? *ToSparse(column) : column));
      const NodeId v = body.Input(Value(Cells(1, shape.columns, 3)));
      const NodeId cells = body.Op("-", {body.Op("*", {x, y}), v});
      body.Finish({name.empty() ? cells : body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 30);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// Aggregates of long rows that later phases read, beside other results: softmax with values that are computed
// once and saved, in an array or in the rows of a result.
TEST_F(TilesOnDeviceTest, PhasesOfLongRows) {
  for (const Shape& shape : {Shape{3, 65600}, Shape{5, 65540}, Shape{2, 131073}}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 9))),
                 v = body.Input(Value(Cells(1, shape.columns, 10)));
    const NodeId e = body.Op("exp", {body.Op("-", {x, body.Op("rowMaxs", {x})})});
    const NodeId p = body.Op("/", {e, body.Op("rowSums", {e})});
    if (shape.rows == 3) {
      body.Finish({body.Op("rowSums", {body.Op("*", {e, body.Op("rowMaxs", {body.Op("sqrt", {p})})})})});
      body.ExpectSame("saved in an array");
      body.Finish({body.Op("sum", {p})});
    } else {
      body.fused().kind = FusionTemplate::kStitch;
      body.Finish({shape.rows == 5 ? body.Op("colSums", {p}) : e, p,
                   body.Op("rowMins", {body.Op("*", {p, v})}), body.Op("sum", {e}),
                   body.Op("+", {body.Op("rowMeans", {x}), body.Op("rowMaxs", {x})})});
    }
    body.ExpectSame(fmt::format("softmax of {}", shape));
    if (HasFailure()) return;
  }
  EXPECT_GT(ran(), 10);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// Variances of long rows: each chunk's behind its tiles, beside other aggregates and sums of columns.
TEST_F(TilesOnDeviceTest, VariancesOfLongRows) {
  for (const Shape& shape : {Shape{3, 65600}, Shape{5, 65540}, Shape{2, 131073}}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 9)));
    const NodeId sds = body.Op("rowSds", {x}), vars = body.Op("rowVars", {x});
    const NodeId y = body.Op("/", {body.Op("-", {x, body.Op("rowMeans", {x})}), sds});
    body.Finish({y});
    body.ExpectSame(fmt::format("standard scores of {}", shape));
    body.Finish({body.Op("*", {x, sds})});
    body.ExpectSame(fmt::format("no other aggregate of {}", shape));
    body.fused().kind = FusionTemplate::kStitch;
    body.Finish({shape.rows == 5 ? body.Op("colSums", {y}) : y, vars, sds, body.Op("rowMaxs", {y})});
    body.ExpectSame(fmt::format("beside others of {}", shape));
    if (HasFailure()) return;
  }
  EXPECT_GT(ran(), 10);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// The host adds up what leaves the range of doubles; of floats nothing does.
TEST_F(TilesOnDeviceTest, VariancesOfLongRowsThatOverflow) {
  for (int turn = 0; turn < 2; ++turn) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(Enlarged(Cells(2, 65600 + turn, 9))));
    body.Finish({body.Op("*", {x, body.Op("rowSds", {x})})});
    body.ExpectSame("large numbers");
  }
  ASSERT_EQ(left_to_host().size(), 1u);
  EXPECT_EQ(left_to_host().begin()->first, "a sum is infinite or NaN");
}

// The same of CSR rows by their entries: several chunks, some without entries.
TEST_F(TilesOnDeviceTest, EntriesOfLongRows) {
  bool computes = false;
  for (const Shape& shape : {Shape{3, 70000}, Shape{2, 400000}}) {
    const Value x(*ToSparse(Cells(shape.rows, shape.columns, 1, false, shape.rows == 3 ? 0.01 : 0.0001)));
    for (const char* root : {"rowSums", "rowMeans", "rowMaxs", "sum", "colSums"}) {
      BodyBuilder body;
      const NodeId in = body.Input(x), w = body.Input(Value(Cells(shape.rows, 1, 3)));
      computes = !computes && std::string_view(root) != "rowMaxs";
      const NodeId cells = computes ? body.Op("*", {body.Op("abs", {in}), w}) : in;
      body.Finish({body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} along entries of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 10);
}

// Products along the entries of such rows, and extremes of values that are computed there.
TEST_F(TilesOnDeviceTest, ProductsAndExtremesOfLongRows) {
  for (const Shape& shape : {Shape{5, 70000}, Shape{2, 400000}}) {
    const Value x(*ToSparse(Cells(shape.rows, shape.columns, 1, false, shape.rows == 5 ? 0.01 : 0.0001)));
    for (const char* root : {"t%*% 1", "t%*% 3", "rowMins"}) {
      if (root[0] == 't' && shape.rows == 2) continue;  // Wider than products of fused operators are.
      BodyBuilder body;
      const NodeId in = body.Input(x), w = body.Input(Value(Cells(shape.rows, 1, 3)));
      const std::string_view name = root;
      const NodeId cells = body.Op("*", {body.Op("abs", {in}), w});
      if (name[0] == 't')
        body.Finish({body.Op("t%*%", {cells, body.Input(Value(Cells(shape.rows, name.back() - '0', 4)))})});
      else
        body.Finish({body.Op(root, {cells})});
      body.ExpectSame(fmt::format("{} along entries of {}", root, shape));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(ran(), 0);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// Full sums of more leaves than are joined at once: a work-group joins those of several rows.
TEST_F(TilesOnDeviceTest, SumsOfManyLeavesOfLongRows) {
  const Shape shape = {33'000, 140'000};  // Three leaves a row.
  Matrix x = *Matrix::Sparse(shape.rows, shape.columns, 2 * shape.rows);
  std::mt19937_64 random(1);
  for (int64_t i = 0; i <= shape.rows; ++i) x.mutable_row_offsets()[i] = 2 * i;
  for (int64_t i = 0; i < shape.rows; ++i) {
    const auto column = static_cast<int32_t>(random() % (static_cast<uint64_t>(shape.columns) - 1));
    for (const int32_t e : {0, 1}) {
      x.mutable_column_indexes()[2 * i + e] = e == 0 ? column : static_cast<int32_t>(shape.columns) - 1;
      x.mutable_values()[2 * i + e] = static_cast<double>(random() >> 11) * 0x1p-53 - 0.4;
    }
  }
  for (const char* const root : {"sum", "mean"}) {
    BodyBuilder body;
    const NodeId in = body.Input(Value(x)), w = body.Input(Value(Cells(shape.rows, 1, 3)));
    body.Finish({body.Op(root, {body.Op("*", {body.Op("abs", {in}), w})})});
    body.ExpectSame(fmt::format("{} of {}", root, shape));
    if (HasFailure()) return;
  }
  EXPECT_GT(ran(), 5);
  EXPECT_TRUE(left_to_host().empty()) << left_to_host().begin()->first;
}

// Short rows belong to one work-item each, and leaves of few chains to one work-group.
TEST_F(TilesOnDeviceTest, ShortRowsAndFewChains) {
  for (const Shape& shape : {Shape{5000, 3}, Shape{1025, 7}, Shape{1111, 16}, Shape{3000, 17}})
    for (const int turn : {0, 1, 2}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(Cells(shape.rows, shape.columns, 1))),
                   y = body.Input(Value(Cells(shape.rows, 1, 2)));
      const NodeId v = body.Input(Value(Cells(shape.columns, shape.columns % 2 == 0 ? 1 : 3, 3)));
      const NodeId cells = body.Op("-", {body.Op("*", {x, y}), body.Literal(Scalar(0.3))});
      body.fused().kind = FusionTemplate::kStitch;
      if (turn == 0)
        body.Finish({body.Op("rowSums", {cells}), body.Op("rowSds", {x}), body.Op("rowIndexMax", {x}),
                     body.Op("%*%", {x, v}), body.Op("rowMins", {x}), body.Op("colSums", {cells})});
      if (turn == 1) body.Finish({body.Op("colSums", {cells}), body.Op("colMaxs", {x})});
      if (turn == 2) body.Finish({body.Op("sum", {cells}), body.Op("min", {x})});
      body.ExpectSame(fmt::format("{} of {}", turn, shape));
      if (HasFailure()) return;
    }
  EXPECT_GT(ran(), 30);
}

// Products that are too small for a double leave zeros without a sign.
TEST_F(TilesOnDeviceTest, ProductsThatVanishHaveNoSign) {
  for (const int64_t k : {1, 3, 9}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*FilledMatrix(70, 16, 1e-200)));
    const NodeId v = body.Input(Value(*FilledMatrix(16, k, -1e-200)));
    body.Finish({body.Op("/", {body.Literal(Scalar(1.0)), body.Op("%*%", {x, v})})});
    body.ExpectSame(fmt::format("1 / (X %*% V) of {} columns", k));
  }
  EXPECT_GT(ran(), 5);
}

TEST_F(TilesOnDeviceTest, RandomBodies) {
  for (uint32_t seed = 0; seed < (testing_support::RunsAllPlans() ? 200 : 10) && !HasFailure(); ++seed) {
    const Shape& shape = kShapes[seed * 2654435761u % kShapes.size()];
    if (shape.Cells() > 60000) continue;
    RandomBodyAgrees(shape, seed, 11);
    RandomBodyAgrees(shape, seed, 11, Roots::kSeveral);
  }
  EXPECT_GT(ran(), 15);
}

}  // namespace
}  // namespace heddle::ops::testing

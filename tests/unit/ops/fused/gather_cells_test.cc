// SPDX-License-Identifier: Apache-2.0
#include "ops/fused/gather_cells.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "body_builder.h"

namespace heddle::ops::testing {
namespace {

// Rows of very different lengths, some of them empty, with values that no zero equals.
Matrix RaggedCsr(int64_t rows, int64_t columns, double density, uint32_t seed) {
  std::mt19937_64 random(seed);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Result<Matrix> dense = Matrix::Dense(rows, columns);
  for (int64_t i = 0; i < rows; ++i) {
    const double here = density * std::ldexp(1.0, static_cast<int>(random() % 5) - 2);
    for (int64_t j = 0; j < columns; ++j)
      dense->mutable_data()[i * columns + j] =
          unit() < here ? (unit() - 0.5) * std::ldexp(1.0, static_cast<int>(random() % 7)) : 0.0;
  }
  return *ToSparse(*dense);
}

void ExpectGathered(const Matrix& pattern, const Matrix& x, int64_t tile_rows, SpreadRow& spread) {
  std::vector<double> cells(static_cast<size_t>(pattern.stored() + kGatherOverrun));
  for (int64_t begin = 0; begin < pattern.rows(); begin += tile_rows) {
    const int64_t end = std::min(pattern.rows(), begin + tile_rows);
    const int64_t first = pattern.row_offsets()[begin], count = pattern.row_offsets()[end] - first;
    std::fill(cells.begin(), cells.end(), -99.0);
    GatherCells(PatternFrom(pattern, begin), x, begin, end, spread, cells.data());
    for (int64_t k = count + kGatherOverrun; k < static_cast<int64_t>(cells.size()); ++k)
      ASSERT_EQ(cells[static_cast<size_t>(k)], -99.0) << "written too far, rows " << begin << " to " << end;
    for (int64_t i = begin; i < end; ++i)
      for (int64_t e = pattern.row_offsets()[i]; e < pattern.row_offsets()[i + 1]; ++e)
        ASSERT_EQ(cells[static_cast<size_t>(e - first)], x.At(i, pattern.column_indexes()[e]))
            << "row " << i << ", entry " << e - first;
  }
}

TEST(GatherCellsTest, CellsOfSparseAndDenseMatricesAtTheEntries) {
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 9}, Shape{300, 5}, Shape{211, 100}, Shape{37, 1000}}) {
    for (const double pattern_density : {0.0, 0.02, 0.3, 1.0}) {
      for (const double density : {0.0, 0.005, 0.03, 0.2, 0.9}) {
        SCOPED_TRACE(::testing::Message()
                     << shape.rows << "x" << shape.columns << ", " << pattern_density << " at " << density);
        const Matrix pattern = RaggedCsr(shape.rows, shape.columns, pattern_density, 1),
                     x = RaggedCsr(shape.rows, shape.columns, density, 2);
        SpreadRow spread, unused;
        // One SpreadRow for several passes: what an earlier one left must not be seen.
        for (const int64_t tile_rows : {int64_t{1}, int64_t{7}, shape.rows})
          ExpectGathered(pattern, x, tile_rows, spread);
        ExpectGathered(pattern, *ToDense(x), 7, unused);
      }
    }
  }
}

TEST(GatherCellsTest, PanelsWhoseEntriesDoNotBeginAtZero) {
  const Matrix pattern = RaggedCsr(200, 60, 0.1, 3).Rows(41, 160),
               x = RaggedCsr(200, 60, 0.2, 4).Rows(41, 160);
  SpreadRow spread;
  ExpectGathered(pattern, x, 16, spread);
}

// Tiles along the entries: of many short rows, of few long ones, of a single row longer than a tile should
// be.
class EntryTiles : public ::testing::TestWithParam<std::tuple<Shape, double>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, EntryTiles,
                         ::testing::Values(std::tuple(Shape{30000, 24}, 0.02),
                                           std::tuple(Shape{3001, 500}, 0.01),
                                           std::tuple(Shape{300, 2000}, 0.1),
                                           std::tuple(Shape{21, 9001}, 0.6)));

TEST_P(EntryTiles, ProductOfThreePatterns) {
  const auto& [shape, density] = GetParam();
  for (const char* root : {"sum", "colSums", "rowSums", ""}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(RaggedCsr(shape.rows, shape.columns, density, 5)));
    const NodeId y = body.Input(Value(RaggedCsr(shape.rows, shape.columns, density, 6)));
    const NodeId z = body.Input(Value(RaggedCsr(shape.rows, shape.columns, 0.5, 7)));
    NodeId value = body.Op("*", {body.Op("*", {x, y}), z});
    if (*root != 0) value = body.Op(root, {value});
    body.Finish({value});
    body.ExpectSame(std::string("X*Y*Z ") + root);
  }
}

TEST_P(EntryTiles, SampledRowsTimesTheSameFactor) {
  const auto& [shape, density] = GetParam();
  for (const int64_t rank : {3, 20, 37, 100}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(RaggedCsr(shape.rows, shape.columns, density, 8)));
    const NodeId u = body.Input(Value(*ToDense(RaggedCsr(shape.rows, rank, 0.6, 9))));
    const NodeId v = body.Input(Value(*ToDense(RaggedCsr(shape.columns, rank, 0.6, 10))));
    const NodeId present = body.Op("!=", {x, body.Literal(Scalar(0.0))});
    body.Finish({body.Op("%*%", {body.Op("*", {present, body.Op("sampledProduct", {x, u, v})}), v})});
    body.ExpectSame("((X!=0)*(U%*%t(V)))%*%V rank " + std::to_string(rank));
  }
}

TEST_P(EntryTiles, WeightedSquaredLoss) {
  const auto& [shape, density] = GetParam();
  BodyBuilder body;
  const NodeId x = body.Input(Value(RaggedCsr(shape.rows, shape.columns, density, 11)));
  const NodeId u = body.Input(Value(*ToDense(RaggedCsr(shape.rows, 20, 0.6, 12))));
  const NodeId v = body.Input(Value(*ToDense(RaggedCsr(shape.columns, 20, 0.6, 13))));
  const NodeId present = body.Op("!=", {x, body.Literal(Scalar(0.0))});
  const NodeId difference = body.Op("-", {x, body.Op("sampledProduct", {x, u, v})});
  body.Finish(
      {body.Op("sum", {body.Op("*", {present, body.Op("^", {difference, body.Literal(Scalar(2.0))})})})});
  body.ExpectSame("sum((X!=0)*(X-U%*%t(V))^2)");
}

}  // namespace
}  // namespace heddle::ops::testing

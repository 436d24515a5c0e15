// SPDX-License-Identifier: Apache-2.0
#include "ops/sparse/gather_cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/ops/fused/body_builder.h"

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

// What else is read along the entries that two patterns share, and what becomes of them.
TEST_P(EntryTiles, SharedEntriesBesideDenseOperands) {
  const auto& [shape, density] = GetParam();
  for (const char* root : {"sum", "colSums", "rowSums", "%*%", "t%*%"}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(RaggedCsr(shape.rows, shape.columns, density, 14)));
    const NodeId y = body.Input(Value(RaggedCsr(shape.rows, shape.columns, 0.3, 15)));
    const NodeId dense = body.Input(Value(*ToDense(RaggedCsr(shape.rows, shape.columns, 0.9, 16))));
    const NodeId column = body.Input(Value(*ToDense(RaggedCsr(shape.rows, 1, 0.9, 17))));
    const NodeId row = body.Input(Value(*ToDense(RaggedCsr(1, shape.columns, 0.9, 18))));
    const NodeId z = body.Input(Value(RaggedCsr(shape.rows, shape.columns, 0.2, 19)));
    NodeId value = body.Op("*", {body.Op("*", {x, y}), dense});
    value = body.Op("*", {body.Op("*", {value, column}), row});
    value = body.Op("*", {value, body.Op("+", {x, z})});  // Not shared: absent cells of Z matter nothing.
    if (std::string_view(root) == "%*%")
      value = body.Op(root, {value, body.Input(Value(*ToDense(RaggedCsr(shape.columns, 3, 0.9, 20))))});
    else if (std::string_view(root) == "t%*%")
      value = body.Op(root, {value, body.Input(Value(*ToDense(RaggedCsr(shape.rows, 2, 0.9, 21))))});
    else
      value = body.Op(root, {value});
    body.Finish({value});
    body.ExpectSame(std::string("X*Y*D*c*r*(X+Z) ") + root);
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

void ExpectIntersected(const Matrix& x, const std::vector<Matrix>& others, int64_t tile_rows,
                       std::vector<SpreadRow>& spreads) {
  std::vector<const Matrix*> pointers;
  std::vector<SpreadRow*> spread_pointers;
  for (size_t d = 0; d < others.size(); ++d) {
    pointers.push_back(&others[d]);
    spread_pointers.push_back(&spreads[d]);
  }
  for (int64_t begin = 0; begin < x.rows(); begin += tile_rows) {
    const int64_t end = std::min(x.rows(), begin + tile_rows);
    const auto room = static_cast<size_t>(x.row_offsets()[end] - x.row_offsets()[begin] + kGatherOverrun);
    std::vector<int64_t> offsets(static_cast<size_t>(end - begin) + 1);
    std::vector<int32_t> columns(room + 1, -7);
    std::vector<std::vector<double>> values(others.size() + 1, std::vector<double>(room + 1, -99.0));
    std::vector<double*> value_pointers;
    for (std::vector<double>& list : values) value_pointers.push_back(list.data());
    IntersectRows(x, pointers, begin, end, spread_pointers,
                  {offsets.data(), columns.data(), value_pointers.data()});
    ASSERT_EQ(columns[room], -7) << "written too far";
    for (const std::vector<double>& list : values) ASSERT_EQ(list[room], -99.0) << "written too far";
    int64_t at = 0;
    for (int64_t i = begin; i < end; ++i) {
      ASSERT_EQ(offsets[static_cast<size_t>(i - begin)], at);
      for (int64_t e = x.row_offsets()[i]; e < x.row_offsets()[i + 1]; ++e) {
        const int32_t column = x.column_indexes()[e];
        const bool all = std::all_of(others.begin(), others.end(),
                                     [&](const Matrix& other) { return other.At(i, column) != 0; });
        if (!all) continue;
        ASSERT_EQ(columns[static_cast<size_t>(at)], column) << "row " << i;
        ASSERT_EQ(values[0][static_cast<size_t>(at)], x.values()[e]);
        for (size_t d = 0; d < others.size(); ++d)
          ASSERT_EQ(values[d + 1][static_cast<size_t>(at)], others[d].At(i, column));
        ++at;
      }
    }
    ASSERT_EQ(offsets[static_cast<size_t>(end - begin)], at);
  }
}

TEST(IntersectRowsTest, WhatAllHaveInCommon) {
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 9}, Shape{300, 5}, Shape{211, 100}, Shape{37, 1000}}) {
    for (const double density : {0.0, 0.004, 0.02, 0.1, 0.5, 1.0}) {
      for (const double other : {0.0, 0.01, 0.09, 0.9}) {
        SCOPED_TRACE(::testing::Message()
                     << shape.rows << "x" << shape.columns << ", " << density << " with " << other);
        const Matrix x = RaggedCsr(shape.rows, shape.columns, density, 3);
        std::vector<Matrix> others;
        for (uint32_t d = 0; d < 3; ++d) {
          others.push_back(RaggedCsr(shape.rows, shape.columns, other, 4 + d));
          std::vector<SpreadRow> spreads(others.size());
          for (const int64_t tile_rows : {int64_t{1}, int64_t{7}, shape.rows})
            ExpectIntersected(x, others, tile_rows, spreads);
        }
      }
    }
  }
}

// Rows of a panel: offsets that do not begin at zero.
TEST(IntersectRowsTest, PanelsOfLargerMatrices) {
  const Matrix x = RaggedCsr(200, 60, 0.1, 8), y = RaggedCsr(200, 60, 0.1, 9);
  std::vector<SpreadRow> spreads(1);
  ExpectIntersected(x.Rows(64, 200), {y.Rows(64, 200)}, 50, spreads);
}

}  // namespace
}  // namespace heddle::ops::testing

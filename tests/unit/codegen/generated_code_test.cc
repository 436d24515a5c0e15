// SPDX-License-Identifier: Apache-2.0
// Generated code, the interpreter and literal loops give the same bits.
#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/codegen/region_case.h"

namespace heddle::codegen {
namespace {

using ops::Access;
using ops::Region;
using ops::RegionNode;
using ops::RegionOp;
using ops::RegionOutput;
using ops::Sink;
using ops::simd::Fold;

std::vector<CaseShape> FewShapes() {
  return {{1, 1},           {1, 64},           {3, 7},     {5, 9, 2}, {2, 100, 3, true},
          {4, 33, 0, true}, {1, 600, 0, true}, {2, 515, 1}};
}

RegionNode Input(int input, Access access = Access::kCells) {
  RegionNode node;
  node.input = input;
  node.access = access;
  return node;
}
// The same region on cells that are floats, and with floats stored.
Region OnFloats(Region region) {
  for (RegionNode& node : region.nodes) {
    if (node.op == RegionOp::kInput)
      node.single = node.access == Access::kCells || node.access == Access::kPerRow;
    if (node.op == RegionOp::kUnary) node.unary = ops::InSingles(node.unary);
  }
  for (RegionOutput& output : region.outputs) output.single = output.sink == Sink::kStore;
  return region;
}
RegionNode Unary(ops::UnaryCode code, int a) {
  RegionNode node;
  node.op = RegionOp::kUnary;
  node.unary = code;
  node.a = a;
  return node;
}
RegionNode Binary(ops::BinaryCode code, int a, int b) {
  RegionNode node;
  node.op = RegionOp::kBinary;
  node.binary = code;
  node.a = a;
  node.b = b;
  return node;
}

TEST(GeneratedCodeTest, EveryUnaryOperator) {
  for (int code = 0; code < ops::kUnaryCodes; ++code) {
    const Region region{{Input(0), Unary(static_cast<ops::UnaryCode>(code), 0)}, {{1}}, 1};
    ExpectSameBits(region, {{1, 700}, {3, 7}});
    ExpectSameBits(OnFloats(region), {{1, 700}, {3, 7}});
  }
}

TEST(GeneratedCodeTest, EveryBinaryOperatorOnCellsAndScalars) {
  for (int code = 0; code < ops::kBinaryCodes; ++code) {
    const auto op = static_cast<ops::BinaryCode>(code);
    const Region region{
        {Input(0), Input(1), Input(2, Access::kScalar), Binary(op, 0, 1), Binary(op, 0, 2), Binary(op, 2, 1)},
        {{3}, {4}, {5}},
        3};
    ExpectSameBits(region, {{1, 999}, {1, 9}, {3, 7, 1}, {1, 800}}, static_cast<uint32_t>(code) * 7);
  }
}

TEST(GeneratedCodeTest, LiteralsOfEveryBinaryOperator) {
  for (int code = 0; code < ops::kBinaryCodes; ++code) {
    for (const double literal : {2.0, -0.0, -3.5}) {
      RegionNode number;
      number.op = RegionOp::kLiteral;
      number.literal = literal;
      const auto op = static_cast<ops::BinaryCode>(code);
      ExpectSameBits(
          {{Input(0), number, Binary(op, 0, 1), Binary(op, 1, 0), Binary(op, 1, 1)}, {{2}, {3}, {4}}, 1},
          {{1, 200}});
    }
  }
}

// By the reciprocal, in registers all of whose cells are moderate numbers; in light and in heavy bodies.
TEST(GeneratedCodeTest, DivisionsByOneNumber) {
  constexpr auto kDivide = ops::BinaryCode::kDivide;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  uint32_t seed = 1;
  for (const double literal :
       {3.0, -0.1, 4.0, 0x1.fffffffffffffp+0, 0x1.0000000000001p+0, 0x1.fffffffffffffp-301, 0x1p-300,
        0x1.8p300, 0x1.8p301, 0x1p-1074, 0x1.fffffffffffffp1023, 0.0, -0.0, kInfinity, -kInfinity,
        std::numeric_limits<double>::quiet_NaN()}) {
    RegionNode number;
    number.op = RegionOp::kLiteral;
    number.literal = literal;
    const std::vector<RegionNode> light = {Input(0),
                                           Input(1, Access::kPerRow),
                                           Input(2, Access::kScalar),
                                           number,
                                           Binary(kDivide, 0, 1),
                                           Binary(kDivide, 0, 2),
                                           Binary(kDivide, 0, 3)};
    ExpectSameBits({light, {{4}, {5}, {6}}, 3}, FewShapes(), ++seed);
    ExpectSameBits({light, {{4, Sink::kFoldRows, Fold::kAdd}, {5}, {6, Sink::kFoldColumns, Fold::kAdd}}, 3},
                   FewShapes(), ++seed);
    const std::vector<RegionNode> heavy = {Input(0),
                                           Input(1, Access::kPerRow),
                                           number,
                                           Unary(ops::UnaryCode::kExponential, 0),
                                           Binary(kDivide, 3, 1),
                                           Binary(kDivide, 4, 2)};
    ExpectSameBits({heavy, {{4}, {5}}, 2}, FewShapes(), ++seed);
  }
}

TEST(GeneratedCodeTest, ZeroRules) {
  for (const auto code :
       {ops::BinaryCode::kMultiply, ops::BinaryCode::kLogicalAnd, ops::BinaryCode::kDivide}) {
    for (int rules = 0; rules < 8; ++rules) {
      RegionNode node = Binary(code, 0, 1);
      node.skips_a = (rules & 1) != 0;
      node.skips_b = (rules & 2) != 0;
      node.drops_negative_zero = (rules & 4) != 0;
      ExpectSameBits({{Input(0), Input(1), node}, {{2}}, 2}, {{1, 900}, {5, 7}});
    }
  }
}

TEST(GeneratedCodeTest, EverySinkAndFoldWithEveryAccess) {
  for (int access = 0; access < 4; ++access) {
    for (int sink = 0; sink < 4; ++sink) {
      for (int fold = 0; fold < 4; ++fold) {
        if (sink == 0 && fold > 0) continue;
        const Region region{
            {Input(0), Input(1, static_cast<Access>(access)), Binary(ops::BinaryCode::kMultiply, 0, 1)},
            {{2, static_cast<Sink>(sink), static_cast<Fold>(fold)},
             {1, static_cast<Sink>(sink), static_cast<Fold>(fold)}},
            2};
        std::vector<CaseShape> shapes;
        for (const int64_t columns : {1, 2, 7, 8, 9, 15, 16, 17, 100})
          for (const int64_t rows : {0, 1, 2, 8, 21})
            if (rows == 1 || static_cast<Sink>(sink) != Sink::kFoldFlat)
              shapes.push_back({rows, columns, rows % 2, columns % 2 == 0});
        ExpectSameBits(region, shapes);
      }
    }
  }
}

// A body of one long chain may be computed for several eights at once: every length, head of streamed stores,
// sink and access.
TEST(GeneratedCodeTest, FewHeavyOperatorsWithEverySinkAndAccess) {
  for (int access = 0; access < 4; ++access) {
    for (int sink = 0; sink < 4; ++sink) {
      const Region region{
          {Input(0), Input(1, static_cast<Access>(access)), Unary(ops::UnaryCode::kExponential, 0),
           sink % 2 == 0 ? Unary(ops::UnaryCode::kLogarithm, 2) : Unary(ops::UnaryCode::kNot, 2),
           Binary(ops::BinaryCode::kMultiply, 3, 1)},
          {{4, static_cast<Sink>(sink), Fold::kAdd}, {4}},
          2};
      std::vector<CaseShape> shapes;
      for (int64_t columns = 1; columns <= 150; ++columns) {
        shapes.push_back({1, columns, columns % 3, columns % 2 == 0});
        if (static_cast<Sink>(sink) != Sink::kFoldFlat)
          shapes.push_back({3, columns, columns % 5, columns % 3 == 0});
      }
      ExpectSameBits(region, shapes);
      ExpectSameBits(OnFloats(region), shapes);
    }
  }
}

// As many heavy operators of each other as decide about four, two or one register at a time.
TEST(GeneratedCodeTest, ChainsOfHeavyOperatorsOfEveryLength) {
  for (const int length : {1, 3, 8, 9, 16, 17}) {
    Region region{{Input(0), Input(1, Access::kScalar)}, {}, 2};
    for (int k = 0; k < length; ++k) {
      const int last = static_cast<int>(region.nodes.size()) - 1;
      region.nodes.push_back(Binary(ops::BinaryCode::kMultiply, k == 0 ? 0 : last, 1));
      region.nodes.push_back(
          Unary(k % 2 == 0 ? ops::UnaryCode::kSigmoid : ops::UnaryCode::kHyperbolicTangent, last + 1));
    }
    const int last = static_cast<int>(region.nodes.size()) - 1;
    for (const Sink sink : {Sink::kStore, Sink::kFoldFlat, Sink::kFoldRows, Sink::kFoldColumns}) {
      region.outputs = {{last, sink, Fold::kAdd}, {last}};
      std::vector<CaseShape> shapes;
      for (const int64_t columns : {1, 8, 15, 16, 31, 32, 33, 64, 77, 100})
        shapes.push_back({1, columns, columns % 3, columns % 2 == 1});
      ExpectSameBits(region, shapes);
      ExpectSameBits(OnFloats(region), shapes);
    }
  }
}

// Too many light operators to be unrolled: whole steps and ends of every length.
TEST(GeneratedCodeTest, LongChainsOfLightOperators) {
  Region region{{Input(0), Input(1, Access::kPerColumn), Input(2, Access::kPerRow)}, {}, 3};
  for (int k = 0; k < 16; ++k)
    region.nodes.push_back(
        Binary(k % 2 == 0 ? ops::BinaryCode::kMultiply : ops::BinaryCode::kAdd, k == 0 ? 0 : k + 2, k % 3));
  const int last = static_cast<int>(region.nodes.size()) - 1;
  for (const Sink sink : {Sink::kStore, Sink::kFoldRows, Sink::kFoldColumns}) {
    for (int fold = 0; fold < 4; ++fold) {
      region.outputs = {
          {last, sink, static_cast<Fold>(fold)}, {5, Sink::kFoldColumns, Fold::kMaximum}, {last}};
      std::vector<CaseShape> shapes;
      for (int64_t columns = 0; columns <= 40; ++columns)
        shapes.push_back({1 + columns % 3, columns, columns % 2, columns % 5 == 1});
      ExpectSameBits(region, shapes);
      ExpectSameBits(OnFloats(region), shapes);
    }
  }
}

// Sums of few columns: every number of eights with ends of every length, of light and heavy bodies.
TEST(GeneratedCodeTest, FlatFoldsOfSeveralEights) {
  for (const auto code : {ops::BinaryCode::kMultiply, ops::BinaryCode::kPower}) {
    for (int eights = 1; eights <= 8; ++eights) {
      for (int fold = 0; fold < 4; ++fold) {
        Region region{{Input(0), Input(1), Binary(code, 0, 1)},
                      {{2, Sink::kFoldFlat, static_cast<Fold>(fold)}, {2}},
                      2};
        region.outputs[0].eights = eights;
        std::vector<CaseShape> shapes = {{1, 0}, {1, 3}, {1, 800, 0, true}};
        for (int64_t cells = 8 * eights - 1; cells <= 24 * eights + 9; cells += fold == 0 ? 1 : 13)
          shapes.push_back({1, cells});
        ExpectSameBits(region, shapes);
        if (fold == 0) ExpectSameBits(OnFloats(region), shapes);
        region.outputs.pop_back();
        ExpectSameBits(region, shapes);
        if (fold == 0) ExpectSameBits(OnFloats(region), shapes);
      }
    }
  }
}

TEST(GeneratedCodeTest, EveryShapeOfAMixedRegion) {
  const Region region{{Input(0), Input(1, Access::kPerRow), Input(2, Access::kPerColumn),
                       Binary(ops::BinaryCode::kSubtract, 0, 1), Binary(ops::BinaryCode::kMultiply, 3, 2)},
                      {{4}, {3, Sink::kFoldRows, Fold::kMaximum}, {4, Sink::kFoldColumns, Fold::kAdd}},
                      3};
  std::vector<CaseShape> shapes;
  for (int64_t rows = 0; rows <= 40; ++rows)
    for (const int64_t columns : {0, 1, 2, 7, 8, 9, 15, 16, 17, 100})
      shapes.push_back({rows, columns, rows % 3, rows % 2 == 0});
  ExpectSameBits(region, shapes);
  ExpectSameBits(OnFloats(region), shapes);
}

// Streaming needs whole lines: heads of every length, outputs that reach lines together or not.
TEST(GeneratedCodeTest, StreamedStoresAtEveryAlignment) {
  const Region one{{Input(0), Input(1), Binary(ops::BinaryCode::kMultiply, 0, 1)}, {{2}}, 2};
  const Region two{{Input(0), Input(1), Binary(ops::BinaryCode::kMultiply, 0, 1)}, {{2}, {0}}, 2};
  const Region with_fold{{Input(0), Input(1), Binary(ops::BinaryCode::kMultiply, 0, 1)},
                         {{2}, {2, Sink::kFoldRows, Fold::kAdd}},
                         2};
  std::vector<CaseShape> shapes;
  for (int64_t columns = 1; columns <= 80; ++columns)
    for (const int64_t rows : {1, 3}) shapes.push_back({rows, columns, columns % 2, true});
  for (const Region& region : {one, two, with_fold}) {
    ExpectSameBits(region, shapes);
    ExpectSameBits(OnFloats(region), shapes);
  }
}

TEST(GeneratedCodeTest, RandomRegions) {
  std::mt19937 random(20);
  for (int round = 0; round < 60; ++round) {
    const bool flat = round % 2 == 0;
    const Region region = RandomRegion(random, 2 + static_cast<int>(random() % 29), flat);
    std::vector<CaseShape> shapes = FewShapes();
    if (flat) std::erase_if(shapes, [](const CaseShape& shape) { return shape.rows != 1; });
    if (flat) shapes.insert(shapes.end(), {{1, 0}, {1, 7}, {1, 8}, {1, 17}, {1, 100, 0, true}});
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(region, shapes, static_cast<uint32_t>(round)));
  }
}

}  // namespace
}  // namespace heddle::codegen
